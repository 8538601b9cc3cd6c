/* mla_paged on a GPU - uses the kernels of kernels/common/attention/attention_cuda.h. */
#include "kernels/common/attention/attention_cuda.h"

extern "C" const struct op_cuda mla_paged_cuda = {"mla_paged", attention_fill_cuda, attention_launch, NULL};
