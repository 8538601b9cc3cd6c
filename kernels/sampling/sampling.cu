/* sampling on a GPU - fills the same rows as the CPU, and computes the most likely token of each row or the filtered
 * probabilities.
 *
 * Each block of threads processes one row. The block finds the smallest kept probability, which determines the kept
 * tokens. The search is a bisection over the bit patterns of non-negative doubles: as integers, they have the same
 * order as the doubles. Each step of the bisection is one pass over the row. Sums are double, and the order of
 * additions depends only on the row. */
#include "kernels/core/cuda_check.h"

#include "kernels/sampling/input_values.h"

enum { THREADS = 512 };

static __device__ double load(const void *data, enum dtype dtype, int64_t index)
{
	switch (dtype) {
	case DTYPE_FLOAT64:
		return ((const double *)data)[index];
	case DTYPE_FLOAT16:
		return (double)float_from_f16(((const uint16_t *)data)[index]);
	case DTYPE_BFLOAT16:
		return (double)float_from_bf16(((const uint16_t *)data)[index]);
	default:
		return (double)((const float *)data)[index];
	}
}

static __device__ int64_t load_integer(const void *data, enum dtype dtype, int64_t index)
{
	switch (dtype) {
	case DTYPE_INT64:
		return ((const int64_t *)data)[index];
	case DTYPE_INT16:
		return ((const int16_t *)data)[index];
	case DTYPE_INT8:
		return ((const int8_t *)data)[index];
	case DTYPE_UINT32:
		return ((const uint32_t *)data)[index];
	case DTYPE_UINT8:
	case DTYPE_BOOL:
		return ((const uint8_t *)data)[index];
	default:
		return ((const int32_t *)data)[index];
	}
}

/* One block fills one row. */
static __global__ void fill_rows(struct sampling_fill f, void *data, enum dtype dtype)
{
	int64_t row = sampling_repeated(&f, blockIdx.x), first = blockIdx.x * f.vocab;
	int tokens = sampling_tokens(&f, row);

	for (int64_t column = threadIdx.x; column < f.vocab; column += THREADS)
		dtype_store_float(data, dtype, first + column, sampling_tail(&f, row, column) ? 0x1p-24f : 0.0f);
	__syncthreads();
	for (int rank = threadIdx.x; rank < tokens; rank += THREADS)
		dtype_store_float(data, dtype, first + sampling_place(&f, row, rank),
		                  (float)sampling_weight(&f, row, rank) * (float)SAMPLING_UNIT);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct sampling_fill f = sampling_fill_of(c);

	if (input != sampling_roles_of(c->problem).probs || f.vocab < SAMPLING_HEAVY || f.rows > INT32_MAX)
		return 1;
	fill_rows<<<(unsigned)f.rows, THREADS, 0, (cudaStream_t)stream>>>(f, out->data, out->dtype);
	return CUDA_CHECK(cudaGetLastError(), err);
}

/* A row, and the working memory of its block. */
struct row {
	const void *probs;
	enum dtype dtype;
	int64_t first, vocab;
	double *sums; /* an array of THREADS elements in shared memory */
};

/* Returns the sum of the `value`s of all threads. Every thread gets this result. */
static __device__ double block_sum(double *sums, double value)
{
	__syncthreads();
	sums[threadIdx.x] = value;
	__syncthreads();
	for (int step = THREADS / 2; step > 0; step /= 2) {
		if (threadIdx.x < step)
			sums[threadIdx.x] += sums[threadIdx.x + step];
		__syncthreads();
	}
	return sums[0];
}

static __device__ double block_max(double *sums, double value)
{
	__syncthreads();
	sums[threadIdx.x] = value;
	__syncthreads();
	for (int step = THREADS / 2; step > 0; step /= 2) {
		if (threadIdx.x < step && sums[threadIdx.x + step] > sums[threadIdx.x])
			sums[threadIdx.x] = sums[threadIdx.x + step];
		__syncthreads();
	}
	return sums[0];
}

