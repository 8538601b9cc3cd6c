#include "kernels/sampling/draws.h"

#include <math.h>
#include <stdio.h>

enum { BY = 3, TALLIES = DRAW_SHAPES * BY * DRAWS_WAYS, SPLITS = (1 << DRAWS_BUCKETS) / 2 };

static const double false_alarm = 1e-9; /* a case */

static const char *const bucket_names[DRAWS_WAYS + 1][DRAWS_BUCKETS] = {
    {"the most likely token", "the second most likely", "the third", "a later one"},
    {"from the first quarter of the vocabulary's probability", "from the second", "from the third", "from the last"},
    {"the last token that is kept", "the last but one", "the last but two", "an earlier one"},
    {"from the most likely tokens' quarter of the probability", "from the second", "from the third",
     "from the least likely tokens' quarter"},
};
static const char *const shape_names[DRAW_SHAPES] = {
    "none of whose tokens holds 0.7 or more", "one of whose tokens holds 0.7 or more", "in which many tokens are kept"};
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

struct draw draw_of(const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	struct draw draw = {.counted = kept->count > 1, .by = kept->by, .slack = kept->slack, .ways = 2};

	if (!draw.counted)
		return draw;
	if (filter->value[filter->order[0]] >= 0.7 * kept->mass)
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
	return draw;
}

struct tally {
	double rows, slack;
	double observed[DRAWS_BUCKETS], expected[DRAWS_BUCKETS];
};

static void add(struct tally *tally, const struct draw *draw, int way)
{
	tally->rows++;
	tally->slack += draw->slack;
	tally->observed[draw->bucket[way]]++;
	for (int b = 0; b < DRAWS_BUCKETS; b++)
		tally->expected[b] += draw->share[way][b];
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
	int shape, by, way, split;
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
	return rows * divergence(observed, fmin(fmax(mean, 0), 1)) / log(2.0 * TALLIES * (SPLITS - 1) / false_alarm);
}

static void explain(const struct worst_split *worst, struct err *why)
{
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
	struct draws_verdict verdict = {0};
	struct worst_split worst = {0};

	for (int64_t i = 0; i < count; i++)
		for (int way = 0; draws[i].counted && way < draws[i].ways; way++) {
			add(&tallies[draws[i].shape][0][way], &draws[i], way);
			if (draws[i].by != FILTER_BY_NONE)
				add(&tallies[draws[i].shape][draws[i].by][way], &draws[i], way);
		}
	for (int i = 0; i < TALLIES; i++) {
		int shape = i / (BY * DRAWS_WAYS), by = i / DRAWS_WAYS % BY, way = i % DRAWS_WAYS;

		look(&tallies[shape][by][way], shape, by, way, &worst, &verdict.distance);
	}
	verdict.margin = worst.margin;
	if (verdict.margin > 1)
		explain(&worst, why);
	return verdict;
}
