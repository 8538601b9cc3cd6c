/* gdn inputs - computes the inputs of a gated delta net. The CPU and the GPU compute the same values.
 *
 * kernels/common/linear_attention/input_values.h describes both sets of values; in that file, a is called g, and b is
 * called beta. Softplus is applied to a + dt_bias, and a sigmoid to b. Two inputs are described only here:
 *
 *   state      Every slot has a state, even if no sequence uses the slot, because the output contains all slots. States
 *              are huge only if every sequence has one token and the case has no slots.
 *   buffer     The buffer of intermediate states. A reference writes the buffer and does not read it. The buffer's
 *              initial elements have magnitudes of 64 to 128 and both signs. If a reference does not write an element,
 *              or adds the new value to the initial one, the error of that element is large. No initial element is NaN:
 *              the whole buffer is compared, including the elements that no reference writes, and NaN does not equal
 *              itself.
 *
 * recurrence_fill_offsets divides the tokens of a packed batch into sequences. Slots are distinct and in random order
 * (recurrence_shuffle_slots). If sequences only read their slots, two sequences share each slot in the second set of
 * values. */
#ifndef REFTEST_KERNELS_GDN_INPUT_VALUES_H
#define REFTEST_KERNELS_GDN_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/common/linear_attention/input_values.h"
#include "kernels/core/random_inputs.h"
#include "kernels/gdn/roles.h"

enum gdn_part { GDN_Q, GDN_K, GDN_V, GDN_STATE, GDN_A_LOG, GDN_A, GDN_DT_BIAS, GDN_B, GDN_BUFFER };

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct gdn_fill {
	uint64_t key, k_key; /* k_key: the key for the random numbers of k; those rows of q that have the direction of
			      * a row of k use it too */
	int part;            /* enum gdn_part */
	int follows, l2norm;
	bool second; /* is this the second set of values? */
	bool doubtful; /* are the elements of b, the logits of beta, in [0, 1)? */
	int64_t heads, dim; /* lengths of the axes after the tokens; dim is 1 for a and b */
	int eighths;        /* the elements of k are uniform on [-1, 1) * eighths / 8 * 2^exponent */
	int exponent;
	bool has_alike;  /* do the first tokens have nearly equal rows of k? */
	int64_t sharing; /* how many heads of this input share one head of k */
	struct recurrence_alike alike;
	bool single;     /* does every sequence n have one token, and use state n? */
	bool for_gradients; /* does the case check gradients? Such a case has no short rows of q and no huge values */
	int short_query; /* a short row of q is multiplied by 2^short_query if q is normalised */
};

#ifdef __cplusplus
extern "C" {
#endif

/* Only host code calls this function. */
struct gdn_fill gdn_fill_of(const struct op_case *c, int input);
/* Fills an input of a gradient case with recurrence_fill_for_gradients. */
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

/* Returns the factor by which all elements of one head's state are multiplied. `row` is the index of this state among
 * the states of all heads of all sequences or slots. */
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

	int longer = f->l2norm ? recurrence_longer(f->second, f->for_gradients, turn) : 0;

	value = recurrence_key_element(f->eighths, f->exponent, quarters, longer, value);
	if (f->for_gradients || alike || !recurrence_has_spike(true, turn))
		return value;
	return recurrence_spiked(RECURRENCE_SPIKE * float_power(longer), turn, index % f->dim, f->dim, value);
}

HOST_DEVICE static inline float gdn_query(const struct gdn_fill *f, int64_t index, int64_t turn, bool alike, float value)
{
	if (f->follows && turn % 2 == 1)
		value = alike ? recurrence_alike_element(f->k_key, index, f->heads * f->dim)
		              : uniform_signed(philox_bits(f->k_key, index), 20);
	if (!f->for_gradients && !alike && recurrence_has_spike(false, turn))
		value = recurrence_spiked(RECURRENCE_QUERY_SPIKE, turn, index % f->dim, f->dim, value);
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
