/* kernels_library_exports_cuda - lists the functions that libreftest_kernels_cuda.so exports: those that reftest calls,
 * and those with which other programs compute ground truth on a GPU. */
#include "kernels/core/cuda_check.h"

#include "kernels/core/device.h"
#include "kernels/core/ground_truth_api.h"

extern "C" {
#include "kernels/core/kernels_library.h"

#include "kernels_digest.h"

extern __attribute__((visibility("default"))) const struct kernels_cuda_api reftest_kernels_cuda;

const struct kernels_cuda_api reftest_kernels_cuda = {KERNELS_ABI, KERNELS_DIGEST, device_open_cuda};

__attribute__((visibility("default"))) int reftest_truth_cuda(const char *text, int index, const struct truth_place *in,
                                                              const struct truth_place *out, char *why, size_t room)
{
	return truth_on(device_open_cuda, index, text, in, out, NULL, why, room);
}

__attribute__((visibility("default"))) int
reftest_truth_left_cuda(const char *text, int index, const struct truth_place *in, const struct truth_place *out,
                        const struct truth_place *left, char *why, size_t room)
{
	return truth_on(device_open_cuda, index, text, in, out, left, why, room);
}
}
