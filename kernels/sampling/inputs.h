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
 *   1, 4     steep, 2 kept: 192 13 | 12 10 9 8 7 5 - so that drawing evenly from what is kept shows; by top-p alone
 *            6 or 7, with a p above 0.95
 *   5        stairs: 64 tokens from 96 down to 33 of 4128, of which 5 to 54 are kept
 *   7        wide: 2048 tokens from 3071 down to 1024 of 4193280, of which 65 to 1088 are kept (where the vocabulary has
 *            4096, float32 holds the steps, and each row has its own parameters; else flat, 2 kept); no tail
 *
 * Without a filter, and with min_p alone, most rows are peaks: one token of 0.59 and 63 from 95 down to 33 of 4032 of
 * the rest, of which 60 to 63 are kept. In no other row does a race of probability / noise whose noise is uniform draw
 * the most likely token so much more often, 0.71 for 0.59, than one whose noise is exponential.
 *
 *   0        flat, 2 kept (without a filter in every other block of the 3 kept)
 *   3        flat, 3 or 4 kept; without a filter a peak
 *   7        a peak, in every fourth block wide; without a filter even: 16384 tokens alike, of which a random number of
 *            few bits reaches some (where the vocabulary has as many, in float32; else flat), no tail
 *   others   peaks (where the vocabulary is smaller than 128: steep)
 *
 * In two rows of 64 all of the probability is on one token: the last of the vocabulary (row 11), the first (row 40).
 *
 * The rows of every eighth block are twins: the same in both contents, with the same parameters (unless these are
 * Python scalars). Each of the contents finds torch's generators elsewhere, so draws of twins differ.
 *
 * In the second contents two of the kept flat tokens tie, and two of the dropped; and weights are no multiples of 2^-8,
 * which bfloat16 would hold.
 *
 * top_k, top_p and min_p follow from what a row is to keep; p lies between two sums, min_p between two ratios (but is 1
 * in rows of even numbers of the second contents that keep one token): where these are 2^-8 apart or more, in two rows
 * of four a sixteenth above the lower, so that the token that crosses p has far more than is left of p, in one a
 * quarter above it, in one a sixteenth below the upper, else in the middle; so no rounding of float32 decides. With
 * both top_k and top_p, by block % 8: k decides (0, 2, 4); p decides, in such a way that a p that is not applied to
 * renormalised probabilities would keep one token more (1, 5, 6); k alone, p is 1 (3); p alone, k is the size of the
 * vocabulary (7). In block 3 one token is kept, but of peaks as many as elsewhere (in rows of even numbers of the
 * second contents by a p of 2^-16, alone), in block 7 a single filter keeps all. When a parameter is a Python scalar,
 * all rows share it, and keep what they keep; the second contents have another.
 *
 * Not made, because implementations differ there: ties at the boundary, k or p of zero or less, k beyond the
 * vocabulary, rows that do not sum to 1. */
#ifndef REFTEST_KERNELS_SAMPLING_INPUTS_H
#define REFTEST_KERNELS_SAMPLING_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variant: the filters, and whether the filtered probabilities themselves are asked for. */
enum { SAMPLING_TOP_K = 1, SAMPLING_TOP_P = 2, SAMPLING_MIN_P = 4, SAMPLING_RENORM = 8 };

enum { SAMPLING_HEAVY = 8, SAMPLING_STAIRS = 64, SAMPLING_WIDTH = 2048, SAMPLING_EVENLY = 16384, SAMPLING_BLOCK = 8 };

/* The first four have 8 heavy tokens, of parts that sampling_weight lists. */
enum sampling_kind {
	SAMPLING_FLAT2,
	SAMPLING_FLAT3,
	SAMPLING_FLAT4,
	SAMPLING_STEEP,
	SAMPLING_STAIR,
	SAMPLING_PEAK,
	SAMPLING_WIDE,
	SAMPLING_EVEN,
	SAMPLING_CERTAIN
};

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
	uint64_t key, first_key; /* of these contents, and of the first */
	int64_t rows, vocab;
	int64_t stride; /* of the columns that have a tail */
	int filters;    /* the variant */
	int shared;     /* a parameter is a Python scalar: all rows have the same */
	int wide;       /* there are wide rows */
	int second;     /* of the contents */
};

/* Is a parameter a Python scalar? Host only. */
static inline int sampling_is_shared(const struct op_problem *problem)
{
	int shared = 0;

	for (int i = 0; i < problem->input_count; i++)
		shared |= problem->inputs[i].rank == OP_SCALAR;
	return shared;
}

