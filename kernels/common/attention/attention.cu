/* attention.cu - computes the inputs and the truth of kernels/common/attention/attention.h on a GPU, for all attention
 * families.
 *
 * A thread block computes one head of one query, in tiles of TILE keys. For each tile, the warps first compute the
 * logits of the keys. Then each thread adds the weighted values to the output columns that it computes. The softmax is
 * an online softmax: the weight of a key is e^(logit - the largest logit so far), and if a larger logit follows, the
 * sums so far are scaled down. All arithmetic is float32. The order of all operations depends only on the sizes of the
 * case. Every run therefore gives the same bits. The kernel checks every index: if an index is out of bounds, the
 * output of the query is NaN. */
#include "kernels/core/elements_cuda.h"

#include "kernels/common/attention/attention_cuda.h"
#include "kernels/common/attention/forms.h"

#include <math.h>
#include <stdlib.h>

enum {
	THREADS = 128,
	WARPS = THREADS / 32,
	TILE = 64,
	COLUMNS = 8, /* the largest number of output columns that one thread computes */
};

/* Values of tile.row that are not row numbers. NO_ROW: the entry of `sparse` is -1, which stands for no key. WILD_ROW:
 * the row number is out of bounds. */
enum { NO_ROW = -1, WILD_ROW = -2 };

/* The keys that query t sees: the first `seen` keys of its sequence. */
struct sight {
	struct attention_span span;
	int64_t seen;
	bool wild; /* whether an offset or the length of the sequence is out of bounds */
};

