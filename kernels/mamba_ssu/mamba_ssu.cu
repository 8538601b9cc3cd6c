/* mamba_ssu on a GPU - computes the state update of kernels/mamba_ssu/mamba_ssu.c in float32. First all slots are
 * copied to the output. Then each warp updates one element of one head, which has a vector of S states. Each lane adds
 * up the products of its own states in order, and butterfly shuffles add the sums of the lanes. The result has the same
 * bits in every run. */
#include "kernels/core/elements_cuda.h"

#include "kernels/core/dtype_convert.h"
#include "kernels/mamba_ssu/input_values.h"

enum { THREADS = 256, LANES = 32, WARPS = THREADS / LANES };

/* The tensors and numbers of one launch. The `data` of a tensor is NULL if the problem or the case has no such
 * tensor. */
struct layer {
	struct tensor state, x, z, dt, a, b, c, d, dt_bias, indices, output, new_state;
	struct ssu_extent e;
	int64_t pad;
	bool softplus;
};

/* Returns an element of a tensor. The tensor has one value per head and element if its rank is `by_element`, else one
 * value per head. Returns 0 if the tensor is absent. */
static __device__ __forceinline__ float load_weight(const struct tensor &tensor, int by_element, int64_t row,
                                                    int64_t dim, int64_t i)
{
	if (tensor.data == NULL)
		return 0.0f;
	return load(tensor, tensor.rank == by_element ? row * dim + i : row);
}

static __device__ __forceinline__ float step_size(const struct layer &layer, int64_t n, int64_t h, int64_t i)
{
	const struct ssu_extent &e = layer.e;
	float d = load_weight(layer.dt, 3, n * e.heads + h, e.dim, i) + load_weight(layer.dt_bias, 2, h, e.dim, i);

	return !layer.softplus || d > 20.0f ? d : log1pf(expf(d));
}

/* Updates the S states of element i in head h of sequence n. Returns y before it is multiplied by the gate. */
static __device__ float update(const struct layer &layer, int64_t slot, int64_t n, int64_t h, int64_t i)
{
	const struct ssu_extent &e = layer.e;
	int64_t group = (n * e.groups + h / (e.heads / e.groups)) * e.states;
	int64_t from = ((slot * e.heads + h) * e.dim + i) * e.states, weight = (h * e.dim + i) * e.states;
	float x = load(layer.x, (n * e.heads + h) * e.dim + i), d = step_size(layer, n, h, i), y = 0;

	for (int64_t j = threadIdx.x % LANES; j < e.states; j += LANES) {
		float a = load(layer.a, layer.a.rank == 3 ? weight + j : h);
		float state = load(layer.state, from + j) * expf(a * d) + d * x * load(layer.b, group + j);

		y += state * load(layer.c, group + j);
		if (layer.new_state.data != NULL)
			dtype_store_float(layer.new_state.data, layer.new_state.dtype, from + j, state);
	}
	return add_lanes(y) + load_weight(layer.d, 2, h, e.dim, i) * x;
}

/* One warp updates one element of one head of one sequence. Warps are numbered by sequence, then by head, then by
 * element. */
static __global__ void __launch_bounds__(THREADS) update_rows(const struct layer layer)
{
	const struct ssu_extent &e = layer.e;
	int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / LANES;
	int64_t i = warp % e.dim, h = warp / e.dim % e.heads, n = warp / e.dim / e.heads, slot = n;
	float y = 0;

	if (n >= e.batch)
		return;
	if (layer.indices.data != NULL)
		slot = load_integer(layer.indices, n);
	if (layer.indices.data == NULL || slot != layer.pad)
		y = update(layer, slot, n, h, i);
	if (threadIdx.x % LANES != 0)
		return;
	if (layer.z.data != NULL) {
		float z = load(layer.z, warp);

		y *= z / (1.0f + expf(-z));
	}
	dtype_store_float(layer.output.data, layer.output.dtype, warp, y);
}

static struct layer layer_of(const struct op_case *c, const struct ssu_roles *roles, const struct tensor *in,
                             const struct tensor *out)
{
	struct layer layer = {};

	layer.state = in[roles->state];
	layer.x = in[roles->x];
	layer.z = op_tensor(in, roles->z);
	layer.dt = in[roles->dt];
	layer.a = in[roles->a];
	layer.b = in[roles->b];
	layer.c = in[roles->c];
	layer.d = op_tensor(in, roles->d);
	layer.dt_bias = op_tensor(in, roles->dt_bias);
	layer.indices = op_tensor(in, roles->indices);
	layer.output = out[roles->output];
	layer.new_state = out[ssu_states_place(c->problem, roles)];
	layer.e = ssu_extent_of(c, roles);
	layer.pad = ssu_pad(c, roles);
	layer.softplus = ssu_softplus(c, roles);
	return layer;
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct ssu_roles roles = ssu_roles_of(c->problem);
	struct layer layer = layer_of(c, &roles, in, out);
	int64_t blocks = (layer.e.batch * layer.e.heads * layer.e.dim + WARPS - 1) / WARPS;

	if (layer.indices.data == NULL && layer.e.slots < layer.e.batch)
		return err_set(err, "mamba_ssu: there are %lld states for %lld sequences", (long long)layer.e.slots,
		               (long long)layer.e.batch);
	if (blocks > INT32_MAX)
		return err_set(err, "mamba_ssu: %lld rows of states are more than one launch takes",
		               (long long)blocks * WARPS);
	if (layer.new_state.data != NULL &&
	    copy_elements(layer.state, layer.new_state, "copying the states of mamba_ssu", stream, err) != 0)
		return -1;
	if (blocks == 0)
		return 0;
	update_rows<<<(unsigned)blocks, THREADS, 0, (cudaStream_t)stream>>>(layer);
	return cuda_check(cudaGetLastError(), "launching mamba_ssu", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	if (input == ssu_roles_of(c->problem).indices)
		return 1;
	return fill_elements<ssu_element>(out, ssu_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda mamba_ssu_cuda = {"mamba_ssu", fill, launch, NULL};
