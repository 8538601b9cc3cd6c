/* compare_tensors - computes all metrics of a comparison on the host, in one pass over both tensors.
 *
 * The tensors are divided into ranges whose borders depend only on the number of elements. Threads process the ranges,
 * and then the sums of the ranges are added in order, so the result does not depend on the number of threads. In a
 * range, blocks of BLOCK elements are converted to double, in memory that fits in the L1 cache.
 *
 * If a block contains no NaN, no infinity and no integer that a double cannot represent, `add_block` processes the
 * block in a single vectorised loop. If both sides have the same bits, this loop computes no differences. `add_element`
 * processes all remaining blocks, element by element. `add_block` and `add_element` count the same elements as hits,
 * because both compute |r - g| and the bound in double, with the same operations.
 *
 * The worst elements are found without sorting. A block is searched only if one of its elements is worse than the last
 * element in the current list of worst elements. The test for this, d > ratio * bound, needs no division. */
#include "kernels/core/compare_tensors.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/simd.h"

enum { BLOCK = 1024, RANGES = 256, RANGE_LEAST = 64 * BLOCK };

static const double relative_floor = 1e-8; /* the minimum denominator of a relative error (base/metrics.h) */
static const double exact_integer = 0x1p53; /* a double represents every integer up to this one */

static double bound_of(struct rule rule, double ground_truth)
{
	return rule.atol + rule.rtol * fabs(ground_truth);
}

/* Returns the ratio |r - g| / bound, where 0/0 is 0 and x/0 is infinity. The ratio is infinity if one side is infinite
 * and the other side is not the same infinity. The ratio is above 1 for every miss: if diff > bound, the quotient diff
 * / bound stays above 1 when it is rounded to double. If r or g is NaN, `diff` must be NaN. */
static double ratio_of(struct rule rule, double ground_truth, double diff)
{
	if (diff == 0)
		return 0;
	if (!isfinite(diff) || !isfinite(ground_truth))
		return INFINITY;
	return diff / bound_of(rule, ground_truth);
}

/* Returns true if a is worse than b. A pair with NaN is worse than a pair without NaN. Otherwise, the pair with the
 * larger ratio is worse; if the ratios are equal, the pair with the lower index is worse. */
static bool worse(struct rule rule, const struct worst *a, const struct worst *b)
{
	if (isnan(a->diff) != isnan(b->diff))
		return isnan(a->diff);
	double x = ratio_of(rule, a->ground_truth, a->diff), y = ratio_of(rule, b->ground_truth, b->diff);

	return x != y ? x > y : a->index < b->index;
}

static void add_worst(struct compare_sums *sums, struct rule rule, const struct worst *place)
{
	int at = sums->worst_count;

	while (at > 0 && worse(rule, place, &sums->worst[at - 1]))
		at--;
	if (at == METRICS_WORST)
		return;
	if (sums->worst_count < METRICS_WORST)
		sums->worst_count++;
	memmove(&sums->worst[at + 1], &sums->worst[at], (size_t)(sums->worst_count - 1 - at) * sizeof *place);
	sums->worst[at] = *place;
}

/* Returns the threshold for the list of worst elements: an element cannot enter the list if its diff is at most the
 * threshold times its bound. Returns -1 if the list is not full. Products and ratios have rounding errors. Therefore
 * the threshold is slightly below the smallest ratio in the list, so that it excludes no element that belongs to the
 * list. */
static double worst_threshold(const struct compare_sums *sums, struct rule rule)
{
	const struct worst *last = &sums->worst[METRICS_WORST - 1];

	if (sums->worst_count < METRICS_WORST)
		return -1;
	return ratio_of(rule, last->ground_truth, last->diff) * (1 - 0x1p-50);
}

