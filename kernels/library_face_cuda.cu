/* library_face_cuda - the one symbol that libreftest_kernels_cuda.so shows. */
#include "kernels/cuda_check.h"

#include "kernels/device.h"

extern "C" {
#include "kernels/library.h"

#include "kernels_digest.h"

extern __attribute__((visibility("default"))) const struct kernels_cuda_face reftest_kernels_cuda;

const struct kernels_cuda_face reftest_kernels_cuda = {KERNELS_ABI, KERNELS_DIGEST, device_open_cuda};
}
