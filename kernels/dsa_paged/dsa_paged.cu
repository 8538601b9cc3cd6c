/* dsa_paged on a GPU - computes sparse attention with the kernels of kernels/common/attention/attention_cuda.h, and the
 * indexer with two kernels:
 *
 *   score   One warp computes the score of one key. Every lane holds some elements of the key and loops over the heads.
 *           The sum over heads has a fixed order.
 *   choose  One block selects the keys of one sequence. Scores are converted to integers that have the same order as
 *           the scores. Four passes over the keys find the integer of the least selected score (the smallest score of a
 *           selected key), 8 bits in each pass. Then the block writes the selected keys in the order of the sequence:
 *           all keys whose score is above the least selected score, and, until the list is full, the first keys whose
 *           score equals it.
 *
 * Counts and positions are integers, so every run gives the same result. NaN counts as the largest score. */
#include "kernels/common/attention/attention_cuda.h"

#include "kernels/dsa_paged/input_values.h"

enum { THREADS = 256, WARPS = THREADS / 32, LANE_ELEMENTS = 8, BUCKETS = 256 };

struct indexer {
	struct indexer_extent extent;
	struct tensor query, cache, weights, lengths, table, chosen;
	int64_t room;  /* the maximum number of keys in a sequence */
	float *scores; /* [sequences][room] */
};

static __device__ __forceinline__ int64_t length_of(const struct indexer &x, int64_t b)
{
	int64_t length = attention_integer(&x.lengths, b);

	return length < 0 ? 0 : length < x.room ? length : x.room;
}

/* Returns the page of key j of sequence b, or -1 if the page table has no valid page for this key. */
static __device__ __forceinline__ int64_t page_of(const struct indexer &x, int64_t b, int64_t j)
{
	int64_t page = attention_integer(&x.table, b * x.extent.most_pages + j / x.extent.page_size);

	return page < 0 || page >= x.extent.pages ? -1 : page;
}

/* Returns the score of a key, including its scale, in every lane. `own` contains the elements of the key that this lane
 * multiplies; the query is in shared memory. */
static __device__ __forceinline__ float score_of(const struct indexer &x, int64_t b, const float *query,
                                                 const float (&own)[LANE_ELEMENTS])
{
	float score = 0;

	for (int64_t h = 0; h < x.extent.heads; h++) {
		float sum = 0;

#pragma unroll
		for (int i = 0; i < LANE_ELEMENTS; i++) {
			int64_t d = threadIdx.x % 32 + 32 * i;

			if (d < x.extent.dim)
				sum += query[h * x.extent.dim + d] * own[i];
		}
		for (int step = 16; step > 0; step /= 2)
			sum += __shfl_xor_sync(0xffffffffu, sum, step);
		if (!(sum <= 0))
			score += attention_load(x.weights.data, x.weights.dtype, b * x.extent.heads + h) * sum;
	}
	return score;
}

static __global__ void __launch_bounds__(THREADS) score(const struct indexer x)
{
	extern __shared__ float query[];
	int64_t b = blockIdx.y, elements = x.extent.heads * x.extent.dim, length = length_of(x, b);

	if ((int64_t)blockIdx.x * WARPS >= length)
		return;
	for (int64_t i = threadIdx.x; i < elements; i += THREADS)
		query[i] = attention_load(x.query.data, x.query.dtype, b * elements + i);
	__syncthreads();
	for (int64_t j = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; j < length; j += (int64_t)gridDim.x * WARPS) {
		int64_t page = page_of(x, b, j), slot = j % x.extent.page_size;
		float own[LANE_ELEMENTS] = {}, result = NAN;

		if (page >= 0) {
			const uint8_t *bytes =
			    (const uint8_t *)x.cache.data + page * x.extent.page_size * (x.extent.dim + 4);
			float scale;

			memcpy(&scale, bytes + x.extent.page_size * x.extent.dim + slot * 4, sizeof scale);
			for (int i = 0; i < LANE_ELEMENTS; i++) {
				int64_t d = threadIdx.x % 32 + 32 * i;

				own[i] =
				    d < x.extent.dim ? float_from_e4m3(bytes[slot * x.extent.dim + d]) * scale : 0;
			}
			result = score_of(x, b, query, own);
		}
		if (threadIdx.x % 32 == 0)
			x.scores[b * x.room + j] = result;
	}
}

