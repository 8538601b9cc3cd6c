/* layernorm on a GPU: what kernels/layernorm/layernorm.c has in double, in float32.
 *
 * A block a row, three times over it: for the mean, for the squared differences from it, for the answer. Every thread
 * adds its columns in order, threads are added as a tree: the same bits every time. Division and square root are
 * IEEE's. */
#include "kernels/cuda_check.h"

#include "kernels/layernorm/inputs.h"

enum { THREADS = 256 };

struct rows {
	const void *x, *weight, *bias; /* bias NULL: none */
	void *y;
	enum dtype x_dtype, weight_dtype, bias_dtype, y_dtype;
	int64_t columns;
	float eps;
};

static __device__ __forceinline__ float load(const void *data, enum dtype dtype, int64_t index)
{
	if (dtype == DTYPE_BFLOAT16)
		return float_from_bf16(((const uint16_t *)data)[index]);
	if (dtype == DTYPE_FLOAT16)
		return float_from_f16(((const uint16_t *)data)[index]);
	return ((const float *)data)[index];
}

/* The sum of every thread's `value`, in every thread. */
static __device__ float add_block(float value)
{
	__shared__ float part[THREADS];

	part[threadIdx.x] = value;
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
	}
	__syncthreads();
	return part[0];
}

static __global__ void __launch_bounds__(THREADS) normalise(const struct rows rows)
{
	int64_t start = blockIdx.x * rows.columns;
	float sum = 0, squares = 0;

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS)
		sum += load(rows.x, rows.x_dtype, start + c);
	float mean = add_block(sum) / (float)rows.columns;

	__syncthreads(); /* all have read the sum before the next one is made in its place */
	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float difference = load(rows.x, rows.x_dtype, start + c) - mean;

		squares += difference * difference;
	}
	float root = sqrtf(add_block(squares) / (float)rows.columns + rows.eps);

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load(rows.x, rows.x_dtype, start + c), w = load(rows.weight, rows.weight_dtype, c);
		float b = rows.bias == NULL ? 0.0f : load(rows.bias, rows.bias_dtype, c);

		number_store(rows.y, rows.y_dtype, start + c, (x - mean) / root * w + b);
	}
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct layernorm_roles roles = layernorm_roles_of(c->problem);
	struct rows rows = {};

	rows.columns = in[roles.weight].elements;
	int64_t count = rows.columns > 0 ? out[0].elements / rows.columns : 0;

	if (count == 0)
		return 0;
	if (count > INT32_MAX)
		return err_set(err, "layernorm: %lld rows are more than a grid has blocks; take fewer",
		               (long long)count);
	rows.x = in[roles.x].data;
	rows.x_dtype = in[roles.x].dtype;
	rows.weight = in[roles.weight].data;
	rows.weight_dtype = in[roles.weight].dtype;
	rows.y = out[0].data;
	rows.y_dtype = out[0].dtype;
	if (roles.bias >= 0) {
		rows.bias = in[roles.bias].data;
		rows.bias_dtype = in[roles.bias].dtype;
	}
	rows.eps = (float)layernorm_eps(c);
	normalise<<<(unsigned)count, THREADS, 0, (cudaStream_t)stream>>>(rows);
	return cuda_check(cudaGetLastError(), "launching layernorm", err);
}

/* Four elements a thread: one Philox block has the random bits of four. */
static __global__ void __launch_bounds__(THREADS) make(void *data, enum dtype dtype, int64_t elements,
                                                       const struct layernorm_fill f)
{
	int64_t blocks = (elements + 3) / 4, threads = (int64_t)gridDim.x * THREADS;

	for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < elements; i++)
			number_store(data, dtype, 4 * b + i, layernorm_element(&f, 4 * b + i, random.word[i]));
	}
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	int64_t blocks = (out->elements + 4 * THREADS - 1) / (4 * THREADS), most = 1 << 20;

	if (blocks == 0)
		return 0;
	make<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, (cudaStream_t)stream>>>(
	    out->data, out->dtype, out->elements, layernorm_fill_of(c, input));
	return cuda_check(cudaGetLastError(), "launching the fill of layernorm", err);
}

extern "C" const struct op_cuda layernorm_cuda = {"layernorm", fill, launch, NULL};
