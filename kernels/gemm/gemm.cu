/* gemm on a GPU - computes C[m][n] = sum over k of A[m][k] * B(n, k), with B stored as [N][K] or as [K][N].
 *
 * Accumulation. The product of two 16-bit floats is exact in float32, also on tensor cores. Products are accumulated in
 * float32. A tensor core rounds its sums towards zero. Therefore tensor cores accumulate only PART terms at a time, and
 * ordinary float32 additions, which round to nearest, add these partial sums. The error of a long sum is then a random
 * walk of K / PART steps, no worse than the error of a plain float32 loop. For float32 operands, the products are also
 * accumulated in parts, with plain FMAs instead of tensor cores (no TF32). The order of all additions depends only on
 * K, so the result has the same bits in every run, for any M and N.
 *
 * Tiles. For 16-bit operands, a block computes a 128 x 128 tile of C, and each of its eight warps computes a 32 x 64
 * piece. K is processed in steps of 32, and cp.async loads the elements of each step into shared memory STAGES - 1
 * steps ahead. For float32 operands, a tile is 64 x 64, each thread computes a 4 x 4 piece, and K is processed in steps
 * of 16. Elements outside A and B are read as zeros; elements outside C are not written. 16-bit operands are copied in
 * chunks of 16 bytes. If a row of A or B is not aligned to 16 bytes, or its size is not a multiple of 16 bytes, both
 * operands are copied element by element instead. */
#include "kernels/core/elements_cuda.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/gemm/input_values.h"

namespace wmma = nvcuda::wmma;

enum { THREADS = 256, PART = 128 };

struct product {
	const void *a, *b;
	void *c;
	enum dtype c_dtype;
	int64_t m, n, k;
	bool chunks; /* is every row of A and B aligned to 16 bytes, and is its size a multiple of 16 bytes? */
};

/* A matrix in memory, of which a block loads one tile. */
struct matrix {
	const void *data;
	int64_t rows, columns;
	bool chunks;
};

/* --- 16-bit operands: tensor cores -------------------------------------------------------------------------------- */

enum {
	TILE = 128,
	STEP = 32,
	STAGES = 3,
	PAD = 8, /* number of padding elements after each row in shared memory, so that rows start in different banks */
	WIDE = TILE + PAD,
	NARROW = STEP + PAD,
	OPERAND = TILE * NARROW > STEP * WIDE ? TILE * NARROW : STEP * WIDE, /* number of elements of one operand in a
									      * stage */
};

static constexpr size_t half_shared_bytes = (size_t)STAGES * 2 * OPERAND * 2;

/* Starts copying `rows` x `columns` elements at (row, column) of a matrix to shared memory. Elements outside the matrix
 * become zeros. */
template <typename half, int rows, int columns>
static __device__ __forceinline__ void load_tile(half *to, const struct matrix &from, int64_t row, int64_t column)
{
	constexpr int each = 8, across = columns / each;

	for (int i = threadIdx.x; i < rows * across; i += THREADS) {
		int64_t r = row + i / across, c = column + i % across * each;
		half *place = to + i / across * (columns + PAD) + i % across * each;
		int64_t there = r < from.rows && c < from.columns ? from.columns - c : 0;
		int count = there < each ? (int)there : each;
		const half *source = (const half *)from.data + (count > 0 ? r * from.columns + c : 0);

		if (from.chunks)
			__pipeline_memcpy_async(place, source, 16, (size_t)(each - count) * sizeof(half));
		else
			for (int e = 0; e < each; e++)
				place[e] = e < count ? source[e] : half(0.0f);
	}
}

/* The tiles of A and B of one stage, in shared memory. */
template <typename half> struct stage {
	half *a, *b;
};

template <typename half> static __device__ __forceinline__ struct stage<half> stage_of(unsigned char *shared, int64_t step)
{
	half *start = (half *)shared + step % STAGES * (2 * OPERAND);

	return {start, start + OPERAND};
}

template <typename half, bool nn>
static __device__ __forceinline__ void load_stage(unsigned char *shared, const struct product &p, int64_t step)
{
	struct stage<half> stage = stage_of<half>(shared, step);
	struct matrix a = {p.a, p.m, p.k, p.chunks};
	struct matrix b = {p.b, nn ? p.k : p.n, nn ? p.n : p.k, p.chunks};
	int64_t k = step * STEP;

	if (k < p.k) {
		load_tile<half, TILE, STEP>(stage.a, a, (int64_t)blockIdx.x * TILE, k);
		if (nn)
			load_tile<half, STEP, TILE>(stage.b, b, k, (int64_t)blockIdx.y * TILE);
		else
			load_tile<half, TILE, STEP>(stage.b, b, (int64_t)blockIdx.y * TILE, k);
	}
	__pipeline_commit();
}

typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> accumulator;
enum { DOWN = 2, ACROSS = 4 }; /* numbers of 16 x 16 fragments in a warp's piece of 32 x 64 */

