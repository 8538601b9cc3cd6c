/* moe inputs - computes the elements of hidden states, weights and scales. The CPU and the GPU compute the same values.
 * For the inputs that route tokens (logits, a bias, given experts), see traffic.h.
 *
 *   Hidden states and 8-bit weights: Uniform in 256 steps, rounded to the dtype. If an input has a scale or a factor,
 *     its values in the first set resemble quantised data: they are numbers up to 448 with small scales. In the second
 *     set, they are numbers below 1, down to float8's subnormals, with scales on both sides of 1. Hidden states of 16
 *     and 32 bits are on [-1, 1) in the first set. In the second set, they are on [-8, 8), or on [-2^16, 2^16) if two
 *     dtypes have a wider range than float16: that of the hidden states, and that of the input by which the first
 *     product is scaled (see below). In the first set, if the weights have 16 or 32 bits and no scale, the hidden
 *     states are smaller, and the weights of the first product reach 16.
 *   Weights of 16 and 32 bits: Uniform on [-1, 1) in 2^16 steps, which 8-bit floats and bfloat16 cannot represent
 *     exactly.
 *   Scales and factors: A power of two times a number that is uniform on [0.5, 2), in steps of 2^-21. Neighbouring
 *     scales differ, and a dtype that has only powers of two (float8_e8m0fnu) cannot represent them. In the second set,
 *     some scales and factors are 2^10 times as large if their dtype has a wider range than float16, and others are
 *     smaller by the same factor.
 *
 * Inputs are scaled by powers of two, so that the standard deviations of "up" and gate are between about 1 and 2, and
 * the standard deviation of an expert's output is between 0.5 and 1. There is one exception: if "up" and gate have
 * different factors, the standard deviation of "up" is 2^10 times larger or smaller in the second set. To scale a
 * matrix product by a power of two, its factor is multiplied by this power. If the product has no factor, the scales of
 * its weights are multiplied; if it has no scales either, the weights are multiplied. Every second expert is steep: the
 * odd experts in the first set, the even experts in the second. The gates of a steep expert are 8 times as large as
 * those of other experts (64 times in the second set). With gates of this size, silu(gate) is nearly 0 or nearly the
 * gate, the exponential overflows, and inputs of the second product exceed 448. The second product of a steep expert is
 * scaled down by the same number, 8 or 64. */
#ifndef REFTEST_KERNELS_MOE_INPUT_VALUES_H
#define REFTEST_KERNELS_MOE_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"
#include "kernels/moe/routing.h"

enum moe_kind { MOE_STRUCTURE, MOE_UNIFORM, MOE_FINE, MOE_SCALE };

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct moe_fill {
	uint64_t key;
	enum moe_kind kind;
	int exponent; /* the elements are multiplied by 2^exponent */
	int times;    /* for MOE_UNIFORM: 7 if the magnitudes reach 448, else 1 */
	/* If `period` is above 0, elements whose index modulo `period` is in [from, until) are multiplied by
	 * 2^(exponent + extra). */
	int64_t period, from, until;
	int extra;
};

/* Returns the number of elements that are computed from one Philox block of four words. Depending on the kind, an
 * element uses one byte, half a word, or one word. */
HOST_DEVICE static inline int moe_together(enum moe_kind kind)
{
	return kind == MOE_SCALE ? 4 : kind == MOE_FINE ? 8 : 16;
}

/* Computes element `index` of an input from the Philox block with number index / moe_together(). The caller converts
 * the element to the input's dtype with dtype_store_float. */
HOST_DEVICE static inline float moe_element(const struct moe_fill *f, int64_t index, const struct philox *random)
{
	int place = (int)(index & (moe_together(f->kind) - 1)), exponent = f->exponent;

	if (f->period > 0 && index % f->period >= f->from && index % f->period < f->until)
		exponent += f->extra;
	if (f->kind == MOE_SCALE) /* the value is (2^20 + 3 m) / 2^21, where m is below 2^20 */
		return (float)((1u << 20) + 3 * (random->word[place] >> 12)) * float_power(exponent - 21);
	if (f->kind == MOE_FINE)
		return (float)((int)(random->word[place / 2] >> 16 * (place % 2) & 0xffff) - 32768) *
		       float_power(exponent - 15);
	return (float)(f->times * ((int)(random->word[place / 4] >> 8 * (place % 4) & 0xff) - 128)) *
	       float_power(exponent - 7);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Only host code calls this function. */
struct moe_fill moe_fill_of(const struct op_case *c, const struct moe_roles *roles, int input);

/* A copy within an input. The copy is made after the input is filled, and makes two experts equal (traffic.h). Offsets
 * and length are in bytes. The length is 0 if there is nothing to copy. Host only. */
struct moe_copy {
	int64_t from, to, bytes;
};
struct moe_copy moe_copy_of(const struct op_case *c, const struct moe_roles *roles, int input);

#ifdef __cplusplus
}
#endif
#endif
