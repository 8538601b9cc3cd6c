/* activation inputs - where gate and factor lie, and the value of every input element, the same on CPU and GPU.
 *
 * The first half of a row is the gate: uniform on [-s, s) with s = 8, 4, 2, 1 in turn (16, 8, 4, 1/2 in the second
 * contents), since activations differ where they bend; every 16th row has s = 128 (1024), where an exponential that is not
 * looked after overflows and everything has saturated. The second half, by which the activation is multiplied, is uniform
 * on [-2, 2), and on [-128, 128) (1024) beside the gates of s = 1 (1/2) in every 16th row: a limit to either is
 * passed on both sides. In row 7 of 16 both are large: gates of 256 … 512 in magnitude, factors up to 1024, whose product
 * float16 does not hold (where the dtype is float16: 128 … 256 and up to 128). In row 11 the gates are below 2^-15, which
 * float16 has as subnormals, and the factors large: a gate that is flushed to zero shows, and one, or an activation, that
 * passes through float16 where the dtype is not that. In float16 they are multiples of 2^-23, whose halves, which is what
 * activations make of them, float16 holds: a reference may stay in its dtype. */
#ifndef REFTEST_KERNELS_ACTIVATION_INPUTS_H
#define REFTEST_KERNELS_ACTIVATION_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variants. */
enum { ACTIVATION_SILU, ACTIVATION_GELU, ACTIVATION_GELU_TANH };

/* Everything an element depends on; plain data, given to the GPU by value. */
struct activation_fill {
	uint64_t key;
	int64_t half; /* columns of the output */
	int second;   /* the second contents */
	int gate, up; /* where both are large: exponents of the smallest gate and of the factors' limit */
	int fine;     /* fraction bits of the smallest gates */
};

/* Host only. */
static inline struct activation_fill activation_fill_of(const struct op_case *c)
{
	const struct op_arg *input = &c->problem->inputs[0];
	int narrow = input->dtype == DTYPE_FLOAT16;
	struct activation_fill f = {input_key(c, 0),
				    c->axis[input->axis[input->rank - 1]] / 2,
				    c->contents == CONTENTS_SECOND,
				    narrow ? 7 : 8,
				    narrow ? 7 : 10,
				    narrow ? 8 : 20};

	return f;
}

/* The element of a row and column from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float activation_at(const struct activation_fill *f, int64_t row, int64_t column,
                                              uint32_t random)
{
	float noise = uniform_signed(random, 20);
	int gate = f->second ? 4 - (int)(row % 4) - (row % 4 == 3 ? 2 : 0) : 3 - (int)(row % 4), wide = f->second ? 10 : 7;

	if (row % 16 == 7 && column < f->half) /* none where 1 + erf(x) cancels: what is lost there would be multiplied */
		return (noise + (noise < 0 ? -1.0f : 1.0f)) * float_power(f->gate);
	if (row % 16 == 7)
		return noise * float_power(f->up);
	if (column >= f->half)
		return noise * float_power(row % 16 == 3 || row % 16 == 11 ? wide : 1);
	if (row % 16 == 11)
		return uniform_signed(random, f->fine) * float_power(-15);
	return noise * float_power(row % 16 == 15 ? wide : gate);
}

/* Element `index`. */
HOST_DEVICE static inline float activation_element(const struct activation_fill *f, int64_t index, uint32_t random)
{
	return activation_at(f, index / (2 * f->half), index % (2 * f->half), random);
}

#endif
