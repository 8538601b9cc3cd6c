/* gdn on a GPU - computes the recurrence of kernels/gdn/gdn.c in float32. The rows of a state are independent. A warp
 * processes all tokens of a sequence for one row of one head's state, and keeps this row in registers, with K / 32
 * elements per lane. Dot products are float32: each lane sums its elements in order, and then a butterfly reduction
 * over the lanes gives every lane the same result. Every run gives the same bits. */
#include "kernels/core/elements_cuda.h"

#include "kernels/core/dtype_convert.h"
#include "kernels/gdn/input_values.h"
#include "kernels/gdn/oracle.h"

enum { THREADS = 256, LANES = 32, WARPS = THREADS / LANES, PER_LANE = GDN_DIM_MOST / LANES };

/* The tensors and numbers that one kernel launch needs. The `data` of a tensor is NULL if the problem or the case has
 * no such tensor. */
struct net {
	struct tensor q, k, v, a, b, a_log, dt_bias, state, indices, offsets, output, new_state, buffer;
	struct gdn_extent e;
	float scale;
	bool v_last, l2norm, buffer_by_slot;
};

static __device__ __forceinline__ float dot(const float *a, const float *b)
{
	float sum = 0;

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		sum += a[i] * b[i];
	return add_lanes(sum);
}

/* Loads this lane's elements of a row of q or k, normalised if net.l2norm is set. Elements beyond the end of the row
 * are 0. */
static __device__ __forceinline__ void load_row(const struct net &net, const struct tensor &tensor, int64_t row,
                                                float *out)
{
	int lane = threadIdx.x % LANES;

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		out[i] = i * LANES + lane < net.e.k_dim ? load(tensor, row * net.e.k_dim + i * LANES + lane) : 0.0f;
	if (!net.l2norm)
		return;
	float norm = sqrtf(dot(out, out));

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		out[i] /= norm;
}

static __device__ __forceinline__ float softplus(float x)
{
	return x > 20.0f ? x : log1pf(expf(x));
}

/* Processes one token for row `v` of the state of head h. Returns the output element. */
static __device__ float step(const struct net &net, int64_t token, int64_t h, int64_t v, float *state)
{
	const struct gdn_extent &e = net.e;
	int64_t place = token * e.v_heads + h;
	float g = expf(-expf(load(net.a_log, h)) * softplus(load(net.a, place) + load(net.dt_bias, h)));
	float beta = 1.0f / (1.0f + expf(-load(net.b, place)));
	float q[PER_LANE], k[PER_LANE];

	load_row(net, net.q, token * e.q_heads + h / (e.v_heads / e.q_heads), q);
	load_row(net, net.k, token * e.k_heads + h / (e.v_heads / e.k_heads), k);
#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		state[i] *= g;
	float correction = beta * (load(net.v, place * e.v_dim + v) - dot(state, k));

#pragma unroll
	for (int i = 0; i < PER_LANE; i++)
		state[i] += correction * k[i];
	return net.scale * dot(state, q);
}

/* Returns the flat index of element (v, j) of a head's state. */
static __device__ __forceinline__ int64_t state_place(const struct net &net, int64_t slot, int64_t h, int64_t v,
                                                      int64_t j)
{
	const struct gdn_extent &e = net.e;

	return (slot * e.v_heads + h) * e.v_dim * e.k_dim + (net.v_last ? j * e.v_dim + v : v * e.k_dim + j);
}

/* Stores a row in the tensor `to`, as row `v` of state number `at`. Each lane stores K / 32 elements. */
static __device__ __forceinline__ void store_row(const struct net &net, const struct tensor &to, int64_t at, int64_t h,
                                                 int64_t v, const float *state)
{
#pragma unroll
	for (int i = 0; i < PER_LANE; i++) {
		int64_t j = i * LANES + threadIdx.x % LANES;

		if (j < net.e.k_dim)
			dtype_store_float(to.data, to.dtype, state_place(net, at, h, v, j), state[i]);
	}
}

/* One warp computes one row of the state of one head of one sequence. Warps are numbered by sequence, then by head,
 * then by row. */
