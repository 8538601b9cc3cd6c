/* rms inputs - the value of every input element of an RMS norm, the same on CPU and GPU.
 *
 * A row of the activations is a case of its own. Rows 0 … 7 are those that have hurt people; the rest make every
 * single column count:
 *
 *   row 0, 7  tiny: the mean square is about epsilon (row 7: a 64th of it), so a wrong epsilon, or none, shows; row 0
 *             so that a batch of one shows it too
 *   row 1     zeros: only epsilon keeps it finite (left plain when epsilon is 0)
 *   row 2     shifted: 1 + noise / 4, whose variance is nothing like its mean square
 *   row 3     huge: noise on [-8192, 8192), as large as the largest activations of trained models; float16 holds no
 *             square of them
 *   row 4, 5  noise and one outlier, in the first column, in the last
 *   row 6     plain noise
 *   row r>=8  noise and `spikes` equal spikes, in columns (r - 8) * spikes and following, wrapping at the end. Together
 *             they hold 3/4 to 15/16 or more of the row's energy, so leaving any one of 32 out moves the whole row by
 *             1.2 % or more: two ulps of bfloat16 in most places. ceil(columns / spikes) such rows show every column.
 *             In even rows of a fused add the residual of a spike is half an ulp of the spike (a tie, so a sum that is
 *             rounded before the mean loses it): that moves the noise against the spikes by up to two ulps.
 *             Every two rows the spikes are another number of eighths of a power of two, 8 to 15, so that 1 / rms is
 *             not the same in all of them.
 *
 * The second contents have the shift and the outliers on the other side of zero, and rows 0, 3 and 7 at a quarter.
 *
 * Noise is uniform on [-1, 1) in 2^21 steps, rounded to the dtype. Weights that are applied as they are have either
 * sign and a magnitude of [1/4, 16); those that 1 is added to are noise times 2^3 … 2^-5, on both sides of -1: as small and
 * as large as trained ones are. Their mean is near 0 in the first contents; in the second, seven of eight are made positive,
 * and it is near 3/4. All scaling is exact and all sums are. */
#ifndef REFTEST_KERNELS_RMS_INPUTS_H
#define REFTEST_KERNELS_RMS_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

enum { RMS_SPIKES = 32, RMS_SPIKE_ROW = 8 };

enum rms_part { RMS_HIDDEN, RMS_RESIDUAL, RMS_WEIGHT };

/* Everything an element depends on; plain data, given to the GPU by value. */
struct rms_recipe {
	uint64_t key;
	int64_t columns;
	int part;	   /* enum rms_part */
	int probe;	   /* 1: every row shows epsilon and nothing else */
	int zero_row;	   /* row 1 is zeros */
	int second;	   /* the second contents */
	int tiny;	   /* exponent of the tiny rows' scale */
	int least;	   /* smallest exponent the dtype has precision for */
	int spikes;	   /* in each row from RMS_SPIKE_ROW on */
	int spike, single; /* exponents of a spike's magnitude: one of `spikes`, and the only one of its row */
	int half_ulp; /* exponent of half an ulp of 1 in the activations' dtype; 0: residuals there are plain noise */
	int weight_bits; /* fraction bits of a weight */
	int offset;	 /* what is added to a weight: 0 or 1 */
};

#ifdef __cplusplus
extern "C" {
#endif

/* `input` is any tensor input of a problem that rms_match took; `offset` as rms.h has it. Host only. */
struct rms_recipe rms_recipe_of(const struct op_case *c, int offset, int input);

#ifdef __cplusplus
}
#endif

HOST_DEVICE static inline float rms_weight(const struct rms_recipe *f, uint32_t random)
{
	if (f->offset != 0) {
		float weight = uniform_signed(random, 20) * float_power(3 - (int)(random % 9));

		return f->second && (random & 0x700) != 0 && weight < 0 ? -weight : weight;
	}
	uint32_t fraction = random >> (32 - f->weight_bits);
	float magnitude = (float)((1u << f->weight_bits) + fraction) * float_power(3 - f->weight_bits - (int)(random % 6));

	return random & 0x100 ? magnitude : -magnitude;
}

/* The probe: |hidden| on [1, 2) times the least power of two, residual 0; so far below any epsilon that the answer's
 * size is x w / sqrt(eps). */
HOST_DEVICE static inline float rms_probe(const struct rms_recipe *f, uint32_t random)
{
	float magnitude = (float)(128 + (random >> 25)) * float_power(f->least - 7);

	if (f->part == RMS_RESIDUAL)
		return 0;
	return random & 1 ? magnitude : -magnitude;
}

/* A spike of magnitude 2^exponent in the first rows and of up to twice that beyond, or the residual beside it. Hidden and
 * residual must agree in sign, so the sign is of the place, not of the random bits. */
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
		return noise * 0.25f + (f->part != RMS_HIDDEN ? 0.0f : f->second ? -1.0f : 1.0f); /* exact: 23 bits */
	case 3:
		return noise * (f->second ? 2048 : 8192);
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

/* The element of a row and column of the input that `f` was made for, from its random bits: to be rounded to the input's
 * dtype with number_store. */
HOST_DEVICE static inline float rms_at(const struct rms_recipe *f, int64_t row, int64_t column, uint32_t random)
{
	float noise = uniform_signed(random, 20);

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

/* Element `index`. */
HOST_DEVICE static inline float rms_element(const struct rms_recipe *f, int64_t index, uint32_t random)
{
	return rms_at(f, index / f->columns, index % f->columns, random);
}

#endif
