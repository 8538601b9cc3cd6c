/* experts - computes the experts of this device in double. For each token t that is routed to expert l with weight w,
 * the expert computes:
 *
 *   x[h]   = hidden[t][h] * its scale (* w, if routing weights are applied to the input)
 *   up[i]  = sum over h of x[h] * W1[l][i][h] * its scale, times the expert's factor for "up"
 *   gate[i]= the same for row I + i of W1, times the expert's factor for the gate
 *   c[i]   = up[i] * gate[i] / (1 + exp(-gate[i]))
 *   out[t][h] += w * factor for "down" * (sum over i of c[i] * W2[l][h][i] * its scale)
 *
 * Experts are processed one after the other, and the rows of an expert's weights are divided among threads. A row of
 * weights is read and converted to doubles once for all tokens of its expert. */
#include "kernels/moe/experts.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

/* A visit: one token that is routed to one expert, and the routing weight. */
struct visit {
	int64_t token;
	double weight;
};

/* Data that all steps of the computation share. */
struct computation {
	const struct op_case *c;
	const struct moe_roles *roles;
	const struct tensor *in;
	struct moe_extent e;
	int mistake; /* op_case.mistake: a value of enum moe_mistake */
	double by;   /* op_case.mistake_by */
	int64_t *start; /* the visits of local expert l are start[l] … start[l + 1] - 1 */
	struct visit *visit;
	double *x, *act, *out; /* x [visits of one expert][hidden], act [visits of one expert][intermediate], out
				* [tokens][hidden] */
};

/* --- visits ------------------------------------------------------------------------------------------------------- */

static bool is_here(const struct moe_extent *e, int64_t expert)
{
	return expert >= e->offset && expert < e->offset + e->local;
}

/* Returns true if a reference with the mistake of the case computes the expert at index k in a token's list. */
static bool counts(const struct computation *w, const int64_t *expert, int64_t k, int64_t picks)
{
	for (int64_t i = 0; i < picks; i++) {
		bool same = expert[i] == expert[k];

		if ((w->mistake == MOE_OVERWRITTEN && i > k && is_here(&w->e, expert[i])) ||
		    (w->mistake == MOE_TWICE_ONE_PART && i > k && same) || (w->mistake == MOE_TWICE_FIRST && i < k && same))
			return false;
	}
	return w->mistake != MOE_LAST_EXPERT || expert[k] != w->e.offset + w->e.local - 1;
}

/* Sets the expert of a visit to -1 if a reference with the mistake of the case does not compute this visit. */
static void leave_out_visits(const struct computation *w, int64_t picks, int64_t *expert)
{
	bool *kept = take(picks, sizeof *kept);

	for (int64_t t = 0; t < w->e.tokens; t++) {
		for (int64_t k = 0; k < picks; k++)
			kept[k] = counts(w, expert + t * picks, k, picks);
		for (int64_t k = 0; k < picks; k++)
			expert[t * picks + k] = kept[k] ? expert[t * picks + k] : -1;
	}
	free(kept);
}

/* Returns the number of an expert's visits that a reference with the mistake of the case computes. */
static int64_t visits_read(const struct computation *w, int64_t visits)
{
	if (w->mistake == MOE_TILE && visits > (int64_t)w->by)
		return (int64_t)w->by;
	return w->mistake == MOE_LAST_OF_MULTIPLE && visits > 0 && visits % (int64_t)w->by == 0 ? visits - 1 : visits;
}

/* Lists the visits in the order of their experts, and the visits of one expert in the order of their tokens. */
static void make_visits(struct computation *w, const struct routing *r)
{
	int64_t *expert = take(w->e.tokens * r->picks, sizeof *expert), *next = take(w->e.local, sizeof *next);
	double *weight = take(w->e.tokens * r->picks, sizeof *weight);

#pragma omp parallel for if (w->e.tokens > 64)
	for (int64_t t = 0; t < w->e.tokens; t++)
		routing_pick(w->roles, r, w->in, t, expert + t * r->picks, weight + t * r->picks);
	if (w->mistake != MOE_NO_MISTAKE)
		leave_out_visits(w, r->picks, expert);
	w->start = take(w->e.local + 1, sizeof *w->start);
	for (int64_t i = 0; i < w->e.tokens * r->picks; i++)
		if (is_here(&w->e, expert[i]))
			w->start[expert[i] - w->e.offset + 1]++;
	for (int64_t l = 0; l < w->e.local; l++) {
		next[l] = w->start[l];
		w->start[l + 1] += w->start[l];
	}
	w->visit = take(w->start[w->e.local], sizeof *w->visit);
	for (int64_t i = 0; i < w->e.tokens * r->picks; i++)
		if (is_here(&w->e, expert[i]))
			w->visit[next[expert[i] - w->e.offset]++] = (struct visit){i / r->picks, weight[i]};
	free(expert);
	free(next);
	free(weight);
}

