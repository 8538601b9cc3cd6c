/* number - conversions between float and the narrow dtypes, bit-exact on CPU and GPU, for tests, oracles and inputs.
 *
 * Rounding is to nearest, ties to even. NaN stays NaN (quiet). Overflow: float16, bfloat16 and float8_e5m2 go to
 * infinity; float8_e4m3fn has none and goes to NaN, as torch's cast does (callers that want saturation clamp to 448
 * first); float4_e2m1, which has neither, saturates at 6, and its NaN is 6 too. float8_e8m0fnu holds powers of two
 * alone: the nearest one (ties to the larger), NaN for what is not positive.
 * Formats: OCP 8-bit floating point 1.0; e2m1 and e8m0 from OCP microscaling formats 1.0. */
#ifndef REFTEST_KERNELS_NUMBER_H
#define REFTEST_KERNELS_NUMBER_H

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

/* 2^exponent, exactly; exponent in -126 … 127. */
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
		return (uint16_t)((bits >> 16) | 0x40); /* NaN: keep it one when the low bits go */
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* The code, without its sign, of |value| in a format of `mantissa_bits` and exponent bias `bias`, with subnormals.
 * Beyond `largest`, the code of the largest finite number, it is `overflow`. `value` is no NaN; infinity overflows. */
HOST_DEVICE static inline uint32_t narrow_code(float value, int mantissa_bits, int bias, uint32_t largest,
                                               uint32_t overflow)
{
	uint32_t bits = float_bits(value) & 0x7fffffffu;
	uint32_t significand = (bits & 0x7fffffu) | (bits >= 0x800000u ? 0x800000u : 0);
	int exponent = (int)(bits >> 23) - 127 + bias; /* biased as the narrow format has it; below 1: subnormal there */
	int shift = 23 - mantissa_bits + (exponent < 1 ? 1 - exponent : 0);

	if (shift > 24)
		return 0;
	uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);

	if (rest > half || (rest == half && (kept & 1)))
		kept++; /* may carry into the next binade, where the code is right too */
	uint32_t code = kept + (exponent > 1 ? (uint32_t)(exponent - 1) << mantissa_bits : 0);

	return code > largest ? overflow : code;
}

/* The float that a code without its sign stands for; codes of infinities and NaN are the caller's. */
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

/* Without a branch, for loops: exponent and fraction move to their places, and one exact product mends the bias, for
 * subnormals too. Infinities and NaN keep their fraction under the largest exponent. */
HOST_DEVICE static inline float float_from_f16(uint16_t bits)
{
	uint32_t moved = (uint32_t)(bits & 0x7fffu) << 13, sign = (uint32_t)(bits & 0x8000u) << 16;
	uint32_t finite = float_bits(float_from_bits(moved) * 0x1p112f);

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

/* A nibble: 0 … 15. */
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
	return bits == 0 ? float_from_bits(0x00400000u) : float_power(bits - 127); /* 2^-127 is subnormal */
}

HOST_DEVICE static inline uint8_t e8m0_from_float(float value)
{
	uint32_t bits = float_bits(value);

	if (bits == 0 || bits > 0x7f800000u)
		return 255; /* zero, negative, NaN */
	if (bits < 0x00600000u)
		return 0; /* nearer to 2^-127 than to 2^-126 */
	uint32_t code = (bits + 0x00400000u) >> 23; /* up from 1.5, the middle between two powers */

	return (uint8_t)(code > 254 ? 255 : code);
}

/* Rounds `value` to element `index` of a dense float tensor on this side's memory. float4_e2m1 shares an octet between
 * two elements: one thread must write both. Integers are not written. */
HOST_DEVICE static inline void number_store(void *data, enum dtype dtype, int64_t index, float value)
{
	uint8_t *octets = (uint8_t *)data;

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
		octets[index] = e4m3_from_float(value);
		break;
	case DTYPE_FLOAT8_E5M2:
		octets[index] = e5m2_from_float(value);
		break;
	case DTYPE_FLOAT8_E8M0FNU:
		octets[index] = e8m0_from_float(value);
		break;
	case DTYPE_FLOAT4_E2M1: {
		int shift = (int)(index & 1) * 4;
		uint32_t rest = octets[index / 2] & (0xf0u >> shift);

		octets[index / 2] = (uint8_t)(rest | (uint32_t)e2m1_from_float(value) << shift);
		break;
	}
	default:
		break;
	}
}

#ifdef __cplusplus
extern "C" {
#endif

/* Element `index` of a dense tensor of `dtype` at `data`, as a double (exact but for int64 beyond 2^53), and the
 * rounding of a double to element `index` (once, from double: no double rounding through float; integers: nearest,
 * ties to even, saturating, NaN gives 0; bool: 1 unless zero). Host only. */
double number_get(const void *data, enum dtype dtype, int64_t index);
void number_set(void *data, enum dtype dtype, int64_t index, double value);

/* The same for `count` elements from `first` on. Host only. */
void number_read(const void *data, enum dtype dtype, int64_t first, int64_t count, double *out);
void number_write(void *data, enum dtype dtype, int64_t first, int64_t count, const double *values);

/* number_store of `count` elements from `first` on. Host only. */
void number_store_run(void *data, enum dtype dtype, int64_t first, int64_t count, const float *values);

/* `value` cut to float, towards zero, with the last bit set if anything was lost ("rounding to odd"): rounding that
 * once more, to 22 bits or fewer, rounds `value` once. */
float float_from_double_odd(double value);

#ifdef __cplusplus
}
#endif
#endif
