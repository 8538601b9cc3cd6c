/* input_values - computes the inputs of a selective state update. The CPU and the GPU compute the same values.
 *
 * The second set of values (op_case.contents) has another seed. The table gives the range of each input in the first
 * set, and in the second set if it is different there:
 *
 *   state, x  Uniform on [-1, 1), or on [-4, 4) in the second set. Every slot has a state, even if no sequence uses the
 *             slot, because the output contains all slots.
 *   B, C      Uniform on [-1, 1).
 *   dt, bias  Uniform on [-2, 2), where softplus is curved. In the second set, bias is on [-7, -2), as in models. Some
 *             elements of dt have other values, depending on the number k = (7 sequence + 3 head + element) % 64 of the
 *             element. If k is 5, dt is -24, so softplus(dt) is nearly 0, and the state hardly changes. If k is 21, dt
 *             is 96 (48 in the second set): exp(96) overflows float32, but softplus(96) must be finite. If k is 37, dt
 *             + bias is from 17 to 23: above 20, an implementation may replace softplus(x) by x. If k is 13, 29 or 45,
 *             dt is near 12, near -12, or 0. If k is 53, dt + bias is around 5.25; softplus(5.25) is 5.255, so the
 *             result is wrong if a reference replaces softplus(x) by x above 5. If softplus is not applied, dt and bias
 *             are uniform on [0, 1), except bias in the second set, which is uniform on [0, 1/8). Without softplus, dt
 *             is 12 if k is 21. If k is 5, 37 or 53, dt is -5/4 without softplus (-1/4 in the second set), and d = dt +
 *             bias is below 0. The factor exp(A d) is then above 1, and the state grows by a factor of at most e^2.6
 *             (e^4.2 in the second set).
 *   A         Uniform on (-2.0625, -0.0625], and eight times as large in the second set. Kernels use one value of A per
 *             head, but definitions declare one per element of the state. All elements of A differ, so the result
 *             changes if a reference transposes or wrongly broadcasts A.
 *   D, z      Uniform on [-4, 4). In the second set, z is on [-16, 16). In y, the term D x is half as large as the term
 *             that comes from the state.
 *
 * Large elements. If no tensor is float16, some elements are larger than the table says. In odd sequences, one element
 * in 64 of x is 64 times as large, and one in 64 of z is 100 or -100. In even sequences, one element in 32 of B, and
 * another one in 32 of C, are 32 times as large (128 times in the second set). One element in 32 of the states, and one
 * in 16 of D, are 64 times as large. No sum has a term that is the product of two large elements.
 *
 * The slots of sequences are different and in random order. If at least two sequences have a slot, slot 0 and the last
 * slot are used. Sequences 3, 11, 19, … of a batch are padding, and so are most sequences after the first 33
 * (ssu_is_padding). The elements of x, dt, B and C are NaN for padding. */
#ifndef REFTEST_KERNELS_MAMBA_SSU_INPUT_VALUES_H
#define REFTEST_KERNELS_MAMBA_SSU_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/random_inputs.h"
#include "kernels/mamba_ssu/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ssu_part { SSU_PLAIN, SSU_STATE, SSU_X, SSU_B, SSU_C, SSU_DT, SSU_DT_BIAS, SSU_A, SSU_D, SSU_Z };

/* In the second set of values, x and the states are SSU_LARGER times as large as in the first. Outputs are linear in x
 * and the states together, so outputs and tolerances are also SSU_LARGER times as large. */
enum { SSU_LARGER = 4 };

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct ssu_fill {
	uint64_t key;
	int part; /* a value of enum ssu_part */
	int softplus;
	bool second;        /* whether this is the second set of values */
	int64_t heads, dim; /* the last two axes of dt; dim is 1 if dt has one value per head */
	int64_t batch, size; /* size: the number of elements of one sequence */
	bool padded;         /* whether the elements of padding are NaN */
	int loud, at, every; /* an element is 2^loud times as large if index % every == at; if every is 0, no element is
			      * large */
	int turn;            /* only sequences n with n % 2 == turn have large elements; if turn is -1, all sequences
			      * have some */
};

