/* input_check - the checks that op.check of any family makes on a provided input: finite numbers, indices in range,
 * valid scalars. A check that fails writes the message that users see for the invalid case. Inputs that the workload
 * does not provide, or whose tensor is not loaded, pass every check. */
#ifndef REFTEST_KERNELS_CORE_INPUT_CHECK_H
#define REFTEST_KERNELS_CORE_INPUT_CHECK_H

#include "kernels/core/op.h"

/* Returns true if the workload provides input `input` and its tensor is loaded. Returns false if `input` is -1 (the
 * problem has no such input). */
bool check_brought(const struct op_case *c, const struct tensor *in, int input);

/* Rejects NaN. If `finite` is true, also rejects infinities. Returns 0, or -1 with the message "input 'x' holds NaN at
 * [3, 17]; …", which ends with `why`. */
int check_numbers(const struct op_case *c, const struct tensor *in, int input, bool finite, const char *why,
                  struct err *err);

/* Rejects NaN and infinities in every provided tensor. This check is for families in which a single NaN or infinity
 * makes the truth NaN. */
int check_all_finite(const struct op_case *c, const struct tensor *in, struct err *err);

/* Rejects integers outside of `least` … `most`. `what` describes the range: "positions are rows of 'cos_sin_cache', 0 …
 * 63". */
int check_integers(const struct op_case *c, const struct tensor *in, int input, int64_t least, int64_t most,
                   const char *what, struct err *err);

/* Returns true if input `input` is a Python scalar whose value the workload provides. */
bool check_is_number(const struct op_case *c, int input);

/* Rejects a provided Python scalar outside of `least` … `most`. `what` describes the range: "an epsilon must be above
 * 0". */
int check_scalar(const struct op_case *c, int input, double least, double most, const char *what, struct err *err);

/* Rejects an epsilon of a norm that is not above 0, because rows of zeros have no norm without an epsilon. */
int check_epsilon(const struct op_case *c, int input, struct err *err);

/* Writes the indices of element `index` of a tensor to `out`, for example "[3, 17]", and returns `out`. */
const char *check_place(const struct tensor *tensor, int64_t index, char *out, size_t size);

/* Returns element `index` of an int32 or int64 tensor on the host. */
int64_t check_integer(const struct tensor *tensor, int64_t index);

#endif
