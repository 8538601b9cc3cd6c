/* check - what a GPU answers against what the CPU answers: searches, comparisons, inputs, ground truth.
 *
 *   check LIBRARY [quick]    LIBRARY: libreftest_kernels_cuda.so; quick: few and small sizes, for compute-sanitizer
 *
 * Speaks TAP. The CPU's side is linked in, the GPU's is loaded as the program loads it. Every check plants what it is
 * for: a difference, a canary hurt, a NaN, a miss by one unit in the last place. */
#include <dlfcn.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/compare.h"
#include "kernels/device.h"
#include "kernels/inputs.h"
#include "kernels/library.h"
#include "kernels/number.h"

/* What every check gets. A check returns how many things were wrong; `tell` says which. */
struct check {
	const struct kernels_cuda_face *face;
	struct device *cpu, *gpu;
	bool quick;
};

static int tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int tell(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return 1;
}

static void must(int rc, const struct err *err)
{
	if (rc == 0)
		return;
	printf("Bail out! %s\n", err->text);
	exit(1);
}

static void *gpu_memory(const struct check *check, int64_t bytes)
{
	struct err err;
	void *memory = check->gpu->calls->allocate(check->gpu, bytes, &err);

	must(memory == NULL ? -1 : 0, &err);
	return memory;
}

static void upload(const struct check *check, void *to, const void *from, int64_t bytes)
{
	struct err err;

	must(check->gpu->calls->upload(check->gpu, to, from, bytes, &err), &err);
}