/* Accumulates the products of one stage for the warp's piece, which starts at (row, column) of the tile. */
template <typename half, bool nn>
static __device__ __forceinline__ void multiply_stage(accumulator (&sum)[DOWN][ACROSS], struct stage<half> stage, int row,
                                                      int column)
{
	typedef typename std::conditional<nn, wmma::row_major, wmma::col_major>::type layout;

	for (int k = 0; k < STEP; k += 16) {
		wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a[DOWN];
		wmma::fragment<wmma::matrix_b, 16, 16, 16, half, layout> b;

		for (int i = 0; i < DOWN; i++)
			wmma::load_matrix_sync(a[i], stage.a + (row + 16 * i) * NARROW + k, NARROW);
		for (int j = 0; j < ACROSS; j++) {
			int n = column + 16 * j;

			wmma::load_matrix_sync(b, nn ? stage.b + k * WIDE + n : stage.b + n * NARROW + k, nn ? WIDE : NARROW);
			for (int i = 0; i < DOWN; i++)
				wmma::mma_sync(sum[i][j], a[i], b, sum[i][j]);
		}
	}
}

static __device__ __forceinline__ void clear(accumulator (&sum)[DOWN][ACROSS])
{
	for (int i = 0; i < DOWN; i++)
		for (int j = 0; j < ACROSS; j++)
			wmma::fill_fragment(sum[i][j], 0.0f);
}

static __device__ __forceinline__ void add(accumulator (&total)[DOWN][ACROSS], const accumulator (&part)[DOWN][ACROSS])
{
	for (int i = 0; i < DOWN; i++)
		for (int j = 0; j < ACROSS; j++)
			for (int e = 0; e < part[i][j].num_elements; e++)
				total[i][j].x[e] += part[i][j].x[e];
}

/* Writes the warp's piece to C at (row, column). Writes each 16 x 16 fragment first to the warp's own shared memory. */
static __device__ void store_piece(const struct product &p, const accumulator (&total)[DOWN][ACROSS], float *own,
                                   int64_t row, int64_t column)
{
	int lane = (int)(threadIdx.x % 32);

#pragma unroll
	for (int i = 0; i < DOWN; i++)
#pragma unroll
		for (int j = 0; j < ACROSS; j++) {
			__syncwarp();
			wmma::store_matrix_sync(own, total[i][j], 16, wmma::mem_row_major);
			__syncwarp();
			for (int e = lane; e < 256; e += 32) {
				int64_t m = row + 16 * i + e / 16, n = column + 16 * j + e % 16;

				if (m < p.m && n < p.n)
					dtype_store_float(p.c, p.c_dtype, m * p.n + n, own[e]);
			}
		}
}

template <typename half, bool nn>
static __global__ void __launch_bounds__(THREADS) multiply_half(const struct product p)
{
	extern __shared__ __align__(128) unsigned char shared[];
	int warp = (int)(threadIdx.x / 32), row = warp / 2 * 32, column = warp % 2 * 64;
	int64_t steps = (p.k + STEP - 1) / STEP;
	accumulator part[DOWN][ACROSS], total[DOWN][ACROSS];

	clear(part);
	clear(total);
	for (int s = 0; s < STAGES - 1; s++)
		load_stage<half, nn>(shared, p, s);
	for (int64_t step = 0; step < steps; step++) {
		__pipeline_wait_prior(STAGES - 2);
		__syncthreads(); /* from here on, this step's tiles are loaded, and no thread reads the stage that is
				  * overwritten next */
		load_stage<half, nn>(shared, p, step + STAGES - 1);
		multiply_stage<half, nn>(part, stage_of<half>(shared, step), row, column);
		if ((step + 1) % (PART / STEP) == 0) {
			add(total, part);
			clear(part);
		}
	}
	add(total, part);
	__pipeline_wait_prior(0);
	__syncthreads();
	store_piece(p, total, (float *)shared + warp * 256, (int64_t)blockIdx.x * TILE + row,
	            (int64_t)blockIdx.y * TILE + column);
}

/* --- float32 operands --------------------------------------------------------------------------------------------- */

enum { FLOAT_TILE = 64, FLOAT_STEP = 16, PIECE = 4 };

/* Loads tiles of A and B, and stores them as [k][row of A] and [k][column of B]. */
template <bool nn>
static __device__ __forceinline__ void load_floats(float (*a)[FLOAT_TILE + 1], float (*b)[FLOAT_TILE + 1],
                                                   const struct product &p, int64_t k0)
{
	for (int i = threadIdx.x; i < FLOAT_TILE * FLOAT_STEP; i += THREADS) {
		int64_t m = (int64_t)blockIdx.x * FLOAT_TILE + i / FLOAT_STEP, k = k0 + i % FLOAT_STEP;

		a[i % FLOAT_STEP][i / FLOAT_STEP] = m < p.m && k < p.k ? ((const float *)p.a)[m * p.k + k] : 0;
	}
	for (int i = threadIdx.x; i < FLOAT_TILE * FLOAT_STEP; i += THREADS) {
		int kk = nn ? i / FLOAT_TILE : i % FLOAT_STEP, nt = nn ? i % FLOAT_TILE : i / FLOAT_STEP;
		int64_t k = k0 + kk, n = (int64_t)blockIdx.y * FLOAT_TILE + nt;

		b[kk][nt] = k < p.k && n < p.n ? ((const float *)p.b)[nn ? k * p.n + n : n * p.k + k] : 0;
	}
}

