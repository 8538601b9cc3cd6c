/* gated_delta_rule on a GPU - uses the kernels of kernels/common/linear_attention/recurrence_cuda.h. */
#include "kernels/common/linear_attention/recurrence_cuda.h"

extern "C" const struct op_cuda gated_delta_rule_cuda = {"gated_delta_rule", recurrence_fill_cuda, recurrence_launch,
                                                      NULL};
