#include "kernels/sampling/draw_suspects.h"

#include <math.h>
#include <stdio.h>

#include "kernels/core/dtype_convert.h"

enum { STEPS = 32 };
enum { HALVES_FROM = 4 }; /* suspects that draw only half of the kept tokens are tested in rows with more than
			   * HALVES_FROM kept tokens */

static const double false_suspicion = 1e-9; /* beta: the probability of a false suspicion for a case */

/* Returns the suspicion that one draw adds, which is the logarithm of a likelihood ratio. A suspect draws a certain
 * token with probability `suspect`, and a correct sampler draws it with probability `right`. `drawn` is true if this
 * token was drawn. */
static double suspicion_of(bool drawn, double suspect, double right)
{
	suspect = fmin(fmax(suspect, 0.01 * right), 1 - 0.01 * (1 - right)); /* assume that a suspect draws correctly in
									      * 1 % of its draws */
	return drawn ? log(suspect / right) : log((1 - suspect) / (1 - right));
}

/* Returns the suspicion that one draw adds if a suspect draws the drawn token with probability `suspect`, and a correct
 * sampler with probability `right`. Like suspicion_of, assumes that a suspect draws correctly in 1 % of its draws. */
static double suspicion_of_drawn(double suspect, double right)
{
	return log(0.99 * suspect / right + 0.01);
}

/* Returns the probability with which a sampler with uniform noise draws the most likely token. Such a sampler divides
 * the probability of each kept token by uniform noise, and draws the token with the largest quotient. */
static double race_share(const struct filter *filter, const struct filter_kept *kept)
{
	int64_t some = kept->count < FILTER_ORDERED ? kept->count : FILTER_ORDERED;
	double likeliest = filter->value[filter->order[0]], share = 0;
	double rest = kept->mass - filter->before[some - 1] - filter->value[filter->order[some - 1]];

	for (int step = 0; step < STEPS; step++) {
		double noise = (step + 0.5) / STEPS, alone = 1;

		for (int64_t i = 1; i < some; i++)
			alone *= 1 - filter->value[filter->order[i]] / likeliest * noise;
		share += alone * exp(-rest / likeliest * noise) / STEPS;
	}
	return share;
}

/* Adds the suspicion that the sampler never draws some of the tokens. The total probability of these tokens is `share`.
 * `drawn` is true if one of these tokens was drawn. Adds nothing if `share` is 0 or 1. */
static void ask(double *suspicion, enum draw_suspect who, bool drawn, double share)
{
	if (share > 0 && share < 1)
		suspicion[who] = suspicion_of(drawn, 0, share);
}

/* Adds the suspicion of a sampler that draws only half of the kept tokens. If fewer than five tokens are kept, the draw
 * is no evidence and adds nothing. */
static void ask_half(double *suspicion, enum draw_suspect who, int64_t count, bool drawn, double share)
{
	if (count > HALVES_FROM && count <= FILTER_DEEP)
		ask(suspicion, who, drawn, share);
	if (count > FILTER_ORDERED && count <= FILTER_DEEP)
		ask(suspicion, who + (DRAW_LIKELY_HALF_OF_MANY - DRAW_LIKELY_HALF), drawn, share);
}

static const enum dtype short_dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16};

static double rounded(enum dtype dtype, double value)
{
	uint16_t bits;

	dtype_store(&bits, dtype, 0, value);
	return dtype_load(&bits, dtype, 0);
}

/* The versions of a probability that samplers may add up: the exact one, and four rounded ones (in each of two dtypes,
 * DIVIDED by the sum of the kept probabilities, or RAW: divided by unit_of_raw). */
enum { EXACT, DIVIDED, RAW = DIVIDED + 2, VALUES = RAW + 2 };

/* Sums over the kept tokens, in the order in which a sampler adds them up. */
struct sums {
	double last, value[VALUES]; /* the probability of the last added token, and its versions */
	double sum[VALUES];
	double before[VALUES], own[VALUES]; /* the sum before the drawn token, and the versions of this token's
	                                     * probability; 0 if the drawn token is not kept */
};

/* Returns the number by which raw probabilities are divided: if top-p applies to the tokens that top-k keeps, the sum of
 * their probabilities, otherwise 1. */
static double unit_of_raw(const struct filter *filter, const struct filter_kept *kept)
{
	return kept->mass_before < filter->sum ? kept->mass_before : 1;
}

/* Adds the next token, whose probability is `value`, to the sums. `unit` is the number by which raw probabilities are
 * divided. */
