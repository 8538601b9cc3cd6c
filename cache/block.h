/* block - what one block of an archive holds: records (cache/portable.h) that say what they have in common once.
 *
 *   block  = number of pieces . { length . octets } … . length of records . length of marks . records . marks . figures
 *   record = what octet . [ kind . length . signature ] . [ subject ] . [ witness ] . [ made ]
 *          . either skeleton ref . time . length of marks . length of figures      (a packed verdict, dataset/packed.h)
 *            or time . length of text
 *          . number of names . { definition ref . case ref } … . [ number of fields . { field ref } … ]
 *
 * Integers are LEB128; a time is told by how far it lies from the last record's. A piece is a skeleton, a name or a field
 * (field_write's), and stands once however many records refer to it. A ref is 0 for the piece that the last record had in
 * this place, 1 for the first piece that nobody referred to yet, else 2 + its number. Marks and figures of packed verdicts
 * stand in runs of their own, and so, as figures, do texts that are none and each record's checksum: XXH3-64 of the record
 * as portable_write would write its body, with all that it refers to. Subject and witness are left out where fields and
 * verdict say them: they are digests, and made again from what they are digests of. */
#ifndef REFTEST_CACHE_BLOCK_H
#define REFTEST_CACHE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cache/portable.h"

/* Octets of all records of a block together, as they are once they are read: what pieces share could make them endless. */
enum { BLOCK_WHOLE = 8 << 20, BLOCK_WHOLE_MAX = BLOCK_WHOLE + PORTABLE_MAX + 64 };

struct block_writer;

struct block_writer *block_new(void);
void block_free(struct block_writer *writer);

/* 0, or -1 with a sentence and nothing added: it cannot travel. */
int block_add(struct block_writer *writer, const struct portable *record, struct err *err);
uint32_t block_records(const struct block_writer *writer);
size_t block_octets(const struct block_writer *writer); /* so far */
size_t block_whole(const struct block_writer *writer);	/* of all its records */
/* Appends the block, and begins another. */
void block_end(struct block_writer *writer, struct buf *out);

/* Reads `count` records at most, each that is whole and has the right checksum, into `records`. `agrees` is set in those
 * that portable_check would find in order. Returns how many; `why` gets a sentence if it is fewer, `whole` the octets of
 * all of them. All in `arena`. */
int block_read(const void *raw, size_t length, uint32_t count, struct arena *arena, struct portable *records,
	       size_t *whole, struct err *why);

#endif
