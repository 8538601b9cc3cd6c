/* gemm - C[m][n] = sum over k of A[m][k] * B(n, k): two matrices, one contracted axis.
 *
 * B lies as [N][K] ("NT", C = A B^T) or as [K][N] ("NN", C = A B); which axis is contracted is read off the axes, never
 * off names. A and C may have more leading axes. float16, bfloat16 and float32, in any mixture.
 *
 * Oracle. Doubles. A product of two float16 or bfloat16 has 22 bits at most, so the sums of this family's own inputs
 * are exact in any order, and the rounding to C's dtype is the only one there is.
 *
 * Bounds, second contents: none. Their sums are exact in float32 in any order (inputs.h), so the one rounding to C's dtype
 * decides, and every reference that adds in float32 or better gives the truth's bits. What rounds on the way (a float16
 * accumulator, partial sums in C's dtype) does not. Where a workload gives an input, and beyond GEMM_EXACT_K, those of
 * the first contents count.
 *
 * Bounds, first contents. Let u be half a unit in the last place of 1 (2^-11 float16, 2^-8 bfloat16) and s the standard
 * deviation of an element of C: with these inputs products have variance 1/9, the heavy one in 128 has 64/3, so
 * s = sqrt(K (1/9 + 64/384)) = 0.53 sqrt(K); the products of the two special columns have variance 14, which counts where K is small. A
 * rounding is off by 0.43 u of its value in the root mean square.
 *   float16, bfloat16: two roundings of nearly the same number differ by one unit in the last place: rtol = 2 u. Near
 *     zero, where that is nothing, the sums in float32 count: on an H200 (torch 2.11, K up to 65536, M 1 to 4096) they
 *     went past rtol by 0.08 u sqrt(K) at most for float16, and were exact for bfloat16. In a lifted row, whose element
 *     is never below 2^15, float32 sums round at 2^-8 and are off by 2^-9 sqrt(K) at most: rtol is 16 there.
 *   float16: atol = 2 u sqrt(K) = 2^-10 sqrt(K), so that a split K with partial sums rounded to float16, which torch
 *     allows cuBLAS by default (it was not seen to happen), passes too: those are off by 0.43 u s = 0.23 u sqrt(K), and
 *     if they are also added up in float16, eight of them, by 0.53 u sqrt(K). 1 % too large shows where |C| > 0.2 s.
 *   bfloat16: 1 % is 2.56 u. Less rtol, 0.56 u |C| is left to show it, and |C| reaches 3 s in any hundred elements,
 *     so atol = u sqrt(K) / 2 = 2^-9 sqrt(K) still shows it from 1.7 s on. Partial sums rounded to bfloat16 would not
 *     all be within that.
 *   float32: a sum of K terms, at worst one after the other, is off by 0.43 * 2^-24 s sqrt(K / 2) = 0.16 * 2^-24 K:
 *     atol = 2^-23 K is beyond ten times that; rtol = 2^-22 for the roundings. TF32, off by 0.25 * 2^-11 s, is seen up
 *     to K = 10^5. No row is lifted: float32 sums at 2^16 would be off by more than that.
 * One operand rounded to 8-bit floats (e4m3) on the way moves C by 0.016 s (A) or 0.025 s (B) in the root mean square:
 * beyond every bound here in a good part of all elements. */
#include "kernels/gemm/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/wide.h"

/* Rows of the medium case: beyond 256 and 300, and one more than a multiple of 16, 32 and 64; fewer, and one more than a
 * multiple of 128, where B has more elements. */
enum { GEMM_ROWS = 321, GEMM_FEW_ROWS = 129, GEMM_B_ELEMENTS = 1 << 24 };

static const char *const op_types[] = {"gemm", NULL};

