#include "kernels/sampling/draw_statistics.h"

#include <math.h>
#include <stdio.h>

#include "kernels/core/dtype_convert.h"

enum { BY = 3, TALLIES = DRAW_SHAPES * BY * DRAWS_WAYS, SPLITS = (1 << DRAWS_BUCKETS) / 2, STEPS = 32 };
enum { HALVES_FROM = 4 }; /* suspects that draw only half of the kept tokens are tested in rows with more than
			   * HALVES_FROM kept tokens */
enum { QUESTIONS = 2 * (TALLIES + DRAWS_GRIDS) * (SPLITS - 1) };

static const double false_alarm = 4e-10;    /* alpha: the probability of a false alarm for a set of draws */
static const double false_suspicion = 1e-9; /* beta: the probability of a false suspicion for a case */

static const char *const bucket_names[DRAWS_WAYS + 1][DRAWS_BUCKETS] = {
    {"the most likely token", "the second most likely token", "the third most likely token", "a less likely token"},
    {"a token in the first quarter of the probability mass (in the order of the vocabulary)",
     "a token in the second quarter of the probability mass (in the order of the vocabulary)",
     "a token in the third quarter of the probability mass (in the order of the vocabulary)",
     "a token in the last quarter of the probability mass (in the order of the vocabulary)"},
    {"the last kept token", "the second to last kept token", "the third to last kept token",
     "an earlier kept token"},
    {"a token in the first quarter of the probability mass (most likely tokens first)",
     "a token in the second quarter of the probability mass (most likely tokens first)",
     "a token in the third quarter of the probability mass (most likely tokens first)",
     "a token in the last quarter of the probability mass (most likely tokens first)"},
};
static const char *const shape_names[DRAW_SHAPES] = {
    "in which no token has a probability of 0.55 or more", "in which one token has a probability of 0.55 or more",
    "in which many tokens are kept"};
static const char *const by_names[BY] = {"", " and top-k decides which tokens are kept",
                                         " and top-p decides which tokens are kept"};

/* From `at` on, skips the blocks of BLOCK tokens that contain neither `token` nor a kept token. Returns the first token
 * after the skipped blocks, or the size of the vocabulary. This saves time, because most rows keep few tokens. */
static int64_t next_place(const struct filter *filter, const struct filter_kept *kept, int64_t at, int64_t token)
{
	enum { BLOCK = 128 };

	while (at < filter->vocab && at % BLOCK == 0) {
		int64_t end = filter->vocab - at < BLOCK ? filter->vocab : at + BLOCK;

		if ((token >= at && token < end) || filter_reaches(filter, at, end, kept->threshold))
			break;
		at = end;
	}
	return at;
}

static int bucket_at(int64_t index)
{
	return index < DRAWS_BUCKETS - 1 ? (int)index : DRAWS_BUCKETS - 1;
}

/* Counts the draw in the bucket of the token's rank. If `step` is 1, rank 0 is the most likely token. If `step` is -1,
 * rank 0 is the last kept token. */
static void count_ranks(struct draw *draw, int way, const struct filter *filter, const struct filter_kept *kept,
                        int64_t from, int step, int64_t token)
{
	double rest = 1;

	draw->bucket[way] = DRAWS_BUCKETS - 1;
	for (int i = 0; i < DRAWS_BUCKETS - 1 && i < kept->count; i++) {
		int64_t next = filter->order[from + i * step];

		draw->share[way][i] = filter->value[next] / kept->mass;
		rest -= draw->share[way][i];
		if (next == token)
			draw->bucket[way] = i;
	}
	draw->share[way][DRAWS_BUCKETS - 1] = kept->count < DRAWS_BUCKETS || rest < 0 ? 0 : rest;
}

/* Counts the draw in the bucket of the token's position. An implementation that keeps more tokens than this filter can
 * draw a token that this filter drops. Such a token counts at the position that it would have among the kept tokens. */
static void count_places(struct draw *draw, int way, const struct filter *filter, const struct filter_kept *kept,
                         int64_t token)
{
	double before = 0;

	for (int64_t v = next_place(filter, kept, 0, token); v < filter->vocab;
	     v = next_place(filter, kept, v + 1, token)) {
		double value = filter->value[v];
		bool kept_too = value > 0 && value >= kept->threshold;

		if (!kept_too && v != token)
			continue;
		int quarter = bucket_at((int64_t)(DRAWS_BUCKETS * (before + value / 2) / kept->mass));

		if (v == token)
			draw->bucket[way] = quarter;
		if (kept_too) {
			draw->share[way][quarter] += value / kept->mass;
			before += value;
		}
	}
}

