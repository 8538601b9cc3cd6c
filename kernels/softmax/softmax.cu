/* softmax on a GPU - computes the operation of kernels/softmax/softmax.c. Each block of threads computes one row. The
 * block reads the row three times: for the maximum, for the sum, and for the output. The arguments of exp are computed
 * in double, because float would lose digits of large logits. The function exp itself and the sums are computed in
 * float32. Each thread sums its columns in order, and then a tree reduction adds up the threads' sums, so every run
 * gives the same bits. */
#include "kernels/core/elements_cuda.h"

#include "kernels/softmax/input_values.h"

enum { THREADS = 512 };

/* Returns the maximum of the `value`s of all threads if `most` is true, else their sum. Every thread gets this
 * result. */
static __device__ float gather(float value, bool most)
{
	__shared__ float part[THREADS];

	__syncthreads(); /* other threads may still read the previous result */
	part[threadIdx.x] = value;
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half) {
			float other = part[threadIdx.x + half];

			part[threadIdx.x] = most ? fmaxf(part[threadIdx.x], other) : part[threadIdx.x] + other;
		}
	}
	__syncthreads();
	return part[0];
}

struct rows {
	const void *x, *temperature; /* if `temperature` is NULL, `shared` is the temperature of all rows */
	void *y;
	enum dtype x_dtype, temperature_dtype, y_dtype;
	int64_t columns;
	double shared;
};

static __global__ void __launch_bounds__(THREADS) normalise(const struct rows rows)
{
	int64_t start = blockIdx.x * rows.columns;
	double t = rows.temperature == NULL ? rows.shared
	                                    : (double)load(rows.temperature, rows.temperature_dtype, blockIdx.x);
	float sign = t < 0 ? -1.0f : 1.0f, most = -INFINITY, sum = 0;

	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS)
		most = fmaxf(most, sign * load(rows.x, rows.x_dtype, start + c));
	most = sign * gather(most, true);
	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS)
		sum += expf((float)(((double)load(rows.x, rows.x_dtype, start + c) - (double)most) / t));
	sum = gather(sum, false);
	for (int64_t c = threadIdx.x; c < rows.columns; c += THREADS) {
		float x = load(rows.x, rows.x_dtype, start + c);

		dtype_store_float(rows.y, rows.y_dtype, start + c, expf((float)(((double)x - (double)most) / t)) / sum);
	}
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	const struct tensor *x = &in[softmax_logits(c->problem)];
	int t = softmax_temperature(c->problem);
	struct rows rows = {};

	rows.columns = softmax_fill_of(c, 0).columns;
	int64_t count = rows.columns > 0 ? x->elements / rows.columns : 0;

	if (count == 0)
		return 0;
	if (count > INT32_MAX)
		return err_set(err, "softmax: %lld rows are more than a grid has blocks; take fewer", (long long)count);
	rows.x = x->data;
	rows.x_dtype = x->dtype;
	rows.y = out[0].data;
	rows.y_dtype = out[0].dtype;
	rows.shared = t >= 0 && in[t].rank == OP_SCALAR ? c->scalar[t] : 1;
	if (t >= 0 && in[t].rank != OP_SCALAR) {
		rows.temperature = in[t].data;
		rows.temperature_dtype = in[t].dtype;
	}
	normalise<<<(unsigned)count, THREADS, 0, (cudaStream_t)stream>>>(rows);
	return cuda_check(cudaGetLastError(), "launching softmax", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	if (input == softmax_temperature(c->problem))
		return 1;
	return fill_elements<softmax_element>(out, softmax_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda softmax_cuda = {"softmax", fill, launch, NULL};
