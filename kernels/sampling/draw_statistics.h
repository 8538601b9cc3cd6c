/* draw_statistics - tests whether samples follow the probabilities from which they should be drawn.
 *
 * Tallies. One row gives only one draw, so the draws of all rows are counted together. Each row defines four buckets
 * and their probabilities, which do not depend on the draw. There are three ways to define the buckets:
 *
 *   rank      The buckets are the most likely token, the second, the third, and all later tokens.
 *   position  The probabilities are summed in the order of the vocabulary, and the buckets are the quarters of the sum.
 *             In this sum, each token has an interval as long as its probability, and belongs to the quarter that
 *             contains the middle of its interval.
 *   boundary  The buckets are the last kept token, the second to last, the third to last, and all earlier tokens. In
 *             rows of the second kind (see below), "depth" replaces "boundary": the probabilities are summed from the
 *             most likely token on, and the buckets are the quarters of the sum.
 *
 * A tally counts the draws in each bucket. For each way, there are separate tallies for three kinds of rows. In the
 * first kind, one token dominates. In the second kind, more than 64 tokens are kept, and each has less than 1/32 of the
 * probability. All other rows are of the third kind. For each way and each kind of rows, there are three tallies: one
 * for all rows, one for the rows in which top-k determines the last kept token, and one for the rows in which top-p
 * determines it. Three ways, three kinds and these three sets of rows make 27 tallies. Six more tallies count the rows
 * of all three kinds, by rank and by position. Two more tallies, by the position in a cell, count the draws of rows in
 * which thousands of tokens are equally likely. For these two tallies, the probabilities of a row are summed in the
 * order of the vocabulary. The sum is divided into 2^b equal cells. A draw is counted in the first, second, third or
 * last bucket if the drawn token is in the first, second, third or last quarter of its cell. If a sampler uses a random
 * number of b bits, this number is always at an end of a cell, so the sampler draws only tokens at these ends. One
 * tally has cells of two tokens, and the other has cells of four tokens. Both tallies also detect samplers that use
 * fewer bits. A split divides the four buckets into two sides; there are 7 splits. Let x be the fraction of draws on
 * one side, and m the expected value of x. The total variation distance of a tally is the largest difference between x
 * and m over all splits.
 *
 * Threshold and false alarm rate. Draws of different rows are independent. Let a correct sampler draw for N rows. For
 * any x above m, the fraction of draws on one side is x or more with a probability of at most exp(-N KL(x || m)). For
 * any x below m, the probability that the fraction is x or less has the same bound. (Hoeffding 1963, theorem 1, which
 * does not require identical rows.) KL(x || m) = x ln(x / m) + (1 - x) ln((1 - x) / (1 - m)) grows with the distance of
 * x from m. For a given t, N KL(x || m) exceeds t only if x is below a limit that is less than m, or above a limit that
 * is greater than m. The probability that x is beyond one of these limits is at most 2 exp(-t). A set of draws is
 * tested with 35 tallies and 7 splits. By the union bound, the probability of a false alarm for the set is at most 490
 * exp(-t), which is alpha for t = ln(490 / alpha). Another test is whether a filter may keep the drawn token. This
 * other test never raises a false alarm, because chance has no influence on which tokens a filter may keep. With 100
 * rows and m = 0.3, fractions x from 0.03 to 0.65 pass. The test test_draw_statistics.c computes the exact
 * probabilities.
 *
 * The draws of each of the two sets of values are tested, and then the draws of both sets together. The false alarm
 * rates are alpha = 2.9e-10 for each of these three tests of tallies, 1e-9 for the suspects of a case (draw_suspects.h),
 * and 1e-10 for the test that draws differ under another seed (judge_samples.c). These rates add up to less than 2e-9 per case. In
 * a run of five hundred sampling cases, the probability of a false alarm is thus at most 1e-6 (the starter dataset has
 * 15 sampling cases). */
#ifndef REFTEST_KERNELS_SAMPLING_DRAW_STATISTICS_H
#define REFTEST_KERNELS_SAMPLING_DRAW_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/sampling/draw_suspects.h"
#include "kernels/sampling/filter.h"

enum { DRAWS_BUCKETS = 4, DRAWS_WAYS = 3, DRAWS_GRIDS = 2, DRAWS_TALLIES = 35 };

/* The kinds of rows with separate tallies. DRAW_STEEP: one token has at least 0.55 of the kept probability. DRAW_WIDE:
 * more than FILTER_ORDERED tokens are kept, all of them are sorted, and each has less than 1/32 of the probability. */
enum draw_shape { DRAW_FLAT, DRAW_STEEP, DRAW_WIDE, DRAW_SHAPES };

/* The draw of one row. A draw whose members are all 0 is not counted. */
struct draw {
	bool counted;
	enum draw_shape shape;
	enum filter_by by;      /* the member `by` of the row's struct filter_kept */
	double slack;           /* the member `slack` of the row's struct filter_kept */
	int ways;               /* the number of ways in which the draw is counted */
	int bucket[DRAWS_WAYS]; /* bucket[way]: the bucket of the draw */
	double share[DRAWS_WAYS][DRAWS_BUCKETS];
	bool gridded;           /* whether the draw is counted by its position in a cell */
	int cell[DRAWS_GRIDS];
	double cell_share[DRAWS_GRIDS][DRAWS_BUCKETS];
	/* For each suspect: log(probability that the suspect draws this token / probability that a correct sampler
	 * draws it). */
	double suspicion[DRAW_SUSPECTS];
};

/* Describes the draw of `token` from a row that filter_row has filtered. `token` must be a token that a correct filter
 * may keep. */
struct draw draw_of(struct filter *filter, const struct filter_kept *kept, int64_t token);

struct draws_tally {
	double rows, slack; /* the number of rows, and the sum of their slack */
	double observed[DRAWS_BUCKETS], expected[DRAWS_BUCKETS]; /* sums over the rows */
};

/* A set of draws, of any number of rows. */
struct draws {
	struct draws_tally tallies[DRAWS_TALLIES];
	double suspicion[DRAW_SUSPECTS]; /* for each suspect, the sum of the suspicions of all draws */
};

struct draws draws_count(const struct draw *draws, int64_t count);

/* Adds the draws of other rows. */
void draws_add(struct draws *sum, const struct draws *more);

struct draws_verdict {
	double margin;   /* the largest N KL(x || m) / ln(490 / alpha); if it is above 1, the sampler is not correct */
	double distance; /* the largest total variation distance of a tally */
};

/* Tests a set of draws by their tallies. If the returned margin is above 1, writes a message to `why`, which may be
 * NULL. */
struct draws_verdict draws_judge(const struct draws *draws, struct err *why);

#endif