static int64_t most_visits(const struct computation *w)
{
	int64_t most = 0;

	for (int64_t l = 0; l < w->e.local; l++)
		most = w->start[l + 1] - w->start[l] > most ? w->start[l + 1] - w->start[l] : most;
	return most;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* Returns element `index` of an input, or 1 if the problem has no such input. */
static double value(const struct computation *w, int input, int64_t index)
{
	return input < 0 ? 1 : dtype_load(w->in[input].data, w->in[input].dtype, index);
}

/* Reads row `row` of the weights, counted over all experts. A row has `columns` columns. Multiplies the elements of the
 * row by row `scale_row` of the scales, where each scale applies to `block` columns. */
static void read_row(const struct computation *w, int input, int64_t row, int64_t columns, int scales,
                     int64_t scale_row, int64_t block, double *out)
{
	int64_t blocks = columns / block;

	dtype_load_run(w->in[input].data, w->in[input].dtype, row * columns, columns, out);
	for (int64_t b = 0; scales >= 0 && b < blocks; b++) {
		double scale = value(w, scales, scale_row * blocks + b);

		for (int64_t i = 0; i < block; i++)
			out[w->mistake == MOE_SCALES_INTERLEAVED ? i * blocks + b : b * block + i] *= scale;
	}
}

static double rounded(double x, double dtype)
{
	unsigned char bytes[8];

	dtype_store(bytes, (enum dtype)dtype, 0, x);
	return dtype_load(bytes, (enum dtype)dtype, 0);
}

/* Reads the hidden states of a token, and multiplies them by their scales and by `factor`. */
static void read_hidden(const struct computation *w, int64_t token, double factor, double *out)
{
	const struct moe_extent *e = &w->e;
	bool blocks_first = (e->blocks_first != 0) != (w->mistake == MOE_HIDDEN_SCALE_TURNED);

	dtype_load_run(w->in[w->roles->hidden].data, w->in[w->roles->hidden].dtype, token * e->hidden, e->hidden, out);
	for (int64_t h = 0; h < e->hidden; h++) {
		int64_t b = h / e->hidden_block;

		out[h] *= factor * value(w, w->roles->hidden_scale,
					 blocks_first ? b * e->tokens + token : token * e->blocks + b);
		if (w->mistake == MOE_HIDDEN_ROUNDED)
			out[h] = rounded(out[h], w->by);
	}
}

WIDE static double dot(const double *a, const double *b, int64_t count)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t i = 0; i < count; i++)
		sum += a[i] * b[i];
	return sum;
}

enum { TOGETHER = 4 };

#define ADD_PRODUCTS(s, a) s##0 += (a)[i] * b0[i], s##1 += (a)[i] * b1[i], s##2 += (a)[i] * b2[i], s##3 += (a)[i] * b3[i]
#define WRITE_SUMS(sums, s) (sums)[0] = s##0, (sums)[1] = s##1, (sums)[2] = s##2, (sums)[3] = s##3

/* Computes the dot products of two rows a0 and a1 with TOGETHER rows of b. Each result has the same bits as that of
 * dot(). An addition to a sum must wait for the previous addition to that sum. Therefore eight sums, which do not wait
 * for each other, are computed at the same time. Computing them together also means that each loaded number is used for
 * several products. */
WIDE static void dot_together(const double *a0, const double *a1, const double *b, int64_t count, double *sums0,
                              double *sums1)
{
	const double *b0 = b, *b1 = b + count, *b2 = b + 2 * count, *b3 = b + 3 * count;
	double s0 = 0, s1 = 0, s2 = 0, s3 = 0, u0 = 0, u1 = 0, u2 = 0, u3 = 0;

#pragma omp simd reduction(+ : s0, s1, s2, s3, u0, u1, u2, u3)
	for (int64_t i = 0; i < count; i++) {
		ADD_PRODUCTS(s, a0);
		ADD_PRODUCTS(u, a1);
	}
	WRITE_SUMS(sums0, s);
	WRITE_SUMS(sums1, u);
}

