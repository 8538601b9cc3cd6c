#include "workers/protocol/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* GPU allocations are multiples of BLOCK_ALIGN, the driver's block size, because an IPC handle shares the driver's
 * whole block. If the block also contained private inputs or a ground truth, the runner could read them. */
enum { BLOCK_ALIGN = 2 << 20, CHUNK = 1 << 20 };

/* Limits for the memory that is kept from earlier runners. At most RETIRED_BLOCKS blocks are kept, with at most
 * RETIRED_BYTES used bytes in total. A block is not used again if its used bytes are more than WASTE times as many as
 * needed, because it takes longer to clear such a block than to get new pages. However, this limit does not apply to a
 * block with at most CLEARED_AT_ONCE used bytes. */
enum { RETIRED_BLOCKS = 6, RETIRED_BYTES = 256 << 20, WASTE = 4, CLEARED_AT_ONCE = 1 << 20 };

struct shared_block {
	struct shared_block *next;
	int64_t bytes, used; /* bytes: the size of the block; used: the largest number of bytes that were ever reserved
			      * in it */
	int64_t size;        /* the size of the memfd, which is larger than `bytes` if an earlier runner needed more */
	int64_t runner;      /* if the block is retired: the number of the runner that may still reach it; 0: no runner
			      * can reach it */
	unsigned char *base; /* the address of the device memory or of the mapping of the memfd */
	int fd;              /* the memfd; -1: the block has none */
	unsigned char handle[DEVICE_HANDLE];
};

void shared_memory_open(struct shared_memory *shared, struct device *device, bool staged)
{
	bool host = strcmp(device->calls->class_name(device), "cpu") == 0;

	*shared = (struct shared_memory){.device = device,
					 .kind = staged ? SHARED_STAGED
						 : host ? SHARED_MEMORY
							: SHARED_CUDA};
}

static void block_free(const struct shared_memory *shared, struct shared_block *block)
{
	if (block->fd < 0) {
		shared->device->calls->release(shared->device, block->base);
	} else {
		munmap(block->base, (size_t)block->size);
		close(block->fd);
	}
	free(block);
}

static void free_list(const struct shared_memory *shared, struct shared_block **list)
{
	while (*list != NULL) {
		struct shared_block *block = *list;

		*list = block->next;
		block_free(shared, block);
	}
}

void shared_memory_renew(struct shared_memory *shared)
{
	free_list(shared, &shared->blocks);
}

void shared_memory_forget(struct shared_memory *shared)
{
	free_list(shared, &shared->retired);
}

/* Frees the oldest retired blocks until the others are within the limits. */
static void thin_retired(struct shared_memory *shared)
{
	struct shared_block **at = &shared->retired;
	int64_t bytes = 0;

	for (int count = 0; *at != NULL && count < RETIRED_BLOCKS && bytes + (*at)->used <= RETIRED_BYTES; count++) {
		bytes += (*at)->used;
		at = &(*at)->next;
	}
	free_list(shared, at);
}

void shared_memory_retire(struct shared_memory *shared, int64_t runner)
{
	while (shared->kind == SHARED_MEMORY && runner != 0 && shared->blocks != NULL) {
		struct shared_block *block = shared->blocks;

		shared->blocks = block->next;
		block->runner = runner;
		block->next = shared->retired;
		shared->retired = block;
	}
	shared_memory_renew(shared);
	thin_retired(shared);
}

void shared_memory_release(struct shared_memory *shared, int64_t runner)
{
	for (struct shared_block *block = shared->retired; block != NULL; block = block->next)
		if (block->runner == runner)
			block->runner = 0;
}

/* Returns whether retired block `a` is better than `b` for `wanted` bytes. The best block has all needed pages, and as
 * few other pages as possible. `b` may be NULL. */
static bool fits_better(const struct shared_block *a, const struct shared_block *b, int64_t wanted)
{
	return b == NULL || (a->used >= wanted ? b->used < wanted || a->used < b->used : a->used > b->used);
}

