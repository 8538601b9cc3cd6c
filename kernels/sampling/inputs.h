/* sampling inputs - rows of probabilities in which a mistake shows in few draws; the same on CPU and GPU.
 *
 * A row holds 8 heavy tokens at random places of the vocabulary, one in each eighth of it, their order shuffled; all
 * other tokens have probability 0 or, in every other block of 8 rows, 2^-24. The filter keeps 2 to 4 of the heavy ones;
 * the last that it keeps (the boundary) and the first that it drops are about as likely as the others. So one token too
 * many is drawn every fourth time, and a boundary token that is left out is missed every third time. The 8 rows of a
 * block, by row % 8:
 *
 *   0, 3     flat, 2 kept: 76 68 | 52 24 16 10 6 4, in 256ths
 *   2        flat, 3 kept: 56 52 48 | 40 26 18 10 6
 *   6        flat, 4 kept: 46 43 40 38 | 36 28 16 9
 *   1, 4     steep, 2 kept: 192 13 | 12 10 9 8 7 5 - so that drawing evenly from what is kept shows
 *   5        stairs: 64 tokens from 96 down to 33 of 4128, of which 5 to 54 are kept
 *   7        wide: 2048 tokens from 3071 down to 1024 of 4193280, of which 65 to 1088 are kept (where the vocabulary has
 *            4096, float32 holds the steps, and each row has its own parameters; else flat, 2 kept); no tail
 *
 * In two rows of 64 all of the probability is on one token: the last of the vocabulary (row 11), the first (row 40).
 *
 * In the second contents two of the kept flat tokens tie, and two of the dropped; and weights are no multiples of 2^-8, which
 * bfloat16 would hold.
 *
 * top_k, top_p and min_p follow from what a row is to keep; p lies in the middle between two sums, min_p between two
 * ratios (but is 1 in rows of even numbers of the second contents that keep one token), and in the second contents in every other pair of rows, where that is 2^-12 or more, a sixteenth from the lower or from the
 * upper, so no rounding of float32 decides. With both top_k and top_p, by block % 8: k decides (0, 2, 4); p decides,
 * in such a way that a p that is not applied to renormalised probabilities would keep one token more (1, 5, 6); k alone, p
 * is 1 (3); p alone, k is the size of the vocabulary (7). In block 3 one token is kept (in rows of even numbers of the
 * second contents by a p of 2^-16, alone), in block 7 a single filter keeps all. When a parameter is a Python scalar, all rows
 * share it, and keep what they keep; the second contents have another.
 *
 * Not made, because implementations differ there: ties at the boundary, k or p of zero or less, k beyond the vocabulary, rows
 * that do not sum to 1. */
#ifndef REFTEST_KERNELS_SAMPLING_INPUTS_H
#define REFTEST_KERNELS_SAMPLING_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variant: the filters, and whether the filtered probabilities themselves are asked for. */
enum { SAMPLING_TOP_K = 1, SAMPLING_TOP_P = 2, SAMPLING_MIN_P = 4, SAMPLING_RENORM = 8 };

enum { SAMPLING_HEAVY = 8, SAMPLING_STAIRS = 64, SAMPLING_WIDTH = 2048, SAMPLING_BLOCK = 8 };

enum sampling_kind { SAMPLING_FLAT2, SAMPLING_FLAT3, SAMPLING_FLAT4, SAMPLING_STEEP, SAMPLING_STAIR, SAMPLING_WIDE, SAMPLING_CERTAIN };

/* Indices into the problem's inputs; -1: the problem has none. */
struct sampling_roles {
	int probs, top_k, top_p, min_p;
};

/* By dtype and shape; its name tells min_p from top_p. Complete for what op.match takes. Host only. */
static inline struct sampling_roles sampling_roles_of(const struct op_problem *problem)
{
	struct sampling_roles roles = {-1, -1, -1, -1};

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (input->rank == 2 && roles.probs < 0)
			roles.probs = i;
		else if (!dtype_is_float(input->dtype))
			roles.top_k = i;
		else if (strstr(input->name, "min_p") != NULL)
			roles.min_p = i;
		else
			roles.top_p = i;
	}
	return roles;
}

/* Everything a row depends on; plain data, given to the GPU by value. */
struct sampling_fill {
	uint64_t key;
	int64_t rows, vocab;
	int64_t stride; /* of the columns that have a tail */
	int filters;    /* the variant */
	int shared;     /* a parameter is a Python scalar: all rows have the same */
	int wide;       /* there are wide rows */
	int second;     /* of the contents */
};

/* Host only. */
static inline struct sampling_fill sampling_fill_of(const struct op_case *c)
{
	const struct op_problem *problem = c->problem;
	struct sampling_roles roles = sampling_roles_of(problem);
	const struct op_arg *probs = &problem->inputs[roles.probs];
	struct sampling_fill f;

	f.key = input_key(c, roles.probs);
	f.rows = c->axis[probs->axis[0]];
	f.vocab = c->axis[probs->axis[1]];
	f.stride = f.vocab / 65536 + 1; /* at most 65536 columns, 2^-8 in all */
	f.filters = c->variant;
	f.shared = 0;
	for (int i = 0; i < problem->input_count; i++)
		f.shared |= problem->inputs[i].rank == OP_SCALAR;
	f.wide = !f.shared && f.vocab >= 2 * SAMPLING_WIDTH && (probs->dtype == DTYPE_FLOAT32 || probs->dtype == DTYPE_FLOAT64);
	f.second = c->contents == CONTENTS_SECOND;
	return f;
}