/* Computes sums0[v] = a0 . b[v] and sums1[v] = a1 . b[v] for `rows` rows of b. */
static void dots(const double *a0, const double *a1, const double *b, int64_t count, int64_t rows, double *sums0,
                 double *sums1)
{
	int64_t v = 0;

	for (; v + TOGETHER <= rows; v += TOGETHER)
		dot_together(a0, a1, b + v * count, count, sums0 + v, sums1 + v);
	for (; v < rows; v++) {
		sums0[v] = dot(a0, b + v * count, count);
		sums1[v] = dot(a1, b + v * count, count);
	}
}

/* --- an expert ---------------------------------------------------------------------------------------------------- */

/* Returns true if the matrix product of an expert with `visits` visits is large enough to be divided among threads.
 * Small products are not divided: a small case has hundreds of products, and starting threads for each of them would
 * take some microseconds, or much more if other processes use the processors. */
static bool is_large(const struct moe_extent *e, int64_t visits)
{
	return e->hidden * e->intermediate >= (1 << 18) / (visits + 1);
}

static double limited(double x, double most)
{
	return x > most ? most : x < -most ? -most : x;
}

static double silu(double gate)
{
	return gate / (1 + exp(-gate));
}

/* Returns up * silu(gate), or what a reference with the mistake computes instead. `factor` is the expert's factor for
 * the gate. */
static double mistaken_activation(const struct computation *w, double up, double gate, double factor)
{
	switch (w->mistake) {
	case MOE_SWAPPED:
		return gate * silu(up);
	case MOE_NO_SILU:
		return up * gate;
	case MOE_GELU:
		return up * gate * erfc(-gate * 0.70710678118654752440) / 2;
	case MOE_SIGMOID:
		return up / (1 + exp(-gate));
	case MOE_SILU_OF_PRODUCT:
		return silu(up * gate);
	case MOE_GATE_LIMIT:
		return up * silu(limited(gate, w->by));
	case MOE_GATE_FACTOR_LAST:
		return factor * up * silu(gate / factor);
	case MOE_INNER_ROUNDED:
		return rounded(up * silu(gate), w->by);
	case MOE_INNER_LIMIT:
		return limited(up * silu(gate), w->by);
	case MOE_PRODUCTS_ROUNDED:
		return rounded(up, w->by) * silu(rounded(gate, w->by));
	default:
		return up * silu(gate);
	}
}

/* Computes act[v][i] for all visits v of local expert l. */
static void first_product(struct computation *w, int64_t l)
{
	const struct moe_extent *e = &w->e;
	int64_t visits = visits_read(w, w->start[l + 1] - w->start[l]), rows = 2 * e->intermediate;
	double factor_up = value(w, w->roles->factor_up, l), factor_gate = value(w, w->roles->factor_gate, l);

#pragma omp parallel if (is_large(e, visits))
	{
		double *up = take(2 * (e->hidden + visits), sizeof *up), *gate = up + e->hidden;
		double *ups = gate + e->hidden, *gates = ups + visits;

#pragma omp for schedule(static)
		for (int64_t i = 0; i < e->intermediate; i++) {
			bool interleaved = w->mistake == MOE_INTERLEAVED;
			int64_t k = interleaved ? 2 * i : i, j = interleaved ? 2 * i + 1 : e->intermediate + i;
			int64_t blocks = rows / e->rows1;

			read_row(w, w->roles->weights1, l * rows + k, e->hidden, w->roles->scale1,
				 l * blocks + k / e->rows1, e->columns1, up);
			read_row(w, w->roles->weights1, l * rows + j, e->hidden, w->roles->scale1,
				 l * blocks + j / e->rows1, e->columns1, gate);
			dots(up, gate, w->x, e->hidden, visits, ups, gates);
			for (int64_t v = 0; v < visits; v++) {
				double u = factor_up * ups[v], g = factor_gate * gates[v];

				w->act[v * e->intermediate + i] = w->mistake == MOE_NO_MISTAKE
									      ? u * g / (1 + exp(-g))
									      : mistaken_activation(w, u, g, factor_gate);
			}
		}
		free(up);
	}
}

/* Reads row h of the second weights of local expert l. */
static void read_second(const struct computation *w, int64_t l, int64_t h, double *out)
{
	const struct moe_extent *e = &w->e;

	read_row(w, w->roles->weights2, l * e->hidden + h, e->intermediate, w->roles->scale2,
		 l * (e->hidden / e->rows2) + h / e->rows2, e->columns2, out);
}

