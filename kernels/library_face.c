/* library_face - what libreftest_kernels.so shows to reftest; kernels/truth.h is what it shows to everybody. */
#include "kernels/library.h"

#include "kernels_digest.h"

/* As many as op_table has, as a constant of the compiler. */
#define OP(name, truth, inputs) +1
enum {
	OPS = 0
#include "ops.inc"
};
#undef OP

extern const struct kernels_face reftest_kernels;

__attribute__((visibility("default"))) const struct kernels_face reftest_kernels = {
    .abi = KERNELS_ABI,
    .digest = KERNELS_DIGEST,
    .checker_digest = CHECKER_DIGEST,
    .ops = op_table,
    .op_count = OPS,
    .find = op_find,
    .by_name = op_by_name,
    .open_cpu = device_open_cpu,
};