static void add_token(struct sums *sums, double mass, double unit, double value, bool drawn)
{
	for (int d = 0; d < 2 && value != sums->last; d++) {
		sums->value[DIVIDED + d] = rounded(short_dtypes[d], value / mass);
		sums->value[RAW + d] = rounded(short_dtypes[d], value / unit);
	}
	sums->last = sums->value[EXACT] = value;
	for (int i = 0; i < VALUES; i++) {
		sums->before[i] = drawn ? sums->sum[i] : sums->before[i];
		sums->own[i] = drawn ? sums->value[i] : sums->own[i];
		sums->sum[i] += sums->value[i];
	}
}

/* Adds the suspicions of eight samplers that round the sums of the kept probabilities: suspect `who`, and those that
 * differ from it by DRAW_OF_BFLOAT, DRAW_OF_RAW and DRAW_OF_VALUES. Such a sampler draws a token with a probability that
 * is proportional to the difference of two rounded sums. A correct sampler draws the token with probability `right`.
 * Adds nothing if the sum of all kept probabilities is 0 or infinite in the dtype. */
static void suspect_sums(double *suspicion, int who, const struct sums *sums, double mass, double raw_unit, double right)
{
	for (int i = 0; i < DRAW_OF_SORTED; i++) {
		int d = (i & DRAW_OF_BFLOAT) != 0, raw = (i & DRAW_OF_RAW) != 0;
		int from = (i & DRAW_OF_VALUES) == 0 ? EXACT : (raw ? RAW : DIVIDED) + d;
		double unit = from != EXACT ? 1 : raw ? raw_unit : mass, before = sums->before[from];
		double lower = rounded(short_dtypes[d], before / unit);
		double upper = rounded(short_dtypes[d], (before + sums->own[from]) / unit);
		double whole = rounded(short_dtypes[d], sums->sum[from] / unit);

		if (whole > 0 && whole < (double)INFINITY)
			suspicion[who + i] = suspicion_of_drawn((upper - lower) / whole, right);
	}
}

/* Adds the suspicions of two samplers that draw the last kept token instead of each dropped token. Suspect `who` does
 * so only for the tokens that the last filter drops, and suspect `who` + 2 for all dropped tokens. `is_last` is true if
 * the last kept token was drawn, and `value` is the probability of this token. Adds nothing if no probability is
 * dropped. */
static void suspect_unscaled(double *suspicion, enum draw_suspect who, const struct filter *filter,
			     const struct filter_kept *kept, bool is_last, double value)
{
	const double before[] = {kept->mass_before, filter->sum};

	for (int i = 0; i < 2; i++) {
		double dropped = before[i] - kept->mass;

		if (kept->count > 1 && dropped > 1e-3 * before[i])
			suspicion[(int)who + 2 * i] =
			    suspicion_of(is_last, (value + dropped) / before[i], value / kept->mass);
	}
}

/* Adds the suspicions of three samplers whose random numbers are multiples of 2^-8 (suspect `who`), 2^-11 or 2^-12. Such
 * a sampler draws a token with a probability that is proportional to the number of multiples in the token's interval.
 * For `right`, see suspect_sums. */
static void suspect_bits(double *suspicion, int who, const struct sums *sums, double mass, double right)
{
	static const double numbers[] = {256, 2048, 4096};

	for (int i = 0; i < 3; i++) {
		double before = sums->before[EXACT] / mass, after = (sums->before[EXACT] + sums->own[EXACT]) / mass;
		double first = fmin(ceil(before * numbers[i]), numbers[i]), end = fmin(ceil(after * numbers[i]), numbers[i]);

		suspicion[who + i] = suspicion_of_drawn((end - first) / numbers[i], right);
	}
}

/* Adds the suspicions of samplers that look up a random number in cumulative sums. */
static void suspect_lookups(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token,
			    double right)
{
	struct sums placed = {0}, sorted = {0};
	double mass = kept->mass, unit = unit_of_raw(filter, kept);

	for (int64_t i = 0; i < filter->placed_count; i++)
		add_token(&placed, mass, unit, filter->placed[i].value, filter->placed[i].token == token);
	suspect_sums(suspicion, DRAW_SUMS, &placed, mass, unit, right);
	suspect_bits(suspicion, DRAW_8_BITS, &placed, mass, right);
	if (kept->count > filter->ordered)
		return;
	for (int64_t i = 0; i < kept->count; i++)
		add_token(&sorted, mass, unit, filter->value[filter->order[i]], filter->order[i] == token);
	suspect_sums(suspicion, DRAW_SUMS + DRAW_OF_SORTED, &sorted, mass, unit, right);
	suspect_bits(suspicion, DRAW_SORTED_8_BITS, &sorted, mass, right);
}