/* Selects the probabilities p with p >= `least` and p > `above`. Returns the sum of these probabilities if `mass` is
 * true, else their number. If `above` is negative, selects all probabilities that are at least `least`. */
static __device__ double count_or_sum(const struct row *r, double least, double above, bool mass)
{
	double own = 0;

	for (int64_t i = threadIdx.x; i < r->vocab; i += THREADS) {
		double value = load(r->probs, r->dtype, r->first + i);

		if (value >= least && value > above)
			own += mass ? value : 1;
	}
	return block_sum(r->sums, own);
}

/* Returns the largest number p for which at least k tokens have a probability of p or more. Returns 0 if fewer than k
 * tokens have a probability above 0. */
static __device__ double top_k_threshold(const struct row *r, double largest, int64_t k)
{
	int64_t low = 0, high = __double_as_longlong(largest); /* invariant: at least k tokens have a probability of
							        * `low` or more */

	while (low < high) {
		int64_t middle = low + (high - low + 1) / 2;

		if (count_or_sum(r, __longlong_as_double(middle), -1, false) >= (double)k)
			low = middle;
		else
			high = middle - 1;
	}
	return __longlong_as_double(low);
}

/* Returns the smallest number p >= `least` for which the probabilities above p add up to at most `limit`. */
static __device__ double top_p_threshold(const struct row *r, double largest, double least, double limit)
{
	int64_t low = __double_as_longlong(least), high = __double_as_longlong(largest);

	while (low < high) {
		int64_t middle = low + (high - low) / 2;

		if (count_or_sum(r, least, __longlong_as_double(middle), true) <= limit)
			high = middle;
		else
			low = middle + 1;
	}
	return __longlong_as_double(low);
}

/* Returns the largest probability, or -1 if the row is not a distribution. */
static __device__ double inspect(const struct row *r)
{
	double largest = 0, wrong = 0;

	for (int64_t i = threadIdx.x; i < r->vocab; i += THREADS) {
		double value = load(r->probs, r->dtype, r->first + i);

		if (!(value >= 0 && value <= 1.7976931348623157e308))
			wrong = 1;
		else if (value > largest)
			largest = value;
	}
	wrong = block_max(r->sums, wrong);
	largest = block_max(r->sums, largest);
	return wrong > 0 || largest == 0 ? -1 : largest;
}

/* The parameters of the filters. Each parameter is a tensor with one value per row, or one number for all rows if the
 * pointer to the tensor is NULL. */
struct parameters {
	int filters;
	const void *top_k, *top_p, *min_p;
	enum dtype top_k_dtype, top_p_dtype, min_p_dtype;
	int64_t k;
	double p, m;
};

/* Returns the smallest kept probability of a row, as filter.h defines it. */
static __device__ double threshold_of(const struct row *r, const struct parameters *parameters, int64_t index,
                                      double largest)
{
	double least = 0;
	int64_t k = parameters->top_k ? load_integer(parameters->top_k, parameters->top_k_dtype, index) : parameters->k;
	double p = parameters->top_p ? load(parameters->top_p, parameters->top_p_dtype, index) : parameters->p;
	double m = parameters->min_p ? load(parameters->min_p, parameters->min_p_dtype, index) : parameters->m;
	bool some = (parameters->filters & SAMPLING_TOP_K) && k > 0 && k < r->vocab;

	if (some)
		least = top_k_threshold(r, largest, k);
	if ((parameters->filters & SAMPLING_TOP_P) && p < 1) {
		double mass = some ? count_or_sum(r, least, -1, true) : 1;

		least = top_p_threshold(r, largest, least, (p > 0 ? p : 0) * mass);
	}
	if ((parameters->filters & SAMPLING_MIN_P) && m > 0)
		least = (m < 1 ? m : 1) * largest;
	return least;
}

