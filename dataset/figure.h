/* figure - numbers in as few octets as they need, the same on every machine: integers as LEB128, and doubles that keep every
 * bit, each as a mark (one octet that says how it is written) and the octets themselves, which may go to two places. */
#ifndef REFTEST_DATASET_FIGURE_H
#define REFTEST_DATASET_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* LEB128, and signed numbers folded so that small ones stay small; the archive writes its own with them. */
struct octets {
	const unsigned char *at, *end;
	bool bad; /* something was missing; everything read from then on is 0 */
};
void packed_put(struct buf *out, uint64_t value);
uint64_t packed_get(struct octets *from);
const unsigned char *packed_take(struct octets *from, uint64_t length); /* NULL: not so many are left */
static inline uint64_t packed_fold(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}
static inline int64_t packed_unfold(uint64_t value)
{
	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}
unsigned packed_octet(struct octets *from);
uint64_t packed_most(struct octets *from, uint64_t most); /* bad if it is above `most` */

/* How a double is written: 0 to 8 of its octets, the most significant first, the rest being 0; or as one of these. */
enum mark {
	MARK_ONE = 9,
	MARK_BFLOAT16 = 10, /* the upper half of a float: 2 octets */
	MARK_FLOAT_3 = 11,  /* a float whose last octet is 0 */
	MARK_FLOAT = 12,
	MARK_SAME = 13, /* as the figure before */
	MARK_NAN = 14,
	MARK_NANOS = 15, /* a whole number of billionths */
	MARK_ULPS = 16,	 /* like the figure before a bfloat16, so many places further: 1 signed octet */
	MARK_APART = 17, /* of a worst place: |reference - ground truth| */
};

/* Where figures go to or come from; marks and figures may be one and the same. */
struct sink {
	struct buf *marks, *figures;
	double last;
};

struct source {
	struct octets *marks, *figures;
	double last;
};

void figure_put(struct sink *to, double value);
double figure_get(struct source *from);

#endif
