#include "kernels/sampling/draw_statistics.h"

#include <math.h>
#include <stdio.h>


enum { BY = 3, TALLIES = DRAWS_TALLIES - DRAWS_GRIDS, SPLITS = (1 << DRAWS_BUCKETS) / 2 };
enum { QUESTIONS = 2 * DRAWS_TALLIES * (SPLITS - 1) };

/* DRAW_ANY stands for the rows of all kinds together. Of the ways to define buckets, only the first ANY_WAYS, rank and
 * position, are used for DRAW_ANY. */
enum { DRAW_ANY = DRAW_SHAPES, ANY_WAYS = 2 };
_Static_assert(TALLIES == BY * (DRAW_SHAPES * DRAWS_WAYS + ANY_WAYS), "each kind of rows, filter and way has a tally");

static const double false_alarm = 2.9e-10; /* alpha: the probability of a false alarm for a set of draws */

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
static const char *const shape_names[DRAW_ANY + 1] = {
    " in which no token has a probability of 0.55 or more", " in which one token has a probability of 0.55 or more",
    " in which many tokens are kept", ""};
static const char *const by_names[BY] = {"", "top-k decides which tokens are kept", "top-p decides which tokens are kept"};

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
	double half = filter->value[token] / 2, before = 0, at = half;

	for (int64_t i = 0; i < filter->placed_count; i++) {
		double value = filter->placed[i].value;
		int quarter = bucket_at((int64_t)(DRAWS_BUCKETS * (before + value / 2) / kept->mass));

		draw->share[way][quarter] += value / kept->mass;
		before += value;
		at = filter->placed[i].token < token ? before + half : at;
	}
	draw->bucket[way] = bucket_at((int64_t)(DRAWS_BUCKETS * at / kept->mass));
}

/* Counts the draw in the bucket of the token's depth: the sum of the probabilities of all more likely tokens, and half
 * of its own. An implementation that keeps more tokens than this filter can draw a token that this filter drops. Such a
 * token counts in the last bucket. */
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

/* Counts the draw in the bucket of the token's position in a cell. The cells are 2^bits equal parts of the sum of the
 * kept probabilities. A sampler whose random number has `bits` bits draws only tokens next to the ends of cells. */
