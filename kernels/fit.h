/* fit - what op.match of any family asks of a definition: kinds of tensors, axes that are the same, words in texts, and
 * the sentence for what does not fit. Host only. */
#ifndef REFTEST_KERNELS_FIT_H
#define REFTEST_KERNELS_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of float32, bfloat16 or float16. */
bool fit_is_float(const struct op_arg *arg);

/* A vector of int32 or int64, as indices, offsets and lengths are. */
bool fit_is_index(const struct op_arg *arg);

/* The same axis, or const axes of one value. */
bool fit_same_axis(const struct op_problem *problem, int a, int b);

/* `count` axes of a, from `from` on, are by fit_same_axis those of b from `b_from` on. False where one of them has not
 * so many. */
bool fit_same_axes(const struct op_problem *problem, const struct op_arg *a, int from, const struct op_arg *b,
                   int b_from, int count);

/* The length of a tensor's dimension; 0: it is var. */
int64_t fit_fixed(const struct op_problem *problem, const struct op_arg *arg, int dimension);

/* Does `text` (NULL: no) hold `word` (lower case), in whatever case, a hyphen being as good as an underline? */
bool fit_holds(const char *text, const char *word);

/* By fit_holds: does the definition's name, or one of its tags? */
bool fit_said(const struct op_problem *problem, const char *word);

/* -1 with "family: 'k' is [a, b] of int32; expected " and what was. */
int fit_refuse(const char *family, const struct op_problem *problem, const struct op_arg *arg, const char *expected,
               struct err *why);

#ifdef __cplusplus
}
#endif
#endif