static __global__ void renorm(const void *probs, enum dtype dtype, int64_t vocab, struct parameters parameters,
                              void *out, enum dtype out_dtype)
{
	__shared__ double sums[THREADS];
	struct row r = {probs, dtype, (int64_t)blockIdx.x * vocab, vocab, sums};
	double largest = inspect(&r);
	double least = largest < 0 ? 0 : threshold_of(&r, &parameters, blockIdx.x, largest);
	double mass = largest < 0 ? 0 : count_or_sum(&r, least, -1, true);

	for (int64_t i = threadIdx.x; i < vocab; i += THREADS) {
		double value = load(probs, dtype, r.first + i);
		double kept = largest < 0 ? nan("") : value >= least ? value / mass : 0;

		if (out_dtype == DTYPE_FLOAT64)
			((double *)out)[r.first + i] = kept;
		else
			dtype_store_float(out, out_dtype, r.first + i, (float)kept);
	}
}

/* Writes the most likely token of each row: the first one if several tokens are equally likely. Writes 0 for a row that
 * is not a distribution. */
static __global__ void most_likely(const void *probs, enum dtype dtype, int64_t vocab, void *out, enum dtype out_dtype)
{
	__shared__ double sums[THREADS];
	struct row r = {probs, dtype, (int64_t)blockIdx.x * vocab, vocab, sums};
	double largest = inspect(&r), last = (double)vocab, first = last;

	for (int64_t i = threadIdx.x; i < vocab; i += THREADS)
		if (load(probs, dtype, r.first + i) == largest && first == last)
			first = (double)i;
	double token = largest < 0 ? 0 : -block_max(sums, -first);

	if (threadIdx.x == 0 && out_dtype == DTYPE_INT64)
		((int64_t *)out)[blockIdx.x] = (int64_t)token;
	else if (threadIdx.x == 0)
		((int32_t *)out)[blockIdx.x] = (int32_t)token;
}

static struct parameters parameters_of(const struct op_case *c, const struct tensor *in)
{
	struct sampling_roles roles = sampling_roles_of(c->problem);
	struct parameters parameters = {};

	parameters.filters = c->variant;
	if (roles.top_k >= 0) {
		double k = c->scalar[roles.top_k];

		parameters.top_k = in[roles.top_k].data;
		parameters.top_k_dtype = in[roles.top_k].dtype;
		/* A k of 0, or one that is larger than any vocabulary, keeps all tokens. */
		parameters.k = k >= 1 && k < 1e15 ? (int64_t)k : 0;
	}
	if (roles.top_p >= 0) {
		parameters.top_p = in[roles.top_p].data;
		parameters.top_p_dtype = in[roles.top_p].dtype;
		parameters.p = c->scalar[roles.top_p];
	}
	if (roles.min_p >= 0) {
		parameters.min_p = in[roles.min_p].data;
		parameters.min_p_dtype = in[roles.min_p].dtype;
		parameters.m = c->scalar[roles.min_p];
	}
	return parameters;
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
                  struct err *err)
{
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];

	(void)scratch;
	if (probs->shape[0] == 0)
		return 0;
	if (probs->shape[0] > INT32_MAX)
		return err_set(err, "%lld rows are more than one launch takes", (long long)probs->shape[0]);
	if (c->variant & SAMPLING_RENORM)
		renorm<<<(unsigned)probs->shape[0], THREADS, 0, (cudaStream_t)stream>>>(
		    probs->data, probs->dtype, probs->shape[1], parameters_of(c, in), out[0].data, out[0].dtype);
	else
		most_likely<<<(unsigned)probs->shape[0], THREADS, 0, (cudaStream_t)stream>>>(
		    probs->data, probs->dtype, probs->shape[1], out[0].data, out[0].dtype);
	return CUDA_CHECK(cudaGetLastError(), err);
}

extern "C" const struct op_cuda sampling_cuda = {"sampling", fill, launch, NULL};