/* Counts the draw in the bucket of the token's depth. An implementation that keeps more tokens than this filter can
 * draw a token that this filter drops. Such a token counts in the last bucket. */
static void count_depths(struct draw *draw, int way, const struct filter *filter, const struct filter_kept *kept,
                         int64_t token)
{
	draw->bucket[way] = DRAWS_BUCKETS - 1;
	for (int64_t i = 0; i < kept->count; i++) {
		double value = filter->value[filter->order[i]];
		int quarter = bucket_at((int64_t)(DRAWS_BUCKETS * (filter->before[i] + value / 2) / kept->mass));

		draw->share[way][quarter] += value / kept->mass;
		if (filter->order[i] == token)
			draw->bucket[way] = quarter;
	}
}

/* Counts the draw in the bucket of the token's position in a cell. There are 2^bits cells. A sampler whose random
 * number has `bits` bits draws only tokens next to the ends of cells. */
static void count_cells(struct draw *draw, int grid, int bits, const struct filter *filter,
                        const struct filter_kept *kept, int64_t token)
{
	double before = 0, cells = ldexp(1, bits);

	for (int64_t v = next_place(filter, kept, 0, token); v < filter->vocab;
	     v = next_place(filter, kept, v + 1, token)) {
		double value = filter->value[v];

		if (!(value > 0 && value >= kept->threshold) && v != token)
			continue;
		double at = (before + value / 2) / kept->mass * cells;
		int quarter = bucket_at((int64_t)(DRAWS_BUCKETS * (at - floor(at))));

		if (v == token)
			draw->cell[grid] = quarter;
		draw->cell_share[grid][quarter] += value / kept->mass;
		before += value;
	}
}

/* If many tokens are equally likely, counts the draw by its position in a cell, both for cells of two tokens and for
 * cells of four tokens. */
static void count_grids(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	double likeliest = filter->value[filter->order[0]];

	if (kept->count <= FILTER_DEEP || likeliest * FILTER_DEEP > kept->mass || kept->slack > 0)
		return;
	draw->gridded = true;
	for (int grid = 0; grid < DRAWS_GRIDS; grid++)
		count_cells(draw, grid, ilogb(kept->mass / likeliest) - 1 - grid, filter, kept, token);
}

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
static void ask(struct draw *draw, enum draw_suspect who, bool drawn, double share)
{
	if (share > 0 && share < 1)
		draw->suspicion[who] = suspicion_of(drawn, 0, share);
}

/* Adds the suspicion of a sampler that draws only half of the kept tokens. If fewer than five tokens are kept, the draw
 * is no evidence and adds nothing. */
static void ask_half(struct draw *draw, enum draw_suspect who, int64_t count, bool drawn, double share)
{
	if (count > HALVES_FROM && count <= FILTER_DEEP)
		ask(draw, who, drawn, share);
	if (count > FILTER_ORDERED && count <= FILTER_DEEP)
		ask(draw, who + (DRAW_LIKELY_HALF_OF_MANY - DRAW_LIKELY_HALF), drawn, share);
}

static double rounded(enum dtype dtype, double value)
{
	uint16_t bits;

	dtype_store(&bits, dtype, 0, value);
	return dtype_load(&bits, dtype, 0);
}

/* Adds the suspicions of two samplers that round the sums of the kept probabilities. Suspect `who` rounds to float16,
 * and the next suspect rounds to bfloat16. Both samplers draw a token with a probability that is the difference of two
 * rounded sums. `before` is the sum of the probabilities of the tokens before the drawn token, and `value` is the
 * probability of the drawn token. */
static void suspect_sums(struct draw *draw, enum draw_suspect who, const struct filter_kept *kept, double before,
                         double value)
{
	static const enum dtype dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16};

	for (int i = 0; i < 2; i++) {
		double suspect = rounded(dtypes[i], (before + value) / kept->mass) - rounded(dtypes[i], before / kept->mass);

		draw->suspicion[(int)who + i] = suspicion_of_drawn(suspect, value / kept->mass);
	}
}

/* Adds the suspicions of two samplers that draw the last kept token instead of each dropped token. Suspect `who` does so
 * for the tokens that the last filter drops, and the suspect after the next for all dropped tokens. `is_last` is true
 * if the last kept token was drawn, and `value` is the probability of this token. Adds nothing if no probability is
 * dropped. */
