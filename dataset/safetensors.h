/* safetensors - reads the header of a .safetensors file with bounds checks, and computes digests of its contents.
 *
 * Format (huggingface/safetensors README): the length N of the header (8 bytes, little-endian), N bytes of JSON
 * {"name": {"dtype": "BF16", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {…}}, then the data; offsets
 * count from the end of the header. Every offset and the size of every tensor are checked against the file's size, and
 * tensors must not overlap. As the format requires, the tensors must be contiguous and end with the file.
 *
 * Other processes may write to the file or truncate it at any time. The file is therefore not mapped. Each byte is read
 * once into the memory of this process, and only this copy is parsed, hashed and used. */
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
	int64_t begin, bytes; /* range of the data in the file; `begin` need not be aligned */
};

struct safetensors {
	const struct safetensor *tensors; /* sorted by name */
	int count;
	int fd;          /* the descriptor; -1: not open. safetensors_close closes it and frees `head` */
	struct stat st;  /* stat of the file before the first read */
	struct buf head; /* the length field and the header as they were read */
};

enum safetensors_answer {
	SAFETENSORS_ERROR = -1, /* the message gives the reason: wrong offsets, a path that leads out of the root, … */
	SAFETENSORS_OK = 0,
	SAFETENSORS_MISSING =
	    /* There is no such file; the message contains the command `git lfs pull --include "PATH"`, which may fetch
	     * it. */
	    1,
	/* The file is a Git LFS pointer; the message contains the same command as for a missing file. */
	SAFETENSORS_POINTER = 2
};

/* Opens the file `path`, which is the path in the workload (a leading "./" is allowed). `root` is a descriptor of the
 * dataset's root. */
enum safetensors_answer safetensors_open(int root, const char *path, struct arena *arena, struct safetensors *out,
                                         struct err *err);
/* Reads the whole file and computes digests. Writes the digest of the whole file to `content`. For the length field and
 * the header, hashes the bytes that safetensors_open parsed. If `tensors` is not NULL, writes the digest of each tensor
 * to it. Returns false if the file cannot be read, or was truncated after it was opened. */
bool safetensors_digest(const struct safetensors *file, struct digest *content, struct digest *tensors);
const struct safetensor *safetensors_find(const struct safetensors *file, const char *name); /* NULL: none */
/* Returns the name of a dtype in the safetensors format, for example "BF16"; NULL if the format has no name for it. */
const char *safetensors_dtype(enum dtype dtype);
/* Finds the tensor `key`, which must have the dtype `dtype` and the shape `shape`. If there is no such tensor, returns
 * NULL with a message about the input `input` of a workload. */
const struct safetensor *safetensors_expect(const struct safetensors *file, const char *path, const char *key,
					    const char *input, enum dtype dtype, int rank, const int64_t *shape,
					    struct err *err);
void safetensors_close(struct safetensors *file);

/* Parses the contents of a file in memory. Makes the same checks as safetensors_open. Returns 0 or -1. */
int safetensors_parse(const char *path, const unsigned char *data, size_t length, struct arena *arena,
                      struct safetensors *out, struct err *err);

#endif
