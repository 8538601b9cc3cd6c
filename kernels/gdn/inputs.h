/* gdn inputs - the value of every element of a gated delta net's inputs, the same on CPU and GPU.
 *
 * A state is small against what one token reads, writes and forgets, so values are sized such that each part of the
 * recurrence moves the answer by far more than its bound:
 *   k          norm near 1 (or its norm inside: 1, 2 or 4 by turns), so that 1 - beta |k|^2 contracts
 *   q          uniform on [-1, 1); where token + head is odd it points where k does, and so reads what was just
 *              written; elsewhere it reads what the state held before. Its norm inside: times 1, 2 or 4 by turns
 *   v          uniform on [-1, 1)
 *   state      uniform on [-1/2, 1/2), in every slot, whether a sequence has it or not: all of them are in the output
 *   A_log      by head % 4 near -3, -1, 1, -5: decays from hardly any to nearly all at each token, so that early tokens
 *              and the initial state count at the end of a long sequence, and late ones too
 *   a, dt_bias uniform on [-2, 2): where softplus bends. Of (5 token + head) % 16, a is -24 for 3 (no decay) and 96 for
 *              11 (where exp in float32 overflows and softplus must not)
 *   b          uniform on [-4, 4)
 *   buffer     of intermediate states, which is only written: magnitude 64 to 128 and either sign, so that what was not
 *              written, or was added to, shows. No NaN: the whole buffer is compared
 * Sequences of a packed batch (gdn.c) have 65, 1, 64, 9, 63, 128 tokens by turns, in proportion if there are fewer.
 * Slots are distinct and in random order. */
#ifndef REFTEST_KERNELS_GDN_INPUTS_H
#define REFTEST_KERNELS_GDN_INPUTS_H

#include <stdint.h>

#include "kernels/gdn/roles.h"
#include "kernels/inputs.h"

enum gdn_part { GDN_Q, GDN_K, GDN_V, GDN_STATE, GDN_A_LOG, GDN_A, GDN_DT_BIAS, GDN_B, GDN_BUFFER };

/* Everything a float element depends on; plain data, given to the GPU by value. */
struct gdn_fill {
	uint64_t key, k_key; /* k_key: of k, when q follows it */
	int part;            /* enum gdn_part */
	int follows, l2norm;
	int64_t heads, dim; /* of q, k, v; a and b: heads, 1 */
	int eighths;        /* k's elements are uniform on eighths / 8 * 2^exponent */
	int exponent;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Host only. */
struct gdn_fill gdn_fill_of(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

HOST_DEVICE static inline float gdn_gate(int64_t token, int64_t head, float value)
{
	int64_t kind = (5 * token + head) % 16;

	return kind == 3 ? -24.0f : kind == 11 ? 96.0f : 2 * value;
}

HOST_DEVICE static inline float gdn_a_log(int64_t head, float value)
{
	return value * 0.5f + (head % 4 == 0 ? -3.0f : head % 4 == 1 ? -1.0f : head % 4 == 2 ? 1.0f : -5.0f);
}

HOST_DEVICE static inline float gdn_untouched(float value)
{
	return value < 0 ? value * 64 - 64 : value * 64 + 64;
}

HOST_DEVICE static inline float gdn_query(const struct gdn_fill *f, int64_t index, int64_t turn, float value)
{
	if (f->follows && turn % 2 == 1)
		value = uniform_signed(philox_bits(f->k_key, index), 20);
	return f->l2norm ? value * float_power((int)((turn + 1) % 3)) : value;
}

/* Element `index` of the input that `f` was made for, from its random bits: to be rounded with number_store. */
HOST_DEVICE static inline float gdn_element(const struct gdn_fill *f, int64_t index, uint32_t random)
{
	float value = uniform_signed(random, 20);
	int64_t row = index / f->dim, token = row / f->heads, head = row % f->heads, turn = token + head;

	switch (f->part) {
	case GDN_Q:
		return gdn_query(f, index, turn, value);
	case GDN_K:
		return value * (float)f->eighths * float_power(f->exponent - 3 + (f->l2norm ? (int)(turn % 3) : 0));
	case GDN_STATE:
		return value * 0.5f;
	case GDN_A_LOG:
		return gdn_a_log(index, value);
	case GDN_A:
		return gdn_gate(token, head, value);
	case GDN_DT_BIAS:
		return value * 2;
	case GDN_B:
		return value * 4;
	case GDN_BUFFER:
		return gdn_untouched(value);
	default:
		return value;
	}
}

#endif
