/* kernels_library_exports - lists the functions that libreftest_kernels.so exports to reftest.
 * kernels/core/ground_truth_api.h declares the functions that the library exports to other programs. */
#include "kernels/core/kernels_library.h"

#include <omp.h>

#include "kernels/core/compare_truncation.h"
#include "kernels_digest.h"

/* The number of families in op_table, as a compile-time constant. */
#define OP(name, truth, inputs) +1
enum {
	OPS = 0
#include "ops.inc"
};
#undef OP

extern const struct kernels_api reftest_kernels;

__attribute__((visibility("default"))) const struct kernels_api reftest_kernels = {
    .abi = KERNELS_ABI,
    .digest = KERNELS_DIGEST,
    .checker_digest = CHECKER_DIGEST,
    .ops = op_table,
    .op_count = OPS,
    .find = op_find,
    .candidates = op_candidates,
    .by_name = op_by_name,
    .open_cpu = device_open_cpu,
    .diagnose = diagnose,
    .note_passed = diagnosis_note_passed,
    .miss_pattern = miss_pattern,
    .miss_map = miss_map_make,
    .output_is_truncated = output_is_truncated,
    .use_threads = omp_set_num_threads,
};
