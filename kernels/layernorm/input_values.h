/* layernorm inputs - finds the role of each tensor, and computes the inputs. The CPU and the GPU compute the same
 * values.
 *
 * Each row of the activations tests one property. Rows 0 to 7 have values with which real implementations have failed.
 * Noise is uniform on [-1, 1).
 *
 *   Row 0, 7  Tiny: the variance is about epsilon (row 0) or a 64th of epsilon (row 7). A wrong or missing epsilon
 *             changes the output of these rows. Row 0 is tiny, so that even a case of one row reveals a wrong epsilon.
 *   Row 1     Constant: every element is 4. The variance is 0, so without epsilon the quotient would be 0 / 0. The
 *             output is the bias.
 *   Row 2     Shifted: 1 + noise / 4. The mean is seven times the standard deviation.
 *   Row 3     Huge: noise on [-2^20, 2^20), which overflows float16. If a tensor is float16, noise on [-2^14, 2^14),
 *             whose squares overflow float16.
 *   Row 4, 5  Noise and one outlier, in the first column (row 4) or in the last column (row 5).
 *   Row 6     Plain noise.
 *   Row r>=8  Every eighth row, starting with row 11, is shifted like row 2 in the first set of values. In the second
 *             set, these rows consist of integers close to a large number M. If a reference computes the variance of
 *             such a row as the mean of squares minus the square of the mean, the variance loses many digits. Columns
 *             come in pairs of M + d and M - d, so the mean is exactly M, and every sum is exact in float32 in any
 *             order (up to 2^16 columns). If the output is float32, M is at most 250 and d is from 1 to 4: the mean is
 *             91 times the standard deviation. If the output is float16 or bfloat16, M is at most 254, and d is 1 in
 *             one of 32 pairs, else 0: the mean is about 1400 times the standard deviation. In half of the rows of
 *             integers, all elements are multiplied by 2^7: the mean is about 32000. The other rows from row 8 on have
 *             noise and 32 consecutive spikes of equal magnitude and alternating sign. In the k-th row with spikes, the
 *             spikes start at column 32 k, modulo the number of columns. At least 3/4 of the variance comes from the
 *             spikes. If a reference omits a column with a spike, its whole row of outputs is therefore wrong.
 *
 * If a case has one row, this row is "even" in the second set: each pair of columns has 20 and -12 in some order, and
 * the last element is 4 if the number of columns is odd. The mean is then exactly 4, and (x - mean) / sqrt(variance) is
 * 1, -1 or 0. In a case with an even row, one weight in 16 is 2^8 times as large. Only an even row can have such
 * weights: in other rows, the rounding error of the mean, times such a weight, would exceed the tolerance.
 *
 * Weights have both signs and a magnitude in [1/4, 2), or in [1/8, 8) in the second set. Biases are noise times 2^3 …
 * 2^-2. In the second set, constants, means and outliers have the opposite sign, and rows 0, 3 and 7 are a quarter as
 * large. Large weights and rows of integers close to M make float32 results less accurate (layernorm.c), so only the
 * second set has them. */
#ifndef REFTEST_KERNELS_LAYERNORM_INPUT_VALUES_H
#define REFTEST_KERNELS_LAYERNORM_INPUT_VALUES_H

#include <stdint.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

enum { LAYERNORM_SPIKES = 32, LAYERNORM_SPIKE_ROW = 8, LAYERNORM_FAR = 8, LAYERNORM_FAR_ROW = 3, LAYERNORM_FARTHER = 7, LAYERNORM_LOUD = 8 };

/* The index of each input, and of the only output, by its role, or -1 if the problem has no such tensor. */
struct layernorm_roles {
	int x, weight, bias, eps; /* eps: a Python scalar */
	int output;
};

/* Finds the roles by shape. If there are two tensors with a single axis, the bias is the one whose name contains "bias"
 * or "beta". If neither name does, the bias is the second of the two. If op.match accepts the problem, every tensor has
 * a role. Host only. */
