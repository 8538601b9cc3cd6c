/* cuda_check - writes error messages for failed CUDA calls. A message contains the failed call, the name and text of
 * the error, and what the user can do about it (cuda_remedy). Examples of such errors are a missing GPU or driver, too
 * little GPU memory, or an unsupported architecture.
 *
 * Only .cu files include this header, before any other header. No function here ends the process. An error that a
 * kernel caused is sticky: every later call in the CUDA context of the process returns the same error, and another
 * process must continue the work. */
#ifndef REFTEST_KERNELS_CORE_CUDA_CHECK_H
#define REFTEST_KERNELS_CORE_CUDA_CHECK_H

#include <cuda_runtime.h>
#include <string.h>

/* The headers in base/ do not declare extern "C" themselves. Every .cu file must therefore include them through this
 * block, before any other header. */
extern "C" {
#include "base/dtype.h"
#include "base/err.h"
#include "base/hash.h"
}

/* Returns what the user can do about a CUDA error. This text is the end of the message. */
static inline const char *cuda_remedy(cudaError_t error)
{
	switch (error) {
	case cudaErrorNoDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInitializationError:
		return "`nvidia-smi` must list a GPU: install or update the NVIDIA driver, or use --device cpu";
	case cudaErrorInvalidDevice:
	case cudaErrorDevicesUnavailable:
		return "`nvidia-smi -L` lists the GPUs whose number may follow cuda:";
	case cudaErrorMemoryAllocation:
		return "free memory on the GPU (`nvidia-smi` lists the processes that use it) or use smaller sizes";
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorUnsupportedPtxVersion:
		return "rebuild with an nvcc that supports this GPU, or update the NVIDIA driver";
	default:
		return "if the error occurs again, run the case under compute-sanitizer";
	}
}

/* Returns 0 if the call succeeded. Otherwise, returns -1 and writes a message to `err`. The message contains `call`
 * without its arguments. */
static inline int cuda_check(cudaError_t error, const char *call, struct err *err)
{
	if (error == cudaSuccess)
		return 0;
	(void)cudaGetLastError(); /* clears the error, so that the check of the next launch does not report it again */
	return err_set(err, "CUDA: %.*s failed with %s (%s); %s", (int)strcspn(call, "("), call, cudaGetErrorName(error),
	               cudaGetErrorString(error), cuda_remedy(error));
}

/* Returns true if the error is sticky. */
static inline bool cuda_sticky(cudaError_t error)
{
	switch (error) {
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchFailure:
	case cudaErrorLaunchTimeout:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorAssert:
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case cudaErrorUnknown:
		return true;
	default:
		return false;
	}
}

/* Makes a CUDA call and checks its result. The message contains the source text of the call. */
#define CUDA_CHECK(call, err) cuda_check((call), #call, (err))

#endif
