/* read_file - copies a file to memory for the runner of a reference. The definition declares the file in "reads".
 *
 * The reference gets exactly the bytes whose digest is checked: the bytes are copied once to a memfd, which is then
 * sealed and hashed. Later writes to the file do not change the copy, and the runner cannot change it. */
#ifndef REFTEST_WORKERS_POOL_READ_FILE_H
#define REFTEST_WORKERS_POOL_READ_FILE_H

#include "base/err.h"
#include "workers/pool/task.h"

/* Returns the descriptor of the sealed copy; the caller must close it. Returns -1 with a message if the file below the
 * folder `root` is missing, is not a regular file, or does not have the digest `file->content`. */
int read_file_copy(const char *root, const struct read_file *file, struct err *err);

#endif
