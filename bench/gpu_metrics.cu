/* gpu_metrics - measures how fast the comparison reads two tensors, and relates this speed to that of a memory copy on
 * the same GPU.
 *
 *   gpu_metrics [DEVICE]     number of the GPU, 0 by default
 *
 * "us" is the time of one comparison on the device, as the median of several runs. A run measures a series of
 * back-to-back launches with CUDA events. The launches read different sets of tensors, which together are many times
 * larger than the cache. "call" is the time that the caller waits: from the launch to the results in host memory. For a
 * comparison, GB/s counts each byte of both tensors once. For the memory copy, GB/s counts the bytes read and the bytes
 * written. */
#include "kernels/core/compare_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/core/random_inputs.h"

enum { RUNS = 9 };
static const int64_t most_sets = 64;
/* The least number of bytes that a run reads: many times the size of any cache. */
static const int64_t rotate_bytes = INT64_C(1) << 30;
static const int64_t pool_bytes = INT64_C(5) << 30;

static void must(int rc, const struct err *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "gpu_metrics: %s\n", err->text);
	exit(1);
}

/* The kinds of tensor pairs. A kind determines the distribution of the ground truth's values, and how the reference
 * differs from them. */
enum content { NORMAL, UNIFORM, EQUAL, TIES, MISSES, ZEROS, GARBAGE };
static const char *const content_names[] = {
    "normal, an ulp off in 1 of 4",  "uniform, an ulp off in 1 of 4", "normal, equal",       "one pair everywhere",
    "normal, 1 miss in 1000",        "reference all zeros",           "reference all garbage"};

/* Computes the bits of a reference element from the bits of the ground truth's element; `random` differs for each
 * element. */
static __device__ uint32_t reference_bits(enum content content, uint32_t truth, uint32_t random)
{
	switch (content) {
	case MISSES:
		return truth + (random % 1000 == 0 ? 64 : random % 4 == 0);
	case GARBAGE:
		return random >> 1;
	case ZEROS:
		return 0;
	case TIES:
		return truth + 1;
	case EQUAL:
		return truth;
	default:
		return truth + (random % 4 == 0);
	}
}

static __device__ float truth_value(enum content content, uint64_t key, int64_t index)
{
	struct philox random = philox_block(key, (uint64_t)index);
	float u = (float)((random.word[0] >> 8) + 1) * 0x1p-24f; /* (0, 1] */

	if (content == TIES)
		return 1;
	if (content == UNIFORM)
		return 2 * uniform_signed(random.word[0], 23);
	return sqrtf(-2 * logf(u)) * cospif(uniform_signed(random.word[1], 23));
}

static __global__ void make(void *reference, void *truth, enum dtype dtype, int64_t elements, enum content content,
                            uint64_t key)
{
	for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < elements;
	     i += (int64_t)gridDim.x * blockDim.x) {
		uint32_t random = philox_bits(key + 1, i);

		dtype_store_float(truth, dtype, i, truth_value(content, key, i));
		if (dtype == DTYPE_FLOAT32)
			((uint32_t *)reference)[i] = reference_bits(content, ((uint32_t *)truth)[i], random);
		else
			((uint16_t *)reference)[i] = (uint16_t)reference_bits(content, ((uint16_t *)truth)[i], random);
	}
}

struct bench {
	cudaStream_t stream;
	cudaEvent_t start, end;
	unsigned char *pool[2];
	struct compare_cuda compare;
	double copy; /* bytes per second */
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof *values, by_value);
	return values[count / 2];
}

static double host_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A kind of operation, and a function that runs it on the k-th set of tensors. */
struct operation {
	void (*start)(struct bench *bench, const struct operation *operation, int k);
	enum dtype dtype;
	int64_t elements, bytes; /* number of elements and bytes of one tensor */
	int sets;
};

static unsigned char *tensor_at(const struct bench *bench, const struct operation *operation, int side, int k)
{
	return bench->pool[side] + k % operation->sets * operation->bytes;
}

static void start_copy(struct bench *bench, const struct operation *operation, int k)
{
	struct err err;

	must(CUDA_CHECK(cudaMemcpyAsync(tensor_at(bench, operation, 0, k), tensor_at(bench, operation, 1, k),
	                                (size_t)operation->bytes, cudaMemcpyDeviceToDevice, bench->stream),
	                &err), &err);
}

static void start_compare(struct bench *bench, const struct operation *operation, int k)
{
	struct rule rule = {8e-3, 1e-2, 1};
	struct err err;

	if (operation->dtype == DTYPE_FLOAT32)
		rule = {1e-5, 1e-5, 1};
	must(compare_cuda_launch(&bench->compare, tensor_at(bench, operation, 0, k), tensor_at(bench, operation, 1, k),
	                         operation->dtype, operation->elements, rule, bench->stream, &err), &err);
}

/* Returns the seconds that one operation takes on the device. */
static double device_seconds(struct bench *bench, const struct operation *operation)
{
	int repeats = 2 * operation->sets < 10 ? 10 : 2 * operation->sets;
	double seconds[RUNS];
	struct err err;

	for (int run = -1; run < RUNS; run++) { /* the first warms up */
		float ms;

		must(CUDA_CHECK(cudaEventRecord(bench->start, bench->stream), &err), &err);
		for (int k = 0; k < repeats; k++)
			operation->start(bench, operation, k);
		must(CUDA_CHECK(cudaEventRecord(bench->end, bench->stream), &err), &err);
		must(CUDA_CHECK(cudaEventSynchronize(bench->end), &err), &err);
		must(CUDA_CHECK(cudaEventElapsedTime(&ms, bench->start, bench->end), &err), &err);
		if (run >= 0)
			seconds[run] = 1e-3 * ms / repeats;
	}
	return median(seconds, RUNS);
}

