/* dtype_convert - converts single elements, and runs of consecutive elements, to and from double. Functions that GPU
 * code also needs are in the header. The functions for runs choose the code for the dtype once, before their loop.
 *
 * A double that is stored as a narrow float must be rounded only once. It is therefore first truncated to a float whose
 * last bit is set if bits were lost (rounding to odd). Rounding this float to 22 bits or fewer then gives the same
 * result as rounding the double. */
#include "kernels/core/dtype_convert.h"

#include <math.h>

#include "kernels/core/simd.h"
#ifdef WIDE_X86
#include <immintrin.h>
#endif

/* Truncates `value` to float, and sets the last bit if any bits were lost ("rounding to odd"). The function has no
 * branches, so that the compiler can vectorise loops that call it. */
static inline float cut(double value)
{
	float nearest = (float)value;
	uint32_t bits = float_bits(nearest);
	/* 1 if the float is farther from zero than `value`. If `value` is finite but `nearest` is infinity, subtracting
	 * 1 from the bits gives the largest finite float. */
	uint32_t away = fabs((double)nearest) > fabs(value) ? 1 : 0;

	return float_from_bits((double)nearest == value || isnan(value) ? bits : (bits - away) | 1);
}

/* Rounds to the nearest integer, ties to even, and saturates; NaN becomes 0. `low` and `high` + 1 must be exact as
 * doubles. */
static int64_t to_integer(double value, int64_t low, int64_t high)
{
	if (isnan(value))
		return 0;
	value = nearbyint(value);
	if (value <= (double)low)
		return low;
	return value >= (double)high ? high : (int64_t)value;
}

/* The loop of dtype_load_run for one dtype. Elements have the C type `type`. `expression` is the value of element
 * at[i]. */
#define READ(type, expression)                                          \
	{                                                               \
		const type *at = (const type *)data + first;            \
		for (int64_t i = 0; i < count; i++)                     \
			out[i] = (double)(expression);                  \
	}                                                               \
	break

static void read_e2m1(const void *data, int64_t first, int64_t count, double *out)
{
	const uint8_t *bytes = data;
	double value[16];

	for (unsigned code = 0; code < 16; code++)
		value[code] = (double)float_from_e2m1((uint8_t)code);
	for (int64_t i = 0; i < count; i++)
		out[i] = value[bytes[(first + i) / 2] >> ((first + i) % 2 * 4) & 15];
}

WIDE static void read_f32(const float *at, int64_t count, double *out)
{
	for (int64_t i = 0; i < count; i++)
		out[i] = (double)at[i];
}

WIDE static void read_bf16(const uint16_t *at, int64_t count, double *out)
{
	for (int64_t i = 0; i < count; i++)
		out[i] = (double)float_from_bf16(at[i]);
}

#ifdef WIDE_X86

/* Converts float16 numbers with a processor instruction that converts eight of them at once. Returns how many numbers
 * it has converted. */
__attribute__((target("avx,f16c"))) static int64_t read_f16_lanes(const uint16_t *at, int64_t count, double *out)
{
	enum { LANES = 8 };
	int64_t done = 0;

	for (; done + LANES <= count; done += LANES) {
		__m256 numbers = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at + done)));

		_mm256_storeu_pd(out + done, _mm256_cvtps_pd(_mm256_castps256_ps128(numbers)));
		_mm256_storeu_pd(out + done + LANES / 2, _mm256_cvtps_pd(_mm256_extractf128_ps(numbers, 1)));
	}
	return done;
}

static int64_t read_f16_by_instruction(const uint16_t *at, int64_t count, double *out)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") ? read_f16_lanes(at, count, out) : 0;
}

#else

static int64_t read_f16_by_instruction(const uint16_t *at, int64_t count, double *out)
{
	(void)at;
	(void)count;
	(void)out;
	return 0;
}

#endif

static void read_f16(const uint16_t *at, int64_t count, double *out)
{
	for (int64_t i = read_f16_by_instruction(at, count, out); i < count; i++)
		out[i] = (double)float_from_f16(at[i]);
}

/* Converts like float_from_e4m3, but without branches, so that the loop vectorises. A subnormal number, whose exponent
 * field is 0, is the difference of two normal numbers: 2^-6 (1 + fraction) - 2^-6. */
WIDE static void read_e4m3(const uint8_t *at, int64_t count, double *out)
{
	for (int64_t i = 0; i < count; i++) {
		uint32_t code = at[i] & 0x7fu, sign = (uint32_t)(at[i] >> 7) << 31;
		float normal = float_from_bits((code << 20) + (120u << 23));
		float subnormal = float_from_bits((code << 20) + (121u << 23)) - 0x1p-6f;
		float size = code < 8 ? subnormal : normal;

		out[i] = (double)float_from_bits(sign | (code == 0x7f ? 0x7fc00000u : float_bits(size)));
	}
}

