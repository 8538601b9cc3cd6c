/* gemma_rmsnorm on a GPU: what kernels/gemma_rmsnorm/gemma_rmsnorm.c has in double, in float32.
 *
 * A block a row, twice over it: once for the sum of squares, once for the answer. Every thread adds its columns in
 * order, threads are added as a tree: the same bits every time. Division and square root are IEEE's. */
#include "kernels/cuda_check.h"

#include "kernels/gemma_rmsnorm/inputs.h"

enum { THREADS = 256 };

struct rows {
	const void *hidden, *residual, *weight; /* residual NULL: none */
	void *output, *updated;                 /* updated NULL: not asked for */
	enum dtype hidden_dtype, residual_dtype, weight_dtype, output_dtype, updated_dtype;
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

static __device__ __forceinline__ float load_x(const struct rows &rows, int64_t index)
{
	float x = load(rows.hidden, rows.hidden_dtype, index);

	return rows.residual == NULL ? x : x + load(rows.residual, rows.residual_dtype, index);
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
	float squares = 0;

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load_x(rows, start + c);

		squares += x * x;
	}
	float root = sqrtf(add_block(squares) / (float)rows.columns + rows.eps);

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load_x(rows, start + c), w = load(rows.weight, rows.weight_dtype, c);

		number_store(rows.output, rows.output_dtype, start + c, x / root * (1 + w));
		if (rows.updated != NULL)
			number_store(rows.updated, rows.updated_dtype, start + c, x);
	}
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct gemma_roles roles = gemma_roles_of(c->problem);
	struct rows rows = {};

	rows.columns = in[roles.weight].elements;
	int64_t count = rows.columns > 0 ? out[0].elements / rows.columns : 0;

	if (count == 0)
		return 0;
	if (count > INT32_MAX)
		return err_set(err, "gemma_rmsnorm: %lld rows are more than a grid has blocks; take fewer",
		               (long long)count);
	rows.hidden = in[roles.hidden].data;
	rows.hidden_dtype = in[roles.hidden].dtype;
	rows.weight = in[roles.weight].data;
	rows.weight_dtype = in[roles.weight].dtype;
	rows.output = out[roles.output].data;
	rows.output_dtype = out[roles.output].dtype;
	if (roles.residual >= 0) {
		rows.residual = in[roles.residual].data;
		rows.residual_dtype = in[roles.residual].dtype;
	}
	if (roles.updated >= 0) {
		rows.updated = out[roles.updated].data;
		rows.updated_dtype = out[roles.updated].dtype;
	}
	rows.eps = (float)gemma_eps(c);
	normalise<<<(unsigned)count, THREADS, 0, (cudaStream_t)stream>>>(rows);
	return cuda_check(cudaGetLastError(), "launching gemma_rmsnorm", err);
}

/* Four elements a thread: one Philox block has the random bits of four. */
static __global__ void __launch_bounds__(THREADS) make(void *data, enum dtype dtype, int64_t elements,
                                                       const struct gemma_fill f)
{
	int64_t blocks = (elements + 3) / 4, threads = (int64_t)gridDim.x * THREADS;

	for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < elements; i++)
			number_store(data, dtype, 4 * b + i, gemma_element(&f, 4 * b + i, random.word[i]));
	}
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	int64_t blocks = (out->elements + 4 * THREADS - 1) / (4 * THREADS), most = 1 << 20;

	if (blocks == 0)
		return 0;
	make<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, (cudaStream_t)stream>>>(
	    out->data, out->dtype, out->elements, gemma_fill_of(c, input));
	return cuda_check(cudaGetLastError(), "launching the fill of gemma_rmsnorm", err);
}

extern "C" const struct op_cuda gemma_rmsnorm_cuda = {"gemma_rmsnorm", fill, launch, NULL};
