/* archive - verdicts gathered into one file that travels: zstd, with a checksum over each record, each block and all.
 *
 *   file  = head . { block head . block } … . tail
 *   head  = skippable frame: "reftest verdicts\n" . version u32 . checksum u64
 *   block head = skippable frame: "rfbk" . records u32 . raw octets u32 . packed octets u32 . checksum of the raw octets u64
 *           . checksum of the packed octets u64 . checksum of this u64
 *   block = one zstd frame: what cache/block.h makes of the records. Version 1: portable records (cache/portable.h), one
 *           after the other
 *   tail  = skippable frame: "rfnd" . blocks u32 . records u64 . checksum of all before this frame u64 . checksum u64
 *
 * A skippable frame is zstd's own for what is no data, so the whole file is one that `zstd -d` takes. Numbers are
 * little-endian and checksums XXH3-64. A block stands alone, and any number of them may be read side by side: what is
 * damaged costs the records that lie there, and of a damaged block those that can still be read are taken, each by its own
 * checksum. Everything that the file says of itself is bounded before it is believed: a block unpacks into
 * ARCHIVE_BLOCK_MAX octets at most, and its records into BLOCK_WHOLE_MAX. */
#ifndef REFTEST_CACHE_ARCHIVE_H
#define REFTEST_CACHE_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cache/block.h"
#include "cache/portable.h"

enum {
	ARCHIVE_VERSION = 2,				       /* is written; those from 1 on are read */
	ARCHIVE_BLOCK = 256 << 10,			       /* raw octets after which a block is closed */
	ARCHIVE_BLOCK_MAX = (1 << 20) + PORTABLE_MAX + 64,     /* that a block may unpack into */
	ARCHIVE_MAX = 1 << 30,				       /* octets of a file that is read */
};

struct archive_writer {
	struct buf *out; /* the file, as far as it is written */
	struct block_writer *block;
	uint32_t blocks;
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
	uint32_t version;
	int64_t records;   /* that were whole */
	int64_t blocks;	   /* block heads met */
	uint64_t unpacked; /* octets of what was read so far */
	int64_t told;	   /* blocks that archive_told was called for */
	size_t tail;	   /* where it stands; 0: not met */
	bool ended, whole; /* no block comes any more; and, when all were told, the file is as it was written */
	bool judged;	   /* whether it is */
};

/* A block that was found, and what came of reading it. */
struct archive_block {
	uint32_t version, records, raw, packed;
	uint64_t raw_sum, packed_sum;
	const unsigned char *bytes; /* `packed` of them, or as many as the file still has */
	size_t there;
	int64_t number;
	struct arena arena; /* of the records; the caller frees it */
	struct portable *found;
	int count;
	int64_t lost; /* records that could not be read, */
	bool damaged; /* or only the block around them, */
	struct err why;
	size_t whole; /* octets of the records */
};

/* Looks at the head. 0, or -1 with the sentence: this is no archive, or of a later version. `bytes` stay the caller's
 * and must outlive the reader. */
int archive_open(struct archive_reader *reader, const void *bytes, size_t length, archive_refused *refused,
		 void *context, struct err *err);
/* Finds the next block. 1, or 0 when there is none any more; then, once all were told, `whole` holds. */
int archive_find(struct archive_reader *reader, struct archive_block *block);
/* Reads its records. Touches nothing but the block: blocks may be read by several threads. */
void archive_read(struct archive_block *block);
/* Tells what of it was refused, and counts the rest. */
void archive_told(struct archive_reader *reader, const struct archive_block *block);
/* All three for the next block, with its records in `arena`: for who reads one after the other. 1, or 0 at the end. */
int archive_next(struct archive_reader *reader, struct arena *arena, const struct portable **records, int *count);
/* Forgets the file. */
void archive_close(struct archive_reader *reader);

#endif
