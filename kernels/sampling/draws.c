#include "kernels/sampling/draws.h"

#include <math.h>
#include <stdio.h>

enum { BY = 3, TALLIES = DRAW_SHAPES * BY * DRAWS_WAYS, SPLITS = (1 << DRAWS_BUCKETS) / 2, STEPS = 32 };
enum { QUESTIONS = 2 * (TALLIES + DRAWS_GRIDS) * (SPLITS - 1) };

static const double false_alarm = 4e-10;    /* a set of draws: alpha */
static const double false_suspicion = 1e-9; /* a case: beta */

static const char *const bucket_names[DRAWS_WAYS + 1][DRAWS_BUCKETS] = {
    {"the most likely token", "the second most likely", "the third", "a later one"},
    {"from the first quarter of the vocabulary's probability", "from the second", "from the third", "from the last"},
    {"the last token that is kept", "the last but one", "the last but two", "an earlier one"},
    {"from the most likely tokens' quarter of the probability", "from the second", "from the third",
     "from the least likely tokens' quarter"},
};
static const char *const shape_names[DRAW_SHAPES] = {
    "none of whose tokens holds 0.55 or more", "one of whose tokens holds 0.55 or more",
    "in which many tokens are kept"};
static const char *const by_names[BY] = {"", ", where top-k decides what is kept",
                                         ", where top-p decides what is kept"};

static int bucket_at(int64_t index)
{
	return index < DRAWS_BUCKETS - 1 ? (int)index : DRAWS_BUCKETS - 1;
}

/* By rank (`step` 1, from the first on) or by rank from the boundary (`step` -1, from the last back). */
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

/* By place. A token that only a generous reading keeps falls where it would stand. */
static void count_places(struct draw *draw, int way, const struct filter *filter, const struct filter_kept *kept,
                         int64_t token)
{
	double before = 0;

	for (int64_t v = 0; v < filter->vocab; v++) {
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

/* By depth. A token that only a generous reading keeps is among the last. */
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

/* By the place within a cell, of as many cells as a random number of `bits` bits has values: such a number draws the
 * tokens at the cells' ends alone. */
static void count_cells(struct draw *draw, int grid, int bits, const struct filter *filter,
                        const struct filter_kept *kept, int64_t token)
{
	double before = 0, cells = ldexp(1, bits);

	for (int64_t v = 0; v < filter->vocab; v++) {
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

/* Where many tokens are alike, at the finest cells that two of them fill, and at the next coarser. */
static void count_grids(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	double likeliest = filter->value[filter->order[0]];

	if (kept->count <= FILTER_DEEP || likeliest * FILTER_DEEP > kept->mass || kept->slack > 0)
		return;
	draw->gridded = true;
	for (int grid = 0; grid < DRAWS_GRIDS; grid++)
		count_cells(draw, grid, ilogb(kept->mass / likeliest) - 1 - grid, filter, kept, token);
}

/* A suspect says how likely it is to draw the token that is asked about; what the draw itself says follows. */
static double suspicion_of(bool drawn, double suspect, double right)
{
	suspect = fmin(fmax(suspect, 0.01 * right), 1 - 0.01 * (1 - right)); /* once in a hundred draws it is right */
	return drawn ? log(suspect / right) : log((1 - suspect) / (1 - right));
}

/* How often the most likely token has the largest probability / noise of all that are kept, noise being uniform. */
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

static void suspect(struct draw *draw, const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	int64_t last = kept->count - 1;

	if (kept->slack > 0)
		return;
	double first_share = filter->value[filter->order[0]] / kept->mass;

	draw->suspicion[DRAW_RACE] = suspicion_of(token == filter->order[0], race_share(filter, kept), first_share);
	if (kept->count > FILTER_ORDERED)
		return;
	double last_share = filter->value[filter->order[last]] / kept->mass;
	bool is_last = token == filter->order[last];

	if (kept->by == FILTER_BY_TOP_K)
		draw->suspicion[DRAW_NO_LAST_K] = suspicion_of(is_last, 0, last_share);
	if (kept->by != FILTER_BY_TOP_P)
		return;
	draw->suspicion[DRAW_NO_LAST_P] = suspicion_of(is_last, 0, last_share);
	draw->suspicion[DRAW_SHORT] = suspicion_of(is_last, 1 - filter->before[last] / kept->limit, last_share);
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
	else if (kept->count <= FILTER_ORDERED) /* the last of more than that says next to nothing */
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

/* The worst split of all tallies; bit b of `split` is set if bucket b is on its side. */
struct worst_split {
	double margin;
	const struct tally *tally;
	int shape, by, way, split; /* way -1: by the place within a cell */
	double observed, expected;
};

static double side(const double buckets[DRAWS_BUCKETS], int split)
{
	double sum = 0;

	for (int b = 0; b < DRAWS_BUCKETS; b++)
		sum += split >> b & 1 ? buckets[b] : 0;
	return sum;
}

/* What may have been kept or not may move the mean by as much as the slack. */
static double margin_of(double observed, double expected, double slack, double rows)
{
	double difference = fabs(observed - expected) - slack;
	double mean = expected + (observed > expected ? slack : -slack);

	if (difference <= 1e-9) /* rounding of the sums */
		return 0;
	return rows * divergence(observed, fmin(fmax(mean, 0), 1)) / log(QUESTIONS / false_alarm);
}

static void explain(const struct worst_split *worst, struct err *why)
{
	if (worst->way < 0) {
		err_set(why,
		        "the samples do not follow the filtered probabilities: of %.0f rows in which a great many "
		        "tokens are alike, %.1f %% drew tokens at certain even distances, as a random number of too "
		        "few bits does, where %.1f %% is to be expected; a correct sampler strays this far in fewer "
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
	        "the samples do not follow the filtered probabilities: of %.0f rows %s%s, %.1f %% drew %s, "
	        "where %.1f %% is to be expected; a correct sampler strays this far in fewer than one case in 10^9",
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
	    [DRAW_RACE] = "takes the largest of probability / uniform noise, which is to be exponential noise: likely "
	                  "tokens come too often",
	    [DRAW_SHORT] = "gives the last token of a nucleus what is left of top_p, and not its probability",
	    [DRAW_NO_LAST_K] = "never draws the last token that top-k keeps",
	    [DRAW_NO_LAST_P] = "never draws the last token that top-p keeps",
	};
	int worst = 0;

	for (int s = 1; s < DRAW_SUSPECTS; s++)
		worst = suspicion[s] > suspicion[worst] ? s : worst;
	double margin = fmax(suspicion[worst], 0) / log(DRAW_SUSPECTS / false_suspicion);

	if (margin > 1)
		err_set(why,
		        "the samples do not follow the filtered probabilities: they are e^%.1f times as likely to come "
		        "from a sampler that %s; a correct one looks so in fewer than one case in 10^9",
		        suspicion[worst], draws_so[worst]);
	return margin;
}
