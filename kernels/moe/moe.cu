/* moe on a GPU - computes a mixture of experts in float32. A visit is a pair of a token and an expert that the token
 * selects. Visits are processed in tiles, and then the results of each token are added up. The kernels run in this
 * order:
 *
 *   choose   One thread per token computes the routing: K experts and weights per token.
 *   visits, plan, visits   The first pass counts the visits of each local expert, plan divides the list of visits into
 *            tiles, and the second pass writes the list, ordered by expert and then by token. The passes read tokens in
 *            order, so the list is the same in every run.
 *   first    One block computes "up" and gate for TILE visits of one expert and TILE columns.
 *   second   One block computes TILE columns of the second product for TILE visits, and stores them as float32, one row
 *            per visit.
 *   gather   out[t] is the sum of the rows of its visits, in the order of the token's K experts.
 *
 * Each block reads weights, converts them to float, multiplies them by their scale and stores them in shared memory.
 * The scratch memory holds the `intermediate` + `hidden` floats of each visit; there are at most K visits per token.
 * Products are accumulated in float32: sums of PART terms are computed and then added up. There are no atomic
 * additions, so every run gives the same bits. */
#include "kernels/core/cuda_check.h"

#include <math.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/moe/input_values.h"

enum { THREADS = 256, TILE = 64, STEP = 32, PIECE = 4, PART = 128 };

/* A tensor in device memory. If `data` is NULL, the problem has no such tensor, and load returns 1 for its elements. */
struct view {
	const void *data;
	enum dtype dtype;
};

/* A tile holds the visits first … end - 1 of the list, all of one local expert. */
struct tile {
	int expert, first, end;
};

struct problem {
	struct moe_extent e;
	struct routing r;
	struct view hidden, weights1, weights2, hidden_scale, scale1, scale2, factor_up, factor_gate, factor_down;
	struct view logits, bias, ids, id_weights;
	int on_input;
	void *out;
	enum dtype out_dtype;
	/* scratch memory */
	int *pick;     /* [tokens][picks]: the local expert, or -1 for an expert of another device */
	float *weight; /* [tokens][picks] */
	int *start;    /* [local + 1] */
	int *tiles;    /* one int: the number of tiles */
	struct tile *tile;
	int *visit;   /* the visits in the order of their experts; a visit is token * picks + k */
	int *place;   /* [tokens][picks]: the index of the visit in `visit` */
	float *inner; /* [visits][intermediate] */
	float *outer; /* [visits][hidden] */
};

static __device__ __forceinline__ float load(const struct view &v, int64_t index)
{
	const uint8_t *bytes = (const uint8_t *)v.data;

	if (v.data == NULL)
		return 1;
	switch (v.dtype) {
	case DTYPE_FLOAT32:
		return ((const float *)v.data)[index];
	case DTYPE_FLOAT16:
		return float_from_f16(((const uint16_t *)v.data)[index]);
	case DTYPE_BFLOAT16:
		return float_from_bf16(((const uint16_t *)v.data)[index]);
	case DTYPE_FLOAT8_E5M2:
		return float_from_e5m2(bytes[index]);
	default:
		return float_from_e4m3(bytes[index]);
	}
}

/* --- selection ---------------------------------------------------------------------------------------------------- */

/* The best experts or groups so far, in descending order; of two equal ones, the one with the lower number is first. */
struct best {
	int index[MOE_PICKS_MOST];
	float value[MOE_PICKS_MOST];
	int count, room;
};

static __device__ void offer(struct best &best, int index, float value)
{
	int at = best.count;

	if (best.count == best.room && !(value > best.value[best.room - 1]))
		return;
	if (best.count == best.room)
		at--;
	else
		best.count++;
	for (; at > 0 && best.value[at - 1] < value; at--) {
		best.index[at] = best.index[at - 1];
		best.value[at] = best.value[at - 1];
	}
	best.index[at] = index;
	best.value[at] = value;
}

static __device__ float score(const struct problem &p, int64_t token, int expert)
{
	float logit = load(p.logits, token * p.r.experts + expert);

	return p.r.method == MOE_RENORMALISE ? logit : 1 / (1 + expf(-logit));
}

