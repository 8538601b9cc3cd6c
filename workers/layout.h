/* layout - where the tensors of a case lie in the arena that judge and runner share.
 *
 * Every tensor begins at a multiple of 256 bytes. Before the first, between any two and after the last lies a gap of at
 * least LAYOUT_GAP bytes that nobody has business with: the judge fills the gaps with one byte (the canaries) and looks
 * at them after each run. Two layouts of the same tensors share no address, so that a reference that depends on where
 * its tensors lie answers differently the second time. Pure arithmetic: no memory is touched here. */
#ifndef REFTEST_WORKERS_LAYOUT_H
#define REFTEST_WORKERS_LAYOUT_H

#include <stdint.h>

#include "base/arena.h"

enum { LAYOUT_ALIGN = 256, LAYOUT_GAP = 256 };

struct layout_gap {
	int64_t begin, end; /* bytes [begin, end) of the arena */
	int before, after;  /* the tensor that ends at `begin`, the one that starts at `end`; -1: the arena's edge */
};

struct layout {
	int64_t total;                 /* bytes of arena that it takes; INT64_MAX: more than can be counted */
	int64_t *offset;               /* one a tensor, in the caller's order */
	const struct layout_gap *gaps; /* by address */
	int count, gap_count;          /* tensors; always one gap more */
};

/* Lays `count` tensors of `bytes[i]` (>= 0) bytes out; `run` 0 and 1 are the two layouts. All in `arena`. */
struct layout layout_make(const int64_t *bytes, int count, int run, struct arena *arena);

/* value rounded up to a multiple of LAYOUT_ALIGN, and sums: INT64_MAX when the result would not fit. */
int64_t layout_round(int64_t value);
int64_t layout_add(int64_t a, int64_t b);

#endif