/* Most sequences from this number on are padding, so that a case of many sequences is cheap. */
enum { SSU_ACTIVE = 33 };

/* Returns true if a sequence is padding. A sequence with a number n >= SSU_ACTIVE is padding, except the last sequence
 * of the batch and those for which n - 1, n or n + 1 is a power of two. */
HOST_DEVICE static inline bool ssu_is_padding(int64_t batch, int64_t sequence)
{
	int64_t low = sequence & (sequence - 1), high = (sequence + 1) & sequence, above = (sequence - 1) & (sequence - 2);

	if (sequence < SSU_ACTIVE)
		return sequence % 8 == 3;
	return low != 0 && high != 0 && above != 0 && sequence + 1 != batch;
}

struct ssu_fill ssu_fill_of(const struct op_case *c, int input);

#ifdef __cplusplus
}
#endif

HOST_DEVICE static inline float ssu_step_size(const struct ssu_fill *f, int64_t index, float value)
{
	int64_t sequence = index / f->dim / f->heads, head = index / f->dim % f->heads;
	int64_t kind = (7 * sequence + 3 * head + index % f->dim) % 64;

	if (!f->softplus)
		return kind == 21 ? 12.0f : kind % 16 == 5 ? (f->second ? -0.25f : -1.25f) : (value + 1) * 0.5f;
	switch (kind) {
	case 5:
		return -24.0f;
	case 21:
		return f->second ? 48.0f : 96.0f;
	case 37:
		return f->second ? 24.5f : 20.0f;
	case 13:
		return 4 * value + 12;
	case 29:
		return 4 * value - 12;
	case 45:
		return 0.0f;
	case 53:
		return value * 0.25f + 5.25f - (f->second ? -4.5f : 0);
	default:
		return 2 * value;
	}
}

/* Returns true if element `index` of an input is large. */
HOST_DEVICE static inline bool ssu_is_loud(const struct ssu_fill *f, int64_t index)
{
	return f->every != 0 && index % f->every == f->at && (f->turn < 0 || index / f->size % 2 == f->turn);
}

/* Returns an element of a state. States belong to slots, not to sequences. */
HOST_DEVICE static inline float ssu_state(const struct ssu_fill *f, int64_t index, float value)
{
	bool loud = f->every != 0 && index % f->every == f->at;

	return value * (f->second ? SSU_LARGER : 1) * (loud ? float_power(f->loud) : 1);
}

HOST_DEVICE static inline float ssu_bias(const struct ssu_fill *f, float value)
{
	if (!f->softplus)
		return (value + 1) * (f->second ? 0.0625f : 0.5f);
	return f->second ? value * 2.5f - 4.5f : value * 2;
}

/* Computes element `index` of an input as if there were no large elements and no padding. */
HOST_DEVICE static inline float ssu_usual(const struct ssu_fill *f, int64_t index, float value)
{
	switch (f->part) {
	case SSU_X:
		return f->second ? value * SSU_LARGER : value;
	case SSU_DT:
		return ssu_step_size(f, index, value);
	case SSU_DT_BIAS:
		return ssu_bias(f, value);
	case SSU_A:
		return -(value + 1.0625f) * (f->second ? 8 : 1); /* exact in float32, because the sum has at most 22
								  * bits */
	case SSU_D:
		return value * 4;
	case SSU_Z:
		return value * (f->second ? 16 : 4);
	default:
		return value;
	}
}

/* Computes element `index` of an input from its random bits. The caller converts the element to the input's dtype with
 * dtype_store_float. */
HOST_DEVICE static inline float ssu_element(const struct ssu_fill *f, int64_t index, uint32_t random)
{
	float value = uniform_signed(random, 20);

	if (f->part == SSU_STATE)
		return ssu_state(f, index, value);
	if (f->padded && ssu_is_padding(f->batch, index / f->size))
		return float_from_bits(0x7fc00000u);
	if (!ssu_is_loud(f, index))
		return ssu_usual(f, index, value);
	return f->part == SSU_Z ? (value < 0 ? -100.0f : 100.0f) : ssu_usual(f, index, value) * float_power(f->loud);
}

#endif
