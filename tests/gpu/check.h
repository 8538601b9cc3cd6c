/* check - the argument of a check that compares a GPU with the CPU. */
#ifndef REFTEST_TESTS_GPU_CHECK_H
#define REFTEST_TESTS_GPU_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/compare_tensors.h"
#include "kernels/core/device.h"
#include "kernels/core/kernels_library.h"
#include "tests/gpu/check_messages.h"

/* The argument of every check. A check returns the number of errors, and prints a message about each one with `tell`.
 * */
struct check {
	const struct kernels_cuda_api *api;
	struct device *cpu, *gpu;
	bool quick;
};

static inline void *gpu_memory(const struct check *check, int64_t bytes)
{
	struct err err;
	void *memory = check->gpu->calls->allocate(check->gpu, bytes, &err);

	must(memory != NULL, &err);
	return memory;
}

static inline void upload(const struct check *check, void *to, const void *from, int64_t bytes)
{
	struct err err;

	must(check->gpu->calls->upload(check->gpu, to, from, bytes, &err) == 0, &err);
}

static inline void *host_memory(int64_t bytes)
{
	void *memory = aligned_alloc(256, (size_t)(bytes / 256 + 1) * 256);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

#endif