/* Adds the suspicions of samplers that never draw tokens of certain ranks. The filter must have kept at least two
 * tokens and sorted them. */
static void suspect_ranks(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	int64_t last = kept->count - 1, half = (kept->count + 1) / 2, rank = 0;

	while (rank < half && filter->order[rank] != token)
		rank++;
	ask_half(suspicion, DRAW_LIKELY_HALF, kept->count, rank == half, 1 - filter->before[half] / kept->mass);
	suspect_unscaled(suspicion, DRAW_SORTED_UNSCALED, filter, kept, filter->order[last] == token,
			 filter->value[filter->order[last]]);
	if (kept->count > 2)
		ask(suspicion, DRAW_NO_LAST_OF_MANY, filter->order[last] == token,
		    filter->value[filter->order[last]] / kept->mass);
}

/* Adds the suspicions of samplers that draw only from a certain number of the most likely tokens. If the last of these
 * tokens and the next one are equally likely, the draw is no evidence and adds nothing. Correct samplers draw the
 * tokens beyond these with different probabilities if float32 rounding determines whether some tokens are kept; the
 * smallest of these probabilities is used. */
static void suspect_limits(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	static const int64_t limits[] = {DRAW_LIKELIEST_TOKENS, DRAW_LIKELIEST_MORE};
	int64_t rank = 0;

	for (int i = 0; i < 2 && kept->count > limits[i] && filter->ordered > limits[i]; i++) {
		while (rank < limits[i] && filter->order[rank] != token)
			rank++;
		if (filter->value[filter->order[limits[i]]] < filter->value[filter->order[limits[i] - 1]])
			ask(suspicion, DRAW_LIKELIEST + i, rank == limits[i],
			    1 - filter->before[limits[i]] / (kept->mass * (1 - kept->slack)));
	}
}

/* Adds the suspicions of samplers that never draw the least likely kept tokens, if several kept tokens have the
 * smallest probability. `share` is the total probability of these tokens. If `share` is small, the draw is no evidence
 * and adds nothing. */
static void suspect_least(double *suspicion, const struct filter *filter, const struct filter_kept *kept, double share,
                          int64_t token)
{
	bool is_least = filter->value[token] == kept->threshold;

	if (share < 0.25 || share < 1.5 * kept->threshold / kept->mass)
		return;
	if (kept->count <= FILTER_ORDERED)
		ask(suspicion, DRAW_NO_TIED, is_least, share);
	else if (kept->count > FILTER_DEEP)
		ask(suspicion, DRAW_NO_TAIL, is_least, share);
}

/* Adds the suspicions of samplers that never draw the first or the last token of the vocabulary, if that token is
 * kept. */
static void suspect_ends(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	double first = filter->value[0], last = filter->value[filter->vocab - 1];

	if (first >= kept->threshold)
		ask(suspicion, DRAW_NO_FIRST_TOKEN, token == 0, first / kept->mass);
	if (last >= kept->threshold)
		ask(suspicion, DRAW_NO_LAST_TOKEN, token == filter->vocab - 1, last / kept->mass);
}

/* Adds the suspicions of samplers that never draw tokens at certain positions, or that draw the last token instead
 * of dropped ones. */
static void suspect_places(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	double first = 0, last = 0, below_half = 0, through_half = 0, lower = 0, sum = 0, least = 0;
	int64_t half = kept->count / 2, seen = 0, at = 0;

	for (int64_t i = 0; i < filter->placed_count; i++) {
		int64_t v = filter->placed[i].token;
		double value = filter->placed[i].value;

		first = seen == 0 ? value : first;
		last = value;
		sum += value;
		at = v == token ? seen : at;
		seen++;
		least += value == kept->threshold ? value : 0;
		below_half = seen <= half ? sum : below_half;
		through_half = seen <= kept->count - half ? sum : through_half;
		lower = v < filter->vocab / 2 ? sum : lower;
	}
	ask_half(suspicion, DRAW_FIRST_HALF, kept->count, at >= kept->count - half, 1 - through_half / kept->mass);
	ask_half(suspicion, DRAW_SECOND_HALF, kept->count, at < half, below_half / kept->mass);
	ask(suspicion, DRAW_NO_FIRST_PLACE, at == 0, first / kept->mass);
	ask(suspicion, DRAW_NO_LAST_PLACE, at == seen - 1, last / kept->mass);
	suspect_least(suspicion, filter, kept, least / kept->mass, token);
	suspect_ends(suspicion, filter, kept, token);
	suspect_unscaled(suspicion, DRAW_UNSCALED, filter, kept, at == seen - 1, last);
	if (lower > 0 && lower < sum) {
		ask(suspicion, DRAW_LOWER_TOKENS, token >= filter->vocab / 2, 1 - lower / kept->mass);
		ask(suspicion, DRAW_UPPER_TOKENS, token < filter->vocab / 2, lower / kept->mass);
	}
}