static void *host_memory(int64_t bytes)
{
	void *memory = aligned_alloc(256, (size_t)(bytes / 256 + 1) * 256);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

/* --- sentences ---------------------------------------------------------------------------------------------------- */

static int a_gpu_that_is_not_there_is_said(const struct check *check)
{
	struct err err = {""};
	struct device *device = check->face->open(999, &err);

	return device != NULL || strstr(err.text, "cuda:999") == NULL ? tell("got '%s'", err.text) : 0;
}

static int memory_that_is_not_there_is_said_and_harms_nothing(const struct check *check)
{
	struct err err = {""};
	int64_t total = check->gpu->calls->memory_total(check->gpu);
	int wrong = 0;

	if (check->gpu->calls->allocate(check->gpu, 2 * total, &err) != NULL || strstr(err.text, "cudaMalloc") == NULL)
		wrong += tell("twice the memory: '%s'", err.text);
	if (check->gpu->calls->allocate(check->gpu, INT64_MAX, &err) != NULL)
		wrong += tell("INT64_MAX bytes were allocated");
	if (check->gpu->calls->broken(check->gpu))
		wrong += tell("the device calls itself broken");
	unsigned char *memory = gpu_memory(check, 100);

	must(check->gpu->calls->set(check->gpu, memory, 1, 100, &err), &err);
	if (check->gpu->calls->first_other(check->gpu, memory, 1, 100, &err) != -1)
		wrong += tell("a later call failed: '%s'", err.text);
	check->gpu->calls->release(check->gpu, memory);
	return wrong;
}

/* In a process of its own, forked before CUDA was touched: reads where nothing is. */
static int break_a_device(const struct kernels_cuda_face *face)
{
	struct err err = {""};
	struct device *device = face->open(0, &err);
	void *nowhere = (void *)(uintptr_t)0x100000;
	struct metrics metrics;

	must(device == NULL ? -1 : 0, &err);
	if (device->calls->broken(device))
		return tell("broken from the start");
	if (device->calls->compare(device, nowhere, nowhere, DTYPE_FLOAT32, 4096, rule_default(DTYPE_FLOAT32), &metrics,
	                           &err) == 0 || strstr(err.text, "cudaErrorIllegalAddress") == NULL)
		return tell("reading nowhere gave '%s'", err.text);
	if (!device->calls->broken(device))
		return tell("not broken after '%s'", err.text);
	if (device->calls->allocate(device, 1, &err) != NULL || strstr(err.text, "earlier error") == NULL)
		return tell("after it: '%s'", err.text);
	device->calls->close(device);
	return 0;
}

static int a_lost_context_is_said_by_every_later_call(const struct kernels_cuda_face *face)
{
	int status = 0;

	fflush(stdout);
	pid_t child = fork();

	if (child == 0) {
		int wrong = break_a_device(face);

		fflush(stdout);
		_exit(wrong);
	}
	waitpid(child, &status, 0);
	return status == 0 ? 0 : tell("the child ended with status %#x", (unsigned)status);
}

static int shared_memory_has_a_handle_of_its_own(const struct check *check)
{
	unsigned char first[DEVICE_HANDLE], second[DEVICE_HANDLE];
	void *a = gpu_memory(check, 1000), *b = gpu_memory(check, 1000);
	struct err err;
	int wrong = 0;

	must(check->gpu->calls->share(check->gpu, a, first, &err), &err);
	must(check->gpu->calls->share(check->gpu, b, second, &err), &err);
	if (memcmp(first, second, DEVICE_HANDLE) == 0)
		wrong += tell("two allocations have one handle");
	if ((uintptr_t)a % (2 << 20) != 0 || (uintptr_t)b % (2 << 20) != 0)
		wrong += tell("%p and %p do not begin a block of their own", a, b);
	check->gpu->calls->release(check->gpu, a);
	check->gpu->calls->release(check->gpu, b);
	return wrong;
}

/* --- searches ----------------------------------------------------------------------------------------------------- */

/* Byte `at` differs and one behind it; the first must be found, at any alignment. `at` -1, or bytes: none does. */
static int search_at(const struct check *check, unsigned char *a, unsigned char *b, int64_t bytes, int64_t at)
{
	const struct device_calls *calls = check->gpu->calls;
	struct err err;
	int wrong = 0;

	must(calls->set(check->gpu, a, 7, bytes + 64, &err), &err);
	must(calls->set(check->gpu, b, 7, bytes + 64, &err), &err);
	if (at >= 0 && at < bytes)
		must(calls->set(check->gpu, a + at, 8, 1, &err), &err);
	if (at >= 0 && at + 40 < bytes)
		must(calls->set(check->gpu, a + at + 40, 9, 1, &err), &err);
	must(calls->set(check->gpu, a + bytes, 9, 1, &err), &err); /* outside: not to be found */
	int64_t want = at >= 0 && at < bytes ? at : -1, difference = calls->first_difference(check->gpu, a, b, bytes, &err);
	int64_t other = calls->first_other(check->gpu, a, 7, bytes, &err);

	if (difference != want || other != want)
		wrong += tell("%lld bytes at %p and %p, planted at %lld: found %lld and %lld", (long long)bytes, (void *)a,
		              (void *)b, (long long)want, (long long)difference, (long long)other);
	return wrong;
}

static int searches_find_the_first_byte(const struct check *check)
{
	unsigned char *a = gpu_memory(check, 1 << 20), *b = gpu_memory(check, 1 << 20);
	int wrong = 0;

	for (int64_t bytes = 0; bytes <= 80; bytes += check->quick ? 13 : 1)
		for (int shift = 0; shift < 32; shift += 5)
			wrong += search_at(check, a + shift % 17, b + shift, bytes, bytes / 2) +
			         search_at(check, a + shift, b + shift, bytes, bytes - 1 + (shift == 5));
	for (int64_t at = 1; at < 900000; at = at * 3 + 1)
		wrong += search_at(check, a + 3, b + 3, 900001, at);
	check->gpu->calls->release(check->gpu, a);
	check->gpu->calls->release(check->gpu, b);
	return wrong;
}

/* --- comparisons -------------------------------------------------------------------------------------------------- */

/* A uniform number on [-1, 1), and one that is 0 … range - 1. */
static double noise(uint64_t key, int64_t index)
{
	return (double)uniform_signed(philox_bits(key, index), 23);
}

static int64_t pick(uint64_t key, int64_t index, int64_t range)
{
	return philox_bits(key, index) % range;
}

/* Two tensors on the host. Kinds write values; number_set rounds them to the dtype. */
struct tensors {
	void *r, *g;
	enum dtype dtype;
	int64_t elements;
	struct rule rule;
	uint64_t key;
};

static void put(const struct tensors *t, int64_t i, double r, double g)
{
	number_set(t->r, t->dtype, i, r);
	number_set(t->g, t->dtype, i, g);
}

/* A value whose size suits the dtype. */
static double value(const struct tensors *t, int64_t i)
{
	double scale = dtype_is_float(t->dtype) ? 2 : t->dtype == DTYPE_BOOL ? 1 : 100;

	return noise(t->key, i) * scale;
}

/* Misses and hits around the bound, and all kinds of scores. */
static void make_close(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = value(t, i), bound = t->rule.atol + t->rule.rtol * fabs(g);

		put(t, i, g + 1.1 * bound * noise(t->key + 1, i), g);
	}
}

static void make_equal(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++)
		put(t, i, value(t, i), value(t, i));
}

/* The same pair everywhere: all scores tie, all sums are multiples. */
static void make_ties(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++)
		put(t, i, 1.5, i % 3 == 0 ? 1.25 : 1.75);
}

static void make_garbage(const struct tensors *t)
{
	unsigned char *r = t->r, *g = t->g;
	int64_t bytes = dtype_bytes(t->dtype, t->elements);

	for (int64_t i = 0; i < bytes; i++) {
		r[i] = (unsigned char)philox_bits(t->key, i);
		g[i] = (unsigned char)philox_bits(t->key + 1, i);
	}
	if (t->dtype == DTYPE_FLOAT64) /* squares of any double leave double's range: the order of sums would show */
		for (int64_t i = 0; i < t->elements; i++)
			put(t, i, 1e100 * noise(t->key, i), 1e-100 * noise(t->key + 1, i));
}

