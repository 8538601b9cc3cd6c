/* roles - finds the role of each input of a mixture of experts, and the sizes of a case, and declares the bits of a
 * variant.
 *
 * Roles are found by rank, by the axes that an input shares with the output [T, H], and by dtype. Names are used only
 * for Python scalars and for ambiguous shapes: they distinguish a routing bias from the factors per expert, and logits
 * [T, E] from scales [T, H / block]. */
#ifndef REFTEST_KERNELS_MOE_ROLES_H
#define REFTEST_KERNELS_MOE_ROLES_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moe_method { MOE_GIVEN, MOE_DEEPSEEK, MOE_RENORMALISE, MOE_LLAMA4 };

/* The bits of the variant that op.match returns: the routing method, whether routing weights multiply the input, and
 * the result of moe_blocks_first. */
enum { MOE_METHOD = 3, MOE_WEIGHT_ON_INPUT = 4, MOE_BLOCKS_FIRST = 8 };

/* The index of each input by its role, or -1 if the problem has no such input. T is the number of tokens, H the hidden
 * size, and I the intermediate size. E is the number of all experts, L the number of experts on this device, and K the
 * number of experts selected per token. */
struct moe_roles {
	int hidden;				 /* [T, H] */
	int weights1, weights2;			 /* weights1: [L, 2I, H], first the rows of "up", then the rows of the
						  * gate; weights2: [L, H, I] */
	int hidden_scale;			 /* [H / block, T] or [T, H / block] */
	int scale1, scale2;			 /* scale1: [L, 2I / block, H / block]; scale2: [L, H / block, I /
						  * block] */
	int factor_up, factor_gate, factor_down; /* [L]: the factors by which the products of an expert are
						  * multiplied */
	int logits, bias;			 /* logits: [T, E]; bias: [E] */
	int ids, id_weights;			 /* [T, K]: the selected experts, and their weights; without
						  * `id_weights`, `ids` contains the weights, too */
	int offset, scaling, top_k, groups, kept_groups; /* Python scalars */
	int output;					 /* the index of the only output, 0 */
};

struct moe_roles moe_roles_of(const struct op_problem *problem);

/* moe_role_names and moe_bind implement op.roles and op.bind. */
extern const struct op_role moe_role_names[];
void moe_bind(const struct op_problem *problem, int variant, void *roles);

/* Returns true if hidden_scale is [H / block, T], and false if it is [T, H / block]. */
bool moe_blocks_first(const struct op_problem *problem, const struct moe_roles *roles);

/* Checks that every input has a role and that the shapes of all inputs are consistent. Returns 0, or -1 with a message
 * in `why`. */
int moe_roles_match(const struct op_problem *problem, const struct moe_roles *roles, struct err *why);

/* The sizes of a case. rows1, columns1, rows2, columns2 and hidden_block are the numbers of rows or columns that share
 * a scale, or 1 if there are no scales. */
struct moe_extent {
	int64_t tokens, hidden, intermediate;
	int64_t experts, local, offset; /* experts `offset` … `offset` + `local` - 1 of `experts` are on this device */
	int64_t hidden_block, rows1, columns1, rows2, columns2;
	int64_t blocks;	  /* number of blocks in the hidden states of a token */
	int blocks_first; /* whether hidden_scale is [blocks, T] */
};

struct moe_extent moe_extent_of(const struct op_case *c, const struct moe_roles *roles);

/* Checks that the lengths of var axes give consistent shapes of weights and scales. Returns 0, or -1 with a message if
 * the case is invalid. */
int moe_extent_check(const struct op_case *c, const struct moe_roles *roles, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
