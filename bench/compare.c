/* compare - measures how fast compare_host compares two tensors. For comparison, it also measures how fast the same
 * number of threads only reads the tensors. Compare the ratios and not the times, because the times depend on the
 * machine and its load. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "kernels/core/compare_tensors.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"

enum { ROUNDS = 7 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Reads both tensors once with all threads, eight bytes at a time. */
static uint64_t read_both(const uint64_t *a, const uint64_t *b, int64_t words)
{
	uint64_t sum = 0;

#pragma omp parallel for simd reduction(+ : sum)
	for (int64_t i = 0; i < words; i++)
		sum += a[i] ^ b[i];
	return sum;
}

/* Fills `a` with uniform values. `b` gets the same values, but one value in 1024 differs by one ULP, as in a case that
 * passes. */
static void fill(void *a, void *b, enum dtype dtype, int64_t elements)
{
#pragma omp parallel for
	for (int64_t i = 0; i < elements; i++) {
		uint32_t random = philox_bits(1, i);
		float value = uniform_signed(random, 23);

		dtype_store_float(a, dtype, i, value);
		dtype_store_float(b, dtype, i, random & 1023 ? value : value * 1.008f);
	}
}

static void measure(enum dtype dtype, int64_t elements)
{
	int64_t bytes = dtype_bytes(dtype, elements);
	uint64_t *a = aligned_alloc(256, (size_t)bytes), *b = aligned_alloc(256, (size_t)bytes);
	double read = INFINITY, compare = INFINITY;
	struct metrics metrics;
	uint64_t sum = 0;

	if (a == NULL || b == NULL)
		die_no_memory();
	fill(a, b, dtype, elements);
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();

		sum ^= read_both(a, b, bytes / 8);
		double middle = now();

		compare_host(a, b, dtype, elements, (struct rule){1e-3, 8e-3, 1}, &metrics);
		read = fmin(read, middle - start);
		compare = fmin(compare, now() - middle);
	}
	printf(
	    "compare %-14s 2^%.0f elements: %5.1f GB/s, reading both %5.1f GB/s, ratio %.2f (margin %.2f, sum %02x)\n",
	    dtype_name(dtype), log2((double)elements), 2e-9 * (double)bytes / compare, 2e-9 * (double)bytes / read,
	    read / compare, metrics.margin, (unsigned)(sum & 255));
	free(a);
	free(b);
}

int main(void)
{
	static const enum dtype dtypes[] = {DTYPE_BFLOAT16, DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT8_E4M3FN,
					    DTYPE_INT32};

	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
		for (int log = 20; log <= 26; log += 6)
			measure(dtypes[i], (int64_t)1 << log);
	return 0;
}