static void make_zero_reference(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++)
		put(t, i, 0, i % 5 ? value(t, i) / 64 : 0);
}

/* Close, with NaN and infinities on either side, on both, and on both with other signs. */
static void make_nonfinite(const struct tensors *t)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, 1};

	make_close(t);
	for (int64_t k = 0; t->elements > 0 && k < 20; k++)
		put(t, pick(t->key + 2, k, t->elements), odd[pick(t->key + 3, k, 4)], odd[pick(t->key + 4, k, 4)]);
}

/* One planted pair that is not finite and does not match, everything else equal. */
static void make_one_odd(const struct tensors *t)
{
	make_equal(t);
	if (t->elements > 0)
		put(t, pick(t->key + 2, 0, t->elements), -INFINITY, INFINITY);
}

/* So small that squares leave float's range; every other row of 64 is zeros. */
static void make_tiny(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = i / 64 % 2 ? 0 : 1e-25 * noise(t->key, i);

		put(t, i, g * (1 + noise(t->key + 1, i) / 64), g);
	}
}

static void make_huge(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = 1e30 * noise(t->key, i);

		put(t, i, g * (1 + noise(t->key + 1, i) / 64), g);
	}
}

/* |r - g| is the bound itself where the dtype can say so, or a unit in the last place more or less. */
static void make_edge(const struct tensors *t)
{
	for (int64_t i = 0; i < t->elements; i++) {
		double g = 1 + (double)pick(t->key, i, 8) / 8, bound = t->rule.atol + t->rule.rtol * g;

		put(t, i, g + bound * (1 + (double)(pick(t->key + 1, i, 3) - 1) * 0x1p-22), g);
	}
}