/* Adds the suspicions of samplers that raise the kept probabilities to a power. */
static void suspect_powers(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token,
			   double right)
{
	static const double exponents[] = {0.5, 0.85, 1.2, 2};
	enum { POWERS = sizeof exponents / sizeof exponents[0] };
	double power[POWERS] = {0}, sum[POWERS] = {0}, own[POWERS] = {0}, last = -1;

	for (int64_t at = 0; at < filter->placed_count; at++) {
		double value = filter->placed[at].value;

		for (int i = 0; i < POWERS && value != last; i++)
			power[i] = pow(value / kept->mass, exponents[i]);
		last = value;
		for (int i = 0; i < POWERS; i++) {
			sum[i] += power[i];
			own[i] = filter->placed[at].token == token ? power[i] : own[i];
		}
	}
	for (int i = 0; i < POWERS; i++)
		suspicion[DRAW_FLATTEST + i] = suspicion_of_drawn(own[i] / sum[i], right);
}

/* Adds the suspicions of samplers whose top-k or top-p treats the last kept token wrongly. */
static void suspect_last(double *suspicion, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	int64_t last = kept->count - 1;
	double share = filter->value[filter->order[last]] / kept->mass;
	bool is_last = token == filter->order[last];

	if (kept->by == FILTER_BY_TOP_K)
		suspicion[DRAW_NO_LAST_K] = suspicion_of(is_last, 0, share);
	if (kept->by != FILTER_BY_TOP_P)
		return;
	suspicion[DRAW_NO_LAST_P] = suspicion_of(is_last, 0, share);
	suspicion[DRAW_SHORT] = suspicion_of(is_last, 1 - filter->before[last] / kept->limit, share);
}

void draw_suspicions(const struct filter *filter, const struct filter_kept *kept, int64_t token,
		     double suspicion[DRAW_SUSPECTS])
{
	double right = filter->value[token] / (kept->mass * (1 - kept->slack));

	suspect_limits(suspicion, filter, kept, token);
	suspect_lookups(suspicion, filter, kept, token, right);
	suspect_powers(suspicion, filter, kept, token, right);
	if (kept->slack > 0)
		return;
	suspicion[DRAW_RACE] = suspicion_of(token == filter->order[0], race_share(filter, kept),
					    filter->value[filter->order[0]] / kept->mass);
	suspect_places(suspicion, filter, kept, token);
	if (kept->count <= filter->ordered)
		suspect_ranks(suspicion, filter, kept, token);
	if (kept->count <= FILTER_ORDERED)
		suspect_last(suspicion, filter, kept, token);
}

double draw_suspect_same(bool same, double share)
{
	return suspicion_of_drawn(same ? 1 : 0, share);
}

/* Writes to `out` what a suspect does. The suspect, `who`, is one of DRAW_SUMS to DRAW_SUMS + 15. */
static void describe_sums(int who, char *out, size_t room)
{
	int i = who - DRAW_SUMS;

	snprintf(out, room, "%sdraws from %s that are %s %s",
		 (i & DRAW_OF_SORTED) != 0 ? "sorts tokens by probability, and " : "",
		 (i & DRAW_OF_RAW) != 0 ? "sums of undivided probabilities" : "cumulative probabilities",
		 (i & DRAW_OF_VALUES) != 0 ? "computed in" : "rounded to", (i & DRAW_OF_BFLOAT) != 0 ? "bfloat16" : "float16");
}

