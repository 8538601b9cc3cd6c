/* kernels_library - loads the kernels libraries at run time, each from a sealed copy in memory (base/sealed_library.h).
 * If the libraries are built again, a running program keeps its copies. A machine without CUDA lacks only the CUDA
 * library. */
#ifndef REFTEST_KERNELS_CORE_KERNELS_LIBRARY_H
#define REFTEST_KERNELS_CORE_KERNELS_LIBRARY_H

#include "base/err.h"
#include "base/sealed_library.h"
#include "kernels/core/family_candidates.h"
#include "kernels/core/device.h"
#include "kernels/core/diagnosis.h"
#include "kernels/core/miss_map.h"
#include "kernels/core/miss_pattern.h"
#include "kernels/core/op.h"

enum { KERNELS_ABI = 19 }; /* increase this number when you change a struct that the program and the libraries share */

/* The interface that libreftest_kernels.so exports as `reftest_kernels`. */
struct kernels_api {
	int abi;
	const char *digest; /* the digest of all sources in kernels/ */
	const char *checker_digest; /* the digest of the code that is used to check every family: comparison, inputs,
				     * judge, runner */
	const struct op_entry *ops;
	int op_count;
	const struct op_entry *(*find)(const struct op_problem *problem, int *variant, struct err *why);
	int (*candidates)(const struct op_problem *problem, struct op_candidate *out, struct err *why);
	const struct op_entry *(*by_name)(const char *name);
	struct device *(*open_cpu)(struct err *err);
	void (*diagnose)(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
			 struct diagnosis *diagnosis);
	void (*note_passed)(struct diagnosis *diagnosis, const struct op_case *const *sets, int count);
	bool (*miss_pattern)(const struct tensor *found, const struct tensor *truth, struct rule rule,
			     const char *const *axes, char *out, size_t size);
	bool (*miss_map)(const struct tensor *found, const struct tensor *truth, struct rule rule, struct miss_map *map);
	bool (*output_is_truncated)(const char *name, const struct tensor *found, const struct tensor *truth, struct err *why);
	void (*use_threads)(int count); /* sets the number of OpenMP threads for the later work of the calling thread */
};

/* The interface that libreftest_kernels_cuda.so exports as `reftest_kernels_cuda`. */
struct kernels_cuda_api {
	int abi;
	const char *digest; /* must equal the digest of the CPU library, because both must be from the same build */
	struct device *(*open)(int index, struct err *err);
};

struct kernels {
	const struct kernels_api *api;
	const struct kernels_cuda_api *cuda; /* NULL: the CUDA library is not built, or not loaded yet */
	void *handle, *cuda_handle;           /* handles from dlopen */
	int cuda_library;		      /* the descriptor of the sealed copy of the CUDA library, owned; -1:
					       * none */
	char path[4096], cuda_path[4096];
};

/* Loads the CPU library. If $REFTEST_KERNELS is set, searches only the folder that it names. Otherwise, searches the
 * binary's folder, and then ../lib/reftest relative to that folder. `memory` may be NULL. */
int kernels_open(struct kernels *kernels, const struct digest_memory *memory, struct err *err);
/* Makes the sealed copy of the CUDA library. The library must be in the folder of the CPU library. Does not load the
 * CUDA library, because a process that has loaded it should not fork. Returns -1 with a message in `err` if the CUDA
 * library is not built. */
int kernels_seal_cuda(struct kernels *kernels, const struct digest_memory *memory, struct err *err);
/* Loads the CUDA library from its sealed copy, and makes this copy first if there is none. Returns -1 with a message in
 * `err` if the CUDA library is not built or is from another build, or if the driver is missing. */
int kernels_open_cuda(struct kernels *kernels, struct err *err);
void kernels_close(struct kernels *kernels);

#endif
