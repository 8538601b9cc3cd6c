/* activation on a GPU - computes the same operation as kernels/activation/activation.c, in float32 and with formulas in
 * which no terms cancel. Each thread computes several consecutive elements of the output. */
#include "kernels/core/elements_cuda.h"

#include "kernels/activation/input_values.h"

static __device__ __forceinline__ float activate(int kind, float x)
{
	switch (kind) {
	case ACTIVATION_SILU:
		return x / (1 + expf(-x));
	case ACTIVATION_GELU:
		return 0.5f * x * erfcf(-0.70710678f * x);
	default: /* (1 + tanh(u)) / 2 is computed as 1 / (1 + e^-2u), in which no terms cancel */
		return x / (1 + expf(-1.59576912f * (x + 0.044715f * x * x * x)));
	}
}

static __global__ void __launch_bounds__(ELEMENT_THREADS) gate(int kind, const void *x, enum dtype x_dtype, void *y,
                                                       enum dtype y_dtype, int64_t elements, int64_t half)
{
	int64_t threads = (int64_t)gridDim.x * ELEMENT_THREADS;

	for (int64_t i = (int64_t)blockIdx.x * ELEMENT_THREADS + threadIdx.x; i < elements; i += threads) {
		int64_t at = i / half * 2 * half + i % half;

		dtype_store_float(y, y_dtype, i, activate(kind, load(x, x_dtype, at)) * load(x, x_dtype, at + half));
	}
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	if (out[0].elements == 0)
		return 0;
	gate<<<element_blocks(out[0].elements), ELEMENT_THREADS, 0, (cudaStream_t)stream>>>(
	    c->variant, in[0].data, in[0].dtype, out[0].data, out[0].dtype, out[0].elements,
	    activation_fill_of(c).half);
	return cuda_check(cudaGetLastError(), "launching activation", err);
}

static int fill(const struct op_case *c, int, struct tensor *out, void *stream, struct err *err)
{
	return fill_elements<activation_element>(out, activation_fill_of(c), stream, err);
}

extern "C" const struct op_cuda activation_cuda = {"activation", fill, launch, NULL};
