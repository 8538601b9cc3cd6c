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
 * determines it. Three ways, three kinds and these three sets of rows make 27 tallies. Two more tallies, by the
 * position in a cell, count the draws of rows in which thousands of tokens are equally likely. For these two tallies,
 * the probabilities of a row are summed in the order of the vocabulary. The sum is divided into 2^b equal cells. A draw
 * is counted in the first, second, third or last bucket if the drawn token is in the first, second, third or last
 * quarter of its cell. If a sampler uses a random number of b bits, this number is always at an end of a cell, so the
 * sampler draws only tokens at these ends. One tally has cells of two tokens, and the other has cells of four tokens.
 * Both tallies also detect samplers that use fewer bits. A split divides the four buckets into two sides; there are 7
 * splits. Let x be the fraction of draws on one side, and m the expected value of x. The total variation distance of a
 * tally is the largest difference between x and m over all splits.
 *
 * Threshold and false alarm rate. Draws of different rows are independent. Let a correct sampler draw for N rows. For
 * any x above m, the fraction of draws on one side is x or more with a probability of at most exp(-N KL(x || m)). For
 * any x below m, the probability that the fraction is x or less has the same bound. (Hoeffding 1963, theorem 1, which
 * does not require identical rows.) KL(x || m) = x ln(x / m) + (1 - x) ln((1 - x) / (1 - m)) grows with the distance of
 * x from m. For a given t, N KL(x || m) exceeds t only if x is below a limit that is less than m, or above a limit that
 * is greater than m. The probability that x is beyond one of these limits is at most 2 exp(-t). A set of draws is
 * tested with 29 tallies and 7 splits. By the union bound, the probability of a false alarm for the set is at most 406
 * exp(-t), which is alpha for t = ln(406 / alpha). Another test is whether a filter may keep the drawn token. This
 * other test never raises a false alarm, because chance has no influence on which tokens a filter may keep. With 100
 * rows and m = 0.3, fractions x from 0.03 to 0.65 pass. The test test_draw_statistics.c computes the exact
 * probabilities.
 *
 * Suspects. A suspect is a specific wrong sampler that differs little from a correct one. To detect a suspect, reftest
 * needs a specific test and the draws of both sets of values. A suspect is defined by the probability with which it
 * draws a certain token, or certain tokens, of a row. Most suspects never draw the tokens of certain ranks or
 * positions. Each draw multiplies the likelihood ratio of a suspect by the probability that the suspect draws this
 * token, divided by the correct probability. For a correct sampler, the product of these factors has mean 1, for any
 * number of rows with any values. The product is checked twice: after the first set of values, and after both sets. The
 * probability that the product exceeds T in one of the two checks is at most 1 / T (Ville 1939). There are 36 suspects,
 * so T is set to 36 / beta.
 *
 * The false alarm rates are alpha = 4e-10 for the tallies of each set of values, beta = 1e-9 for the suspects of a
 * case, and 1e-10 for the test that draws differ under another seed (judge_samples.c). These rates add up to less than 2e-9
 * per case. In a run of five hundred sampling cases, the probability of a false alarm is thus at most 1e-6 (the starter
 * dataset has 15 sampling cases). */
#ifndef REFTEST_KERNELS_SAMPLING_DRAW_STATISTICS_H
#define REFTEST_KERNELS_SAMPLING_DRAW_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/sampling/filter.h"

/* Some samplers draw only from the DRAW_LIKELIEST_TOKENS most likely tokens. */
enum { DRAW_LIKELIEST_TOKENS = 1024 };

enum { DRAWS_BUCKETS = 4, DRAWS_WAYS = 3, DRAWS_GRIDS = 2 };

/* The kinds of rows with separate tallies. DRAW_STEEP: one token has at least 0.55 of the kept probability. DRAW_WIDE:
 * more than FILTER_ORDERED tokens are kept, all of them are sorted, and each has less than 1/32 of the probability. */
enum draw_shape { DRAW_FLAT, DRAW_STEEP, DRAW_WIDE, DRAW_SHAPES };

