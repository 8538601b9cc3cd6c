/* rms_input_values - computes the inputs of an RMS norm. The CPU and the GPU compute the same values.
 *
 * Each row of the activations detects one kind of error. Rows 0 … 7 have values with which wrong implementations are
 * known to fail. The other rows have spikes (large elements), which make an error in any single column visible:
 *
 *   row 0, 7  tiny: the mean square is about epsilon (row 7: a 64th of epsilon), so that a wrong or missing epsilon
 *             changes the result. A batch of one row has row 0, and therefore detects this error, too.
 *   row 1     zeros: only epsilon keeps the result finite (plain noise if epsilon is 0)
 *   row 2     shifted: 1 + noise / 4, whose variance is far from its mean square
 *   row 3     huge: noise on [-2^20, 2^20), larger than the largest activations of trained models; elements and sums of
 *             hidden state and residual overflow float16. If a tensor is float16, noise on [-2^14, 2^14): only the
 *             squares overflow float16
 *   row 4, 5  noise and one outlier: in the first column (row 4), in the last column (row 5)
 *   row 6     plain noise
 *   row r>=8  noise and `spikes` equal spikes, in the columns from (r - 8) * spikes on, wrapping at the end
 *
 * Spikes. The squares of a row's spikes make up at least 3/4 of the row's sum of squares. If a reference omits one of
 * 32 spikes, all elements of the row change by 1.2 % or more, which is two ulps of bfloat16 for most elements.
 * Together, ceil(columns / spikes) rows have spikes in all columns. In even rows of a fused add, the residual of a
 * spike is half an ulp of the spike. The sum of hidden state and residual is then a tie, halfway between two numbers of
 * the dtype. If a reference rounds the sum before it computes the mean, the residual is lost, and the noise in the
 * output changes by up to two ulps. The magnitude of the spikes changes every two rows, from 8/8 to 15/8 of a power of
 * two, so 1 / rms differs between rows.
 *
 * In the second set of input values, the shift of row 2 and the outliers of rows 4 and 5 have the opposite sign, and
 * rows 0, 3 and 7 are a quarter as large.
 *
 * Exact row. If a case has only one row, this row is an "exact row" in the second set of input values: rms_rule allows
 * no difference in this row. If the offset is 0, every element of the row is 16 or -16, and w has eight significant
 * bits. (In a fused add, an element here means the sum of hidden state and residual.) The output is then exactly w or
 * its negative, however often a reference rounds. If a reference divides the sum of squares by columns - 1, a float16
 * or bfloat16 output changes by less than its rounding error. This mistake is visible only in the exact row, and only
 * if rows are short.
 *
 * If the offset is 1, a reference must round only once, as every implementation of Gemma's norm does. Of every 12
 * elements of the exact row, 5 are then 32 and 7 are 16; if the number of columns is not a multiple of 12, the last
 * elements are 24. Half of all elements are negative. The root mean square is 24, so x / rms is 4/3, 2/3 or 1, of which
 * bfloat16 represents only 1. For half of the weights, 1 + w is a multiple of 1/128, which bfloat16 represents. The
 * other weights are k/1024, where k is odd and 1024 + k is not a multiple of 3; for these weights, bfloat16 cannot
 * represent 1 + w. The outputs are at least an eighth of an ulp away from a tie, so errors of float32 do not change how
 * they are rounded.
 *
 * Noise is uniform on [-1, 1) in 2^21 steps, rounded to the dtype. If the offset is 0, weights are positive or
 * negative, with a magnitude in [1/64, 16). If the offset is 1, weights are noise times 2^3 … 2^-5: they are as small
 * and as large as trained weights, and some are below -1. Their mean is near 0 in the first set of input values. In the
 * second set, seven of eight weights are positive, and the mean is above 1/2. With either offset, one weight in 32 of
 * the second set is multiplied by 2^7. If a tensor is float16, no weight is multiplied, because an output would
 * overflow. All multiplications by scales and all sums are exact. */
#ifndef REFTEST_KERNELS_COMMON_NORM_RMS_INPUT_VALUES_H
#define REFTEST_KERNELS_COMMON_NORM_RMS_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