static void suspect_unscaled(struct draw *draw, enum draw_suspect who, const struct filter *filter,
			     const struct filter_kept *kept, bool is_last, double value)
{
	const double before[] = {kept->mass_before, filter->sum};

	for (int i = 0; i < 2; i++) {
		double dropped = before[i] - kept->mass;

		if (kept->count > 1 && dropped > 1e-3 * before[i])
			draw->suspicion[(int)who + 2 * i] =
			    suspicion_of(is_last, (value + dropped) / before[i], value / kept->mass);
	}
}

/* Adds the suspicions of two samplers whose random numbers are multiples of 2^-8 (suspect `who`) or 2^-11 (the next
 * suspect). Such a sampler draws a token with a probability that is proportional to the number of multiples in the
 * token's interval. For `before` and `value`, see suspect_sums. */
static void suspect_bits(struct draw *draw, enum draw_suspect who, const struct filter_kept *kept, double before,
			 double value)
{
	static const double numbers[] = {256, 2048};

	for (int i = 0; i < 2; i++) {
		double first = fmin(ceil(before / kept->mass * numbers[i]), numbers[i]);
		double end = fmin(ceil((before + value) / kept->mass * numbers[i]), numbers[i]);

		draw->suspicion[(int)who + i] = suspicion_of_drawn((end - first) / numbers[i], value / kept->mass);
	}
}

/* Adds the suspicions of samplers that never draw tokens of certain ranks. The filter must have kept at least two
 * tokens and sorted them. */
static void suspect_ranks(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	int64_t last = kept->count - 1, half = (kept->count + 1) / 2, rank = 0;

	while (rank < half && filter->order[rank] != token)
		rank++;
	ask_half(draw, DRAW_LIKELY_HALF, kept->count, rank == half, 1 - filter->before[half] / kept->mass);
	if (kept->count > DRAW_LIKELIEST_TOKENS) {
		while (rank < DRAW_LIKELIEST_TOKENS && filter->order[rank] != token)
			rank++;
		ask(draw, DRAW_LIKELIEST, rank >= DRAW_LIKELIEST_TOKENS,
		    1 - filter->before[DRAW_LIKELIEST_TOKENS] / kept->mass);
	}
	while (rank < last && filter->order[rank] != token)
		rank++;
	suspect_sums(draw, DRAW_SORTED_HALF_SUMS, kept, filter->before[rank], filter->value[token]);
	suspect_bits(draw, DRAW_SORTED_8_BITS, kept, filter->before[rank], filter->value[token]);
	suspect_unscaled(draw, DRAW_SORTED_UNSCALED, filter, kept, filter->order[last] == token,
			 filter->value[filter->order[last]]);
	if (kept->count > 2)
		ask(draw, DRAW_NO_LAST_OF_MANY, filter->order[last] == token,
		    filter->value[filter->order[last]] / kept->mass);
}

/* Adds the suspicions of samplers that never draw the least likely kept tokens, if several kept tokens have the
 * smallest probability. `share` is the total probability of these tokens. If `share` is small, the draw is no evidence
 * and adds nothing. */
static void suspect_least(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, double share,
                          int64_t token)
{
	bool is_least = filter->value[token] == kept->threshold;

	if (share < 0.25 || share < 1.5 * kept->threshold / kept->mass)
		return;
	if (kept->count <= FILTER_ORDERED)
		ask(draw, DRAW_NO_TIED, is_least, share);
	else if (kept->count > FILTER_DEEP)
		ask(draw, DRAW_NO_TAIL, is_least, share);
}

/* Adds the suspicions of samplers that never draw the first or the last token of the vocabulary, if that token is
 * kept. */
static void suspect_ends(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	double first = filter->value[0], last = filter->value[filter->vocab - 1];

	if (first >= kept->threshold)
		ask(draw, DRAW_NO_FIRST_TOKEN, token == 0, first / kept->mass);
	if (last >= kept->threshold)
		ask(draw, DRAW_NO_LAST_TOKEN, token == filter->vocab - 1, last / kept->mass);
}