/* Sets all bytes of a block to zero, so that a runner cannot read what earlier runners left there. An earlier runner
 * may have written to any byte of the memfd. The pages after the first `used` bytes are freed, so that a read finds
 * zeros. */
static int clear_block(const struct shared_block *block)
{
	if (block->used < block->size &&
	    fallocate(block->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block->used, block->size - block->used) != 0)
		return -1;
	memset(block->base, 0, (size_t)block->used);
	return 0;
}

/* Takes a block of `bytes` bytes from the retired blocks. Returns NULL if no retired block fits. */
static struct shared_block *take_retired(struct shared_memory *shared, int64_t bytes)
{
	struct shared_block **best = NULL, *block;

	for (struct shared_block **at = &shared->retired; shared->kind == SHARED_MEMORY && *at != NULL; at = &(*at)->next)
		if ((*at)->runner == 0 && (*at)->size >= bytes &&
		    ((*at)->used <= CLEARED_AT_ONCE || (*at)->used / WASTE <= bytes) &&
		    fits_better(*at, best == NULL ? NULL : *best, bytes))
			best = at;
	if (best == NULL)
		return NULL;
	block = *best;
	*best = block->next;
	if (clear_block(block) != 0) {
		block_free(shared, block);
		return NULL;
	}
	block->bytes = bytes;
	return block;
}

/* Creates a memfd for the definition's largest case. A large memfd wastes no memory, because a page takes none until it
 * is written to. */
static int make_memfd(struct shared_block *block, struct err *err)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	void *base;

	block->fd = memfd_create("reftest-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (block->fd < 0)
		return err_errno(err, "cannot share memory with the runner: memfd_create");
	if (ftruncate(block->fd, block->bytes) != 0 || fcntl(block->fd, F_ADD_SEALS, seals) != 0) {
		err_errno(err, "cannot share %" PRId64 " bytes with the runner", block->bytes);
		close(block->fd);
		return -1;
	}
	base = mmap(NULL, (size_t)block->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd, 0);
	if (base == MAP_FAILED) {
		err_errno(err, "cannot map %" PRId64 " bytes", block->bytes);
		close(block->fd);
		return -1;
	}
	block->base = base;
	block->size = block->bytes;
	return 0;
}

/* Allocates device memory that CUDA IPC can share. If the device cannot share memory, frees the memory again and
 * returns 1. */
static int make_device_block(struct shared_memory *shared, struct shared_block *block, struct err *err)
{
	struct device *device = shared->device;

	block->fd = -1;
	block->base = device->calls->allocate(device, block->bytes, err);
	if (block->base == NULL)
		return -1;
	if (device->calls->share(device, block->base, block->handle, err) == 0)
		return 0;
	device->calls->release(device, block->base);
	return device->calls->broken(device) ? -1 : 1;
}

static int make_block(struct shared_memory *shared, struct shared_block *block, struct err *err)
{
	if (shared->kind == SHARED_CUDA) {
		int rc = make_device_block(shared, block, err);

		if (rc <= 0)
			return rc;
		shared->kind = SHARED_STAGED;
	}
	return make_memfd(block, err);
}

static struct shared_block *new_block(struct shared_memory *shared, int64_t bytes, struct err *err)
{
	struct shared_block *block = calloc(1, sizeof *block);

	if (block == NULL)
		die_no_memory();
	block->bytes = bytes;
	if (make_block(shared, block, err) == 0)
		return block;
	free(block);
	return NULL;
}