enum { RMS_SPIKES = 32, RMS_SPIKE_ROW = 8, RMS_LOUD = 7 };

enum rms_part { RMS_HIDDEN, RMS_RESIDUAL, RMS_WEIGHT };

/* The parameters from which the elements of an input are computed. Kernels take this struct by value. */
struct rms_recipe {
	uint64_t key;
	int64_t columns;
	int part;	   /* a value of enum rms_part */
	int probe;	   /* 1: the probe case, from whose rows epsilon is recovered */
	int zero_row;	   /* 1: row 1 contains only zeros */
	int exact;	   /* 1: the only row is the exact row */
	int second;	   /* 1: the second set of input values */
	int has_residual;  /* 1: the norm adds a residual to the hidden state */
	int tiny;	   /* exponent of the scale of the tiny rows 0 and 7 */
	int huge;	   /* exponent of the scale of the huge row 3 */
	int least;	   /* smallest exponent at which the dtype has full precision */
	int spikes;	   /* number of spikes in each row from RMS_SPIKE_ROW on */
	int spike, single; /* log2 of the magnitude of a spike; `single` is for rows with only one spike */
	int half_ulp; /* log2 of half an ulp of 1 in the activations' dtype; 0: the residuals of spikes are noise */
	int weight_bits; /* number of fraction bits of a weight */
	int loud;	 /* large weights are multiplied by 2^loud; 0: no weight is large */
	int offset;	 /* the offset that is added to a weight: 0 or 1 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the parameters of a tensor input of a problem that rms_match accepted. For `offset`, see rms.h. Host only. */
struct rms_recipe rms_recipe_of(const struct op_case *c, int offset, int input);

/* Returns true if some weights in the second set of input values are large. Host only. */
bool rms_is_loud(const struct op_problem *problem);

/* Returns true if the only row of the case is the exact row. Host only. */
bool rms_is_exact(const struct op_case *c);

#ifdef __cplusplus
}
#endif

HOST_DEVICE static inline float rms_weight(const struct rms_recipe *f, uint32_t random)
{
	int loud = (random >> 11 & 31) == 0 ? f->loud : 0;

	if (f->offset != 0) {
		float weight = uniform_signed(random, 20) * float_power(3 + loud - (int)(random % 9));

		return f->second && (random & 0x700) != 0 && weight < 0 ? -weight : weight;
	}
	uint32_t fraction = random >> (32 - f->weight_bits);
	int exponent = 3 + loud - f->weight_bits - (int)(random % 6) - ((random >> 9 & 3) == 0 ? 4 : 0);
	float magnitude = (float)((1u << f->weight_bits) + fraction) * float_power(exponent);

	return random & 0x100 ? magnitude : -magnitude;
}

/* Returns an element of the probe case. |hidden| is in [2^least, 2^(least + 1)), where `least` is the smallest exponent
 * at which the dtype has full precision. The residual is 0. x^2 is so far below any epsilon that the output is x w /
 * sqrt(eps). */
HOST_DEVICE static inline float rms_probe(const struct rms_recipe *f, uint32_t random)
{
	float magnitude = (float)(128 + (random >> 25)) * float_power(f->least - 7);

	if (f->part == RMS_RESIDUAL)
		return 0;
	return random & 1 ? magnitude : -magnitude;
}

/* Returns a weight of the exact row in a norm whose offset is 1. */
HOST_DEVICE static inline float rms_exact_weight(uint32_t random)
{
	int fine = (int)(random >> 16 & 0xff) - 128;

	if (random & 1)
		return (float)((int)(random >> 16) % 384 - 256) * float_power(-7);
	fine = 2 * fine + 1;
	return (float)((1024 + fine) % 3 != 0 ? fine : fine + 2 < 256 ? fine + 2 : 1) * float_power(-10);
}

/* Returns the magnitude of an element of the exact row, or of the sum of hidden state and residual. */
HOST_DEVICE static inline float rms_exact_magnitude(const struct rms_recipe *f, int64_t column)
{
	if (f->offset == 0)
		return 16.0f;
	return column >= f->columns / 12 * 12 ? 24.0f : column % 12 < 5 ? 32.0f : 16.0f;
}

