/* cases - builds the list of a definition's cases. The cases come from the family's size presets, the optional kinds of
 * cases (edge, backward) and the lines of the workload file.
 *
 * Each case has a job, which is the request to the judge. The subject of a case is everything that its verdict depends
 * on, except the ground truth, the device and the versions. Its parts are stored in the fields of the case, which
 * subject_fields sets. If you add an option that changes the result of a case, add a field for it to subject_fields. A
 * case with an invalid workload line or a missing tensor file gets its verdict from cases_make and does not run. */
#ifndef REFTEST_ENGINE_CASES_H
#define REFTEST_ENGINE_CASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "cache/fingerprint.h"
#include "dataset/dataset.h"
#include "dataset/verdict.h"
#include "dataset/workload.h"
#include "kernels/core/kernels_library.h"
#include "models/architectures.h"
#include "workers/protocol/job.h"

struct case_options {
	bool size[SIZE_COUNT];
	/* True if an option or the command itself chose the sizes; false if the dataset's settings may replace them. */
	bool sizes_given;
	bool edge; /* also run the edge cases; their findings never change a definition's status */
	bool backward; /* also verify the gradients of each case, if the family has a ground truth for gradients */
	bool no_diagnosis; /* do not look for the causes of failures */
	const char *save; /* the file to which the judge writes the tensors of each case; NULL: none */
	bool bench; /* also measure latencies; such a run must not store its verdicts */
	bool workloads;
	uint64_t seed;
	/* values of --atol, --rtol and --hit-ratio; negative: not given */
	struct tolerance tolerance;
	struct tolerance by_dtype[DTYPE_COUNT]; /* --tolerance DTYPE=ATOL,RTOL[,HIT] */
	/* The bounds of the dataset's settings (engine/settings.h), if `dataset_bounds` is set. They override the
	 * bounds of a family or a dtype. Tolerances in a definition or on the command line have precedence over
	 * them. */
	struct tolerance dataset_by_dtype[DTYPE_COUNT];
	bool dataset_bounds;
	/* The ids of the selected cases, with NULL at the end; if the pointer is NULL, all cases are selected. */
	const char *const *only;
};

/* The id of a gradient case is the id of the case whose gradients it verifies, followed by this suffix. */
#define CASE_BACKWARD ":backward"

/* Returns the default options: sizes small and medium, all workloads, seed 0, and no override of a tolerance rule. */
struct case_options case_options_default(void);

/* Selects only the case whose id is only[0]; only[1] must be NULL. Sets all sizes in the options, because the id may
 * name a case of any size. Also sets the option `edge` for the id of an edge case, and `backward` for the id of a
 * gradient case. */
void case_options_only(struct case_options *options, const char *const only[2]);

/* How a blob is used: the judge reads tensors from it, the reference may read it as a file, or it is a solution. */
enum blob_use { BLOB_TENSORS, BLOB_READ, BLOB_SOLUTION };

/* A tensor file that a workload names, a file that a definition's "reads" names, or a solution. */
struct blob {
	enum blob_use use;
	const char *path;    /* the path in the workload or in the definition */
	/* The file that is read instead of `path` when a case runs, relative to the root; NULL: `path` is read. */
	const char *file;
	struct digest content;
	struct file_stat stat; /* the stat of `path` when it was hashed; unused if `file` is set */
	int64_t read_ns;       /* wall-clock time at which `path` was hashed; unused if `file` is set */
	/* If the file is missing, a text that says why and gives the command that fetches it; otherwise NULL. */
	const char *missing;
	const char *bad;     /* NULL, or the reason why the file cannot be used */
};

struct test_case {
	const char *id;              /* "small:batch_size=1", "workload:UUID" */
	const char *convention;      /* the convention that an edge case checks; NULL if this is not an edge case */
	/* True if the case is an edge case or has extra checks (job.checks), and --case did not select it. If it passes
	 * or is a finding (case_is_finding), it does not change the definition's status. */
	bool beside;
	/* True for a float64 case. Only the ground truth "builtin" supports such cases. If such a case is skipped, the
	 * status of its definition does not change. */
	bool finer;
	/* True if reftest chose the sizes and no family supports the definition, so sizes and inputs may be invalid. If
	 * the case is skipped, but a workload case has a verdict, the skipped case does not change the definition's
	 * status. */
	bool made_up;
	struct job *job;             /* NULL if `decided` is set */
	struct fields fields;        /* the fields from which `subject` is computed */
	struct digest subject;
	/* A digest over the subject together with the dataset's own ground truths. If several cases of a run have the
	 * same digest, only one of them runs. */
	struct digest execution;
	const struct verdict *decided; /* the verdict (skipped or invalid) of a case that need not run; it is never
					* stored */
};

struct cases {
	struct test_case *items;
	int count;
	const struct op_entry *op; /* the family; NULL: no family supports this definition */
	enum op_matched matched;   /* why `op` is the family */
	const char *how_matched;   /* a sentence that says why `op` is the family; NULL if the op_type names it */
	int candidate_count;       /* the number of families that may support this definition (kernels/core/family_candidates.h) */
	const char *no_truth;      /* the reason why no family supports the definition, if `op` is NULL */
	/* NULL, or a sentence that says that no sizes satisfy the constraints. In this case, only workload lines have
	 * cases. */
	const char *no_sizes;
	/* NULL, or a sentence that says that the definition's `init` failed and that the inputs are therefore
	 * generic. */
	const char *init_failed;
	/* If options.backward is set, but gradients cannot be verified, the reason why; otherwise NULL. */
	const char *no_gradients;
	struct op_constant constants[OP_CONSTANTS];
	int constant_count;
};

/* Builds all cases of a definition. reftest may have to try several op families, so it calls this function once for
 * each attempt. Attempt 0 uses the first candidate (kernels/core/family_candidates.h), attempt 1 the second candidate,
 * and so on. After the last candidate, one attempt uses no family, and a last attempt uses neither a family nor the
 * definition's `init`. `blobs` must have an entry for every tensor file that the workload lines name, and for every
 * file of the definition's "reads". All calls of a run use the same `architectures`, the parsed
 * models/architectures.json. The result is allocated in `arena`. */
struct cases cases_make(const struct kernels_api *kernels, const struct definition *definition,
                        const struct workload_file *workloads, const struct blob *blobs, int blob_count,
                        const char *root, const struct case_options *options, int attempt,
                        struct architectures *architectures, struct arena *arena);

/* Records that another implementation has run on the inputs of the case (job.inputs_are_valid), and adds this to the
 * case's subject, because a failed check then fails the case instead of skipping it. */
void case_inputs_are_valid(struct test_case *c, struct arena *arena);

/* Returns the name of the evidence from which the family was recognized: "op_type", "words" or "shapes". Returns NULL
 * if there is no family. */
const char *cases_matched(const struct cases *cases);

/* Returns whether the dataset's settings determine a bound of any output. */
bool cases_have_dataset_bound(const struct case_options *options, const struct definition *definition);

/* Returns the tolerance rule of an output. Each bound of the rule comes from the first of these sources that has it:
 * the "tolerance" of the output in the definition, the "tolerance" at top level of the definition, `dataset`
 * (case_options.dataset_by_dtype, or NULL), and `family`, which has all bounds. */
struct rule definition_rule(const struct definition *definition, int output, const struct tolerance *dataset,
			    struct rule family);

/* Returns whether a case may omit this input. A case may omit an input that the definition declares optional, if the
 * family can verify the case without this input. `c` is a case with all inputs. */
bool input_may_be_omitted(const struct op *op, const struct op_case *c, int input);

#endif
