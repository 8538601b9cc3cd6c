/* library - libreftest_remote.so: what speaks to remotes, with hiredis and libcurl in it. Loaded by the courier alone,
 * so that the program itself starts without either; where they were missing, make left the library out. */
#ifndef REFTEST_REMOTE_LIBRARY_H
#define REFTEST_REMOTE_LIBRARY_H

#include <stddef.h>

#include "base/err.h"
#include "remote/place.h"

enum { REMOTE_ABI = 1 }; /* raised whenever what crosses the boundary changes */

/* What it exports as `reftest_remote`. */
struct remote_face {
	int abi;
	const char *(*versions)(void); /* "hiredis 0.14.1, libcurl 7.88.1" */
	/* A courier's life: serves the program at the other end of `fd` (remote/frame.h) until that closes it. An exit
	 * code. */
	int (*serve)(int fd, const struct place *place);
};

/* The face, for as long as the program lives; NULL with a sentence: where it was looked for, and what mends it. Looked
 * for in $REFTEST_KERNELS (a folder), else beside the binary, else in ../lib/reftest from it. */
const struct remote_face *remote_library(struct err *err);

/* Is it there? `path` gets where. Loads nothing. */
int remote_library_path(char *path, size_t size, struct err *err);

/* `reftest courier`: the hidden command. Descriptor 0 is the socket, $REFTEST_REMOTE the place. Returns an exit code.
 */
int courier_main(void);

#endif
