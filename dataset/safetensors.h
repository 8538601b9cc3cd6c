/* safetensors - the header of a .safetensors file, read with bounds, and digests of what it holds.
 *
 * Format (huggingface/safetensors README): 8 bytes little-endian header length N, N bytes of JSON
 * {"name": {"dtype": "BF16", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {…}}, then the data; offsets
 * count from the end of the header. Every offset, shape product and overlap is checked against the file's size; as the
 * format has it, the tensors lie side by side without gaps and end where the file does.
 *
 * Others may write to the file meanwhile, and make it shorter: it is not mapped but read, each byte once, into memory of our
 * own, and what is parsed, hashed and used is what lies there. */
#ifndef REFTEST_DATASET_SAFETENSORS_H
#define REFTEST_DATASET_SAFETENSORS_H

#include "base/arena.h"
#include "base/dtype.h"
#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "dataset/definition.h"

struct safetensor {
	const char *name;
	enum dtype dtype;
	int rank;
	int64_t shape[RANK_MAX];
	int64_t begin, bytes; /* where it lies in the file; perhaps not aligned */
};

struct safetensors {
	const struct safetensor *tensors; /* sorted by name */
	int count;
	int fd;          /* owned, as all that follows: safetensors_close; -1: none is open */
	struct stat st;  /* before the first byte was read */
	struct buf head; /* the file's first bytes as they were read: length field and header */
};

enum safetensors_answer {
	SAFETENSORS_ERROR = -1, /* the sentence says why (lies about offsets, leaves the root, …) */
	SAFETENSORS_OK = 0,
	SAFETENSORS_MISSING =
	    1, /* no such file: the sentence has the `git lfs pull --include "PATH"` that may mend it */
	SAFETENSORS_POINTER = 2 /* a Git LFS pointer stands there instead: likewise */
};

/* `root`: descriptor of the dataset's root; `path` as the workload names it (a leading "./" is fine). */
enum safetensors_answer safetensors_open(int root, const char *path, struct arena *arena, struct safetensors *out,
                                         struct err *err);
/* Goes over the whole file: the digest of all of it (that of its first bytes as they were parsed), and of the bytes of each of
 * its tensors (one for each; NULL: not wanted). false: it cannot be read, or is shorter than it was. */
bool safetensors_digest(const struct safetensors *file, struct digest *content, struct digest *tensors);
const struct safetensor *safetensors_find(const struct safetensors *file, const char *name); /* NULL: not there */
void safetensors_close(struct safetensors *file);

/* The same header rules on bytes that are already in memory; nothing is left open. 0 or -1. */
int safetensors_parse(const char *path, const unsigned char *data, size_t length, struct arena *arena,
                      struct safetensors *out, struct err *err);

#endif