int shared_memory_reserve(struct shared_memory *shared, int64_t need, int64_t wish, struct err *err)
{
	int64_t bytes = need > wish ? need : wish;
	struct shared_block *block;

	if (shared->blocks != NULL && shared->blocks->bytes >= need) {
		shared->blocks->used = need > shared->blocks->used ? need : shared->blocks->used;
		return 0;
	}
	if (bytes > INT64_MAX - BLOCK_ALIGN)
		return err_set(err, "cannot share %" PRId64 " bytes with the runner", bytes);
	bytes = (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
	block = take_retired(shared, bytes);
	if (block == NULL && (block = new_block(shared, bytes, err)) == NULL)
		return -1;
	block->used = need > block->used ? need : block->used;
	block->next = shared->blocks;
	shared->blocks = block;
	shared->id++;
	return 1;
}

int64_t shared_memory_used(const struct shared_memory *shared)
{
	int64_t bytes = 0;

	for (const struct shared_block *block = shared->blocks; block != NULL; block = block->next)
		bytes += block->fd < 0 ? block->bytes : block->used;
	return bytes;
}

int64_t shared_memory_room(const struct shared_memory *shared)
{
	return shared->blocks == NULL ? 0 : shared->blocks->bytes;
}

int shared_memory_put(struct shared_memory *shared, int64_t offset, const void *from, int64_t bytes, struct err *err)
{
	struct device *device = shared->device;
	unsigned char *to = shared->blocks->base + offset;

	if (bytes == 0)
		return 0;
	return shared->kind == SHARED_STAGED ? device->calls->download(device, to, from, bytes, err)
	                                     : device->calls->copy(device, to, from, bytes, err);
}

int shared_memory_get(struct shared_memory *shared, void *to, int64_t offset, int64_t bytes, struct err *err)
{
	struct device *device = shared->device;
	const unsigned char *from = shared->blocks->base + offset;

	if (bytes == 0)
		return 0;
	return shared->kind == SHARED_STAGED ? device->calls->upload(device, to, from, bytes, err)
	                                     : device->calls->copy(device, to, from, bytes, err);
}

int shared_memory_set(struct shared_memory *shared, int64_t offset, unsigned char byte, int64_t bytes, struct err *err)
{
	if (bytes == 0)
		return 0;
	if (shared->kind != SHARED_STAGED)
		return shared->device->calls->set(shared->device, shared->blocks->base + offset, byte, bytes, err);
	memset(shared->blocks->base + offset, byte, (size_t)bytes);
	return 0;
}

int64_t shared_memory_first_other(struct shared_memory *shared, int64_t offset, unsigned char byte, int64_t bytes,
				  struct err *err)
{
	const unsigned char *at = shared->blocks->base + offset;

	if (bytes == 0)
		return -1;
	if (shared->kind != SHARED_STAGED)
		return shared->device->calls->first_other(shared->device, at, byte, bytes, err);
	for (int64_t i = 0; i < bytes; i++)
		if (at[i] != byte)
			return i;
	return -1;
}

static int64_t first_difference_on_host(const unsigned char *a, const unsigned char *b, int64_t bytes)
{
	int64_t at = 0;

	if (memcmp(a, b, (size_t)bytes) == 0)
		return -1;
	while (a[at] == b[at])
		at++;
	return at;
}

/* Compares a memfd with device memory, by copying the device memory to the host in chunks. */
static int64_t first_difference_staged(struct shared_memory *shared, int64_t offset, const unsigned char *memory,
				       int64_t bytes, struct err *err)
{
	struct device *device = shared->device;
	unsigned char *chunk = malloc(CHUNK);
	int64_t found = -1;

	if (chunk == NULL)
		die_no_memory();
	for (int64_t at = 0; at < bytes && found == -1; at += CHUNK) {
		int64_t size = bytes - at < CHUNK ? bytes - at : CHUNK;

		if (device->calls->download(device, chunk, memory + at, size, err) != 0)
			found = -2;
		else if ((found = first_difference_on_host(shared->blocks->base + offset + at, chunk, size)) >= 0)
			found += at;
	}
	free(chunk);
	return found;
}

int64_t shared_memory_first_difference(struct shared_memory *shared, int64_t offset, const void *memory, int64_t bytes,
				       struct err *err)
{
	struct device *device = shared->device;

	if (bytes == 0)
		return -1;
	if (shared->kind == SHARED_STAGED)
		return first_difference_staged(shared, offset, memory, bytes, err);
	return device->calls->first_difference(device, shared->blocks->base + offset, memory, bytes, err);
}

/* Converts parts of the arena to the form that the device's functions need. If `read` is true, the list is for copies
 * from the arena to `memory` of each part. Otherwise it is for copies from `memory` to the arena, or for comparisons of
 * the two. The caller frees the list. */
static struct device_part *device_parts(const struct shared_memory *shared, const struct shared_part *parts, int count, bool read)
{
	struct device_part *list = calloc((size_t)count + 1, sizeof *list);

	if (list == NULL)
		die_no_memory();
	for (int i = 0; i < count; i++) {
		unsigned char *arena = shared->blocks->base + parts[i].offset;

		list[i] = (struct device_part){.memory = read ? parts[i].memory : arena,
					       .bytes = read ? arena : parts[i].memory,
					       .byte = parts[i].byte,
					       .length = parts[i].length};
	}
	return list;
}

static int write_or_read(struct shared_memory *shared, const struct shared_part *parts, int count, bool read, struct err *err)
{
	struct device_part *list = device_parts(shared, parts, count, read);
	int rc = shared->device->calls->write_parts(shared->device, list, count, err);

	free(list);
	return rc;
}

int shared_memory_write_parts(struct shared_memory *shared, const struct shared_part *parts, int count, struct err *err)
{
	if (shared->kind != SHARED_STAGED)
		return write_or_read(shared, parts, count, false, err);
	for (int i = 0; i < count; i++) {
		const struct shared_part *part = &parts[i];
		int rc = part->memory != NULL ? shared_memory_put(shared, part->offset, part->memory, part->length, err)
					      : shared_memory_set(shared, part->offset, part->byte, part->length, err);

		if (rc != 0)
			return -1;
	}
	return 0;
}

int shared_memory_read_parts(struct shared_memory *shared, const struct shared_part *parts, int count, struct err *err)
{
	if (shared->kind != SHARED_STAGED)
		return write_or_read(shared, parts, count, true, err);
	for (int i = 0; i < count; i++)
		if (shared_memory_get(shared, parts[i].memory, parts[i].offset, parts[i].length, err) != 0)
			return -1;
	return 0;
}

int shared_memory_parts_equal(struct shared_memory *shared, const struct shared_part *parts, int count, struct err *err)
{
	if (shared->kind != SHARED_STAGED) {
		struct device_part *list = device_parts(shared, parts, count, false);
		int equal = shared->device->calls->parts_equal(shared->device, list, count, err);

		free(list);
		return equal;
	}
	for (int i = 0; i < count; i++) {
		const struct shared_part *part = &parts[i];
		int64_t at = part->memory != NULL
				 ? shared_memory_first_difference(shared, part->offset, part->memory, part->length, err)
				 : shared_memory_first_other(shared, part->offset, part->byte, part->length, err);

		if (at != -1)
			return at == -2 ? -1 : 0;
	}
	return 1;
}

void shared_memory_describe(const struct shared_memory *shared, struct buf *out)
{
	static const char *const kinds[] = {"memory", "cuda", "staged"};

	buf_printf(out, "{\"id\":%d,\"kind\":\"%s\",\"bytes\":%" PRId64 ",\"handle\":\"", shared->id, kinds[shared->kind],
	           shared->blocks->bytes);
	for (int i = 0; shared->kind == SHARED_CUDA && i < DEVICE_HANDLE; i++)
		buf_printf(out, "%02x", shared->blocks->handle[i]);
	buf_text(out, "\"}");
}

int shared_memory_fd(const struct shared_memory *shared)
{
	return shared->blocks == NULL ? -1 : shared->blocks->fd;
}
