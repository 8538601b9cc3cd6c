/* pieces - what the writer and the reader of a block (cache/block.h) agree on. */
#ifndef REFTEST_CACHE_PIECES_H
#define REFTEST_CACHE_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "cache/portable.h"
#include "dataset/verdict.h"

/* Places that remember what the last record had there: skeleton, first name, fields in their order. */
enum { PLACE_SKELETON = 0, PLACE_NAME = 1, PLACE_FIELDS = 3, PLACES = 128, FIELDS_MAX = 4096, CHECKSUM = 8 };

/* What a record has. */
enum {
	HAS_SUBJECT = 1,
	HAS_WITNESS = 2,
	HAS_SIGNATURE = 4,
	HAS_TEXT = 8,
	HAS_MADE = 16,
	HAS_FIELDS = 32,
	HAS_ALL = 63
};

static const uint32_t no_piece = UINT32_MAX;

/* A field as far as digests go. */
struct known_field {
	const char *tag; /* NULL: not looked at yet, or `bad` */
	struct digest digest;
	bool witness, bad;
};

struct known_field known_field_of(const void *octets, size_t length, struct arena *arena);
int known_field_order(const struct known_field *a, const struct known_field *b); /* as fields_digest sorts them */

/* Digests of the fields of subject and witness, in their order. */
struct sums {
	struct digest *of[2];
	int count[2];
};
void sums_add(struct sums *sums, const struct known_field *field);

/* Over the record's body, with all that it refers to. `scratch` is the caller's. */
uint64_t record_checksum(const struct portable *record, struct buf *scratch);
/* By whom a verdict says that it was given. */
struct digest verdict_witness(const struct verdict *verdict);
/* Octets that it has alone. */
size_t record_whole(const struct portable *record);

#endif
