/* sampling inputs - computes rows of probabilities. The CPU and the GPU compute the same values. A few draws from these
 * rows are enough to show a mistake.
 *
 * A row has 8 heavy tokens at random positions, one in each eighth of the vocabulary, in shuffled order. In every
 * second block of 8 rows, each of the other tokens has the probability 2^-24; these tokens are the tail. In the
 * remaining blocks, the other tokens have the probability 0. The filter keeps 2 to 4 of the heavy tokens. The last
 * token that the filter keeps (the boundary token) and the first token that it drops are nearly as likely as the most
 * likely token. If a reference keeps one token too many, about every fourth draw is the token that should be dropped.
 * If a reference drops the boundary token, it never draws this token, which should be about every third draw. The kind
 * of a row depends on row % 8. In the table, weights are multiples of 1/256, and a bar separates the kept tokens from
 * the dropped ones:
 *
 *   0        flat, 2 kept: 76 68 | 52 24 16 10 6 4.
 *   2        flat, 3 kept: 56 52 48 | 40 26 18 10 6.
 *   6        flat, 4 kept: 46 43 40 38 | 36 28 16 9.
 *   1        steep, 2 kept, in every second block of 8 rows, and a spike in the other blocks. Steep: 192 13 | 12 10 9 8
 *            7 5. If top-p is the only filter, p is above 0.95 in a steep row, and top-p keeps 6 or 7 tokens.
 *   3, 4     spike: one token has the probability 0.59, and 1023 tokens share the rest, from 27511/2^26 down to
 *            26489/2^26; 610 to 1023 tokens are kept. Some rows keep 902 to 907 tokens, whose total probability is just
 *            above 0.95, because a reference may ignore a top_p above 0.95. There is no tail. A sampler that changes
 *            the proportions of the kept probabilities draws the first token too often or too rarely. If it raises them
 *            to the power 0.8, for example, the first token gets about 0.25. With the power 0, the sampler draws
 *            uniformly. A spike has the same requirements as a wide row (see row 7). Otherwise, row 3 is "flat, 2
 *            kept", and rows 1 and 4 are steep.
 *   5        stairs: 64 tokens with probabilities from 96/4128 down to 33/4128, of which 5 to 54 are kept.
 *   7        wide: 4096 tokens with probabilities from 18431/2^26 down to 14336/2^26 (the first has 2048/2^26 more), of
 *            which 1025 to 4095 are kept, because a reference may look only at the 1024 most likely tokens. There is no
 *            tail. The probability of each token is more than twice the error that a float32 sum may have (filter.c).
 *            If the vocabulary is smaller than 8192, a wide row has only 2048 tokens, and 65 to 1088 of them are kept.
 *            Their probabilities fall from 3071/4193280 to 1024/4193280. A wide row needs a vocabulary of at least
 *            4096, a dtype that represents the steps (float32), and parameters that differ from row to row. Otherwise,
 *            the row is "flat, 2 kept". In every second block of 8 rows, row 7 is broad if tokens are drawn and the
 *            vocabulary has at least 16384 tokens.
 *
 * A broad row has 16384 tokens. Their probabilities fall from 24576/2^28 to 8192/2^28 and are all different. 9192 to
 * 16376 tokens are kept, because a reference may look only at the 4096 most likely tokens. In half of the broad rows,
 * 14921 tokens are kept, whose total probability is just above 0.95. With top-p, float32 rounding determines whether
 * some of the least likely tokens are kept.
 *
 * If there is no filter, or only min_p, most rows are peaks. In a peak, one token has the probability 0.59, and 63
 * tokens share the rest, in proportions from 95/4032 down to 33/4032; 60 to 63 tokens are kept. A common sampler
 * divides each probability by noise, and draws the token with the largest quotient. The noise must be exponential. With
 * uniform noise, this sampler draws the most likely token of a peak in 71 % instead of 59 % of the draws. Apart from
 * spikes, the other kinds of rows show this mistake less clearly. If most rows are peaks, the kinds of rows are:
 *
 *   0        flat, 2 kept. If there is no filter, the row is "flat, 3 kept" in every second block of 8 rows. With
 *            min_p, the rows of every eight blocks differ: in block 0, 4 tokens are kept, so that some min_p are from
 *            0.2 to 0.3. In blocks 1 and 4, the row is "tied": 64 32 32 32 32 | 31 31 2. The min_p of such a row is
 *            1/2, so four tokens are exactly at the limit and must be kept. In blocks 2, 6 and 7, the row is long.
 *   3        flat, 3 or 4 kept. If there is no filter, the row is long in every second block of 8 rows, wide in every
 *            fourth block, and a peak in the other blocks.
 *   7        broad in every second block, or wide if the vocabulary has fewer than 16384 tokens; a peak in the other
 *            blocks. If there is no filter, the row is even in these other blocks: it has 16384 equally likely tokens
 *            and no tail. A sampler whose random number has few bits draws only some of these tokens. An even row needs
 *            float32 and a vocabulary of at least 16384 tokens; otherwise, the row is flat.
 *   1, 4     a spike. If a spike is not possible, the row is a peak.
 *   Others   a peak, or steep if the vocabulary is smaller than 128.
 *
 * In a long row, 16384 tokens are kept. 64 of these tokens have more than half of the probability. Each of the other
 * tokens has a probability of 440/2^24; together, these tokens have 0.43. Because 440/2^24 is below 3e-5, a reference
 * may mistake it for 0. If min-p is a filter, min_p is below 1e-4 in a long row, and min-p keeps the tokens whose
 * probability is at least half of 440/2^24. A long row needs the same vocabulary and dtype as an even row; otherwise,
 * the row is flat.
 *
 * In rows 11 and 40 of every 64 rows, one token has all of the probability: the last token of the vocabulary in row 11,
 * and the first token in row 40. If a case may have wide rows, this is true only for the first 64 rows. In rows 11 and
 * 40 of the later groups of 64 rows, the last or first token has nearly all of the probability, and one other token has
 * 2^-20. In row 11 of such a group, a reference that never draws the last token of the vocabulary draws the other
 * token.
 *
 * Row 63 of every 64 rows repeats row 47, with its values and parameters. If a sampler uses the same noise for all rows,
 * it draws the same token from both rows. Correct samplers rarely do so, because these rows keep many tokens.
 *
 * The rows of every eighth block of 8 rows are twins: they are the same in both sets of values. Their parameters are
 * also the same, except for Python scalars. The state of torch's random generators differs between the two sets, so the
 * tokens that are drawn from the two equal rows differ.
 *
 * In the second set of values, two kept tokens of a flat row tie, and two of its dropped tokens tie. The probabilities
 * of the second set are not multiples of 2^-8, and neither bfloat16 nor float16 represents them exactly.
 *
 * The tokens that a row must keep determine its top_k, top_p and min_p. All values of p between two successive sums of
 * probabilities keep the same tokens. So do all values of min_p between two successive ratios of probabilities. The p
 * or min_p of a row is inside such a range, so float32 rounding does not change which tokens are kept. If the range is
 * narrower than 2^-8, the parameter is in its middle. In a wider range, the parameter is above the lower end by 1/16 of
 * the range in three of four rows, and by 15/16 in one row. In the second set, the parameter of this one row is only
 * 2^-13 below the upper end. That is more than the error of float32 sums, but less than that of most bfloat16 sums and
 * of many float16 sums, so a reference with such sums keeps one token too many. If p is above the lower end by 1/16 of the
 * range, p exceeds the total probability of all tokens before the last kept token, but only by a small part of the
 * probability of the last kept token. In the second set, min_p is 1 in those rows with an even index that keep one
 * token.
 *
 * With both top_k and top_p, block % 8 determines which of the two filters drops the last tokens. In blocks 0, 2 and 4,
 * top-p drops no token that top-k keeps. In blocks 1, 5 and 6, top-p drops some of these tokens. In these blocks, if a
 * reference does not renormalise the probabilities after top-k, it keeps at least one token too many. In block 3, p is
 * 1, and only top-k drops tokens, except in rows with an even index. In the first set, k is 3 in these rows, and p is
 * often below 1/2: top-p keeps one token, and would keep two without top-k. In the second set, k is the size of the
 * vocabulary, and p is 2^-16. In block 7, k is the size of the vocabulary, and only top-p drops tokens. For
 * every combination of filters, rows of block 3 keep one token, except peaks and spikes, which keep as many tokens as in other
 * blocks. With a single filter, rows of block 7 keep all tokens. If a parameter is a Python scalar, all rows share this
 * parameter, and its value determines which tokens a row keeps. The parameter has different values in the two sets.
 *
 * Implementations differ if tokens tie at the boundary, if k or p is zero or less, if k exceeds the size of the
 * vocabulary, or if a row does not sum to 1. The size presets therefore have no such rows. */
