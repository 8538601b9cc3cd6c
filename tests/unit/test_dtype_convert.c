/* test_dtype_convert - the conversion of narrow number formats is exact for every code and for numbers near it. The
 * expected values come from formulas without bit operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/random_inputs.h"

/* The absolute value of a code with exponent e and mantissa f, by the definition of the format: (1 + f / 2^m) 2^(e -
 * bias), or f / 2^m 2^(1 - bias) if e = 0. */
static double by_definition(unsigned code, int mantissa_bits, int bias)
{
	int exponent = (int)(code >> mantissa_bits);
	double fraction = ldexp(code & ((1u << mantissa_bits) - 1), -mantissa_bits);

	return exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
}

static const struct {
	enum dtype dtype;
	int mantissa_bits, bias;
	unsigned largest; /* code of the largest finite number */
	double overflow;  /* the value that is stored for a number above the largest finite one; NaN for e4m3 */
} formats[] = {
    {DTYPE_FLOAT16, 10, 15, 0x7bff, INFINITY},
    {DTYPE_BFLOAT16, 7, 127, 0x7f7f, INFINITY},
    {DTYPE_FLOAT8_E4M3FN, 3, 7, 0x7e, NAN},
    {DTYPE_FLOAT8_E5M2, 2, 15, 0x7b, INFINITY},
    {DTYPE_FLOAT4_E2M1, 1, 1, 7, 6},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static double written(enum dtype dtype, double value)
{
	uint64_t place = 0;

	dtype_store(&place, dtype, 0, value);
	return dtype_load(&place, dtype, 0);
}

static double read_code(enum dtype dtype, unsigned code, int negative)
{
	uint64_t place = code | (negative ? 1u << (dtype_bits(dtype) - 1) : 0);

	return dtype_load(&place, dtype, 0);
}

static void every_code_reads_as_its_definition_says(void **state)
{
	(void)state;
	for (int f = 0; f < FORMATS; f++)
		for (unsigned code = 0; code <= formats[f].largest; code++) {
			double want = by_definition(code, formats[f].mantissa_bits, formats[f].bias);

			assert_true(read_code(formats[f].dtype, code, 0) == want);
			assert_true(read_code(formats[f].dtype, code, 1) == -want);
			assert_int_equal(signbit(read_code(formats[f].dtype, code, 1)) != 0, 1);
		}
}

static void every_code_survives_a_round_trip(void **state)
{
	(void)state;
	for (int f = 0; f < FORMATS; f++)
		for (unsigned code = 0; code <= formats[f].largest; code++) {
			double value = read_code(formats[f].dtype, code, code & 1);

			assert_true(written(formats[f].dtype, value) == value);
		}
}

/* A double between two neighbours is rounded to the nearer one. A double exactly in the middle is rounded to the even
 * code. The double must not be rounded to a float first, because the float could be the exact middle. */
static void rounding_is_to_nearest_with_ties_to_even_and_only_once(void **state)
{
	(void)state;
	for (int f = 0; f < FORMATS; f++)
		for (unsigned code = 0; code < formats[f].largest; code++) {
			enum dtype dtype = formats[f].dtype;
			double low = read_code(dtype, code, 0), high = read_code(dtype, code + 1, 0);
			double middle = (low + high) / 2, even = code & 1 ? high : low;

			assert_true(written(dtype, middle) == even);
			assert_true(written(dtype, -middle) == -even);
			assert_true(written(dtype, nextafter(middle, 0)) == low);
			assert_true(written(dtype, nextafter(middle, INFINITY)) == high);
			assert_true(written(dtype, low + (high - low) / 4) == low);
			assert_true(written(dtype, -(high - (high - low) / 4)) == -high);
		}
}

static void a_float_that_is_rounded_first_would_be_wrong(void **state)
{
	double off_the_middle = 1 + 0x1p-8 + 0x1p-40;

	(void)state;
	/* this conversion through a float gives a wrong result */
	assert_true(float_from_bf16(bf16_from_float((float)off_the_middle)) == 1.0f);
	assert_true(written(DTYPE_BFLOAT16, off_the_middle) == 1 + 0x1p-7);
}

static void overflow_and_special_values_follow_the_format(void **state)
{
	(void)state;
	for (int f = 0; f < FORMATS; f++) {
		enum dtype dtype = formats[f].dtype;
		double largest = read_code(dtype, formats[f].largest, 0), over = written(dtype, 2 * largest);
		double below = read_code(dtype, formats[f].largest - 1, 0);

		assert_true(written(dtype, largest + 0.49 * (largest - below)) == largest);
		assert_true(isnan(formats[f].overflow) ? isnan(over) : over == formats[f].overflow);
		over = written(dtype, -INFINITY);
		assert_true(isnan(formats[f].overflow) ? isnan(over) : over == -formats[f].overflow);
		over = written(dtype, NAN);
		assert_true(dtype == DTYPE_FLOAT4_E2M1 ? over == 6 : isnan(over));
		assert_true(written(dtype, 1e-300) == 0 && signbit(written(dtype, -1e-300)));
		assert_true(written(dtype, 1e300) == over || dtype != DTYPE_FLOAT4_E2M1);
	}
	/* 464 is the middle between 448 and 480, but e4m3 has no 480 */
	assert_true(written(DTYPE_FLOAT8_E4M3FN, 464) == 448);
	assert_true(isnan(written(DTYPE_FLOAT8_E4M3FN, 465)));
}

static void scales_of_e8m0_are_powers_of_two(void **state)
{
	(void)state;
	for (int code = 0; code < 255; code++) {
		double value = read_code(DTYPE_FLOAT8_E8M0FNU, (unsigned)code, 0);

		assert_true(value == ldexp(1, code - 127));
		assert_true(written(DTYPE_FLOAT8_E8M0FNU, value) == value);
		assert_true(written(DTYPE_FLOAT8_E8M0FNU, value * 1.49) == value);
		assert_true(code == 254 || written(DTYPE_FLOAT8_E8M0FNU, value * 1.5) == 2 * value);
	}
	assert_true(isnan(written(DTYPE_FLOAT8_E8M0FNU, 0)) && isnan(written(DTYPE_FLOAT8_E8M0FNU, -1)));
	assert_true(isnan(written(DTYPE_FLOAT8_E8M0FNU, NAN)) && isnan(written(DTYPE_FLOAT8_E8M0FNU, 0x1.9p127)));
}

static void integers_round_to_even_saturate_and_take_nan_for_zero(void **state)
{
	static const struct {
		enum dtype dtype;
		double low, high;
	} kinds[] = {{DTYPE_INT8, -128, 127},        {DTYPE_UINT8, 0, 255},
	             {DTYPE_INT16, -32768, 32767},   {DTYPE_INT32, -2147483648.0, 2147483647.0},
	             {DTYPE_UINT32, 0, 4294967295.0}, {DTYPE_INT64, -0x1p63, 0x1p63}};

	(void)state;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		assert_true(written(kinds[i].dtype, 1e30) == kinds[i].high);
		assert_true(written(kinds[i].dtype, -INFINITY) == kinds[i].low);
		assert_true(written(kinds[i].dtype, NAN) == 0);
		assert_true(written(kinds[i].dtype, 2.5) == 2 && written(kinds[i].dtype, 3.5) == 4);
		assert_true(written(kinds[i].dtype, 100.4) == 100);
	}
	assert_true(written(DTYPE_BOOL, -0.25) == 1 && written(DTYPE_BOOL, 0) == 0);
}