/* Host only. */
static inline struct sampling_fill sampling_fill_of(const struct op_case *c)
{
	const struct op_problem *problem = c->problem;
	struct sampling_roles roles = sampling_roles_of(problem);
	const struct op_arg *probs = &problem->inputs[roles.probs];
	struct sampling_fill f;

	struct op_case first = *c;

	op_case_set_contents(&first, op_case_first_seed(c), CONTENTS_FIRST);
	f.key = input_key(c, roles.probs);
	f.first_key = input_key(&first, roles.probs);
	f.rows = c->axis[probs->axis[0]];
	f.vocab = c->axis[probs->axis[1]];
	f.stride = f.vocab / 65536 + 1; /* at most 65536 columns, 2^-8 in all */
	f.filters = c->variant;
	f.shared = sampling_is_shared(problem);
	f.wide = !f.shared && f.vocab >= 2 * SAMPLING_WIDTH && (probs->dtype == DTYPE_FLOAT32 || probs->dtype == DTYPE_FLOAT64);
	f.second = c->contents == CONTENTS_SECOND;
	return f;
}

/* Is the row the same in both contents, its parameters too? */
HOST_DEVICE static inline int sampling_is_twin(const struct sampling_fill *f, int64_t row)
{
	return !f->shared && row / SAMPLING_BLOCK % 8 == 1;
}

/* Is it made as the second contents are? */
HOST_DEVICE static inline int sampling_is_second(const struct sampling_fill *f, int64_t row)
{
	return f->second && !sampling_is_twin(f, row);
}

/* Are most rows peaks? References of no filter, or of min_p alone, need no loop over rows: there may be many. */
HOST_DEVICE static inline int sampling_is_peaked(int filters, int shared)
{
	return !shared && (filters == 0 || filters == SAMPLING_MIN_P);
}

/* The kind by row alone, whatever the vocabulary. */
HOST_DEVICE static inline int sampling_kind_wanted(const struct sampling_fill *f, int64_t row)
{
	const int kinds[SAMPLING_BLOCK] = {SAMPLING_FLAT2, SAMPLING_STEEP, SAMPLING_FLAT3, SAMPLING_FLAT2,
	                                   SAMPLING_STEEP, SAMPLING_STAIR, SAMPLING_FLAT4, SAMPLING_WIDE};
	int odd = row / SAMPLING_BLOCK & 1, at = (int)(row % SAMPLING_BLOCK);

	if (row % 64 == 11 || row % 64 == 40)
		return SAMPLING_CERTAIN;
	if (!sampling_is_peaked(f->filters, f->shared))
		return kinds[at];
	if (at == 0)
		return f->filters == 0 && odd ? SAMPLING_FLAT3 : SAMPLING_FLAT2;
	if (at == 3 && f->filters != 0)
		return odd ? SAMPLING_FLAT4 : SAMPLING_FLAT3;
	if (at == 7 && f->filters == 0)
		return SAMPLING_EVEN;
	return at == 7 && row / SAMPLING_BLOCK % 4 == 1 ? SAMPLING_WIDE : SAMPLING_PEAK;
}

HOST_DEVICE static inline int sampling_kind_of(const struct sampling_fill *f, int64_t row)
{
	int kind = sampling_kind_wanted(f, row);

	if (kind == SAMPLING_WIDE && !f->wide)
		return SAMPLING_FLAT2;
	if (kind == SAMPLING_EVEN && !(f->wide && f->vocab >= SAMPLING_EVENLY))
		return SAMPLING_FLAT2;
	if (f->vocab < 2 * SAMPLING_STAIRS && (kind == SAMPLING_STAIR || kind == SAMPLING_PEAK))
		return kind == SAMPLING_STAIR ? SAMPLING_FLAT2 : SAMPLING_STEEP;
	return kind;
}

HOST_DEVICE static inline int sampling_tokens(int kind)
{
	switch (kind) {
	case SAMPLING_CERTAIN:
		return 1;
	case SAMPLING_EVEN:
		return SAMPLING_EVENLY;
	case SAMPLING_WIDE:
		return SAMPLING_WIDTH;
	case SAMPLING_STAIR:
	case SAMPLING_PEAK:
		return SAMPLING_STAIRS;
	default:
		return SAMPLING_HEAVY;
	}
}

/* Has the row a tail, and a column a place in it? */
HOST_DEVICE static inline int sampling_tail(const struct sampling_fill *f, int64_t row, int64_t column)
{
	int kind = sampling_kind_of(f, row);

	return (row / SAMPLING_BLOCK & 1) && column % f->stride == 0 && kind < SAMPLING_WIDE;
}

