/* gla on a GPU: by the kernels of kernels/recurrence_cuda.h. */
#include "kernels/recurrence_cuda.h"

extern "C" const struct op_cuda gla_cuda = {"gla", recurrence_fill_cuda, recurrence_launch, NULL};