#ifndef REFTEST_KERNELS_SAMPLING_INPUT_VALUES_H
#define REFTEST_KERNELS_SAMPLING_INPUT_VALUES_H

#include <stdint.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The bits of the variant that op.match returns: the filters, and whether the output is the filtered probabilities. */
enum { SAMPLING_TOP_K = 1, SAMPLING_TOP_P = 2, SAMPLING_MIN_P = 4, SAMPLING_RENORM = 8 };

enum { SAMPLING_HEAVY = 8, SAMPLING_STAIRS = 64, SAMPLING_SPIKED = 1024, SAMPLING_EVENLY = 16384, SAMPLING_BLOCK = 8 };

/* The number of rows of the second small case. */
enum { SAMPLING_SMALL_ROWS = 65 };

/* A wide row has one of these two numbers of tokens. The vocabulary must be at least twice as large as the row's number
 * of tokens. */
enum { SAMPLING_WIDTH = 2048, SAMPLING_WIDER = 4096 };

#define SAMPLING_UNIT 0x1p-28 /* the unit of sampling_weight */

/* The kinds of rows. The first four kinds have 8 heavy tokens with the weights that sampling_weight lists. */
enum sampling_kind {
	SAMPLING_FLAT2,
	SAMPLING_FLAT3,
	SAMPLING_FLAT4,
	SAMPLING_STEEP,
	SAMPLING_STAIR,
	SAMPLING_PEAK,
	SAMPLING_WIDE,
	SAMPLING_SPIKE,
	SAMPLING_EVEN,
	SAMPLING_CERTAIN,
	SAMPLING_ALMOST_CERTAIN,
	SAMPLING_TIED,
	SAMPLING_LONG,
	SAMPLING_BROAD
};

