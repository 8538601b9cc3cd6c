/* gqa_paged on a GPU: kernels/attention_paged.h. */
#include "kernels/attention_paged.h"

extern "C" const struct op_cuda gqa_paged_cuda = {"gqa_paged", attention_paged_fill_cuda, attention_paged_launch, NULL};
