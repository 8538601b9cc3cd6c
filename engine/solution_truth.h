/* solution_truth - the dataset's solutions as programs: solutions/{author}/{op_type}/{definition}/{name}.json, or
 * without the folder of the author. `--ground-truth solution` makes them ground truths, `verify --solutions` holds them
 * against what verified the reference.
 *
 * A solution is other people's code. It runs in a runner of its own, confined as references are
 * (workers/pool/lane_truth.c). Its version, which is part of the witness, is the digest of its sources and of how it is
 * called. */
#ifndef REFTEST_ENGINE_SOLUTION_TRUTH_H
#define REFTEST_ENGINE_SOLUTION_TRUTH_H

#include "base/arena.h"
#include "base/buf.h"
#include "dataset/definition.h"
#include "engine/dataset_truth.h"

enum { SOLUTIONS_MAX = 64 /* the most solutions of a definition that are read */ };

/* Returns the paths of the definition's solutions relative to the root of the dataset, which `root` has open, sorted.
 * More than SOLUTIONS_MAX files are left out. */
const char **solution_paths(int root, const char *op_type, const char *name, struct arena *arena, int *count);

/* Returns whether a path is that of a solution. */
bool is_solution_path(const char *path);

/* Reads the solution in the file `path` as a ground truth of the definition. Its program is also set if the solution is
 * the reference's code, which decides nothing. If `why` is not NULL, the file cannot be
 * read, for that reason. `device_class` is that of the run. Everything is allocated in `arena`. */
struct own_truth solution_truth_read(const char *path, const struct definition *definition, const struct buf *bytes,
				     const char *why, const char *device_class, struct arena *arena);

/* Returns whether "solution:WORD" of --ground-truth means this solution: WORD is its name or its author. */
bool solution_is_named(const struct own_truth *solution, const char *word);

#endif