static bool known_dtype(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

static int refuse_tensor(const struct op_arg *arg, const char *what, struct err *why)
{
	if (arg->rank == OP_SCALAR)
		return err_set(why, "%s '%s' is a Python scalar; expected two matrices and their product", what,
			       arg->name);
	if (!known_dtype(arg->dtype))
		return err_set(why, "%s '%s' is %s; expected float32, float16 or bfloat16", what, arg->name,
		               dtype_name(arg->dtype));
	return 0;
}

static int refuse_shapes(const struct op_problem *problem, struct err *why)
{
	char a[256], b[256], c[256];

	return err_set(
	    why,
	    "input '%s' %s times input '%s' %s is not output '%s' %s: expected [M, K], and [N, K] or [K, N], "
	    "and [M, N]",
	    problem->inputs[0].name, op_shape_text(problem, &problem->inputs[0], a, sizeof a), problem->inputs[1].name,
	    op_shape_text(problem, &problem->inputs[1], b, sizeof b), problem->outputs[0].name,
	    op_shape_text(problem, &problem->outputs[0], c, sizeof c));
}

static int match(const struct op_problem *problem, struct err *why)
{
	if (problem->input_count != 2 || problem->output_count != 1)
		return err_set(why, "it has %d inputs and %d outputs; expected two matrices and their product",
		               problem->input_count, problem->output_count);
	for (int i = 0; i < 2; i++)
		if (refuse_tensor(&problem->inputs[i], "input", why) != 0)
			return -1;
	if (refuse_tensor(&problem->outputs[0], "output", why) != 0)
		return -1;
	for (int a = 0; a < 2; a++) {
		int nt = gemm_fits(problem, a, GEMM_NT), nn = gemm_fits(problem, a, GEMM_NN);

		if (nt && nn)
			return err_set(
			    why, "input '%s' has the same axis twice, so it cannot be told whether it is transposed",
			    problem->inputs[1 - a].name);
		if (nt || nn)
			return nt ? GEMM_NT : GEMM_NN;
	}
	return refuse_shapes(problem, why);
}

/* A case with `m` rows (shared out over the var axes in front of C: 4 each, the last takes the rest), and N and K where
 * those are var. A var axis that no tensor has is 1. */
static void set_axes(const struct op_problem *problem, int variant, int64_t m, int64_t n, int64_t k, int64_t *axis)
{
	const struct op_arg *out = &problem->outputs[0], *a = &problem->inputs[gemm_left(problem, variant)];
	int rest = -1, last = out->axis[out->rank - 1], inner = a->axis[a->rank - 1];

	for (int i = 0; i < problem->axis_count; i++)
		axis[i] = problem->axes[i].var ? 1 : problem->axes[i].value;
	axis[last] = problem->axes[last].var ? n : axis[last];
	axis[inner] = problem->axes[inner].var ? k : axis[inner];
	if (m == GEMM_ROWS && axis[inner] > 0 && axis[last] > GEMM_B_ELEMENTS / axis[inner])
		m = GEMM_FEW_ROWS;
	for (int d = 0; d + 1 < out->rank; d++) {
		int at = out->axis[d];

		if (at == last || at == inner || !problem->axes[at].var) {
			m = m / axis[at] + (m % axis[at] != 0);
		} else {
			if (rest >= 0 && rest != at) {
				axis[rest] = m < 4 ? m : 4;
				m = m / axis[rest] + (m % axis[rest] != 0);
			}
			rest = at;
		}
	}
	if (rest >= 0)
		axis[rest] = m;
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const struct {
		enum op_size size;
		int64_t m, n, k;
	} table[] = {{SIZE_SMALL, 1, 65, 192}, {SIZE_SMALL, 32, 128, 320}, {SIZE_MEDIUM, GEMM_ROWS, 520, 2048},
	             {SIZE_LARGE, 4096, 4096, 4096}};
	int count = 0;

	for (size_t i = 0; i < sizeof table / sizeof *table && count < room; i++)
		if (table[i].size == size)
			set_axes(problem, variant, table[i].m, table[i].n, table[i].k,
				 axis + count++ * problem->axis_count);
	return count;
}

/* The cases of --edge. */
static const struct op_edge edges[] = {{"no_rows", "no rows of A, no rows of the product"}, {NULL, NULL}};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(sizes, problem, variant, 0, axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	double k = (double)gemm_extent_of(c).k;

	if (c->contents == CONTENTS_SECOND && c->given == 0 && k <= GEMM_EXACT_K)
		return (struct rule){0, 0, 1};
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_FLOAT16:
		return (struct rule){0x1p-10 * sqrt(k), 0x1p-10, 1};
	case DTYPE_BFLOAT16:
		return (struct rule){0x1p-9 * sqrt(k), 0x1p-7, 1};
	default:
		return (struct rule){0x1p-23 * k, 0x1p-22, 1};
	}
}

