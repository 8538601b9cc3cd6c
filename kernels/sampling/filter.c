/* filter - applies top-k, top-p and min-p to one row. The function filter_row divides the tokens into buckets of
 * similar probabilities. It then sorts one bucket after the other, the most likely tokens first, until it has as many
 * sorted tokens as the filter needs. Most filters need few tokens. */
#include "kernels/sampling/filter.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/simd.h"

/* sum_error is the error of a float32 sum over a whole vocabulary. Likewise, product_error is the relative error of a
 * float32 product. */
static const double sum_error = 1e-4, product_error = 1e-6;

/* A bucket contains the probabilities that agree in their exponent and in the first eight bits of their mantissa.
 * Bucket 0 contains the largest probability. The buckets cover 32 octaves; the last one also contains all smaller
 * probabilities. RUN is the number of tokens that are sorted by insertion. */
enum { BUCKETS = 8192, DROPPED_BITS = 44, RUN = 16 };

struct filter_buckets {
	int64_t end[BUCKETS]; /* the index in `order` after the last token of the bucket */
	int64_t first;        /* the leading bits of the largest probability */
	int64_t next;         /* the first bucket that is not sorted */
	int64_t sorted;       /* the number of tokens in the sorted buckets */
};

int filter_open(struct filter *filter, int64_t vocab, struct err *err)
{
	size_t count = (size_t)vocab;

	*filter = (struct filter){.vocab = vocab};
	filter->value = calloc(count, sizeof *filter->value);
	filter->order = calloc(count, sizeof *filter->order);
	filter->before = calloc(count, sizeof *filter->before);
	filter->buckets = calloc(1, sizeof *filter->buckets);
	filter->merged = calloc(count, sizeof *filter->merged);
	filter->placed = calloc(count, sizeof *filter->placed);
	if (filter->value != NULL && filter->order != NULL && filter->before != NULL && filter->buckets != NULL &&
	    filter->merged != NULL && filter->placed != NULL)
		return 0;
	filter_close(filter);
	return err_set(err, "no memory to sort a vocabulary of %lld tokens", (long long)vocab);
}

void filter_close(struct filter *filter)
{
	free(filter->value);
	free(filter->order);
	free(filter->before);
	free(filter->buckets);
	free(filter->merged);
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

static int64_t leading_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return (int64_t)(bits >> DROPPED_BITS);
}

static int64_t bucket_of(const struct filter_buckets *buckets, double value)
{
	int64_t bucket = buckets->first - leading_bits(value);

	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* Writes the tokens with probabilities above 0 to `order`, bucket by bucket. In a bucket, they are in the order of the
 * vocabulary. */
static void fill_buckets(struct filter *filter, double largest)
{
	struct filter_buckets *buckets = filter->buckets;
	int64_t start = 0;

	*buckets = (struct filter_buckets){.first = leading_bits(largest)};
	for (int64_t i = 0; i < filter->vocab; i++)
		if (filter->value[i] > 0)
			buckets->end[bucket_of(buckets, filter->value[i])]++;
	for (int i = 0; i < BUCKETS; i++) {
		int64_t count = buckets->end[i];

		buckets->end[i] = start;
		start += count;
	}
	for (int64_t i = 0; i < filter->vocab; i++)
		if (filter->value[i] > 0)
			filter->order[buckets->end[bucket_of(buckets, filter->value[i])]++] = i;
}

/* Fills the buckets, and sums the probabilities. Returns false if the row is not a distribution. */
static bool gather(struct filter *filter)
{
	double sum = 0, least = INFINITY, largest = 0;
	int64_t count = 0;

	filter->ordered = 0;
	for (int64_t i = 0; i < filter->vocab; i++) {
		double value = filter->value[i];

		if (value == 0)
			continue;
		if (!(value > 0 && value < INFINITY))
			return false;
		sum += value;
		least = value < least ? value : least;
		largest = value > largest ? value : largest;
		count++;
	}
	filter->count = count;
	filter->sum = sum;
	filter->least = least;
	fill_buckets(filter, largest);
	return count > 0;
}

/* Sorts a few tokens by decreasing probability. Equally likely tokens keep their order. */
static void insert(const double *values, int64_t *tokens, int64_t count)
{
	for (int64_t i = 1; i < count; i++) {
		int64_t token = tokens[i], at = i;

		for (; at > 0 && values[tokens[at - 1]] < values[token]; at--)
			tokens[at] = tokens[at - 1];
		tokens[at] = token;
	}
}

/* Merges the first `middle` tokens, which are sorted, with the others, which are also sorted. */
static void merge(struct filter *filter, int64_t *tokens, int64_t middle, int64_t count)
{
	const double *values = filter->value;
	const int64_t *left = filter->merged;
	int64_t out = 0, from = middle;

	if (values[tokens[middle - 1]] >= values[tokens[middle]])
		return;
	memcpy(filter->merged, tokens, (size_t)middle * sizeof *tokens);
	for (int64_t i = 0; i < middle;) {
		bool right = from < count && values[tokens[from]] > values[left[i]];

		tokens[out++] = right ? tokens[from++] : left[i++];
	}
}

static void sort_tokens(struct filter *filter, int64_t *tokens, int64_t count)
{
	for (int64_t at = 0; at < count; at += RUN)
		insert(filter->value, tokens + at, count - at < RUN ? count - at : RUN);
	for (int64_t width = RUN; width < count; width *= 2)
		for (int64_t at = 0; at + width < count; at += 2 * width)
			merge(filter, tokens + at, width, count - at < 2 * width ? count - at : 2 * width);
}

static void sort_next_bucket(struct filter *filter)
{
	struct filter_buckets *buckets = filter->buckets;
	int64_t from = buckets->sorted;

	while (buckets->end[buckets->next] == from)
		buckets->next++;
	buckets->sorted = buckets->end[buckets->next++];
	sort_tokens(filter, filter->order + from, buckets->sorted - from);
}

/* Adds the most likely of the remaining tokens to the sorted ones. */
static void take(struct filter *filter)
{
	int64_t at = filter->ordered++;

	if (at == filter->buckets->sorted)
		sort_next_bucket(filter);
	filter->before[at] = at == 0 ? 0 : filter->before[at - 1] + filter->value[filter->order[at - 1]];
}

/* Returns the probability of the token at rank `rank`, or 0 if there is no such token. Sorts more tokens if
 * necessary. */
static double nth(struct filter *filter, int64_t rank)
{
	while (filter->ordered <= rank && filter->ordered < filter->count)
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
	return (struct counts){filter->count, filter->count, filter->count};
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
	int64_t drawable = filter->count;
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
