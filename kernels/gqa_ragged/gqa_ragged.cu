/* gqa_ragged on a GPU - uses the kernels of kernels/common/attention/ragged.h. */
#include "kernels/common/attention/ragged.h"

extern "C" const struct op_cuda gqa_ragged_cuda = {"gqa_ragged", attention_ragged_fill_cuda, attention_ragged_launch, NULL};
