/* chain_plan - computes a chain of operations (dataset/truth_chain.h) with the oracles of their op families. The engine
 * makes a plan to find out whether there is an op family for each step. The judge makes the same plan again, and
 * computes the chain. */
#ifndef REFTEST_WORKERS_PROTOCOL_CHAIN_PLAN_H
#define REFTEST_WORKERS_PROTOCOL_CHAIN_PLAN_H

#include "base/arena.h"
#include "base/err.h"
#include "kernels/core/kernels_library.h"
#include "kernels/core/op.h"

struct chain_plan; /* an opaque type */

/* Makes the plan for a chain. `text` is the chain as JSON. Returns NULL with a message if no family computes a step
 * with its shapes and dtypes, or if nothing states the value of a constant of a step's operation. The message names the
 * step, as in "ground_truth/1 (rope): …". */
struct chain_plan *chain_plan_make(const struct kernels_api *api, const char *text, const struct op_problem *problem,
				   struct arena *arena, struct err *err);

/* Returns the version of the chain: a digest of its text, of the sources of its op families, and of the variants and
 * constants of its steps, which may come from the name of the definition. */
const char *chain_plan_version(const struct chain_plan *plan, struct arena *arena);

/* Returns the tolerance rule of an output of the definition. The atol and the rtol of this rule are the sums over the
 * steps on which the output depends, and its hit_ratio is the smallest hit_ratio of these steps. An output depends on a
 * step if the step computes the output, or a tensor from which the output is computed. `c` is a case of the
 * definition. */
struct rule chain_plan_rule(const struct chain_plan *plan, const struct op_case *c, int output);

/* Computes all outputs on the host. `in` and `out` are the tensors of the definition on the host. Returns -1 with a
 * message if a step refuses its inputs or fails. */
int chain_plan_compute(const struct chain_plan *plan, const struct op_case *c, const struct tensor *in, struct tensor *out,
		       struct err *err);

#endif
