/* test_dtype - the numbers and names of the dtypes never change, and the sizes and properties are right. */
#include "base/dtype.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Caches and messages store the numbers, and datasets use the names. Therefore no number and no name may ever
 * change. */
static const struct {
	int number;
	const char *name;
	int bits;
	bool is_float;
} dtypes[] = {
    {0, "float32", 32, true},      {1, "float16", 16, true},    {2, "bfloat16", 16, true},
    {3, "float8_e4m3fn", 8, true}, {4, "float8_e5m2", 8, true}, {5, "float4_e2m1", 4, true},
    {6, "int64", 64, false},       {7, "int32", 32, false},     {8, "int16", 16, false},
    {9, "int8", 8, false},         {10, "bool", 8, false},      {11, "uint8", 8, false},
    {12, "uint32", 32, false},     {13, "float64", 64, true},   {14, "float8_e8m0fnu", 8, true},
};

static void names_numbers_and_sizes_are_fixed(void **state)
{
	enum dtype dtype;

	(void)state;
	assert_int_equal(DTYPE_COUNT, sizeof dtypes / sizeof *dtypes);
	for (int i = 0; i < DTYPE_COUNT; i++) {
		assert_int_equal(dtypes[i].number, i);
		assert_string_equal(dtype_name((enum dtype)i), dtypes[i].name);
		assert_true(dtype_parse(dtypes[i].name, &dtype) && dtype == (enum dtype)i);
		assert_int_equal(dtype_bits((enum dtype)i), dtypes[i].bits);
		assert_int_equal(dtype_is_float((enum dtype)i), dtypes[i].is_float);
	}
	assert_false(dtype_parse("float", &dtype));
	assert_false(dtype_parse("Float32", &dtype));
	assert_false(dtype_parse("", &dtype));
}

static void sizes_are_rounded_up_to_whole_bytes(void **state)
{
	(void)state;
	assert_int_equal(dtype_bytes(DTYPE_FLOAT4_E2M1, 0), 0);
	assert_int_equal(dtype_bytes(DTYPE_FLOAT4_E2M1, 1), 1);
	assert_int_equal(dtype_bytes(DTYPE_FLOAT4_E2M1, 2), 1);
	assert_int_equal(dtype_bytes(DTYPE_FLOAT4_E2M1, 3), 2);
	assert_int_equal(dtype_bytes(DTYPE_BOOL, 3), 3);
	assert_int_equal(dtype_bytes(DTYPE_BFLOAT16, 3), 6);
	assert_true(dtype_bytes(DTYPE_INT64, (int64_t)1 << 40) == (int64_t)1 << 43);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_numbers_and_sizes_are_fixed),
	    cmocka_unit_test(sizes_are_rounded_up_to_whole_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