/* Adds the suspicions of samplers that never draw tokens at certain positions, or whose cumulative sums are wrong. */
static void suspect_places(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	double first = 0, last = 0, below_half = 0, through_half = 0, lower = 0, sum = 0, before = 0, least = 0;
	int64_t half = kept->count / 2, seen = 0, at = 0;

	for (int64_t v = next_place(filter, kept, 0, token); v < filter->vocab;
	     v = next_place(filter, kept, v + 1, token)) {
		double value = filter->value[v];

		if (!(value > 0 && value >= kept->threshold))
			continue;
		first = seen == 0 ? value : first;
		last = value;
		before = v == token ? sum : before;
		sum += value;
		at = v == token ? seen : at;
		seen++;
		least += value == kept->threshold ? value : 0;
		below_half = seen <= half ? sum : below_half;
		through_half = seen <= kept->count - half ? sum : through_half;
		lower = v < filter->vocab / 2 ? sum : lower;
	}
	ask_half(draw, DRAW_FIRST_HALF, kept->count, at >= kept->count - half, 1 - through_half / kept->mass);
	ask_half(draw, DRAW_SECOND_HALF, kept->count, at < half, below_half / kept->mass);
	ask(draw, DRAW_NO_FIRST_PLACE, at == 0, first / kept->mass);
	ask(draw, DRAW_NO_LAST_PLACE, at == seen - 1, last / kept->mass);
	suspect_least(draw, filter, kept, least / kept->mass, token);
	suspect_ends(draw, filter, kept, token);
	suspect_sums(draw, DRAW_HALF_SUMS, kept, before, filter->value[token]);
	suspect_bits(draw, DRAW_8_BITS, kept, before, filter->value[token]);
	suspect_unscaled(draw, DRAW_UNSCALED, filter, kept, at == seen - 1, last);
	if (lower > 0 && lower < sum) {
		ask(draw, DRAW_LOWER_TOKENS, token >= filter->vocab / 2, 1 - lower / kept->mass);
		ask(draw, DRAW_UPPER_TOKENS, token < filter->vocab / 2, lower / kept->mass);
	}
}

/* Adds the suspicions of samplers that raise the kept probabilities to a power. */
static void suspect_powers(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	static const double exponents[] = {0.5, 0.85, 1.2, 2};
	enum { POWERS = sizeof exponents / sizeof exponents[0] };
	double power[POWERS] = {0}, sum[POWERS] = {0}, own[POWERS] = {0}, value = -1;

	for (int64_t v = next_place(filter, kept, 0, token); v < filter->vocab;
	     v = next_place(filter, kept, v + 1, token)) {
		if (!(filter->value[v] > 0 && filter->value[v] >= kept->threshold))
			continue;
		for (int i = 0; i < POWERS && filter->value[v] != value; i++)
			power[i] = pow(filter->value[v] / kept->mass, exponents[i]);
		value = filter->value[v];
		for (int i = 0; i < POWERS; i++) {
			sum[i] += power[i];
			own[i] = v == token ? power[i] : own[i];
		}
	}
	for (int i = 0; i < POWERS; i++)
		draw->suspicion[DRAW_FLATTEST + i] = suspicion_of_drawn(own[i] / sum[i], filter->value[token] / kept->mass);
}

/* Adds the suspicions of samplers whose top-k or top-p treats the last kept token wrongly. */
static void suspect_last(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	int64_t last = kept->count - 1;
	double share = filter->value[filter->order[last]] / kept->mass;
	bool is_last = token == filter->order[last];

	if (kept->by == FILTER_BY_TOP_K)
		draw->suspicion[DRAW_NO_LAST_K] = suspicion_of(is_last, 0, share);
	if (kept->by != FILTER_BY_TOP_P)
		return;
	draw->suspicion[DRAW_NO_LAST_P] = suspicion_of(is_last, 0, share);
	draw->suspicion[DRAW_SHORT] = suspicion_of(is_last, 1 - filter->before[last] / kept->limit, share);
}

static void suspect(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	if (kept->slack > 0)
		return;
	double first_share = filter->value[filter->order[0]] / kept->mass;

	draw->suspicion[DRAW_RACE] = suspicion_of(token == filter->order[0], race_share(filter, kept), first_share);
	suspect_places(draw, filter, kept, token);
	suspect_powers(draw, filter, kept, token);
	if (kept->count <= filter->ordered)
		suspect_ranks(draw, filter, kept, token);
	if (kept->count <= FILTER_ORDERED)
		suspect_last(draw, filter, kept, token);
}

