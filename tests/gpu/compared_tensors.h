/* compared_tensors - pairs of tensors with planted differences that a comparison must find. Compares each pair on the
 * CPU and on the GPU, and checks that both results are the same. */
#ifndef REFTEST_TESTS_GPU_COMPARED_TENSORS_H
#define REFTEST_TESTS_GPU_COMPARED_TENSORS_H

#include <float.h>
#include <math.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"
#include "tests/gpu/check.h"

/* `noise` returns a uniform number in [-1, 1), and `pick` returns an integer from 0 to range - 1. */
static inline double noise(uint64_t key, int64_t index)
{
	return (double)uniform_signed(philox_bits(key, index), 23);
}

static inline int64_t pick(uint64_t key, int64_t index, int64_t range)
{
	return philox_bits(key, index) % range;
}

/* A pair of tensors on the host. All values are written with dtype_store, which rounds them to the dtype. */
struct tensors {
	void *r, *g;
	enum dtype dtype;
	int64_t elements;
	struct rule rule;
	uint64_t key;
};

static inline void put(const struct tensors *t, int64_t i, double r, double g)
{
	dtype_store(t->r, t->dtype, i, r);
	dtype_store(t->g, t->dtype, i, g);
}

/* Returns a random value with a magnitude that suits the dtype. */
static inline double value(const struct tensors *t, int64_t i)
{
	double scale = dtype_is_float(t->dtype) ? 2 : t->dtype == DTYPE_BOOL ? 1 : 100;

	return noise(t->key, i) * scale;
}

/* Makes pairs with values inside and outside the bound, and with many different ratios. */
static inline void make_close(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = value(t, i), bound = t->rule.atol + t->rule.rtol * fabs(g);

		put(t, i, g + 1.1 * bound * noise(t->key + 1, i), g);
	}
}

static inline void make_equal(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++)
		put(t, i, value(t, i), value(t, i));
}

/* Makes pairs of 1.5 and either 1.25 or 1.75. If the dtype can represent these values, |r - g| is 0.25 in all pairs,
 * and every sum of these differences is a multiple of 0.25. */
static inline void make_ties(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++)
		put(t, i, 1.5, i % 3 == 0 ? 1.25 : 1.75);
}

static inline void make_garbage(const struct tensors *t)
{
	unsigned char *r = t->r, *g = t->g;
	int64_t bytes = dtype_bytes(t->dtype, t->elements);

	for (int64_t i = 0; i < bytes; i++) {
		r[i] = (unsigned char)philox_bits(t->key, i);
		g[i] = (unsigned char)philox_bits(t->key + 1, i);
	}
	/* the squares of these values exceed the range of float, and their sum depends on the order of the additions */
	if (t->dtype == DTYPE_FLOAT64)
		for (int64_t i = 0; i < t->elements; i++)
			put(t, i, 1e100 * noise(t->key, i), 1e-100 * noise(t->key + 1, i));
}

static inline void make_zero_reference(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++)
		put(t, i, 0, i % 5 ? value(t, i) / 64 : 0);
}

/* Makes pairs of close values, except for a few pairs in which each side is NaN, an infinity or 1. */
static inline void make_nonfinite(const struct tensors *t)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, 1};

	make_close(t);
	for (int64_t k = 0; t->elements > 0 && k < 20; k++)
		put(t, pick(t->key + 2, k, t->elements), odd[pick(t->key + 3, k, 4)], odd[pick(t->key + 4, k, 4)]);
}

/* Makes all values equal, except one pair that is not finite and does not match. */
static inline void make_one_odd(const struct tensors *t)
{
	make_equal(t);
	if (t->elements > 0)
		put(t, pick(t->key + 2, 0, t->elements), -INFINITY, INFINITY);
}

/* Makes values so small that their squares underflow in float. Rows have 64 elements, and every second row consists of
 * zeros. */
static inline void make_tiny(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = i / 64 % 2 ? 0 : 1e-25 * noise(t->key, i);

		put(t, i, g * (1 + noise(t->key + 1, i) / 64), g);
	}
}

static inline void make_huge(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = 1e30 * noise(t->key, i);

		put(t, i, g * (1 + noise(t->key + 1, i) / 64), g);
	}
}

/* |r - g| equals the bound, or is one unit in the last place larger or smaller, as far as the dtype can represent
 * this. */
static inline void make_edge(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = 1 + (double)pick(t->key, i, 8) / 8, bound = t->rule.atol + t->rule.rtol * g;

		put(t, i, g + bound * (1 + (double)(pick(t->key + 1, i, 3) - 1) * 0x1p-22), g);
	}
}

/* Makes pairs that are equal in the first half of the tensors, and then differ more and more, so that the worst places
 * are near the end. */
static inline void make_late(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = value(t, i), late = i > t->elements / 2 ? (double)i / (double)t->elements : 0;

		put(t, i, g + late * noise(t->key + 1, i), g);
	}
}

