/* layout - computes the addresses of a case's tensors in the arena that judge and runner share. The module only
 * computes offsets and does not access the arena.
 *
 * Every tensor begins at a multiple of 256 bytes. There are gaps of at least LAYOUT_GAP bytes before the first tensor,
 * between tensors, and after the last tensor. A reference must not write to a gap. To check this, the judge fills the
 * gaps with one byte value (canaries), and checks after each run that the gaps are unchanged. A case has two layouts,
 * and no tensor has the same address in both. Therefore a reference whose results depend on addresses gives different
 * results in two runs. */
#ifndef REFTEST_WORKERS_PROTOCOL_LAYOUT_H
#define REFTEST_WORKERS_PROTOCOL_LAYOUT_H

#include <stdint.h>

#include "base/arena.h"

enum { LAYOUT_ALIGN = 256, LAYOUT_GAP = 256 };

struct layout_gap {
	int64_t begin, end; /* the gap has the bytes [begin, end) of the arena */
	int before;         /* the tensor that ends at `begin`; -1: the arena begins at `begin` */
	int after;          /* the tensor that begins at `end`; -1: the arena ends at `end` */
};

struct layout {
	int64_t total;                 /* the size of all tensors and gaps; INT64_MAX: overflow */
	int64_t *offset;               /* the offset of each tensor in the arena, in the caller's order */
	const struct layout_gap *gaps; /* all gaps, sorted by address */
	int count, gap_count;          /* count: the number of tensors; gap_count is count + 1 */
};

/* Computes layout `run` (0 or 1) of `count` tensors. Tensor i has `bytes[i]` bytes, which may be 0. The result is
 * allocated in `arena`. */
struct layout layout_make(const int64_t *bytes, int count, int run, struct arena *arena);

/* layout_round rounds a size up to a multiple of LAYOUT_ALIGN, and layout_add adds two sizes. Both functions return
 * INT64_MAX on overflow. */
int64_t layout_round(int64_t value);
int64_t layout_add(int64_t a, int64_t b);

#endif
