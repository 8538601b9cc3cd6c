/* moe inputs - the value of every element of hidden states, weights and scales, the same on CPU and GPU. What routes
 * tokens (logits, a bias, chosen experts) is structure: traffic.h.
 *
 *   hidden states, and weights of 8 bits: uniform on [-1, 1) in 256 steps, rounded to the dtype;
 *   weights of 16 and 32 bits: uniform on [-1, 1) in 2^16 steps, which neither 8-bit floats nor bfloat16 hold;
 *   scales and factors: uniform on [0.5, 2) in steps of 2^-21 of their power of two: none is like its neighbour, and a
 *     scale of powers of two does not hold them.
 *
 * A power of two, on the scales of weights if they have any, else on the weights, makes products neither vanish nor
 * saturate: "up" and gate have standard deviations between 1 and 2 or so, an expert's output between 0.5 and 1. */
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
};

/* Elements that one block of Philox makes: of an octet, of half a word, or of a word each. */
HOST_DEVICE static inline int moe_together(enum moe_kind kind)
{
	return kind == MOE_SCALE ? 4 : kind == MOE_FINE ? 8 : 16;
}

/* Element `index`, by the Philox block with the number index / moe_together(); to be rounded with number_store. */
HOST_DEVICE static inline float moe_element(const struct moe_fill *f, int64_t index, const struct philox *random)
{
	int place = (int)(index & (moe_together(f->kind) - 1));

	if (f->kind == MOE_SCALE) /* (2^20 + 3 m) / 2^21, m below 2^20 */
		return (float)((1u << 20) + 3 * (random->word[place] >> 12)) * float_power(f->exponent - 21);
	if (f->kind == MOE_FINE)
		return (float)((int)(random->word[place / 2] >> 16 * (place % 2) & 0xffff) - 32768) *
		       float_power(f->exponent - 15);
	return (float)((int)(random->word[place / 4] >> 8 * (place % 4) & 0xff) - 128) * float_power(f->exponent - 7);
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
