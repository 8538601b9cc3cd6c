/* elements_cuda - what many families' kernels do alike: load an element, add up over a block, fill a tensor.
 *
 * Only for .cu files; first includes what they include first. */
#ifndef REFTEST_KERNELS_ELEMENTS_CUDA_H
#define REFTEST_KERNELS_ELEMENTS_CUDA_H

#include "kernels/cuda_check.h"

#include "kernels/inputs.h"
#include "kernels/op.h"

/* Element `index` of float32, float16 or bfloat16. */
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

/* Of int32 or int64. */
static __device__ __forceinline__ int64_t load_integer(const void *data, enum dtype dtype, int64_t index)
{
	return dtype == DTYPE_INT64 ? ((const int64_t *)data)[index] : ((const int32_t *)data)[index];
}

static __device__ __forceinline__ int64_t load_integer(const struct tensor &tensor, int64_t index)
{
	return load_integer(tensor.data, tensor.dtype, index);
}

/* The sum of `value` over a block of THREADS (a power of two), in every thread of it: added as a tree, the same bits every
 * time. */
template <int THREADS> static __device__ float block_sum(float value)
{
	__shared__ float part[THREADS];

	__syncthreads(); /* whoever still reads the sum of the last time */
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

/* Blocks of ELEMENT_THREADS for that many threads, of which each may have to do the work of several. */
static inline unsigned element_blocks(int64_t threads)
{
	int64_t blocks = (threads + ELEMENT_THREADS - 1) / ELEMENT_THREADS, most = 1 << 20;

	return (unsigned)(blocks < most ? blocks : most);
}

/* Four elements a thread: one Philox block has the random bits of four. */
template <class Fill, float (*element)(const Fill *, int64_t, uint32_t)>
static __global__ void __launch_bounds__(ELEMENT_THREADS)
    make_elements(void *data, enum dtype dtype, int64_t elements, const Fill f)
{
	int64_t blocks = (elements + 3) / 4, threads = (int64_t)gridDim.x * ELEMENT_THREADS;

	for (int64_t b = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < elements; i++)
			number_store(data, dtype, 4 * b + i, element(&f, 4 * b + i, random.word[i]));
	}
}

static __global__ void __launch_bounds__(ELEMENT_THREADS)
    round_elements(const struct tensor from, const struct tensor to)
{
	int64_t threads = (int64_t)gridDim.x * ELEMENT_THREADS;

	for (int64_t i = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; i < to.elements; i += threads)
		number_store(to.data, to.dtype, i, from.data != NULL ? load(from, i) : 0.0f);
}

/* Copies `from` (absent: zeros), each element rounded to the dtype of `to`. */
static inline int copy_elements(const struct tensor &from, const struct tensor &to, const char *what, void *stream,
                                struct err *err)
{
	if (to.elements == 0)
		return 0;
	round_elements<<<element_blocks(to.elements), ELEMENT_THREADS, 0, (cudaStream_t)stream>>>(from, to);
	return cuda_check(cudaGetLastError(), what, err);
}

/* Fills `out` with element(&f, index, random bits), rounded to its dtype, as the family's op.fill does on the host. */
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
