/* gqa_ragged on a GPU - uses the kernels of kernels/common/attention/attention_cuda.h. */
#include "kernels/common/attention/attention_cuda.h"

extern "C" const struct op_cuda gqa_ragged_cuda = {"gqa_ragged", attention_fill_cuda, attention_launch, NULL};
