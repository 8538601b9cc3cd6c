/* gemm - C[m][n] = sum over k of A[m][k] * B(n, k): the product of two matrices with one contracted axis.
 *
 * B is stored as [N][K] ("NT", C = A B^T) or as [K][N] ("NN", C = A B). The shapes of A, B and C show which axis is
 * contracted; the names of tensors do not matter. A and C may have several leading axes in place of M. The dtypes
 * float16, bfloat16 and float32 may be mixed.
 *
 * The oracle accumulates in double. A product of two float16 or bfloat16 numbers has at most 22 bits. If A and B are
 * float16 or bfloat16 and are filled as input_values.h describes, the oracle's sums are exact in any order. The only
 * rounding is then the conversion to C's dtype. For the second set of values, the oracle sums each chunk of K in float,
 * and repeats the chunk in double if a float result was rounded.
 *
 * Tolerance for the second set of values: zero. The sums are exact in float32 in any order (input_values.h says why),
 * and only the conversion to C's dtype rounds. Every reference that accumulates in float32 or double thus returns
 * exactly the ground truth. A reference that rounds intermediate sums (for example, to float16 or to C's dtype) returns
 * bits that differ from the ground truth. If a workload provides an input, or if K exceeds GEMM_EXACT_K, the tolerance
 * of the first set applies.
 *
 * Tolerance for the first set of values. Let u be half an ulp of 1 (2^-11 for float16, 2^-8 for bfloat16) and s the
 * standard deviation of an element of C. A product of two uniform elements has the variance 1/9. One product in 128 has
 * a heavy element of A (8 or -8, see input_values.h) and the variance 64/3. Hence s = sqrt(K (1/9 + 64/384)) = 0.53
 * sqrt(K). The products of the two special columns (input_values.h) have the variance 14, which matters only if K is
 * small. Rounding a value has a root mean square error of 0.43 u times the value.
 *
 *   float16, bfloat16: The reference and the ground truth round nearly the same number and differ by at most one ulp,
 *     so rtol = 2 u. For elements near zero, rtol allows almost no error, so atol must allow the error of the float32
 *     sums. On an H200 (torch 2.11, K up to 65536, M 1 to 4096), float16 errors were larger than rtol allows, but by at
 *     most 0.08 u sqrt(K). The bfloat16 results were exact. In a lifted row (input_values.h) elements of C are at least
 *     2^15. Float32 numbers of this magnitude are multiples of 2^-8, so sums have errors of at most 2^-9 sqrt(K). The
 *     rtol of such elements allows an error of 32 or more. In a high row, elements of C are at least 98304 minus the
 *     other products: in float16 they are infinite, in any order of the sum.
 *   For float16, atol = 2 u sqrt(K) = 2^-10 sqrt(K). This tolerance also accepts a split-K kernel that rounds partial
 *     sums to float16. By default torch allows cuBLAS to use such a kernel, but cuBLAS did not use one in any observed
 *     run. Rounding a sum to float16 has an error of 0.43 u s = 0.23 u sqrt(K). If eight partial sums are added in
 *     float16, the error is 0.53 u sqrt(K). This tolerance detects an error of 1 % in elements with |C| > 0.2 s.
 *   For bfloat16, atol = u sqrt(K) / 2 = 2^-9 sqrt(K). An error of 1 % is 2.56 u |C|, of which rtol allows 2 u |C|. The
 *     remaining 0.56 u |C| exceeds atol if |C| > 1.7 s, and among a hundred elements some |C| reaches 3 s. If a
 *     reference rounds partial sums to bfloat16, the errors of some elements exceed atol.
 *   For float32, atol = 2^-23 K and rtol = 2^-22. The error of a sum of K terms is largest if the terms are added one
 *     after the other. It is then 0.43 * 2^-24 s sqrt(K / 2) = 0.16 * 2^-24 K, less than a tenth of atol. The rtol
 *     allows the rounding of the reference and the ground truth to float32. TF32 has an error of 0.25 * 2^-11 s, which
 *     is detected up to K = 10^5. Float32 cases have no lifted rows, because the errors of float32 sums of magnitude
 *     2^16 would exceed atol.
 *
 * If a reference rounds one operand to 8-bit floats (e4m3), the root mean square error of C is 0.016 s (if it rounds A)
 * or 0.025 s (if it rounds B). The errors of many elements then exceed each of the tolerances above. */
