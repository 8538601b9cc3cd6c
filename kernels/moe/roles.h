/* roles - the role of each input of a mixture of experts, the bits of its variant, and the sizes of a case.
 *
 * Roles are found by rank, by the axes that an input shares with the output [T, H], and by dtype. Names are used only
 * where shapes are ambiguous: to distinguish a routing bias from the factors per expert, to distinguish logits [T, E]
 * from scales [T, H / block], and for Python scalars. */
#ifndef REFTEST_KERNELS_MOE_ROLES_H
#define REFTEST_KERNELS_MOE_ROLES_H

#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moe_method { MOE_GIVEN, MOE_DEEPSEEK, MOE_RENORMALISE, MOE_LLAMA4 };

/* The bits of the variant that op.match returns: the method; whether routing weights multiply the input; the result of
 * moe_blocks_first. */
enum { MOE_METHOD = 3, MOE_WEIGHT_ON_INPUT = 4, MOE_BLOCKS_FIRST = 8 };

/* The index of each input by its role; -1 if the problem has no such input. T is the number of tokens, H the hidden
 * size, and I the intermediate size. E is the number of all experts, L the number of experts on this device, and K the
 * number of experts selected per token. */
struct moe_roles {
	int hidden;				 /* [T, H] */
	int weights1, weights2;			 /* [L, 2I, H]: the rows of "up", then the rows of the gate; [L, H,
						  * I] */
	int hidden_scale;			 /* [H / block, T] or [T, H / block] */
	int scale1, scale2;			 /* [L, 2I / block, H / block], [L, H / block, I / block] */
	int factor_up, factor_gate, factor_down; /* [L]: factors on the products of an expert */
	int logits, bias;			 /* [T, E], [E] */
	int ids, id_weights;			 /* [T, K]: the selected experts; their weights, unless `ids` contains
						  * the weights */
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
 * that says why the problem does not match. */
int moe_roles_match(const struct op_problem *problem, const struct moe_roles *roles, struct err *why);

/* The sizes of a case, as plain data. The members rows1, columns1, rows2, columns2 and hidden_block are numbers of rows
 * or columns that have the same scale, or 1 if there are no scales. */
struct moe_extent {
	int64_t tokens, hidden, intermediate;
	int64_t experts, local, offset; /* experts `offset` … `offset` + `local` - 1 of `experts` are on this device */
	int64_t hidden_block, rows1, columns1, rows2, columns2;
	int64_t blocks;	  /* the number of blocks in a token's hidden states */
	int blocks_first; /* is hidden_scale [blocks, T]? */
};

struct moe_extent moe_extent_of(const struct op_case *c, const struct moe_roles *roles);

/* Checks the lengths of var axes: the shapes of weights and scales must be consistent. Returns 0, or -1 with a message
 * if the case is invalid. */
int moe_extent_check(const struct op_case *c, const struct moe_roles *roles, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