/* Equal for the most part, and worse and worse towards the end: no early gate holds. */
static void make_late(const struct tensors *t)
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
    {"close", make_close},         {"equal", make_equal},
    {"ties", make_ties},           {"garbage", make_garbage},
    {"zeros", make_zero_reference}, {"non-finite", make_nonfinite},
    {"one odd", make_one_odd},     {"tiny", make_tiny},
    {"huge", make_huge},           {"edge", make_edge},
    {"late", make_late},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const struct rule rules[] = {
    {8e-3, 1e-2, 1},   {0x1p-7, 0, 1},  {0, 1e-2, 1},     {0, 0, 1},
    {1e-1, 2e-1, 0.85}, {1e-5, 1e-5, 1}, {1e-3, 1.5, 0.5}, {1e-40, 1e-3, 1},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static bool same_double(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool near_double(double a, double b, double least)
{
	return same_double(a, b) || (!isfinite(a) && !isfinite(b)) ||
	       fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + least;
}

/* |r - g| / bound, as far as a GPU tells it: up to float's greatest; NaN for a NaN. */
static double ratio_of(struct rule rule, const struct worst *place)
{
	if (place->diff == 0 || isnan(place->diff))
		return place->diff;
	return fmin(place->diff / (rule.atol + rule.rtol * fabs(place->ground_truth)), FLT_MAX);
}

/* Is this one of the worst places, where the CPU has `cpu`? It holds what the tensors do, and may be another than the
 * CPU's only where their ratios are as near as kernels/compare_cuda.h says; equal pairs in plain tensors are told apart. */
static bool right_place(const struct tensors *t, const struct worst *cpu, const struct worst *gpu, bool exact)
{
	double r = number_get(t->r, t->dtype, gpu->index), g = number_get(t->g, t->dtype, gpu->index);

	if (!same_double(gpu->reference, r) || !same_double(gpu->ground_truth, g))
		return false;
	if (cpu->index == gpu->index)
		return same_double(cpu->diff, gpu->diff);
	return !exact && near_double(ratio_of(t->rule, cpu), ratio_of(t->rule, gpu), 0);
}

static bool same_worst(const struct tensors *t, const struct metrics *cpu, const struct metrics *gpu, bool exact)
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

/* What differs between the CPU's answer and the GPU's; NULL: nothing. */
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
	    {"margin", near_double(fmin(a->margin, FLT_MAX), fmin(b->margin, FLT_MAX), 0) &&
	                   (a->margin > 1) == (b->margin > 1)},
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

static void show(const char *side, const struct metrics *m)
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

/* `shift`: elements by which both tensors are moved from an aligned address. */
static int compare_both(const struct check *check, const struct tensors *t, const char *kind, void *const device[2],
                        int64_t shift)
{
	int64_t bytes = dtype_bytes(t->dtype, t->elements), offset = dtype_bytes(t->dtype, shift);
	unsigned char *r = (unsigned char *)device[0] + offset, *g = (unsigned char *)device[1] + offset;
	struct metrics host, gpu;
	struct err err;

	upload(check, r, t->r, bytes);
	upload(check, g, t->g, bytes);
	compare_host(t->r, t->g, t->dtype, t->elements, t->rule, &host);
	must(check->gpu->calls->compare(check->gpu, r, g, t->dtype, t->elements, t->rule, &gpu, &err), &err);
	const char *difference = what_differs(t, &host, &gpu, strcmp(kind, "ties") == 0);

	if (difference == NULL)
		return 0;
	tell("%s, %s, %lld elements moved by %lld, atol %g rtol %g: %s", kind, dtype_name(t->dtype), (long long)t->elements,
	     (long long)shift, t->rule.atol, t->rule.rtol, difference);
	show("CPU", &host);
	show("GPU", &gpu);
	return 1;
}

/* Lengths: all up to 70, around a warp's share, more than a block's; the long ones not with every rule. */
static int64_t next_length(int64_t length, bool quick)
{
	static const int64_t longer[] = {127, 255, 256, 257, 1023, 2049, 4097, 8191, 65536, 65549, 300007};

	if (length < 70)
		return length + (quick ? 23 : 1);
	for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++)
		if (longer[i] > length)
			return quick && longer[i] > 5000 ? -1 : longer[i];
	return -1;
}

enum { LONGEST = 300007 };

static int compare_dtype(const struct check *check, enum dtype dtype, int kind)
{
	void *device[2] = {gpu_memory(check, LONGEST * 8 + 64), gpu_memory(check, LONGEST * 8 + 64)};
	struct tensors t = {host_memory(LONGEST * 8), host_memory(LONGEST * 8), dtype, 0, rules[0], 0};
	int wrong = 0;

	for (int64_t n = 0; n >= 0 && wrong < 3; n = next_length(n, check->quick))
		for (int rule = 0; rule < RULES; rule += n > 70 && (check->quick || n > 5000) ? 3 : 1) {
			t.elements = n;
			t.rule = rules[(rule + (int)n) % RULES];
			t.key = (uint64_t)(n * RULES + rule) << 8;
			memset(t.r, 0, 16);
			memset(t.g, 0, 16);
			kinds[kind].make(&t);
			wrong += compare_both(check, &t, kinds[kind].name, device, 0);
			if (rule == 0 && kind == 0)
				wrong += compare_both(check, &t, kinds[kind].name, device, dtype == DTYPE_FLOAT4_E2M1 ? 2 : 1);
		}
	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, device[0]);
	check->gpu->calls->release(check->gpu, device[1]);
	return wrong;
}

static int comparisons_agree_with_the_cpu(const struct check *check)
{
	int wrong = 0;

	for (int kind = 0; kind < KINDS; kind++)
		for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
			if (!check->quick || (kind + dtype) % 3 == 0)
				wrong += compare_dtype(check, (enum dtype)dtype, kind);
	return wrong;
}

/* int64 whose doubles are equal while they are not. */
static int integers_beyond_doubles_are_told_apart(const struct check *check)
{
	enum { N = 5000 };
	void *device[2] = {gpu_memory(check, N * 8), gpu_memory(check, N * 8)};
	struct tensors t = {host_memory(N * 8), host_memory(N * 8), DTYPE_INT64, N, {0, 0, 1}, 3};
	int64_t *r = t.r, *g = t.g;

	for (int i = 0; i < N; i++)
		r[i] = g[i] = i % 7 ? i : INT64_C(0x4000000000000000) + i;
	r[7 * 100] += 1;
	g[7 * 300] = -r[7 * 300];
	int wrong = compare_both(check, &t, "beyond doubles", device, 0);

	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, device[0]);
	check->gpu->calls->release(check->gpu, device[1]);
	return wrong;
}

/* So long that every block takes several pieces: the same stretch over and over (its length no multiple of anything), a
 * few places that are not finite, and the worst at the end. */
static int compare_long(const struct check *check, enum dtype dtype, int64_t n)
{
	const int64_t period = 100003 * 2; /* even: two elements of float4_e2m1 share an octet */
	int64_t bytes = dtype_bytes(dtype, n), stretch = dtype_bytes(dtype, period);
	void *device[2] = {gpu_memory(check, bytes), gpu_memory(check, bytes)};
	struct tensors t = {host_memory(bytes), host_memory(bytes), dtype, period, {8e-3, 1e-2, 1}, 1234};

	memset(t.r, 0, (size_t)bytes);
	memset(t.g, 0, (size_t)bytes);
	make_close(&t);
	for (int64_t at = stretch; at < bytes; at += stretch) {
		size_t length = (size_t)(bytes - at < stretch ? bytes - at : stretch);

		memcpy((char *)t.r + at, t.r, length);
		memcpy((char *)t.g + at, t.g, length);
	}
	t.elements = n;
	put(&t, n / 2, NAN, 1);
	put(&t, n / 3, INFINITY, -INFINITY);
	put(&t, n - 2, 100, 1);
	int wrong = compare_both(check, &t, "long", device, 0);

	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, device[0]);
	check->gpu->calls->release(check->gpu, device[1]);
	return wrong;
}

