/* gqa_paged on a GPU - uses the kernels of kernels/common/attention/attention_cuda.h. */
#include "kernels/common/attention/attention_cuda.h"

extern "C" const struct op_cuda gqa_paged_cuda = {"gqa_paged", attention_fill_cuda, attention_launch, NULL};