/* The number of heavy tokens in a long row, and the weight of its other tokens, in units of 2^-24. */
enum { SAMPLING_LONG_HEAVY = 64, SAMPLING_LONG_WEIGHT = 440 };

/* The index of each input, and of the only output, by its role. -1: the problem has no such tensor. */
struct sampling_roles {
	int probs, top_k, top_p, min_p;
	int output;
};

/* Returns the filter whose parameter the input is, or 0 if the input is not a parameter. The name of the input
 * determines the filter, because the parameters of all filters have the same shape. Host only. */
static inline int sampling_filter_of(const struct op_arg *input)
{
	static const struct {
		const char *part;
		int filter;
		int is_float;
	} parts[] = {{"min_p", SAMPLING_MIN_P, 1}, {"top_p", SAMPLING_TOP_P, 1}, {"top_k", SAMPLING_TOP_K, 0}};

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (strstr(input->name, parts[i].part) != NULL && dtype_is_float(input->dtype) == (parts[i].is_float != 0))
			return parts[i].filter;
	return 0;
}

/* Finds the roles. The first matrix contains the probabilities. op.match must have accepted the problem. Host only. */
static inline struct sampling_roles sampling_roles_of(const struct op_problem *problem)
{
	struct sampling_roles roles = {-1, -1, -1, -1, 0};

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];

		if (input->rank == 2 && roles.probs < 0)
			roles.probs = i;
		else if (sampling_filter_of(input) == SAMPLING_TOP_K)
			roles.top_k = i;
		else if (sampling_filter_of(input) == SAMPLING_TOP_P)
			roles.top_p = i;
		else if (sampling_filter_of(input) == SAMPLING_MIN_P)
			roles.min_p = i;
	}
	return roles;
}

/* The parameters from which the values of a row are computed. Kernels take this struct by value. */
struct sampling_fill {
	uint64_t key, first_key; /* the Philox keys of this set of values and of the first set */
	int64_t rows, vocab;
	int64_t stride; /* every column whose index is a multiple of `stride` may be in the tail */
	int filters;    /* the variant that op.match returned */
	int shared;     /* true if a parameter is a Python scalar, which all rows share */
	int wide;       /* the number of tokens of a wide row; 0: there are no wide rows */
	int second;     /* true in the second set of values */
};

/* Returns 1 if a parameter is a Python scalar. Host only. */
static inline int sampling_is_shared(const struct op_problem *problem)
{
	int shared = 0;

	for (int i = 0; i < problem->input_count; i++)
		shared |= problem->inputs[i].rank == OP_SCALAR;
	return shared;
}

