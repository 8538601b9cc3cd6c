/* recurrence - computes on a GPU, in float32, what kernels/common/linear_attention/recurrence.c computes on the host.
 *
 * The rows of a state are independent. A warp processes all tokens of a sequence for one row [K] of one head's state.
 * The row stays in registers, with K / 32 elements per lane. Dot products are float32: each lane sums its elements in
 * order, and a butterfly reduction adds up the sums of the lanes. All lanes get the same bits, and every run gives the
 * same bits. */
#include "kernels/core/elements_cuda.h"

#include "kernels/common/linear_attention/recurrence_cuda.h"
#include "kernels/core/dtype_convert.h"

enum { THREADS = 256, LANES = 32, WARPS = THREADS / LANES };

/* The tensors of a case. If the `data` of a tensor is NULL, the definition has no such tensor, or the case leaves it
 * out. */
struct net {
	struct tensor q, k, v, gate, gamma, a_log, dt_bias, beta, state, offsets, output, new_state;
	struct recurrence_extent e;
	enum recurrence_gate mode;
	float scale, lower_bound;
	bool v_first, l2norm, sigmoid, doubled, delta, by_key;
};

template <int PER_LANE> static __device__ __forceinline__ float dot(const float *a, const float *b)
{
	float sum = 0;

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		sum += a[i] * b[i];
	return add_lanes(sum);
}

/* Reads this lane's elements of a row of q or k; elements beyond the end of the row are 0. Normalises the row if
 * requested, unless all its elements are 0. */
template <int PER_LANE>
static __device__ __forceinline__ void load_row(const struct net &net, const struct tensor &tensor, int64_t row,
                                                float *out)
{
	int lane = threadIdx.x % LANES;

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		out[i] = i * LANES + lane < net.e.k_dim ? load(tensor, row * net.e.k_dim + i * LANES + lane) : 0.0f;
	if (!net.l2norm)
		return;
	float norm = sqrtf(dot<PER_LANE>(out, out));

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		out[i] = norm > 0.0f ? out[i] / norm : 0.0f;
}

static __device__ __forceinline__ float softplus(float x)
{
	return x > 20.0f ? x : log1pf(expf(x));
}

