/* shape_match - declares the checks that op.match applies to a definition: the dtypes and ranks of tensors, whether
 * axes are equal, and words in names and descriptions. match_refuse and match_refuse_unknown write the message about a
 * mismatch. Host only. */
#ifndef REFTEST_KERNELS_CORE_SHAPE_MATCH_H
#define REFTEST_KERNELS_CORE_SHAPE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns true for a tensor of float32, bfloat16 or float16. */
bool match_is_float(const struct op_arg *arg);

/* Returns true for a vector of int32 or int64, such as indices, offsets or lengths. */
bool match_is_index(const struct op_arg *arg);

/* Returns true if a and b are the same axis, or const axes of equal length. */
bool match_same_axis(const struct op_problem *problem, int a, int b);

/* Compares axis `from` + i of tensor `a` with axis `b_from` + i of tensor `b`, for each i from 0 to `count` - 1.
 * Returns true if match_same_axis is true for each of these pairs, and false if `a` or `b` has too few axes. */
bool match_same_axes(const struct op_problem *problem, const struct op_arg *a, int from, const struct op_arg *b,
                     int b_from, int count);

/* Returns true if both tensors have the same axes in the same order. */
bool match_same_shape(const struct op_arg *a, const struct op_arg *b);

/* Returns the length of a tensor's dimension, or 0 if its axis is var. */
int64_t match_fixed_length(const struct op_problem *problem, const struct op_arg *arg, int dimension);

/* Returns true if `text` contains `word`, which must be in lower case. The search ignores case and treats a hyphen like
 * an underscore. Returns false if `text` is NULL. */
bool match_contains(const char *text, const char *word);

/* Returns true if the definition's name or one of its tags contains `word` (match_contains). */
bool match_mentions(const struct op_problem *problem, const char *word);

/* Returns -1 and stores a message such as "input 'k' is [a, b] of int32; expected …" in `why`. `expected` says what
 * this input or output must be. The function op_find puts the family's name before the message. */
int match_refuse(const struct op_problem *problem, const struct op_arg *arg, const char *expected, struct err *why);

/* Like match_refuse, but for an input or output that has no role: "input 'k' is [a, b] of int32; the operation has no
 * such input, or the definition has two of them; …". `known` lists all inputs, or all outputs, of the
 * operation. */
int match_refuse_unknown(const struct op_problem *problem, const struct op_arg *arg, const char *known,
			 struct err *why);

#ifdef __cplusplus
}
#endif
#endif
