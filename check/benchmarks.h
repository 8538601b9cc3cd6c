/* benchmarks - checks solutions/ and traces/, which flashinfer-bench reads and writes:
 *
 *   solutions/{author}/{op_type}/{definition}/{solution}.json
 *   traces/{author}/{op_type}/{definition}.jsonl
 *
 * A path may also lack the folder {author}. */
#ifndef REFTEST_CHECK_BENCHMARKS_H
#define REFTEST_CHECK_BENCHMARKS_H

#include "check/dataset_index.h"
#include "dataset/solution.h"

void check_solution_file(struct findings *findings, const char *path, const struct solution_place *place,
			 const struct buf *bytes);

void check_solutions(struct dataset_index *index);
/* Checks the trace files, and adds the notes about missing baselines. Call check_solutions first, because traces name
 * solutions. */
void check_traces(struct dataset_index *index);

#endif