static __device__ float ranked(const struct problem &p, int64_t token, int expert)
{
	return score(p, token, expert) + (p.r.method == MOE_DEEPSEEK ? load(p.bias, expert) : 0);
}

static __device__ void choose_experts(const struct problem &p, int64_t token, struct best &best)
{
	int size = (int)(p.r.experts / p.r.groups);
	struct best groups;

	groups.count = 0;
	groups.room = (int)p.r.kept;
	for (int g = 0; g < p.r.groups; g++) {
		float first = -INFINITY, second = -INFINITY;

		for (int e = g * size; e < (g + 1) * size && p.r.groups > 1; e++) {
			float value = ranked(p, token, e);

			second = value > first ? first : value > second ? value : second;
			first = value > first ? value : first;
		}
		offer(groups, g, p.r.groups > 1 ? first + second : 0);
	}
	for (int g = 0; g < groups.count; g++)
		for (int e = groups.index[g] * size; e < (groups.index[g] + 1) * size; e++)
			offer(best, e, ranked(p, token, e));
}

static __device__ void choose_token(const struct problem &p, int64_t token, struct best &best, float *weight)
{
	float sum = 0;

	choose_experts(p, token, best);
	for (int k = 0; k < p.r.picks; k++) {
		weight[k] = score(p, token, best.index[k]);
		if (p.r.method == MOE_RENORMALISE)
			weight[k] = expf(weight[k] - best.value[0]);
		sum += weight[k];
	}
	for (int k = 0; k < p.r.picks && p.r.method != MOE_LLAMA4; k++)
		weight[k] = weight[k] / (sum + 1e-20f) * (float)p.r.factor;
}

/* Reads one of the given experts and its weight. */
static __device__ void take_given(const struct problem &p, int64_t index, int64_t *expert, float *weight)
{
	int64_t id =
	    p.ids.dtype == DTYPE_INT64 ? ((const int64_t *)p.ids.data)[index] : ((const int32_t *)p.ids.data)[index];

	*expert = p.id_weights.data == NULL ? id >> 16 : id;
	*weight = p.id_weights.data == NULL ? float_from_bf16((uint16_t)(id & 0xffff)) : load(p.id_weights, index);
}

static __global__ void __launch_bounds__(THREADS) choose(const struct problem p)
{
	int64_t token = (int64_t)blockIdx.x * THREADS + threadIdx.x;
	float weight[MOE_PICKS_MOST];
	struct best best;

	if (token >= p.e.tokens)
		return;
	best.count = 0;
	best.room = (int)p.r.picks;
	if (p.r.method != MOE_GIVEN)
		choose_token(p, token, best, weight);
	for (int k = 0; k < p.r.picks; k++) {
		int64_t index = token * p.r.picks + k, expert = p.r.method == MOE_GIVEN ? 0 : best.index[k];

		if (p.r.method == MOE_GIVEN)
			take_given(p, index, &expert, &weight[k]);
		expert -= p.e.offset;
		p.pick[index] = expert >= 0 && expert < p.e.local ? (int)expert : -1;
		p.weight[index] = weight[k];
	}
}

/* --- visits ------------------------------------------------------------------------------------------------------- */

/* Counts the threads of the block whose `mine` is true. Returns the number of such threads before the calling thread,
 * and stores the number of all such threads in `total`. */
static __device__ int rank_in_block(bool mine, int *warps, int *total)
{
	unsigned ballot = __ballot_sync(0xffffffffu, mine);
	int lane = (int)(threadIdx.x % 32), warp = (int)(threadIdx.x / 32), before = 0;

	if (lane == 0)
		warps[warp] = __popc(ballot);
	__syncthreads();
	*total = 0;
	for (int w = 0; w < THREADS / 32; w++) {
		before += w < warp ? warps[w] : 0;
		*total += warps[w];
	}
	__syncthreads();
	return before + __popc(ballot & ((1u << lane) - 1));
}

/* One block processes one expert. If `placing` is false, the block stores the number of the expert's visits in
 * start[expert + 1]. If `placing` is true, the block writes the list of the expert's visits. */
