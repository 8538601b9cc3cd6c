/* tensor_files - copies tensors from blob files to the device, and ensures that the copied bytes are the bytes whose
 * digest was checked.
 *
 * Another process may write to a file at any time, and a memory mapping would show each change. Therefore every byte is
 * read into private memory once, and is hashed and uploaded from there. The list of a file's tensors, with their
 * digests, is cached under the digest of the file. Therefore a later case with the same file reads only the tensors
 * that it needs. */
#ifndef REFTEST_WORKERS_JUDGE_TENSOR_FILES_H
#define REFTEST_WORKERS_JUDGE_TENSOR_FILES_H

#include "base/err.h"
#include "base/hash.h"
#include "dataset/safetensors.h"
#include "kernels/core/device.h"

struct tensors; /* an opaque type: the cached lists of tensors, and a read buffer */

struct tensors *tensors_new(void); /* the caller must call tensors_free */
void tensors_free(struct tensors *tensors); /* `tensors` may be NULL */

enum tensors_answer {
	TENSORS_OK,
	TENSORS_MISSING, /* the file does not exist, or is only a Git LFS pointer */
	TENSORS_CHANGED, /* the file's content does not have the expected digest */
	TENSORS_ERROR    /* an error of the device */
};

/* Lists the tensors of the file `path` below the directory `root`. The file must have the digest `content`. Reads the
 * whole file, unless its list is cached. If the result is not TENSORS_OK, sets a message in `err`. `out` is valid until
 * the next call. */
enum tensors_answer tensors_content(struct tensors *tensors, int root, const char *path, const struct digest *content,
                                    const struct safetensors **out, struct err *err);

/* Reads `tensor` from the file `path` and uploads its bytes to device memory at `to`. The last call of
 * tensors_content must have listed this tensor. If the result is not TENSORS_OK, the bytes at `to` are undefined. */
enum tensors_answer tensors_upload(struct tensors *tensors, int root, const char *path, const struct safetensor *tensor,
                                   struct device *device, void *to, struct err *err);

#endif
