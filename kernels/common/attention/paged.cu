/* paged - computes paged attention on a GPU, with the kernels of kernels/common/attention/attention_cuda.h. */
#include "kernels/common/attention/paged.h"

#include "kernels/common/attention/attention_cuda.h"

int attention_paged_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct attention_roles roles = attention_paged_roles(c->problem);

	return attention_fill_cuda(c, &roles, input, out, stream, err);
}

int attention_paged_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                           struct err *err)
{
	struct attention_roles roles = attention_paged_roles(c->problem);

	return attention_launch(c, &roles, in, out, stream, err);
}
