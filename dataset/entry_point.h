/* entry_point - decides which function of a reference reftest calls. */
#ifndef REFTEST_DATASET_ENTRY_POINT_H
#define REFTEST_DATASET_ENTRY_POINT_H

#include "dataset/python_outline.h"

/* Reads the source of a reference, and finds the function that reftest calls:
 *   - `run`, if a statement may bind this name;
 *   - otherwise, the last function at top level with a name that ends with "_reference", because FlashInfer's tracer
 *     uses such names;
 *   - otherwise `run`, if the source may bind any name (`binds_any`), or if python_outline_read returns
 *     PYTHON_OUTLINE_UNSURE.
 * Sets `entry_point` to the name of this function, allocated in `arena`, or to NULL if the source has no such function
 * or is not Python. The outline is also allocated in `arena`. Returns what python_outline_read returns. */
enum python_outline_answer entry_point_find(const char *source, size_t length, struct arena *arena,
					    struct python_outline *outline, const char **entry_point, struct err *err);

#endif
