/* dtype - the element types of tensors. Names are those of the FlashInfer-Trace schema. */
#ifndef REFTEST_BASE_DTYPE_H
#define REFTEST_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers travel between processes and into cached records: never renumber, only append. */
enum dtype {
	DTYPE_FLOAT32 = 0,
	DTYPE_FLOAT16 = 1,
	DTYPE_BFLOAT16 = 2,
	DTYPE_FLOAT8_E4M3FN = 3,
	DTYPE_FLOAT8_E5M2 = 4,
	DTYPE_FLOAT4_E2M1 = 5, /* two an octet, low nibble first */
	DTYPE_INT64 = 6,
	DTYPE_INT32 = 7,
	DTYPE_INT16 = 8,
	DTYPE_INT8 = 9,
	DTYPE_BOOL = 10, /* one octet, 0 or 1 */
	DTYPE_UINT8 = 11,
	DTYPE_UINT32 = 12,
	DTYPE_FLOAT64 = 13,
	DTYPE_FLOAT8_E8M0FNU = 14,
	DTYPE_COUNT
};

const char *dtype_name(enum dtype dtype);
bool dtype_parse(const char *name, enum dtype *dtype); /* false: no such name */
int dtype_bits(enum dtype dtype);                      /* 4 to 64 */
bool dtype_is_float(enum dtype dtype);
int64_t dtype_bytes(enum dtype dtype, int64_t elements); /* rounded up to whole octets */

#endif
