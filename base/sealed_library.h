/* sealed_library - copies a shared library to memory that no process can change. Checks the digest of the copy, and
 * loads the copy. The digest shows that `make` built the library together with the program.
 *
 * If a library were loaded from its file, other processes could change the library while it is in use: the kernel
 * shares the pages of the file with every process that writes to the file. The kernel rejects writes to the file of a
 * running program, but not to the file of a loaded library. A reference could therefore replace the code that judges
 * the reference. The copy is therefore sealed against writing before it is loaded.
 *
 * The copy has only the part of the file that a loader maps. It would take several times as long to copy the whole
 * file, which ends in debug information. */
#ifndef REFTEST_BASE_SEALED_LIBRARY_H
#define REFTEST_BASE_SEALED_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

/* Remembers the digests of files between runs. If no library has changed, a run uses the remembered digests and
 * computes none. */
struct digest_memory {
	/* Returns whether the file `path` is known to have the digest `digest` while its stat is `st`. */
	bool (*known)(void *self, const char *path, const struct stat *st, const char *digest);
	/* Remembers that the file `path` had the digest `digest` at the time `read_ns` (CLOCK_REALTIME). Call this
	 * function only if every later change of the file also changes its stat. */
	void (*remember)(void *self, const char *path, const struct stat *st, int64_t read_ns, const char *digest);
	void *self;
};

/* Makes a sealed copy of the library at `path`. Returns a close-on-exec descriptor of the copy, or -1 with a message.
 * `digest` is the SHA-256 that the copy must have, in hexadecimal digits. `memory` may be NULL. The caller closes the
 * descriptor. */
int sealed_library_copy(const char *path, const char *digest, const struct digest_memory *memory, struct err *err);

/* Makes a sealed copy of the first `length` bytes of an open file. Returns a close-on-exec descriptor of the copy, or
 * -1 with errno. */
int sealed_copy(const char *name, int from, int64_t length);

/* Loads a sealed copy; `path` is the library's name in messages. Returns a handle of dlopen, or NULL with a message. */
void *sealed_library_load(int fd, const char *path, struct err *err);

/* Calls sealed_library_copy and sealed_library_load, and closes the descriptor of the copy. Use this function if no
 * other process loads the copy. Returns a handle of dlopen, or NULL with a message. */
void *sealed_library_open(const char *path, const char *digest, const struct digest_memory *memory, struct err *err);

#endif
