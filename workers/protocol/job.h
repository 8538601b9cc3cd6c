/* job - the message that describes one case to the judge, as one JSON object. A job contains all data for the inputs,
 * the ground truth and the tolerance rules of the case. A job refers to no files except the blobs of its inputs, each
 * with the digest of its expected content. If you add a field, add it to struct job, job_write, job_read and the list
 * at the head of job.c. */
#ifndef REFTEST_WORKERS_PROTOCOL_JOB_H
#define REFTEST_WORKERS_PROTOCOL_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dataset/definition.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "kernels/core/op.h"

/* Whether the runner computes the outputs of run(), or uses autograd to compute their gradients. In a job for
 * gradients, `problem` is the problem that kernels/core/gradient_bounds.h derives from the definition's problem. In
 * such a job, `inputs` and `rules` describe the inputs and outputs of the derived problem. */
enum job_asks { JOB_OUTPUTS, JOB_GRADIENTS };

struct job {
	const char *id;                    /* the id of the case, such as "small:batch_size=1" or "workload:UUID" */
	struct op_problem problem;         /* the definition's schema, in the form that op families expect */
	const char *op;                    /* the op family; NULL: no op family matches, so there is no ground truth
					    * builtin */
	const char *no_truth;              /* if `op` is NULL, the message that says why */
	const int64_t *axis;               /* the lengths of the problem's axes */
	uint64_t seed;
	int edge;                          /* the value of op_case.edge */
	/* The code that makes the inputs of kind SOURCE_CUSTOM; NULL: there are none. If the length of an axis is not
	 * passed to the code, `axis` has a guess for it. When the code has made the inputs, the axis gets its length
	 * from their shapes. */
	const struct input_code *input_code;
	bool inputs_are_valid; /* another implementation has run on the same inputs, so they are valid */
	bool chosen_axes; /* reftest chose the lengths of the var axes, so the definition's code may refuse them */
	/* The sets of input values on which the reference runs. JOB_RUNS_ALL: the first, the second, and the first
	 * again. JOB_RUNS_BOTH: the first and the second; like JOB_RUNS_ALL if there is only one set. JOB_RUNS_FIRST,
	 * JOB_RUNS_SECOND: only this set, once. */
	enum job_runs { JOB_RUNS_ALL, JOB_RUNS_BOTH, JOB_RUNS_FIRST, JOB_RUNS_SECOND, JOB_RUNS_COUNT } runs;
	bool bench; /* the latency of the reference and of the ground truths is also measured */
	enum job_asks asks;
	const struct input_source *inputs; /* the source of each input; SOURCE_RANDOM: the op family generates it */
	const char *const *constraints;    /* constraints on tensor values, which are checked after the inputs are
					    * filled */
	int constraint_count;
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
	const struct rule *rules;          /* one tolerance rule for each output, derived from the op family, the
					    * definition and the command line */
	const struct rule *second_rules;   /* the rules for the second set of input values; NULL: the same as `rules` */
	bool compare_bits;                 /* also find out whether outputs with equal values have equal bits */
	bool checks;                       /* also run the checks that need extra runs; a case without an op family
					    * always runs these checks */
	bool no_diagnosis;                 /* do not look for the cause of a failure */
	bool contiguous;                   /* callers pass only contiguous inputs, so the check `strided` is left out */
	const char *save;                  /* the file to which the judge writes the tensors of the case; NULL: none */
	double error_cap;                  /* the largest allowed error of an element, even if the rule allows some
					    * elements to exceed its bound; 0: no limit */
	const char *chain;                 /* a chain of operations that is a ground truth (chain_plan.h); NULL: none */
	const char *fi_api;                /* the function of FlashInfer that the definition names; NULL: none */
	const char *const *arguments;      /* if fi_api is set, the argument of that function for each input */
	const char *root;                  /* the root of the dataset; the paths of blobs are relative to it */
	struct truths truths;              /* the ground truths to use; if the list is empty, builtin is used */
};

/* Returns whether `runs` includes a run on the set `contents` of input values. */
static inline bool job_runs_on(enum job_runs runs, enum op_contents contents)
{
	return runs != (contents == CONTENTS_FIRST ? JOB_RUNS_SECOND : JOB_RUNS_FIRST);
}

/* Returns the tolerance rule of an output for a set of input values. */
static inline struct rule job_rule(const struct job *job, enum op_contents contents, int output)
{
	return (contents == CONTENTS_SECOND && job->second_rules != NULL ? job->second_rules : job->rules)[output];
}

/* Returns whether all tensors of the case are known to be valid for the operation, because the workload gives them, or
 * because another implementation has run on them. Generated inputs are guesses. */
bool job_inputs_are_known(const struct job *job);

/* Writes the job as one JSON object without newlines. The seed, the numbers and the constants are written exactly. */
void job_write(const struct job *job, struct buf *out);
/* Reads a job into `arena`. Returns NULL with a message if the JSON is malformed or has more than OP_ARGS inputs or
 * outputs. */
struct job *job_read(const cJSON *json, struct arena *arena, struct err *err);

/* Returns the schema of a definition in the form that op families expect. The result uses the definition's strings
 * without copying them. */
struct op_problem problem_of(const struct definition *definition, struct arena *arena);

/* Returns a tensor without data. It has the dtype of `arg`, and the shape of `arg` for the axis lengths `axis`. The
 * number of elements or of bytes becomes INT64_MAX if it overflows. However, a tensor with a dimension of 0 is always
 * empty, even if the product of its other dimensions overflows. A Python scalar (rank OP_SCALAR) has one element and no
 * bytes. */
struct tensor job_tensor(const struct op_arg *arg, const int64_t *axis);
int64_t job_tensor_bytes(const struct tensor *tensor);

/* Returns how many bytes of device memory a case needs for three copies of the inputs (two sets, and the copy in the
 * shared arena), five copies of the outputs, and the gaps around the tensors in the arena (layout.h). Does not include
 * scratch memory of the ground truth. If the inputs are large, the case needs less than the result, because only one of
 * the two sets is kept in memory. Returns INT64_MAX on overflow. */
int64_t job_bytes(const struct job *job);
/* Returns the size of the shared arena of a case, for the larger one of its two layouts. job_bytes includes this
 * size. */
int64_t job_arena_bytes(const struct job *job);

#endif
