/* traffic - computes, on the host, the inputs that route tokens to experts: logits, a bias, and given experts.
 *
 * Let the experts of a token be sorted by falling logit. From one expert to the next, the logit falls by 1/4 in some
 * rows, and by 1/32 or by 1 in others. In a fourth kind of rows, two of the selected experts tie, and two of the other
 * experts tie. With the routing method "renormalise", the logits of one token in eight fall by 5/2 from one expert to
 * the next, or by 13/2 if two experts are selected. The weights of the selected experts then range from nearly 1 down
 * to 0.001 or less. The largest logit differs from row to row, so that sigmoids saturate in some rows and nearly vanish
 * in others. If the routing computes softmaxes, the largest logit of some rows is 20, and its exponential overflows
 * float16. In other rows, the largest logit is 100 or -106. The exponentials of all selected logits then overflow or
 * underflow float32 unless the maximum is subtracted first.
 *
 * With the routing method "renormalise", there are also ties between a selected and an omitted expert: for one token in
 * 16, the last selected expert ties with the next one. These two experts, the twins, have equal weights and scales. The
 * output is thus the same whichever twin is selected. It is wrong if a reference selects both twins or neither. There
 * are no twins if a workload provides an input, or if other devices have experts.
 *
 * The bias is in [-1, 0) in the first set of values and in [-1/2, 1/2) in the second. Thus the sums of score and bias
 * have both signs, even in one row. The bias changes the selection of experts and groups, in some rows by a small
 * margin and in others by a large one. If there is a bias, the logits of a row are drawn again until each selection of
 * an expert or a group has a margin of at least 2^-13, a thousand times the error of float32 sigmoids. If the logits of
 * a row fall by 1/32 from expert to expert, the row is drawn several times. Of the draws with margins of at least
 * 2^-13, the one with the smallest margin is used.
 *
 * If all experts are on this device and there are many tokens, five experts have exactly 1, 129, 16, 33 and 64 tokens in
 * the first set of values, and 2, 128, 17, 32 and 65 tokens in the second. If there are few experts, only the first few
 * of these numbers occur. Small cases use few experts, and in all cases some experts have no token. If there are
 * experts on other devices, one token in eight selects only experts of other devices. The other tokens among the first
 * 16 select some experts on this device. After the first 16 tokens, every second token selects one favourite expert of
 * this device, so that this expert has more than 128 tokens, the size of a tile. The other tokens select experts of
 * other devices, so that a case of many tokens takes little longer than a case of few. No function of libm is called,
 * so that the result is the same on every machine. */
#ifndef REFTEST_KERNELS_MOE_TRAFFIC_H
#define REFTEST_KERNELS_MOE_TRAFFIC_H

#include <stdbool.h>

#include "kernels/moe/routing.h"

/* Fills one input: the logits, the bias, the given experts, or their weights. `r` is the routing of the case. */
void traffic_fill(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int input,
		  struct tensor *out);

/* Returns true if the case has twins, and writes their expert numbers to `from` and `to`. The caller must give twin
 * `to` the weights and scales of twin `from`. */
bool traffic_twins(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int64_t *from,
		   int64_t *to);

#endif