/* Returns the parameters of all rows of a case. Host only. */
static inline struct sampling_fill sampling_fill_of(const struct op_case *c)
{
	const struct op_problem *problem = c->problem;
	struct sampling_roles roles = sampling_roles_of(problem);
	const struct op_arg *probs = &problem->inputs[roles.probs];
	struct sampling_fill f;

	struct op_case first = op_case_first(c);

	f.key = input_key(c, roles.probs);
	f.first_key = input_key(&first, roles.probs);
	f.rows = c->axis[probs->axis[0]];
	f.vocab = c->axis[probs->axis[1]];
	f.stride = f.vocab / 65536 + 1; /* thus the tail has at most 65536 columns, and their total probability is at
					 * most 2^-8 */
	f.filters = c->variant;
	f.shared = sampling_is_shared(problem);
	if (!f.shared && (probs->dtype == DTYPE_FLOAT32 || probs->dtype == DTYPE_FLOAT64))
		f.wide = f.vocab >= 2 * SAMPLING_WIDER ? SAMPLING_WIDER : f.vocab >= 2 * SAMPLING_WIDTH ? SAMPLING_WIDTH : 0;
	else
		f.wide = 0;
	f.second = c->contents == CONTENTS_SECOND;
	return f;
}

/* Returns the row whose values and parameters the row repeats. This is the row itself, unless it is row 63 of 64. The
 * functions below give the values and parameters of rows that repeat no other row. */
HOST_DEVICE static inline int64_t sampling_repeated(const struct sampling_fill *f, int64_t row)
{
	return !f->shared && row % 64 == 63 ? row - 2 * SAMPLING_BLOCK : row;
}

/* Returns 1 if the row is a twin, which has the same values and parameters in both sets of values. */
HOST_DEVICE static inline int sampling_is_twin(const struct sampling_fill *f, int64_t row)
{
	return !f->shared && row / SAMPLING_BLOCK % 8 == 1;
}

/* Returns 1 if the row is computed as in the second set of values. */
HOST_DEVICE static inline int sampling_is_second(const struct sampling_fill *f, int64_t row)
{
	return f->second && !sampling_is_twin(f, row);
}

/* Returns 1 if most rows are peaks. With peaks, many rows are needed to show a mistake. Peaks are therefore used only
 * without a filter or with min_p alone: references then need no loop over rows, and many rows take little time. */
HOST_DEVICE static inline int sampling_is_peaked(int filters, int shared)
{
	return !shared && (filters == 0 || filters == SAMPLING_MIN_P);
}

/* Returns the kind that a row has if the vocabulary is large enough. */
HOST_DEVICE static inline int sampling_kind_wanted(const struct sampling_fill *f, int64_t row)
{
	const int kinds[SAMPLING_BLOCK] = {SAMPLING_FLAT2, SAMPLING_STEEP, SAMPLING_FLAT3, SAMPLING_SPIKE,
	                                   SAMPLING_SPIKE, SAMPLING_STAIR, SAMPLING_FLAT4, SAMPLING_WIDE};
	int odd = row / SAMPLING_BLOCK & 1, at = (int)(row % SAMPLING_BLOCK), block = (int)(row / SAMPLING_BLOCK % 8);

	if (row % 64 == 11 || row % 64 == 40)
		return row < 64 ? SAMPLING_CERTAIN : SAMPLING_ALMOST_CERTAIN;
	if (!f->shared && at == 7 && odd && !(f->filters & SAMPLING_RENORM))
		return SAMPLING_BROAD;
	if (!sampling_is_peaked(f->filters, f->shared))
		return at == 1 && !odd ? SAMPLING_SPIKE : kinds[at];
	if (at == 0 && f->filters != 0 && (block == 1 || block == 4))
		return SAMPLING_TIED;
	if (at == 0 && f->filters != 0 && (block == 2 || block >= 6))
		return SAMPLING_LONG;
	if (at == 0)
		return f->filters == 0 && odd ? SAMPLING_FLAT3 : SAMPLING_FLAT2;
	if (at == 3 && f->filters != 0)
		return odd ? SAMPLING_FLAT4 : SAMPLING_FLAT3;
	if (at == 3 && odd)
		return SAMPLING_LONG;
	if (at == 3 && block % 4 == 2)
		return SAMPLING_WIDE;
	if (at == 7 && f->filters == 0)
		return SAMPLING_EVEN;
	return at == 1 || at == 4 ? SAMPLING_SPIKE : SAMPLING_PEAK;
}

