/* quantize_fp8_per_token_group on a GPU - computes the operation of quantize_fp8_per_token_group.c. Each block of
 * threads computes one group. The block reads the group twice: for the largest magnitude, and for the quotients. The
 * magnitude and the quotients are computed in double. A quotient is rounded to float before it is rounded to e4m3. If
 * the scale is a power of two, rounding to float changes nothing, because the quotient is exact in float. With other
 * scales, rounding to float may turn the quotient into a tie. In this case, op.judge accepts both e4m3 numbers next to
 * the tie. */
#include "kernels/core/elements_cuda.h"

#include "kernels/quantize_fp8_per_token_group/input_values.h"

enum { THREADS = 128 };

struct groups {
	const void *x;
	void *quantized;
	float *scale;
	enum dtype dtype;
	int64_t group, count;
	double eps;
};

/* Returns the largest `value` of all threads. Every thread gets this result. */
static __device__ float largest(float value)
{
	__shared__ float part[THREADS];

	__syncthreads(); /* other threads may still read the result of the previous call */
	part[threadIdx.x] = value;
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + half]);
	}
	__syncthreads();
	return part[0];
}

static __device__ void quantize_one(const struct groups &groups, int64_t number)
{
	int64_t start = number * groups.group;
	float most = 0;

	for (int64_t i = threadIdx.x; i < groups.group; i += THREADS)
		most = fmaxf(most, fabsf(load(groups.x, groups.dtype, start + i)));
	double divisor = fmax((double)largest(most), groups.eps);

	for (int64_t i = threadIdx.x; i < groups.group; i += THREADS) {
		double quotient = (double)load(groups.x, groups.dtype, start + i) * 448 / divisor;
		float limited = (float)(quotient < -448 ? -448 : quotient > 448 ? 448 : quotient);

		dtype_store_float(groups.quantized, DTYPE_FLOAT8_E4M3FN, start + i, limited);
	}
	if (threadIdx.x == 0)
		groups.scale[number] = (float)(divisor / 448);
}

static __global__ void __launch_bounds__(THREADS) quantize(const struct groups groups)
{
	for (int64_t number = blockIdx.x; number < groups.count; number += gridDim.x)
		quantize_one(groups, number);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct quantize_roles roles = quantize_roles_of(c->problem);
	const struct tensor *x = &in[roles.x];
	struct groups groups = {};
	int64_t most = 1 << 20; /* the maximum number of blocks; if there are more groups, each block computes several
				 * groups */

	groups.x = x->data;
	groups.quantized = out[roles.quantized].data;
	groups.scale = (float *)out[roles.scale].data;
	groups.dtype = x->dtype;
	groups.group = quantize_extent_of(c->problem).group;
	groups.count = out[roles.scale].elements;
	groups.eps = quantize_eps(c);
	if (groups.count == 0)
		return 0;
	quantize<<<(unsigned)(groups.count < most ? groups.count : most), THREADS, 0, (cudaStream_t)stream>>>(groups);
	return cuda_check(cudaGetLastError(), "launching the quantisation", err);
}

static int fill(const struct op_case *c, int, struct tensor *out, void *stream, struct err *err)
{
	return fill_elements<quantize_element>(out, quantize_fill_of(c), stream, err);
}

extern "C" const struct op_cuda quantize_fp8_per_token_group_cuda = {"quantize_fp8_per_token_group", fill, launch, NULL};