/* Maps scores to integers that have the same order as the scores. */
static __device__ __forceinline__ uint32_t order_of(float score)
{
	uint32_t bits = float_bits(score);

	if (float_is_nan(score))
		return UINT32_MAX;
	if (score == 0) /* -0 must have the same integer as 0, because the two are equal */
		bits = 0;
	return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

/* The smallest of the `wanted` largest scores of a sequence, as an integer, and the number of keys with higher scores.
 * Every thread gets the same values. */
struct least {
	uint32_t order;
	int64_t above;
};

static __device__ struct least least_of(const float *scores, int64_t length, int64_t wanted)
{
	__shared__ unsigned long long count[BUCKETS];
	__shared__ uint32_t chosen;
	struct least least = {0, 0};

	for (int shift = 24; shift >= 0; shift -= 8) {
		for (int i = (int)threadIdx.x; i < BUCKETS; i += THREADS)
			count[i] = 0;
		__syncthreads();
		for (int64_t j = threadIdx.x; j < length; j += THREADS) {
			uint32_t order = order_of(scores[j]);

			if (shift == 24 || order >> (shift + 8) == least.order >> (shift + 8))
				atomicAdd(&count[order >> shift & 255], 1ull);
		}
		__syncthreads();
		if (threadIdx.x == 0) {
			int64_t above = least.above;
			int i = BUCKETS - 1;

			while (i > 0 && above + (int64_t)count[i] < wanted)
				above += (int64_t)count[i--];
			chosen = (uint32_t)i;
		}
		__syncthreads();
		for (uint32_t i = chosen + 1; i < BUCKETS; i++)
			least.above += (int64_t)count[i];
		least.order |= chosen << shift;
		__syncthreads();
	}
	return least;
}

/* Returns the number of threads before this one for which `flag` is set. Stores the number of all such threads in
 * `all`. */
static __device__ __forceinline__ int place_among(bool flag, int *all)
{
	__shared__ int of_warp[WARPS];
	unsigned ballot = __ballot_sync(0xffffffffu, flag);
	int warp = (int)threadIdx.x / 32, before = __popc(ballot & ((1u << threadIdx.x % 32) - 1));

	if (threadIdx.x % 32 == 0)
		of_warp[warp] = __popc(ballot);
	__syncthreads();
	*all = 0;
	for (int w = 0; w < WARPS; w++) {
		before += w < warp ? of_warp[w] : 0;
		*all += of_warp[w];
	}
	__syncthreads();
	return before;
}

static __device__ __forceinline__ void store_integer(const struct tensor &out, int64_t index, int64_t value)
{
	if (out.dtype == DTYPE_INT64)
		((int64_t *)out.data)[index] = value;
	else
		((int32_t *)out.data)[index] = (int32_t)value;
}

static __global__ void __launch_bounds__(THREADS) choose(const struct indexer x)
{
	int64_t b = blockIdx.x, length = length_of(x, b), most = x.extent.chosen, written = 0;
	int64_t wanted = length < most ? length : most;
	const float *scores = x.scores + b * x.room;
	struct least least = least_of(scores, length, wanted);
	int64_t equal = wanted - least.above; /* the number of selected keys that have exactly the least selected score */

	for (int64_t first = 0; first < length; first += THREADS) {
		int64_t j = first + threadIdx.x;
		uint32_t order = j < length ? order_of(scores[j]) : 0;
		int all_equal, all;
		bool is_equal = j < length && order == least.order;
		int before = place_among(is_equal, &all_equal);
		bool taken = wanted > 0 && j < length && (order > least.order || (is_equal && before < equal));
		int place = place_among(taken, &all);

		if (taken) {
			int64_t page = page_of(x, b, j);

			store_integer(x.chosen, b * most + written + place,
			              page < 0 ? -2 : page * x.extent.page_size + j % x.extent.page_size);
		}
		equal -= all_equal;
		written += all;
	}
	for (int64_t i = wanted + threadIdx.x; i < most; i += THREADS)
		store_integer(x.chosen, b * most + i, -1);
}

static struct indexer indexer_of(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	struct indexer x = {};

	x.extent = indexer_extent_of(c, &roles);
	x.query = in[roles.query];
	x.cache = in[roles.cache];
	x.weights = in[roles.weights];
	x.lengths = in[roles.lengths];
	x.table = in[roles.table];
	x.chosen = out[0];
	x.room = x.extent.most_pages * x.extent.page_size;
	x.scores = (float *)scratch;
	return x;
}

static int launch_indexer(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch,
                          cudaStream_t stream, struct err *err)
{
	struct indexer x = indexer_of(c, in, out, scratch);
	int64_t shared = x.extent.heads * x.extent.dim * 4, blocks = (x.room + 8 * WARPS - 1) / (8 * WARPS);

	if (shared > 98304 || x.extent.dim > 32 * LANE_ELEMENTS)
		return err_set(err, "dsa_paged: the CUDA kernel takes index heads of at most %d elements, 24576 in all",
		               32 * LANE_ELEMENTS);
	if (x.extent.batch > 65535 || blocks > INT32_MAX)
		return err_set(err,
		               "dsa_paged: %lld sequences of %lld keys are more than a grid has blocks; take fewer",
		               (long long)x.extent.batch, (long long)x.room);
	if (x.extent.batch == 0)
		return 0;
	if (CUDA_CHECK(cudaFuncSetAttribute(score, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared), err) != 0)
		return -1;
	if (blocks > 0)
		score<<<dim3((unsigned)blocks, (unsigned)x.extent.batch), THREADS, (size_t)shared, stream>>>(x);
	if (cuda_check(cudaGetLastError(), "launching the indexer's scores", err) != 0)
		return -1;
	choose<<<(unsigned)x.extent.batch, THREADS, 0, stream>>>(x);
	return cuda_check(cudaGetLastError(), "launching the indexer's choice", err);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
                  struct err *err)
{
	if (c->variant == DSA_INDEXER)
		return launch_indexer(c, in, out, scratch, (cudaStream_t)stream, err);
	return attention_launch(c, in, out, scratch, stream, err);
}

static int64_t scratch_bytes(const struct op_case *c)
{
	struct indexer_roles roles;
	struct indexer_extent e;

	if (c->variant != DSA_INDEXER)
		return 0;
	roles = indexer_roles_of(c->problem);
	e = indexer_extent_of(c, &roles);
	if (e.batch * e.most_pages > INT64_MAX / 4 / ATTENTION_PAGE) /* the product is the number of elements of the
								      * table, at most 2^46, so it does not overflow */
		return INT64_MAX;
	return e.batch * e.most_pages * e.page_size * 4;
}

static __global__ void __launch_bounds__(THREADS)
    make_cache(uint8_t *data, int64_t elements, const struct indexer_cache f)
{
	int64_t threads = (int64_t)gridDim.x * THREADS;

	for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < elements; i += threads)
		data[i] = indexer_byte(&f, i);
}