HOST_DEVICE static inline int sampling_kind_of(const struct sampling_fill *f, int64_t row)
{
	int kind = sampling_kind_wanted(f, row);

	if (kind == SAMPLING_BROAD && !(f->wide && f->vocab >= SAMPLING_EVENLY))
		kind = SAMPLING_WIDE;
	if (kind == SAMPLING_WIDE && !f->wide)
		return SAMPLING_FLAT2;
	if (kind == SAMPLING_SPIKE && !f->wide)
		kind = sampling_is_peaked(f->filters, f->shared) ? SAMPLING_PEAK : row % 8 == 3 ? SAMPLING_FLAT2 : SAMPLING_STEEP;
	if ((kind == SAMPLING_EVEN || kind == SAMPLING_LONG) && !(f->wide && f->vocab >= SAMPLING_EVENLY))
		return SAMPLING_FLAT2;
	if (kind == SAMPLING_ALMOST_CERTAIN && !f->wide)
		return SAMPLING_CERTAIN;
	if (f->vocab < 2 * SAMPLING_STAIRS && (kind == SAMPLING_STAIR || kind == SAMPLING_PEAK))
		return kind == SAMPLING_STAIR ? SAMPLING_FLAT2 : SAMPLING_STEEP;
	return kind;
}

/* Returns the number of tokens of a row, not counting the tail. */
HOST_DEVICE static inline int sampling_tokens(const struct sampling_fill *f, int64_t row)
{
	switch (sampling_kind_of(f, row)) {
	case SAMPLING_CERTAIN:
		return 1;
	case SAMPLING_ALMOST_CERTAIN:
		return 2;
	case SAMPLING_EVEN:
	case SAMPLING_LONG:
	case SAMPLING_BROAD:
		return SAMPLING_EVENLY;
	case SAMPLING_WIDE:
		return f->wide;
	case SAMPLING_SPIKE:
		return SAMPLING_SPIKED;
	case SAMPLING_STAIR:
	case SAMPLING_PEAK:
		return SAMPLING_STAIRS;
	default:
		return SAMPLING_HEAVY;
	}
}

/* Returns 1 if the row has a tail that includes the column. */
HOST_DEVICE static inline int sampling_tail(const struct sampling_fill *f, int64_t row, int64_t column)
{
	int kind = sampling_kind_of(f, row);

	return (row / SAMPLING_BLOCK & 1) && column % f->stride == 0 && kind < SAMPLING_WIDE;
}

/* Returns 1 if the most likely tokens of the row may tie in the second set of values. */
HOST_DEVICE static inline int sampling_may_tie(int64_t row)
{
	return row / SAMPLING_BLOCK % 8 == 5;
}

/* Returns how much a weight of a flat or steep row changes in the second set of values, in units of 2^-24. The sum of
 * the changes of a row is 0. In every eighth block of 8 rows, the first two tokens of a flat row tie, and are kept. The
 * tokens at ranks 5 and 6 also tie, and are dropped (top-k keeps at most five tokens of these rows). */
HOST_DEVICE static inline int32_t sampling_change(const int32_t *parts, int64_t row, int rank)
{
	int tied = sampling_may_tie(row);

	if (tied && parts[0] < 2 * parts[1] && rank < 2)
		return (parts[1 - rank] - parts[rank]) * 32768 + 6967;
	if (tied && rank >= 5 && rank < 7)
		return (parts[11 - rank] - parts[rank]) * 32768;
	if (tied && parts[0] < 2 * parts[1] && rank == 7)
		return -2 * 6967;
	return tied ? 0 : rank == 0 ? 6967 : rank == 2 ? -2945 : rank == 3 ? -4022 : 0;
}

/* Returns the probability of the token at rank `rank` of a long row, in units of 2^-24. The sum 95 + 94 + … + 33 is
 * 4032. */
HOST_DEVICE static inline int32_t sampling_long_weight(int rank)
{
	if (rank >= SAMPLING_LONG_HEAVY)
		return SAMPLING_LONG_WEIGHT;
	return rank > 0 ? (96 - rank) * 1000
	                : 16777216 - 4032 * 1000 - (SAMPLING_EVENLY - SAMPLING_LONG_HEAVY) * SAMPLING_LONG_WEIGHT;
}

/* Returns the probability of the row's token at rank `rank`, in units of 2^-24. The row must not be a spike, a broad
 * row, or a wide row of SAMPLING_WIDER tokens. If the row has a tail, the probability of the tail is taken from other
 * tokens: from the last of 8 heavy tokens, from all tokens of stairs in proportion to their probabilities, or from the
 * most likely token of a peak. */
