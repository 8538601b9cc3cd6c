/* dtype_convert - converts between float and narrower dtypes, with the same bits on CPU and GPU.
 *
 * Rounding is to nearest, ties to even. NaN becomes a quiet NaN. A value that is too large for float16, bfloat16 or
 * float8_e5m2 becomes infinity. A value that is too large for float8_e4m3fn, which has no infinity, becomes NaN, as in
 * torch's cast. A caller that needs saturation must first clamp to 448. float4_e2m1 has neither infinity nor NaN: on
 * overflow, and for NaN, the result is 6. float8_e8m0fnu represents only powers of two. A positive value becomes the
 * nearest power of two; if two are equally near, it becomes the larger one. Any other value becomes NaN. Sources of the
 * formats: OCP 8-bit floating point 1.0; for e2m1 and e8m0, OCP microscaling formats 1.0. */
#ifndef REFTEST_KERNELS_CORE_DTYPE_CONVERT_H
#define REFTEST_KERNELS_CORE_DTYPE_CONVERT_H

#include <stdint.h>
#include <string.h>

#include "base/dtype.h"

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

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

/* Returns 2^exponent exactly. `exponent` is in -126 … 127. */
HOST_DEVICE static inline float float_power(int exponent)
{
	return float_from_bits((uint32_t)(exponent + 127) << 23);
}

HOST_DEVICE static inline float float_from_bf16(uint16_t bits)
{
	return float_from_bits((uint32_t)bits << 16);
}

HOST_DEVICE static inline uint16_t bf16_from_float(float value)
{
	uint32_t bits = float_bits(value);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((bits >> 16) | 0x40); /* set the quiet bit, so that the result is a NaN even if the
							 * remaining fraction bits are 0 */
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Returns the bits of |value| in a narrow format, without the sign bit. The format has `mantissa_bits` fraction bits,
 * the exponent bias `bias`, and subnormals. `largest` is the bit pattern of the format's largest finite number. Returns
 * `overflow` for infinity and for values that round to more than `largest`. `value` must not be NaN. */
HOST_DEVICE static inline uint32_t narrow_code(float value, int mantissa_bits, int bias, uint32_t largest,
                                               uint32_t overflow)
{
	uint32_t bits = float_bits(value) & 0x7fffffffu;
	uint32_t significand = (bits & 0x7fffffu) | (bits >= 0x800000u ? 0x800000u : 0);
	/* The exponent with the bias of the narrow format. If it is below 1, the value is subnormal in that format. */
	int exponent = (int)(bits >> 23) - 127 + bias;
	int shift = 23 - mantissa_bits + (exponent < 1 ? 1 - exponent : 0);

	if (shift > 24)
		return 0;
	uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);

	if (rest > half || (rest == half && (kept & 1)))
		kept++; /* a carry out of the fraction correctly increments the exponent */
	uint32_t code = kept + (exponent > 1 ? (uint32_t)(exponent - 1) << mantissa_bits : 0);

	return code > largest ? overflow : code;
}

/* Converts a result of narrow_code to a float. The caller must handle infinities and NaN. */
HOST_DEVICE static inline float narrow_value(uint32_t code, int mantissa_bits, int bias)
{
	uint32_t exponent = code >> mantissa_bits, fraction = code & ((1u << mantissa_bits) - 1);

	if (exponent == 0)
		return (float)fraction * float_power(1 - bias - mantissa_bits);
	return float_from_bits((exponent + 127u - (uint32_t)bias) << 23 | fraction << (23 - mantissa_bits));
}

HOST_DEVICE static inline int float_is_nan(float value)
{
	return (float_bits(value) & 0x7fffffffu) > 0x7f800000u;
}

HOST_DEVICE static inline uint32_t float_sign(float value)
{
	return float_bits(value) >> 31;
}

/* Converts float16 to float without branches, for use in loops. Shifts exponent and fraction into place, and corrects
 * the bias. For a subnormal float16 x, the bits of the normal float 2^-14 + x are made, and 2^-14 is then subtracted,
 * which is exact. This avoids arithmetic on subnormal floats, which is a hundred times slower on some processors.
 * Infinities and NaN get the largest exponent and keep their fraction. */
HOST_DEVICE static inline float float_from_f16(uint16_t bits)
{
	uint32_t moved = (uint32_t)(bits & 0x7fffu) << 13, sign = (uint32_t)(bits & 0x8000u) << 16;
	uint32_t small = float_bits(float_from_bits((moved & 0x007fffffu) + 0x38800000u) - 0x1p-14f);
	uint32_t finite = moved < 0x00800000u ? small : moved + 0x38000000u;

	return float_from_bits(sign | (moved >= 0x0f800000u ? moved | 0x7f800000u : finite));
}

HOST_DEVICE static inline uint16_t f16_from_float(float value)
{
	uint32_t code = float_is_nan(value) ? 0x7e00u : narrow_code(value, 10, 15, 0x7bff, 0x7c00);

	return (uint16_t)(float_sign(value) << 15 | code);
}

HOST_DEVICE static inline float float_from_e4m3(uint8_t bits)
{
	uint32_t code = bits & 0x7fu, sign = (uint32_t)(bits >> 7) << 31;

	return float_from_bits(sign | (code == 0x7f ? 0x7fc00000u : float_bits(narrow_value(code, 3, 7))));
}

