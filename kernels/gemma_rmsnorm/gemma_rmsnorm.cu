/* gemma_rmsnorm on a GPU - uses the kernels of kernels/common/norm/rms.h with the weight 1 + w. */
#include "kernels/common/norm/rms.h"

static int fill(const struct op_case *c, int input, struct tensor *out, void *stream, struct err *err)
{
	return rms_fill_cuda(c, 1, input, out, stream, err);
}

static int launch(const struct op_case *c, const struct tensor *in, struct tensor *out, void *, void *stream,
                  struct err *err)
{
	return rms_launch(c, 1, in, out, stream, err);
}

extern "C" const struct op_cuda gemma_rmsnorm_cuda = {"gemma_rmsnorm", fill, launch, NULL};
