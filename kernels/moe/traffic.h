/* traffic - the inputs that send tokens to experts: logits, a bias, chosen experts. Made on the host.
 *
 * Logits fall by a quarter from one rank to the next, in other rows by 1 / 32 or by 1, and in the fourth kind two of the
 * chosen tie, and two of those that are not; no decision is a tie. Rows start at a height of their own, from one at which
 * sigmoids saturate to one at which they nearly vanish. Where softmaxes follow, some rows start at 20, whose exponential is
 * beyond float16, and some at 100 and -106: there all exponentials of what is chosen are beyond float32, or below its least,
 * unless the largest is taken off first. The bias is in [-1, 0) in the
 * first contents and in [-1/2, 1/2) in the second: the scores that decide have both signs, in one row as well, bias changes
 * which experts and groups win, and groups win by little and by much. Where a bias decides, rows are drawn until every
 * decision is clear by 2^-13, a thousand times what float32 sigmoids are off by; of steps of 1 / 32 the draw with the
 * nearest decision is taken.
 *
 * Where all experts are here and tokens are many, four experts have exactly 16, 33, 64 and 127 tokens, in the second
 * contents 17, 32, 65 and 128. Small cases go to few experts, and in all cases some have no token. Where there are experts
 * of other devices, one token in eight has only them; of the first 16 the others have some here, and of the later every
 * fourth goes to one favourite of this device, the rest elsewhere: a case of many tokens is hardly dearer than one of few.
 * Float arithmetic of the host, no libm: the same on every machine. */
#ifndef REFTEST_KERNELS_MOE_TRAFFIC_H
#define REFTEST_KERNELS_MOE_TRAFFIC_H

#include "kernels/moe/routing.h"

/* Fills logits, bias, ids or the weights of ids. `r` is the case's routing. */
void traffic_fill(const struct op_case *c, const struct moe_roles *roles, const struct routing *r, int input,
		  struct tensor *out);

#endif