static __global__ void __launch_bounds__(THREADS) visits(const struct problem p, bool placing)
{
	__shared__ int warps[THREADS / 32];
	int64_t picks = p.e.tokens * p.r.picks;
	int at = placing ? p.start[blockIdx.x] : 0;

	for (int64_t first = 0; first < picks; first += THREADS) {
		int64_t index = first + threadIdx.x;
		bool mine = index < picks && p.pick[index] == (int)blockIdx.x;
		int total, rank = rank_in_block(mine, warps, &total);

		if (mine && placing) {
			p.visit[at + rank] = (int)index;
			p.place[index] = at + rank;
		}
		at += total;
	}
	if (!placing && threadIdx.x == 0)
		p.start[blockIdx.x + 1] = at;
}

/* Computes the prefix sums of the numbers of visits, and the tiles of all experts. A single thread runs this kernel. */
static __global__ void plan(const struct problem p)
{
	int tiles = 0;

	p.start[0] = 0;
	for (int l = 0; l < p.e.local; l++) {
		p.start[l + 1] += p.start[l];
		for (int first = p.start[l]; first < p.start[l + 1]; first += TILE)
			p.tile[tiles++] = {l, first, first + TILE < p.start[l + 1] ? first + TILE : p.start[l + 1]};
	}
	*p.tiles = tiles;
}

/* --- products ----------------------------------------------------------------------------------------------------- */

/* Tiles in shared memory are stored as [k][visit or column]. */
typedef float shared_tile[STEP][TILE + 1];

/* The weights of one layer of one expert, [rows][columns], and the scales of these weights. `launch` checks that all
 * extents are below 2^31. */
struct matrix {
	struct view weights, scales;
	int64_t first, first_scale;				   /* indices of the expert's first weight and scale */
	unsigned rows, columns, block_rows, block_columns, blocks; /* blocks: the number of scales per row */
};

static __device__ __forceinline__ struct matrix matrix_of(const struct view &weights, const struct view &scales,
							  int64_t expert, int64_t rows, int64_t columns,
							  int64_t block_rows, int64_t block_columns)
{
	struct matrix m = {weights,
			   scales,
			   expert * rows * columns,
			   0,
			   (unsigned)rows,
			   (unsigned)columns,
			   (unsigned)block_rows,
			   (unsigned)block_columns,
			   (unsigned)(columns / block_columns)};

	m.first_scale = expert * (rows / block_rows) * m.blocks;
	return m;
}

/* Loads weights and multiplies them by their scales: the rows row0 … row_end - 1, and the columns from k0 on. Elements
 * outside the matrix become zeros. */
static __device__ __forceinline__ void load_weights(shared_tile &to, const struct matrix &m, unsigned row0,
						    unsigned row_end, unsigned k0)
{
	for (unsigned i = threadIdx.x; i < TILE * STEP; i += THREADS) {
		unsigned row = row0 + i / STEP, k = k0 + i % STEP;
		float value = 0;

		if (row < row_end && k < m.columns) {
			value = load(m.weights, m.first + (int64_t)row * m.columns + k);
			if (m.scales.data != NULL)
				value *= load(m.scales, m.first_scale + (int64_t)(row / m.block_rows) * m.blocks +
							    k / m.block_columns);
		}
		to[i % STEP][i / STEP] = value;
	}
}

/* Loads the hidden states of the tile's visits and multiplies them by their scales. */
static __device__ __forceinline__ void load_hidden(shared_tile &to, const struct problem &p, const struct tile &tile,
						   int64_t k0)
{
	for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
		int64_t visit = tile.first + i / STEP, k = k0 + i % STEP;
		float value = 0;

		if (visit < tile.end && k < p.e.hidden) {
			int64_t index = p.visit[visit], token = (unsigned)index / (unsigned)p.r.picks;
			int64_t b = (unsigned)k / (unsigned)p.e.hidden_block;

			value =
			    load(p.hidden, token * p.e.hidden + k) *
			    load(p.hidden_scale, p.e.blocks_first ? b * p.e.tokens + token : token * p.e.blocks + b);
			value *= p.on_input ? p.weight[index] : 1;
		}
		to[i % STEP][i / STEP] = value;
	}
}