static const struct kind {
	const char *name;
	void (*make)(const struct tensors *t);
} kinds[] = {
    {"close", make_close},
    {"equal", make_equal},
    {"ties", make_ties},
    {"garbage", make_garbage},
    {"zeros", make_zero_reference},
    {"non-finite", make_nonfinite},
    {"one odd", make_one_odd},
    {"tiny", make_tiny},
    {"huge", make_huge},
    {"edge", make_edge},
    {"late", make_late},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const struct rule rules[] = {
    {8e-3, 1e-2, 1},	{0x1p-7, 0, 1},	 {0, 1e-2, 1},	   {0, 0, 1},
    {1e-1, 2e-1, 0.85}, {1e-5, 1e-5, 1}, {1e-3, 1.5, 0.5}, {1e-40, 1e-3, 1},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static inline bool same_double(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static inline bool near_double(double a, double b, double least)
{
	return same_double(a, b) || (!isfinite(a) && !isfinite(b)) ||
	       fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + least;
}

/* |r - g| / bound as a GPU computes it: at most the largest float; NaN stays NaN. */
static inline double ratio_of(struct rule rule, const struct worst *place)
{
	if (place->diff == 0 || isnan(place->diff))
		return place->diff;
	return fmin(place->diff / (rule.atol + rule.rtol * fabs(place->ground_truth)), FLT_MAX);
}

/* Returns whether `gpu`, the worst place that the GPU found, is acceptable if the CPU found `cpu`. `gpu` must contain
 * the values that the tensors have at gpu->index. It may be another place than `cpu` only if `exact` is false and the
 * ratios |r - g| / bound of both places are as close as kernels/core/compare_cuda.h allows. */
static inline bool right_place(const struct tensors *t, const struct worst *cpu, const struct worst *gpu, bool exact)
{
	double r = dtype_load(t->r, t->dtype, gpu->index), g = dtype_load(t->g, t->dtype, gpu->index);

	if (!same_double(gpu->reference, r) || !same_double(gpu->ground_truth, g))
		return false;
	if (cpu->index == gpu->index)
		return same_double(cpu->diff, gpu->diff);
	return !exact && near_double(ratio_of(t->rule, cpu), ratio_of(t->rule, gpu), 0);
}

static inline bool same_worst(const struct tensors *t, const struct metrics *cpu, const struct metrics *gpu, bool exact)
{
	for (int w = 0; w < cpu->worst_count; w++) {
		if (!right_place(t, &cpu->worst[w], &gpu->worst[w], exact))
			return false;
		for (int before = 0; before < w; before++)
			if (gpu->worst[before].index == gpu->worst[w].index)
				return false;
	}
	return true;
}

/* Returns the name of the first figure in which the results of CPU and GPU differ, or NULL. */
static const char *what_differs(const struct tensors *t, const struct metrics *a, const struct metrics *b, bool exact)
{
	const struct {
		const char *name;
		bool same;
	} figures[] = {
	    {"elements", a->elements == b->elements},
	    {"hits", a->hits == b->hits},
	    {"nan_reference", a->nan_reference == b->nan_reference},
	    {"nan_ground_truth", a->nan_ground_truth == b->nan_ground_truth},
	    {"inf_reference", a->inf_reference == b->inf_reference},
	    {"inf_ground_truth", a->inf_ground_truth == b->inf_ground_truth},
	    {"zeros_would_pass", a->zeros_would_pass == b->zeros_would_pass},
	    {"passed", a->passed == b->passed},
	    {"margin",
	     near_double(fmin(a->margin, FLT_MAX), fmin(b->margin, FLT_MAX), 0) && (a->margin > 1) == (b->margin > 1)},
	    {"max_abs", near_double(a->max_abs, b->max_abs, 0)},
	    {"max_rel", near_double(a->max_rel, b->max_rel, 0)},
	    {"mean_abs", near_double(a->mean_abs, b->mean_abs, 0)},
	    {"mean_rel", near_double(a->mean_rel, b->mean_rel, 0)},
	    {"mse", near_double(a->mse, b->mse, 1e-37)},
	    {"cosine", near_double(a->cosine, b->cosine, 1e-6)},
	    {"worst_count", a->worst_count == b->worst_count},
	};

	for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
		if (!figures[i].same)
			return figures[i].name;
	if (!same_worst(t, a, b, exact))
		return "worst";
	return NULL;
}

static inline void show(const char *side, const struct metrics *m)
{
	tell("  %s: hits %lld nan %lld %lld inf %lld %lld zeros %d passed %d margin %.17g max %.9g %.9g mean %.9g %.9g "
	     "mse %.9g cosine %.9g",
	     side, (long long)m->hits, (long long)m->nan_reference, (long long)m->nan_ground_truth,
	     (long long)m->inf_reference, (long long)m->inf_ground_truth, m->zeros_would_pass, m->passed, m->margin,
	     m->max_abs, m->max_rel, m->mean_abs, m->mean_rel, m->mse, m->cosine);
	for (int w = 0; w < m->worst_count; w++)
		tell("    [%lld] %.17g %.17g %.17g", (long long)m->worst[w].index, m->worst[w].reference,
		     m->worst[w].ground_truth, m->worst[w].diff);
}

/* On the GPU, both tensors begin `shift` elements after an aligned address. */
static inline int compare_both(const struct check *check, const struct tensors *t, const char *kind,
			       void *const device[2], int64_t shift)
{
	int64_t bytes = dtype_bytes(t->dtype, t->elements), offset = dtype_bytes(t->dtype, shift);
	unsigned char *r = (unsigned char *)device[0] + offset, *g = (unsigned char *)device[1] + offset;
	struct metrics host, gpu;
	struct err err;

	upload(check, r, t->r, bytes);
	upload(check, g, t->g, bytes);
	compare_host(t->r, t->g, t->dtype, t->elements, t->rule, &host);
	must(check->gpu->calls->compare(check->gpu, r, g, t->dtype, t->elements, t->rule, &gpu, &err) == 0, &err);
	const char *difference = what_differs(t, &host, &gpu, strcmp(kind, "ties") == 0);

	if (difference == NULL)
		return 0;
	tell("%s, %s, %lld elements moved by %lld, atol %g rtol %g: %s", kind, dtype_name(t->dtype),
	     (long long)t->elements, (long long)shift, t->rule.atol, t->rule.rtol, difference);
	show("CPU", &host);
	show("GPU", &gpu);
	return 1;
}

#endif
