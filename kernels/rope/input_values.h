/* input_values - computes the inputs of a rotary embedding. The CPU and the GPU compute the same values.
 *
 * The rotated tensors are uniform on [-2, 2). The entries of a cos/sin cache are not cosines and sines, but independent
 * numbers that are uniform on [-1, 1). Thus the result is completely wrong if a reference reads a neighbouring row, a
 * neighbouring column, or the sines instead of the cosines. With true cosines, the result would be nearly right,
 * because the cosines of slow pairs hardly differ from row to row.
 *
 * In the second set of values of a case with a cache, the rotated tensors are uniform on [-128, 128), and the cache is
 * uniform on [-2, 2), because some models multiply cosines and sines by a factor above 1. In this set, the
 * rotated tensors and the cache have 7 fraction bits relative to their magnitude. Therefore products and their sums are
 * exact in float32 in any order. If (token * heads + head) % 4 is 1 or 3, all rotated elements of the head are
 * multiplied by a large or a small power of two, which keeps products and sums exact. A conversion to float16 makes
 * these elements overflow or lose most of their digits. In the second set of a case without a cache, the rotated
 * tensors are uniform on [-2^17, 2^17), or on [-2^14, 2^14) if they are float16. Half of the values up to 2^17 are also
 * beyond float16's range.
 *
 * The elements of a head that are not rotated are copied. In both sets of values, two of every four copied elements are
 * multiplied by a large or a small power of two. If the tensor is not float16, the multiplied elements are beyond the
 * range of float16.
 *
 * The first five tokens have these positions: the largest, 0, 1, the largest, the largest. All other positions are
 * random. If there is a cache, every position is a row of the cache. Without a cache, positions are below 4096 in the
 * first set, and below 131072 in the second set (rope.c describes the effect on the tolerance). */
#ifndef REFTEST_KERNELS_ROPE_INPUT_VALUES_H
#define REFTEST_KERNELS_ROPE_INPUT_VALUES_H

#include <stdint.h>

#include "kernels/core/random_inputs.h"
#include "kernels/rope/roles.h"

enum { ROPE_POSITIONS = 4096, ROPE_FAR_POSITIONS = 131072, ROPE_EXACT_BITS = 7 };

/* Returns 1 if all products and sums of the case are exact in float32. Host only. */
static inline int rope_is_exact(const struct op_case *c)
{
	return c->contents == CONTENTS_SECOND && (c->variant & ROPE_CACHE) != 0;
}

/* The parameters from which an input element is computed. Kernels take this struct by value. */
struct rope_fill {
	uint64_t key;
	int is_cache;
	int probe; /* true in a probe case: the first element of every pair is 1, and the second is 0 */
	int interleaved;
	int bits;  /* number of fraction bits of an element */
	int scale; /* rotated tensors are uniform on 2^scale [-1, 1) */
	/* The exponents of the large and small powers of two by which elements are multiplied: large_head and
	 * small_head are for all rotated elements of a head, and are 0 if the case multiplies no rotated elements;
	 * large_rest and small_rest are for copied elements. */
	int large_head, small_head, large_rest, small_rest;
	int64_t head_size, rotary_dim;
};

/* Returns the exponent of the scale of a rotated tensor. If there is no cache and the tensor is not float16, the values
 * of the second set are so large that half of them overflow float16. Host only. */
static inline int rope_scale_exponent(const struct op_case *c, int input)
{
	if (rope_is_exact(c))
		return 7;
	if (c->contents == CONTENTS_FIRST)
		return 1;
	return c->problem->inputs[input].dtype == DTYPE_FLOAT16 ? 14 : 17;
}

/* Returns the parameters of a float tensor. Host only. */
static inline struct rope_fill rope_fill_of(const struct op_case *c, int input)
{
	struct rope_extent e = rope_extent_of(c);
	int exact = rope_is_exact(c), half = c->problem->inputs[input].dtype == DTYPE_FLOAT16;
	int scale = rope_scale_exponent(c, input);
	struct rope_fill f = {input_key(c, input),
	                      input == rope_roles_of(c->problem).cache,
	                      c->probe,
	                      rope_interleaved(c),
	                      exact ? ROPE_EXACT_BITS : 20,
	                      scale,
	                      !exact ? 0 : half ? 6 : 60,
	                      !exact ? 0 : half ? -21 : -60,
	                      half ? 15 - scale : 60,
	                      half ? -14 - scale : -60,
	                      e.head_size > 0 ? e.head_size : 1,
	                      e.rotary_dim};

	return f;
}

/* Returns the exponent of the power of two by which an element of a rotated tensor is multiplied. */
HOST_DEVICE static inline int rope_power(const struct rope_fill *f, int64_t head, int64_t at)
{
	int copied = at >= f->rotary_dim, kind = (int)((copied ? at : head) % 4);

	if (kind == 1)
		return copied ? f->large_rest : f->large_head;
	if (kind == 3)
		return copied ? f->small_rest : f->small_head;
	return 0;
}

/* Computes element `index` from its random bits. The caller converts the element to the input's dtype with
 * dtype_store_float. */
HOST_DEVICE static inline float rope_element(const struct rope_fill *f, int64_t index, uint32_t random)
{
	int64_t at = index % f->head_size;

	if (f->is_cache)
		return (f->bits == ROPE_EXACT_BITS ? 2.0f : 1.0f) * uniform_signed(random, f->bits);
	if (f->probe)
		return at < f->rotary_dim && (f->interleaved ? at % 2 == 0 : at < f->rotary_dim / 2) ? 1.0f : 0.0f;
	return float_power(f->scale + rope_power(f, index / f->head_size, at)) * uniform_signed(random, f->bits);
}

/* Returns the position of token `index`. The position is below `range`. */
HOST_DEVICE static inline int64_t rope_position(const struct rope_fill *f, int64_t range, int64_t index,
                                                uint32_t random)
{
	if (f->probe)
		return 1;
	if (index < 5)
		return index == 1 || range < 2 ? 0 : index == 2 ? 1 : range - 1;
	return (int64_t)(((uint64_t)random * (uint64_t)range) >> 32);
}

#endif