static int long_comparisons_agree_with_the_cpu(const struct check *check)
{
	int wrong = 0;

	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
		if (!check->quick || dtype == DTYPE_BFLOAT16)
			wrong += compare_long(check, (enum dtype)dtype, check->quick ? 9000001 : 21000001);
	return wrong;
}

/* More elements than 32 bits count: bytes set on the GPU, a few differences planted behind 2^31. */
static int two_billion_elements_are_counted(const struct check *check)
{
	const int64_t n = (INT64_C(1) << 31) + 4099, places[3] = {n - 1, (INT64_C(1) << 31) + 5, 12345};
	const struct device_calls *calls = check->gpu->calls;
	unsigned char *r = gpu_memory(check, n), *g = gpu_memory(check, n);
	struct metrics m;
	struct err err;
	int wrong = 0;

	must(calls->set(check->gpu, r, 2, n, &err), &err);
	must(calls->set(check->gpu, g, 2, n, &err), &err);
	if (calls->first_difference(check->gpu, r, g, n, &err) != -1)
		wrong += tell("a difference between equal bytes");
	must(calls->set(check->gpu, r + places[0], 9, 1, &err), &err);
	must(calls->set(check->gpu, r + places[1], 5, 1, &err), &err);
	if (calls->first_difference(check->gpu, r, g, n, &err) != places[1] ||
	    calls->first_other(check->gpu, r, 2, n, &err) != places[1])
		wrong += tell("the first difference is not where it was planted");
	must(calls->set(check->gpu, r + places[2], 3, 1, &err), &err);
	must(calls->compare(check->gpu, r, g, DTYPE_INT8, n, (struct rule){0, 0.1, 1}, &m, &err), &err);
	if (m.elements != n || m.hits != n - 3 || m.max_abs != 7 || fabs(m.mse * (double)n - (49 + 9 + 1)) > 1e-3 ||
	    m.margin != 7 / (0.1 * 2) || m.worst_count != 5 || m.worst[0].index != places[0] ||
	    m.worst[1].index != places[1] || m.worst[2].index != places[2] || m.worst[3].index != 0 ||
	    m.worst[4].index != 1) {
		wrong += tell("%lld elements", (long long)n);
		show("GPU", &m);
	}
	calls->release(check->gpu, r);
	calls->release(check->gpu, g);
	return wrong;
}

/* The same bits however blocks happen to be scheduled. */
static int comparisons_repeat_to_the_last_bit(const struct check *check)
{
	const int64_t n = check->quick ? 5000 : 1 << 24;
	struct tensors t = {host_memory(n * 2), host_memory(n * 2), DTYPE_BFLOAT16, n, rules[0], 77};
	void *r = gpu_memory(check, n * 2), *g = gpu_memory(check, n * 2);
	struct metrics first, again;
	struct err err;
	int wrong = 0;

	make_close(&t);
	upload(check, r, t.r, n * 2);
	upload(check, g, t.g, n * 2);
	memset(&first, 0, sizeof first);
	must(check->gpu->calls->compare(check->gpu, r, g, t.dtype, n, t.rule, &first, &err), &err);
	for (int i = 0; i < (check->quick ? 2 : 50) && wrong == 0; i++) {
		memset(&again, 0, sizeof again);
		must(check->gpu->calls->compare(check->gpu, r, g, t.dtype, n, t.rule, &again, &err), &err);
		if (memcmp(&first, &again, sizeof first) != 0) {
			wrong += tell("run %d differs", i);
			show("first", &first);
			show("again", &again);
		}
	}
	struct metrics host;

	compare_host(t.r, t.g, t.dtype, n, t.rule, &host);
	if (what_differs(&t, &host, &first, false) != NULL)
		wrong += tell("not the CPU's: %s", what_differs(&t, &host, &first, false));
	free(t.r);
	free(t.g);
	check->gpu->calls->release(check->gpu, r);
	check->gpu->calls->release(check->gpu, g);
	return wrong;
}

/* --- inputs and ground truth -------------------------------------------------------------------------------------- */

/* A problem made by hand, with the axis values of one case. Lives where it is made: `problem` points into it. */
struct made {
	char text[160];
	struct op_axis axes[3];
	struct op_arg in[4], out[2];
	struct op_problem problem;
	int64_t axis[3];
	uint64_t seed;
};

