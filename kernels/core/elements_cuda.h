/* elements_cuda - GPU code that many families share: loads an element, sums over a block, or fills a tensor.
 *
 * Only .cu files include this header, before any other header. */
#ifndef REFTEST_KERNELS_CORE_ELEMENTS_CUDA_H
#define REFTEST_KERNELS_CORE_ELEMENTS_CUDA_H

#include "kernels/core/cuda_check.h"

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* Loads element `index` of a float32, float16 or bfloat16 tensor. */
static __device__ __forceinline__ float load(const void *data, enum dtype dtype, int64_t index)
{
	if (dtype == DTYPE_BFLOAT16)
		return float_from_bf16(((const uint16_t *)data)[index]);
	if (dtype == DTYPE_FLOAT16)
		return float_from_f16(((const uint16_t *)data)[index]);
	return ((const float *)data)[index];
}

static __device__ __forceinline__ float load(const struct tensor &tensor, int64_t index)
{
	return load(tensor.data, tensor.dtype, index);
}

/* Loads element `index` of an int32 or int64 tensor. */
static __device__ __forceinline__ int64_t load_integer(const void *data, enum dtype dtype, int64_t index)
{
	return dtype == DTYPE_INT64 ? ((const int64_t *)data)[index] : ((const int32_t *)data)[index];
}

static __device__ __forceinline__ int64_t load_integer(const struct tensor &tensor, int64_t index)
{
	return load_integer(tensor.data, tensor.dtype, index);
}

/* Calls a family's op.check with all tensors marked as not loaded, because the host cannot read device memory. */
static inline int check_unseen(int (*check)(const struct op_case *, const struct tensor *, struct err *),
                               const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct tensor unseen[OP_ARGS];

	for (int i = 0; i < c->problem->input_count; i++) {
		unseen[i] = in[i];
		unseen[i].data = NULL;
	}
	return check(c, unseen, err);
}

/* Returns the sum of `value` over all 32 lanes of a warp. Every lane gets the same bits. */
static __device__ __forceinline__ float add_lanes(float value)
{
	for (int other = 16; other > 0; other /= 2)
		value += __shfl_xor_sync(0xffffffffu, value, other);
	return value;
}

/* Returns the sum of `value` over all threads of a block of THREADS threads (a power of two). Every thread gets the
 * sum. The additions have a fixed order, so every run gives the same bits. */
template <int THREADS> static __device__ float block_sum(float value)
{
	__shared__ float part[THREADS];

	__syncthreads(); /* other threads may still read the result of the previous call */
	part[threadIdx.x] = value;
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
	}
	__syncthreads();
	return part[0];
}

enum { ELEMENT_THREADS = 256 };

/* Returns the number of blocks of ELEMENT_THREADS threads in a launch of about `threads` threads. The number of blocks
 * is limited, so each thread must process several elements of a large tensor. */
static inline unsigned element_blocks(int64_t threads)
{
	int64_t blocks = (threads + ELEMENT_THREADS - 1) / ELEMENT_THREADS, most = 1 << 20;

	return (unsigned)(blocks < most ? blocks : most);
}

/* Fills a tensor. Each thread writes four elements, because one Philox block contains the random bits of four
 * elements. */
template <class Fill, float (*element)(const Fill *, int64_t, uint32_t)>
static __global__ void __launch_bounds__(ELEMENT_THREADS)
    make_elements(void *data, enum dtype dtype, int64_t elements, const Fill f)
{
	int64_t blocks = (elements + 3) / 4, threads = (int64_t)gridDim.x * ELEMENT_THREADS;

	for (int64_t b = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < elements; i++)
			dtype_store_float(data, dtype, 4 * b + i, element(&f, 4 * b + i, random.word[i]));
	}
}

static __global__ void __launch_bounds__(ELEMENT_THREADS)
    round_elements(const struct tensor from, const struct tensor to)
{
	int64_t threads = (int64_t)gridDim.x * ELEMENT_THREADS;

	for (int64_t i = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; i < to.elements; i += threads)
		dtype_store_float(to.data, to.dtype, i, from.data != NULL ? load(from, i) : 0.0f);
}

/* Copies `from` to `to` and rounds each element to the dtype of `to`. If `from` is absent, writes zeros. */
static inline int copy_elements(const struct tensor &from, const struct tensor &to, const char *what, void *stream,
                                struct err *err)
{
	if (to.elements == 0)
		return 0;
	round_elements<<<element_blocks(to.elements), ELEMENT_THREADS, 0, (cudaStream_t)stream>>>(from, to);
	return cuda_check(cudaGetLastError(), what, err);
}

/* Fills `out` with element(&f, index, random bits), rounded to the dtype of `out`. The result equals the result of the
 * family's op.fill on the host. */
template <auto element, class Fill>
static int fill_elements(struct tensor *out, const Fill &f, void *stream, struct err *err)
{
	if (out->elements == 0)
		return 0;
	make_elements<Fill, element>
	    <<<element_blocks((out->elements + 3) / 4), ELEMENT_THREADS, 0, (cudaStream_t)stream>>>(
	        out->data, out->dtype, out->elements, f);
	return cuda_check(cudaGetLastError(), "launching the fill of an input", err);
}

#endif
