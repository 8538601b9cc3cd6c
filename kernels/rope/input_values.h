/* rope inputs - finds the role of each tensor, and computes the inputs. The CPU and the GPU compute the same values.
 *
 * The rotated tensors are uniform on [-2, 2). The entries of a cos/sin cache are not cosines and sines, but independent
 * numbers that are uniform on [-1, 1). Thus the result is completely wrong if a reference reads a neighbouring row, a
 * neighbouring column, or the sines instead of the cosines. With true cosines, the result would be nearly right,
 * because the cosines of slow pairs hardly differ from row to row.
 *
 * In the second set of values of a case with a cache, the rotated tensors are uniform on [-128, 128). In this set, the
 * rotated tensors and the cache have 7 fraction bits relative to their magnitude. Therefore products and their sums are
 * exact in float32 in any order. If (token * heads + head) % 4 is 1 or 3, all rotated elements of the head are
 * multiplied by a large or a small power of two, which keeps products and sums exact. A conversion to float16 makes
 * these elements overflow or lose most of their digits. In the second set of a case without a cache, the rotated
 * tensors are uniform on [-2^17, 2^17), or on [-2^14, 2^14) if they are float16. 2^17 is also beyond float16's range.
 *
 * The elements of a head that are not rotated are copied. In both sets of values, two of every four copied elements are
 * multiplied by a large or a small power of two. If the tensor is not float16, the multiplied elements are beyond the
 * range of float16.
 *
 * The first four positions are the largest position, 0, 1, and the largest position again. All other positions are
 * random. If there is a cache, every position is a row of the cache. Without a cache, positions are below 4096 in the
 * first set, and below 131072 in the second set (rope.c describes the effect on the tolerance). */
#ifndef REFTEST_KERNELS_ROPE_INPUT_VALUES_H
#define REFTEST_KERNELS_ROPE_INPUT_VALUES_H

#include <stdint.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The bits of the variant that op.match returns. ROPE_INTERLEAVED: elements 2i and 2i + 1 form a pair, and there is no
 * Python scalar that selects the pairs. */
enum { ROPE_CACHE = 1, ROPE_INTERLEAVED = 2, ROPE_LLAMA31 = 4 };

enum { ROPE_ROTATED = 2, ROPE_POSITIONS = 4096, ROPE_FAR_POSITIONS = 131072, ROPE_EXACT_BITS = 7 };

/* The parameters from which the angles are computed if there is no cache, in the order of the hidden constants. */
enum rope_number { ROPE_THETA, ROPE_SCALE, ROPE_LOW, ROPE_HIGH, ROPE_OLD_CONTEXT, ROPE_NUMBERS };

/* The index of each input and output by its role. -1: the problem has no such tensor. */
struct rope_roles {
	int rotated[ROPE_ROTATED], output[ROPE_ROTATED]; /* q and k, or only q */
	int count;
	int positions, cache;
	/* The other members are Python scalars. `interleave` and `is_neox` select the pairs; a problem has at most one
	 * of the two. */
	int rotary_dim, head_size;
	int interleave, is_neox;
	int number[ROPE_NUMBERS];
};

/* Finds the role of tensor `i` by its shape and dtype. `token` is the axis of the positions. */
static inline void rope_tensor_role(const struct op_problem *problem, int token, int i, struct rope_roles *roles)
{
	const struct op_arg *input = &problem->inputs[i];
	int of_tokens = input->rank >= 2 && input->axis[0] == token && strstr(input->name, "cache") == NULL;

	if (!dtype_is_float(input->dtype))
		roles->positions = i;
	else if (!of_tokens)
		roles->cache = i;
	else if (roles->count < ROPE_ROTATED)
		roles->rotated[roles->count++] = i;
}

static inline void rope_scalar_role(const struct op_problem *problem, int i, struct rope_roles *roles)
{
	const char *const parts[ROPE_NUMBERS] = {"theta", "scale", "low_freq", "high_freq", "old_context"};
	const char *name = problem->inputs[i].name;

	if (strstr(name, "rotary_dim") != NULL) {
		roles->rotary_dim = i;
	} else if (strstr(name, "head_size") != NULL || strstr(name, "head_dim") != NULL) {
		roles->head_size = i;
	} else if (strstr(name, "neox") != NULL) {
		roles->is_neox = i;
	} else if (strstr(name, "interleave") != NULL) {
		roles->interleave = i;
	} else {
		for (int n = 0; n < ROPE_NUMBERS; n++)
			if (strstr(name, parts[n]) != NULL) {
				roles->number[n] = i;
				return;
			}
	}
}