static struct op_arg argument(const char *name, enum dtype dtype, int rank, int first, int second)
{
	return (struct op_arg){.name = name, .dtype = dtype, .rank = rank, .axis = {first, second}};
}

static void finish_problem(struct made *m, const char *op_type, int axes, int inputs, int outputs)
{
	m->problem = (struct op_problem){.name = "made",
	                                 .op_type = op_type,
	                                 .description = "Epsilon is fixed at 1e-6.",
	                                 .axes = m->axes,
	                                 .axis_count = axes,
	                                 .inputs = m->in,
	                                 .input_count = inputs,
	                                 .outputs = m->out,
	                                 .output_count = outputs};
	m->seed = 42;
}

enum { PLAIN, FUSED, UPDATED }; /* rmsnorm; with a residual; and with the updated residual as an output */

static void make_rmsnorm(struct made *m, enum dtype dtype, int form, int64_t rows, int64_t columns)
{
	snprintf(m->text, sizeof m->text, "rmsnorm form %d %s %lld x %lld", form, dtype_name(dtype), (long long)rows,
	         (long long)columns);
	m->axes[0] = (struct op_axis){"batch_size", true, 0};
	m->axes[1] = (struct op_axis){"hidden_size", false, columns};
	m->axis[0] = rows;
	m->axis[1] = columns;
	m->in[0] = argument("hidden_states", dtype, 2, 0, 1);
	m->in[1] = argument(form == PLAIN ? "weight" : "residual", dtype, form == PLAIN ? 1 : 2, form == PLAIN, 1);
	m->in[2] = argument("weight", dtype, 1, 1, 0);
	m->out[0] = argument("output", dtype, 2, 0, 1);
	m->out[1] = argument("residual_out", dtype, 2, 0, 1);
	finish_problem(m, "rmsnorm", 2, form == PLAIN ? 2 : 3, form == UPDATED ? 2 : 1);
}

static void make_gemm(struct made *m, enum dtype dtype, bool nn, int64_t rows, int64_t columns, int64_t inner)
{
	snprintf(m->text, sizeof m->text, "gemm %s %s %lld x %lld x %lld", nn ? "nn" : "nt", dtype_name(dtype),
	         (long long)rows, (long long)columns, (long long)inner);
	m->axes[0] = (struct op_axis){"M", true, 0};
	m->axes[1] = (struct op_axis){"N", false, columns};
	m->axes[2] = (struct op_axis){"K", false, inner};
	m->axis[0] = rows;
	m->axis[1] = columns;
	m->axis[2] = inner;
	m->in[0] = argument("A", dtype, 2, 0, 2);
	m->in[1] = argument("B", dtype, 2, nn ? 2 : 1, nn ? 1 : 2);
	m->out[0] = argument("C", dtype, 2, 0, 1);
	finish_problem(m, "gemm", 3, 2, 1);
}

static struct tensor tensor_of(const struct op_arg *arg, const int64_t *axis, void *data)
{
	struct tensor tensor = {.data = data, .dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++) {
		tensor.shape[d] = axis[arg->axis[d]];
		tensor.elements *= tensor.shape[d];
	}
	return tensor;
}

static int64_t bytes_of(const struct tensor *tensor)
{
	return dtype_bytes(tensor->dtype, tensor->elements);
}

/* One side's copy of a case's tensors. */
struct side {
	struct device *device;
	struct tensor in[4], out[2];
};

/* Poisoned, so that what is not written shows. */
static void allocate_side(struct side *side, struct device *device, const struct made *m)
{
	struct err err;

	side->device = device;
	for (int i = 0; i < m->problem.input_count + m->problem.output_count; i++) {
		bool output = i >= m->problem.input_count;
		int at = output ? i - m->problem.input_count : i;
		struct tensor *tensor = output ? &side->out[at] : &side->in[at];

		*tensor = tensor_of(output ? &m->out[at] : &m->in[at], m->axis, NULL);
		tensor->data = device->calls->allocate(device, bytes_of(tensor), &err);
		must(tensor->data == NULL ? -1 : 0, &err);
		must(device->calls->set(device, tensor->data, 0xff, bytes_of(tensor), &err), &err);
	}
}

static void release_side(struct side *side, const struct made *m)
{
	for (int i = 0; i < m->problem.input_count; i++)
		side->device->calls->release(side->device, side->in[i].data);
	for (int i = 0; i < m->problem.output_count; i++)
		side->device->calls->release(side->device, side->out[i].data);
}

static struct op_case case_of(const struct made *m, const struct op *op, int variant)
{
	struct op_case c = {.problem = &m->problem, .variant = variant, .axis = m->axis, .seed = m->seed};

