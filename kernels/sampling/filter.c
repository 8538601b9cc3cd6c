/* filter - applies top-k, top-p and min-p to one row. The function filter_row takes tokens from a heap, by decreasing
 * probability, until it has as many tokens as the filter needs. Most rows have few likely tokens, so one pass over the
 * vocabulary is usually enough. */
#include "kernels/sampling/filter.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/core/simd.h"

/* sum_error is the error of a float32 sum over a whole vocabulary. Likewise, product_error is the relative error of a
 * float32 product. */
static const double sum_error = 1e-4, product_error = 1e-6;

int filter_open(struct filter *filter, int64_t vocab, struct err *err)
{
	size_t count = (size_t)vocab;

	*filter = (struct filter){.vocab = vocab};
	filter->value = calloc(count, sizeof *filter->value);
	filter->heap = calloc(count, sizeof *filter->heap);
	filter->order = calloc(count, sizeof *filter->order);
	filter->before = calloc(count, sizeof *filter->before);
	filter->placed = calloc(count, sizeof *filter->placed);
	if (filter->value != NULL && filter->heap != NULL && filter->order != NULL && filter->before != NULL &&
	    filter->placed != NULL)
		return 0;
	filter_close(filter);
	return err_set(err, "no memory to sort a vocabulary of %lld tokens", (long long)vocab);
}

void filter_close(struct filter *filter)
{
	free(filter->value);
	free(filter->heap);
	free(filter->order);
	free(filter->before);
	free(filter->placed);
	*filter = (struct filter){0};
}

WIDE int64_t filter_most_likely(const struct filter *filter)
{
	const double *values = filter->value;
	double largest = 0;
	int64_t odd = 0, token = 0;

#pragma omp simd reduction(max : largest) reduction(+ : odd)
	for (int64_t i = 0; i < filter->vocab; i++) {
		odd += !(values[i] >= 0) | !(values[i] < (double)INFINITY);
		largest = values[i] > largest ? values[i] : largest;
	}
	if (odd > 0 || largest == 0)
		return 0;
	while (values[token] != largest)
		token++;
	return token;
}

/* Returns true if a token from `first` to `end` - 1 has a probability of at least `least`. */
WIDE static bool reaches(const struct filter *filter, int64_t first, int64_t end, double least)
{
	const double *values = filter->value;
	int64_t found = 0;

#pragma omp simd reduction(+ : found)
	for (int64_t i = first; i < end; i++)
		found += values[i] >= least;
	return found > 0;
}

void filter_place(struct filter *filter, const struct filter_kept *kept)
{
	enum { BLOCK = 128 };
	int64_t count = 0;

	for (int64_t first = 0; first < filter->vocab; first += BLOCK) {
		int64_t end = filter->vocab - first < BLOCK ? filter->vocab : first + BLOCK;

		if (!reaches(filter, first, end, kept->threshold))
			continue;
		for (int64_t v = first; v < end; v++)
			if (filter->value[v] >= kept->threshold)
				filter->placed[count++] = (struct filter_token){v, filter->value[v]};
	}
	filter->placed_count = count;
}

static bool more_likely(const struct filter *filter, int64_t a, int64_t b)
{
	return filter->value[a] > filter->value[b] || (filter->value[a] == filter->value[b] && a < b);
}

static void sink(struct filter *filter, int64_t at)
{
	int64_t token = filter->heap[at];

	for (int64_t child; (child = 2 * at + 1) < filter->left; at = child) {
		if (child + 1 < filter->left && more_likely(filter, filter->heap[child + 1], filter->heap[child]))
			child++;
		if (!more_likely(filter, filter->heap[child], token))
			break;
		filter->heap[at] = filter->heap[child];
	}
	filter->heap[at] = token;
}

/* Puts the tokens with probabilities above 0 on the heap, and sums their probabilities. Returns false if the row is not
 * a distribution. */
static bool gather(struct filter *filter)
{
	double sum = 0, least = INFINITY;
	int64_t left = 0;

	filter->ordered = 0;
	for (int64_t i = 0; i < filter->vocab; i++) {
		double value = filter->value[i];

		if (value == 0)
			continue;
		if (!(value > 0 && value < INFINITY))
			return false;
		sum += value;
		least = value < least ? value : least;
		filter->heap[left++] = i;
	}
	filter->left = left;
	filter->sum = sum;
	filter->least = least;
	for (int64_t at = filter->left / 2; at-- > 0;)
		sink(filter, at);
	return filter->left > 0;
}

/* Moves the most likely token of the heap to the end of `order`. */
static void take(struct filter *filter)
{
	int64_t at = filter->ordered++, token = filter->heap[0];

	filter->order[at] = token;
	filter->before[at] = at == 0 ? 0 : filter->before[at - 1] + filter->value[filter->order[at - 1]];
	filter->heap[0] = filter->heap[--filter->left];
	if (filter->left > 0)
		sink(filter, 0);
}

/* Returns the probability of the token at rank `rank`, or 0 if there is no such token. Sorts more tokens if
 * necessary. */
static double nth(struct filter *filter, int64_t rank)
{
	while (filter->ordered <= rank && filter->left > 0)
		take(filter);
	return rank < filter->ordered ? filter->value[filter->order[rank]] : 0;
}

/* Returns how many tokens are more likely than the token at `rank`. If `equal` is true, also counts all tokens that are
 * exactly as likely as this token. */
static int64_t through(struct filter *filter, int64_t rank, bool equal)
{
	double value = nth(filter, rank);

	while (equal && nth(filter, rank + 1) == value && value > 0)
		rank++;
	while (!equal && rank >= 0 && nth(filter, rank) == value)
		rank--;
	return rank + 1;
}