struct draw draw_of(const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	struct draw draw = {.counted = kept->count > 1, .by = kept->by, .slack = kept->slack, .ways = 2};

	if (!draw.counted)
		return draw;
	if (filter->value[filter->order[0]] >= 0.55 * kept->mass)
		draw.shape = DRAW_STEEP;
	else if (kept->count > FILTER_ORDERED && filter->ordered >= kept->count &&
	         filter->value[filter->order[0]] < kept->mass / 32)
		draw.shape = DRAW_WIDE;
	count_ranks(&draw, 0, filter, kept, 0, 1, token);
	count_places(&draw, 1, filter, kept, token);
	if (draw.shape == DRAW_WIDE)
		count_depths(&draw, 2, filter, kept, token);
	else if (kept->count <= FILTER_ORDERED) /* if more tokens are kept, the last kept token is drawn too rarely to
						 * test it */
		count_ranks(&draw, 2, filter, kept, kept->count - 1, -1, token);
	draw.ways = draw.shape == DRAW_WIDE || kept->count <= FILTER_ORDERED ? 3 : 2;
	count_grids(&draw, filter, kept, token);
	suspect(&draw, filter, kept, token);
	return draw;
}

struct tally {
	double rows, slack;
	double observed[DRAWS_BUCKETS], expected[DRAWS_BUCKETS];
};

static void add(struct tally *tally, const struct draw *draw, int bucket, const double share[DRAWS_BUCKETS])
{
	tally->rows++;
	tally->slack += draw->slack;
	tally->observed[bucket]++;
	for (int b = 0; b < DRAWS_BUCKETS; b++)
		tally->expected[b] += share[b];
}

static double term(double x, double mean)
{
	return x <= 0 ? 0 : mean <= 0 ? INFINITY : x * log(x / mean);
}

static double divergence(double x, double mean)
{
	return term(x, mean) + term(1 - x, 1 - mean);
}

/* The split with the largest margin in any tally. Bit b of `split` is set if bucket b is on the side whose draws are
 * counted. */
struct worst_split {
	double margin;
	const struct tally *tally;
	int shape, by, way, split; /* way: -1 for the tallies that count draws by their position in a cell */
	double observed, expected;
};

static double side(const double buckets[DRAWS_BUCKETS], int split)
{
	double sum = 0;

	for (int b = 0; b < DRAWS_BUCKETS; b++)
		sum += split >> b & 1 ? buckets[b] : 0;
	return sum;
}

/* Returns the margin (draws_verdict.margin) of one split of the buckets into two sides. `observed` is the fraction of
 * draws on one side, and `expected` is the expected value of this fraction. Correct implementations may keep different
 * tokens, so the true fraction may differ from `expected` by up to `slack`. */
static double margin_of(double observed, double expected, double slack, double rows)
{
	double difference = fabs(observed - expected) - slack;
	double mean = expected + (observed > expected ? slack : -slack);

	if (difference <= 1e-9) /* a difference this small may come from rounding in the sums */
		return 0;
	return rows * divergence(observed, fmin(fmax(mean, 0), 1)) / log(QUESTIONS / false_alarm);
}

static void explain(const struct worst_split *worst, struct err *why)
{
	if (worst->way < 0) {
		err_set(why,
		        "the samples do not follow the filtered probabilities: of %.0f rows in which thousands of "
			"tokens are equally likely, %.1f %% drew tokens at regularly spaced positions (expected: %.1f %%), as happens if "
			"random numbers have too few bits; a correct sampler deviates this much in "
			"fewer "
			"than one case in 10^9",
		        worst->tally->rows, 100 * worst->observed, 100 * worst->expected);
		return;
	}
	int way = worst->shape == DRAW_WIDE && worst->way == 2 ? DRAWS_WAYS : worst->way;
	char drawn[256] = "";
	size_t at = 0;

	for (int b = 0; b < DRAWS_BUCKETS; b++)
		if (worst->split >> b & 1)
			at += (size_t)snprintf(drawn + at, sizeof drawn - at, "%s%s", at > 0 ? " or " : "",
			                       bucket_names[way][b]);
	err_set(why,
	        "the samples do not follow the filtered probabilities: of %.0f rows %s%s, %.1f %% drew %s (expected: "
	        "%.1f %%); a correct sampler deviates this much in fewer than one case in 10^9",
	        worst->tally->rows, shape_names[worst->shape], by_names[worst->by], 100 * worst->observed, drawn,
	        100 * worst->expected);
}