#include "kernels/gemm/mistakes.h"
#include "kernels/gemm/input_values.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/row_counts.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

/* Each line of this table is for one range of sizes of B. `small` is the number of rows of A in the second small case,
 * and `medium` lists the numbers of rows of A in the medium cases. In each line, one of these numbers is a multiple of
 * `block`, and another is one more than a multiple of `block`. A definition gets the first line of the table whose
 * `of_b` is at least the number of elements of B. The larger B is, the longer a case takes, and the fewer cases there
 * are. If B has at most GEMM_TINY_B elements, one more medium case has GEMM_MANY_ROWS rows; N and K are small in this
 * case if they are var. */
enum { GEMM_CASES = 8, GEMM_MANY_ROWS = ROWS_PAST_GRID, GEMM_TINY_B = 1 << 18 };
static const struct gemm_rows {
	int64_t of_b, block, small, medium[GEMM_CASES];
} row_counts[] = {
    {1 << 21, 256, 32, {513, 128, 64, 16, 31, 65, 127, 256}},
    {1 << 24, 256, 256, {513}},
    {INT64_MAX, 256, 256, {257}},
};

static const struct gemm_rows *row_counts_of(int64_t of_b)
{
	const struct gemm_rows *at = row_counts;

	while (of_b > at->of_b)
		at++;
	return at;
}

static const char *const op_types[] = {"gemm", NULL};
static const char *const op_words[] = {"gemm", "matmul", "mm", "matrix_multiplication", "matrix_multiply", NULL};

static int refuse_tensor(const struct op_arg *arg, const char *what, struct err *why)
{
	if (arg->rank == OP_SCALAR)
		return err_set(why, "%s '%s' is a Python scalar; a matrix product takes two matrices and returns "
				    "their product", what,
			       arg->name);
	if (!match_is_float(arg))
		return err_set(why, "%s '%s' is %s; it must be float32, float16 or bfloat16", what, arg->name,
		               dtype_name(arg->dtype));
	return 0;
}

static int refuse_shapes(const struct op_problem *problem, struct err *why)
{
	char a[256], b[256], c[256];

	return err_set(
	    why,
	    "input '%s' %s times input '%s' %s does not give output '%s' %s; the inputs must be [M, K] and [N, K] "
	    "or [K, N], "
	    "and the output [M, N]",
	    problem->inputs[0].name, op_shape_text(problem, &problem->inputs[0], a, sizeof a), problem->inputs[1].name,
	    op_shape_text(problem, &problem->inputs[1], b, sizeof b), problem->outputs[0].name,
	    op_shape_text(problem, &problem->outputs[0], c, sizeof c));
}

static int match(const struct op_problem *problem, struct err *why)
{
	if (problem->input_count != 2 || problem->output_count != 1)
		return err_set(why, "the definition has %d inputs and %d outputs; a matrix product has two inputs and "
				    "one output",
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
			    why, "input '%s' has the same axis twice, so it is unknown which dimension is K",
			    problem->inputs[1 - a].name);
		if (nt || nn)
			return nt ? GEMM_NT : GEMM_NN;
	}
	return refuse_shapes(problem, why);
}

/* Writes the axes of a case with `m` rows. If N or K is var, its length is `n` or `k`. The product of C's leading axes
 * is `m`: the last leading var axis gets the length that makes the product `m`, and the other leading var axes have at
 * most length 4. A var axis that no tensor has gets the length 1. */
static void set_axes(const struct op_problem *problem, int variant, int64_t m, int64_t n, int64_t k, int64_t *axis)
{
	const struct op_arg *out = &problem->outputs[0], *a = &problem->inputs[gemm_left(problem, variant)];
	int last = out->axis[out->rank - 1], inner = a->axis[a->rank - 1];

	op_start_axes(problem, 1, axis);
	op_set_axis(problem, last, n, axis);
	op_set_axis(problem, inner, k, axis);
	rows_divide(problem, out, inner, m, axis);
}

