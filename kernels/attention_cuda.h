/* attention_cuda - the truth of kernels/attention.h on a GPU, and its inputs, for the families' .cu files. */
#ifndef REFTEST_KERNELS_ATTENTION_CUDA_H
#define REFTEST_KERNELS_ATTENTION_CUDA_H

#include "kernels/cuda_check.h"

#include "kernels/attention.h"
#include "kernels/attention_inputs.h"

/* op_cuda.launch and op_cuda.fill for the family with these roles. */
int attention_launch(const struct op_case *c, const struct attention_roles *roles, const struct tensor *in,
                     struct tensor *out, void *stream, struct err *err);
int attention_fill_cuda(const struct op_case *c, const struct attention_roles *roles, int input, struct tensor *out,
                        void *stream, struct err *err);

/* Element `index` of a tensor of floats; float64 is rounded. */
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
