/* entry_point - which function of a reference is called. The scan reads Python source lexically: it knows strings,
 * comments, brackets and continued lines, so text in a docstring never counts as a function. It does not parse Python. */
#ifndef REFTEST_DATASET_ENTRY_POINT_H
#define REFTEST_DATASET_ENTRY_POINT_H

#include <stdbool.h>
#include <stddef.h>

/* `name` points into the source and has `length` bytes, without a NUL. */
struct entry_point {
	const char *name;
	size_t length;
	int unclosed_line; /* the line (from 1) of a string without an end, after which nothing can be found; else 0 */
};

/* Finds the function that is called: `run`, which the source may define, assign or import; otherwise the last function
 * at top level whose name ends with "_reference", as FlashInfer's tracer names it. Returns false if there is neither;
 * `name` is then the first function at top level, or NULL. */
bool definition_entry_point(const char *source, size_t size, struct entry_point *out);

#endif