static void two_elements_of_float4_share_a_byte_low_nibble_first(void **state)
{
	uint8_t bytes[2] = {0xff, 0xff};

	(void)state;
	dtype_store(bytes, DTYPE_FLOAT4_E2M1, 1, 1.5);
	dtype_store(bytes, DTYPE_FLOAT4_E2M1, 0, -2);
	dtype_store(bytes, DTYPE_FLOAT4_E2M1, 2, 6);
	assert_int_equal(bytes[0], 0x3c);
	assert_int_equal(bytes[1], 0xf7);
	assert_true(dtype_load(bytes, DTYPE_FLOAT4_E2M1, 1) == 1.5);
}

static void runs_agree_with_single_elements(void **state)
{
	double values[37], back[37];
	uint8_t run[37 * 8], single[37 * 8];

	(void)state;
	for (int d = 0; d < DTYPE_COUNT; d++) {
		memset(run, 0, sizeof run);
		memset(single, 0, sizeof single);
		for (int i = 0; i < 37; i++)
			values[i] = (double)uniform_signed(philox_bits(9, i), 23) * 5;
		dtype_store_run(run, (enum dtype)d, 3, 30, values);
		for (int i = 0; i < 30; i++)
			dtype_store(single, (enum dtype)d, 3 + i, values[i]);
		assert_memory_equal(run, single, sizeof run);
		dtype_load_run(run, (enum dtype)d, 3, 30, back);
		for (int i = 0; i < 30; i++) {
			double one = dtype_load(run, (enum dtype)d, 3 + i);

			assert_memory_equal(&back[i], &one, sizeof one);
		}
	}
}

static void runs_of_float16_agree_with_single_elements_for_every_code(void **state)
{
	enum { COUNT = 1 << 16 };
	uint16_t *codes = calloc(COUNT, sizeof *codes);
	double *values = calloc(COUNT, sizeof *values);

	(void)state;
	assert_true(codes != NULL && values != NULL);
	for (int i = 0; i < COUNT; i++)
		codes[i] = (uint16_t)i;
	dtype_load_run(codes, DTYPE_FLOAT16, 3, COUNT - 3, values + 3);
	for (int i = 3; i < COUNT; i++) {
		double one = dtype_load(codes, DTYPE_FLOAT16, i);

		assert_memory_equal(&values[i], &one, sizeof one);
	}
	free(codes);
	free(values);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_code_reads_as_its_definition_says),
	    cmocka_unit_test(every_code_survives_a_round_trip),
	    cmocka_unit_test(rounding_is_to_nearest_with_ties_to_even_and_only_once),
	    cmocka_unit_test(a_float_that_is_rounded_first_would_be_wrong),
	    cmocka_unit_test(overflow_and_special_values_follow_the_format),
	    cmocka_unit_test(scales_of_e8m0_are_powers_of_two),
	    cmocka_unit_test(integers_round_to_even_saturate_and_take_nan_for_zero),
	    cmocka_unit_test(two_elements_of_float4_share_a_byte_low_nibble_first),
	    cmocka_unit_test(runs_agree_with_single_elements),
	    cmocka_unit_test(runs_of_float16_agree_with_single_elements_for_every_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
