/* archive - verdicts gathered into one file that travels: zstd, with a checksum over each record, each block and all.
 *
 *   file  = head . { block head . block } … . tail
 *   head  = skippable frame: "reftest verdicts\n" . version u32 . checksum u64
 *   block head = skippable frame: "rfbk" . records u32 . raw octets u32 . packed octets u32 . checksum of these octets
 * u64 . checksum of the packed octets u64 . checksum of this u64 block = one zstd frame: portable records
 * (cache/portable.h), one after the other tail  = skippable frame: "rfnd" . blocks u32 . records u64 . checksum of all
 * before this frame u64 . checksum u64
 *
 * A skippable frame is zstd's own for what is no data, so the whole file is one that `zstd -d` takes. Numbers are
 * little-endian and checksums XXH3-64. A block stands alone: what is damaged costs the records that lie there, and of a
 * damaged block those that can still be read are taken, each by its own checksum. Everything that the file says of
 * itself is bounded before it is believed: a block unpacks into ARCHIVE_BLOCK_MAX octets at most. */
#ifndef REFTEST_CACHE_ARCHIVE_H
#define REFTEST_CACHE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cache/portable.h"

enum {
	ARCHIVE_VERSION = 1,
	ARCHIVE_BLOCK = 1 << 20,			       /* raw octets after which a block is closed */
	ARCHIVE_BLOCK_MAX = ARCHIVE_BLOCK + PORTABLE_MAX + 64, /* that a block may unpack into */
	ARCHIVE_MAX = 1 << 30,				       /* octets of a file that is read */
};

struct archive_writer {
	struct buf *out; /* the file, as far as it is written */
	struct buf raw;	 /* the present block */
	uint32_t records, blocks;
	uint64_t all; /* records of all blocks */
	void *packer; /* zstd's, NULL before the first block */
};

/* Begins a file in `out`, which must be empty. */
void archive_begin(struct archive_writer *writer, struct buf *out);
/* 0, or -1 with a sentence: this record cannot travel, the others can. */
int archive_add(struct archive_writer *writer, const struct portable *record, struct err *err);
void archive_end(struct archive_writer *writer);

/* Told of what is not taken: `count` records, and the sentence says where and why. */
typedef void archive_refused(const char *sentence, int64_t count, void *context);

struct archive_reader {
	const unsigned char *bytes;
	size_t length, at;
	archive_refused *refused;
	void *context;
	int64_t records;   /* that were whole */
	int64_t blocks;	   /* block heads met */
	uint64_t unpacked; /* octets so far */
	bool ended, whole; /* the tail was met; and the file is as it was written */
	void *unpacker;	   /* zstd's */
	struct buf raw;
};

/* Looks at the head. 0, or -1 with the sentence: this is no archive, or of a later version. `bytes` stay the caller's
 * and must outlive the reader. */
int archive_open(struct archive_reader *reader, const void *bytes, size_t length, archive_refused *refused,
		 void *context, struct err *err);
/* The records of the next block that can be read, in `arena`. 1, or 0 at the end (then `whole` tells). */
int archive_next(struct archive_reader *reader, struct arena *arena, const struct portable **records, int *count);
void archive_close(struct archive_reader *reader);

#endif
