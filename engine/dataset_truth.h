/* dataset_truth - reads the dataset's own ground truth of a definition: the file truths/{op_type}/{name}.py. The
 * function `run` in this file computes the same outputs as the reference from the same inputs, but independently of the
 * reference.
 *
 * The file is untrusted code. Its code runs in a runner of its own, which is confined like the runners of references
 * (workers/pool/lane_truth.c). The version of this ground truth, which is part of the witness, is the digest of its
 * code in normal form. */
#ifndef REFTEST_ENGINE_DATASET_TRUTH_H
#define REFTEST_ENGINE_DATASET_TRUTH_H

#include "base/arena.h"
#include "base/buf.h"
#include "dataset/definition.h"
#include "dataset/verdict.h"
#include "kernels/core/kernels_library.h"
#include "workers/pool/task.h"

#define TRUTH_NAME "truth" /* the name of this ground truth in --ground-truth and in verdicts */

#define CHAIN_TRUTH "chain" /* the chain of operations in the definition's member "ground_truth" */
#define APPROVED_TRUTH "approved" /* the reference that a person approved (engine/approved_reference.h) */
#define SOLUTION_TRUTH "solution" /* all solutions, in --ground-truth; a verdict names one as "solution:NAME" */

/* Returns whether the ground truth with this name is Python source in the dataset: a file in truths/, a solution, or
 * the approved reference. */
bool is_own_truth(const char *name);

/* The number of elements before the solutions in result.own_truths: the dataset's truth and the chain. */
enum { OWN_TRUTHS = 2 };

struct own_truth {
	struct truth truth;           /* truth.refused: why no case can be verified with the file */
	const char *author, *path;    /* author and path of a solution; NULL: this is not a solution */
	bool invalid;                 /* the file is not a valid solution */
	struct truth_program program; /* the source; program.name is NULL if there is no source to run */
	const char *outside;          /* why verdicts by this ground truth are not stored; NULL: they are stored */
};

/* Reads the truth of a definition from the bytes of the file `path`. If the file cannot be read, `why` is the reason;
 * otherwise `why` is NULL. Everything is allocated in `arena`. */
struct own_truth dataset_truth_read(const char *path, const struct definition *definition, const struct buf *bytes,
				    const char *why, struct arena *arena);

/* Returns whether a Python text is the same code as the reference, apart from comments, docstrings and spacing. A copy
 * of the reference cannot be a ground truth. */
bool same_code_as_reference(const struct definition *definition, const char *source, size_t length);

/* Returns why verdicts that depend on this Python text are not stored, or NULL. */
const char *why_truth_is_not_stored(const char *path, const char *source, size_t length, struct arena *arena);

/* Marks a ground truth as refused, so that no case is verified with it. The digest of the reason `why` becomes the
 * version of the ground truth, so a stored verdict counts only while the ground truth is refused for the same reason.
 * Every refusal must go through this function, unless the version already says that the ground truth is refused
 * (why_not_run in engine/solution_truth.c). */
void refuse_truth(struct truth *truth, const char *why, struct arena *arena);

/* Returns the chain of operations of the definition as a ground truth. */
struct own_truth dataset_truth_chain(const struct kernels_api *api, const struct definition *definition, struct arena *arena);

/* Returns a ground truth for a definition that has no file in truths/. It is refused (refuse_truth): its message says
 * that the file is missing. */
struct truth dataset_truth_missing(const struct definition *definition, struct arena *arena);

#endif
