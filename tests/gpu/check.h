/* check - what a check of a GPU against the CPU gets, and how it says what is wrong. */
#ifndef REFTEST_TESTS_GPU_CHECK_H
#define REFTEST_TESTS_GPU_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/compare.h"
#include "kernels/device.h"
#include "kernels/library.h"

/* What every check gets. A check returns how many things were wrong; `tell` says which. */
struct check {
	const struct kernels_cuda_face *face;
	struct device *cpu, *gpu;
	bool quick;
};

static inline int tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int tell(const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	return 1;
}

static inline void must(int rc, const struct err *err)
{
	if (rc == 0)
		return;
	printf("Bail out! %s\n", err->text);
	exit(1);
}

static inline void *gpu_memory(const struct check *check, int64_t bytes)
{
	struct err err;
	void *memory = check->gpu->calls->allocate(check->gpu, bytes, &err);

	must(memory == NULL ? -1 : 0, &err);
	return memory;
}

static inline void upload(const struct check *check, void *to, const void *from, int64_t bytes)
{
	struct err err;

	must(check->gpu->calls->upload(check->gpu, to, from, bytes, &err), &err);
}

static inline void *host_memory(int64_t bytes)
{
	void *memory = aligned_alloc(256, (size_t)(bytes / 256 + 1) * 256);

	if (memory == NULL)
		die_no_memory();
	return memory;
}

#endif
