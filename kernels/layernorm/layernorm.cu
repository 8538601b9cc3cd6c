/* layernorm on a GPU - computes the norm of kernels/layernorm/layernorm.c in float32.
 *
 * Each block of threads computes one row. It reads the row three times: for the mean, for the squared differences from
 * the mean, and for the output. Each thread sums its columns in order, and then a tree reduction adds up the threads'
 * sums, so every run gives the same bits. Division and square root are rounded correctly (IEEE 754). */
#include "kernels/core/elements_cuda.h"

#include "kernels/layernorm/input_values.h"

enum { THREADS = 256 };

struct rows {
	const void *x, *weight, *bias; /* `weight` or `bias` is NULL if the problem has no such input */
	void *y;
	enum dtype x_dtype, weight_dtype, bias_dtype, y_dtype;
	int64_t columns;
	float eps;
};

static __global__ void __launch_bounds__(THREADS) normalise(const struct rows rows)
{
	int64_t start = blockIdx.x * rows.columns;
	float sum = 0, squares = 0;

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS)
		sum += load(rows.x, rows.x_dtype, start + c);
	float mean = block_sum<THREADS>(sum) / (float)rows.columns;

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float difference = load(rows.x, rows.x_dtype, start + c) - mean;

		squares += difference * difference;
	}
	float root = sqrtf(block_sum<THREADS>(squares) / (float)rows.columns + rows.eps);

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load(rows.x, rows.x_dtype, start + c);
		float w = rows.weight == NULL ? 1.0f : load(rows.weight, rows.weight_dtype, c);
		float b = rows.bias == NULL ? 0.0f : load(rows.bias, rows.bias_dtype, c);

		dtype_store_float(rows.y, rows.y_dtype, start + c, (x - mean) / root * w + b);
	}
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct layernorm_roles roles = layernorm_roles_of(c->problem);
	struct rows rows = {};

	rows.columns = in[roles.x].shape[in[roles.x].rank - 1];
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

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	return fill_elements<layernorm_element>(out, layernorm_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda layernorm_cuda = {"layernorm", fill, launch, NULL};