/* Finds all roles. op.match must have accepted the problem. Host only. */
static inline struct rope_roles rope_roles_of(const struct op_problem *problem)
{
	struct rope_roles roles = {{-1, -1}, {-1, -1}, 0, -1, -1, -1, -1, -1, -1, {-1, -1, -1, -1, -1}};
	int token = -1;

	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == 1 && !dtype_is_float(problem->inputs[i].dtype))
			token = problem->inputs[i].axis[0];
	for (int i = 0; i < problem->input_count; i++) {
		if (problem->inputs[i].rank == OP_SCALAR)
			rope_scalar_role(problem, i, &roles);
		else
			rope_tensor_role(problem, token, i, &roles);
	}
	for (int r = 0; r < roles.count && r < problem->output_count; r++)
		roles.output[r] = r;
	return roles;
}

/* The lengths of the axes of a case's tensors. */
struct rope_extent {
	int64_t tokens, heads[ROPE_ROTATED], head_size, rotary_dim, cache_rows;
};

/* Returns the size of a head. For a tensor [tokens, heads, size], this is the last axis. For a flat tensor [tokens,
 * heads * size], this is the length of the const axis head_size or head_dim, or 0 if there is no such axis. Host
 * only. */
static inline int64_t rope_head_size(const struct op_problem *problem, const int64_t *axis)
{
	const struct op_arg *q = &problem->inputs[rope_roles_of(problem).rotated[0]];

	if (q->rank == 3)
		return axis[q->axis[2]];
	for (int i = 0; i < problem->axis_count; i++)
		if (!problem->axes[i].var &&
		    (strcmp(problem->axes[i].name, "head_size") == 0 || strcmp(problem->axes[i].name, "head_dim") == 0))
			return problem->axes[i].value;
	return 0;
}

/* Returns the number of rotated elements of a head. The number comes from the first of these sources that the problem
 * has: the width of the cache, the Python scalar rotary_dim, the length of the axis rotary_dim, the size of a head.
 * Host only. */
static inline int64_t rope_rotary_dim(const struct op_case *c, const struct rope_roles *roles, int64_t head_size)
{
	const struct op_problem *problem = c->problem;
	int axis = op_axis_index(problem, "rotary_dim");

	if (roles->cache >= 0)
		return c->axis[problem->inputs[roles->cache].axis[1]];
	if (roles->rotary_dim >= 0)
		return c->scalar[roles->rotary_dim] >= 0 && c->scalar[roles->rotary_dim] <= (double)head_size
		           ? (int64_t)c->scalar[roles->rotary_dim]
		           : head_size;
	return axis >= 0 ? c->axis[axis] : head_size;
}

/* Only host code calls this function. */
static inline struct rope_extent rope_extent_of(const struct op_case *c)
{
	const struct op_problem *problem = c->problem;
	struct rope_roles roles = rope_roles_of(problem);
	struct rope_extent e = {0, {0, 0}, 0, 0, 0};

	e.head_size = rope_head_size(problem, c->axis);
	e.rotary_dim = rope_rotary_dim(c, &roles, e.head_size);
	e.tokens = c->axis[problem->inputs[roles.positions].axis[0]];
	e.cache_rows = roles.cache >= 0 ? c->axis[problem->inputs[roles.cache].axis[0]] : 0;
	for (int r = 0; r < roles.count; r++) {
		const struct op_arg *x = &problem->inputs[roles.rotated[r]];

		e.heads[r] =
		    x->rank == 3 ? c->axis[x->axis[1]] : c->axis[x->axis[1]] / (e.head_size > 0 ? e.head_size : 1);
	}
	return e;
}

/* Returns 1 if neighbouring elements form a pair, and 0 if the elements of a pair are half the rotary dimension apart.
 * Host only. */
static inline int rope_interleaved(const struct op_case *c)
{
	struct rope_roles roles = rope_roles_of(c->problem);

	if (roles.interleave >= 0)
		return c->scalar[roles.interleave] != 0;
	if (roles.is_neox >= 0)
		return c->scalar[roles.is_neox] == 0;
	return (c->variant & ROPE_INTERLEAVED) != 0;
}

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
	/* The exponents of the powers of two by which elements are multiplied: large_head and small_head for the
	 * rotated elements of large and of small heads (0: the case has no such heads), large_rest and small_rest for
	 * large and for small copied elements. */
	int large_head, small_head, large_rest, small_rest;
	int64_t head_size, rotary_dim;
};

/* Returns the exponent of the scale of a rotated tensor. If there is no cache and the tensor is not float16, the values
 * of the second set are so large that most of them overflow float16. Host only. */
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
	                      !exact ? 0 : half ? 7 : 60,
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
		return uniform_signed(random, f->bits);
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
	if (index < 4)
		return index == 1 || range < 2 ? 0 : index == 2 ? 1 : range - 1;
	return (int64_t)(((uint64_t)random * (uint64_t)range) >> 32);
}

#endif