static __device__ __forceinline__ float sigmoid(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

/* Returns e^g. For `place` and `weight`, see `gate` in kernels/common/linear_attention/recurrence.c. */
static __device__ __forceinline__ float stays(const struct net &net, int64_t place, int64_t h, int64_t weight)
{
	if (net.mode == RECURRENCE_GATE_NONE)
		return 1.0f;
	if (net.mode == RECURRENCE_GATE_LOG)
		return expf(net.gamma.data != NULL ? load(net.gamma, h) : load(net.gate, place));
	float x = load(net.gate, place) + (net.dt_bias.data != NULL ? load(net.dt_bias, weight) : 0.0f);
	float rate = net.a_log.data != NULL ? expf(load(net.a_log, h)) : 1.0f;

	return expf(net.mode == RECURRENCE_GATE_SOFTPLUS ? -rate * softplus(x) : net.lower_bound * sigmoid(rate * x));
}

template <int PER_LANE>
static __device__ __forceinline__ void decay(const struct net &net, int64_t place, int64_t h, float *state)
{
	int lane = threadIdx.x % LANES;
	float all = net.by_key ? 1.0f : stays(net, place, h, h);

#pragma unroll
	for (int i = 0; i < PER_LANE; i++) {
		int64_t j = i * LANES + lane;

		if (net.by_key && j < net.e.k_dim)
			state[i] *= stays(net, place * net.e.k_dim + j, h, h * net.e.k_dim + j);
		else
			state[i] *= all;
	}
}

/* Processes one token for row `v` of the state of head h. Returns element `v` of the output. */
template <int PER_LANE>
static __device__ float step(const struct net &net, int64_t token, int64_t h, int64_t v, float *state)
{
	const struct recurrence_extent &e = net.e;
	int64_t place = token * e.v_heads + h, row = token * e.q_heads + h / (e.v_heads / e.q_heads);
	float learnt = load(net.v, place * e.v_dim + v), other[PER_LANE];

	decay<PER_LANE>(net, place, h, state);
	load_row<PER_LANE>(net, net.k, row, other);
	if (net.delta) {
		float beta = load(net.beta, place);

		beta = (net.sigmoid ? sigmoid(beta) : beta) * (net.doubled ? 2.0f : 1.0f);
		learnt = beta * (learnt - dot<PER_LANE>(state, other));
	}
#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		state[i] += learnt * other[i];
	load_row<PER_LANE>(net, net.q, row, other);
	return net.scale * dot<PER_LANE>(state, other);
}

/* Returns the flat index of key `j` in row v of a head's state. */
static __device__ __forceinline__ int64_t state_place(const struct net &net, int64_t n, int64_t h, int64_t v, int64_t j)
{
	const struct recurrence_extent &e = net.e;

	return (n * e.v_heads + h) * e.v_dim * e.k_dim + (net.v_first ? v * e.k_dim + j : j * e.v_dim + v);
}

/* Each warp processes one row of a state; warps are numbered by sequence, head and row. */
template <int PER_LANE> static __global__ void __launch_bounds__(THREADS) run_rows(const struct net net)
{
	const struct recurrence_extent &e = net.e;
	int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES;
	int64_t v = warp % e.v_dim, h = warp / e.v_dim % e.v_heads, n = warp / e.v_dim / e.v_heads;
	int lane = threadIdx.x % LANES;
	float state[PER_LANE];

	if (n >= e.sequences)
		return;
	int64_t first = net.offsets.data != NULL ? load_integer(net.offsets, n) : n * e.tokens;
	int64_t end = net.offsets.data != NULL ? load_integer(net.offsets, n + 1) : first + e.tokens;

#pragma unroll
	for (int i = 0; i < PER_LANE; i++) {
		int64_t j = i * LANES + lane;

		state[i] =
		    j < e.k_dim && net.state.data != NULL ? load(net.state, state_place(net, n, h, v, j)) : 0.0f;
	}
	for (int64_t t = first; t < end; t++) {
		float output = step<PER_LANE>(net, t, h, v, state);

		if (lane == 0)
			dtype_store_float(net.output.data, net.output.dtype, (t * e.v_heads + h) * e.v_dim + v, output);
	}
#pragma unroll
	for (int i = 0; i < PER_LANE; i++) {
		int64_t j = i * LANES + lane;

		if (j < e.k_dim && net.new_state.data != NULL)
			dtype_store_float(net.new_state.data, net.new_state.dtype, state_place(net, n, h, v, j), state[i]);
	}
}

static struct net net_of(const struct op_case *c, const struct tensor *in, struct tensor *out)
{
	struct recurrence_roles roles = recurrence_roles_of(c->problem);
	struct recurrence_modes modes = recurrence_modes_of(c, &roles);
	struct net net = {};

	net.q = in[roles.q];
	net.k = in[roles.k];
	net.v = in[roles.v];
	net.gate = op_tensor(in, roles.gate);
	net.gamma = op_tensor(in, roles.gamma);
	net.a_log = op_tensor(in, roles.a_log);
	net.dt_bias = op_tensor(in, roles.dt_bias);
	net.beta = op_tensor(in, roles.beta);
	net.state = op_tensor(in, roles.state);
	net.offsets = op_tensor(in, roles.cu_seqlens);
	net.output = out[roles.output];
	net.new_state = op_tensor(out, roles.new_state);
	net.e = recurrence_extent_of(c, &roles);
	net.mode = modes.gate;
	net.scale = (float)modes.scale;
	net.lower_bound = (float)modes.lower_bound;
	net.v_first = modes.v_first;
	net.l2norm = modes.l2norm;
	net.sigmoid = modes.sigmoid;
	net.doubled = modes.doubled;
	net.delta = (c->variant & RECURRENCE_DELTA) != 0;
	net.by_key = (c->variant & RECURRENCE_KEY_GATE) != 0;
	return net;
}

int recurrence_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                      struct err *err)
{
	struct net net = net_of(c, in, out);
	int64_t blocks = (net.e.sequences * net.e.v_heads * net.e.v_dim + WARPS - 1) / WARPS;
	cudaStream_t on = (cudaStream_t)stream;

	if (check_unseen(recurrence_check, c, in, err) != 0)
		return -1;
	if (blocks > INT32_MAX)
		return err_set(err, "%lld rows of states are more than one launch takes", (long long)blocks * WARPS);
	if (blocks == 0)
		return 0;
	if (net.e.k_dim <= 2 * LANES)
		run_rows<2><<<(unsigned)blocks, THREADS, 0, on>>>(net);
	else if (net.e.k_dim <= 4 * LANES)
		run_rows<4><<<(unsigned)blocks, THREADS, 0, on>>>(net);
	else if (net.e.k_dim <= 8 * LANES)
		run_rows<8><<<(unsigned)blocks, THREADS, 0, on>>>(net);
	else
		run_rows<RECURRENCE_DIM_MOST / LANES><<<(unsigned)blocks, THREADS, 0, on>>>(net);
	return cuda_check(cudaGetLastError(), "launching a recurrence", err);
}

/* Fills a tensor as fill_elements does. The template of fill_elements cannot take struct recurrence_fill, because a
 * function has the same name. Each thread writes four elements, because one Philox block contains the random bits of
 * four elements. */
static __global__ void __launch_bounds__(THREADS)
    make(void *data, enum dtype dtype, int64_t elements, const struct recurrence_fill f)
{
	int64_t blocks = (elements + 3) / 4, threads = (int64_t)gridDim.x * THREADS;

	for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int i = 0; i < 4 && 4 * b + i < elements; i++)
			dtype_store_float(data, dtype, 4 * b + i, recurrence_element(&f, 4 * b + i, random.word[i]));
	}
}

int recurrence_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	int64_t blocks = (out->elements / 4 + THREADS) / THREADS, most = 1 << 20;

	if (input == recurrence_roles_of(c->problem).cu_seqlens)
		return 1;
	if (out->elements == 0)
		return 0;
	make<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, (cudaStream_t)stream>>>(
	    out->data, out->dtype, out->elements, recurrence_fill_of(c, input));
	return cuda_check(cudaGetLastError(), "launching the fill of a recurrence", err);
}
