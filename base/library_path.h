/* library_path - finds a library that is shipped with this program. If $REFTEST_KERNELS is set, it names the only
 * directory that is searched. Otherwise, two directories are searched: first the directory of the binary, and then
 * ../lib/reftest (relative to the binary), where `make install` puts libraries. */
#ifndef REFTEST_BASE_LIBRARY_PATH_H
#define REFTEST_BASE_LIBRARY_PATH_H

#include <stddef.h>

/* Writes the path of the library `name` to `out`. Returns 0, or -1 if the library is in none of the searched
 * directories. */
int library_path(const char *name, char *out, size_t size);

#endif
