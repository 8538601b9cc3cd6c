/* roles - looks up the names of the roles and modes of a problem in the op family's tables (op.roles, op.bind,
 * op.modes). The names are passed to Python code in requests for the ground truths of other libraries, and in generated
 * tests.
 *
 * The families define the names (in kernels/{family}/ and kernels/common/{name}/roles.c), and the code in
 * python/libraries/ uses them. To look up names, a problem that op.match accepted is enough: no device and no case is
 * needed. */
#ifndef REFTEST_KERNELS_CORE_ROLES_H
#define REFTEST_KERNELS_CORE_ROLES_H

#include "base/buf.h"
#include "kernels/core/op.h"

struct op_names {
	const char *inputs[OP_ARGS], *outputs[OP_ARGS]; /* the role of each input and output of the problem */
	const char *modes[OP_MODES];                    /* the names of the variant's modes */
	int mode_count;
};

/* `variant` is the variant that op->match returned for the problem. For a gradient problem, pass the op, the problem
 * and the variant of the forward operation instead. */
struct op_names op_names_of(const struct op *op, const struct op_problem *problem, int variant);

/* Writes three members of a JSON object. The first two map roles to the names of the problem's inputs and outputs, in
 * the problem's order. The third lists the modes, in the order of op.modes:
 *
 *   "roles":{"hidden":"x", …},"output_roles":{"output":"y", …},"modes":["causal", …] */
void op_names_write(const struct op_names *names, const struct op_problem *problem, struct buf *out);

#endif
