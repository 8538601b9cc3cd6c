/* routing - selects the experts of a token and computes the weights of these experts, by one of four methods:
 *
 *   DeepSeek     s = sigmoid(logit). The experts form groups of equal size. The score of a group is the sum of its two
 *                largest s + bias, and the groups with the highest scores are kept. Of the experts in these groups, the
 *                K with the largest s + bias are selected. The weight of an expert is s, without the bias, divided by
 *                the sum of s over all selected experts (including those on other devices), times a factor.
 *   Renormalise  Selects the experts with the K largest logits. The weights are the softmax of these logits.
 *   Llama 4      Selects the K (usually 1) experts with the largest s = sigmoid(logit). The weight is s. A routing bias
 *                is ignored.
 *   Given        Experts and weights are inputs. They are two tensors, or one int32 tensor: the high half of an element
 *                is the number of the expert, and the low half is the weight, a bfloat16. An expert that is listed
 *                twice counts twice.
 *
 * The weight multiplies an expert's output or, with Llama 4 routing, its input. */
#ifndef REFTEST_KERNELS_MOE_ROUTING_H
#define REFTEST_KERNELS_MOE_ROUTING_H

#include "kernels/moe/mistakes.h"
#include "kernels/moe/roles.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOE_PICKS_MOST = 64 };

/* The parameters of a routing. Kernels take this struct by value. */
struct routing {
	enum moe_method method;
	int64_t experts, picks;
	int64_t groups, kept; /* 1 for every method except MOE_DEEPSEEK */
	double factor;
	int mistake; /* op_case.mistake: a value of enum moe_mistake */
	double by;   /* op_case.mistake_by */
	int64_t offset, local; /* offset: the number of this device's first expert; local: the number of experts on this
				* device; used only for mistakes */
};

/* Returns true if r->mistake can change this routing. */
bool routing_has_mistake(const struct routing *r);

/* Finds the routing method of a problem from its roles, name, tags and description. Returns the variant, or -1 with a
 * message in `why`. */
int routing_variant(const struct op_problem *problem, const struct moe_roles *roles, struct err *why);

/* Implements op.constants. Writes the number of experts to select, the number of groups, and the number of groups to
 * keep, except those numbers that are inputs. */
int routing_constants(const struct op_problem *problem, int variant, struct op_constant *out);

/* Computes the parameters of the routing of a case. Returns 0, or -1 with a message if the case is invalid. */
int routing_of(const struct op_case *c, const struct moe_roles *roles, struct routing *out, struct err *err);

/* Selects experts for one token by its scores, which are logits if the method is MOE_RENORMALISE, else sigmoids. `bias`
 * is NULL if there is none. Writes the selected experts in descending order, and their weights. Returns the smallest
 * margin between a selected expert and a rejected expert, or between a selected group and a rejected group. Returns
 * infinity if no expert was rejected. */
double routing_choose(const struct routing *r, const double *score, const double *bias, int64_t *expert,
		      double *weight);

/* Reads the scores and the bias of token `token` from the inputs of a case, which are in host memory, and selects
 * experts with routing_choose. */
void routing_pick(const struct moe_roles *roles, const struct routing *r, const struct tensor *in, int64_t token,
		  int64_t *expert, double *weight);

#ifdef __cplusplus
}
#endif
#endif
