/* traffic - the inputs that send tokens to experts: logits, a bias, chosen experts. Made on the host.
 *
 * No decision is near: the logits around the boundary are a quarter apart, and where a bias (up to a quarter either
 * way) and groups decide, rows are drawn until every decision is clear by 2^-13, a thousand times what float32 sigmoids
 * are off by. Rows start at another height each, so that sigmoids bend. One token in four goes to a favourite expert
 * that many share. Of the experts of other devices each token has some, and one in eight has only them, so that nothing
 * is left for this one; all others have at least one here. Float arithmetic of the host, no libm: the same on every
 * machine. */
#ifndef REFTEST_KERNELS_MOE_TRAFFIC_H
#define REFTEST_KERNELS_MOE_TRAFFIC_H

#include "kernels/moe/routing.h"

/* Fills logits, bias, ids or the weights of ids. `r` is the case's routing. */
void traffic_fill(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int input,
		  struct tensor *out);

#endif
