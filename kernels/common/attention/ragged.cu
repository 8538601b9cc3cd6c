/* ragged - computes ragged attention on a GPU, with the kernels of kernels/common/attention/attention_cuda.h. */
#include "kernels/common/attention/ragged.h"

#include "kernels/common/attention/attention_cuda.h"

int attention_ragged_fill_cuda(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	return attention_fill_cuda(c, &roles, input, out, stream, err);
}

int attention_ragged_launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                            struct err *err)
{
	struct attention_roles roles = attention_ragged_roles(c->problem);

	return attention_launch(c, &roles, in, out, stream, err);
}
