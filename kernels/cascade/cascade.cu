/* cascade on a GPU - merges attention states as kernels/cascade/cascade.c does, in float32. Each thread block computes
 * one head of one token. Each thread computes the largest s and the sum of the weights by itself, because there are few
 * states. The thread then merges its part of v. */
#include "kernels/core/elements_cuda.h"

#include "kernels/cascade/input_values.h"

enum { THREADS = 128 };

struct merging {
	const void *v[2];
	const float *s[2];
	const uint8_t *mask; /* NULL: the states of every token are merged */
	void *v_out;
	float *s_out; /* NULL: not requested */
	enum dtype v_dtype[2], v_out_dtype;
	int64_t states, heads, width;
	bool many;
};

static __device__ __forceinline__ int64_t place(const struct merging &m, int64_t token, int64_t head, int64_t state)
{
	return m.many ? (token * m.states + state) * m.heads + head : token * m.heads + head;
}

static __device__ __forceinline__ float s_of(const struct merging &m, int64_t token, int64_t head, int64_t state)
{
	return m.s[m.many ? 0 : state][place(m, token, head, state)];
}

/* Returns the weight of a state. An empty state has weight 0, even if all states are empty. */
static __device__ __forceinline__ float weight_of(float s, float most)
{
	return most == -INFINITY ? 0 : exp2f(s - most);
}

static __global__ void __launch_bounds__(THREADS) merge(const struct merging m)
{
	int64_t at = blockIdx.x, token = at / m.heads, head = at % m.heads;
	bool alone = m.mask != NULL && m.mask[token] == 0;
	float most = -INFINITY, sum = 0;

	for (int64_t i = 0; i < m.states; i++)
		most = fmaxf(most, s_of(m, token, head, i));
	for (int64_t i = 0; i < m.states; i++)
		sum += weight_of(s_of(m, token, head, i), most);
	for (int64_t d = threadIdx.x; d < m.width; d += THREADS) {
		float v = 0;

		for (int64_t i = 0; i < m.states && !alone; i++) {
			int from = m.many ? 0 : (int)i;

			v += weight_of(s_of(m, token, head, i), most) *
			     load(m.v[from], m.v_dtype[from], place(m, token, head, i) * m.width + d);
		}
		v = alone ? load(m.v[0], m.v_dtype[0], at * m.width + d) : sum > 0 ? v / sum : 0;
		dtype_store_float(m.v_out, m.v_out_dtype, at * m.width + d, v);
	}
	if (threadIdx.x == 0 && m.s_out != NULL)
		m.s_out[at] = alone ? m.s[0][at] : most + log2f(sum);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct cascade_roles roles = cascade_roles_of(c->problem);
	struct cascade_extent e = cascade_extent_of(c);
	struct merging m = {};

	if (e.tokens * e.heads > INT32_MAX)
		return err_set(err, "cascade: %lld tokens of %lld heads are more than a grid has blocks; take fewer",
		               (long long)e.tokens, (long long)e.heads);
	if (e.tokens * e.heads == 0)
		return 0;
	m.many = c->variant == CASCADE_MANY;
	for (int i = 0; i < (m.many ? 1 : 2); i++) {
		m.v[i] = in[roles.v[i]].data;
		m.v_dtype[i] = in[roles.v[i]].dtype;
		m.s[i] = (const float *)in[roles.s[i]].data;
	}
	m.mask = roles.mask >= 0 ? (const uint8_t *)in[roles.mask].data : NULL;
	m.v_out = out[roles.v_out].data;
	m.v_out_dtype = out[roles.v_out].dtype;
	m.s_out = roles.s_out >= 0 ? (float *)out[roles.s_out].data : NULL;
	m.states = e.states;
	m.heads = e.heads;
	m.width = e.width;
	merge<<<(unsigned)(e.tokens * e.heads), THREADS, 0, (cudaStream_t)stream>>>(m);
	return cuda_check(cudaGetLastError(), "launching cascade", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	if (input == cascade_roles_of(c->problem).mask)
		return 1;
	return fill_elements<cascade_element>(out, cascade_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda cascade_cuda = {"cascade", fill, launch, NULL};
