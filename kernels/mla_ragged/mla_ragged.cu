/* mla_ragged on a GPU - uses the kernels of kernels/common/attention/ragged.h. */
#include "kernels/common/attention/ragged.h"

extern "C" const struct op_cuda mla_ragged_cuda = {"mla_ragged", attention_ragged_fill_cuda, attention_ragged_launch, NULL};
