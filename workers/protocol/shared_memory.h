/* shared_memory - allocates the shared arena, the memory in which judge and runner share the tensors of a case.
 * (base/arena.h is something else: an allocator.)
 *
 * There are three kinds of shared arena. On the CPU it is a memfd, in which judge and runner compute directly, without
 * copies. On a GPU it is a device allocation that is shared by CUDA IPC. If the machine or the options forbid CUDA IPC,
 * the arena is `staged`: a memfd through which tensors are copied to and from the GPU. The size of a memfd is sealed,
 * because a runner could otherwise truncate it, and this would crash the judge. Every runner gets a new arena, because
 * processes that an earlier reference left running can still write to the old one.
 *
 * It takes long to get new pages for a memfd, so the memfd of an earlier runner may be used again on the CPU. This
 * happens only after the pool has reported that the PID namespace of the earlier runner has ended. After that, no
 * process can map the memfd or have a descriptor of it. Before the next runner gets the memfd, all bytes of the memfd
 * are set to zero. */
#ifndef REFTEST_WORKERS_PROTOCOL_SHARED_MEMORY_H
#define REFTEST_WORKERS_PROTOCOL_SHARED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/core/device.h"

enum shared_kind { SHARED_MEMORY, SHARED_CUDA, SHARED_STAGED };

struct shared_block;

struct shared_memory {
	struct device *device; /* the device, which belongs to the caller */
	enum shared_kind kind;
	int id;                      /* the number of the arena, which no other arena of this judge has; 0: there is no
				      * arena yet */
	struct shared_block *blocks; /* the current block, and after it older blocks that the runner may still map */
	struct shared_block *retired; /* the blocks of earlier runners, the newest first */
};

/* Prepares `shared` without allocating memory. `staged` means that tensors are copied through the host even if the
 * device can share memory. */
void shared_memory_open(struct shared_memory *shared, struct device *device, bool staged);

/* Frees the arena. The memory of the arena is not kept for a later runner. */
void shared_memory_renew(struct shared_memory *shared);

/* Ends the use of the arena for the runner with the number `runner`, which may still map the arena. On the CPU, the
 * memfd is kept, and may be used again after a call of shared_memory_release. On a GPU, the arena is freed. If the
 * runner has no number, `runner` is 0, and the arena is always freed. */
void shared_memory_retire(struct shared_memory *shared, int64_t runner);
/* Lets shared_memory_reserve use the memory that shared_memory_retire kept for this runner. The caller must know that
 * the runner and all processes that it started have ended, and that no other process has access to the memory. */
void shared_memory_release(struct shared_memory *shared, int64_t runner);
/* Frees the memory that shared_memory_retire kept. */
void shared_memory_forget(struct shared_memory *shared);

/* Ensures that the arena has at least `need` bytes. If a new block is needed, it also has at least `wish` bytes.
 * Returns 1 if a new block was allocated, 0 if the current block is large enough, and -1 on error. */
int shared_memory_reserve(struct shared_memory *shared, int64_t need, int64_t wish, struct err *err);
/* Returns how many bytes of the device's memory the arena uses. If the arena is a memfd, only its reserved part counts,
 * because a page takes no memory until it is written to. */
int64_t shared_memory_used(const struct shared_memory *shared);

int64_t shared_memory_room(const struct shared_memory *shared); /* returns the size of the current block in bytes */

/* shared_memory_put copies `bytes` bytes of device memory to offset `offset` of the arena. shared_memory_get copies
 * bytes from the arena to device memory. shared_memory_set fills a part of the arena with one byte value. */
int shared_memory_put(struct shared_memory *shared, int64_t offset, const void *from, int64_t bytes, struct err *err);
int shared_memory_get(struct shared_memory *shared, void *to, int64_t offset, int64_t bytes, struct err *err);
int shared_memory_set(struct shared_memory *shared, int64_t offset, unsigned char byte, int64_t bytes, struct err *err);
/* shared_memory_first_other compares the arena from `offset` on with one byte value, and shared_memory_first_difference
 * compares it with device memory. Both functions return the distance from `offset` to the first byte that differs, -1
 * if no byte differs, or -2 on error. */
int64_t shared_memory_first_other(struct shared_memory *shared, int64_t offset, unsigned char byte, int64_t bytes,
				  struct err *err);
int64_t shared_memory_first_difference(struct shared_memory *shared, int64_t offset, const void *memory, int64_t bytes,
				       struct err *err);

/* A part of the arena, and the device memory that is compared with it, copied to it or copied from it. */
struct shared_part {
	int64_t offset;
	void *memory;       /* NULL: stands for memory whose bytes are all `byte` */
	unsigned char byte;
	int64_t length;     /* the length in bytes, which may be 0 */
};

/* shared_memory_write_parts copies `memory` of each part to the arena. shared_memory_read_parts copies each part of the
 * arena to its `memory`, which must not be NULL. */
int shared_memory_write_parts(struct shared_memory *shared, const struct shared_part *parts, int count, struct err *err);
int shared_memory_read_parts(struct shared_memory *shared, const struct shared_part *parts, int count, struct err *err);
/* Compares each part of the arena with its `memory`. Returns 1 if all are equal, 0 if one differs, or -1 on error. */
int shared_memory_parts_equal(struct shared_memory *shared, const struct shared_part *parts, int count, struct err *err);

/* Writes the object {"id", "kind", "bytes", "handle"}, with which a runner maps the arena. */
void shared_memory_describe(const struct shared_memory *shared, struct buf *out);
int shared_memory_fd(const struct shared_memory *shared); /* returns the memfd, which belongs to `shared`; -1: the arena
							   * has none */

#endif
