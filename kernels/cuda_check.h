/* cuda_check - a failed CUDA call told as a sentence: the call, the error's name and text, and what to do.
 *
 * Only for .cu files, and their first include. Nothing aborts. An error that a kernel caused sticks to the process's context: every later call
 * answers it too, and the process is to be replaced (cuda_sticky says so). */
#ifndef REFTEST_KERNELS_CUDA_CHECK_H
#define REFTEST_KERNELS_CUDA_CHECK_H

#include <cuda_runtime.h>
#include <string.h>

/* base is C and does not know of C++: first included here, by every .cu file. */
extern "C" {
#include "base/dtype.h"
#include "base/err.h"
#include "base/hash.h"
}

/* What mends an error, as the end of a sentence. */
static inline const char *cuda_remedy(cudaError_t error)
{
	switch (error) {
	case cudaErrorNoDevice:
	case cudaErrorInsufficientDriver:
	case cudaErrorInitializationError:
		return "`nvidia-smi` must list a GPU: install or update the NVIDIA driver, or use --device cpu";
	case cudaErrorInvalidDevice:
	case cudaErrorDevicesUnavailable:
		return "`nvidia-smi -L` lists the GPUs that can be named after cuda:";
	case cudaErrorMemoryAllocation:
		return "free memory on the GPU (`nvidia-smi` shows who holds it) or take smaller sizes";
	case cudaErrorNoKernelImageForDevice:
	case cudaErrorUnsupportedPtxVersion:
		return "rebuild with an nvcc that knows this GPU, or update the driver";
	default:
		return "if it happens again, run the case under compute-sanitizer";
	}
}

/* 0 when the call went well; else -1 and the sentence. `call` is told up to its arguments. */
static inline int cuda_check(cudaError_t error, const char *call, struct err *err)
{
	if (error == cudaSuccess)
		return 0;
	(void)cudaGetLastError(); /* told here; the next launch's check must not find it again */
	return err_set(err, "CUDA: %.*s failed with %s (%s); %s", (int)strcspn(call, "("), call, cudaGetErrorName(error),
	               cudaGetErrorString(error), cuda_remedy(error));
}

/* Does the context answer nothing but this error from now on? */
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

/* Checks a call and names it as it stands in the source. */
#define CUDA_CHECK(call, err) cuda_check((call), #call, (err))

#endif
