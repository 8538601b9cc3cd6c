#include "workers/judge/tensor_files.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

enum {
	CHUNK = 1 << 20,      /* size of a read in bytes, small enough for the CPU cache */
	REMEMBERED = 32 << 20 /* an approximate limit in bytes for the cached lists of tensors that are not in use */
};

/* A cache entry for a file content, with the list of the file's tensors and their digests. */
struct known {
	struct digest content;
	struct safetensors list;
	struct digest *tensors; /* one digest per tensor of `list` */
	struct arena arena;	/* all members of the entry are allocated in this arena */
	size_t bytes;		/* the approximate size of the entry in bytes */
	struct known *older;
};

struct tensors {
	struct known *newest; /* the most recently used entry, the only one that the caller may be using */
	unsigned char chunk[CHUNK];
};

struct tensors *tensors_new(void)
{
	struct tensors *tensors = calloc(1, sizeof *tensors);

	if (tensors == NULL)
		die_no_memory();
	return tensors;
}

static void free_known(struct known *known)
{
	while (known != NULL) {
		struct known *older = known->older;

		arena_free(&known->arena);
		free(known);
		known = older;
	}
}

void tensors_free(struct tensors *tensors)
{
	if (tensors != NULL)
		free_known(tensors->newest);
	free(tensors);
}

/* If all entries together have more than REMEMBERED bytes, frees the least recently used ones, but never the newest
 * entry. */
static void forget(struct tensors *tensors)
{
	size_t bytes = 0;

	for (struct known *at = tensors->newest; at != NULL; at = at->older) {
		bytes += at->bytes;
		if (at->older != NULL && bytes + at->older->bytes > REMEMBERED) {
			free_known(at->older);
			at->older = NULL;
		}
	}
}

/* Returns the entry for a file content, and moves it to the front of the list. Returns NULL if there is none. */
static struct known *find(struct tensors *tensors, const struct digest *content)
{
	struct known **at = &tensors->newest;

	while (*at != NULL && !digest_equal(&(*at)->content, content))
		at = &(*at)->older;
	struct known *found = *at;

	if (found != NULL) {
		*at = found->older;
		found->older = tensors->newest;
		tensors->newest = found;
	}
	return found;
}

static enum tensors_answer changed(const char *path, struct err *err)
{
	err_set(err, "%s: the file changed while reftest used it, so its digest is no longer valid; run reftest again", err_show(path).text);
	return TENSORS_CHANGED;
}

/* Reads the whole file and records its tensors and their digests in `known`. */
static enum tensors_answer survey(struct known *known, int root, const char *path, struct err *err)
{
	struct safetensors file;

	switch (safetensors_open(root, path, &known->arena, &file, err)) {
	case SAFETENSORS_OK:
		break;
	case SAFETENSORS_MISSING:
	case SAFETENSORS_POINTER:
		return TENSORS_MISSING;
	default:
		return changed(path, err);
	}
	known->tensors = arena_array(&known->arena, (size_t)file.count, sizeof *known->tensors);
	known->bytes = file.head.length + (size_t)file.count * (sizeof *file.tensors + sizeof *known->tensors);
	bool read = safetensors_digest(&file, &known->content, known->tensors);

	known->list = (struct safetensors){.tensors = file.tensors, .count = file.count, .fd = -1};
	safetensors_close(&file);
	return read ? TENSORS_OK : changed(path, err);
}

enum tensors_answer tensors_content(struct tensors *tensors, int root, const char *path, const struct digest *content,
                                    const struct safetensors **out, struct err *err)
{
	struct known *known = find(tensors, content);

	if (known == NULL) {
		known = calloc(1, sizeof *known);
		if (known == NULL)
			die_no_memory();
		enum tensors_answer answer = survey(known, root, path, err);

		if (answer == TENSORS_OK && !digest_equal(&known->content, content))
			answer = changed(path, err);
		if (answer != TENSORS_OK) {
			free_known(known);
			return answer;
		}
		known->older = tensors->newest;
		tensors->newest = known;
		forget(tensors);
	}
	*out = &known->list;
	return TENSORS_OK;
}

/* Uploads a tensor from an open file. Sets `digest` to the digest of the uploaded bytes. */
static enum tensors_answer upload_open(struct tensors *tensors, int fd, const char *path, const struct safetensor *tensor,
                                       struct device *device, unsigned char *to, struct digest *digest, struct err *err)
{
	struct hash *hash = hash_begin();
	enum tensors_answer answer = TENSORS_OK;

	for (int64_t done = 0, n; answer == TENSORS_OK && done < tensor->bytes; done += n) {
		n = tensor->bytes - done < CHUNK ? tensor->bytes - done : CHUNK;
		if (!file_read_at(fd, tensors->chunk, (size_t)n, tensor->begin + done)) {
			answer = changed(path, err);
			break;
		}
		hash_add(hash, tensors->chunk, (size_t)n);
		if (device->calls->upload(device, to + done, tensors->chunk, n, err) != 0)
			answer = TENSORS_ERROR;
	}
	*digest = hash_end(hash);
	return answer;
}

enum tensors_answer tensors_upload(struct tensors *tensors, int root, const char *path, const struct safetensor *tensor,
                                   struct device *device, void *to, struct err *err)
{
	const struct known *known = tensors->newest;
	struct digest digest;
	struct stat st;
	int fd;

	if (file_open_beneath(root, path, &fd, &st, NULL) != FILE_OK)
		return changed(path, err);
	enum tensors_answer answer = upload_open(tensors, fd, path, tensor, device, to, &digest, err);

	close(fd);
	if (answer == TENSORS_OK && !digest_equal(&digest, &known->tensors[tensor - known->list.tensors]))
		answer = changed(path, err);
	return answer;
}
