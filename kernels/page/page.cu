/* page on a GPU - copies all elements of the caches to the outputs. Then one block per token copies the token's vectors
 * to their slot. */
#include "kernels/core/elements_cuda.h"

#include "kernels/page/input_values.h"

enum { THREADS = 128 };

struct appending {
	struct page_extent extent;
	int64_t half, bytes; /* bytes: the size of an element in bytes */
	const char *append;
	char *cache;
	const void *batch_indices, *positions, *indptr, *indices;
	enum dtype batch_dtype, position_dtype, indptr_dtype, index_dtype;
	int64_t sequences, index_count;
};

/* Finds the page and the slot of a token, as find_place in oracle.c does. */
static __device__ bool find_place(const struct appending &a, int64_t token, int64_t *page, int64_t *place)
{
	int64_t sequence = load_integer(a.batch_indices, a.batch_dtype, token);
	int64_t position = load_integer(a.positions, a.position_dtype, token);

	if (sequence < 0 || sequence >= a.sequences || position < 0)
		return false;
	int64_t first = load_integer(a.indptr, a.indptr_dtype, sequence);
	int64_t end = load_integer(a.indptr, a.indptr_dtype, sequence + 1);
	int64_t index = position / a.extent.page_size;

	if (first < 0 || end < first || end > a.index_count || index >= end - first)
		return false;
	*page = load_integer(a.indices, a.index_dtype, first + index);
	*place = position % a.extent.page_size;
	return *page >= 0 && *page < a.extent.pages;
}

static __global__ void __launch_bounds__(THREADS) append_tokens(const struct appending a)
{
	int64_t token = blockIdx.x, page, place, vector = a.extent.width * a.bytes;

	if (!find_place(a, token, &page, &place))
		return;
	for (int64_t i = threadIdx.x; i < a.extent.heads * vector; i += THREADS) {
		int64_t head = i / vector, byte = i % vector;

		a.cache[page_offset(&a.extent, page, a.half, place, head) * a.bytes + byte] =
		    a.append[token * a.extent.heads * vector + i];
	}
}

static struct appending appending_of(const struct op_case *c, const struct tensor *in, int part, struct tensor *out)
{
	struct page_roles roles = page_roles_of(c->problem);
	struct appending a = {};

	a.extent = page_extent_of(c, part);
	a.half = a.extent.halves > 1 ? part : 0;
	a.bytes = dtype_bits(in[roles.append[part]].dtype) / 8;
	a.append = (const char *)in[roles.append[part]].data;
	a.cache = (char *)out->data;
	a.batch_indices = in[roles.batch_indices].data;
	a.batch_dtype = in[roles.batch_indices].dtype;
	a.positions = in[roles.positions].data;
	a.position_dtype = in[roles.positions].dtype;
	a.indptr = in[roles.indptr].data;
	a.indptr_dtype = in[roles.indptr].dtype;
	a.indices = in[roles.indices].data;
	a.index_dtype = in[roles.indices].dtype;
	a.sequences = in[roles.indptr].elements - 1;
	a.index_count = in[roles.indices].elements;
	return a;
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct page_roles roles = page_roles_of(c->problem);
	int64_t tokens = in[roles.positions].elements;

	if (tokens > INT32_MAX)
		return err_set(err, "page: %lld tokens are more than a grid has blocks; take fewer", (long long)tokens);
	for (int j = 0; j < roles.caches; j++) {
		const struct tensor *cache = &in[roles.cache[j]];
		size_t bytes = (size_t)dtype_bytes(cache->dtype, cache->elements);

		if (cuda_check(cudaMemcpyAsync(out[roles.output[j]].data, cache->data, bytes, cudaMemcpyDeviceToDevice,
		                               (cudaStream_t)stream),
		               "copying a cache", err) != 0)
			return -1;
	}
	for (int part = 0; part < roles.parts && tokens > 0; part++) {
		struct tensor *to = &out[roles.output[c->variant & PAGE_COMBINED ? 0 : part]];

		append_tokens<<<(unsigned)tokens, THREADS, 0, (cudaStream_t)stream>>>(appending_of(c, in, part, to));
		if (cuda_check(cudaGetLastError(), "launching page", err) != 0)
			return -1;
	}
	return 0;
}

struct page_fill {
	uint64_t key;
	int reach;
};

HOST_DEVICE static inline float element(const struct page_fill *f, int64_t, uint32_t random)
{
	return page_element(random, f->reach);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct page_fill f = {input_key(c, input), page_reach(out->dtype)};

	if (!dtype_is_float(out->dtype))
		return 1;
	return fill_elements<element>(out, f, stream, err);
}

extern "C" const struct op_cuda page_cuda = {"page", fill, launch, NULL};