/* What the second contents add to a flat or steep row's parts, in units of 2^-24; the sum is 0. In every eighth block flat
 * rows have ties: the first two, which are kept, and, in all, two that no filter keeps (top-k leaves five there at
 * most). */
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
 * last of 8, from all stairs evenly, from the peak. */
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
	if (kind == SAMPLING_EVEN)
		return 16777216 / SAMPLING_EVENLY;
	if (kind == SAMPLING_PEAK) /* 95 + 94 + … + 33 is 4032 */
		return rank == 0 ? 16777216 - tail - 4032 * 1700 : (96 - rank) * 1700;
	if (kind == SAMPLING_WIDE) /* 4 times 4193280 is 2^24 - 4096 */
		return (3071 - rank) * 4 + (rank == 0 ? 4096 : 0);
	if (kind != SAMPLING_STAIR)
		return parts[kind][rank] * 65536 - (rank == SAMPLING_HEAVY - 1 ? tail : 0) +
		       (sampling_is_second(f, row) ? sampling_change(parts[kind], row, rank) : 0);
	/* The sum is 2^24; what is left over, less than a step, goes to the first. */
	int32_t step = (16777216 - tail) / 4128;

	return (96 - rank) * step + (rank == 0 ? (16777216 - tail) % 4128 : 0);
}

/* Column of the row's token of `rank`. Column 0 is kept for every fourth row, so that it is never the only one. */
HOST_DEVICE static inline int64_t sampling_place(const struct sampling_fill *f, int64_t row, int rank)
{
	int64_t tokens = sampling_tokens(sampling_kind_of(f, row)), first = row * 2 * SAMPLING_WIDTH;
	uint64_t key = sampling_is_twin(f, row) ? f->first_key : f->key;
	uint32_t shuffle = philox_bits(key, first + SAMPLING_WIDTH);
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
	return begin + (int64_t)(philox_bits(key, first + rank) % (uint64_t)(end - begin));
}

/* How many tokens a row is to keep; 0: all. Without meaning when the rows share their parameters. Host only. */
static inline int sampling_kept(const struct sampling_fill *f, int64_t row)
{
	const int kept[] = {2, 3, 4, 2};
	const int wide[] = {1025, 256, 1030, 65, 1088, 511, 1000, 1020, 255, 512, 1056, 100, 513, 129, 1019, 127};
	int kind = sampling_kind_of(f, row), block = (int)(row / SAMPLING_BLOCK % 8);
	int single = (f->filters & ~SAMPLING_RENORM) != (SAMPLING_TOP_K | SAMPLING_TOP_P);

	if (kind == SAMPLING_CERTAIN || (block == 3 && kind != SAMPLING_PEAK))
		return 1;
	if ((block == 7 && single) || kind == SAMPLING_EVEN)
		return 0;
	if (kind == SAMPLING_PEAK)
		return SAMPLING_STAIRS - 4 + (int)(row % 4);
	if (kind == SAMPLING_STEEP && (f->filters & ~SAMPLING_RENORM) == SAMPLING_TOP_P)
		return block == 5 ? 7 : 6;
	if (kind == SAMPLING_WIDE)
		return wide[row / SAMPLING_BLOCK % 8 + (sampling_is_second(f, row) ? 8 : 0)];
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
	const double parts[4] = {0.0625, 0.25, 0.0625, 0.9375};
	int64_t turn = row / 2 + row / SAMPLING_BLOCK + 2 * (row & 1) + sampling_is_second(f, row);

	return lower + (upper - lower >= 0x1p-8 ? parts[turn % 4] : 0.5) * (upper - lower);
}

/* The p after which `kept` tokens of a row remain, of the `from` that top-k leaves (0: no top-k) and over which p is
 * renormalised; with a top-k, only one that would keep one token more if it were not. Host only. */
static inline double sampling_p(const struct sampling_fill *f, int64_t row, int kept, int from)
{
	double mass = from > 0 ? sampling_sum(f, row, from) : 1;
	double below = sampling_sum(f, row, kept - 1) / mass, above = sampling_sum(f, row, kept);

	if (kept == 1 && from <= 1 && sampling_is_second(f, row) && row % 2 == 0)
		return 0x1p-16;
	if (kept == 6 && sampling_kind_of(f, row) == SAMPLING_STEEP)
		return below + 0.9375 * (above - below);
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
	if (both && block == 3 && sampling_is_second(f, row) && row % 2 == 0) {
		parameters.top_k = f->vocab;
		parameters.top_p = 0x1p-16;
	}
	parameters.min_p = sampling_between(f, row, (double)sampling_weight(f, row, kept) / sampling_weight(f, row, 0),
	                                    (double)sampling_weight(f, row, kept - 1) / sampling_weight(f, row, 0));
	if (kept == 1 && sampling_is_second(f, row) && row % 2 == 0)
		parameters.min_p = 1;
	return parameters;
}

#endif
