/* routing - which experts a token goes to, and with which weights.
 *
 *   DeepSeek     s = sigmoid(logit). Experts lie in groups of equal size; a group counts by the sum of its two largest
 *                s + bias, and the best groups are kept. Of their experts the K with the largest s + bias are chosen.
 *                Weights: s, without the bias, over the sum of the chosen (of other devices too), times a factor.
 *   renormalise  the K largest logits; weights: their softmax.
 *   Llama 4      the K (1) largest s = sigmoid(logit); weight s. A routing bias that comes along has no part in it.
 *   given        experts and weights come as inputs: two tensors, or one of int32 with the expert in the high half and
 *                the weight, a bfloat16, in the low one. An expert named twice counts twice.
 *
 * The weight is applied to an expert's output, in Llama 4 to what goes in. */
#ifndef REFTEST_KERNELS_MOE_ROUTING_H
#define REFTEST_KERNELS_MOE_ROUTING_H

#include "kernels/moe/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moe_method { MOE_GIVEN, MOE_DEEPSEEK, MOE_RENORMALISE, MOE_LLAMA4 };

/* op.match's variants: a method, and whether weights are applied to the input. */
enum { MOE_METHOD = 3, MOE_WEIGHT_ON_INPUT = 4, MOE_PICKS_MOST = 64 };

/* Plain data. */
struct routing {
	enum moe_method method;
	int64_t experts, picks;
	int64_t groups, kept; /* 1 and 1 unless DeepSeek */
	double factor;
};

/* What a problem's routing is, from its parts and its words; -1 and the sentence if nothing tells. */
int routing_variant(const struct op_problem *problem, const struct moe_roles *roles, struct err *why);

/* How many experts are chosen and how groups are made, where no input says: op.constants. */
int routing_constants(const struct op_problem *problem, int variant, struct op_constant *out);

/* The routing of a case: 0, or -1 with the sentence that says why there is none. */
int routing_of(const struct op_case *c, const struct moe_roles *roles, struct routing *out, struct err *err);

/* Chooses for one token by its scores (logits where they are renormalised, else sigmoids). `bias` NULL: none. Fills
 * picks experts in falling order, and their weights. Returns how far the nearest decision was from going the other way;
 * infinity where nothing was left out. */
double routing_choose(const struct routing *r, const double *score, const double *bias, int64_t *expert,
		      double *weight);

/* The same for token `token` of a case, from its inputs on the host. */
void routing_pick(const struct moe_roles *roles, const struct routing *r, const struct tensor *in, int64_t token,
		  int64_t *expert, double *weight);

#ifdef __cplusplus
}
#endif
#endif