static __global__ void __launch_bounds__(THREADS) run_rows(const struct net net)
{
	const struct gdn_extent &e = net.e;
	int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES;
	int64_t v = warp % e.v_dim, h = warp / e.v_dim % e.v_heads, n = warp / e.v_dim / e.v_heads;
	int lane = threadIdx.x % LANES;
	float state[PER_LANE];

	if (n >= e.sequences)
		return;
	int64_t slot = net.indices.data != NULL ? load_integer(net.indices, n) : n;
	int64_t first = net.offsets.data != NULL ? load_integer(net.offsets, n) : n * e.tokens;
	int64_t end = net.offsets.data != NULL ? load_integer(net.offsets, n + 1) : first + e.tokens;

#pragma unroll
	for (int i = 0; i < PER_LANE; i++) {
		int64_t j = i * LANES + lane;

		state[i] =
		    j < e.k_dim && net.state.data != NULL ? load(net.state, state_place(net, slot, h, v, j)) : 0.0f;
	}
	for (int64_t t = first; t < end; t++) {
		float output = step(net, t, h, v, state);

		if (lane == 0)
			dtype_store_float(net.output.data, net.output.dtype, (t * e.v_heads + h) * e.v_dim + v, output);
		if (net.buffer.data != NULL)
			store_row(net, net.buffer, (net.buffer_by_slot ? slot : n) * e.tokens + t - first, h, v, state);
	}
	if (net.new_state.data != NULL)
		store_row(net, net.new_state, slot, h, v, state);
}

static struct net net_of(const struct op_case *c, const struct gdn_roles *roles, const struct tensor *in,
                         struct tensor *out)
{
	struct net net = {};

	net.q = in[roles->q];
	net.k = in[roles->k];
	net.v = in[roles->v];
	net.a = in[roles->a];
	net.b = in[roles->b];
	net.a_log = in[roles->a_log];
	net.dt_bias = in[roles->dt_bias];
	net.state = op_tensor(in, roles->state);
	net.indices = op_tensor(in, roles->indices);
	net.offsets = op_tensor(in, roles->cu_seqlens);
	net.output = out[roles->output];
	if (gdn_updates(c, roles))
		net.new_state = op_tensor(out, roles->new_state);
	if (roles->buffer >= 0 && in[roles->buffer].data != NULL) {
		net.buffer = out[op_own_place(c->problem, roles->buffer)];
		net.buffer_by_slot = gdn_buffer_by_slot(c->problem, roles);
	}
	net.e = gdn_extent_of(c, roles);
	net.scale = (float)gdn_scale(c, roles);
	net.v_last = (c->variant & GDN_V_LAST) != 0;
	net.l2norm = gdn_l2norm(c, roles);
	return net;
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);
	struct net net = net_of(c, &roles, in, out);
	int64_t blocks = (net.e.sequences * net.e.v_heads * net.e.v_dim + WARPS - 1) / WARPS;

	if (check_unseen(gdn_check, c, in, err) != 0)
		return -1;
	if (blocks > INT32_MAX)
		return err_set(err, "gdn: %lld rows of states are more than one launch takes",
		               (long long)blocks * WARPS);
	if (roles.new_state >= 0 &&
	    copy_elements(net.state, out[roles.new_state], "copying the states of gdn", stream, err) != 0)
		return -1;
	if (net.buffer.data != NULL && net.buffer.elements > 0) {
		const struct tensor *from = &in[roles.buffer];

		if (cuda_check(cudaMemcpyAsync(net.buffer.data, from->data,
		                               (size_t)dtype_bytes(from->dtype, from->elements),
		                               cudaMemcpyDeviceToDevice, (cudaStream_t)stream),
		               "copying the buffer of gdn", err) != 0)
			return -1;
	}
	if (blocks == 0)
		return 0;
	run_rows<<<(unsigned)blocks, THREADS, 0, (cudaStream_t)stream>>>(net);
	return cuda_check(cudaGetLastError(), "launching gdn", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct gdn_roles roles = gdn_roles_of(c->problem);

	if (input == roles.cu_seqlens || input == roles.indices)
		return 1;
	return fill_elements<gdn_element>(out, gdn_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda gdn_cuda = {"gdn", fill, launch, NULL};
