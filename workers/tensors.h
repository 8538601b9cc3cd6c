/* tensors - tensors of files, from the very bytes that were hashed.
 *
 * A file may be written to at any moment, and a mapping shows each store; so every byte that counts is read once, into
 * memory of our own, and what is there is hashed and uploaded. Of a content (by the digest of its file) it is remembered
 * which tensors it has and the digest of each: a later case reads no more than the tensors that it needs. */
#ifndef REFTEST_WORKERS_TENSORS_H
#define REFTEST_WORKERS_TENSORS_H

#include "base/err.h"
#include "base/hash.h"
#include "dataset/safetensors.h"
#include "kernels/device.h"

struct tensors; /* opaque: what earlier cases learnt of contents, and memory to read into */

struct tensors *tensors_new(void); /* owned by the caller: tensors_free */
void tensors_free(struct tensors *tensors); /* NULL is fine */

enum tensors_answer {
	TENSORS_OK,
	TENSORS_MISSING, /* the file is not there, or no more than a Git LFS pointer to it */
	TENSORS_CHANGED, /* it does not hold what was hashed */
	TENSORS_ERROR    /* the device's */
};

/* The content of the file `path` below the folder `root`, which must have the digest `content`: goes over the whole file
 * unless that content is known. All but TENSORS_OK come with a sentence. `out` lives until the next call of this. */
enum tensors_answer tensors_content(struct tensors *tensors, int root, const char *path, const struct digest *content,
                                    const struct safetensors **out, struct err *err);

/* Device memory at `to` gets the bytes of `tensor`, one of the content that tensors_content gave last, read from `path`
 * anew. Unless TENSORS_OK, what is at `to` is of no meaning. */
enum tensors_answer tensors_upload(struct tensors *tensors, int root, const char *path, const struct safetensor *tensor,
                                   struct device *device, void *to, struct err *err);

#endif
