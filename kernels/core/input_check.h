/* input_check - the checks that op.check of any family makes on a provided input: finite numbers, indices in range,
 * valid scalars. A check that fails writes the message that users see for the invalid case. Every check accepts inputs
 * that the workload does not provide, and inputs whose tensor is not loaded. */
#ifndef REFTEST_KERNELS_CORE_INPUT_CHECK_H
#define REFTEST_KERNELS_CORE_INPUT_CHECK_H

#include "kernels/core/op.h"

/* Returns true if the workload provides input `input` and its tensor is loaded. `input` may be -1, which means that the
 * problem has no such input; the function then returns false. */
bool check_brought(const struct op_case *c, const struct tensor *in, int input);

/* Rejects NaN. If `finite` is true, also rejects infinities. Returns 0, or -1 with a message that ends with `why`:
 * "input 'x' holds NaN at [3, 17]; …". */
int check_numbers(const struct op_case *c, const struct tensor *in, int input, bool finite, const char *why,
                  struct err *err);

/* Like check_numbers. If `rows` is not NULL, checks only some rows (slices along the input's first dimension): row i is
 * checked if rows[i] is not 0. */
int check_numbers_of_rows(const struct op_case *c, const struct tensor *in, int input, const uint8_t *rows, bool finite,
                          const char *why, struct err *err);

/* Rejects NaN and infinities in every provided tensor. This check is for families in which a single NaN or infinity
 * makes the truth NaN. */
int check_all_finite(const struct op_case *c, const struct tensor *in, struct err *err);

/* Rejects integers outside of `least` … `most`. `what` describes the range in the message, for example "positions are
 * rows of 'cos_sin_cache', 0 … 63". */
int check_integers(const struct op_case *c, const struct tensor *in, int input, int64_t least, int64_t most,
                   const char *what, struct err *err);

/* Returns true if input `input` is a Python scalar whose value the workload provides. */
bool check_is_number(const struct op_case *c, int input);

/* Rejects a provided Python scalar outside of `least` … `most`. `what` describes the range in the message, for example
 * "an epsilon must be above 0". */
int check_scalar(const struct op_case *c, int input, double least, double most, const char *what, struct err *err);

/* Rejects a norm's epsilon that is 0 or negative, because then rows of zeros cannot be normalised. */
int check_epsilon(const struct op_case *c, int input, struct err *err);

/* Writes the position of element `index` in a tensor to `out`, for example "[3, 17]", and returns `out`. */
const char *check_place(const struct tensor *tensor, int64_t index, char *out, size_t size);

/* Returns element `index` of an int32 or int64 tensor on the host. */
int64_t check_integer(const struct tensor *tensor, int64_t index);

#endif