static __device__ __forceinline__ void load_inner(shared_tile &to, const struct problem &p, const struct tile &tile,
						  int64_t k0)
{
	for (int i = threadIdx.x; i < TILE * STEP; i += THREADS) {
		int64_t visit = tile.first + i / STEP, k = k0 + i % STEP;

		to[i % STEP][i / STEP] =
		    visit < tile.end && k < p.e.intermediate ? p.inner[visit * p.e.intermediate + k] : 0;
	}
}

/* The piece of a tile that one thread computes: the rows (visits) row … row + 3 and the columns column … column + 3. */
struct piece {
	float part[PIECE][PIECE], total[PIECE][PIECE];
};

static __device__ __forceinline__ void clear(struct piece &piece)
{
	for (int i = 0; i < PIECE; i++)
		for (int j = 0; j < PIECE; j++)
			piece.part[i][j] = piece.total[i][j] = 0;
}

static __device__ __forceinline__ void multiply(struct piece &piece, const shared_tile &a, const shared_tile &b,
						int row, int column)
{
	for (int k = 0; k < STEP; k++)
#pragma unroll
		for (int i = 0; i < PIECE; i++)
#pragma unroll
			for (int j = 0; j < PIECE; j++)
				piece.part[i][j] = fmaf(a[k][row + i], b[k][column + j], piece.part[i][j]);
}

/* Adds the sums of the part to the totals when the part is complete. */
static __device__ __forceinline__ void close_part(struct piece &piece, int64_t k_end, int64_t columns)
{
	if (k_end % PART != 0 && k_end < columns)
		return;
#pragma unroll
	for (int i = 0; i < PIECE; i++)
#pragma unroll
		for (int j = 0; j < PIECE; j++) {
			piece.total[i][j] += piece.part[i][j];
			piece.part[i][j] = 0;
		}
}

static __global__ void __launch_bounds__(THREADS) first(const struct problem p)
{
	__shared__ shared_tile a, up, gate;
	int64_t column0 = (int64_t)blockIdx.y * TILE, inner = p.e.intermediate;
	int row = (int)(threadIdx.x / 16) * PIECE, column = (int)(threadIdx.x % 16) * PIECE;
	struct piece ups, gates;

	if ((int)blockIdx.x >= *p.tiles)
		return;
	const struct tile tile = p.tile[blockIdx.x];
	const struct matrix weights =
	    matrix_of(p.weights1, p.scale1, tile.expert, 2 * inner, p.e.hidden, p.e.rows1, p.e.columns1);

	clear(ups);
	clear(gates);
	for (int64_t k0 = 0; k0 < p.e.hidden; k0 += STEP) {
		load_hidden(a, p, tile, k0);
		load_weights(up, weights, (unsigned)column0, (unsigned)inner, (unsigned)k0);
		load_weights(gate, weights, (unsigned)(inner + column0), (unsigned)(2 * inner), (unsigned)k0);
		__syncthreads();
		multiply(ups, a, up, row, column);
		multiply(gates, a, gate, row, column);
		close_part(ups, k0 + STEP, p.e.hidden);
		close_part(gates, k0 + STEP, p.e.hidden);
		__syncthreads();
	}
	for (int i = 0; i < PIECE; i++)
		for (int j = 0; j < PIECE; j++) {
			float u = ups.total[i][j] * load(p.factor_up, tile.expert);
			float g = gates.total[i][j] * load(p.factor_gate, tile.expert);

			if (tile.first + row + i < tile.end && column0 + column + j < inner)
				p.inner[(tile.first + row + i) * inner + column0 + column + j] = u * g / (1 + expf(-g));
		}
}

static __global__ void __launch_bounds__(THREADS) second(const struct problem p)
{
	__shared__ shared_tile a, b;
	int64_t column0 = (int64_t)blockIdx.y * TILE, hidden = p.e.hidden;
	int row = (int)(threadIdx.x / 16) * PIECE, column = (int)(threadIdx.x % 16) * PIECE;
	struct piece piece;

	if ((int)blockIdx.x >= *p.tiles)
		return;
	const struct tile tile = p.tile[blockIdx.x];
	const struct matrix weights =
	    matrix_of(p.weights2, p.scale2, tile.expert, hidden, p.e.intermediate, p.e.rows2, p.e.columns2);

	clear(piece);
	for (int64_t k0 = 0; k0 < p.e.intermediate; k0 += STEP) {
		load_inner(a, p, tile, k0);
		load_weights(b, weights, (unsigned)column0, (unsigned)hidden, (unsigned)k0);
		__syncthreads();
		multiply(piece, a, b, row, column);
		close_part(piece, k0 + STEP, p.e.intermediate);
		__syncthreads();
	}
	for (int i = 0; i < PIECE; i++)
		for (int j = 0; j < PIECE; j++) {
			int64_t visit = tile.first + row + i, h = column0 + column + j;
			float value = piece.total[i][j] * load(p.factor_down, tile.expert);

			if (visit < tile.end && h < hidden)
				p.outer[visit * hidden + h] = p.on_input ? value : value * p.weight[p.visit[visit]];
		}
}

