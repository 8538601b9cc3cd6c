/* rms - computes the norms of kernels/common/norm/rms.h on a GPU, in float32.
 *
 * A thread block computes one row and reads the row twice: first for the sum of squares, and then, from the cache, for
 * the output. Each thread sums its columns in order, and a tree reduction adds up the threads' sums, so every run gives
 * the same bits. Division and square root are rounded correctly (IEEE 754); no operation is approximate. */
#include "kernels/core/elements_cuda.h"

#include "kernels/common/norm/rms.h"
#include "kernels/common/norm/rms_input_values.h"

enum { THREADS = 256 };

struct rows {
	const void *hidden, *residual, *weight; /* `residual` or `weight` is NULL if the case has no such tensor */
	void *output, *updated;                 /* `updated` is NULL if this output is not requested */
	enum dtype hidden_dtype, residual_dtype, weight_dtype, output_dtype, updated_dtype;
	int64_t columns;
	float eps, offset;
};

static __device__ __forceinline__ float load_x(const struct rows &rows, int64_t index)
{
	float x = load(rows.hidden, rows.hidden_dtype, index);

	return rows.residual == NULL ? x : x + load(rows.residual, rows.residual_dtype, index);
}

static __global__ void __launch_bounds__(THREADS) normalise(const struct rows rows)
{
	int64_t start = blockIdx.x * rows.columns;
	float squares = 0;

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load_x(rows, start + c);

		squares += x * x;
	}
	float root = sqrtf(block_sum<THREADS>(squares) / (float)rows.columns + rows.eps);

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load_x(rows, start + c);
		float factor = rows.weight == NULL ? 1.0f : rows.offset + load(rows.weight, rows.weight_dtype, c);

		dtype_store_float(rows.output, rows.output_dtype, start + c, x / root * factor);
		if (rows.updated != NULL)
			dtype_store_float(rows.updated, rows.updated_dtype, start + c, x);
	}
}

int rms_launch(const struct op_case *c, int offset, const struct tensor *in, struct tensor *out, void *stream,
               struct err *err)
{
	struct rms_roles roles = rms_roles_of(c->problem);
	struct rows rows = {};
	int64_t count;

	rms_extent(c, &count, &rows.columns);
	if (count <= 0 || rows.columns <= 0)
		return 0;
	if (count > INT32_MAX)
		return err_set(err, "%lld rows are more than a grid has blocks; take fewer", (long long)count);
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
	rows.eps = (float)rms_eps(c);
	rows.offset = (float)offset;
	normalise<<<(unsigned)count, THREADS, 0, (cudaStream_t)stream>>>(rows);
	return cuda_check(cudaGetLastError(), "launching an RMS norm", err);
}

int rms_fill_cuda(const struct op_case *c, int offset, int input, struct tensor *out, void *stream, struct err *err)
{
	return fill_elements<rms_element>(out, rms_recipe_of(c, offset, input), stream, err);
}