	if (op->constants != NULL)
		c.constant_count = op->constants(&m->problem, variant, c.constants);
	for (int i = 0; i < c.constant_count; i++)
		if (isnan(c.constants[i].value))
			c.constants[i].value = 1e-6;
	return c;
}

/* Offset of the first byte in which the GPU's tensor differs from the CPU's; -1: none. */
static int64_t first_difference(const struct check *check, const struct tensor *cpu, const struct tensor *gpu)
{
	void *copy = gpu_memory(check, bytes_of(cpu));
	struct err err;

	upload(check, copy, cpu->data, bytes_of(cpu));
	int64_t at = check->gpu->calls->first_difference(check->gpu, gpu->data, copy, bytes_of(cpu), &err);

	check->gpu->calls->release(check->gpu, copy);
	must(at == -2 ? -1 : 0, &err);
	return at;
}

static int same_inputs(const struct check *check, const struct made *m, const struct op *op, const struct op_case *c,
                       struct side *cpu, struct side *gpu)
{
	struct err err;
	int wrong = 0;

	for (int i = 0; i < m->problem.input_count; i++) {
		must(check->cpu->calls->fill(check->cpu, op, c, i, &cpu->in[i], &err), &err);
		must(check->gpu->calls->fill(check->gpu, op, c, i, &gpu->in[i], &err), &err);
		int64_t at = first_difference(check, &cpu->in[i], &gpu->in[i]);

		if (at != -1)
			wrong += tell("%s: input %s differs at byte %lld", m->text, m->in[i].name, (long long)at);
	}
	return wrong;
}

/* The GPU's truth against the oracle's by the family's rule; and again, to the last bit. */
static int same_truth(const struct check *check, const struct made *m, const struct op *op, const struct op_case *c,
                      struct side *cpu, struct side *gpu)
{
	struct err err;
	int wrong = 0;

	must(check->cpu->calls->truth(check->cpu, op, c, cpu->in, cpu->out, &err), &err);
	must(check->gpu->calls->truth(check->gpu, op, c, gpu->in, gpu->out, &err), &err);
	for (int o = 0; o < m->problem.output_count; o++) {
		int64_t bytes = bytes_of(&gpu->out[o]);
		void *oracle = gpu_memory(check, bytes), *before = gpu_memory(check, bytes);
		struct metrics metrics;

		upload(check, oracle, cpu->out[o].data, bytes);
		must(check->gpu->calls->copy(check->gpu, before, gpu->out[o].data, bytes, &err), &err);
		must(check->gpu->calls->compare(check->gpu, gpu->out[o].data, oracle, gpu->out[o].dtype,
		                                gpu->out[o].elements, op->rule(c, o), &metrics, &err), &err);
		printf("#   %s, %s: margin %.4f, cosine %.9f\n", m->text, m->out[o].name, metrics.margin, metrics.cosine);
		if (!metrics.passed) {
			wrong += tell("%s: output %s is not the oracle's", m->text, m->out[o].name);
			show("GPU", &metrics);
		}
		must(check->gpu->calls->truth(check->gpu, op, c, gpu->in, gpu->out, &err), &err);
		if (check->gpu->calls->first_difference(check->gpu, before, gpu->out[o].data, bytes, &err) != -1)
			wrong += tell("%s: output %s differs from run to run", m->text, m->out[o].name);
		check->gpu->calls->release(check->gpu, oracle);
		check->gpu->calls->release(check->gpu, before);
	}
	return wrong;
}

static int check_case(const struct check *check, const struct made *m)
{
	struct err why = {""};
	int variant = 0;
	const struct op_entry *entry = op_find(&m->problem, &variant, &why);
	struct side cpu, gpu;

	if (entry == NULL)
		return tell("%s: %s", m->text, why.text);
	struct op_case c = case_of(m, entry->op, variant);

	allocate_side(&cpu, check->cpu, m);
	allocate_side(&gpu, check->gpu, m);
	int wrong = same_inputs(check, m, entry->op, &c, &cpu, &gpu) + same_truth(check, m, entry->op, &c, &cpu, &gpu);

	release_side(&cpu, m);
	release_side(&gpu, m);
	return wrong;
}

static const enum dtype floats[] = {DTYPE_FLOAT32, DTYPE_FLOAT16, DTYPE_BFLOAT16};

static int rmsnorm_is_the_oracles(const struct check *check)
{
	static const int64_t sizes[][2] = {{1, 1},   {1, 128},   {9, 13},     {40, 257},   {2, 4096},
	                                   {64, 100}, {300, 2048}, {1000, 128}, {256, 7168}, {17, 20001}};
	int wrong = 0;

	for (size_t s = 0; s < (check->quick ? 4 : sizeof sizes / sizeof sizes[0]); s++)
		for (int d = 0; d < 3; d++)
			for (int form = PLAIN; form <= UPDATED; form++) {
				struct made m;

				make_rmsnorm(&m, floats[d], form, sizes[s][0], sizes[s][1]);
				wrong += check_case(check, &m);
			}
	return wrong;
}