/* Returns the number of elements of B, where `n` and `k` are the lengths of N and K if these axes are var. Returns 0 if
 * an axis has length 0, and the largest int64_t if the product overflows. */
static int64_t elements_of_b(const struct op_problem *problem, int variant, int64_t n, int64_t k)
{
	const struct op_arg *out = &problem->outputs[0], *a = &problem->inputs[gemm_left(problem, variant)];
	const struct op_axis *last = &problem->axes[out->axis[out->rank - 1]];
	const struct op_axis *inner = &problem->axes[a->axis[a->rank - 1]];

	n = last->var ? n : last->value;
	k = inner->var ? k : inner->value;
	return k > 0 && n > INT64_MAX / k ? INT64_MAX : n * k;
}

/* Writes the number of rows of A in each case of a size preset to `rows`. Returns the number of cases. */
static int rows_of(enum op_size size, int64_t of_b, int64_t rows[GEMM_CASES])
{
	const struct gemm_rows *counts = row_counts_of(of_b);
	int count = 0;

	if (size == SIZE_MEDIUM) {
		memcpy(rows, counts->medium, sizeof counts->medium);
		while (count < GEMM_CASES && rows[count] > 0)
			count++;
		return count;
	}
	rows[0] = size == SIZE_SMALL ? 1 : 4096;
	rows[1] = counts->small;
	return size == SIZE_SMALL ? 2 : 1;
}

static bool is_listed(const int64_t *axis, int count, int width, const int64_t *one)
{
	for (int i = 0; i < count; i++)
		if (memcmp(axis + (size_t)i * (size_t)width, one, (size_t)width * sizeof *one) == 0)
			return true;
	return false;
}

/* Writes the cases of a size preset, without duplicates. Duplicates occur, for example, if A has no leading var axis,
 * so that all cases have the same number of rows. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const struct {
		int64_t n, k;
	} widths[] = {[SIZE_SMALL] = {65, 192}, [SIZE_MEDIUM] = {520, 2048}, [SIZE_LARGE] = {4096, 4096}}, tiny = {33, 64};
	int64_t rows[GEMM_CASES];
	int wanted = rows_of(size, elements_of_b(problem, variant, widths[size].n, widths[size].k), rows), count = 0;

	for (int i = 0; i < wanted && count < room; i++) {
		bool wide = size == SIZE_SMALL && i > 0;
		int64_t *at = axis + count * problem->axis_count;

		set_axes(problem, variant, rows[i], wide ? 128 : widths[size].n, wide ? 320 : widths[size].k, at);
		count += !is_listed(axis, count, problem->axis_count, at);
	}
	if (size == SIZE_MEDIUM && count < room && elements_of_b(problem, variant, tiny.n, tiny.k) <= GEMM_TINY_B) {
		int64_t *at = axis + count * problem->axis_count;

		set_axes(problem, variant, GEMM_MANY_ROWS, tiny.n, tiny.k, at);
		count += !is_listed(axis, count, problem->axis_count, at);
	}
	return count;
}

/* The cases of --edge. */
enum { EDGE_NO_ROWS = 1, EDGE_MANY_ROWS };

static const struct op_edge edges[] = {
    {"no_rows", "if A has no rows, the product has no rows"},
    {"many_rows", "every row of A is multiplied, however many rows A has"},
    {NULL, NULL},
};

/* The edge case many_rows has as many rows of A as possible. The limit is the number of multiplications in the matrix
 * product, which must not exceed MANY_PRODUCTS. */
#define MANY_PRODUCTS (INT64_C(9) << 30)

static int64_t many_rows(int64_t of_b)
{
	static const int64_t rows[] = {ROWS_PAST_GRID, 2049, 1025, 513, 129};

	return rows_within(rows, 5, of_b, MANY_PRODUCTS);
}

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	if (edge == EDGE_NO_ROWS)
		return op_edge_rows(sizes, problem, variant, 0, axis);
	set_axes(problem, variant, many_rows(elements_of_b(problem, variant, 520, 2048)), 520, 2048, axis);
	return problem->outputs[0].rank == 2 && problem->axes[problem->outputs[0].axis[0]].var;
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