/* Adds one pair of elements, which may be NaN or infinite. `diff` is |r - g|, computed as exactly as possible. */
static void add_element(struct compare_sums *sums, struct rule rule, int64_t index, double r, double g, double diff)
{
	bool finite = isfinite(r) && isfinite(g), same_infinity = !finite && r == g;
	struct worst place = {.index = index, .reference = r, .ground_truth = g, .diff = same_infinity ? 0 : diff};

	add_worst(sums, rule, &place);
	sums->nan_reference += isnan(r) != 0;
	sums->nan_ground_truth += isnan(g) != 0;
	sums->inf_reference += isinf(r) != 0;
	sums->inf_ground_truth += isinf(g) != 0;
	if (!finite) {
		sums->hits += same_infinity;
		sums->unmatched += !same_infinity;
		sums->zero_hits += isfinite(g) && fabs(g) <= bound_of(rule, g);
		return;
	}
	double relative = diff / fmax(fabs(g), relative_floor);

	sums->finite++;
	sums->hits += diff <= bound_of(rule, g);
	sums->zero_hits += fabs(g) <= bound_of(rule, g);
	sums->max_abs = fmax(sums->max_abs, diff);
	sums->max_rel = fmax(sums->max_rel, relative);
	sums->sum_abs += diff;
	sums->sum_rel += relative;
	sums->sum_sq += diff * diff;
	sums->dot += r * g;
	sums->norm_reference += r * r;
	sums->norm_ground_truth += g * g;
}

/* Returns |a - b| of two int64. a and b are not converted to double first, because double may not represent them
 * exactly. */
static double integer_difference(const void *reference, const void *ground_truth, int64_t index)
{
	int64_t a = ((const int64_t *)reference)[index], b = ((const int64_t *)ground_truth)[index];

	return (double)(a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a);
}

/* The arguments of compare_host: two tensors and the tolerance rule. */
struct pair {
	const void *reference, *ground_truth;
	enum dtype dtype;
	struct rule rule;
};

static void add_each(struct compare_sums *sums, const struct pair *pair, int64_t first, int64_t count, const double *r,
                     const double *g)
{
	for (int64_t i = 0; i < count; i++) {
		double diff = fabs(r[i] - g[i]);

		if (pair->dtype == DTYPE_INT64)
			diff = integer_difference(pair->reference, pair->ground_truth, first + i);
		add_element(sums, pair->rule, first + i, r[i], g[i], diff);
	}
}

/* Updates the list of worst elements with the elements of a block. */
static void search_worst(struct compare_sums *sums, struct rule rule, int64_t first, int64_t count,
                         const double *r, const double *g)
{
	double threshold = worst_threshold(sums, rule);

	for (int64_t i = 0; i < count; i++) {
		struct worst place = {first + i, r[i], g[i], fabs(r[i] - g[i])};

		if (threshold >= 0 && !(place.diff > threshold * bound_of(rule, g[i])))
			continue;
		add_worst(sums, rule, &place);
		threshold = worst_threshold(sums, rule);
	}
}

enum block_kind { BLOCK_ODD, BLOCK_PLAIN, BLOCK_WORSE };

/* Adds a block to the sums. If one of the block's values is NaN or larger than `limit` in magnitude, adds nothing and
 * returns BLOCK_ODD. Otherwise, returns BLOCK_WORSE if an element may belong to the list of worst elements
 * (worst_threshold), else BLOCK_PLAIN. If `equal` is true, both sides have the same values, and no difference is
 * computed. `equal` must be a compile-time constant. */
