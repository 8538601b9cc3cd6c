/* gdn inputs - the value of every element of a gated delta net's inputs, the same on CPU and GPU.
 *
 * They are those of kernels/recurrence_inputs.h: k, q, v, the state, A_log, a (its g before softplus), dt_bias and b (its
 * beta before a sigmoid), for both contents. Beside them
 *   state      in every slot, whether a sequence has it or not: all of them are in the output
 *   buffer     of intermediate states, which is only written: magnitude 64 to 128 and either sign, so that what was not
 *              written, or was added to, shows. No NaN: the whole buffer is compared
 * Sequences of a packed batch: recurrence_fill_offsets. Slots are distinct and in random order; where nothing is written to
 * them, the second contents have two sequences for each. */
#ifndef REFTEST_KERNELS_GDN_INPUTS_H
#define REFTEST_KERNELS_GDN_INPUTS_H

#include <stdint.h>

#include "kernels/gdn/roles.h"
#include "kernels/inputs.h"
#include "kernels/recurrence_inputs.h"

enum gdn_part { GDN_Q, GDN_K, GDN_V, GDN_STATE, GDN_A_LOG, GDN_A, GDN_DT_BIAS, GDN_B, GDN_BUFFER };

/* Everything a float element depends on; plain data, given to the GPU by value. */
struct gdn_fill {
	uint64_t key, k_key; /* k_key: of k, when q follows it */
	int part;            /* enum gdn_part */
	int follows, l2norm;
	bool second; /* contents */
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

HOST_DEVICE static inline float gdn_untouched(float value)
{
	return value < 0 ? value * 64 - 64 : value * 64 + 64;
}

HOST_DEVICE static inline float gdn_state(const struct gdn_fill *f, float value)
{
	return value * 0.5f * (f->second ? RECURRENCE_LARGER : 1);
}

HOST_DEVICE static inline float gdn_key(const struct gdn_fill *f, int64_t turn, float value)
{
	int quarters = f->l2norm || turn % 4 < 2 ? 4 : turn % 4 == 2 ? 5 : 2;

	return recurrence_key_element(f->eighths, f->exponent, quarters, f->l2norm ? recurrence_longer(f->second, turn) : 0,
	                              value);
}

HOST_DEVICE static inline float gdn_query(const struct gdn_fill *f, int64_t index, int64_t turn, float value)
{
	if (f->follows && turn % 2 == 1)
		value = uniform_signed(philox_bits(f->k_key, index), 20);
	return f->l2norm ? value * float_power(recurrence_longer(f->second, turn + 1)) : value;
}

/* Element `index` of the input that `f` was made for, in its row of f->dim, from its random bits: to be rounded with
 * number_store. */
HOST_DEVICE static inline float gdn_at(const struct gdn_fill *f, int64_t row, int64_t index, uint32_t random)
{
	float value = uniform_signed(random, 20), larger = f->second ? RECURRENCE_LARGER : 1;
	int64_t token = row / f->heads, head = row % f->heads, turn = token + head;

	switch (f->part) {
	case GDN_Q:
		return gdn_query(f, index, turn, value);
	case GDN_K:
		return gdn_key(f, turn, value);
	case GDN_STATE:
		return gdn_state(f, value);
	case GDN_A_LOG:
		return recurrence_a_log(f->second, index, value);
	case GDN_A:
		return recurrence_raw_gate(f->second, 5 * token + head, value);
	case GDN_DT_BIAS:
		return recurrence_bias(f->second, value);
	case GDN_B:
		return recurrence_logit(f->second, 5 * token + head, value);
	case GDN_BUFFER:
		return gdn_untouched(value);
	default:
		return value * larger;
	}
}

HOST_DEVICE static inline float gdn_element(const struct gdn_fill *f, int64_t index, uint32_t random)
{
	return gdn_at(f, index / f->dim, index, random);
}

#endif