static int gemm_is_the_oracles(const struct check *check)
{
	static const int64_t sizes[][3] = {{1, 1, 1},      {7, 13, 29},      {3, 136, 40},     {129, 130, 131},
	                                   {1, 128, 2048}, {3, 256, 7168},   {128, 512, 1000}, {65, 264, 999},
	                                   {130, 392, 4096}, {64, 128, 28672}};
	int wrong = 0;

	for (size_t s = 0; s < (check->quick ? 4 : sizeof sizes / sizeof sizes[0]); s++)
		for (int d = 0; d < 3; d++)
			for (int nn = 0; nn < 2; nn++) {
				struct made m;

				make_gemm(&m, floats[d], nn == 1, sizes[s][0], sizes[s][1], sizes[s][2]);
				wrong += check_case(check, &m);
			}
	return wrong;
}

/* Inputs that no family knows, of every dtype. */
static int generic_inputs_are_the_cpus(const struct check *check)
{
	int wrong = 0;

	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
		for (int64_t n = 1; n < 20000; n = n * 3 + 2) {
			struct made m;
			struct side cpu, gpu;

			make_rmsnorm(&m, (enum dtype)dtype, PLAIN, n, 3);
			struct op_case c = {.problem = &m.problem, .axis = m.axis, .seed = 5};

			allocate_side(&cpu, check->cpu, &m);
			allocate_side(&gpu, check->gpu, &m);
			wrong += same_inputs(check, &m, NULL, &c, &cpu, &gpu);
			release_side(&cpu, &m);
			release_side(&gpu, &m);
		}
	return wrong;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

static const struct {
	const char *sentence;
	int (*run)(const struct check *check);
	bool slow; /* left out when quick */
} checks[] = {
    {"a GPU that is not there is said", a_gpu_that_is_not_there_is_said, false},
    {"memory that is not there is said and harms nothing", memory_that_is_not_there_is_said_and_harms_nothing, true},
    {"shared memory has a handle of its own", shared_memory_has_a_handle_of_its_own, false},
    {"searches find the first byte", searches_find_the_first_byte, false},
    {"integers beyond doubles are told apart", integers_beyond_doubles_are_told_apart, false},
    {"comparisons agree with the CPU", comparisons_agree_with_the_cpu, false},
    {"long comparisons agree with the CPU", long_comparisons_agree_with_the_cpu, false},
    {"comparisons repeat to the last bit", comparisons_repeat_to_the_last_bit, false},
    {"two billion elements are counted", two_billion_elements_are_counted, true},
    {"generic inputs are the CPU's", generic_inputs_are_the_cpus, false},
    {"rmsnorm: inputs bit for bit, truth by its rule", rmsnorm_is_the_oracles, false},
    {"gemm: inputs bit for bit, truth by its rule", gemm_is_the_oracles, false},
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

static int report(int number, const char *sentence, int wrong)
{
	printf("%s %d - %s\n", wrong == 0 ? "ok" : "not ok", number, sentence);
	fflush(stdout);
	return wrong != 0;
}

static const struct kernels_cuda_face *load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	return handle != NULL ? dlsym(handle, "reftest_kernels_cuda") : NULL;
}

int main(int argc, char **argv)
{
	struct check check = {.face = argc > 1 ? load(argv[1]) : NULL, .quick = argc > 2 && strcmp(argv[2], "quick") == 0};
	int failed = 0, number = 0;
	struct err err;

	if (check.face == NULL) {
		printf("Bail out! usage: check libreftest_kernels_cuda.so [quick] (%s)\n", argc > 1 ? dlerror() : "no library");
		return 1;
	}
	if (!check.quick) /* compute-sanitizer would report the planted error */
		failed += report(++number, "a lost context is said by every later call",
		                 a_lost_context_is_said_by_every_later_call(check.face));
	check.cpu = device_open_cpu(&err);
	must(check.cpu == NULL ? -1 : 0, &err);
	check.gpu = check.face->open(0, &err);
	must(check.gpu == NULL ? -1 : 0, &err);
	printf("# %s, %s\n", check.gpu->calls->product(check.gpu), check.gpu->calls->class_name(check.gpu));
	for (int i = 0; i < CHECKS; i++)
		if (!check.quick || !checks[i].slow)
			failed += report(++number, checks[i].sentence, checks[i].run(&check));
	printf("1..%d\n", number);
	check.gpu->calls->close(check.gpu);
	check.cpu->calls->close(check.cpu);
	return failed != 0;
}
