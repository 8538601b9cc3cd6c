/* recurrence_cuda - the truth of kernels/recurrence.h on a GPU, and its inputs: the members of struct op_cuda. */
#ifndef REFTEST_KERNELS_RECURRENCE_CUDA_H
#define REFTEST_KERNELS_RECURRENCE_CUDA_H

#include "kernels/cuda_check.h"

#include "kernels/recurrence_inputs.h"

int recurrence_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err);
int recurrence_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *scratch, void *stream,
                      struct err *err);

#endif