/* Returns the sum of the `count` largest probabilities of the row. */
static double sum_of(struct filter *filter, int64_t count)
{
	double last = count == 0 ? 0 : nth(filter, count - 1); /* nth sorts the first `count` tokens */

	return count == 0 ? 0 : filter->before[count - 1] + last;
}

/* The numbers of tokens that three correct implementations of the filter keep: the strictest implementation, the usual
 * one, and the most generous one. The kept tokens are the most likely ones. */
struct counts {
	int64_t strict, kept, generous;
};

static struct counts all_of(const struct filter *filter)
{
	int64_t count = filter->ordered + filter->left;

	return (struct counts){count, count, count};
}

static struct counts top_k(struct filter *filter, int64_t k)
{
	struct counts counts = all_of(filter);

	if (k <= 0 || k >= counts.kept)
		return counts;
	counts.kept = counts.generous = through(filter, k - 1, true);
	counts.strict = counts.kept == k ? k : through(filter, k - 1, false);
	return counts;
}

/* Returns how many of the `room` most likely tokens a top-p of `limit` keeps. It keeps a token if the probabilities of
 * all tokens before it add up to at most `limit`, or if the token ties with a kept token. */
static int64_t reach(struct filter *filter, int64_t room, double limit)
{
	int64_t count = 1;

	while (count < room && nth(filter, count) > 0 &&
	       (filter->before[count] <= limit ||
	        filter->value[filter->order[count]] == filter->value[filter->order[count - 1]]))
		count++;
	return count;
}

/* Applies top-p to the tokens that top-k kept. `whole` is true if top-k dropped no token. */
static struct counts top_p(struct filter *filter, struct counts from, int64_t k, bool whole, double p)
{
	double most = whole ? 1 : sum_of(filter, from.generous);
	double fewest = whole ? 1 : sum_of(filter, k < from.generous ? k : from.generous);
	double error = p > 0 ? sum_error : 0;
	struct counts counts = from;

	if (p >= 1 || isnan(p))
		return counts;
	if (p < 0)
		p = 0;
	counts.generous = reach(filter, from.generous, (p + error) * most);
	counts.kept = reach(filter, from.kept, p * most);
	counts.strict = 0; /* `strict` counts tied tokens only if a filter must keep all of them */
	while (counts.strict < from.strict && counts.strict < counts.kept) {
		int64_t end = through(filter, counts.strict, true);

		if (filter->before[end - 1] > (p - error) * fewest && end > 1)
			break;
		counts.strict = end;
	}
	if (counts.strict > from.strict)
		counts.strict = from.strict;
	return counts;
}

static struct counts min_p(struct filter *filter, double ratio)
{
	double limit = fmin(ratio, 1) * nth(filter, 0);
	double sure = (double)(float)limit == limit ? limit : limit * (1 + product_error);
	struct counts counts = all_of(filter);
	int64_t rank = 0;

	if (!(ratio > 0))
		return counts;
	while (nth(filter, rank) > 0 && nth(filter, rank) >= sure)
		rank++;
	counts.strict = rank > 0 ? rank : 1; /* even if a reference rounds the limit up, it keeps the most likely
					      * token */
	while (nth(filter, rank) > 0 && nth(filter, rank) >= limit)
		rank++;
	counts.kept = rank;
	while (nth(filter, rank) > 0 && nth(filter, rank) >= limit * (1 - product_error))
		rank++;
	counts.generous = rank;
	return counts;
}

struct filter_kept filter_row(struct filter *filter, const struct filter_bounds *bounds)
{
	struct filter_kept kept = {.defined = gather(filter)};

	if (!kept.defined)
		return kept;
	int64_t drawable = filter->left;
	struct counts counts = all_of(filter);
	double from = 1; /* the total probability of the tokens to which top-p applies */

	bool whole = !bounds->has_top_k || bounds->top_k <= 0 || bounds->top_k >= filter->vocab;

	if (!whole)
		counts = top_k(filter, bounds->top_k);
	kept.by = counts.kept < drawable ? FILTER_BY_TOP_K : FILTER_BY_NONE;
	if (bounds->has_top_p) {
		struct counts left = top_p(filter, counts, bounds->top_k, whole, bounds->top_p);

		from = whole ? 1 : sum_of(filter, counts.kept);
		kept.by = left.kept < counts.kept ? FILTER_BY_TOP_P : kept.by;
		counts = left;
	}
	if (bounds->has_min_p)
		counts = min_p(filter, bounds->min_p);
	nth(filter, (counts.kept <= FILTER_ORDERED  ? FILTER_ORDERED
	             : counts.kept <= FILTER_SORTED ? counts.kept
	                                            : FILTER_DEEP + 1) -
			1);
	kept.count = counts.kept;
	kept.threshold = counts.kept == drawable ? filter->least : nth(filter, counts.kept - 1);
	kept.least = counts.generous == drawable ? filter->least : nth(filter, counts.generous - 1);
	kept.mass = counts.kept == drawable ? filter->sum : sum_of(filter, counts.kept);
	kept.limit = kept.by == FILTER_BY_TOP_P ? fmax(bounds->top_p, 0) * from : kept.mass;
	kept.mass_before = bounds->has_top_p ? from : filter->sum;
	if (counts.strict < counts.generous) {
		double generous = counts.generous == drawable ? filter->sum : sum_of(filter, counts.generous);

		kept.slack = 1 - sum_of(filter, counts.strict) / generous;
	}
	return kept;
}
