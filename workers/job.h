/* job - one case as the judge is told it: everything needed to make its inputs, its ground truth and its bounds. One
 * JSON object; nothing in it points into the cache or the dataset but the blobs that its inputs
 * name, each with the digest of what it must hold. */
#ifndef REFTEST_WORKERS_JOB_H
#define REFTEST_WORKERS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dataset/definition.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "kernels/op.h"

/* What is asked of the reference: what run() returns; or the gradients of that, by autograd. Then `problem` is the one that
 * kernels/gradient.h makes of the definition's, and sources and rules are by its inputs and outputs. */
enum job_asks { JOB_OUTPUTS, JOB_GRADIENTS };

struct job {
	const char *id;                    /* case id: "small:batch_size=1", "workload:UUID" */
	struct op_problem problem;         /* what the families see of the definition */
	const char *op;                    /* family; NULL: none knows it, generic inputs, no ground truth */
	const char *no_truth;              /* op NULL: the sentence why */
	const int64_t *axis;               /* problem.axis_count values */
	uint64_t seed;
	int edge;                          /* op_case.edge */
	enum job_asks asks;
	const struct input_source *inputs; /* problem.input_count; random ones are made by the family */
	const char *const *constraints;    /* those that need tensor contents: checked once the inputs are made */
	int constraint_count;
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
	const struct rule *rules;          /* problem.output_count; final (family, definition and command line applied) */
	const struct rule *second_rules;   /* those of the second contents; NULL: the same */
	const char *root;                  /* of the dataset, for blobs */
	struct truths truths;              /* what is to verify it; none: builtin alone */
};

/* The rule of an output on these contents. */
static inline struct rule job_rule(const struct job *job, enum op_contents contents, int output)
{
	return (contents == CONTENTS_SECOND && job->second_rules != NULL ? job->second_rules : job->rules)[output];
}

/* One JSON object on one line, no newline; every bit of seed, numbers and constants survives. */
void job_write(const struct job *job, struct buf *out);
/* NULL with a sentence: damaged, or beyond what a case can hold (OP_ARGS inputs or outputs). All in `arena`. */
struct job *job_read(const cJSON *json, struct arena *arena, struct err *err);

/* The definition's schema as families see it. Shares strings with the definition. */
struct op_problem problem_of(const struct definition *definition, struct arena *arena);

/* The tensor that `arg` asks for when the axes have these values, without data. `elements` is INT64_MAX when there are
 * more than can be counted, and so are its bytes. A Python scalar (rank OP_SCALAR) has one element and no bytes. */
struct tensor job_tensor(const struct op_arg *arg, const int64_t *axis);
int64_t job_tensor_bytes(const struct tensor *tensor);

/* Bytes that a case takes on its device: inputs three times (both contents, and the arena), outputs five times, canaries;
 * ground-truth scratch aside. Of inputs too large to be held twice it takes less.
 * INT64_MAX: more than can be counted. */
int64_t job_bytes(const struct job *job);
/* Of these, the bytes that are shared with the runner, in either layout. */
int64_t job_arena_bytes(const struct job *job);

#endif
