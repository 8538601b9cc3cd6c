/* draw_suspects - tests whether samples come from one of the specific wrong samplers that are listed below.
 *
 * A suspect is a specific wrong sampler that differs little from a correct one. To detect a suspect, reftest needs a
 * specific test and the draws of both sets of values. A suspect is defined by the probability with which it draws a
 * certain token, or certain tokens, of a row. Most suspects never draw the tokens of certain ranks or positions. Each
 * draw multiplies the likelihood ratio of a suspect by the probability that the suspect draws this token, divided by
 * the correct probability. For a correct sampler, the product of these factors has mean 1, for any number of rows with
 * any values. The product is checked twice: after the first set of values, and after both sets. The probability that
 * the product exceeds T in one of the two checks is at most 1 / T (Ville 1939). There are 52 suspects, so T is set to
 * 52 / beta. beta is 1e-9.
 *
 * If float32 rounding determines whether some tokens are kept, correct samplers draw a token with different
 * probabilities. The largest of them is then the divisor, so that the mean of the factor is at most 1 for each of these
 * samplers. In such rows, the only suspects are samplers that round sums, use random numbers of few bits, raise
 * probabilities to a power, or draw only from a certain number of the most likely tokens. */
#ifndef REFTEST_KERNELS_SAMPLING_DRAW_SUSPECTS_H
#define REFTEST_KERNELS_SAMPLING_DRAW_SUSPECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/sampling/filter.h"

/* Some samplers draw only from the DRAW_LIKELIEST_TOKENS or DRAW_LIKELIEST_MORE most likely tokens. */
enum { DRAW_LIKELIEST_TOKENS = 1024, DRAW_LIKELIEST_MORE = FILTER_DEEP };

enum { DRAW_OF_BFLOAT = 1, DRAW_OF_RAW = 2, DRAW_OF_VALUES = 4, DRAW_OF_SORTED = 8 };

/* Wrong samplers for which there is a specific test, because they differ little from a correct one. */
enum draw_suspect {
	DRAW_RACE,      /* divides probabilities by uniform instead of exponential noise */
	DRAW_SHORT,     /* replaces the probability of the last token that top-p keeps by a smaller number: p minus the
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
	/* The next three suspects are like the three above, except in rows with at most FILTER_ORDERED kept tokens, in
	 * which they draw as a correct sampler does. */
	DRAW_LIKELY_HALF_OF_MANY,
	DRAW_FIRST_HALF_OF_MANY,
	DRAW_SECOND_HALF_OF_MANY,
	DRAW_NO_FIRST_PLACE,  /* never draws the first kept token in the order of the vocabulary */
	DRAW_NO_LAST_PLACE,   /* never draws the last kept token in the order of the vocabulary */
	DRAW_LOWER_TOKENS,    /* draws only tokens of the first half of the vocabulary, if some of them are kept */
	DRAW_UPPER_TOKENS,    /* draws only tokens of the second half of the vocabulary, if some of them are kept */
	DRAW_LIKELIEST,       /* draws only from the DRAW_LIKELIEST_TOKENS most likely tokens */
	DRAW_LIKELIEST_4096,  /* draws only from the DRAW_LIKELIEST_MORE most likely tokens */
	DRAW_NO_TIED,         /* never draws the least likely kept tokens, if several tie and at most 64 are kept */
	DRAW_NO_TAIL,         /* never draws the least likely kept tokens, if thousands are kept */
	DRAW_NO_FIRST_TOKEN,  /* never draws the first token of the vocabulary */
	DRAW_NO_LAST_TOKEN,   /* never draws the last token of the vocabulary */
	/* Suspect DRAW_SUMS and the next 15 look up a random number in cumulative sums of probabilities, and round these
	 * sums to float16 or bfloat16. Add to DRAW_SUMS: DRAW_OF_BFLOAT for a suspect that rounds to bfloat16;
	 * DRAW_OF_RAW for one that does not first divide the probabilities by the sum of the kept probabilities;
	 * DRAW_OF_VALUES for one that also rounds each probability; DRAW_OF_SORTED for one that sums the most likely
	 * tokens first. */
	DRAW_SUMS,
	/* These suspects also look up a random number in cumulative sums, but do not scale the number by the sum of the
	 * kept probabilities. They draw the last token instead of a dropped one. */
	DRAW_UNSCALED = DRAW_SUMS + 16, /* the sums are in the order of the vocabulary */
	DRAW_SORTED_UNSCALED, /* the most likely tokens are first in the sums */
	/* The next two are like the two above, but with top-k and top-p, they do not scale the number for top-k either. */
	DRAW_UNSCALED_TWICE,
	DRAW_SORTED_UNSCALED_TWICE,
	/* These suspects look up a random number of few bits in cumulative sums of probabilities. */
	DRAW_8_BITS,         /* the sums are in the order of the vocabulary */
	DRAW_11_BITS,
	DRAW_12_BITS,
	DRAW_SORTED_8_BITS,  /* the most likely tokens are first in the sums */
	DRAW_SORTED_11_BITS,
	DRAW_SORTED_12_BITS,
	/* These suspects raise the kept probabilities to a power before they draw. */
	DRAW_FLATTEST, /* to the power 0.5 */
	DRAW_FLATTER,  /* to the power 0.85 */
	DRAW_SHARPER,  /* to the power 1.2 */
	DRAW_SHARPEST, /* to the power 2 */
	DRAW_SAME,     /* draws the same token from rows with the same probabilities */
	DRAW_SUSPECTS
};

/* Sets suspicion[suspect] for each suspect that the draw of `token` from a row concerns, except DRAW_SAME:
 * log(probability that the suspect draws this token / probability that a correct sampler draws it). Leaves the other
 * elements as they are. The caller must have called filter_row and filter_place for the row, and `token` must be a
 * token that a correct filter may keep. */
void draw_suspicions(const struct filter *filter, const struct filter_kept *kept, int64_t token,
		     double suspicion[DRAW_SUSPECTS]);

/* Returns the suspicion DRAW_SAME for a draw from a row whose probabilities are the same as those of an earlier row.
 * `same` is true if the same token was drawn from the earlier row. `share` is the largest probability with which a
 * correct sampler draws the token. */
double draw_suspect_same(bool same, double share);

/* Returns the largest suspicion divided by ln(52 / beta). If the returned value is above 1, writes a sentence to `why`,
 * which may be NULL. */
double draws_suspect(const double suspicion[DRAW_SUSPECTS], struct err *why);

#endif
