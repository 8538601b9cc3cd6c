/* activation on a GPU: what kernels/activation/activation.c has in double, in float32, in forms that do not cancel. A
 * thread makes elements of the output one after another. */
#include "kernels/cuda_check.h"

#include "kernels/activation/inputs.h"

enum { THREADS = 256 };

static __device__ __forceinline__ float load(const void *data, enum dtype dtype, int64_t index)
{
	if (dtype == DTYPE_BFLOAT16)
		return float_from_bf16(((const uint16_t *)data)[index]);
	if (dtype == DTYPE_FLOAT16)
		return float_from_f16(((const uint16_t *)data)[index]);
	return ((const float *)data)[index];
}

static __device__ __forceinline__ float activate(int kind, float x)
{
	switch (kind) {
	case ACTIVATION_SILU:
		return x / (1 + expf(-x));
	case ACTIVATION_GELU:
		return 0.5f * x * erfcf(-0.70710678f * x);
	default: /* (1 + tanh(u)) / 2 = 1 / (1 + e^-2u) */
		return x / (1 + expf(-1.59576912f * (x + 0.044715f * x * x * x)));
	}
}

static __global__ void __launch_bounds__(THREADS) gate(int kind, const void *x, enum dtype x_dtype, void *y,
                                                       enum dtype y_dtype, int64_t elements, int64_t half)
{
	int64_t threads = (int64_t)gridDim.x * THREADS;

	for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < elements; i += threads) {
		int64_t at = i / half * 2 * half + i % half;

		number_store(y, y_dtype, i, activate(kind, load(x, x_dtype, at)) * load(x, x_dtype, at + half));
	}
}

static unsigned grid(int64_t threads)
{
	int64_t blocks = (threads + THREADS - 1) / THREADS, most = 1 << 20;

	return (unsigned)(blocks < most ? blocks : most);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	if (out[0].elements == 0)
		return 0;
	gate<<<grid(out[0].elements), THREADS, 0, (cudaStream_t)stream>>>(c->variant, in[0].data, in[0].dtype,
	                                                                 out[0].data, out[0].dtype, out[0].elements,
	                                                                 activation_fill_of(c).half);
	return cuda_check(cudaGetLastError(), "launching activation", err);
}

/* Four elements a thread: one Philox block has the random bits of four. */
static __global__ void __launch_bounds__(THREADS) make(void *data, enum dtype dtype, int64_t elements,
                                                       const struct activation_fill f)
{
	int64_t blocks = (elements + 3) / 4, threads = (int64_t)gridDim.x * THREADS;

	for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < elements; i++)
			number_store(data, dtype, 4 * b + i, activation_element(&f, 4 * b + i, random.word[i]));
	}
}

static int fill(const struct op_case *c, int, struct tensor *out, void *stream, struct err *err)
{
	if (out->elements == 0)
		return 0;
	make<<<grid((out->elements + 3) / 4), THREADS, 0, (cudaStream_t)stream>>>(out->data, out->dtype, out->elements,
	                                                                        activation_fill_of(c));
	return cuda_check(cudaGetLastError(), "launching the fill of activation", err);
}

extern "C" const struct op_cuda activation_cuda = {"activation", fill, launch, NULL};