static void count_cells(struct draw *draw, int grid, int bits, const struct filter *filter,
                        const struct filter_kept *kept, int64_t token)
{
	double before = 0, cells = ldexp(1, bits);

	for (int64_t i = 0; i < filter->placed_count; i++) {
		int64_t v = filter->placed[i].token;
		double value = filter->placed[i].value;
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

struct draw draw_of(struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	struct draw draw = {.counted = kept->count > 1, .by = kept->by, .slack = kept->slack, .ways = 2};

	if (!draw.counted)
		return draw;
	if (filter->value[filter->order[0]] >= 0.55 * kept->mass)
		draw.shape = DRAW_STEEP;
	else if (kept->count > FILTER_ORDERED && filter->ordered >= kept->count &&
	         filter->value[filter->order[0]] < kept->mass / 32)
		draw.shape = DRAW_WIDE;
	filter_place(filter, kept);
	count_ranks(&draw, 0, filter, kept, 0, 1, token);
	count_places(&draw, 1, filter, kept, token);
	if (draw.shape == DRAW_WIDE)
		count_depths(&draw, 2, filter, kept, token);
	else if (kept->count <= FILTER_ORDERED) /* if more tokens are kept, the last kept token is drawn too rarely to
						 * test it */
		count_ranks(&draw, 2, filter, kept, kept->count - 1, -1, token);
	draw.ways = draw.shape == DRAW_WIDE || kept->count <= FILTER_ORDERED ? 3 : 2;
	count_grids(&draw, filter, kept, token);
	draw_suspicions(filter, kept, token, draw.suspicion);
	return draw;
}

/* Returns the index of the tally for rows of kind `shape`, for the filter `by` that determines the last kept token (0:
 * any filter), and for one way to define the buckets. The tallies that count draws by their position in a cell come
 * after these tallies. */
static int tally_index(int shape, int by, int way)
{
	return shape == DRAW_ANY ? DRAW_SHAPES * BY * DRAWS_WAYS + by * ANY_WAYS + way : (shape * BY + by) * DRAWS_WAYS + way;
}

static void add(struct draws_tally *tally, const struct draw *draw, int bucket, const double share[DRAWS_BUCKETS])
{
	tally->rows++;
	tally->slack += draw->slack;
	tally->observed[bucket]++;
	for (int b = 0; b < DRAWS_BUCKETS; b++)
		tally->expected[b] += share[b];
}

/* Counts the draw, for one way to define the buckets, in two tallies of `shape` (the kind of the row, or DRAW_ANY): in
 * the tally for any filter, and in the tally for the filter that determines the last kept token, if there is one. */
static void add_by(struct draws *sum, const struct draw *draw, int shape, int way)
{
	add(&sum->tallies[tally_index(shape, 0, way)], draw, draw->bucket[way], draw->share[way]);
	if (draw->by != FILTER_BY_NONE)
		add(&sum->tallies[tally_index(shape, draw->by, way)], draw, draw->bucket[way], draw->share[way]);
}

struct draws draws_count(const struct draw *draws, int64_t count)
{
	struct draws sum = {0};

	for (int64_t i = 0; i < count; i++) {
		const struct draw *draw = &draws[i];

		for (int way = 0; draw->counted && way < draw->ways; way++) {
			add_by(&sum, draw, draw->shape, way);
			if (way < ANY_WAYS)
				add_by(&sum, draw, DRAW_ANY, way);
		}
		for (int grid = 0; draw->gridded && grid < DRAWS_GRIDS; grid++)
			add(&sum.tallies[TALLIES + grid], draw, draw->cell[grid], draw->cell_share[grid]);
		for (int who = 0; who < DRAW_SUSPECTS; who++)
			sum.suspicion[who] += draw->suspicion[who];
	}
	return sum;
}

void draws_add(struct draws *sum, const struct draws *more)
{
	for (int i = 0; i < DRAWS_TALLIES; i++) {
		sum->tallies[i].rows += more->tallies[i].rows;
		sum->tallies[i].slack += more->tallies[i].slack;
		for (int b = 0; b < DRAWS_BUCKETS; b++) {
			sum->tallies[i].observed[b] += more->tallies[i].observed[b];
			sum->tallies[i].expected[b] += more->tallies[i].expected[b];
		}
	}
	for (int who = 0; who < DRAW_SUSPECTS; who++)
		sum->suspicion[who] += more->suspicion[who];
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
	const struct draws_tally *tally;
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
	        "the samples do not follow the filtered probabilities: of %.0f rows%s%s%s, %.1f %% drew %s (expected: "
	        "%.1f %%); a correct sampler deviates this much in fewer than one case in 10^9",
	        worst->tally->rows, shape_names[worst->shape],
		worst->by == 0 ? "" : worst->shape == DRAW_ANY ? " in which " : " and ", by_names[worst->by],
	        100 * worst->observed, drawn, 100 * worst->expected);
}

static void look(const struct draws_tally *tally, int shape, int by, int way, struct worst_split *worst, double *distance)
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

struct draws_verdict draws_judge(const struct draws *draws, struct err *why)
{
	struct draws_verdict verdict = {0};
	struct worst_split worst = {0};

	for (int grid = 0; grid < DRAWS_GRIDS; grid++)
		look(&draws->tallies[TALLIES + grid], 0, 0, -1, &worst, &verdict.distance);
	for (int shape = 0; shape <= DRAW_ANY; shape++)
		for (int by = 0; by < BY; by++)
			for (int way = 0; way < (shape == DRAW_ANY ? ANY_WAYS : DRAWS_WAYS); way++)
				look(&draws->tallies[tally_index(shape, by, way)], shape, by, way, &worst, &verdict.distance);
	verdict.margin = worst.margin;
	if (verdict.margin > 1)
		explain(&worst, why);
	return verdict;
}
