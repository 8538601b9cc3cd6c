/* activation inputs - the positions of gate and factor in a row, and functions that compute each input element. A GPU
 * computes the same values as the CPU.
 *
 * The first half of a row is the gate. Gates are uniform on [-s, s). Successive rows have s = 8, 4, 2 and 1 (in the
 * second set of values 16, 8, 4 and 1/2), because silu and gelu differ most at such small gates. Rows with row % 16 ==
 * 15 have s = 128 (in the second set 1024): a naive exponential overflows there, and every activation is saturated. The
 * second half of a row, the factor by which the activation is multiplied, is uniform on [-2, 2). In rows with row % 16
 * == 3 the factor is uniform on [-128, 128), in the second set on [-1024, 1024). If a reference clamps gates or
 * factors, large gates and large factors make this mistake visible.
 *
 * In rows with row % 16 == 7 both halves are large, and the product overflows float16. Gates have magnitudes from 256
 * to 512, and factors have magnitudes up to 1024. For float16 inputs, gates have magnitudes from 128 to 256, and
 * factors have magnitudes up to 128. In the second set of float16 values, gates are between -512 and -256, and factors
 * have magnitudes up to 512: the product of gate and factor overflows, but the correct result is 0. In rows with row %
 * 16 == 11, the factors are large and the gates are below 2^-15, where float16 is subnormal. These rows detect
 * references that flush such gates to zero, and references that convert gates or activations to float16 although the
 * tensor has another dtype. If the input is float16, gates below 2^-15 are multiples of 2^-23. The activation of such a
 * gate is half the gate, which float16 represents exactly. A reference that computes this activation in float16 is
 * therefore correct.
 *
 * For silu, rows with row % 16 == 9 have gates from -32 to -16 and factors up to 2^40. The values of silu are small,
 * but their products with the factors are large. A reference that rounds the sigmoid of a gate in these rows to 0 is
 * therefore wrong. If a tensor is float16, or if the activation is gelu, rows with row % 16 == 9 are like ordinary
 * rows: for gates from -32 to -16, silu is 0 in float16, and the terms of gelu cancel.
 *
 * Rows with row % 16 == 13 have gates from -256 to -128 and factors up to 2^126, unless a tensor is float16. The
 * product of gate and factor overflows float32, but the activation is below 2^-170 in magnitude, and therefore 0 in
 * float32. The correct result is thus 0 or below 1e-15. */
#ifndef REFTEST_KERNELS_ACTIVATION_INPUT_VALUES_H
#define REFTEST_KERNELS_ACTIVATION_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The variants that op.match returns. */
enum { ACTIVATION_SILU, ACTIVATION_GELU, ACTIVATION_GELU_TANH };

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct activation_fill {
	uint64_t key;
	int64_t half; /* number of columns of the output */
	int second;   /* is this the second set of values? */
	int gate, up; /* in rows with large gates and factors: log2 of the smallest |gate| and of the largest
		       * |factor| */
	int negative; /* are all large gates negative? */
	int fine;     /* the number of fraction bits of gates below 2^-15 */
	int deep;     /* are there rows with negative gates and very large factors? */
	int huge;     /* are there rows where the product of gate and factor overflows float32? */
};

enum { ACTIVATION_DEEP_ROW = 9, ACTIVATION_DEEP_UP = 40 };
enum { ACTIVATION_HUGE_ROW = 13, ACTIVATION_HUGE_UP = 126 };

static inline struct activation_fill activation_fill_of(const struct op_case *c)
{
	const struct op_arg *input = &c->problem->inputs[0];
	int narrow = input->dtype == DTYPE_FLOAT16, second = c->contents == CONTENTS_SECOND;
	struct activation_fill f;

	f.key = input_key(c, 0);
	f.half = c->axis[input->axis[input->rank - 1]] / 2;
	f.second = second;
	f.gate = narrow && !second ? 7 : 8;
	f.up = !narrow ? 10 : second ? 9 : 7;
	f.negative = narrow && second;
	f.fine = narrow ? 8 : 20;
	f.huge = !narrow && c->problem->outputs[0].dtype != DTYPE_FLOAT16;
	f.deep = c->variant == ACTIVATION_SILU && f.huge;
	return f;
}

/* Computes the element at a row and column from its random bits. The caller converts the element to the input's dtype
 * with dtype_store_float. */
HOST_DEVICE static inline float activation_at(const struct activation_fill *f, int64_t row, int64_t column,
                                              uint32_t random)
{
	float noise = uniform_signed(random, 20);
	int gate = f->second ? 4 - (int)(row % 4) - (row % 4 == 3 ? 2 : 0) : 3 - (int)(row % 4), wide = f->second ? 10 : 7;

	/* In rows with row % 16 == 7, |gate| is so large that the terms of 1 + erf(x) do not cancel. If they cancelled,
	 * the large factor would magnify the error. */
	if (row % 16 == 7 && column < f->half)
		return (noise < 0 ? noise - 1 : f->negative ? -noise - 1 : noise + 1) * float_power(f->gate);
	if (row % 16 == 7)
		return noise * float_power(f->up);
	if (f->deep && row % 16 == ACTIVATION_DEEP_ROW)
		return column < f->half ? -24 - 8 * noise : noise * float_power(ACTIVATION_DEEP_UP);
	if (f->huge && row % 16 == ACTIVATION_HUGE_ROW)
		return column < f->half ? -192 - 64 * noise : noise * float_power(ACTIVATION_HUGE_UP);
	if (column >= f->half)
		return noise * float_power(row % 16 == 3 || row % 16 == 11 ? wide : 1);
	if (row % 16 == 11)
		return uniform_signed(random, f->fine) * float_power(-15);
	return noise * float_power(row % 16 == 15 ? wide : gate);
}

/* Computes the element at flat index `index` of the input from its random bits. */
HOST_DEVICE static inline float activation_element(const struct activation_fill *f, int64_t index, uint32_t random)
{
	return activation_at(f, index / (2 * f->half), index % (2 * f->half), random);
}

#endif
