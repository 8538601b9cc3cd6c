/* mla_ragged on a GPU: kernels/attention_ragged.h. */
#include "kernels/attention_ragged.h"

extern "C" const struct op_cuda mla_ragged_cuda = {"mla_ragged", attention_ragged_fill_cuda, attention_ragged_launch, NULL};