HOST_DEVICE static inline int32_t sampling_coarse_weight(const struct sampling_fill *f, int64_t row, int rank)
{
	const int32_t parts[4][SAMPLING_HEAVY] = {{76, 68, 52, 24, 16, 10, 6, 4},
	                                          {56, 52, 48, 40, 26, 18, 10, 6},
	                                          {46, 43, 40, 38, 36, 28, 16, 9},
	                                          {192, 13, 12, 10, 9, 8, 7, 5}};
	const int32_t tied[SAMPLING_HEAVY] = {64, 32, 32, 32, 32, 31, 31, 2};
	int kind = sampling_kind_of(f, row);
	int32_t tail = sampling_tail(f, row, 0) ? (int32_t)((f->vocab - 1) / f->stride + 1) : 0;

	if (kind == SAMPLING_CERTAIN)
		return rank == 0 ? 16777216 : 0;
	if (kind == SAMPLING_ALMOST_CERTAIN)
		return rank == 0 ? 16777216 - 16 : 16;
	if (kind == SAMPLING_TIED)
		return tied[rank] * 65536;
	if (kind == SAMPLING_EVEN)
		return 16777216 / SAMPLING_EVENLY;
	if (kind == SAMPLING_LONG)
		return sampling_long_weight(rank);
	if (kind == SAMPLING_PEAK) /* the sum 95 + 94 + … + 33 is 4032 */
		return rank == 0 ? 16777216 - tail - 4032 * 1700 : (96 - rank) * 1700;
	if (kind == SAMPLING_WIDE) /* 4 times 4193280 is 2^24 - 4096 */
		return (3071 - rank) * 4 + (rank == 0 ? 4096 : 0);
	if (kind != SAMPLING_STAIR)
		return parts[kind][rank] * 65536 - (rank == SAMPLING_HEAVY - 1 ? tail : 0) +
		       (sampling_is_second(f, row) ? sampling_change(parts[kind], row, rank) : 0);
	/* the weights of a row and its tail add up to 2^24; the first token also gets the remainder of the division */
	int32_t step = (16777216 - tail) / 4128;

	return (96 - rank) * step + (rank == 0 ? (16777216 - tail) % 4128 : 0);
}

/* Returns the probability of the row's token at rank `rank`, in units of 2^-28. Rank 0 is the most likely token. */
HOST_DEVICE static inline int32_t sampling_weight(const struct sampling_fill *f, int64_t row, int rank)
{
	int kind = sampling_kind_of(f, row);

	if (kind == SAMPLING_SPIKE) /* the sum 27511 + 27510 + … + 26489 is 1023 * 27000 */
		return 4 * (rank == 0 ? 67108864 - 1023 * 27000 : 27512 - rank);
	if (kind == SAMPLING_BROAD) /* the integers from 8192 to 24576, without 16384, add up to 2^28 */
		return 24576 - rank - (rank >= SAMPLING_EVENLY / 2);
	if (f->wide == SAMPLING_WIDER && kind == SAMPLING_WIDE)
		return 4 * (18431 - rank + (rank == 0 ? 2048 : 0)); /* the sum 18431 + 18430 + … + 14336 is 2^26 - 2048 */
	return 16 * sampling_coarse_weight(f, row, rank);
}

/* Returns the column of the row's token at rank `rank`. A row of more than two tokens uses column 0 only if row % 4 is
 * 1. */
HOST_DEVICE static inline int64_t sampling_place(const struct sampling_fill *f, int64_t row, int rank)
{
	int64_t tokens = sampling_tokens(f, row), first = row * 2 * SAMPLING_WIDTH;
	uint64_t key = sampling_is_twin(f, row) ? f->first_key : f->key;
	uint32_t shuffle = philox_bits(key, first + SAMPLING_WIDTH);
	int64_t part = (rank * (int64_t)(shuffle >> 8 | 1) + (shuffle & 0xff)) & (tokens - 1); /* a permutation of the
												* parts of the
												* vocabulary */
	int64_t begin = part * f->vocab / tokens, end = (part + 1) * f->vocab / tokens;

	if (tokens <= 2 && rank == 0)
		return row % 2 ? f->vocab - 1 : 0;
	if (tokens == 2)
		return 1 + (int64_t)(philox_bits(key, first + rank) % (uint64_t)(f->vocab - 2));
	if (part == 0 && row % 4 == 1)
		return 0;
	if (part == tokens - 1 && row % 4 == 2)
		return f->vocab - 1;
	if (begin == 0 && end > 1)
		begin = 1;
	return begin + (int64_t)(philox_bits(key, first + rank) % (uint64_t)(end - begin));
}