static __global__ void __launch_bounds__(THREADS) gather(const struct problem p)
{
	int64_t elements = p.e.tokens * p.e.hidden, threads = (int64_t)gridDim.x * THREADS;

	for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < elements; i += threads) {
		int64_t token = i / p.e.hidden;
		float sum = 0;

		for (int64_t index = token * p.r.picks; index < (token + 1) * p.r.picks; index++)
			if (p.pick[index] >= 0)
				sum += p.outer[(int64_t)p.place[index] * p.e.hidden + i % p.e.hidden];
		dtype_store_float(p.out, p.out_dtype, i, sum);
	}
}

/* --- the host's side ---------------------------------------------------------------------------------------------- */

static struct view view_of(const struct tensor *in, int input)
{
	return input < 0 ? view{NULL, DTYPE_FLOAT32} : view{in[input].data, in[input].dtype};
}

static int64_t tiles_most(const struct moe_extent *e, int64_t picks)
{
	return e->local + e->tokens * picks / TILE;
}

/* Returns `bytes` bytes of the scratch memory at `*at`, aligned to 256 bytes, and moves `*at` behind them. */
static char *cut(char **at, int64_t bytes)
{
	char *memory = *at;

	*at += (bytes + 255) / 256 * 256;
	return memory;
}

/* Divides the scratch memory that starts at `at` into the arrays of `p`. Returns the end of the arrays. */
static char *lay_out(struct problem *p, char *at)
{
	int64_t visits = p->e.tokens * p->r.picks;

	p->pick = (int *)cut(&at, visits * 4);
	p->weight = (float *)cut(&at, visits * 4);
	p->visit = (int *)cut(&at, visits * 4);
	p->place = (int *)cut(&at, visits * 4);
	p->start = (int *)cut(&at, (p->e.local + 1) * 4);
	p->tiles = (int *)cut(&at, 4);
	p->tile = (struct tile *)cut(&at, tiles_most(&p->e, p->r.picks) * (int64_t)sizeof(struct tile));
	p->inner = (float *)cut(&at, visits * p->e.intermediate * 4);
	p->outer = (float *)cut(&at, visits * p->e.hidden * 4);
	return at;
}

static int64_t scratch_bytes(const struct op_case *c)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct problem p = {};

	p.e = moe_extent_of(c, &roles);
	if (routing_of(c, &roles, &p.r, NULL) != 0)
		return 0; /* no ground truth is computed, and `launch` reports why */
	return (int64_t)(lay_out(&p, NULL) - (char *)NULL);
}

static void set_views(struct problem *p, const struct moe_roles *roles, const struct tensor *in)
{
	p->hidden = view_of(in, roles->hidden);
	p->weights1 = view_of(in, roles->weights1);
	p->weights2 = view_of(in, roles->weights2);
	p->hidden_scale = view_of(in, roles->hidden_scale);
	p->scale1 = view_of(in, roles->scale1);
	p->scale2 = view_of(in, roles->scale2);
	p->factor_up = view_of(in, roles->factor_up);
	p->factor_gate = view_of(in, roles->factor_gate);
	p->factor_down = view_of(in, roles->factor_down);
	p->logits = view_of(in, roles->logits);
	p->bias = view_of(in, roles->bias);
	p->ids = view_of(in, roles->ids);
	p->id_weights = view_of(in, roles->id_weights);
}

static int64_t ceiling(int64_t value, int64_t by)
{
	return (value + by - 1) / by;
}

