/* recurrence_cuda - computes the truth of kernels/common/linear_attention/recurrence.h, and the inputs, on a GPU. These
 * functions implement the members of struct op_cuda. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_CUDA_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_RECURRENCE_CUDA_H

#include "kernels/core/cuda_check.h"

#include "kernels/common/linear_attention/input_values.h"

int recurrence_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
int recurrence_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
                      struct err *err);

#endif