static inline __attribute__((always_inline)) enum block_kind
add_block(struct compare_sums *sums, struct rule rule, double limit, double threshold, int64_t count,
          const double *reference, const double *ground_truth, bool equal)
{
	double max_abs = 0, max_rel = 0, sum_abs = 0, sum_rel = 0, sum_sq = 0, dot = 0, norm_r = 0, norm_g = 0;
	int64_t hits = 0, zero_hits = 0, odd = 0, above = 0;

#pragma omp simd reduction(+ : sum_abs, sum_rel, sum_sq, dot, norm_r, norm_g, hits, zero_hits, odd, above) \
    reduction(max : max_abs, max_rel)
	for (int64_t i = 0; i < count; i++) {
		double r = reference[i], g = ground_truth[i], diff = equal ? 0 : fabs(r - g), size = fabs(g);
		double bound = rule.atol + rule.rtol * size;
		double relative = equal ? 0 : diff / (size < relative_floor ? relative_floor : size);

		odd += !(fabs(r) <= limit) | !(size <= limit);
		above += diff > threshold * bound;
		hits += diff <= bound;
		zero_hits += size <= bound;
		max_abs = diff > max_abs ? diff : max_abs;
		max_rel = relative > max_rel ? relative : max_rel;
		sum_abs += diff;
		sum_rel += relative;
		sum_sq += diff * diff;
		dot += r * g;
		norm_r += r * r;
		norm_g += g * g;
	}
	if (odd > 0)
		return BLOCK_ODD;
	sums->finite += count;
	sums->hits += hits;
	sums->zero_hits += zero_hits;
	sums->max_abs = fmax(sums->max_abs, max_abs);
	sums->max_rel = fmax(sums->max_rel, max_rel);
	sums->sum_abs += sum_abs;
	sums->sum_rel += sum_rel;
	sums->sum_sq += sum_sq;
	sums->dot += dot;
	sums->norm_reference += norm_r;
	sums->norm_ground_truth += norm_g;
	return above > 0 || threshold < 0 ? BLOCK_WORSE : BLOCK_PLAIN;
}

/* Converts a block to double. The three most common dtypes are converted here, not in dtype_load_run, because the
 * callers of this function are compiled for wide vectors. */
static inline __attribute__((always_inline)) void read_block(const void *data, enum dtype dtype, int64_t first,
                                                             int64_t count, double *out)
{
	const uint16_t *halves = (const uint16_t *)data + first;
	const float *floats = (const float *)data + first;

	if (dtype == DTYPE_BFLOAT16) {
		for (int64_t i = 0; i < count; i++)
			out[i] = (double)float_from_bf16(halves[i]);
	} else if (dtype == DTYPE_FLOAT16) {
		for (int64_t i = 0; i < count; i++)
			out[i] = (double)float_from_f16(halves[i]);
	} else if (dtype == DTYPE_FLOAT32) {
		for (int64_t i = 0; i < count; i++)
			out[i] = (double)floats[i];
	} else {
		dtype_load_run(data, dtype, first, count, out);
	}
}

static void add_sums(struct compare_sums *to, const struct compare_sums *from, struct rule rule)
{
	to->elements += from->elements;
	to->hits += from->hits;
	to->finite += from->finite;
	to->zero_hits += from->zero_hits;
	to->nan_reference += from->nan_reference;
	to->nan_ground_truth += from->nan_ground_truth;
	to->inf_reference += from->inf_reference;
	to->inf_ground_truth += from->inf_ground_truth;
	to->unmatched += from->unmatched;
	to->max_abs = fmax(to->max_abs, from->max_abs);
	to->max_rel = fmax(to->max_rel, from->max_rel);
	to->sum_abs += from->sum_abs;
	to->sum_rel += from->sum_rel;
	to->sum_sq += from->sum_sq;
	to->dot += from->dot;
	to->norm_reference += from->norm_reference;
	to->norm_ground_truth += from->norm_ground_truth;
	for (int i = 0; i < from->worst_count; i++)
		add_worst(to, rule, &from->worst[i]);
}

/* Returns whether both tensors have the same bytes in a block. Two elements of float4_e2m1 share a byte, but they are
 * always in the same block, because blocks begin at even elements. */
static bool have_equal_bits(const struct pair *pair, int64_t first, int64_t count)
{
	int64_t begin = dtype_bytes(pair->dtype, first), bytes = dtype_bytes(pair->dtype, first + count) - begin;

	return memcmp((const char *)pair->reference + begin, (const char *)pair->ground_truth + begin, (size_t)bytes) == 0;
}

