/* simple_gla on a GPU: by the kernels of kernels/recurrence_cuda.h. */
#include "kernels/recurrence_cuda.h"

extern "C" const struct op_cuda simple_gla_cuda = {"simple_gla", recurrence_fill_cuda, recurrence_launch, NULL};
