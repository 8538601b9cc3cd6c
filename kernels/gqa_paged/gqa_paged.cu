/* gqa_paged on a GPU - uses the kernels of kernels/common/attention/paged.h. */
#include "kernels/common/attention/paged.h"

extern "C" const struct op_cuda gqa_paged_cuda = {"gqa_paged", attention_paged_fill_cuda, attention_paged_launch, NULL};
