/* layernorm inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * A row of the activations is a case of its own. Rows 0 … 7 are those that have hurt people:
 *
 *   row 0, 7  tiny: the variance is about epsilon (row 7: a 64th of it), so a wrong epsilon, or none, shows; row 0 so
 *             that a batch of one shows it too
 *   row 1     constant, 4: only epsilon keeps it finite, and what is left is the bias
 *   row 2     shifted: 1 + noise / 4, whose mean is seven times its deviation
 *   row 3     huge: noise on [-8192, 8192); float16 holds no square of them
 *   row 4, 5  noise and one outlier, in the first column, in the last
 *   row 6     plain noise
 *   row r>=8  every eighth, from row 11 on: in the first contents shifted, as row 2. In the second
 *             far from zero, against which the spread is nothing. Whole numbers about M, where
 *             the mean of squares less the square of the mean has lost the variance: columns come in pairs of M + d and
 *             M - d, so the mean is M itself, and every sum is exact in float32 in every order (up to 2^16 columns). For
 *             wide outputs M is 250 and less and d 1 … 4, a mean of 91 deviations; for narrow ones M is 254 and less and d
 *             is 1 in one of 32 pairs, else 0: a mean of some 1400 deviations.
 *             The others: noise and 32 equal spikes of alternating sign, in columns 32 k and following for the k-th of
 *             them, wrapping at the end: they hold 3/4 or more of the variance, so a column that is left out moves the
 *             whole row
 *
 * Noise is uniform on [-1, 1). Weights are of either sign and of magnitude [1/4, 2), in the second contents [1/8, 8);
 * biases noise times 2^3 … 2^-2. The second contents have constant, means and outliers on the other side of zero, and
 * rows 0, 3 and 7 at a quarter. What the large weights and the far rows cost in float32 (layernorm.c), the first
 * contents do not have.
 */
#ifndef REFTEST_KERNELS_LAYERNORM_INPUTS_H
#define REFTEST_KERNELS_LAYERNORM_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

enum { LAYERNORM_SPIKES = 32, LAYERNORM_SPIKE_ROW = 8, LAYERNORM_FAR = 8, LAYERNORM_FAR_ROW = 3 };

/* Indices into the problem's inputs; -1: the problem has none. */
struct layernorm_roles {
	int x, weight, bias, eps; /* eps: a Python scalar */
};

/* By shape; of two tensors of one axis the bias is the one whose name says so, else the second. Complete for what
 * op.match takes. Host only. */
static inline struct layernorm_roles layernorm_roles_of(const struct op_problem *problem)
{
	struct layernorm_roles roles = {-1, -1, -1, -1};

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int names_bias = strstr(input->name, "bias") != NULL || strstr(input->name, "beta") != NULL;

		if (input->rank == OP_SCALAR)
			roles.eps = i;
		else if (input->rank != 1)
			roles.x = i;
		else if (roles.bias < 0 && (names_bias || roles.weight >= 0))
			roles.bias = i;
		else
			roles.weight = i;
	}
	return roles;
}

/* Epsilon of a case; NaN while nothing gives it (a probing case). Host only. */
static inline double layernorm_eps(const struct op_case *c)
{
	int scalar = layernorm_roles_of(c->problem).eps;

	if (scalar >= 0)
		return c->scalar[scalar];
	return c->constant_count > 0 ? c->constants[0].value : (double)float_from_bits(0x7fc00000u);
}

enum layernorm_part { LAYERNORM_X, LAYERNORM_WEIGHT, LAYERNORM_BIAS };

/* Everything an element depends on; plain data, given to the GPU by value. */
struct layernorm_fill {
	uint64_t key;
	int64_t columns;
	int part;        /* enum layernorm_part */
	int probe;       /* 1: every row shows epsilon and nothing else */
	int second;      /* the second contents */
	int narrow;      /* the output is of float16 or bfloat16 */
	int tiny, least; /* exponents of a tiny row's scale, and of the smallest that the dtype has precision for */
	int spikes, spike, single; /* how many in a row; exponents of their magnitude, and of a single one's */
	int weight_bits;           /* fraction bits of a weight */
};

/* Smallest exponent e >= from with count * 4^e >= energy. Host only. */
static inline int layernorm_exponent(int from, double count, double energy)
{
	int e = from;

	while (e < 40 && count * (double)float_power(e) * (double)float_power(e) < energy)
		e++;
	return e;
}