/* Returns the index of the last sequence that starts at query t or earlier, or -1 if there is no such sequence. */
static __device__ __forceinline__ int64_t sequence_of(const struct attention_view &v, int64_t t)
{
	int64_t low = -1, high = v.extent.batch;

	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (attention_integer(&v.qo_indptr, middle) <= t)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static __device__ __forceinline__ struct sight look(const struct attention_view &v, int64_t t)
{
	struct sight sight = {};
	int64_t b = t;

	if (v.sparse.data == NULL) {
		b = v.qo_indptr.data != NULL ? sequence_of(v, t) : t;
		if (b < 0 || b >= v.extent.batch)
			return sight;
	}
	sight.span = attention_span_of(&v, b);
	if (t - sight.span.first_query >= sight.span.queries)
		return sight;
	sight.seen =
	    v.sparse.data != NULL ? sight.span.keys : attention_seen(&v, &sight.span, t - sight.span.first_query);
	if (v.sparse.data == NULL) {
		int64_t entries = (sight.span.keys + v.extent.page_size - 1) / v.extent.page_size;

		sight.wild = sight.span.keys < 0 || sight.span.first_entry < 0 || sight.seen > sight.span.keys ||
		             sight.span.first_entry > v.extent.entries - entries;
	}
	return sight;
}

static __device__ __forceinline__ int64_t safe_row(const struct attention_view &v, const struct attention_span &span,
                                                   int64_t j)
{
	int64_t row = attention_row(&v, &span, j);

	if (v.sparse.data != NULL && row == -1)
		return NO_ROW;
	return row < 0 || row >= v.extent.rows ? WILD_ROW : row;
}

/* Returns the dot product of the query (in shared memory) and the key at `row`. Every lane of the warp gets the
 * result. */
template <enum dtype K>
static __device__ __forceinline__ float dot(const struct attention_view &v, const float *query, int64_t row,
                                            int64_t kv_head)
{
	float sum = 0;

	for (int p = 0; p < ATTENTION_PARTS; p++) {
		int64_t start = (row * v.extent.kv_heads + kv_head) * v.extent.dim[p];

		for (int64_t d = threadIdx.x % 32; d < v.extent.dim[p]; d += 32)
			sum += query[d] * attention_load(v.key[p].data, K, start + d);
		query += v.extent.dim[p];
	}
	for (int step = 16; step > 0; step /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	return sum;
}

static __device__ __forceinline__ void load_query(const struct attention_view &v, int64_t place, float *query)
{
	for (int p = 0; p < ATTENTION_PARTS; p++) {
		for (int64_t d = threadIdx.x; d < v.extent.dim[p]; d += THREADS)
			query[d] = attention_load(v.query[p].data, v.query[p].dtype, place * v.extent.dim[p] + d);
		query += v.extent.dim[p];
	}
}

/* One tile in shared memory: the row numbers of its keys, and their logits, which the weights later overwrite. */
struct tile {
	int64_t row[TILE];
	float weight[TILE];
};

/* The accumulators of a thread: the largest logit, the sum of the weights, and the weighted sums of the thread's
 * columns. */
struct progress {
	float largest, sum, own[COLUMNS];
};

/* Computes the softmax weights of the keys first … first + count - 1 and writes them to `tile`. The weights are
 * relative to the largest logit so far. */
template <enum dtype K>
static __device__ __forceinline__ void weigh(const struct attention_view &v, struct tile &tile, const float *query,
                                             const struct sight &sight, int64_t first, int count, int64_t kv_head,
                                             struct progress &progress)
{
	int mine = (int)threadIdx.x;

	__syncthreads(); /* waits until the query is loaded and all threads have read the previous tile */
	if (mine < count)
		tile.row[mine] = safe_row(v, sight.span, first + mine);
	__syncthreads();
	for (int j = mine / 32; j < count; j += WARPS) {
		int64_t row = tile.row[j];
		float logit = row == NO_ROW ? -INFINITY : NAN;

		if (row >= 0)
			logit = (float)v.scale * dot<K>(v, query, row, kv_head);
		if (mine % 32 == 0)
			tile.weight[j] = logit;
	}
	__syncthreads();
	for (int j = 0; j < count; j++)
		progress.largest = fmaxf(progress.largest, tile.weight[j]);
	__syncthreads();
	if (mine < count)
		tile.weight[mine] = tile.weight[mine] == -INFINITY ? 0 : expf(tile.weight[mine] - progress.largest);
	__syncthreads();
}

template <enum dtype K>
static __device__ __forceinline__ void add(const struct attention_view &v, const struct tile &tile, int count,
                                           int64_t kv_head, float shrink, struct progress &progress)
{
	progress.sum *= shrink;
	for (int i = 0; i < COLUMNS; i++)
		progress.own[i] *= shrink;
	for (int j = 0; j < count; j++) {
		int64_t start = (tile.row[j] * v.extent.kv_heads + kv_head) * v.extent.value_dim;

		progress.sum += tile.weight[j];
		if (tile.row[j] < 0)
			continue;
#pragma unroll
		for (int i = 0; i < COLUMNS; i++) {
			int64_t d = threadIdx.x + (int64_t)i * THREADS;

			if (d < v.extent.value_dim)
				progress.own[i] += tile.weight[j] * attention_load(v.value.data, K, start + d);
		}
	}
}

/* Stores the output and the lse of one head of a query. progress.sum is 0 if the query sees no key, and NaN if an index
 * was out of bounds. */
static __device__ __forceinline__ void store(const struct attention_view &v, int64_t place,
                                             const struct progress &progress)
{
	double lse = ((double)progress.largest + log((double)progress.sum)) * 1.4426950408889634; /* 1 / ln 2 */

	for (int i = 0; i < COLUMNS; i++) {
		int64_t d = threadIdx.x + (int64_t)i * THREADS;

		if (d < v.extent.value_dim)
			dtype_store_float(v.output.data, v.output.dtype, place * v.extent.value_dim + d,
			                  progress.sum == 0 ? 0 : progress.own[i] / progress.sum);
	}
	if (threadIdx.x == 0 && v.lse.data != NULL)
		dtype_store_float(v.lse.data, v.lse.dtype, place, progress.sum == 0 ? -INFINITY : (float)lse);
}

template <enum dtype K> static __global__ void __launch_bounds__(THREADS) attend(const struct attention_view v)
{
	extern __shared__ float query[];
	__shared__ struct tile tile;
	int64_t place = blockIdx.x, t = place / v.extent.heads, h = place % v.extent.heads;
	int64_t kv_head = h / (v.extent.heads / v.extent.kv_heads);
	struct sight sight = look(v, t);
	struct progress progress = {-INFINITY, sight.wild ? NAN : 0, {}};

	load_query(v, place, query);
	for (int64_t first = 0; first < sight.seen && !sight.wild; first += TILE) {
		int count = sight.seen - first < TILE ? (int)(sight.seen - first) : TILE;
		float before = progress.largest;

		weigh<K>(v, tile, query, sight, first, count, kv_head, progress);
		add<K>(v, tile, count, kv_head, before == -INFINITY ? 0 : expf(before - progress.largest), progress);
	}
	store(v, place, progress);
}

typedef void (*attention_kernel)(const struct attention_view);

static attention_kernel kernel_for(enum dtype keys)
{
	switch (keys) {
	case DTYPE_BFLOAT16:
		return attend<DTYPE_BFLOAT16>;
	case DTYPE_FLOAT16:
		return attend<DTYPE_FLOAT16>;
	case DTYPE_FLOAT32:
		return attend<DTYPE_FLOAT32>;
	case DTYPE_FLOAT8_E4M3FN:
		return attend<DTYPE_FLOAT8_E4M3FN>;
	case DTYPE_FLOAT8_E5M2:
		return attend<DTYPE_FLOAT8_E5M2>;
	default:
		return NULL;
	}
}

int attention_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                     struct err *err)
{
	struct attention_roles roles = attention_roles_of(c->problem);
	struct attention_view v = attention_view_of(c, &roles, in, out);
	attention_kernel kernel = kernel_for(v.key[0].dtype);
	int64_t blocks = v.extent.queries * v.extent.heads, shared = (v.extent.dim[0] + v.extent.dim[1]) * 4;

	if (kernel == NULL)
		return err_set(err, "%s: the CUDA kernel reads keys of bfloat16, float16, float32 and float8, not %s",
		               c->problem->op_type, dtype_name(v.key[0].dtype));
	if (v.extent.value_dim > THREADS * COLUMNS || shared > 32768)
		return err_set(err,
		               "%s: the CUDA kernel takes value heads of at most %d and query heads of at most 8192 "
		               "elements",
		               c->problem->op_type, THREADS * COLUMNS);
	if (v.last_page_len.data != NULL && v.last_page_len.elements < v.extent.batch)
		return err_set(err, "%s: %lld last page lengths for %lld sequences", c->problem->op_type,
		               (long long)v.last_page_len.elements, (long long)v.extent.batch);
	if (blocks > INT32_MAX)
		return err_set(err, "%s: %lld queries of %lld heads are more than a grid has blocks; take fewer",
		               c->problem->op_type, (long long)v.extent.queries, (long long)v.extent.heads);
	if (blocks == 0)
		return 0;
	kernel<<<(unsigned)blocks, THREADS, (size_t)shared, (cudaStream_t)stream>>>(v);
	return cuda_check(cudaGetLastError(), "launching attention", err);
}

static int launch_make(struct tensor *out, const struct attention_recipe *f, cudaStream_t stream, struct err *err)
{
	return fill_elements<attention_element>(out, *f, stream, err);
}

/* Copies the table `used` to the device, fills the tensor as launch_make does, and frees the copy after the kernel. */
static int make_used(struct tensor *out, struct attention_recipe *f, const uint8_t *used, int64_t rows,
                     cudaStream_t stream, struct err *err)
{
	void *table = NULL;
	int rc = -1;

	if (CUDA_CHECK(cudaMallocAsync(&table, (size_t)rows + 1, stream), err) != 0)
		return -1;
	f->used = (const uint8_t *)table;
	if (CUDA_CHECK(cudaMemcpyAsync(table, used, (size_t)rows, cudaMemcpyHostToDevice, stream), err) == 0)
		rc = launch_make(out, f, stream, err);
	if (CUDA_CHECK(cudaFreeAsync(table, stream), rc == 0 ? err : NULL) != 0)
		rc = -1;
	return rc;
}

/* Fills an input of floats on the GPU. For an input of integers, returns 1, and the caller fills the input on the
 * host. */
int attention_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct attention_roles roles = attention_roles_of(c->problem);
	uint8_t *used;
	int rc;

	if (attention_is_structure(c, input))
		return 1;

	struct attention_recipe f = attention_recipe_of(c, &roles, input);

	if (attention_used(c, &roles, input, &used, err) != 0)
		return -1;
	rc = used == NULL ? launch_make(out, &f, (cudaStream_t)stream, err)
	                  : make_used(out, &f, used, attention_extent_of(c, &roles).rows, (cudaStream_t)stream, err);
	free(used);
	return rc;
}