HOST_DEVICE static inline int sampling_kind_of(const struct sampling_fill *f, int64_t row)
{
	const int kinds[SAMPLING_BLOCK] = {SAMPLING_FLAT2, SAMPLING_STEEP, SAMPLING_FLAT3, SAMPLING_FLAT2,
	                                   SAMPLING_STEEP, SAMPLING_STAIR, SAMPLING_FLAT4, SAMPLING_WIDE};
	int kind = kinds[row % SAMPLING_BLOCK];

	if (row % 64 == 11 || row % 64 == 40)
		return SAMPLING_CERTAIN;
	if (kind == SAMPLING_WIDE && !f->wide)
		return SAMPLING_FLAT2;
	return kind == SAMPLING_STAIR && f->vocab < 2 * SAMPLING_STAIRS ? SAMPLING_FLAT2 : kind;
}

HOST_DEVICE static inline int sampling_tokens(int kind)
{
	if (kind == SAMPLING_CERTAIN)
		return 1;
	return kind == SAMPLING_WIDE ? SAMPLING_WIDTH : kind == SAMPLING_STAIR ? SAMPLING_STAIRS : SAMPLING_HEAVY;
}

/* Has the row a tail, and a column a place in it? */
HOST_DEVICE static inline int sampling_tail(const struct sampling_fill *f, int64_t row, int64_t column)
{
	int kind = sampling_kind_of(f, row);

	return (row / SAMPLING_BLOCK & 1) && column % f->stride == 0 && kind != SAMPLING_WIDE && kind != SAMPLING_CERTAIN;
}

/* What the second contents add to a flat or steep row's parts, in units of 2^-24; the sum is 0. In every eighth block flat
 * rows have ties: the first two, which are kept, and, in all, two that no filter keeps (top-k leaves five there at most). */
HOST_DEVICE static inline int32_t sampling_change(const int32_t *parts, int64_t row, int rank)
{
	int tied = row / SAMPLING_BLOCK % 8 == 5;

	if (tied && parts[0] < 2 * parts[1] && rank < 2)
		return (parts[1 - rank] - parts[rank]) * 32768 + 4099;
	if (tied && rank >= 5 && rank < 7)
		return (parts[11 - rank] - parts[rank]) * 32768;
	if (tied && parts[0] < 2 * parts[1] && rank == 7)
		return -2 * 4099;
	return tied ? 0 : rank == 0 ? 4099 : rank == 2 ? -1733 : rank == 3 ? -2366 : 0;
}

/* Probability of the row's token of `rank` (0: the most likely), in units of 2^-24. What a tail holds is taken from the
 * last of 8, from all stairs evenly. */
HOST_DEVICE static inline int32_t sampling_weight(const struct sampling_fill *f, int64_t row, int rank)
{
	const int32_t parts[4][SAMPLING_HEAVY] = {{76, 68, 52, 24, 16, 10, 6, 4},
	                                          {56, 52, 48, 40, 26, 18, 10, 6},
	                                          {46, 43, 40, 38, 36, 28, 16, 9},
	                                          {192, 13, 12, 10, 9, 8, 7, 5}};
	int kind = sampling_kind_of(f, row);
	int32_t tail = sampling_tail(f, row, 0) ? (int32_t)((f->vocab - 1) / f->stride + 1) : 0;

	if (kind == SAMPLING_CERTAIN)
		return rank == 0 ? 16777216 : 0;
	if (kind == SAMPLING_WIDE) /* 4 times 4193280 is 2^24 - 4096 */
		return (3071 - rank) * 4 + (rank == 0 ? 4096 : 0);
	if (kind != SAMPLING_STAIR)
		return parts[kind][rank] * 65536 - (rank == SAMPLING_HEAVY - 1 ? tail : 0) +
		       (f->second ? sampling_change(parts[kind], row, rank) : 0);
	/* The sum is 2^24; what is left over, less than a step, goes to the first. */
	int32_t step = (16777216 - tail) / 4128;

	return (96 - rank) * step + (rank == 0 ? (16777216 - tail) % 4128 : 0);
}

/* Column of the row's token of `rank`. Column 0 is kept for every fourth row, so that it is never the only one. */
HOST_DEVICE static inline int64_t sampling_place(const struct sampling_fill *f, int64_t row, int rank)
{
	int64_t tokens = sampling_tokens(sampling_kind_of(f, row)), first = row * 2 * SAMPLING_WIDTH;
	uint32_t shuffle = philox_bits(f->key, first + SAMPLING_WIDTH);
	int64_t part = (rank * (int64_t)(shuffle >> 8 | 1) + (shuffle & 0xff)) & (tokens - 1); /* each part once */
	int64_t begin = part * f->vocab / tokens, end = (part + 1) * f->vocab / tokens;

	if (tokens == 1)
		return row % 2 ? f->vocab - 1 : 0;
	if (part == 0 && row % 4 == 1)
		return 0;
	if (part == tokens - 1 && row % 4 == 2)
		return f->vocab - 1;
	if (begin == 0 && end > 1)
		begin = 1;
	return begin + (int64_t)(philox_bits(f->key, first + rank) % (uint64_t)(end - begin));
}