void dtype_load_run(const void *data, enum dtype dtype, int64_t first, int64_t count, double *out)
{
	switch (dtype) {
	case DTYPE_FLOAT64:
		READ(double, at[i]);
	case DTYPE_FLOAT32:
		read_f32((const float *)data + first, count, out);
		break;
	case DTYPE_FLOAT16:
		read_f16((const uint16_t *)data + first, count, out);
		break;
	case DTYPE_BFLOAT16:
		read_bf16((const uint16_t *)data + first, count, out);
		break;
	case DTYPE_FLOAT8_E4M3FN:
		read_e4m3((const uint8_t *)data + first, count, out);
		break;
	case DTYPE_FLOAT8_E5M2:
		READ(uint8_t, float_from_e5m2(at[i]));
	case DTYPE_FLOAT8_E8M0FNU:
		READ(uint8_t, float_from_e8m0(at[i]));
	case DTYPE_FLOAT4_E2M1:
		read_e2m1(data, first, count, out);
		break;
	case DTYPE_INT64:
		READ(int64_t, at[i]);
	case DTYPE_INT32:
		READ(int32_t, at[i]);
	case DTYPE_INT16:
		READ(int16_t, at[i]);
	case DTYPE_INT8:
		READ(int8_t, at[i]);
	case DTYPE_UINT8:
		READ(uint8_t, at[i]);
	case DTYPE_UINT32:
		READ(uint32_t, at[i]);
	case DTYPE_BOOL:
		READ(uint8_t, at[i] != 0);
	case DTYPE_COUNT:
		break;
	}
}

#define WRITE(type, expression)                                         \
	{                                                               \
		type *at = (type *)data + first;                        \
		for (int64_t i = 0; i < count; i++)                     \
			at[i] = (type)(expression);                     \
	}                                                               \
	break

WIDE static void write_bf16(uint16_t *at, int64_t count, const double *values)
{
	for (int64_t i = 0; i < count; i++)
		at[i] = bf16_from_float(cut(values[i]));
}

WIDE static void write_f16(uint16_t *at, int64_t count, const double *values)
{
	for (int64_t i = 0; i < count; i++)
		at[i] = f16_from_float(cut(values[i]));
}

WIDE static void write_f32(float *at, int64_t count, const double *values)
{
	for (int64_t i = 0; i < count; i++)
		at[i] = (float)values[i];
}

/* Writes floats in any dtype that dtype_store_float can write, including float4_e2m1. */
static void write_narrow(void *data, enum dtype dtype, int64_t first, int64_t count, const double *values)
{
	for (int64_t i = 0; i < count; i++)
		dtype_store_float(data, dtype, first + i, cut(values[i]));
}

void dtype_store_run(void *data, enum dtype dtype, int64_t first, int64_t count, const double *values)
{
	switch (dtype) {
	case DTYPE_FLOAT64:
		WRITE(double, values[i]);
	case DTYPE_FLOAT32:
		write_f32((float *)data + first, count, values);
		break;
	case DTYPE_FLOAT16:
		write_f16((uint16_t *)data + first, count, values);
		break;
	case DTYPE_BFLOAT16:
		write_bf16((uint16_t *)data + first, count, values);
		break;
	case DTYPE_FLOAT8_E4M3FN:
	case DTYPE_FLOAT8_E5M2:
	case DTYPE_FLOAT8_E8M0FNU:
	case DTYPE_FLOAT4_E2M1:
		write_narrow(data, dtype, first, count, values);
		break;
	case DTYPE_INT64:
		WRITE(int64_t, to_integer(values[i], INT64_MIN, INT64_MAX));
	case DTYPE_INT32:
		WRITE(int32_t, to_integer(values[i], INT32_MIN, INT32_MAX));
	case DTYPE_INT16:
		WRITE(int16_t, to_integer(values[i], INT16_MIN, INT16_MAX));
	case DTYPE_INT8:
		WRITE(int8_t, to_integer(values[i], INT8_MIN, INT8_MAX));
	case DTYPE_UINT8:
		WRITE(uint8_t, to_integer(values[i], 0, UINT8_MAX));
	case DTYPE_UINT32:
		WRITE(uint32_t, to_integer(values[i], 0, UINT32_MAX));
	case DTYPE_BOOL:
		WRITE(uint8_t, values[i] != 0);
	case DTYPE_COUNT:
		break;
	}
}

WIDE static void store_bf16(uint16_t *at, int64_t count, const float *values)
{
	for (int64_t i = 0; i < count; i++)
		at[i] = bf16_from_float(values[i]);
}

WIDE static void store_f16(uint16_t *at, int64_t count, const float *values)
{
	for (int64_t i = 0; i < count; i++)
		at[i] = f16_from_float(values[i]);
}

void dtype_store_float_run(void *data, enum dtype dtype, int64_t first, int64_t count, const float *values)
{
	switch (dtype) {
	case DTYPE_FLOAT32:
		memcpy((float *)data + first, values, (size_t)count * sizeof *values);
		break;
	case DTYPE_BFLOAT16:
		store_bf16((uint16_t *)data + first, count, values);
		break;
	case DTYPE_FLOAT16:
		store_f16((uint16_t *)data + first, count, values);
		break;
	default:
		for (int64_t i = 0; i < count; i++)
			dtype_store_float(data, dtype, first + i, values[i]);
	}
}

double dtype_load(const void *data, enum dtype dtype, int64_t index)
{
	double value = 0;

	dtype_load_run(data, dtype, index, 1, &value);
	return value;
}

void dtype_store(void *data, enum dtype dtype, int64_t index, double value)
{
	dtype_store_run(data, dtype, index, 1, &value);
}