double draws_suspect(const double suspicion[DRAW_SUSPECTS], struct err *why)
{
	static const char *const draws_so[DRAW_SUSPECTS] = {
	    [DRAW_RACE] = "draws likely tokens too often, because it divides probabilities by uniform noise instead of "
			  "exponential noise",
	    [DRAW_SHORT] = "uses a wrong probability (the rest of top_p, not the token's own) for the last token that "
			   "top-p keeps",
	    [DRAW_NO_LAST_K] = "never draws the last token that top-k keeps",
	    [DRAW_NO_LAST_P] = "never draws the last token that top-p keeps",
	    [DRAW_NO_LAST_OF_MANY] = "never draws the least likely kept token when three or more tokens are kept",
	    [DRAW_LIKELY_HALF] = "draws only from the more likely half of the kept tokens",
	    [DRAW_FIRST_HALF] = "draws only from the half of the kept tokens with the smaller indices",
	    [DRAW_SECOND_HALF] = "draws only from the half of the kept tokens with the larger indices",
	    [DRAW_LIKELY_HALF_OF_MANY] = "draws only from the more likely half of the kept tokens when many are kept",
	    [DRAW_FIRST_HALF_OF_MANY] = "draws only from the half of the kept tokens with the smaller indices when "
	                  "many are kept",
	    [DRAW_SECOND_HALF_OF_MANY] = "draws only from the half of the kept tokens with the larger indices when "
	                  "many are kept",
	    [DRAW_NO_FIRST_PLACE] = "never draws the kept token that comes first in the vocabulary",
	    [DRAW_NO_LAST_PLACE] = "never draws the kept token that comes last in the vocabulary",
	    [DRAW_LOWER_TOKENS] = "draws only from the first half of the vocabulary when this half has a kept token",
	    [DRAW_UPPER_TOKENS] = "draws only from the second half of the vocabulary when this half has a kept token",
	    [DRAW_LIKELIEST] = "draws only from the 1024 most likely tokens of a row",
	    [DRAW_LIKELIEST_4096] = "draws only from the 4096 most likely tokens of a row",
	    [DRAW_SAME] = "draws the same token from rows with the same probabilities",
	    [DRAW_NO_TIED] = "never draws the least likely kept tokens when several tokens share the "
	                  "lowest kept probability",
	    [DRAW_NO_TAIL] = "never draws the least likely kept tokens when thousands are kept",
	    [DRAW_NO_FIRST_TOKEN] = "never draws the first token of the vocabulary",
	    [DRAW_NO_LAST_TOKEN] = "never draws the last token of the vocabulary",
	    [DRAW_UNSCALED] = "draws the kept token that comes last in the vocabulary instead of each dropped token, "
			      "because its random number is not scaled by the sum of the kept probabilities",
	    [DRAW_SORTED_UNSCALED] = "draws the least likely kept token instead of each dropped token, because its random "
				     "number is not scaled by the sum of the kept probabilities",
	    [DRAW_UNSCALED_TWICE] = "draws the kept token that comes last in the vocabulary instead of each token that "
				    "top-k or top-p drops, because its random number is scaled for neither filter",
	    [DRAW_SORTED_UNSCALED_TWICE] = "draws the least likely kept token instead of each token that top-k or top-p "
					   "drops, because its random number is scaled for neither filter",
	    [DRAW_8_BITS] = "uses random numbers of only 8 bits",
	    [DRAW_11_BITS] = "uses random numbers of only 11 bits",
	    [DRAW_12_BITS] = "uses random numbers of only 12 bits",
	    [DRAW_SORTED_8_BITS] = "sorts tokens by probability, and uses random numbers of only 8 bits",
	    [DRAW_SORTED_11_BITS] = "sorts tokens by probability, and uses random numbers of only 11 bits",
	    [DRAW_SORTED_12_BITS] = "sorts tokens by probability, and uses random numbers of only 12 bits",
	    [DRAW_FLATTEST] = "draws unlikely tokens too often, as if probabilities were raised to the power 0.5",
	    [DRAW_FLATTER] = "draws unlikely tokens too often, as if probabilities were raised to the power 0.85",
	    [DRAW_SHARPER] = "draws likely tokens too often, as if probabilities were raised to the power 1.2",
	    [DRAW_SHARPEST] = "draws likely tokens too often, as if probabilities were raised to the power 2",
	};
	char sums[128];
	int worst = 0;

	for (int s = 1; s < DRAW_SUSPECTS; s++)
		worst = suspicion[s] > suspicion[worst] ? s : worst;
	double margin = fmax(suspicion[worst], 0) / log(DRAW_SUSPECTS / false_suspicion);

	describe_sums(worst, sums, sizeof sums);
	if (margin > 1)
		err_set(why,
		        "the samples do not follow the filtered probabilities: probably the reference %s; these "
		        "samples are e^%.1f times as likely from such a reference as from a correct sampler; a "
		        "correct sampler gives such samples in fewer than one case in 10^9",
		        draws_so[worst] != NULL ? draws_so[worst] : sums, suspicion[worst]);
	return margin;
}
