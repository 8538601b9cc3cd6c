/* file_tolerances - writes the bounds of `reftest generate --tolerance` to test files. A generated test file contains
 * them as the tuple TOLERANCES below its imports. conftest.py applies these bounds in the same way as `reftest verify
 * --tolerance`. An update without this option keeps the bounds that a test file has. This is needed because `verify`,
 * `watch` and git hooks also update test files, but have no such option. */
#ifndef REFTEST_TESTGEN_FILE_TOLERANCES_H
#define REFTEST_TESTGEN_FILE_TOLERANCES_H

#include <stddef.h>

#include "base/buf.h"
#include "dataset/definition.h"

/* Appends the tuple TOLERANCES with the bounds of each dtype, or nothing if no dtype has bounds. A dtype has no bounds
 * if all its numbers in `by_dtype` are negative. */
void file_tolerances_write(const struct tolerance by_dtype[DTYPE_COUNT], struct buf *out);

/* Finds the tuple TOLERANCES in the body of a file that reftest wrote. Returns the length of the tuple, or 0 if the
 * body has no such tuple. */
size_t file_tolerances_find(const char *body, size_t length, const char **out);

/* Inserts the text of a tuple TOLERANCES below the imports of a body that test_file_write wrote. */
void file_tolerances_insert(const char *tuple, size_t length, struct buf *body);

#endif
