/* rope on a GPU - computes the rotation of kernels/rope/rope.c. Each block of threads computes one token: the threads
 * compute the cosine and sine of every pair of a head, and then rotate the pairs of all heads. Angles are double,
 * because float angles lose digits at large positions. Products and sums are float32. */
#include "kernels/core/elements_cuda.h"

#include "kernels/rope/input_values.h"

enum { THREADS = 256, SHARED_PAIRS = 4096 };

/* A rotated tensor: q or k. */
struct rotated {
	const void *x;
	void *y;
	enum dtype x_dtype, y_dtype;
	int64_t heads;
};

struct rotation {
	struct rotated part[ROPE_ROTATED];
	int count;
	const void *positions, *cache; /* if `cache` is NULL, the angles are computed from the parameters */
	enum dtype position_dtype, cache_dtype;
	int64_t head_size, half, cache_rows;
	bool interleaved, llama31;
	double number[ROPE_NUMBERS];
};

/* Returns the frequency of pair i, in radians per position. */
static __device__ double frequency(const struct rotation &r, int64_t i)
{
	double plain = pow(r.number[ROPE_THETA], -(double)i / (double)r.half), slow = plain / r.number[ROPE_SCALE];
	double turns = r.number[ROPE_OLD_CONTEXT] * plain / 6.283185307179586476925; /* the number of turns that the
										      * pair makes within the old
										      * context length */

	if (!r.llama31)
		return slow;
	if (turns > r.number[ROPE_HIGH])
		return plain;
	if (turns < r.number[ROPE_LOW])
		return slow;
	double part = (turns - r.number[ROPE_LOW]) / (r.number[ROPE_HIGH] - r.number[ROPE_LOW]);

	return part * plain + (1 - part) * slow;
}

static __device__ void make_angles(const struct rotation &r, int64_t token, float *cosine, float *sine)
{
	int64_t position = load_integer(r.positions, r.position_dtype, token);

	for (int64_t i = threadIdx.x; i < r.half; i += THREADS) {
		if (r.cache == NULL) {
			double angle = (double)position * frequency(r, i);

			cosine[i] = (float)cos(angle);
			sine[i] = (float)sin(angle);
		} else if (position < 0 || position >= r.cache_rows) {
			cosine[i] = sine[i] = nanf("");
		} else {
			cosine[i] = load(r.cache, r.cache_dtype, position * 2 * r.half + i);
			sine[i] = load(r.cache, r.cache_dtype, position * 2 * r.half + r.half + i);
		}
	}
}

static __device__ void rotate(const struct rotation &r, const struct rotated &part, int64_t token, const float *cosine,
                              const float *sine)
{
	int64_t first = token * part.heads * r.head_size, rest = r.head_size - 2 * r.half;

	for (int64_t at = threadIdx.x; at < part.heads * r.half; at += THREADS) {
		int64_t head = first + at / r.half * r.head_size, i = at % r.half;
		int64_t left = head + (r.interleaved ? 2 * i : i);
		int64_t right = head + (r.interleaved ? 2 * i + 1 : i + r.half);
		float a = load(part.x, part.x_dtype, left), b = load(part.x, part.x_dtype, right);

		dtype_store_float(part.y, part.y_dtype, left, a * cosine[i] - b * sine[i]);
		dtype_store_float(part.y, part.y_dtype, right, b * cosine[i] + a * sine[i]);
	}
	for (int64_t at = threadIdx.x; at < part.heads * rest; at += THREADS) {
		int64_t i = first + at / rest * r.head_size + 2 * r.half + at % rest;

		dtype_store_float(part.y, part.y_dtype, i, load(part.x, part.x_dtype, i));
	}
}

static __global__ void __launch_bounds__(THREADS) rotate_tokens(const struct rotation r)
{
	extern __shared__ float shared[];

	make_angles(r, blockIdx.x, shared, shared + r.half);
	__syncthreads();
	for (int p = 0; p < r.count; p++)
		rotate(r, r.part[p], blockIdx.x, shared, shared + r.half);
}

static struct rotation rotation_of(const struct op_case *c, const struct tensor *in, struct tensor *out)
{
	struct rope_roles roles = rope_roles_of(c->problem);
	struct rope_extent e = rope_extent_of(c);
	struct rotation r = {};

	for (r.count = 0; r.count < roles.count; r.count++) {
		const struct tensor *x = &in[roles.rotated[r.count]], *y = &out[roles.output[r.count]];

		r.part[r.count] = {x->data, y->data, x->dtype, y->dtype, e.heads[r.count]};
	}
	r.positions = in[roles.positions].data;
	r.position_dtype = in[roles.positions].dtype;
	if (roles.cache >= 0) {
		r.cache = in[roles.cache].data;
		r.cache_dtype = in[roles.cache].dtype;
	}
	r.head_size = e.head_size;
	r.half = e.rotary_dim / 2;
	r.cache_rows = e.cache_rows;
	r.interleaved = rope_interleaved(c) != 0;
	r.llama31 = (c->variant & ROPE_LLAMA31) != 0;
	for (int n = 0; n < ROPE_NUMBERS; n++)
		r.number[n] = rope_number_of(c, (enum rope_number)n);
	return r;
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct rope_extent e = rope_extent_of(c);
	struct rotation r = rotation_of(c, in, out);

	if (e.head_size < 1 || e.rotary_dim < 0 || e.rotary_dim > e.head_size || e.rotary_dim % 2 != 0)
		return err_set(err, "rope: a rotary dimension of %lld does not fit a head of %lld",
		               (long long)e.rotary_dim, (long long)e.head_size);
	if (e.tokens > INT32_MAX || r.half > SHARED_PAIRS)
		return err_set(err, "rope: %lld tokens with %lld pairs a head are more than one launch takes",
		               (long long)e.tokens, (long long)r.half);
	if (e.tokens == 0)
		return 0;
	rotate_tokens<<<(unsigned)e.tokens, THREADS, (size_t)(2 * r.half) * sizeof(float), (cudaStream_t)stream>>>(r);
	return cuda_check(cudaGetLastError(), "launching rope", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	if (input == rope_roles_of(c->problem).positions)
		return 1;
	return fill_elements<rope_element>(out, rope_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda rope_cuda = {"rope", fill, launch, NULL};