/* Returns an element of the exact row. The sum of hidden state and residual depends only on the column, and not on the
 * random bits, which differ between the two tensors. For example, 16 is 12 + 4 or 20 - 4. */
HOST_DEVICE static inline float rms_exact(const struct rms_recipe *f, int64_t column, uint32_t random)
{
	uint32_t mixed = (uint32_t)column * 0x9E3779B1u;
	float magnitude = rms_exact_magnitude(f, column), sum = mixed & 0x8000 ? -magnitude : magnitude;
	float residual = mixed & 0x10000 ? -4.0f : 4.0f;

	if (f->part == RMS_WEIGHT)
		return f->offset == 0 ? rms_weight(f, random) : rms_exact_weight(random);
	if (f->part == RMS_RESIDUAL)
		return residual;
	return f->has_residual ? sum - residual : sum;
}

/* Returns a spike or, for the residual, the element that is added to the spike. The magnitude of a spike is from
 * 2^exponent to almost 2^(exponent + 1), and increases every two rows. The sign depends on the row and column and not
 * on the random bits, because a spike and its residual must have the same sign. */
HOST_DEVICE static inline float rms_spike(const struct rms_recipe *f, int64_t row, int64_t column, int exponent,
					  float noise)
{
	float sign = ((row + column) & 1) != f->second ? -1.0f : 1.0f;
	int eighths = row < RMS_SPIKE_ROW ? 8 : 8 + (int)(row / 2 % 8);

	if (f->part == RMS_HIDDEN)
		return sign * (float)eighths * float_power(exponent - 3);
	if (f->half_ulp == 0 || (row & 1) || row < RMS_SPIKE_ROW)
		return noise;
	return sign * float_power(exponent + f->half_ulp);
}

HOST_DEVICE static inline int rms_tiny(const struct rms_recipe *f, int exponent)
{
	exponent -= f->second ? 2 : 0;
	return exponent < f->least ? f->least : exponent;
}

HOST_DEVICE static inline float rms_hurtful(const struct rms_recipe *f, int row, int64_t column, float noise)
{
	switch (row) {
	case 0:
		return noise * float_power(rms_tiny(f, f->tiny));
	case 1:
		return f->zero_row ? 0 : noise;
	case 2:
		return noise * 0.25f + (f->part != RMS_HIDDEN ? 0.0f : f->second ? -1.0f : 1.0f); /* the sum is exact,
												   * because it needs at
												   * most 23 bits */
	case 3:
		return noise * float_power(f->second ? f->huge - 2 : f->huge);
	case 4:
		return column == 0 ? rms_spike(f, row, column, f->single, noise) : noise;
	case 5:
		return column == f->columns - 1 ? rms_spike(f, row, column, f->single, noise) : noise;
	case 7:
		return noise * float_power(rms_tiny(f, f->tiny - 3));
	default:
		return noise;
	}
}

/* Returns the element at a row and column of the input that `f` describes, from its random bits. The caller converts
 * the element to the input's dtype with dtype_store_float. */
HOST_DEVICE static inline float rms_at(const struct rms_recipe *f, int64_t row, int64_t column, uint32_t random)
{
	float noise = uniform_signed(random, 20);

	if (f->exact)
		return rms_exact(f, column, random);
	if (f->part == RMS_WEIGHT)
		return rms_weight(f, random);
	if (f->probe)
		return rms_probe(f, random);
	if (row < RMS_SPIKE_ROW)
		return rms_hurtful(f, (int)row, column, noise);
	int64_t first = (row - RMS_SPIKE_ROW) * f->spikes % f->columns;
	int64_t after = column >= first ? column - first : column - first + f->columns;

	return after < f->spikes ? rms_spike(f, row, column, f->spike, noise) : noise;
}

/* Returns element `index` in row-major order. */
HOST_DEVICE static inline float rms_element(const struct rms_recipe *f, int64_t index, uint32_t random)
{
	return rms_at(f, index / f->columns, index % f->columns, random);
}

#endif