/* How many tokens a row is to keep; 0: all. Without meaning when the rows share their parameters. Host only. */
static inline int sampling_kept(const struct sampling_fill *f, int64_t row)
{
	const int kept[] = {2, 3, 4, 2};
	const int wide[] = {1025, 256, 1030, 65, 1088, 511, 1000, 1020, 255, 512, 1056, 100, 513, 129, 1019, 127};
	int kind = sampling_kind_of(f, row), block = (int)(row / SAMPLING_BLOCK % 8);
	int single = (f->filters & ~SAMPLING_RENORM) != (SAMPLING_TOP_K | SAMPLING_TOP_P);

	if (block == 3 || kind == SAMPLING_CERTAIN)
		return 1;
	if (block == 7 && single)
		return 0;
	if (kind == SAMPLING_WIDE)
		return wide[row / SAMPLING_BLOCK % 8 + (f->second ? 8 : 0)];
	return kind == SAMPLING_STAIR ? 5 + (int)(row * 7 % 50) : kept[kind];
}

/* Sum of the first `count` probabilities of a row. Host only. */
static inline double sampling_sum(const struct sampling_fill *f, int64_t row, int count)
{
	int64_t sum = 0;

	for (int rank = 0; rank < count; rank++)
		sum += sampling_weight(f, row, rank);
	return (double)sum * 0x1p-24;
}

/* What a row's filters are given; those that the problem does not have are without meaning. */
struct sampling_parameters {
	int64_t top_k;
	double top_p, min_p;
};

/* For all rows alike. Two tokens of every kind; a p that lies between two sums of each kind, in flat rows so that the
 * token that crosses it is heavy (0.88: of what k = 4 leaves); a ratio between two of each kind. In the second contents
 * three (five, with a p), and a p and a ratio that keep more; all by at least 0.002. */
static inline struct sampling_parameters sampling_shared(int filters, int second)
{
	int both = (filters & SAMPLING_TOP_K) && (filters & SAMPLING_TOP_P);
	struct sampling_parameters first = {both ? 4 : 2, both ? 0.88 : 0.43, 0.504};
	struct sampling_parameters other = {both ? 5 : 3, both ? 0.6 : 0.705, 0.06};

	return second ? other : first;
}

/* Where between `lower` and `upper` a parameter lies: see the head. */
static inline double sampling_between(const struct sampling_fill *f, int64_t row, double lower, double upper)
{
	double part = f->second && (row / 2 + row / SAMPLING_BLOCK) % 2 && upper - lower >= 0x1p-8 ? (row & 1 ? 0.0625 : 0.9375) : 0.5;

	return lower + part * (upper - lower);
}

/* The p after which `kept` tokens of a row remain, of the `from` that top-k leaves (0: no top-k) and over which p is
 * renormalised; with a top-k, only one that would keep one token more if it were not. Host only. */
static inline double sampling_p(const struct sampling_fill *f, int64_t row, int kept, int from)
{
	double mass = from > 0 ? sampling_sum(f, row, from) : 1;
	double below = sampling_sum(f, row, kept - 1) / mass, above = sampling_sum(f, row, kept);

	if (kept == 1 && from <= 1 && f->second && row % 2 == 0)
		return 0x1p-16;
	return sampling_between(f, row, from > kept && above > below ? above : below, above / mass);
}

/* Host only. */
static inline struct sampling_parameters sampling_parameters_of(const struct sampling_fill *f, int64_t row)
{
	const int more[8] = {0, 2, 0, 0, 0, 1, 2, 0}; /* tokens that top-k leaves and top-p drops, by block */
	struct sampling_parameters parameters = {f->vocab, 1, 0};
	int kept = sampling_kept(f, row), block = (int)(row / SAMPLING_BLOCK % 8);
	int both = (f->filters & SAMPLING_TOP_K) && (f->filters & SAMPLING_TOP_P),
	    from = kept + (both ? more[block] : 0);

	if (f->shared)
		return sampling_shared(f->filters, f->second);
	if (kept == 0)
		return parameters;
	if (!both || block != 7)
		parameters.top_k = from;
	if (!both || block != 3)
		parameters.top_p = sampling_p(f, row, kept, both && block != 7 ? from : 0);
	if (both && block == 3 && f->second && row % 2 == 0) {
		parameters.top_k = f->vocab;
		parameters.top_p = 0x1p-16;
	}
	parameters.min_p = sampling_between(f, row, (double)sampling_weight(f, row, kept) / sampling_weight(f, row, 0),
	                                    (double)sampling_weight(f, row, kept - 1) / sampling_weight(f, row, 0));
	if (kept == 1 && f->second && row % 2 == 0)
		parameters.min_p = 1;
	return parameters;
}

#endif