/* The heavy elements are the ends of A, in the columns that are larger than the others; so are the largest of B's. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	int spread = gemm_is_beyond_half(problem) ? GEMM_SPREAD : GEMM_SPREAD_HALF;
	double most = ldexp(input == gemm_left(problem, variant) ? GEMM_HEAVY : 0.9, spread);

	*out = (struct op_range){-most, most};
	return true;
}

/* The last var axis in front of C has what rows the others leave. */
static int64_t reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *out = &problem->outputs[0], *a = &problem->inputs[gemm_left(problem, variant)];

	if (axis == out->axis[out->rank - 1])
		return 520;
	if (axis == a->axis[a->rank - 1])
		return 2048;
	if (out->rank != 2 || axis != out->axis[0])
		return 0;
	int64_t n = problem->axes[out->axis[1]].value, k = problem->axes[a->axis[1]].value; /* 0: var, and small */

	return k > 0 && n > GEMM_B_ELEMENTS / k ? GEMM_FEW_ROWS : GEMM_ROWS;
}

/* A run of one row of A, or of B as it lies by rows of K: the two special columns are made once more, by themselves. */
WIDE static void make_row(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                          float *values)
{
	const struct gemm_fill *f = recipe;

	for (int64_t i = 0; i < count; i++)
		values[i] = gemm_usual(f, row, column + i, random[i]);
	for (int64_t k = GEMM_LIFT; k <= GEMM_DROP; k += GEMM_DROP - GEMM_LIFT)
		if (k >= column && k < column + count)
			values[k - column] = gemm_at(f, row, k, row * f->k + GEMM_LIFT, random[k - column]);
}

