/* device - declares one interface for the CPU and for a CUDA GPU. The functions allocate memory for tensors, fill
 * inputs, compute ground truth, and compare outputs.
 *
 * The judge uses only this interface. All addresses are in device memory, which is host memory for the CPU. Unless
 * stated otherwise, a call returns 0, or -1 with a message in `err`, and its work is complete when it returns. After a
 * sticky CUDA error, every later call fails too, and `broken` returns true; the process must then be replaced. */
#ifndef REFTEST_KERNELS_CORE_DEVICE_H
#define REFTEST_KERNELS_CORE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/metrics.h"
#include "kernels/core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DEVICE_HANDLE = 64 };

/* A part of a device's memory. A call can write or compare several parts. */
struct device_part {
	void *memory;
	const void *bytes;  /* device memory with the bytes of the part; NULL: every byte of the part is `byte` */
	unsigned char byte;
	int64_t length;     /* length of the part in bytes; may be 0 */
};

struct device; /* opaque to callers; each implementation defines its own struct */

struct device_calls {
	void (*close)(struct device *device);
	const char *(*class_name)(const struct device *device); /* for example "cpu", "sm_90" */
	const char *(*product)(const struct device *device);    /* for example "NVIDIA H200", "AMD EPYC …" */
	int64_t (*memory_free)(struct device *device);           /* number of bytes that can still be allocated */
	int64_t (*memory_total)(struct device *device);
	bool (*broken)(const struct device *device);

	void *(*allocate)(struct device *device, int64_t bytes, struct err *err); /* aligned to 256 bytes; NULL on failure */
	void (*release)(struct device *device, void *memory);
	/* Writes a handle with which another process can map the memory (CUDA IPC). Returns -1 if this device cannot
	 * share memory; the caller must then copy through the host. On the CPU, processes share memory by memfd,
	 * outside of this interface. */
	int (*share)(struct device *device, void *memory, unsigned char handle[DEVICE_HANDLE], struct err *err);

	int (*upload)(struct device *device, void *to, const void *from_host, int64_t bytes, struct err *err);
	int (*download)(struct device *device, void *to_host, const void *from, int64_t bytes, struct err *err);
	int (*copy)(struct device *device, void *to, const void *from, int64_t bytes, struct err *err);
	int (*set)(struct device *device, void *to, unsigned char byte, int64_t bytes, struct err *err);
	/* Write or compare all parts. If several processes use a GPU at the same time, each call must wait until the
	 * GPU serves its process. One call for many parts therefore takes much less time than one call for each part.
	 * `parts_equal` returns 1 if each part has the bytes that its struct device_part describes, 0 if a part
	 * differs, or -1 on error. */
	int (*write_parts)(struct device *device, const struct device_part *parts, int count, struct err *err);
	int (*parts_equal)(struct device *device, const struct device_part *parts, int count, struct err *err);
	/* Compares `bytes` bytes. Returns the offset of the first difference, -1 if all bytes are equal, or -2 on
	 * error. */
	int64_t (*first_difference)(struct device *device, const void *a, const void *b, int64_t bytes, struct err *err);
	/* Returns the offset of the first byte that differs from `byte`, -1 if all bytes equal it, or -2 on error. */
	int64_t (*first_other)(struct device *device, const void *a, unsigned char byte, int64_t bytes, struct err *err);

	/* Fills one input of a case with the values that the family defines. If `op` is NULL, writes generic values:
	 * floats are uniform on [-1, 1), and integers and bools are 0. The work may still run when `fill` returns.
	 * Every later call that reads or writes memory, except another `fill`, waits for this work, and fails if the
	 * work failed. Do not call `fill` for memory that another process maps: that process would see unfinished
	 * values. */
	int (*fill)(struct device *device, const struct op *op, const struct op_case *c, int input, struct tensor *out,
	            struct err *err);
	/* Computes the outputs of a case with the family's builtin ground truth. */
	int (*truth)(struct device *device, const struct op *op, const struct op_case *c, const struct tensor *in,
	             struct tensor *out, struct err *err);
	/* Returns the number of bytes of scratch memory that `truth` needs. */
	int64_t (*truth_scratch)(struct device *device, const struct op *op, const struct op_case *c);
	int (*compare)(struct device *device, const void *reference, const void *ground_truth, enum dtype dtype,
	               int64_t elements, struct rule rule, struct metrics *out, struct err *err);
};

struct device {
	const struct device_calls *calls;
};

/* kernels/core/device_cpu.c implements the interface for the CPU (libreftest_kernels), and kernels/core/device_cuda.cu
 * for a GPU (libreftest_kernels_cuda). */
struct device *device_open_cpu(struct err *err);
struct device *device_open_cuda(int index, struct err *err);

#ifdef __cplusplus
}
#endif
#endif