HOST_DEVICE static inline uint8_t e4m3_from_float(float value)
{
	uint32_t code = float_is_nan(value) ? 0x7fu : narrow_code(value, 3, 7, 0x7e, 0x7f);

	return (uint8_t)(float_sign(value) << 7 | code);
}

HOST_DEVICE static inline float float_from_e5m2(uint8_t bits)
{
	uint32_t code = bits & 0x7fu, sign = (uint32_t)(bits >> 7) << 31;

	if (code >= 0x7c)
		return float_from_bits(sign | 0x7f800000u | (code & 3u) << 21);
	return float_from_bits(sign | float_bits(narrow_value(code, 2, 15)));
}

HOST_DEVICE static inline uint8_t e5m2_from_float(float value)
{
	uint32_t code = float_is_nan(value) ? 0x7eu : narrow_code(value, 2, 15, 0x7b, 0x7c);

	return (uint8_t)(float_sign(value) << 7 | code);
}

/* `nibble` is in 0 … 15. */
HOST_DEVICE static inline float float_from_e2m1(uint8_t nibble)
{
	return float_from_bits((uint32_t)(nibble >> 3 & 1) << 31 | float_bits(narrow_value(nibble & 7u, 1, 1)));
}

HOST_DEVICE static inline uint8_t e2m1_from_float(float value)
{
	uint32_t code = float_is_nan(value) ? 7u : narrow_code(value, 1, 1, 7, 7);

	return (uint8_t)(float_sign(value) << 3 | code);
}

HOST_DEVICE static inline float float_from_e8m0(uint8_t bits)
{
	if (bits == 255)
		return float_from_bits(0x7fc00000u);
	return bits == 0 ? float_from_bits(0x00400000u) : float_power(bits - 127); /* 2^-127 is a subnormal float */
}

HOST_DEVICE static inline uint8_t e8m0_from_float(float value)
{
	uint32_t bits = float_bits(value);

	if (bits == 0 || bits > 0x7f800000u)
		return 255; /* NaN: zero, negative numbers and NaN become NaN */
	if (bits < 0x00600000u)
		return 0; /* the value is nearer to 2^-127 than to 2^-126 */
	uint32_t code = (bits + 0x00400000u) >> 23; /* rounds up if the significand (1 … 2) is at least 1.5 */

	return (uint8_t)(code > 254 ? 255 : code);
}

/* Rounds `value` and stores it as element `index` of a dense float tensor. The tensor must be in memory that the caller
 * can access: host memory, or device memory in a kernel. float4_e2m1 packs two elements into a byte, so one thread must
 * write both. For integer dtypes, does nothing. */
HOST_DEVICE static inline void dtype_store_float(void *data, enum dtype dtype, int64_t index, float value)
{
	uint8_t *bytes = (uint8_t *)data;

	switch (dtype) {
	case DTYPE_FLOAT64:
		((double *)data)[index] = (double)value;
		break;
	case DTYPE_FLOAT32:
		((float *)data)[index] = value;
		break;
	case DTYPE_FLOAT16:
		((uint16_t *)data)[index] = f16_from_float(value);
		break;
	case DTYPE_BFLOAT16:
		((uint16_t *)data)[index] = bf16_from_float(value);
		break;
	case DTYPE_FLOAT8_E4M3FN:
		bytes[index] = e4m3_from_float(value);
		break;
	case DTYPE_FLOAT8_E5M2:
		bytes[index] = e5m2_from_float(value);
		break;
	case DTYPE_FLOAT8_E8M0FNU:
		bytes[index] = e8m0_from_float(value);
		break;
	case DTYPE_FLOAT4_E2M1: {
		int shift = (int)(index & 1) * 4;
		uint32_t rest = bytes[index / 2] & (0xf0u >> shift);

		bytes[index / 2] = (uint8_t)(rest | (uint32_t)e2m1_from_float(value) << shift);
		break;
	}
	default:
		break;
	}
}

#ifdef __cplusplus
extern "C" {
#endif

/* dtype_load returns element `index` of a dense tensor as a double. The result is exact except for int64 beyond 2^53.
 * dtype_store converts a double to the dtype and stores it as element `index`. dtype_store rounds the double only once,
 * directly to the dtype. For integers, it rounds to nearest, ties to even, and saturates; NaN becomes 0. For bool, any
 * value except zero becomes 1. Host only. */
double dtype_load(const void *data, enum dtype dtype, int64_t index);
void dtype_store(void *data, enum dtype dtype, int64_t index, double value);

/* Loads `count` elements, starting with `first`, as doubles. Host only. */
void dtype_load_run(const void *data, enum dtype dtype, int64_t first, int64_t count, double *out);
void dtype_store_run(void *data, enum dtype dtype, int64_t first, int64_t count, const double *values);

/* Stores `count` floats as dtype_store_float does, starting with element `first`. Host only. */
void dtype_store_float_run(void *data, enum dtype dtype, int64_t first, int64_t count, const float *values);

#ifdef __cplusplus
}
#endif
#endif
