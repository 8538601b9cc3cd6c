/* device - where tensors lie and ground truth is made: the CPU, or one CUDA GPU, behind one set of calls.
 *
 * The judge speaks to this alone. Addresses are device memory (plain host memory on the CPU). Every call returns 0 or
 * -1 with a sentence and is finished when it returns, unless it says otherwise. After a CUDA error that sticks to the
 * context, every later call fails too and `device_broken` is true: the process is to be replaced. */
#ifndef REFTEST_KERNELS_DEVICE_H
#define REFTEST_KERNELS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/metrics.h"
#include "kernels/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DEVICE_HANDLE = 64 };

struct device; /* opaque; each implementation has its own */

struct device_calls {
	void (*close)(struct device *device);
	const char *(*class_name)(const struct device *device); /* "cpu", "sm_90" */
	const char *(*product)(const struct device *device);    /* "NVIDIA H200", "AMD EPYC …" */
	int64_t (*memory_free)(struct device *device);           /* bytes that an allocation may still take */
	int64_t (*memory_total)(struct device *device);
	bool (*broken)(const struct device *device);

	void *(*allocate)(struct device *device, int64_t bytes, struct err *err); /* aligned to 256; NULL on failure */
	void (*release)(struct device *device, void *memory);
	/* An address another process can map: fills `handle` (CUDA IPC). -1: this device cannot share; stage through the
	 * host instead. The CPU shares by memfd, outside this interface. */
	int (*share)(struct device *device, void *memory, unsigned char handle[DEVICE_HANDLE], struct err *err);

	int (*upload)(struct device *device, void *to, const void *from_host, int64_t bytes, struct err *err);
	int (*download)(struct device *device, void *to_host, const void *from, int64_t bytes, struct err *err);
	int (*copy)(struct device *device, void *to, const void *from, int64_t bytes, struct err *err);
	int (*set)(struct device *device, void *to, unsigned char byte, int64_t bytes, struct err *err);
	/* Offset of the first byte in which the two differ, -1 when they are equal; -2 on error. */
	int64_t (*first_difference)(struct device *device, const void *a, const void *b, int64_t bytes, struct err *err);
	/* Offset of the first byte that is not `byte`, -1 when all are; -2 on error. */
	int64_t (*first_other)(struct device *device, const void *a, unsigned char byte, int64_t bytes, struct err *err);

	/* One input of a case, by its family's rules; without a family (op NULL), generic values: floats uniform on
	 * [-1, 1), integers and bool 0. */
	int (*fill)(struct device *device, const struct op *op, const struct op_case *c, int input, struct tensor *out,
	            struct err *err);
	/* Builtin ground truth. */
	int (*truth)(struct device *device, const struct op *op, const struct op_case *c, const struct tensor *in,
	             struct tensor *out, struct err *err);
	int64_t (*truth_scratch)(struct device *device, const struct op *op, const struct op_case *c); /* bytes it takes */
	int (*compare)(struct device *device, const void *reference, const void *ground_truth, enum dtype dtype,
	               int64_t elements, struct rule rule, struct metrics *out, struct err *err);
};

struct device {
	const struct device_calls *calls;
};

/* The two implementations: kernels/device_cpu.c in libreftest_kernels, kernels/device_cuda.cu in
 * libreftest_kernels_cuda. */
struct device *device_open_cpu(struct err *err);
struct device *device_open_cuda(int index, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