/* A run of one k of B as it lies by rows of N, from column n on. */
WIDE static void make_across(const void *recipe, int64_t k, int64_t n, int64_t count, const uint32_t *random,
                             float *values)
{
	const struct gemm_fill *f = recipe;

	if (gemm_is_special(f, k)) {
		for (int64_t i = 0; i < count; i++)
			values[i] = gemm_at(f, n + i, k, GEMM_LIFT * f->across + n + i, random[i]);
		return;
	}
	for (int64_t i = 0; i < count; i++)
		values[i] = gemm_usual(f, n + i, k, random[i]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	const struct gemm_fill f = gemm_fill_of(c, input);

	(void)err;
	if (f.across > 0)
		input_fill(out, f.key, f.across, make_across, &f);
	else
		input_fill(out, f.key, f.k, make_row, &f);
	return 0;
}

/* --- the oracle -------------------------------------------------------------------------------------------------- */

/* C is made tile by tile, and a tile chunk by chunk along K: chunks of A and B are read as doubles into scratch that
 * stays in the second cache (64 x 512 and 32 x 512 doubles). */
enum { TILE_M = 64, TILE_N = 32, CHUNK = 512, TOGETHER = 4 };

struct tile {
	double a[TILE_M][CHUNK], b[TILE_N][CHUNK], sum[TILE_M][TILE_N], row[TILE_N];
};

/* The four sums of one row of A with four columns of B: one more product each; added to those of the tile. */
#define ADD_PRODUCTS(s, a) s##0 += (a)[k] * b0[k], s##1 += (a)[k] * b1[k], s##2 += (a)[k] * b2[k], s##3 += (a)[k] * b3[k]
#define ADD_SUMS(row, s) (row)[0] += s##0, (row)[1] += s##1, (row)[2] += s##2, (row)[3] += s##3

/* sum[m][n] += a[m] . b[n] over one chunk; four rows by four columns at a time, so that eight elements are read for
 * sixteen products, and the columns of B stay in the first cache while A goes by. */
WIDE FUSED static void add_chunk(struct tile *t, int64_t rows, int64_t length)
{
	for (int64_t n = 0; n < TILE_N; n += TOGETHER)
		for (int64_t m = 0; m < rows; m += TOGETHER) {
			const double *a0 = t->a[m], *a1 = t->a[m + 1], *a2 = t->a[m + 2], *a3 = t->a[m + 3];
			const double *b0 = t->b[n], *b1 = t->b[n + 1], *b2 = t->b[n + 2], *b3 = t->b[n + 3];
			double s0 = 0, s1 = 0, s2 = 0, s3 = 0, u0 = 0, u1 = 0, u2 = 0, u3 = 0;
			double v0 = 0, v1 = 0, v2 = 0, v3 = 0, w0 = 0, w1 = 0, w2 = 0, w3 = 0;

#pragma omp simd reduction(+ : s0, s1, s2, s3, u0, u1, u2, u3, v0, v1, v2, v3, w0, w1, w2, w3)
			for (int64_t k = 0; k < length; k++) {
				ADD_PRODUCTS(s, a0);
				ADD_PRODUCTS(u, a1);
				ADD_PRODUCTS(v, a2);
				ADD_PRODUCTS(w, a3);
			}
			ADD_SUMS(t->sum[m] + n, s);
			ADD_SUMS(t->sum[m + 1] + n, u);
			ADD_SUMS(t->sum[m + 2] + n, v);
			ADD_SUMS(t->sum[m + 3] + n, w);
		}
}

/* b[n][k] for the tile's columns; a column beyond N is left as it was, and its sum is not used
 * (nor is that of a row beyond M). */
static void read_b(struct tile *t, const struct gemm_extent *e, const struct tensor *b, int64_t n, int64_t columns,
                   int64_t k, int64_t length)
{
	for (int64_t i = 0; !e->nn && i < columns; i++)
		number_read(b->data, b->dtype, (n + i) * e->k + k, length, t->b[i]);
	for (int64_t j = 0; e->nn && j < length; j++) {
		number_read(b->data, b->dtype, (k + j) * e->n + n, columns, t->row);
		for (int64_t i = 0; i < columns; i++)
			t->b[i][j] = t->row[i];
	}
}

static void make_tile(struct tile *t, const struct gemm_extent *e, const struct tensor *in, struct tensor *out,
		      int64_t m, int64_t n)
{
	int64_t rows = e->m - m < TILE_M ? e->m - m : TILE_M, columns = e->n - n < TILE_N ? e->n - n : TILE_N;

	memset(t->sum, 0, sizeof t->sum);
	for (int64_t k = 0; k < e->k; k += CHUNK) {
		int64_t length = e->k - k < CHUNK ? e->k - k : CHUNK;

		for (int64_t i = 0; i < rows; i++)
			number_read(in[e->a].data, in[e->a].dtype, (m + i) * e->k + k, length, t->a[i]);
		read_b(t, e, &in[e->b], n, columns, k, length);
		add_chunk(t, rows, length);
	}
	for (int64_t i = 0; i < rows; i++)
		number_write(out->data, out->dtype, (m + i) * e->n + n, columns, t->sum[i]);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	const struct gemm_extent e = gemm_extent_of(c);
	int64_t down = (e.m + TILE_M - 1) / TILE_M, across = (e.n + TILE_N - 1) / TILE_N;

	if (in[e.a].elements != e.m * e.k || in[e.b].elements != e.n * e.k || out->elements != e.m * e.n)
		return err_set(err, "gemm: the tensors of %s do not fit together", c->problem->name);
#pragma omp parallel if (e.m * e.n * e.k > (1 << 16))
	{
		struct tile *t = calloc(1, sizeof *t);

		if (t == NULL)
			die_no_memory();
#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < down * across; i++)
			make_tile(t, &e, in, out, i / across * TILE_M, i % across * TILE_N);
		free(t);
	}
	return 0;
}

const struct op gemm_op = {
    .name = "gemm",
    .op_types = op_types,
    .match = match,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check_all_finite,
    .oracle = oracle,
};