/* Wrong samplers for which there is a specific test, because they differ little from a correct one. */
enum draw_suspect {
	DRAW_RACE,      /* divides probabilities by uniform instead of exponential noise */
	DRAW_SHORT,     /* gives the last token that top-p keeps only a part of its probability: p minus the
			 * probabilities of all tokens before it */
	DRAW_NO_LAST_K, /* never draws the last token that top-k keeps */
	DRAW_NO_LAST_P, /* never draws the last token that top-p keeps */
	/* The suspects from here on apply to the kept tokens of any filter. */
	DRAW_NO_LAST_OF_MANY, /* never draws the least likely of three or more tokens */
	DRAW_LIKELY_HALF,     /* of 5 to FILTER_DEEP kept tokens, draws only the more likely half */
	DRAW_FIRST_HALF,      /* of 5 to FILTER_DEEP kept tokens, draws only the first half in the order of the
			       * vocabulary */
	DRAW_SECOND_HALF,     /* of 5 to FILTER_DEEP kept tokens, draws only the second half in the order of the
			       * vocabulary */
	/* The next three suspects are like the three above, but draw as a correct sampler does in rows with at most
	 * FILTER_ORDERED kept tokens. */
	DRAW_LIKELY_HALF_OF_MANY,
	DRAW_FIRST_HALF_OF_MANY,
	DRAW_SECOND_HALF_OF_MANY,
	DRAW_NO_FIRST_PLACE,  /* never draws the first kept token in the order of the vocabulary */
	DRAW_NO_LAST_PLACE,   /* never draws the last kept token in the order of the vocabulary */
	DRAW_LOWER_TOKENS,    /* draws only tokens of the first half of the vocabulary, if some of them are kept */
	DRAW_UPPER_TOKENS,    /* draws only tokens of the second half of the vocabulary, if some of them are kept */
	DRAW_LIKELIEST,       /* draws only from the DRAW_LIKELIEST_TOKENS most likely tokens */
	DRAW_NO_TIED,         /* never draws the least likely kept tokens, if several tie and at most 64 are kept */
	DRAW_NO_TAIL,         /* never draws the least likely kept tokens, if thousands are kept */
	DRAW_NO_FIRST_TOKEN,  /* never draws the first token of the vocabulary */
	DRAW_NO_LAST_TOKEN,   /* never draws the last token of the vocabulary */
	/* The next four suspects look up a random number in cumulative sums of probabilities, and round these sums to 16
	 * bits. */
	DRAW_HALF_SUMS,          /* the sums are float16, in the order of the vocabulary */
	DRAW_BFLOAT_SUMS,        /* the sums are bfloat16, in the order of the vocabulary */
	DRAW_SORTED_HALF_SUMS,   /* the sums are float16, with the most likely tokens first */
	DRAW_SORTED_BFLOAT_SUMS, /* the sums are bfloat16, with the most likely tokens first */
	/* These suspects also look up a random number in cumulative sums, but do not scale the number by the sum of the
	 * kept probabilities. They draw the last token instead of a dropped one. */
	DRAW_UNSCALED,        /* the sums are in the order of the vocabulary */
	DRAW_SORTED_UNSCALED, /* the most likely tokens are first in the sums */
	/* The next two are like the two above, but with top-k and top-p, they do not scale the number for top-k either. */
	DRAW_UNSCALED_TWICE,
	DRAW_SORTED_UNSCALED_TWICE,
	/* These suspects look up a random number of few bits in cumulative sums of probabilities. */
	DRAW_8_BITS,         /* the sums are in the order of the vocabulary */
	DRAW_11_BITS,
	DRAW_SORTED_8_BITS,  /* the most likely tokens are first in the sums */
	DRAW_SORTED_11_BITS,
	/* These suspects raise the kept probabilities to a power before they draw. */
	DRAW_FLATTEST, /* to the power 0.5 */
	DRAW_FLATTER,  /* to the power 0.85 */
	DRAW_SHARPER,  /* to the power 1.2 */
	DRAW_SHARPEST, /* to the power 2 */
	DRAW_SUSPECTS
};

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
struct draw draw_of(const struct filter *filter, const struct filter_kept *kept, int64_t token);

struct draws_verdict {
	double margin;   /* the largest N KL(x || m) / ln(406 / alpha); if it is above 1, the sampler is not correct */
	double distance; /* the largest total variation distance of a tally */
	double suspicion[DRAW_SUSPECTS]; /* for each suspect, the sum of the suspicions of all draws */
};
/* Tests a set of draws by their tallies. If the returned margin is above 1, writes a message to `why`, which may be
 * NULL. */
struct draws_verdict draws_judge(const struct draw *draws, int64_t count, struct err *why);

/* Returns the largest suspicion divided by ln(36 / beta). If the returned value is above 1, writes a sentence to `why`,
 * which may be NULL. */
double draws_suspect(const double suspicion[DRAW_SUSPECTS], struct err *why);

#endif
