/* packed - a verdict in a quarter of its JSON's octets, and read twenty times as fast: how it lies in the store and in an
 * archive.
 *
 *   packed   = 0x01 . time . length of skeleton . length of marks . skeleton . marks . figures
 *   skeleton = what many verdicts share: state, texts, rules, shapes, names of outputs, constants, findings
 *   marks    = how each of the figures is written down, one octet for each; alike in verdicts of one kind
 *   figures  = the octets of the figures: seconds, elements, metrics, worst places
 *
 * Integers are LEB128 (signed ones in zigzag), so it is the same on every machine. A double has as many octets as it
 * needs and keeps every bit. JSON begins with '{', so the first octet tells the two forms apart, and verdict_parse reads
 * both. The three parts are kept apart because an archive keeps them apart: skeletons once for each block, and marks
 * beside marks, where they pack into nearly nothing. */
#ifndef REFTEST_DATASET_PACKED_H
#define REFTEST_DATASET_PACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "dataset/figure.h"
#include "dataset/verdict.h"

struct packed_parts {
	int64_t time; /* the verdict's */
	const unsigned char *skeleton, *marks, *figures;
	size_t skeleton_length, marks_length, figures_length;
};

bool verdict_is_packed(const void *text, size_t length);

/* Appends the packed form of a verdict's JSON, if the very same JSON comes out of it again. false, and nothing appended,
 * if not: then it is no verdict, or was written otherwise, and stays as it is. */
bool verdict_pack(const char *text, size_t length, struct buf *out);

/* NULL if these octets are none, or say what no verdict does (what verdict_parse refuses is refused here). In `arena`. */
const struct verdict *verdict_unpack(const void *bytes, size_t length, struct arena *arena);

/* Takes packed octets apart, in place, and puts them together again. false: they are none. */
bool packed_split(const void *bytes, size_t length, struct packed_parts *out);
void packed_join(const struct packed_parts *parts, struct buf *out);

#endif
