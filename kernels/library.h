/* library - the kernels libraries as a program finds them: loaded at run time, so that a rebuilt family is picked up
 * by loading anew, and so that a machine without CUDA lacks nothing but the second one. */
#ifndef REFTEST_KERNELS_LIBRARY_H
#define REFTEST_KERNELS_LIBRARY_H

#include "base/err.h"
#include "kernels/device.h"
#include "kernels/op.h"

enum { KERNELS_ABI = 5 }; /* raised whenever a struct that crosses the boundary changes */

/* What libreftest_kernels.so exports as `reftest_kernels`. */
struct kernels_face {
	int abi;
	const char *digest; /* over all sources of the room: changes whenever anything in kernels/ does */
	const char *checker_digest; /* over what judges every family alike: compare, inputs, the judge, the runner */
	const struct op_entry *ops;
	int op_count;
	const struct op_entry *(*find)(const struct op_problem *problem, int *variant, struct err *why);
	const struct op_entry *(*by_name)(const char *name);
	struct device *(*open_cpu)(struct err *err);
};

/* What libreftest_kernels_cuda.so exports as `reftest_kernels_cuda`. */
struct kernels_cuda_face {
	int abi;
	const char *digest; /* must equal the CPU library's: both come from one build */
	struct device *(*open)(int index, struct err *err);
};

struct kernels {
	const struct kernels_face *face;
	const struct kernels_cuda_face *cuda; /* NULL: not built, or not loaded yet */
	void *handle, *cuda_handle;           /* of dlopen */
	char path[4096], cuda_path[4096];
};

/* Loads the CPU library: $REFTEST_KERNELS (a folder), else beside the binary, else ../lib/reftest from it. */
int kernels_open(struct kernels *kernels, struct err *err);
/* Loads the CUDA library beside it. -1 with the reason (not built; another build; no driver). */
int kernels_open_cuda(struct kernels *kernels, struct err *err);
void kernels_close(struct kernels *kernels);

#endif
