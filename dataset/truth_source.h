/* truth_source - checks the text of a dataset's own ground truth, truths/{op_type}/{name}.py, without running it. */
#ifndef REFTEST_DATASET_TRUTH_SOURCE_H
#define REFTEST_DATASET_TRUTH_SOURCE_H

#include <stddef.h>

#include "base/arena.h"

enum { TRUTH_BYTES = 4 << 20 /* the maximum size of a file in truths/ */ };

/* Checks that the text is UTF-8, that it is valid Python (as far as dataset/python_outline.h can tell), and that it
 * defines `run`. Returns NULL, or a sentence that says what is wrong. The sentence begins with `path` and is allocated
 * in `arena`. */
const char *truth_source_error(const char *path, const char *source, size_t length, struct arena *arena);

#endif