/* Host only. `input` is a tensor. */
static inline struct layernorm_fill layernorm_fill_of(const struct op_case *c, int input)
{
	const struct op_problem *problem = c->problem;
	struct layernorm_roles roles = layernorm_roles_of(problem);
	const struct op_arg *x = &problem->inputs[roles.x];
	enum dtype weight = problem->inputs[roles.weight].dtype;
	double eps = layernorm_eps(c);
	struct layernorm_fill f;

	f.key = input_key(c, input);
	f.columns = c->axis[x->axis[x->rank - 1]];
	f.part = input == roles.weight ? LAYERNORM_WEIGHT : input == roles.bias ? LAYERNORM_BIAS : LAYERNORM_X;
	f.probe = c->probe;
	f.second = c->contents == CONTENTS_SECOND;
	f.narrow = problem->outputs[0].dtype != DTYPE_FLOAT32;
	f.least = x->dtype == DTYPE_FLOAT16 ? -13 : -40;
	f.tiny = layernorm_exponent(f.least, 1.0 / 3, eps > 0 && eps < 1e6 ? eps / 2 : eps == 0 ? 1e-14 : 1e-6);
	f.spikes = f.columns < LAYERNORM_SPIKES ? (int)f.columns : LAYERNORM_SPIKES;
	f.spike = layernorm_exponent(0, f.spikes, 4.0 / 3 * (double)f.columns);
	f.single = layernorm_exponent(0, 1, 4.0 / 3 * (double)f.columns);
	f.weight_bits = weight == DTYPE_BFLOAT16 ? 7 : weight == DTYPE_FLOAT16 ? 10 : 20;
	return f;
}

HOST_DEVICE static inline float layernorm_weight(const struct layernorm_fill *f, uint32_t random)
{
	uint32_t fraction = random >> (32 - f->weight_bits);
	int exponent = f->second ? 2 - (int)(random % 6) : -(int)(random % 3);
	float magnitude = (float)((1u << f->weight_bits) + fraction) * float_power(exponent - f->weight_bits);

	return random & 0x100 ? magnitude : -magnitude;
}

/* The probe: |x| on [1, 2) times the least power of two, of alternating sign; no bias: so far below any epsilon that
 * the answer's size is (x - mean) w / sqrt(eps). */
HOST_DEVICE static inline float layernorm_probe(const struct layernorm_fill *f, int64_t index, uint32_t random)
{
	float magnitude = (float)(128 + (random >> 25)) * float_power(f->least - 7);

	if (f->part == LAYERNORM_BIAS)
		return 0;
	return index & 1 ? magnitude : -magnitude;
}

HOST_DEVICE static inline int layernorm_tiny(const struct layernorm_fill *f, int exponent)
{
	exponent -= f->second ? 2 : 0;
	return exponent < f->least ? f->least : exponent;
}

HOST_DEVICE static inline float layernorm_hurtful(const struct layernorm_fill *f, int row, int64_t column, float noise)
{
	float side = f->second ? -1.0f : 1.0f;

	switch (row) {
	case 0:
		return noise * float_power(layernorm_tiny(f, f->tiny));
	case 1:
		return side * 4;
	case 2:
		return noise * 0.25f + side; /* exact: 23 bits */
	case 3:
		return noise * (f->second ? 2048 : 8192);
	case 4:
		return column == 0 ? side * float_power(f->single) : noise;
	case 5:
		return column == f->columns - 1 ? side * float_power(f->single) : noise;
	case 7:
		return noise * float_power(layernorm_tiny(f, f->tiny - 3));
	default:
		return noise;
	}
}

HOST_DEVICE static inline bool layernorm_is_far(int64_t row)
{
	return row >= LAYERNORM_SPIKE_ROW && row % LAYERNORM_FAR == LAYERNORM_FAR_ROW;
}

/* Far from zero. What a pair of columns differs by is the first one's; a last column without another is M. */
HOST_DEVICE static inline float layernorm_far(const struct layernorm_fill *f, int64_t row, int64_t column)
{
	uint32_t random = philox_bits(f->key, row * f->columns + column / 2 * 2);
	int which = (int)(row / LAYERNORM_FAR), m = (f->narrow ? 254 : 250) - which / 2 % 4;
	int64_t pairs = f->columns / 2 < 32 ? f->columns / 2 : 32;
	int d = !f->narrow || pairs == 0 ? 1 + (int)(random % 4) : (column / 2 + which) % pairs == 0;

	if (column % 2 == 0 && column + 1 == f->columns)
		d = 0;
	d = (random >> 8 & 1) == (uint32_t)(column % 2) ? d : -d;
	return (float)(((which & 1) != f->second ? -1 : 1) * (m + d));
}

/* Element `index` from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float layernorm_element(const struct layernorm_fill *f, int64_t index, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	if (f->part == LAYERNORM_WEIGHT)
		return layernorm_weight(f, random);
	if (f->probe)
		return layernorm_probe(f, index, random);
	if (f->part == LAYERNORM_BIAS)
		return noise * float_power(3 - (int)(random % 6));
	int64_t row = index / f->columns, column = index % f->columns;

	if (row < LAYERNORM_SPIKE_ROW)
		return layernorm_hurtful(f, (int)row, column, noise);
	if (layernorm_is_far(row))
		return f->second ? layernorm_far(f, row, column) : layernorm_hurtful(f, 2, column, noise);
	int64_t spiky = row - LAYERNORM_SPIKE_ROW - (row - LAYERNORM_FAR_ROW) / LAYERNORM_FAR;
	int64_t first = spiky * f->spikes % f->columns;
	int64_t after = column >= first ? column - first : column - first + f->columns;

	if (after >= f->spikes)
		return noise;
	return (row + column) & 1 ? -float_power(f->spike) : float_power(f->spike);
}

#endif