static void look(const struct tally *tally, int shape, int by, int way, struct worst_split *worst, double *distance)
{
	for (int split = 1; tally->rows > 0 && split < SPLITS; split++) {
		double observed = side(tally->observed, split) / tally->rows;
		double expected = fmin(side(tally->expected, split) / tally->rows, 1);
		double margin = margin_of(observed, expected, tally->slack / tally->rows, tally->rows);

		*distance = fmax(*distance, fabs(observed - expected));
		if (margin > worst->margin)
			*worst = (struct worst_split){margin, tally, shape, by, way, split, observed, expected};
	}
}

struct draws_verdict draws_judge(const struct draw *draws, int64_t count, struct err *why)
{
	struct tally tallies[DRAW_SHAPES][BY][DRAWS_WAYS] = {0};
	struct tally grids[DRAWS_GRIDS] = {0};
	struct draws_verdict verdict = {0};
	struct worst_split worst = {0};

	for (int64_t i = 0; i < count; i++) {
		const struct draw *draw = &draws[i];

		for (int way = 0; draw->counted && way < draw->ways; way++) {
			add(&tallies[draw->shape][0][way], draw, draw->bucket[way], draw->share[way]);
			if (draw->by != FILTER_BY_NONE)
				add(&tallies[draw->shape][draw->by][way], draw, draw->bucket[way], draw->share[way]);
		}
		for (int grid = 0; draw->gridded && grid < DRAWS_GRIDS; grid++)
			add(&grids[grid], draw, draw->cell[grid], draw->cell_share[grid]);
		for (int s = 0; s < DRAW_SUSPECTS; s++)
			verdict.suspicion[s] += draw->suspicion[s];
	}
	for (int grid = 0; grid < DRAWS_GRIDS; grid++)
		look(&grids[grid], 0, 0, -1, &worst, &verdict.distance);
	for (int i = 0; i < TALLIES; i++) {
		int shape = i / (BY * DRAWS_WAYS), by = i / DRAWS_WAYS % BY, way = i % DRAWS_WAYS;

		look(&tallies[shape][by][way], shape, by, way, &worst, &verdict.distance);
	}
	verdict.margin = worst.margin;
	if (verdict.margin > 1)
		explain(&worst, why);
	return verdict;
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
	    [DRAW_NO_TIED] = "never draws the least likely kept tokens when several tokens share the "
	                  "lowest kept probability",
	    [DRAW_NO_TAIL] = "never draws the least likely kept tokens when thousands are kept",
	    [DRAW_NO_FIRST_TOKEN] = "never draws the first token of the vocabulary",
	    [DRAW_NO_LAST_TOKEN] = "never draws the last token of the vocabulary",
	    [DRAW_HALF_SUMS] = "draws from cumulative probabilities that are rounded to float16",
	    [DRAW_BFLOAT_SUMS] = "draws from cumulative probabilities that are rounded to bfloat16",
	    [DRAW_SORTED_HALF_SUMS] = "sorts tokens by probability, and draws from cumulative probabilities that are "
				      "rounded to float16",
	    [DRAW_SORTED_BFLOAT_SUMS] = "sorts tokens by probability, and draws from cumulative probabilities that are "
					"rounded to bfloat16",
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
	    [DRAW_SORTED_8_BITS] = "sorts tokens by probability, and uses random numbers of only 8 bits",
	    [DRAW_SORTED_11_BITS] = "sorts tokens by probability, and uses random numbers of only 11 bits",
	    [DRAW_FLATTEST] = "draws unlikely tokens too often, as if probabilities were raised to the power 0.5",
	    [DRAW_FLATTER] = "draws unlikely tokens too often, as if probabilities were raised to the power 0.85",
	    [DRAW_SHARPER] = "draws likely tokens too often, as if probabilities were raised to the power 1.2",
	    [DRAW_SHARPEST] = "draws likely tokens too often, as if probabilities were raised to the power 2",
	};
	int worst = 0;

	for (int s = 1; s < DRAW_SUSPECTS; s++)
		worst = suspicion[s] > suspicion[worst] ? s : worst;
	double margin = fmax(suspicion[worst], 0) / log(DRAW_SUSPECTS / false_suspicion);

	if (margin > 1)
		err_set(why,
		        "the samples do not follow the filtered probabilities: probably the reference %s; these "
		        "samples are e^%.1f times as likely from such a reference as from a correct sampler; a "
		        "correct sampler gives such samples in fewer than one case in 10^9",
		        draws_so[worst], suspicion[worst]);
	return margin;
}