/* Returns the number of tokens that a row must keep, or 0 if the row must keep all tokens. Not called if all rows share
 * their parameters. Host only. */
static inline int sampling_kept(const struct sampling_fill *f, int64_t row)
{
	const int kept[] = {2, 3, 4, 2};
	const int wide[] = {1025, 256, 1030, 65, 1088, 511, 1000, 1020, 255, 512, 1056, 100, 513, 129, 1019, 127};
	const int wider[] = {3000, 4001, 2049, 65, 3500, 4090, 1025, 3900, 512, 2500, 4095, 100, 1030, 3700, 3200, 3950};
	const int broad[] = {12000, 16376, 14921, 14921, 12000, 9192, 14921, 14921};
	const int spike[] = {905, 640, 1022, 902, 880, 700, 610, 907, 1017, 690, 904, 1012, 1023, 620, 720, 903};
	int kind = sampling_kind_of(f, row), block = (int)(row / SAMPLING_BLOCK % 8);
	int single = (f->filters & ~SAMPLING_RENORM) != (SAMPLING_TOP_K | SAMPLING_TOP_P);

	if (kind == SAMPLING_TIED)
		return 5;
	if (kind == SAMPLING_FLAT2 && f->filters == SAMPLING_MIN_P && block == 0)
		return 4;
	if (kind == SAMPLING_BROAD)
		return broad[block / 2 + (sampling_is_second(f, row) ? 4 : 0)];
	if (kind == SAMPLING_ALMOST_CERTAIN || kind == SAMPLING_LONG)
		return 0;
	if (kind == SAMPLING_CERTAIN || (block == 3 && kind != SAMPLING_PEAK && kind != SAMPLING_SPIKE))
		return 1;
	if ((block == 7 && single) || kind == SAMPLING_EVEN)
		return 0;
	if (kind == SAMPLING_PEAK)
		return SAMPLING_STAIRS - 4 + (int)(row % 4);
	if (kind == SAMPLING_STEEP && (f->filters & ~SAMPLING_RENORM) == SAMPLING_TOP_P)
		return block == 5 ? 7 : 6;
	if (kind == SAMPLING_SPIKE)
		return spike[block + (sampling_is_second(f, row) ? 8 : 0)];
	if (kind == SAMPLING_WIDE)
		return (f->wide == SAMPLING_WIDER ? wider : wide)[block + (sampling_is_second(f, row) ? 8 : 0)];
	return kind == SAMPLING_STAIR ? 5 + (int)(row * 7 % 50) : kept[kind];
}

/* If there are both a top-k and a top-p: returns the number of tokens that top-k keeps. top-p keeps `kept` of these
 * tokens. Host only. */
static inline int sampling_from(const struct sampling_fill *f, int64_t row, int kept)
{
	const int more[8] = {0, 2, 0, 0, 0, 1, 2, 0}; /* for each block: how many of these tokens top-p drops; in rows of
						       * 1024 tokens or more, 150 times as many */
	int tokens = sampling_tokens(f, row), dropped = more[row / SAMPLING_BLOCK % 8];
	int from = kept + (tokens >= SAMPLING_SPIKED ? 150 : 1) * dropped;

	return from < tokens || dropped == 0 ? from : tokens - 1;
}

/* Returns the sum of the `count` largest probabilities of a row. Host only. */
static inline double sampling_sum(const struct sampling_fill *f, int64_t row, int count)
{
	int64_t sum = 0;

	for (int rank = 0; rank < count; rank++)
		sum += sampling_weight(f, row, rank);
	return (double)sum * SAMPLING_UNIT;
}

/* The parameters of a row's filters. If the problem lacks one of these filters, the parameter of this filter is not
 * used. */
struct sampling_parameters {
	int64_t top_k;
	double top_p, min_p;
};