static __global__ void __launch_bounds__(THREADS)
    make_elements(void *data, enum dtype dtype, int64_t elements, uint64_t key, int64_t heads, int turn)
{
	int64_t threads = (int64_t)gridDim.x * THREADS;

	for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < elements; i += threads)
		dtype_store_float(data, dtype, i, indexer_element(heads, turn, i, philox_bits(key, i)));
}

/* Copies the table of used keys to the device and then fills the cache, both on the same stream. */
static int fill_cache(const struct op_case *c, const struct indexer_roles *roles, struct tensor *out, unsigned blocks,
                      cudaStream_t stream, struct err *err)
{
	struct indexer_extent e = indexer_extent_of(c, roles);
	struct indexer_cache f = indexer_cache_of(c, roles);
	uint8_t *used = indexer_used(c, roles);
	size_t keys = (size_t)(e.pages * e.page_size);
	void *table = NULL;
	int rc = 0;

	if (used != NULL) {
		rc = CUDA_CHECK(cudaMallocAsync(&table, keys + 1, stream), err);
		if (rc == 0)
			rc = CUDA_CHECK(cudaMemcpyAsync(table, used, keys, cudaMemcpyHostToDevice, stream), err);
		f.used = (const uint8_t *)table;
	}
	free(used);
	if (rc == 0) {
		make_cache<<<blocks, THREADS, 0, stream>>>((uint8_t *)out->data, out->elements, f);
		rc = cuda_check(cudaGetLastError(), "launching the fill of the indexer's cache", err);
	}
	if (table != NULL && CUDA_CHECK(cudaFreeAsync(table, stream), rc == 0 ? err : NULL) != 0)
		rc = -1;
	return rc;
}

static int fill_indexer(const struct op_case *c, int input, struct tensor *out, cudaStream_t stream, struct err *err)
{
	struct indexer_roles roles = indexer_roles_of(c->problem);
	int64_t blocks = (out->elements + THREADS - 1) / THREADS, most = 1 << 20;
	unsigned grid = (unsigned)(blocks < most ? blocks : most);

	if (input == roles.lengths || input == roles.table)
		return 1;
	if (blocks == 0)
		return 0;
	if (input == roles.cache)
		return fill_cache(c, &roles, out, grid, stream, err);
	make_elements<<<grid, THREADS, 0, stream>>>(out->data, out->dtype, out->elements, input_key(c, input),
	                                            indexer_heads_of(c, &roles, input), (int)c->contents);
	return cuda_check(cudaGetLastError(), "launching the fill of the indexer", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	if (c->variant == DSA_INDEXER)
		return fill_indexer(c, input, out, (cudaStream_t)stream, err);
	return attention_fill_cuda(c, input, out, stream, err);
}

extern "C" const struct op_cuda dsa_paged_cuda = {"dsa_paged", fill, launch, scratch_bytes};
