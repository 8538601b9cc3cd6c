/* compare_by_dtype - converts the bytes of each dtype to numbers, for kernels/core/compare_tensors.cu only. It converts
 * a single element to double (exactly, except int64 above 2^53). If float represents every value of the dtype, it also
 * converts 16 bytes at a time to float. */
#ifndef REFTEST_KERNELS_CORE_COMPARE_BY_DTYPE_CUH
#define REFTEST_KERNELS_CORE_COMPARE_BY_DTYPE_CUH

#include "kernels/core/cuda_check.h"

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"

/* Returns element `index` as a double. `dtype` should be a compile-time constant, for speed. */
static __device__ __forceinline__ double element(const void *data, enum dtype dtype, int64_t index)
{
	switch (dtype) {
	case DTYPE_FLOAT32:
		return (double)((const float *)data)[index];
	case DTYPE_FLOAT16:
		return (double)float_from_f16(((const uint16_t *)data)[index]);
	case DTYPE_BFLOAT16:
		return (double)float_from_bf16(((const uint16_t *)data)[index]);
	case DTYPE_FLOAT8_E4M3FN:
		return (double)float_from_e4m3(((const uint8_t *)data)[index]);
	case DTYPE_FLOAT8_E5M2:
		return (double)float_from_e5m2(((const uint8_t *)data)[index]);
	case DTYPE_FLOAT4_E2M1:
		return (double)float_from_e2m1((uint8_t)(((const uint8_t *)data)[index / 2] >> (4 * (index & 1)) & 15));
	case DTYPE_INT64:
		return (double)((const int64_t *)data)[index];
	case DTYPE_INT32:
		return (double)((const int32_t *)data)[index];
	case DTYPE_INT16:
		return (double)((const int16_t *)data)[index];
	case DTYPE_INT8:
		return (double)((const int8_t *)data)[index];
	case DTYPE_BOOL:
		return ((const uint8_t *)data)[index] != 0;
	case DTYPE_UINT8:
		return (double)((const uint8_t *)data)[index];
	case DTYPE_UINT32:
		return (double)((const uint32_t *)data)[index];
	case DTYPE_FLOAT64:
		return ((const double *)data)[index];
	default:
		return (double)float_from_e8m0(((const uint8_t *)data)[index]);
	}
}

template <enum dtype D>
static __host__ __device__ constexpr int64_t bytes_of(int64_t elements) /* dtype_bytes as a compile-time constant */
{
	return D == DTYPE_FLOAT4_E2M1					       ? (elements + 1) / 2
	       : D == DTYPE_INT64 || D == DTYPE_FLOAT64			       ? elements * 8
	       : D == DTYPE_FLOAT32 || D == DTYPE_INT32 || D == DTYPE_UINT32   ? elements * 4
	       : D == DTYPE_FLOAT16 || D == DTYPE_BFLOAT16 || D == DTYPE_INT16 ? elements * 2
									       : elements;
}

/* Converts a pack (16 bytes) of a dtype to floats. `lanes` is the number of elements in a pack. `lanes` is 0 if float
 * cannot represent all values of the dtype; each element is then processed in double. `magnitude` is a mask of all bits
 * of a word except the sign bits. If all bits of a word that are in the mask are 0, all elements of the word are
 * zero. */
template <enum dtype D> struct form {
	static constexpr int lanes = 0;
};

template <> struct form<DTYPE_FLOAT32> {
	static constexpr int lanes = 4;
	static constexpr uint32_t magnitude = 0x7fffffffu;
	static __device__ __forceinline__ void widen(const uint4 &raw, float *out)
	{
		out[0] = __uint_as_float(raw.x);
		out[1] = __uint_as_float(raw.y);
		out[2] = __uint_as_float(raw.z);
		out[3] = __uint_as_float(raw.w);
	}
};