/* Adds the elements from `first` to end - 1. */
WIDE static void add_range(struct compare_sums *sums, const struct pair *pair, int64_t first, int64_t end)
{
	double other[BLOCK], g[BLOCK], limit = pair->dtype == DTYPE_INT64 ? exact_integer : DBL_MAX;

	for (int64_t at = first; at < end; at += BLOCK) {
		int64_t count = end - at < BLOCK ? end - at : BLOCK;
		double threshold = worst_threshold(sums, pair->rule);
		bool equal = have_equal_bits(pair, at, count);
		const double *r = equal ? g : other;
		enum block_kind kind;

		read_block(pair->ground_truth, pair->dtype, at, count, g);
		if (equal) {
			kind = add_block(sums, pair->rule, limit, threshold, count, g, g, true);
		} else {
			read_block(pair->reference, pair->dtype, at, count, other);
			kind = add_block(sums, pair->rule, limit, threshold, count, other, g, false);
		}
		switch (kind) {
		case BLOCK_ODD:
			add_each(sums, pair, at, count, r, g);
			break;
		case BLOCK_WORSE:
			search_worst(sums, pair->rule, at, count, r, g);
			break;
		case BLOCK_PLAIN:
			break;
		}
	}
	sums->elements = end - first;
}

void compare_host(const void *reference, const void *ground_truth, enum dtype dtype, int64_t elements, struct rule rule,
                  struct metrics *out)
{
	const struct pair pair = {reference, ground_truth, dtype, rule};
	int64_t blocks = (elements + BLOCK - 1) / BLOCK, per_range = (blocks + RANGES - 1) / RANGES * BLOCK;
	int64_t range = per_range < RANGE_LEAST ? RANGE_LEAST : per_range;
	int ranges = (int)((elements + range - 1) / range);
	struct compare_sums *part = calloc((size_t)ranges + 1, sizeof *part), sums = {0};

	if (part == NULL)
		die_no_memory();
#pragma omp parallel for schedule(dynamic) if (ranges > 1)
	for (int i = 0; i < ranges; i++) {
		int64_t first = i * range, end = elements - first < range ? elements : first + range;

		add_range(&part[i], &pair, first, end);
	}
	for (int i = 0; i < ranges; i++)
		add_sums(&sums, &part[i], rule);
	if (sums.worst_count > 0)
		sums.margin = ratio_of(rule, sums.worst[0].ground_truth, sums.worst[0].diff);
	free(part);
	compare_finish(&sums, rule, out);
}

static bool rule_holds(struct rule rule, int64_t hits, int64_t elements, int64_t unmatched)
{
	if (unmatched > 0)
		return false;
	return rule.hit_ratio >= 1 ? hits == elements : (double)hits >= rule.hit_ratio * (double)elements;
}

/* Clamps a cosine to [-1, 1]. If the sums overflowed, the cosine is NaN and stays NaN. */
static double clamp(double cosine)
{
	return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

void compare_finish(const struct compare_sums *sums, struct rule rule, struct metrics *out)
{
	double finite = sums->finite > 0 ? (double)sums->finite : 1;
	double norms = sqrt(sums->norm_reference) * sqrt(sums->norm_ground_truth);
	bool both_zero = sums->norm_reference == 0 && sums->norm_ground_truth == 0;

	*out = (struct metrics){
	    .elements = sums->elements,
	    .hits = sums->hits,
	    .nan_reference = sums->nan_reference,
	    .nan_ground_truth = sums->nan_ground_truth,
	    .inf_reference = sums->inf_reference,
	    .inf_ground_truth = sums->inf_ground_truth,
	    .max_abs = sums->max_abs,
	    .mean_abs = sums->sum_abs / finite,
	    .max_rel = sums->max_rel,
	    .mean_rel = sums->sum_rel / finite,
	    .cosine = both_zero ? 1 : norms > 0 ? clamp(sums->dot / norms) : 0, /* the quotient may be slightly above 1
										 * or below -1, because both roots are
										 * rounded */
	    .mse = sums->sum_sq / finite,
	    .margin = sums->unmatched > 0 ? INFINITY : sums->margin,
	    .zeros_would_pass = rule_holds(rule, sums->zero_hits, sums->elements,
	                                   sums->nan_ground_truth + sums->inf_ground_truth),
	    .passed = rule_holds(rule, sums->hits, sums->elements, sums->unmatched),
	    .worst_count = sums->worst_count,
	};
	memcpy(out->worst, sums->worst, sizeof out->worst);
}
