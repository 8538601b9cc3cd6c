/* kda on a GPU: by the kernels of kernels/recurrence_cuda.h. */
#include "kernels/recurrence_cuda.h"

extern "C" const struct op_cuda kda_cuda = {"kda", recurrence_fill_cuda, recurrence_launch, NULL};
