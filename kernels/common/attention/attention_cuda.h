/* attention_cuda - computes the inputs and the truth of attention (kernels/common/attention/attention.h) on a GPU. Only
 * the .cu files of families include this header. */
#ifndef REFTEST_KERNELS_COMMON_ATTENTION_ATTENTION_CUDA_H
#define REFTEST_KERNELS_COMMON_ATTENTION_ATTENTION_CUDA_H

#include "kernels/core/cuda_check.h"

#include "kernels/common/attention/attention.h"
#include "kernels/common/attention/input_values.h"

/* Implement op_cuda.launch and op_cuda.fill for every attention family. */
int attention_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
                     struct err *err);
int attention_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);

/* Loads element `index` of a tensor of floats as float32; a float64 element is rounded. */
static __device__ __forceinline__ float attention_load(const void *data, enum dtype dtype, int64_t index)
{
	switch (dtype) {
	case DTYPE_BFLOAT16:
		return float_from_bf16(((const uint16_t *)data)[index]);
	case DTYPE_FLOAT16:
		return float_from_f16(((const uint16_t *)data)[index]);
	case DTYPE_FLOAT8_E4M3FN:
		return float_from_e4m3(((const uint8_t *)data)[index]);
	case DTYPE_FLOAT8_E5M2:
		return float_from_e5m2(((const uint8_t *)data)[index]);
	case DTYPE_FLOAT64:
		return (float)((const double *)data)[index];
	default:
		return ((const float *)data)[index];
	}
}

#endif
