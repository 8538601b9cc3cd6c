/* epsilon - what attests the epsilon of a norm, which no schema holds. Never the reference's text. */
#ifndef REFTEST_KERNELS_EPSILON_H
#define REFTEST_KERNELS_EPSILON_H

#include "kernels/op.h"

/* In this order: a const axis (`eps_1e6`; or `inv_eps`, holding 1 / epsilon), the definition's name (`…_eps1e-5`), the
 * published configuration of each `model:` tag (its `field`: "rms_norm_eps", "layer_norm_eps"), the description
 * ("Epsilon is fixed at 1e-6."). The first that speaks gives the value, the first that then disagrees the conflict.
 * None: NaN, "unattested". */
struct op_constant epsilon_constant(const struct op_problem *problem, const char *field);

/* The epsilon that was meant by an estimate that is good to 1 %: a round number of decimals (1, 2, … 9 times a power of
 * ten) or the machine epsilon of a dtype, which torch takes when it is given none. 0: the estimate is none of them. */
double epsilon_round(double estimate);

/* The epsilon that a text attests, from `*at` on; moves `*at` past it. false: no further one. */
bool epsilon_in_text(const char **at, double *value);

/* The epsilon in an identifier: "h4096_eps1e-5", "eps1e5", "eps_1e_05" are all 1e-5. */
bool epsilon_in_name(const char *name, double *value);

#endif