template <bool nn> static __global__ void __launch_bounds__(THREADS) multiply_float(const struct product p)
{
	__shared__ float a[FLOAT_STEP][FLOAT_TILE + 1], b[FLOAT_STEP][FLOAT_TILE + 1];
	int row = (int)(threadIdx.x / 16) * PIECE, column = (int)(threadIdx.x % 16) * PIECE;
	float part[PIECE][PIECE] = {}, total[PIECE][PIECE] = {};

	for (int64_t k0 = 0; k0 < p.k; k0 += FLOAT_STEP) {
		load_floats<nn>(a, b, p, k0);
		__syncthreads();
		for (int k = 0; k < FLOAT_STEP; k++)
#pragma unroll
			for (int i = 0; i < PIECE; i++)
#pragma unroll
				for (int j = 0; j < PIECE; j++)
					part[i][j] = fmaf(a[k][row + i], b[k][column + j], part[i][j]);
		if ((k0 + FLOAT_STEP) % PART == 0 || k0 + FLOAT_STEP >= p.k)
#pragma unroll
			for (int i = 0; i < PIECE; i++)
#pragma unroll
				for (int j = 0; j < PIECE; j++) {
					total[i][j] += part[i][j];
					part[i][j] = 0;
				}
		__syncthreads();
	}
	for (int i = 0; i < PIECE; i++)
		for (int j = 0; j < PIECE; j++) {
			int64_t m = (int64_t)blockIdx.x * FLOAT_TILE + row + i, n = (int64_t)blockIdx.y * FLOAT_TILE + column + j;

			if (m < p.m && n < p.n)
				dtype_store_float(p.c, p.c_dtype, m * p.n + n, total[i][j]);
		}
}

/* --- the host's side ---------------------------------------------------------------------------------------------- */

typedef void (*kernel)(struct product);

struct choice {
	kernel kernel;
	int tile;
	size_t shared_bytes;
};

static struct choice choose(enum dtype dtype, bool nn)
{
	if (dtype == DTYPE_FLOAT32)
		return {nn ? multiply_float<true> : multiply_float<false>, FLOAT_TILE, 0};
	if (dtype == DTYPE_FLOAT16)
		return {nn ? multiply_half<__half, true> : multiply_half<__half, false>, TILE, half_shared_bytes};
	return {nn ? multiply_half<__nv_bfloat16, true> : multiply_half<__nv_bfloat16, false>, TILE, half_shared_bytes};
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct gemm_extent e = gemm_extent_of(c);
	enum dtype dtype = in[e.a].dtype;
	struct product p = {in[e.a].data, in[e.b].data, out[0].data, out[0].dtype, e.m, e.n, e.k, false};

	if (dtype != in[e.b].dtype || (dtype != DTYPE_FLOAT16 && dtype != DTYPE_BFLOAT16 && dtype != DTYPE_FLOAT32))
		return err_set(err, "gemm: the CUDA kernel multiplies two of float16, bfloat16 or float32, not %s by %s",
		               dtype_name(dtype), dtype_name(in[e.b].dtype));
	if (e.m <= 0 || e.n <= 0)
		return 0;
	p.chunks = e.k % 8 == 0 && (!e.nn || e.n % 8 == 0) && (uintptr_t)p.a % 16 == 0 && (uintptr_t)p.b % 16 == 0;

	struct choice choice = choose(dtype, e.nn != 0);
	int64_t rows = (e.m + choice.tile - 1) / choice.tile, columns = (e.n + choice.tile - 1) / choice.tile;

	if (rows > INT32_MAX || columns > 65535)
		return err_set(err, "gemm: %lld x %lld is more than a grid has blocks; take fewer", (long long)e.m,
		               (long long)e.n);
	if (CUDA_CHECK(cudaFuncSetAttribute(choice.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
	                                    (int)choice.shared_bytes),
	               err) != 0)
		return -1;
	/* Consecutive blocks usually run at the same time. They compute tiles of the same columns, and thus read the
	 * same part of B, the larger operand. */
	choice.kernel<<<dim3((unsigned)rows, (unsigned)columns), THREADS, choice.shared_bytes, (cudaStream_t)stream>>>(p);
	return cuda_check(cudaGetLastError(), "launching gemm", err);
}

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	return fill_elements<gemm_element>(out, gemm_fill_of(c, input), stream, err);
}

extern "C" const struct op_cuda gemm_cuda = {"gemm", fill, launch, NULL};
