/* delta_rule on a GPU: by the kernels of kernels/recurrence_cuda.h. */
#include "kernels/recurrence_cuda.h"

extern "C" const struct op_cuda delta_rule_cuda = {"delta_rule", recurrence_fill_cuda, recurrence_launch, NULL};