static inline struct layernorm_roles layernorm_roles_of(const struct op_problem *problem)
{
	struct layernorm_roles roles = {-1, -1, -1, -1, 0};

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

/* Returns the epsilon of a case, or NaN if the epsilon is unknown. Only a probe case has an unknown epsilon. Host
 * only. */
static inline double layernorm_eps(const struct op_case *c)
{
	int scalar = layernorm_roles_of(c->problem).eps;

	if (scalar >= 0)
		return c->scalar[scalar];
	return c->constant_count > 0 ? c->constants[0].value : (double)float_from_bits(0x7fc00000u);
}

enum layernorm_part { LAYERNORM_X, LAYERNORM_WEIGHT, LAYERNORM_BIAS };

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct layernorm_fill {
	uint64_t key;
	int64_t columns;
	int part;        /* enum layernorm_part */
	int probe;       /* is this a probe case? The rows of a probe case reveal only epsilon */
	int second;      /* is this the second set of values? */
	int even;        /* true if the case has only one row, and this row is the "even" one */
	int narrow;      /* is the output float16 or bfloat16? */
	int huge;        /* row 3 (huge) is noise times 2^huge */
	int tiny;        /* a tiny row is noise times 2^tiny */
	int least;       /* the smallest exponent at which the dtype has full precision */
	int spikes;      /* the number of spikes in a row */
	int spike;       /* log2 of the magnitude of spikes */
	int single;      /* log2 of the magnitude of the outliers in rows 4 and 5 */
	int weight_bits; /* the number of fraction bits of a weight */
};

/* Returns the smallest exponent e >= `from` for which `count` * 4^e >= `energy`. Host only. */
static inline int layernorm_exponent(int from, double count, double energy)
{
	int e = from;

	while (e < 40 && count * (double)float_power(e) * (double)float_power(e) < energy)
		e++;
	return e;
}

/* Returns the parameters of an input, which must be a tensor. Host only. */
static inline struct layernorm_fill layernorm_fill_of(const struct op_case *c, int input)
{
	const struct op_problem *problem = c->problem;
	struct layernorm_roles roles = layernorm_roles_of(problem);
	const struct op_arg *x = &problem->inputs[roles.x];
	enum dtype weight = problem->inputs[roles.weight].dtype;
	double eps = layernorm_eps(c);
	struct layernorm_fill f;
	int64_t rows = 1;

	for (int d = 0; d + 1 < x->rank; d++)
		rows *= c->axis[x->axis[d]];
	f.key = input_key(c, input);
	f.columns = c->axis[x->axis[x->rank - 1]];
	f.part = input == roles.weight ? LAYERNORM_WEIGHT : input == roles.bias ? LAYERNORM_BIAS : LAYERNORM_X;
	f.probe = c->probe;
	f.second = c->contents == CONTENTS_SECOND;
	f.even = f.second && rows == 1 && c->given == 0 && c->edge == 0 && !c->probe;
	f.narrow = problem->outputs[0].dtype != DTYPE_FLOAT32;
	f.huge = x->dtype == DTYPE_FLOAT16 || problem->outputs[0].dtype == DTYPE_FLOAT16 ? 14 : 20;
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
	int loud = f->even && (random >> 9 & 15) == 0 ? LAYERNORM_LOUD : 0;
	int exponent = f->second ? 2 + loud - (int)(random % 6) : -(int)(random % 3);
	float magnitude = (float)((1u << f->weight_bits) + fraction) * float_power(exponent - f->weight_bits);

	return random & 0x100 ? magnitude : -magnitude;
}

/* Computes an element of a probe case. |x| is 2^least times a number in [1, 2), the signs of x alternate, and the bias
 * is 0. The square of x is so far below any epsilon that the output is (x - mean) w / sqrt(eps). */
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
		return noise * 0.25f + side; /* exact in float32, because the sum has at most 23 bits */
	case 3:
		return noise * float_power(f->second ? f->huge - 2 : f->huge);
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

/* Computes an element of a row of integers close to M. Columns 2 i and 2 i + 1 have M + d and M - d, in some order. The
 * random bits of column 2 i determine the order, and also d if the output is float32. If the number of columns is odd,
 * the last element is M. */
HOST_DEVICE static inline float layernorm_far(const struct layernorm_fill *f, int64_t row, int64_t column)
{
	uint32_t random = philox_bits(f->key, row * f->columns + column / 2 * 2);
	int which = (int)(row / LAYERNORM_FAR), m = (f->narrow ? 254 : 250) - which / 2 % 4;
	int64_t pairs = f->columns / 2 < 32 ? f->columns / 2 : 32;
	int d = !f->narrow || pairs == 0 ? 1 + (int)(random % 4) : (column / 2 + which) % pairs == 0;

	if (column % 2 == 0 && column + 1 == f->columns)
		d = 0;
	d = (random >> 8 & 1) == (uint32_t)(column % 2) ? d : -d;
	return (float)(((which & 1) != f->second ? -1 : 1) * (m + d)) * float_power(which & 2 ? LAYERNORM_FARTHER : 0);
}

/* Computes an element of the even row. The random bits of the first column of a pair determine the order of the pair. */
HOST_DEVICE static inline float layernorm_even(const struct layernorm_fill *f, int64_t column)
{
	uint32_t order = philox_bits(f->key, column / 2 * 2) & 1;

	if (column % 2 == 0 && column + 1 == f->columns)
		return 4;
	return order == (uint32_t)(column % 2) ? 20.0f : -12.0f;
}

/* Computes element `index` of an input from its random bits. The caller converts the element to the input's dtype with
 * dtype_store_float. */
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

	if (f->even)
		return layernorm_even(f, column);
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
