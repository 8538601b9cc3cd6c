#include "base/dtype.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	int bits;
	bool is_float;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_FLOAT32] = {"float32", 32, true},
    [DTYPE_FLOAT16] = {"float16", 16, true},
    [DTYPE_BFLOAT16] = {"bfloat16", 16, true},
    [DTYPE_FLOAT8_E4M3FN] = {"float8_e4m3fn", 8, true},
    [DTYPE_FLOAT8_E5M2] = {"float8_e5m2", 8, true},
    [DTYPE_FLOAT4_E2M1] = {"float4_e2m1", 4, true},
    [DTYPE_INT64] = {"int64", 64, false},
    [DTYPE_INT32] = {"int32", 32, false},
    [DTYPE_INT16] = {"int16", 16, false},
    [DTYPE_INT8] = {"int8", 8, false},
    [DTYPE_BOOL] = {"bool", 8, false},
    [DTYPE_UINT8] = {"uint8", 8, false},
    [DTYPE_UINT32] = {"uint32", 32, false},
    [DTYPE_FLOAT64] = {"float64", 64, true},
    [DTYPE_FLOAT8_E8M0FNU] = {"float8_e8m0fnu", 8, true},
};

const char *dtype_name(enum dtype dtype)
{
	return dtypes[dtype].name;
}

bool dtype_parse(const char *name, enum dtype *dtype)
{
	for (int i = 0; i < DTYPE_COUNT; i++)
		if (strcmp(dtypes[i].name, name) == 0) {
			*dtype = (enum dtype)i;
			return true;
		}
	return false;
}

int dtype_bits(enum dtype dtype)
{
	return dtypes[dtype].bits;
}

bool dtype_is_float(enum dtype dtype)
{
	return dtypes[dtype].is_float;
}

int64_t dtype_bytes(enum dtype dtype, int64_t elements)
{
	int bits = dtypes[dtype].bits;

	return bits >= 8 ? elements * (bits / 8) : (elements * bits + 7) / 8;
}