/* The largest elements of A are heavy elements in columns that are scaled up. The largest elements of B are also in
 * columns that are scaled up. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	int spread = gemm_is_beyond_half(problem) ? GEMM_SPREAD : GEMM_SPREAD_HALF;
	double most = ldexp(input == gemm_left(problem, variant) ? GEMM_HEAVY : 0.9, spread);

	*out = (struct op_range){-most, most};
	return true;
}

/* If C has several leading axes, `most` is 0 for each of them (no length is tested), because set_axes chooses only the
 * product of their lengths. */
static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *out = &problem->outputs[0], *a = &problem->inputs[gemm_left(problem, variant)];
	int64_t of_b = elements_of_b(problem, variant, 0, 0);
	const struct gemm_rows *counts = row_counts_of(of_b);

	if (axis == out->axis[out->rank - 1])
		return (struct op_reach){520, 0};
	if (axis == a->axis[a->rank - 1])
		return (struct op_reach){2048, 0};
	if (out->rank != 2 || axis != out->axis[0])
		return (struct op_reach){0, 0};
	return (struct op_reach){of_b <= GEMM_TINY_B ? GEMM_MANY_ROWS : counts->medium[0], counts->block};
}

/* Computes consecutive elements of one row of A, or of B if B is [N][K]. Computes every element as if its column were
 * ordinary, then overwrites the elements of the two special columns. */
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

/* Computes the elements B[k][n], B[k][n + 1], … if B is [K][N]. */
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

/* The oracle computes C in tiles, and each tile in chunks of K. The oracle converts the chunks of A and B to doubles,
 * in a buffer that fits in the L2 cache (64 x 512 doubles each). */
enum { TILE_M = 64, TILE_N = 64, CHUNK = 512, TOGETHER = 4 };

struct tile {
	double a[TILE_M][CHUNK], b[TILE_N][CHUNK], sum[TILE_M][TILE_N], row[TILE_N];
	double total[TILE_M][TILE_N]; /* the total of rounded partial sums, for mistakes that sum parts of K separately
				       * and round each sum */
	float narrow_a[TILE_M][CHUNK], narrow_b[TILE_N][CHUNK], narrow_sum[TILE_M][TILE_N]; /* see add_narrow_chunk */
};

/* ADD_PRODUCTS adds one product to each of the four sums of one row of A and four columns of B. ADD_SUMS adds these
 * sums to the tile's sums. */
#define ADD_PRODUCTS(s, a) s##0 += (a)[k] * b0[k], s##1 += (a)[k] * b1[k], s##2 += (a)[k] * b2[k], s##3 += (a)[k] * b3[k]
#define ADD_SUMS(row, s) (row)[0] += s##0, (row)[1] += s##1, (row)[2] += s##2, (row)[3] += s##3

/* The body of a function that adds the dot product of a[m] and b[n] over one chunk to sum[m][n]. The numbers have the C
 * type `number`. The function computes four rows by four columns at a time, so it loads eight numbers for sixteen
 * products. The columns of B stay in the L1 cache while the rows of A are read. */
