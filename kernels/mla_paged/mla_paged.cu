/* mla_paged on a GPU: by the kernels of kernels/attention_cuda.h. */
#include "kernels/attention_cuda.h"

#include "kernels/mla_paged/inputs.h"

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	return attention_fill_cuda(c, &roles, input, out, stream, err);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	struct attention_roles roles = mla_paged_roles(c->problem);

	return attention_launch(c, &roles, in, out, stream, err);
}

extern "C" const struct op_cuda mla_paged_cuda = {"mla_paged", fill, launch, NULL};
