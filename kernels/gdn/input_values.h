/* gdn inputs - computes the inputs of a gated delta net. The CPU and the GPU compute the same values.
 *
 * kernels/common/linear_attention/input_values.h describes both sets of values. There, a is called g (before softplus),
 * and b is called beta (before a sigmoid). Only two inputs are described here:
 *
 *   state      Every slot has a state, even if no sequence uses the slot, because the output contains all slots. States
 *              are huge only if every sequence has one token and there are no slots.
 *   buffer     A reference writes to the buffer of intermediate states and does not read it. Its initial elements have
 *              magnitudes of 64 to 128 and both signs. An element therefore has a large error if the reference does not
 *              write it, or adds the new value to it. No element is NaN, because the whole buffer is compared.
 *
 * recurrence_fill_offsets divides the tokens of a packed batch into sequences. The slots of sequences are different and
 * in random order (recurrence_shuffle_slots). But if sequences only read their slots, two sequences share each slot in
 * the second set of values. */
#ifndef REFTEST_KERNELS_GDN_INPUT_VALUES_H
#define REFTEST_KERNELS_GDN_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/common/linear_attention/input_values.h"
#include "kernels/core/random_inputs.h"
#include "kernels/gdn/roles.h"

enum gdn_part { GDN_Q, GDN_K, GDN_V, GDN_STATE, GDN_A_LOG, GDN_A, GDN_DT_BIAS, GDN_B, GDN_BUFFER };

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct gdn_fill {
	uint64_t key, k_key; /* k_key: the Philox key of input k, for rows of q that have the direction of k */
	int part;            /* a value of enum gdn_part */
	int follows, l2norm;
	bool second; /* whether this is the second set of values */
	bool doubtful; /* whether the logits of beta are in [0, 1) */
	int64_t heads, dim; /* lengths of the axes after the tokens; dim is 1 for a and b */
	int eighths;        /* the elements of k are uniform on [-1, 1) * eighths / 8 * 2^exponent */
	int exponent;
	bool has_alike;  /* whether the first tokens have alike keys */
	int64_t sharing; /* number of heads of this input that use one head of k */
	struct recurrence_alike alike;
	bool single;     /* whether every sequence has one token; the state of sequence n is then state n */
	bool for_gradients; /* whether this is a case of gradients, which has no short rows of q and no huge values */
	int short_query; /* if q is normalised, a short row of q is multiplied by 2^short_query */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Host only. */
struct gdn_fill gdn_fill_of(const struct op_case *c, int input);
/* Fills an input of a gradient case, as recurrence_fill_for_gradients does. */
int gdn_fill_for_gradients(const struct op_case *c, int input, struct tensor *out, struct err *err);

#ifdef __cplusplus
}
#endif

HOST_DEVICE static inline float gdn_untouched(float value)
{
	return value < 0 ? value * 64 - 64 : value * 64 + 64;
}

/* Returns true if a value head has huge values (recurrence_has_huge). */
HOST_DEVICE static inline bool gdn_has_huge(const struct gdn_fill *f, int64_t head)
{
	return !f->for_gradients && recurrence_has_huge(RECURRENCE_ERASES_BY_SOFTPLUS, f->second, head);
}

/* Returns the factor by which all elements of a state are multiplied. `row` is the index of one head's state among the
 * states of all sequences or slots. */
HOST_DEVICE static inline float gdn_state_size(const struct gdn_fill *f, int64_t row)
{
	bool huge = f->single && recurrence_erases_huge(row / f->heads) && gdn_has_huge(f, row % f->heads);

	return 0.5f * (f->second ? RECURRENCE_LARGER : 1) * (huge ? RECURRENCE_HUGE : 1);
}

HOST_DEVICE static inline float gdn_key(const struct gdn_fill *f, int64_t index, int64_t turn, bool alike, float value)
{
	int quarters = f->l2norm || alike || turn % 4 < 2 ? 4 : turn % 4 == 2 ? 5 : 2;

	if (alike)
		value = recurrence_alike_element(f->k_key, index, f->heads * f->dim);
	return recurrence_key_element(f->eighths, f->exponent, quarters,
	                              f->l2norm ? recurrence_longer(f->second, f->for_gradients, turn) : 0, value);
}

HOST_DEVICE static inline float gdn_query(const struct gdn_fill *f, int64_t index, int64_t turn, bool alike, float value)
{
	if (f->follows && turn % 2 == 1)
		value = alike ? recurrence_alike_element(f->k_key, index, f->heads * f->dim)
		              : uniform_signed(philox_bits(f->k_key, index), 20);
	if (!f->l2norm)
		return value;
	return value * float_power(!f->for_gradients && !alike && recurrence_is_short_query(turn)
	                               ? f->short_query
	                               : recurrence_longer(f->second, f->for_gradients, turn + 1));
}

/* Computes element `index` of an input from its random bits. `row` is the index of the element's row, where rows have
 * f->dim elements. The caller converts the element to the input's dtype with dtype_store_float. */
HOST_DEVICE static inline float gdn_at(const struct gdn_fill *f, int64_t row, int64_t index, uint32_t random)
{
	float value = uniform_signed(random, 20), larger = f->second ? RECURRENCE_LARGER : 1;
	int64_t token = row / f->heads, head = row % f->heads, turn = token + head;
	bool alike = f->has_alike && recurrence_is_alike(token, head / f->sharing);
	bool has_huge = !alike && gdn_has_huge(f, head);

	switch (f->part) {
	case GDN_Q:
		return gdn_query(f, index, turn, alike, value);
	case GDN_K:
		return gdn_key(f, index, turn, alike, value);
	case GDN_STATE:
		return value * gdn_state_size(f, row);
	case GDN_A_LOG:
		return recurrence_a_log(f->second, index, value);
	case GDN_A:
		return recurrence_softplus_gate(f->second, has_huge && recurrence_erases_huge(token), head,
		                                alike ? (int64_t)RECURRENCE_KEEPS_ALL : 5 * token + head, value);
	case GDN_DT_BIAS:
		return recurrence_bias(f->second, index, value);
	case GDN_B:
		if (alike)
			return f->alike.beta + value * f->alike.spread;
		return recurrence_logit(f->second, f->doubtful, 5 * token + head, value);
	case GDN_BUFFER:
		return gdn_untouched(value);
	default:
		return value * larger *
		       (has_huge && !f->single && recurrence_writes_huge(token) ? RECURRENCE_HUGE : 1);
	}
}

HOST_DEVICE static inline float gdn_element(const struct gdn_fill *f, int64_t index, uint32_t random)
{
	return gdn_at(f, index / f->dim, index, random);
}

#endif
