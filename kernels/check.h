/* check - what op.check of any family may ask of an input that a workload brings, with the sentence that makes the case
 * invalid. An input that is not brought, or not at hand, is in order. */
#ifndef REFTEST_KERNELS_CHECK_H
#define REFTEST_KERNELS_CHECK_H

#include "kernels/op.h"

/* Is input `input` (-1: one that the problem does not have) brought by the workload, and its contents at hand? */
bool check_brought(const struct op_case *c, const struct tensor *in, int input);

/* No NaN (and no infinity, if `finite`). 0, or -1 with "input 'x' holds NaN at [3, 17]; …" ending in `why`. */
int check_numbers(const struct op_case *c, const struct tensor *in, int input, bool finite, const char *why,
                  struct err *err);

/* All of those a case of this family has: no tensor that is brought holds NaN or infinities. For families in which any
 * such element makes the truth one that nothing equals. */
int check_all_finite(const struct op_case *c, const struct tensor *in, struct err *err);

/* Integers from `least` to `most`. `what` names them: "positions are rows of 'cos_sin_cache', 0 … 63". */
int check_integers(const struct op_case *c, const struct tensor *in, int input, int64_t least, int64_t most,
                   const char *what, struct err *err);

/* Is it a Python scalar to which the workload gives a number? */
bool check_is_number(const struct op_case *c, int input);

/* A Python scalar that the workload gives, from `least` to `most`. `what` names it: "an epsilon is above 0". */
int check_scalar(const struct op_case *c, int input, double least, double most, const char *what, struct err *err);

/* The epsilon of a norm, by the same rules: rows of zeros have no norm without one. */
int check_epsilon(const struct op_case *c, int input, struct err *err);

/* "[3, 17]": where element `index` lies in a tensor. Gives `out`. */
const char *check_place(const struct tensor *tensor, int64_t index, char *out, size_t size);

/* Element `index` of an int32 or int64 tensor on the host. */
int64_t check_integer(const struct tensor *tensor, int64_t index);

#endif
