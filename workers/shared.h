/* shared - the arena: the memory in which judge and runner both see a case's tensors.
 *
 * Three kinds: on the CPU a memfd, which is the device's memory too; on a GPU an allocation of its own, shared by CUDA
 * IPC; or `staged`, a memfd beside the GPU, through which tensors are copied, where IPC is refused or not wanted. The
 * memfd's size is sealed, so that nobody can make the judge fault by cutting it short. Every runner child gets a fresh
 * arena: what an earlier reference left running still holds the old one, which nobody looks at. */
#ifndef REFTEST_WORKERS_SHARED_H
#define REFTEST_WORKERS_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernels/device.h"

enum shared_kind { SHARED_MEMORY, SHARED_CUDA, SHARED_STAGED };

struct shared_block;

struct shared {
	struct device *device; /* not owned */
	enum shared_kind kind;
	int id;                      /* tells arenas of one judge apart; 0: there is none yet */
	struct shared_block *blocks; /* the present one first, then those that this child may still have mapped */
};

/* `staged`: copy through the host even where the device could share. Takes no memory yet. */
void shared_open(struct shared *shared, struct device *device, bool staged);

/* The child that knew this arena is gone: gives all memory back. */
void shared_renew(struct shared *shared);

/* At least `need` bytes; `wish` bytes when a new block has to be made anyway. 1: a new block was made, 0: the present
 * one is large enough, -1: error. */
int shared_reserve(struct shared *shared, int64_t need, int64_t wish, struct err *err);
/* Bytes that it takes of the device's memory at present: of a memfd only what was ever asked for, since memory that
 * nobody has touched is not taken. */
int64_t shared_used(const struct shared *shared);

int64_t shared_room(const struct shared *shared); /* bytes of the present block */

/* Between the arena, at an offset, and device memory. */
int shared_put(struct shared *shared, int64_t offset, const void *from, int64_t bytes, struct err *err);
int shared_get(struct shared *shared, void *to, int64_t offset, int64_t bytes, struct err *err);
int shared_set(struct shared *shared, int64_t offset, unsigned char byte, int64_t bytes, struct err *err);
/* Offset from `offset` of the first byte that differs, -1: none does, -2: error. */
int64_t shared_first_other(struct shared *shared, int64_t offset, unsigned char byte, int64_t bytes, struct err *err);
int64_t shared_first_difference(struct shared *shared, int64_t offset, const void *memory, int64_t bytes,
                                struct err *err);

/* What the runner must know to map it: {"id", "kind", "bytes", "handle"}. */
void shared_describe(const struct shared *shared, struct buf *out);
int shared_fd(const struct shared *shared); /* the memfd, not the caller's; -1: none is needed */

#endif
