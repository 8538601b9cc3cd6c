/* mla_paged on a GPU: kernels/attention_paged.h. */
#include "kernels/attention_paged.h"

extern "C" const struct op_cuda mla_paged_cuda = {"mla_paged", attention_paged_fill_cuda, attention_paged_launch, NULL};