/* Returns parameters that all rows share. In the first set of values, a k without a p keeps two tokens of every kind of
 * row. In every kind of row, p is between two successive sums of probabilities, and min_p is between two successive
 * ratios. In flat rows, the last token that top-p keeps is one of the likely tokens. If a problem has both k and p, k
 * is 4 and p is 0.88 in the first set. In the second set, k keeps three tokens, or five if there is also a p. A p
 * without a k, or a min_p, keeps more tokens in the second set than in the first. Each p differs by at least 0.002 from
 * every sum of the most likely tokens' probabilities, and each min_p by at least 0.002 from every ratio of a
 * probability to the largest one. A p of 1 and a min_p of 0 keep all tokens, and a reference may mistake these values
 * for absent parameters. To detect this, the second set has a p of 1 if there are many rows (many draws show which
 * tokens are kept), and a min_p of 0 if there is one row. */
static inline struct sampling_parameters sampling_shared(int filters, int second, int64_t rows)
{
	int both = (filters & SAMPLING_TOP_K) && (filters & SAMPLING_TOP_P);
	struct sampling_parameters first = {both ? 4 : 2, both ? 0.88 : 0.43, 0.504};
	struct sampling_parameters other = {both ? 5 : 3, both ? 0.6 : 0.705, 0.06};

	if (rows > SAMPLING_SMALL_ROWS)
		other.top_p = 1;
	if (rows == 1)
		other.min_p = 0;
	return second ? other : first;
}

/* Returns a parameter between `lower` and `upper`. The comment at the top of this file says how far the parameter is
 * from `lower`. */
static inline double sampling_between(const struct sampling_fill *f, int64_t row, double lower, double upper)
{
	const double parts[4] = {0.0625, 0.0625, 0.0625, 0.9375};
	int64_t turn = row / 2 + row / SAMPLING_BLOCK + 2 * (row & 1) + sampling_is_second(f, row);
	double part = upper - lower >= 0x1p-8 ? parts[turn % 4] : 0.5;

	return sampling_is_second(f, row) && part > 0.5 ? upper - 0x1p-13 : lower + part * (upper - lower);
}

/* Returns a p with which top-p keeps `kept` tokens of a row. If there is a top-k, `from` is the number of tokens that
 * top-k keeps, and p is for the renormalised probabilities of these tokens. Without renormalisation, top-p would keep
 * one token more. If there is no top-k, `from` is 0. Host only. */
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

/* Returns a min_p with which a row keeps all of its tokens: 0, or half of the quotient of the smallest and the largest
 * probability. Host only. */
static inline double sampling_low_min_p(const struct sampling_fill *f, int64_t row)
{
	int kind = sampling_kind_of(f, row), last = sampling_tokens(f, row) - 1;

	if (kind != SAMPLING_ALMOST_CERTAIN && kind != SAMPLING_LONG)
		return 0;
	return 0.5 * sampling_weight(f, row, last) / sampling_weight(f, row, 0);
}

/* Returns the parameters of a row's filters. Host only. */
static inline struct sampling_parameters sampling_parameters_of(const struct sampling_fill *f, int64_t row)
{
	struct sampling_parameters parameters = {f->vocab, 1, 0};
	int kept = sampling_kept(f, row), block = (int)(row / SAMPLING_BLOCK % 8);
	int both = (f->filters & SAMPLING_TOP_K) && (f->filters & SAMPLING_TOP_P);
	int narrow = both && block == 3 && kept == 1 && row % 2 == 0 && sampling_tokens(f, row) > 2 && !sampling_is_second(f, row);
	int from = narrow ? 3 : both ? sampling_from(f, row, kept) : kept;

	if (f->shared)
		return sampling_shared(f->filters, f->second, f->rows);
	if (kept == 0) {
		parameters.min_p = sampling_low_min_p(f, row);
		return parameters;
	}
	if (!both || block != 7)
		parameters.top_k = from;
	if (!both || block != 3 || narrow)
		parameters.top_p = sampling_p(f, row, kept, both && block != 7 ? from : 0);
	if (both && block == 3 && kept == 1 && sampling_is_second(f, row) && row % 2 == 0) {
		parameters.top_k = f->vocab;
		parameters.top_p = 0x1p-16;
	}
	parameters.min_p = sampling_between(f, row, (double)sampling_weight(f, row, kept) / sampling_weight(f, row, 0),
	                                    (double)sampling_weight(f, row, kept - 1) / sampling_weight(f, row, 0));
	if (kept == 1 && sampling_is_second(f, row) && row % 2 == 0)
		parameters.min_p = 1;
	if (sampling_kind_of(f, row) == SAMPLING_TIED)
		parameters.min_p = 0.5;
	return parameters;
}

#endif