static int run(const struct problem *p, cudaStream_t stream, struct err *err)
{
	unsigned tiles = (unsigned)tiles_most(&p->e, p->r.picks);
	int64_t blocks = ceiling(p->e.tokens * p->e.hidden, THREADS), most = 1 << 20;

	choose<<<(unsigned)ceiling(p->e.tokens, THREADS), THREADS, 0, stream>>>(*p);
	if (cuda_check(cudaGetLastError(), "launching the routing of moe", err) != 0)
		return -1;
	visits<<<(unsigned)p->e.local, THREADS, 0, stream>>>(*p, false);
	plan<<<1, 1, 0, stream>>>(*p);
	visits<<<(unsigned)p->e.local, THREADS, 0, stream>>>(*p, true);
	if (cuda_check(cudaGetLastError(), "launching the visits of moe", err) != 0)
		return -1;
	first<<<dim3(tiles, (unsigned)ceiling(p->e.intermediate, TILE)), THREADS, 0, stream>>>(*p);
	if (cuda_check(cudaGetLastError(), "launching the first product of moe", err) != 0)
		return -1;
	second<<<dim3(tiles, (unsigned)ceiling(p->e.hidden, TILE)), THREADS, 0, stream>>>(*p);
	if (cuda_check(cudaGetLastError(), "launching the second product of moe", err) != 0)
		return -1;
	gather<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, stream>>>(*p);
	return cuda_check(cudaGetLastError(), "launching the sums of moe", err);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
		  struct err *err)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct problem p = {};

	p.e = moe_extent_of(c, &roles);
	p.on_input = (c->variant & MOE_WEIGHT_ON_INPUT) != 0;
	p.out = out[0].data;
	p.out_dtype = out[0].dtype;
	if (routing_of(c, &roles, &p.r, err) != 0 || moe_extent_check(c, &roles, err) != 0)
		return -1;
	if (p.e.tokens <= 0 || p.e.hidden <= 0 || p.e.local <= 0)
		return 0;
	if (p.e.tokens > INT32_MAX / p.r.picks || ceiling(p.e.hidden, TILE) > 65535 ||
	    ceiling(p.e.intermediate, TILE) > 65535)
		return err_set(
		    err,
		    "moe: %lld tokens, hidden size %lld, intermediate size %lld are more than a grid has blocks;"
		    " take fewer",
		    (long long)p.e.tokens, (long long)p.e.hidden, (long long)p.e.intermediate);
	set_views(&p, &roles, in);
	lay_out(&p, (char *)scratch);
	return run(&p, (cudaStream_t)stream, err);
}

/* A thread writes the elements of one Philox block at a time. */
static __global__ void __launch_bounds__(THREADS)
    make(void *data, enum dtype dtype, int64_t elements, const struct moe_fill f)
{
	int together = moe_together(f.kind);
	int64_t blocks = (elements + together - 1) / together, threads = (int64_t)gridDim.x * THREADS;

	for (int64_t b = (int64_t)blockIdx.x * THREADS + threadIdx.x; b < blocks; b += threads) {
		struct philox random = philox_block(f.key, (uint64_t)b);

		for (int64_t i = b * together; i < (b + 1) * together && i < elements; i++)
			dtype_store_float(data, dtype, i, moe_element(&f, i, &random));
	}
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct moe_roles roles = moe_roles_of(c->problem);
	struct moe_fill f = moe_fill_of(c, &roles, input);
	struct moe_copy copy = moe_copy_of(c, &roles, input);
	int64_t blocks = ceiling(out->elements, 4 * THREADS), most = 1 << 20;

	if (f.kind == MOE_STRUCTURE)
		return 1;
	if (blocks == 0)
		return 0;
	make<<<(unsigned)(blocks < most ? blocks : most), THREADS, 0, (cudaStream_t)stream>>>(out->data, out->dtype,
											      out->elements, f);
	if (copy.bytes > 0)
		cudaMemcpyAsync((char *)out->data + copy.to, (char *)out->data + copy.from, (size_t)copy.bytes,
				cudaMemcpyDeviceToDevice, (cudaStream_t)stream);
	return cuda_check(cudaGetLastError(), "launching the fill of moe", err);
}

extern "C" const struct op_cuda moe_cuda = {"moe", fill, launch, scratch_bytes};
