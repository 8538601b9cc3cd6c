/* moe inputs - the value of every element of hidden states, weights and scales, the same on CPU and GPU. What routes
 * tokens (logits, a bias, chosen experts) is structure: traffic.h.
 *
 *   hidden states, and weights of 8 bits: uniform in 256 steps, rounded to the dtype. Where a scale or a factor goes with
 *     them, the first contents are those of a quantiser, up to 448 with small scales; the second are below 1, down to
 *     float8's subnormals, with scales on both sides of 1. Hidden states of 16 and 32 bits are on [-1, 1), then on [-8, 8); beside weights of as
 *     many that have no scale they are as small in the first contents as lets the first product's weights reach 16;
 *   weights of 16 and 32 bits: uniform on [-1, 1) in 2^16 steps, which neither 8-bit floats nor bfloat16 hold;
 *   scales and factors: uniform on [0.5, 2) in steps of 2^-21 of their power of two: none is like its neighbour, and a
 *     scale of powers of two does not hold them.
 *
 * A power of two, on the scales of weights if they have any, else on the weights, makes products neither vanish nor
 * saturate: "up" and gate have standard deviations between 1 and 2 or so, an expert's output between 0.5 and 1. Every
 * other expert is steep (the odd ones in the first contents, the even ones in the second): its gates are 8 times as
 * large, in the second contents 64 times, so that silu saturates on both sides, an exponential of a gate overflows, and
 * what goes into the second product is beyond 448; and its second product takes the 8 or 64 back. */
#ifndef REFTEST_KERNELS_MOE_INPUTS_H
#define REFTEST_KERNELS_MOE_INPUTS_H

#include <stdint.h>

#include "kernels/inputs.h"
#include "kernels/moe/routing.h"
#include "kernels/op.h"

enum moe_kind { MOE_STRUCTURE, MOE_UNIFORM, MOE_FINE, MOE_SCALE };

/* Everything an element depends on; plain data, given to the GPU by value. */
struct moe_fill {
	uint64_t key;
	enum moe_kind kind;
	int exponent; /* of the power of two */
	int times;    /* of MOE_UNIFORM: 7 for codes up to 448, else 1 */
	/* Elements whose index, modulo `period`, is in [from, until) have `extra` in their exponent. 0: none has. */
	int64_t period, from, until;
	int extra;
};

/* Elements that one block of Philox makes: of an octet, of half a word, or of a word each. */
HOST_DEVICE static inline int moe_together(enum moe_kind kind)
{
	return kind == MOE_SCALE ? 4 : kind == MOE_FINE ? 8 : 16;
}

/* Element `index`, by the Philox block with the number index / moe_together(); to be rounded with number_store. */
HOST_DEVICE static inline float moe_element(const struct moe_fill *f, int64_t index, const struct philox *random)
{
	int place = (int)(index & (moe_together(f->kind) - 1)), exponent = f->exponent;

	if (f->period > 0 && index % f->period >= f->from && index % f->period < f->until)
		exponent += f->extra;
	if (f->kind == MOE_SCALE) /* (2^20 + 3 m) / 2^21, m below 2^20 */
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

/* Host only. */
struct moe_fill moe_fill_of(const struct op_case *c, const struct moe_roles *roles, int input);

#ifdef __cplusplus
}
#endif
#endif