#define ADD_CHUNK(number, a, b, sum)                                                                                   \
	for (int64_t n = 0; n < columns; n += TOGETHER)                                                                \
		for (int64_t m = 0; m < rows; m += TOGETHER) {                                                         \
			const number *a0 = a[m], *a1 = a[m + 1], *a2 = a[m + 2], *a3 = a[m + 3];                       \
			const number *b0 = b[n], *b1 = b[n + 1], *b2 = b[n + 2], *b3 = b[n + 3];                       \
			number s0 = 0, s1 = 0, s2 = 0, s3 = 0, u0 = 0, u1 = 0, u2 = 0, u3 = 0;                         \
			number v0 = 0, v1 = 0, v2 = 0, v3 = 0, w0 = 0, w1 = 0, w2 = 0, w3 = 0;                         \
                                                                                                                       \
			_Pragma("omp simd reduction(+ : s0, s1, s2, s3, u0, u1, u2, u3, v0, v1, v2, v3, w0, w1, w2, w3)") \
			for (int64_t k = 0; k < length; k++) {                                                         \
				ADD_PRODUCTS(s, a0);                                                                   \
				ADD_PRODUCTS(u, a1);                                                                   \
				ADD_PRODUCTS(v, a2);                                                                   \
				ADD_PRODUCTS(w, a3);                                                                   \
			}                                                                                              \
			ADD_SUMS(sum[m] + n, s);                                                                       \
			ADD_SUMS(sum[m + 1] + n, u);                                                                   \
			ADD_SUMS(sum[m + 2] + n, v);                                                                   \
			ADD_SUMS(sum[m + 3] + n, w);                                                                   \
		}

WIDE FUSED static void add_chunk(struct tile *t, int64_t rows, int64_t columns, int64_t length)
{
	ADD_CHUNK(double, t->a, t->b, t->sum)
}

static int64_t round_up(int64_t count)
{
	return (count + TOGETHER - 1) / TOGETHER * TOGETHER;
}

/* Computes the sums of a chunk in float. The function is not inlined, because the caller reads the floating-point
 * exceptions that the function's arithmetic raised. */
WIDE FUSED __attribute__((noinline)) static void sum_narrow_chunk(struct tile *t, int64_t rows, int64_t columns,
                                                               int64_t length)
{
	for (int64_t m = 0; m < round_up(rows); m++)
		for (int64_t k = 0; k < length; k++)
			t->narrow_a[m][k] = (float)t->a[m][k];
	for (int64_t n = 0; n < round_up(columns); n++)
		for (int64_t k = 0; k < length; k++)
			t->narrow_b[n][k] = (float)t->b[n][k];
	memset(t->narrow_sum, 0, sizeof t->narrow_sum);
	ADD_CHUNK(float, t->narrow_a, t->narrow_b, t->narrow_sum)
}

/* Like add_chunk, but computes in float, which takes half the time. The processor sets its "inexact" flag if it rounds
 * a result; in this case, the function returns false and changes no sum. */
static bool add_narrow_chunk(struct tile *t, int64_t rows, int64_t columns, int64_t length)
{
	if (feclearexcept(FE_INEXACT) != 0)
		return false;
	sum_narrow_chunk(t, rows, columns, length);
	if (fetestexcept(FE_INEXACT) != 0)
		return false;
	for (int64_t m = 0; m < rows; m++)
		for (int64_t n = 0; n < columns; n++)
			t->sum[m][n] += (double)t->narrow_sum[m][n];
	return true;
}

/* Reads b[n][k] for those columns of the tile that are in B. The other columns of the tile are not written, because
 * their sums are not used. */
static void read_b(struct tile *t, const struct gemm_extent *e, const struct tensor *b, int64_t n, int64_t columns,
                   int64_t k, int64_t length)
{
	for (int64_t i = 0; !e->nn && i < columns; i++)
		dtype_load_run(b->data, b->dtype, (n + i) * e->k + k, length, t->b[i]);
	for (int64_t j = 0; e->nn && j < length; j++) {
		dtype_load_run(b->data, b->dtype, (k + j) * e->n + n, columns, t->row);
		for (int64_t i = 0; i < columns; i++)
			t->b[i][j] = t->row[i];
	}
}

/* Returns the length of a part if a reference with this mistake splits K into parts and rounds the sum of each part.
 * Returns 0 for any other mistake. */
static int64_t rounded_part(int mistake, int64_t k)
{
	switch (mistake) {
	case GEMM_HALVES:
		return k / 2;
	case GEMM_PARTS_16:
		return 16;
	case GEMM_PARTS_32:
		return 32;
	case GEMM_PARTS_64:
		return 64;
	case GEMM_PARTS_128:
		return 128;
	default:
		return 0;
	}
}

