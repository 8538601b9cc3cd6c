/* draws - are samples drawn from the probabilities that they should be drawn from?
 *
 * One row gives one draw, so rows are counted together. Each row says beforehand, in three ways, into which of four
 * buckets its draw may fall and with what probability: by rank (the most likely token, the second, the third, a later
 * one), by place (the quarter of the row's probability, summed in the order of the vocabulary, in whose reach the token
 * has its middle) and by rank from the boundary (the last token kept, the last but one, …) or, of more than 64 tokens,
 * by depth (the quarter of the row's probability, summed from the most likely token on, in whose reach the token has
 * its middle). Rows of more than 64 tokens of which none holds a 32nd, and rows in which one token dominates, are
 * counted apart from the others, and those whose last token was dropped by top-k, and by top-p, once more by
 * themselves. That makes 27 tallies. Of rows in which thousands of tokens are alike there are two more, by the place
 * within a cell: the row's probability, summed in the order of the vocabulary, is cut into 2^b cells, and the buckets
 * are the quarters of a cell in which a token has its middle. Who draws by a random number of b bits draws next to the
 * ends of cells alone; b is such that two and four tokens fill a cell, and fewer bits show there too. The total
 * variation distance of a tally is the largest difference, over the 7 ways to split four buckets in two, between the
 * share x of draws on one side and its mean m.
 *
 * Threshold, and how often it is wrong. Draws of different rows are independent, so for a correct sampler the share of
 * one side over N rows reaches x or goes beyond it with a probability of at most exp(-N KL(x || m)) in each direction
 * (Hoeffding 1963, theorem 1, which does not ask that the rows be alike). KL(x || m) = x ln(x / m) + (1 - x) ln((1 - x)
 * / (1 - m)) grows with the distance of x from m, so the shares with N KL(x || m) > t are those beyond one x on either
 * side, and one of them comes up with a probability of at most 2 exp(-t). A set of draws is asked that of 29 tallies
 * and 7 splits: by the union bound it is falsely alarmed with at most 406 exp(-t), which is alpha for t = ln(406 /
 * alpha). Which token a filter may keep is no matter of chance: the allowed set alarms a correct sampler never. For m =
 * 0.3 and 100 rows shares of 0.03 to 0.65 pass. test_draws.c counts the exact probabilities.
 *
 * Suspects. Some wrong samplers differ so little from a right one that only all draws of both contents tell them apart,
 * and only if one asks for them: each is known by how often it draws one token of a row. Each draw multiplies the odds
 * by how likely it is for the suspect over how likely it should be. Of a correct sampler the product has the mean 1,
 * however many rows there are and whatever they hold, and its largest value, when it is looked at after the first
 * contents and after both, is above T with a probability of at most 1 / T (Ville 1939). The suspects are 4, so T = 4 /
 * beta.
 *
 * alpha = 4e-10 for each of the contents and beta = 1e-9 make, with 1e-10 for draws that are the same under another
 * seed (sampling.c), less than 2e-9 a case: a run of five hundred cases of sampling has a false alarm with a
 * probability of at most 1e-6 (the starter dataset makes 15 such cases). */
#ifndef REFTEST_KERNELS_SAMPLING_DRAWS_H
#define REFTEST_KERNELS_SAMPLING_DRAWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/sampling/filter.h"

enum { DRAWS_BUCKETS = 4, DRAWS_WAYS = 3, DRAWS_GRIDS = 2 };

/* What rows are counted apart by: one token holds 0.55 or more of what is kept; more than FILTER_ORDERED are kept, all of
 * them in order, and none holds a 32nd. */
enum draw_shape { DRAW_FLAT, DRAW_STEEP, DRAW_WIDE, DRAW_SHAPES };

/* Ways to draw wrongly that are asked for by name, because they differ little from the right one. */
enum draw_suspect {
	DRAW_RACE,      /* a race of probability / noise whose noise is uniform and not exponential */
	DRAW_SHORT,     /* the last token that top-p keeps gets what is left of p, not its probability */
	DRAW_NO_LAST_K, /* the last token that top-k keeps is never drawn */
	DRAW_NO_LAST_P, /* the last token that top-p keeps is never drawn */
	DRAW_SUSPECTS
};

/* What one row says. {0} says nothing. */
struct draw {
	bool counted;
	enum draw_shape shape;
	enum filter_by by;      /* as filter_kept.by */
	double slack;           /* as filter_kept.slack */
	int ways;               /* the first so many ways are counted */
	int bucket[DRAWS_WAYS]; /* where the draw fell */
	double share[DRAWS_WAYS][DRAWS_BUCKETS];
	bool gridded;           /* these two are set, by the place within a cell */
	int cell[DRAWS_GRIDS];
	double cell_share[DRAWS_GRIDS][DRAWS_BUCKETS];
	double suspicion[DRAW_SUSPECTS]; /* ln of: how likely this draw is if drawn so, over how likely it should be */
};

/* `filter` as filter_row left it. `token` is one of those that may be kept. */
struct draw draw_of(const struct filter *filter, const struct filter_kept *kept, int64_t token);

struct draws_verdict {
	double margin;   /* the largest N KL(x || m) over ln(406 / alpha); above 1: not a correct sampler */
	double distance; /* the largest total variation distance of a tally */
	double suspicion[DRAW_SUSPECTS]; /* sums over the draws */
};
/* `why` (or NULL) gets a sentence when margin > 1. */
struct draws_verdict draws_judge(const struct draw *draws, int64_t count, struct err *why);

/* The largest suspicion over ln(4 / beta); `why` (or NULL) gets a sentence when it is above 1. */
double draws_suspect(const double suspicion[DRAW_SUSPECTS], struct err *why);

#endif
