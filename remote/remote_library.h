/* remote_library - loads libreftest_remote.so, which contains the clients for remote caches (hiredis and libcurl). Only
 * the helper process loads the library, so that the program itself starts without hiredis and libcurl. If hiredis or
 * libcurl is not installed, `make` does not build this library. */
#ifndef REFTEST_REMOTE_REMOTE_LIBRARY_H
#define REFTEST_REMOTE_REMOTE_LIBRARY_H

#include <stddef.h>

#include "base/err.h"
#include "remote/url.h"

enum { REMOTE_ABI = 2 }; /* incremented with each change of struct remote_api */

/* The interface exported as `reftest_remote`. */
struct remote_api {
	int abi;
	void (*versions)(char *text, size_t size); /* writes "hiredis 0.14.1, libcurl 7.88.1" */
	/* The helper's main loop: serves the program at the other end of `fd` (remote/message.h) until the program
	 * closes the socket. Returns an exit status. */
	int (*serve)(int fd, const struct remote_url *url);
};

/* Loads the library, which is never unloaded. Searches the directories that base/library_path.h lists. On failure,
 * returns NULL with a message that names these directories, and says how to install the library. */
const struct remote_api *remote_library(struct err *err);

/* Writes the path of the library to `path`, without loading the library. Returns 0, or -1 and sets `err` if the library
 * does not exist. */
int remote_library_path(char *path, size_t size, struct err *err);

/* Does all the work of the helper process, which is a fork of the program. Descriptor 0 is the socket. Returns an exit
 * status. */
int remote_helper_run(const struct remote_url *url);

#endif