static double as(double x, enum dtype dtype)
{
	unsigned char bytes[8];

	dtype_store(bytes, dtype, 0, x);
	return dtype_load(bytes, dtype, 0);
}

/* Rounds the sums of a part of K, adds them to the totals, and rounds the totals. */
static void add_part(struct tile *t, int64_t rows, enum dtype dtype)
{
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < TILE_N; j++)
			t->total[i][j] = as(t->total[i][j] + as(t->sum[i][j], dtype), dtype);
	memset(t->sum, 0, sizeof t->sum);
}

static void make_tile(struct tile *t, const struct gemm_extent *e, const struct op_case *c, const struct tensor *in,
		      struct tensor *out, int64_t m, int64_t n)
{
	int64_t rows = e->m - m < TILE_M ? e->m - m : TILE_M, columns = e->n - n < TILE_N ? e->n - n : TILE_N;
	int64_t end = e->k - (c->mistake == GEMM_LAST_K && e->k > 0), part = rounded_part(c->mistake, e->k), length;
	bool narrow = c->contents == CONTENTS_SECOND; /* does float represent all sums exactly? (input_values.h) */

	memset(t->sum, 0, sizeof t->sum);
	memset(t->total, 0, sizeof t->total);
	for (int64_t k = c->mistake == GEMM_FIRST_K; k < end; k += length) {
		length = end - k < CHUNK ? end - k : CHUNK;
		length = part > 0 && length > part - k % part ? part - k % part : length;
		for (int64_t i = 0; i < rows; i++)
			dtype_load_run(in[e->a].data, in[e->a].dtype, (m + i) * e->k + k, length, t->a[i]);
		read_b(t, e, &in[e->b], n, columns, k, length);
		if (!narrow || !add_narrow_chunk(t, rows, columns, length))
			add_chunk(t, rows, columns, length);
		if (part > 0 && ((k + length) % part == 0 || k + length == end))
			add_part(t, rows, c->problem->outputs[0].dtype);
	}
	for (int64_t i = 0; i < rows; i++)
		dtype_store_run(out->data, out->dtype, (m + i) * e->n + n, columns, part > 0 ? t->total[i] : t->sum[i]);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	const struct gemm_extent e = gemm_extent_of(c);
	int64_t down = (e.m + TILE_M - 1) / TILE_M, across = (e.n + TILE_N - 1) / TILE_N;

	if (in[e.a].elements != e.m * e.k || in[e.b].elements != e.n * e.k || out->elements != e.m * e.n)
		return err_set(err, "gemm: the shapes of the tensors of %s are inconsistent", c->problem->name);
#pragma omp parallel if (e.m * e.n * e.k > (1 << 16))
	{
		struct tile *t = take(1, sizeof *t);

#pragma omp for schedule(dynamic)
		for (int64_t i = 0; i < down * across; i++)
			make_tile(t, &e, c, in, out, i / across * TILE_M, i % across * TILE_N);
		free(t);
	}
	return 0;
}

struct roles {
	int a, b, output;
};

static const struct op_role roles[] = {
    OP_ROLE("a", struct roles, a),
    OP_ROLE("b", struct roles, b),
    OP_ROLE_OUTPUT("output", struct roles, output),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	int a = gemm_left(problem, variant);

	*(struct roles *)out = (struct roles){a, 1 - a, 0};
}

/* The mode transposed_b means that B is [N][K] and C = A B^T. */
static const struct op_mode modes[] = {
    {"transposed_b", ~0, GEMM_NT},
    {NULL, 0, 0},
};

static const struct op_coverage coverage[] = {
    {"layout of B", coverage_switch, .other = "transposed_b",
     .values = {{"[N, K]", 1, 1, "multiplies by B of shape [N, K]"}, {"[K, N]", 0, 0, "multiplies by B of shape [K, N]"}}},
    COVERAGE_DTYPES("a"),
    COVERAGE_ROWS("a"),
    {.name = NULL},
};

const struct op gemm_op = {
    .name = "gemm",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = gemm_mistakes,
    .modes = modes,
    .coverage = coverage,
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