/* Adds one column of the second product of local expert l to the output. For each visit of the expert, adds an element
 * of `sums` to out[token][h]. */
static void add_column(const struct computation *w, int64_t l, int64_t h, const double *sums)
{
	const struct visit *visit = w->visit + w->start[l];
	int64_t visits = visits_read(w, w->start[l + 1] - w->start[l]);
	double factor = value(w, w->roles->factor_down, l);

	for (int64_t v = 0; v < visits; v++) {
		double sum = factor * sums[v];

		if ((w->c->variant & MOE_WEIGHT_ON_INPUT) == 0 || w->mistake == MOE_WEIGHT_TWICE)
			sum *= visit[v].weight;
		w->out[visit[v].token * w->e.hidden + h] += sum;
	}
}

/* Adds the second product of local expert l to the output, two columns at a time. No two threads write to the same
 * column. */
static void second_product(struct computation *w, int64_t l)
{
	const struct moe_extent *e = &w->e;
	int64_t visits = visits_read(w, w->start[l + 1] - w->start[l]);

#pragma omp parallel if (is_large(e, visits))
	{
		double *row = take(2 * (e->intermediate + visits), sizeof *row), *next = row + e->intermediate;
		double *sums = next + e->intermediate, *next_sums = sums + visits;

#pragma omp for schedule(static)
		for (int64_t h = 0; h < e->hidden; h += 2) {
			bool both = h + 1 < e->hidden;

			read_second(w, l, h, row);
			if (both)
				read_second(w, l, h + 1, next);
			dots(row, next, w->act, e->intermediate, visits, sums, next_sums);
			add_column(w, l, h, sums);
			if (both)
				add_column(w, l, h + 1, next_sums);
		}
		free(row);
	}
}

static void visit_expert(struct computation *w, int64_t l)
{
	const struct visit *visit = w->visit + w->start[l];
	int64_t visits = visits_read(w, w->start[l + 1] - w->start[l]);
	bool on_input = (w->c->variant & MOE_WEIGHT_ON_INPUT) != 0 || w->mistake == MOE_WEIGHT_TWICE;

	for (int64_t v = 0; v < visits; v++)
		read_hidden(w, visit[v].token, on_input ? visit[v].weight : 1, w->x + v * w->e.hidden);
	if (visits == 0)
		return;
	first_product(w, l);
	second_product(w, l);
}

/* Returns true if the mistake of the case can change the results of the case. */
static bool has_mistake(const struct computation *w, const struct routing *r)
{
	switch (w->mistake) {
	case MOE_GATE_FACTOR_LAST:
		return w->roles->factor_gate >= 0;
	case MOE_HIDDEN_SCALE_TURNED:
		return w->roles->hidden_scale >= 0;
	case MOE_SCALES_INTERLEAVED:
		return w->roles->scale1 >= 0;
	case MOE_TWICE_ONE_PART:
	case MOE_TWICE_FIRST:
		return r->method == MOE_GIVEN;
	default:
		return w->mistake < MOE_LAST_OF_EXPERTS || routing_has_mistake(r);
	}
}

int experts_oracle(const struct op_case *c, const struct moe_roles *roles, const struct routing *r,
		   const struct tensor *in, struct tensor *out, struct err *err)
{
	struct computation w = {.c = c, .roles = roles, .in = in, .e = moe_extent_of(c, roles), .mistake = c->mistake, .by = c->mistake_by};
	int64_t most;

	if (out->elements != w.e.tokens * w.e.hidden)
		return err_set(err, "the shapes of the tensors of %s are inconsistent", c->problem->name);
	if (!has_mistake(&w, r))
		return err_set(err, "this mistake would change nothing in this case");
	make_visits(&w, r);
	most = most_visits(&w);
	w.x = take(most * w.e.hidden, sizeof *w.x);
	w.act = take(most * w.e.intermediate, sizeof *w.act);
	w.out = take(out->elements, sizeof *w.out);
	for (int64_t l = 0; l < w.e.local; l++)
		visit_expert(&w, l);
	dtype_store_run(out->data, out->dtype, 0, out->elements, w.out);
	free(w.x);
	free(w.act);
	free(w.out);
	free(w.start);
	free(w.visit);
	return 0;
}
