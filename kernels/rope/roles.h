/* roles - finds the role of each tensor and Python scalar of a rotary embedding, and the sizes of a case. Host only. */
#ifndef REFTEST_KERNELS_ROPE_ROLES_H
#define REFTEST_KERNELS_ROPE_ROLES_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bits of the variant that op.match returns. ROPE_INTERLEAVED: elements 2i and 2i + 1 form a pair, and there is no
 * Python scalar that selects the pairs. */
enum { ROPE_CACHE = 1, ROPE_INTERLEAVED = 2, ROPE_LLAMA31 = 4 };

enum { ROPE_ROTATED = 2 };

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

/* The lengths of the axes of a case's tensors. */
struct rope_extent {
	int64_t tokens, heads[ROPE_ROTATED], head_size, rotary_dim, cache_rows;
};

extern const char *const rope_number_names[ROPE_NUMBERS]; /* the names of the hidden constants */
extern const struct op_role rope_role_names[];
extern const struct op_mode rope_mode_names[];
void rope_bind(const struct op_problem *problem, int variant, void *roles);

/* Implements op.match: returns the variant, or -1 with a message in `why`. */
int rope_match(const struct op_problem *problem, struct err *why);

/* op.match must have accepted the problem that is passed to rope_roles_of or rope_extent_of. */
struct rope_roles rope_roles_of(const struct op_problem *problem);
struct rope_extent rope_extent_of(const struct op_case *c);

/* Returns the size of a head. For a tensor [tokens, heads, size], this is the length of the last axis. For a flat
 * tensor [tokens, heads * size], this is the length of the const axis head_size or head_dim, or 0 if there is no such
 * axis. */
int64_t rope_head_size(const struct op_problem *problem, const int64_t *axis);

/* Returns the parameter `n` of a case: the value of the Python scalar, or of the hidden constant if there is no such
 * scalar. */
double rope_number_of(const struct op_case *c, enum rope_number n);

/* Returns 1 if neighbouring elements form a pair, and 0 if the elements of a pair are half the rotary dimension apart. */
int rope_interleaved(const struct op_case *c);

#ifdef __cplusplus
}
#endif
#endif
