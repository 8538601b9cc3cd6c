/* number - conversions between float and the narrow dtypes, bit-exact on CPU and GPU, for tests, oracles and inputs.
 *
 * Rounding is to nearest, ties to even. NaN stays NaN (quiet). Overflow: float16, bfloat16 and float8_e5m2 go to
 * infinity; float8_e4m3fn has none and goes to NaN, as torch's cast does (callers that want saturation clamp to 448
 * first). Formats: OCP 8-bit floating point 1.0; e2m1 and e8m0 from OCP microscaling formats 1.0. */
#ifndef REFTEST_KERNELS_NUMBER_H
#define REFTEST_KERNELS_NUMBER_H

#include <stdint.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/inputs.h"

HOST_DEVICE static inline uint32_t float_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

HOST_DEVICE static inline float float_from_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

HOST_DEVICE static inline float float_from_bf16(uint16_t bits)
{
	return float_from_bits((uint32_t)bits << 16);
}

HOST_DEVICE static inline uint16_t bf16_from_float(float value)
{
	uint32_t bits = float_bits(value);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((bits >> 16) | 0x40); /* NaN: keep it one when the low bits go */
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Element `index` of a dense tensor of `dtype` at `data`, as a double (exact but for int64 beyond 2^53), and the
 * rounding of a double to element `index` (once, from double: no double rounding through float). Host only. */
double number_get(const void *data, enum dtype dtype, int64_t index);
void number_set(void *data, enum dtype dtype, int64_t index, double value);

#endif
