/* norm_epsilon - finds the epsilon of a norm in a definition's const axes, name, tags and description. The schema of
 * definitions has no member for an epsilon, and an op family must not read the source code of the reference. */
#ifndef REFTEST_KERNELS_CORE_NORM_EPSILON_H
#define REFTEST_KERNELS_CORE_NORM_EPSILON_H

#include "kernels/core/op.h"

/* Reads these sources, in order of precedence:
 *
 *   1. a const axis (`eps_1e6`; or `inv_eps`, whose value is 1 / epsilon)
 *   2. the definition's name (`…_eps1e-5`)
 *   3. the published configuration of each `model:` tag: `field` is "layer_norm_eps" or "rms_norm_eps" (rms_norm_field
 *      lists other names of "rms_norm_eps")
 *   4. the description ("Epsilon is fixed at 1e-6.")
 *
 * op_constant.value is the epsilon of the first source that states an epsilon. op_constant.conflict describes the first
 * later source that states a different epsilon. If no source states an epsilon, the value is NaN and op_constant.source
 * is "unattested". */
struct op_constant epsilon_constant(const struct op_problem *problem, const char *field);

/* Implements op.constants for a family whose only constant is an epsilon. `input` is the index of the epsilon input, or
 * -1. If there is an epsilon input, returns 0. If there is none, writes the result of epsilon_constant and returns
 * 1. */
int epsilon_constants(const struct op_problem *problem, int input, const char *field, struct op_constant *out);

/* Implements op.scalar for a family whose only Python scalar is the epsilon of a norm. Returns a value that no
 * reference hard-codes. No case omits the scalar, because None does not mean the same in all libraries. */
double epsilon_scalar(const struct op_case *c, int input);

/* Sorts `values` and returns the median, or 0 if `count` is 0. */
double epsilon_median(double *values, int64_t count);

/* Sets *eps to the median of `count` estimates, rounded by epsilon_round. Each estimate is a difference a - b, and
 * `spread` is the largest b. If the median is at most 5 % of `spread`, it may be only an error of the subtraction, and
 * *eps is 0. Returns -1 with a message in `err` if the number of estimates near the median is below 9/10 of `elements`,
 * or if epsilon_round cannot round the median. */
int epsilon_settle(double *estimates, int64_t count, int64_t elements, double spread, double *eps, struct err *err);

/* Rounds an estimate with an error of at most 1 % to the epsilon that a reference probably uses: a decimal with one
 * digit (1, 2, … 9 times a power of ten), or the machine epsilon of a dtype (the default in torch). Returns 0 if no
 * such value is close to the estimate. */
double epsilon_round(double estimate);

/* Finds the next epsilon that the text states after `*at`, and moves `*at` past that epsilon. Returns false if there is
 * none. */
bool epsilon_in_text(const char **at, double *value);

/* Reads the epsilon in an identifier: "h4096_eps1e-5", "eps1e5" and "eps_1e_05" all contain 1e-5. */
bool epsilon_in_name(const char *name, double *value);

#endif
