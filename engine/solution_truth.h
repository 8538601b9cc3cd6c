/* solution_truth - reads the solutions of a dataset, so that they can run as ground truths. Their files are
 * solutions/{author}/{op_type}/{definition}/{name}.json; the folder of the author may be missing. `--ground-truth
 * solution` uses solutions as ground truths. `verify --solutions` compares solutions with the ground truths that
 * verified the reference.
 *
 * A solution is untrusted code. Its code runs in a runner of its own, which is confined like the runners of references
 * (workers/pool/lane_truth.c). The version of a solution is a digest of its sources, of the way it is called, and of
 * what decides whether it can run. The version is part of the witness. */
#ifndef REFTEST_ENGINE_SOLUTION_TRUTH_H
#define REFTEST_ENGINE_SOLUTION_TRUTH_H

#include "base/arena.h"
#include "base/buf.h"
#include "dataset/definition.h"
#include "engine/dataset_truth.h"

enum { SOLUTIONS_MAX = 64 /* reftest reads at most this many solutions of a definition */ };

/* Returns the paths of the definition's solutions, sorted and relative to the root of the dataset. `root` is a
 * descriptor of the root. Files beyond the first SOLUTIONS_MAX are left out. */
const char **solution_paths(int root, const char *op_type, const char *name, struct arena *arena, int *count);

bool is_solution_path(const char *path);

/* If `path` has the form of the path of a solution, sets `out` to the path of the solution's definition, such as
 * "definitions/gemm/gemm_n128.json", and returns true. Does not check that the files exist. */
bool solution_definition_path(const char *path, char *out, size_t size);

/* Reads the solution in the file `path` as a ground truth of the definition. If the solution cannot be a ground truth,
 * sets truth.refused to the reason. If the reason is that it has the same code as the reference, sets `program`
 * nevertheless. `why` is the reason if the file cannot be read, otherwise NULL. `device_class` is the device class of
 * the run. Everything is allocated in `arena`. */
struct own_truth solution_truth_read(const char *path, const struct definition *definition, const struct buf *bytes,
				     const char *why, const char *device_class, struct arena *arena);

/* Returns whether `word` is the name or the author of this solution, as in "--ground-truth solution:WORD". */
bool solution_is_named(const struct own_truth *solution, const char *word);

#endif
