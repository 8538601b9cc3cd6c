/* sealed_library - loads a shared library from a copy in memory that no process can change.
 *
 * A library that is loaded from its file can be changed while it is used: the kernel shares its pages with every
 * process that writes to the file. (The file of a running program cannot be written to, but the file of a library can.)
 * A reference could so replace the code that judges it. The copy is sealed against writing before it is loaded.
 *
 * The copy has only the part of the file that a loader maps. Debug information, which follows that part, is left out:
 * it would take several times as long to copy. */
#ifndef REFTEST_BASE_SEALED_LIBRARY_H
#define REFTEST_BASE_SEALED_LIBRARY_H

#include "base/err.h"

/* Returns a close-on-exec descriptor of a sealed copy of the library at `path`, or -1 with a message. The caller closes
 * it. */
int sealed_library_copy(const char *path, struct err *err);

/* Loads a sealed copy; `path` is the library's name in messages. Returns a handle of dlopen, or NULL with a message. */
void *sealed_library_load(int fd, const char *path, struct err *err);

/* Both steps at once, for a library that only this process uses. */
void *sealed_library_open(const char *path, struct err *err);

#endif
