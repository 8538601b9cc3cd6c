/* rope inputs - which tensor plays which part, and the value of every input element, the same on CPU and GPU.
 *
 * What is rotated is uniform on [-2, 2). A cos/sin cache is uniform on [-1, 1), each entry by itself: the rotation is
 * linear in it, and so a neighbouring row, a neighbouring column or halves that are swapped give quite another answer,
 * where true cosines of slow pairs hardly differ from row to row. In the second contents of a case with a cache, what is
 * rotated is uniform on [-128, 128), and it and the cache have 7 fraction bits of their magnitude: products and their sums
 * are exact in float32, in any order. Positions: the last of the range, 0, 1, the last once more, then at random; with a
 * cache the range is its rows, without one it is 4096, and 131072 in the second contents (rope.c says what that costs). */
#ifndef REFTEST_KERNELS_ROPE_INPUTS_H
#define REFTEST_KERNELS_ROPE_INPUTS_H

#include <stdint.h>
#include <string.h>

#include "kernels/inputs.h"
#include "kernels/op.h"

/* op.match's variant. STYLE_GIVEN: a Python scalar says which pairs rotate together. */
enum { ROPE_CACHE = 1, ROPE_INTERLEAVED = 2, ROPE_LLAMA31 = 4, ROPE_STYLE_GIVEN = 8 };

enum { ROPE_ROTATED = 2, ROPE_POSITIONS = 4096, ROPE_FAR_POSITIONS = 131072, ROPE_EXACT_BITS = 7 };

/* The numbers that make the angles when there is no cache; also the order of the hidden constants. */
enum rope_number { ROPE_THETA, ROPE_SCALE, ROPE_LOW, ROPE_HIGH, ROPE_OLD_CONTEXT, ROPE_NUMBERS };

/* Indices into the problem's inputs and outputs; -1: the problem has none. */
struct rope_roles {
	int rotated[ROPE_ROTATED], output[ROPE_ROTATED]; /* q and k, or q alone */
	int count;
	int positions, cache;
	int rotary_dim, style, head_size; /* Python scalars; style: `interleave` or `is_neox` */
	int style_is_neox;                /* the scalar is true for halves */
	int number[ROPE_NUMBERS];         /* Python scalars */
};

/* By shape and dtype; scalars by name. `token` is the axis that positions have. Complete for what op.match takes. */
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

	if (strstr(name, "rotary_dim") != NULL)
		roles->rotary_dim = i;
	if (strstr(name, "head_size") != NULL || strstr(name, "head_dim") != NULL)
		roles->head_size = i;
	if (strstr(name, "interleave") != NULL || strstr(name, "neox") != NULL) {
		roles->style = i;
		roles->style_is_neox = strstr(name, "neox") != NULL;
	}
	for (int n = 0; n < ROPE_NUMBERS; n++)
		if (strstr(name, parts[n]) != NULL)
			roles->number[n] = i;
}

/* Host only. */
static inline struct rope_roles rope_roles_of(const struct op_problem *problem)
{
	struct rope_roles roles = {{-1, -1}, {-1, -1}, 0, -1, -1, -1, -1, -1, 0, {-1, -1, -1, -1, -1}};
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

/* Tensors by their extents. */
struct rope_extent {
	int64_t tokens, heads[ROPE_ROTATED], head_size, rotary_dim, cache_rows;
};

/* The size of a head: the last axis of [tokens, heads, size], or of flat [tokens, heads * size] a const axis of that
 * name; 0: not known. Host only. */
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

/* How much of a head is rotated: what the cache holds, what an argument says, what an axis says, or all of it. Host
 * only. */
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

/* Host only. */
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

/* Do neighbouring elements rotate together (1), or those half the rotary dimension apart (0)? Host only. */
static inline int rope_interleaved(const struct op_case *c)
{
	struct rope_roles roles = rope_roles_of(c->problem);

	if (!(c->variant & ROPE_STYLE_GIVEN))
		return (c->variant & ROPE_INTERLEAVED) != 0;
	return (c->scalar[roles.style] != 0) != roles.style_is_neox;
}

/* Are what is rotated and the cache, as this family makes them, such that no product or sum is rounded in float32? Host
 * only. */
static inline int rope_is_exact(const struct op_case *c)
{
	return c->contents == CONTENTS_SECOND && (c->variant & ROPE_CACHE) != 0;
}

/* Everything an element depends on; plain data, given to the GPU by value. */
struct rope_fill {
	uint64_t key;
	int is_cache;
	int probe; /* 1: the first of every pair is 1, the second 0 */
	int interleaved;
	int bits;  /* fraction bits */
	int scale; /* what is rotated is uniform on 2^scale [-1, 1) */
	int64_t head_size, rotary_dim;
};

/* Of a float tensor. Host only. */
static inline struct rope_fill rope_fill_of(const struct op_case *c, int input)
{
	struct rope_extent e = rope_extent_of(c);
	int exact = rope_is_exact(c);
	struct rope_fill f = {input_key(c, input),
	                      input == rope_roles_of(c->problem).cache,
	                      c->probe,
	                      rope_interleaved(c),
	                      exact ? ROPE_EXACT_BITS : 20,
	                      exact ? 7 : 1,
	                      e.head_size > 0 ? e.head_size : 1,
	                      e.rotary_dim};

	return f;
}

/* Element `index` from its random bits; to be rounded to the input's dtype with number_store. */
HOST_DEVICE static inline float rope_element(const struct rope_fill *f, int64_t index, uint32_t random)
{
	int64_t at = index % f->head_size;

	if (f->is_cache)
		return uniform_signed(random, f->bits);
	if (f->probe)
		return at < f->rotary_dim && (f->interleaved ? at % 2 == 0 : at < f->rotary_dim / 2) ? 1.0f : 0.0f;
	return float_power(f->scale) * uniform_signed(random, f->bits);
}

/* Position of token `index` among `range`. */
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