/* Returns the seconds from a call to its result. */
static double call_seconds(struct bench *bench, const struct operation *operation)
{
	enum { CALLS = 101 };
	double seconds[CALLS];
	struct err err;

	for (int k = 0; k < CALLS; k++) {
		double start = host_seconds();

		operation->start(bench, operation, k);
		must(CUDA_CHECK(cudaStreamSynchronize(bench->stream), &err), &err);
		seconds[k] = host_seconds() - start;
	}
	return median(seconds, CALLS);
}

static struct operation operation_on(enum dtype dtype, int64_t elements)
{
	int64_t bytes = dtype_bytes(dtype, elements), sets = rotate_bytes / (2 * bytes);
	struct operation operation = {NULL, dtype, elements, bytes, 0};

	operation.sets = (int)(sets < 2 ? 2 : sets > most_sets ? most_sets : sets);
	return operation;
}

static void row(struct bench *bench, enum dtype dtype, int power, enum content content)
{
	struct operation operation = operation_on(dtype, INT64_C(1) << power);
	struct err err;

	for (int k = 0; k < operation.sets; k++)
		make<<<2048, 256, 0, bench->stream>>>(tensor_at(bench, &operation, 0, k), tensor_at(bench, &operation, 1, k),
		                                      dtype, operation.elements, content, (uint64_t)k * 2);
	must(CUDA_CHECK(cudaGetLastError(), &err), &err);
	operation.start = start_compare;
	double seconds = device_seconds(bench, &operation), call = call_seconds(bench, &operation);

	operation.start = start_copy;
	double copy = device_seconds(bench, &operation), bytes = 2.0 * (double)operation.bytes;

	printf("| 2^%d %s | %s | %.1f | %.1f | %.0f | %.1f %% | %.1f | %.1f %% |\n", power, dtype_name(dtype),
	       content_names[content], 1e6 * seconds, 1e6 * call, 1e-9 * bytes / seconds, 100 * bytes / seconds / bench->copy,
	       1e6 * copy, 100 * copy / seconds);
	fflush(stdout);
}

/* Measures memory copies of 512 MiB to 4 GiB, and keeps the speed of the fastest copy. The output shows the speed of
 * comparisons as a fraction of this copy speed. */
static void measure_copy(struct bench *bench)
{
	for (int power = 28; power <= 31; power++) {
		struct operation operation = operation_on(DTYPE_FLOAT16, INT64_C(1) << power);

		operation.sets = 1;
		operation.start = start_copy;
		double rate = 2.0 * (double)operation.bytes / device_seconds(bench, &operation);

		printf("copy of %4lld MiB: %.0f GB/s\n", (long long)(operation.bytes >> 20), 1e-9 * rate);
		if (rate > bench->copy)
			bench->copy = rate;
	}
}

static void set_up(struct bench *bench, int device)
{
	cudaDeviceProp properties;
	struct err err;

	must(CUDA_CHECK(cudaSetDevice(device), &err), &err);
	must(CUDA_CHECK(cudaGetDeviceProperties(&properties, device), &err), &err);
	must(CUDA_CHECK(cudaStreamCreate(&bench->stream), &err), &err);
	must(CUDA_CHECK(cudaEventCreate(&bench->start), &err), &err);
	must(CUDA_CHECK(cudaEventCreate(&bench->end), &err), &err);
	for (int side = 0; side < 2; side++)
		must(CUDA_CHECK(cudaMalloc(&bench->pool[side], (size_t)pool_bytes), &err), &err);
	must(compare_cuda_open(&bench->compare, &err), &err);
	printf("%s, %d multiprocessors, %d MiB of L2\n", properties.name, properties.multiProcessorCount,
	       properties.l2CacheSize >> 20);
}

int main(int argc, char **argv)
{
	static const struct {
		enum dtype dtype;
		int power;
		enum content content;
	} others[] = {
	    {DTYPE_FLOAT16, 26, NORMAL},   {DTYPE_FLOAT16, 28, NORMAL}, {DTYPE_FLOAT32, 26, NORMAL},
	    {DTYPE_BFLOAT16, 26, UNIFORM}, {DTYPE_BFLOAT16, 28, UNIFORM}, {DTYPE_BFLOAT16, 26, EQUAL},
	    {DTYPE_BFLOAT16, 28, EQUAL},   {DTYPE_BFLOAT16, 28, TIES},  {DTYPE_BFLOAT16, 28, MISSES},
	    {DTYPE_BFLOAT16, 28, ZEROS},   {DTYPE_BFLOAT16, 28, GARBAGE},
	};
	struct bench bench = {};

	set_up(&bench, argc > 1 ? atoi(argv[1]) : 0);
	measure_copy(&bench);
	printf("\n| elements | contents | us | call us | GB/s | of the copy's %.0f GB/s | copy of as many bytes, us | ratio |\n"
	       "|---|---|---|---|---|---|---|---|\n", 1e-9 * bench.copy);
	for (int power = 20; power <= 28; power++)
		row(&bench, DTYPE_BFLOAT16, power, NORMAL);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		row(&bench, others[i].dtype, others[i].power, others[i].content);
	compare_cuda_close(&bench.compare);
	return 0;
}
