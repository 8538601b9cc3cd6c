/* dtype - the element types of tensors. The names come from the FlashInfer-Trace schema.
 *
 * A new element type must also be added to: base/dtype.c, dataset/definition_parse.c (the list of dtypes in a
 * message), dataset/safetensors.c, kernels/core/dtype_convert.{h,c}, kernels/core/compare_tensors.cu,
 * kernels/core/compare_by_dtype.cuh, kernels/core/default_tolerance.c, kernels/core/random_inputs.h,
 * cache/python_names.h, python/tensors.py, python/testing/conftest.py and conftest_cases.py, report/reproduce.py,
 * docs/formats.md. An integer type must also be added to dataset/constraint_values.c and to bounds_of in
 * dataset/workload.c. A floating-point type must also be added to python/gradients.py if references cast tensors to
 * this type. The `match` function of an op family lists the element types that the family accepts.
 * docs/architecture.md ("Where to look") lists the tests that must know a new element type. */
#ifndef REFTEST_BASE_DTYPE_H
#define REFTEST_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* Processes exchange these numbers, and cached records contain them. Never change a number; only append new ones. */
enum dtype {
	DTYPE_FLOAT32 = 0,
	DTYPE_FLOAT16 = 1,
	DTYPE_BFLOAT16 = 2,
	DTYPE_FLOAT8_E4M3FN = 3,
	DTYPE_FLOAT8_E5M2 = 4,
	DTYPE_FLOAT4_E2M1 = 5, /* two elements per byte, the first one in the low four bits */
	DTYPE_INT64 = 6,
	DTYPE_INT32 = 7,
	DTYPE_INT16 = 8,
	DTYPE_INT8 = 9,
	DTYPE_BOOL = 10, /* one byte, 0 or 1 */
	DTYPE_UINT8 = 11,
	DTYPE_UINT32 = 12,
	DTYPE_FLOAT64 = 13,
	DTYPE_FLOAT8_E8M0FNU = 14,
	DTYPE_COUNT
};

const char *dtype_name(enum dtype dtype);
bool dtype_parse(const char *name, enum dtype *dtype); /* false: unknown name */
int dtype_bits(enum dtype dtype);                      /* 4 to 64 */
bool dtype_is_float(enum dtype dtype);
int64_t dtype_bytes(enum dtype dtype, int64_t elements); /* rounded up to whole bytes */

#endif
