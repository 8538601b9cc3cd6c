/* roles - which input of a mixture of experts plays which part, and how large everything is.
 *
 * Parts are found by rank, by the axes that they share with the output [T, H] and by dtype; names only tell apart what
 * has the same shape: a routing bias and factors for each expert, logits [T, E] and scales [T, H / block], the Python
 * scalars. */
#ifndef REFTEST_KERNELS_MOE_ROLES_H
#define REFTEST_KERNELS_MOE_ROLES_H

#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Indices of inputs; -1: there is none. T tokens, H hidden and I intermediate size, E experts in all and L of them
 * here, K chosen for a token. */
struct moe_roles {
	int hidden;				 /* [T, H] */
	int weights1, weights2;			 /* [L, 2I, H]: rows of "up", then rows of the gate; [L, H, I] */
	int hidden_scale;			 /* [H / block, T] or [T, H / block] */
	int scale1, scale2;			 /* [L, 2I / block, H / block], [L, H / block, I / block] */
	int factor_up, factor_gate, factor_down; /* [L]: on the products of an expert */
	int logits, bias;			 /* [T, E], [E] */
	int ids, id_weights;			 /* [T, K]: experts, and their weights unless the ids hold them too */
	int offset, scaling, top_k, groups, kept_groups; /* Python scalars */
};

struct moe_roles moe_roles_of(const struct op_problem *problem);

/* Every input plays a part, and all fit together: 0. Else -1 and the sentence. */
int moe_roles_match(const struct op_problem *problem, const struct moe_roles *roles, struct err *why);

/* Sizes of a case. A block is how many rows or columns share a scale; 1 where there is none. Plain data. */
struct moe_extent {
	int64_t tokens, hidden, intermediate;
	int64_t experts, local, offset; /* experts `offset` … `offset` + `local` - 1 of `experts` are here */
	int64_t hidden_block, rows1, columns1, rows2, columns2;
	int64_t blocks;	  /* of a token's hidden states */
	int blocks_first; /* hidden_scale is [blocks, T] */
};

struct moe_extent moe_extent_of(const struct op_case *c, const struct moe_roles *roles);

/* Where axes are var, only a case shows whether weights and scales fit together: 0, or -1 with the sentence. */
int moe_extent_check(const struct op_case *c, const struct moe_roles *roles, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