/* For dtypes of up to 16 bits, a pack is converted as four 32-bit words. */
template <typename word_form> struct form_of_words {
	static constexpr int lanes = 4 * word_form::each;
	static __device__ __forceinline__ void widen(const uint4 &raw, float *out)
	{
		word_form::widen_word(raw.x, out);
		word_form::widen_word(raw.y, out + word_form::each);
		word_form::widen_word(raw.z, out + 2 * word_form::each);
		word_form::widen_word(raw.w, out + 3 * word_form::each);
	}
};

struct words_bf16 {
	static constexpr int each = 2;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		out[0] = __uint_as_float(word << 16);
		out[1] = __uint_as_float(word & 0xffff0000u);
	}
};
template <> struct form<DTYPE_BFLOAT16> : form_of_words<words_bf16> {
	static constexpr uint32_t magnitude = 0x7fff7fffu;
};

struct words_f16 {
	static constexpr int each = 2;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		float2 pair = __half22float2(*reinterpret_cast<const __half2 *>(&word));

		out[0] = pair.x;
		out[1] = pair.y;
	}
};
template <> struct form<DTYPE_FLOAT16> : form_of_words<words_f16> {
	static constexpr uint32_t magnitude = 0x7fff7fffu;
};

template <__nv_fp8_interpretation_t kind> struct words_fp8 {
	static constexpr int each = 4;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int half = 0; half < 2; half++) {
			__half2_raw raw = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(word >> (16 * half)), kind);
			float2 pair = __half22float2(__half2(raw));

			out[2 * half] = pair.x;
			out[2 * half + 1] = pair.y;
		}
	}
};
template <> struct form<DTYPE_FLOAT8_E4M3FN> : form_of_words<words_fp8<__NV_E4M3>> {
	static constexpr uint32_t magnitude = 0x7f7f7f7fu;
};
template <> struct form<DTYPE_FLOAT8_E5M2> : form_of_words<words_fp8<__NV_E5M2>> {
	static constexpr uint32_t magnitude = 0x7f7f7f7fu;
};

struct words_e8m0 {
	static constexpr int each = 4;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < 4; i++)
			out[i] = float_from_e8m0((uint8_t)(word >> (8 * i)));
	}
};
template <> struct form<DTYPE_FLOAT8_E8M0FNU> : form_of_words<words_e8m0> {
	static constexpr uint32_t magnitude = 0xffffffffu;
};

/* The fraction bit and the two exponent bits of float4_e2m1 are shifted to their places in float16. Multiplication by
 * 2^14 then corrects the exponent bias, also for subnormals. */
struct words_e2m1 {
	static constexpr int each = 8;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < 8; i++) {
			uint32_t nibble = word >> (4 * i);
			uint16_t bits = (uint16_t)((nibble & 8) << 12 | (nibble & 7) << 9);

			out[i] = __half2float(__ushort_as_half(bits)) * 0x1p14f;
		}
	}
};
template <> struct form<DTYPE_FLOAT4_E2M1> : form_of_words<words_e2m1> {
	static constexpr uint32_t magnitude = 0x77777777u;
};

template <typename integer> struct words_small {
	static constexpr int each = 4 / (int)sizeof(integer);
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < each; i++)
			out[i] = (float)(integer)(word >> (8 * (int)sizeof(integer) * i));
	}
};
template <typename integer> struct form_of_small : form_of_words<words_small<integer>> {
	static constexpr uint32_t magnitude = 0xffffffffu;
};
template <> struct form<DTYPE_INT16> : form_of_small<int16_t> {
};
template <> struct form<DTYPE_INT8> : form_of_small<int8_t> {
};
template <> struct form<DTYPE_UINT8> : form_of_small<uint8_t> {
};
struct words_bool {
	static constexpr int each = 4;
	static __device__ __forceinline__ void widen_word(uint32_t word, float *out)
	{
		for (int i = 0; i < 4; i++)
			out[i] = word >> (8 * i) & 255 ? 1 : 0;
	}
};
template <> struct form<DTYPE_BOOL> : form_of_words<words_bool> {
	static constexpr uint32_t magnitude = 0xffffffffu;
};

#endif
