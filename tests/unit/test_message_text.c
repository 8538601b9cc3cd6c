/* test_message_text - numbers in messages: bytes have units, indices and shapes look as torch prints them, and values
 * have as many digits as the dtype needs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "workers/judge/message_text.h"

static void places_and_shapes_read_as_in_torch(void **state)
{
	static const int64_t shape[] = {2, 3, 4};
	static const int64_t empty[] = {2, 0};
	struct arena arena = {0};

	(void)state;
	assert_string_equal(format_index(&arena, 23, 3, shape), "[1, 2, 3]");
	assert_string_equal(format_index(&arena, 0, 0, shape), "[]");
	assert_string_equal(format_index(&arena, 0, 2, empty), "[0, 0]");
	assert_string_equal(tensor_type_text(&arena, 3, shape, "bfloat16"), "(2, 3, 4) bfloat16");
	assert_string_equal(tensor_type_text(&arena, 1, shape, "int32"), "(2,) int32");
	assert_string_equal(tensor_type_text(&arena, 0, shape, "bool"), "() bool");
	arena_free(&arena);
}

static void values_have_the_digits_their_dtype_can_tell_apart(void **state)
{
	struct arena arena = {0};

	(void)state;
	assert_string_equal(format_value(&arena, 1.00390625, DTYPE_BFLOAT16), "1.0039");
	assert_string_equal(format_value(&arena, 1 + 0x1p-23, DTYPE_FLOAT32), "1.00000012");
	assert_string_equal(format_value(&arena, 1 + 0x1p-52, DTYPE_FLOAT64), "1.0000000000000002");
	assert_string_equal(format_value(&arena, 9007199254740992.0, DTYPE_INT64), "9007199254740992");
	assert_string_equal(format_value(&arena, NAN, DTYPE_FLOAT16), "nan");
	assert_string_equal(format_value(&arena, -INFINITY, DTYPE_FLOAT16), "-inf");
	arena_free(&arena);
}

static void bytes_are_printed_with_units(void **state)
{
	struct arena arena = {0};

	(void)state;
	assert_string_equal(format_bytes(&arena, 512), "512 bytes");
	assert_string_equal(format_bytes(&arena, 3 << 19), "1.5 MiB");
	assert_string_equal(format_bytes(&arena, (int64_t)139 << 30), "139.0 GiB");
	assert_string_equal(format_bytes(&arena, INT64_MAX), "more than 8 EiB");
	arena_free(&arena);
}

static void a_miss_is_reported_with_bound_count_and_worst_place(void **state)
{
	struct arena arena = {0};
	struct output_verdict output = {
	    .name = "y", .atol = 0.008, .rtol = 0.01, .hit_ratio = 1, .rank = 2, .shape = {8, 512},
	    .metrics = {.elements = 4096, .hits = 4084, .margin = 31.25, .worst_count = 1, .worst = {{17, 1.5, 1.25, 0.25}}},
	};

	(void)state;
	assert_string_equal(
	    format_miss(&arena, &output, DTYPE_FLOAT32),
	    "output 'y': 12 of 4096 elements exceed the bound 0.008 + 0.01 |ground truth|, by a factor of "
	    "up to 31.2; the worst at [0, 17]: 1.5, ground truth 1.25");
	output.hit_ratio = 0.85;
	output.metrics.margin = INFINITY;
	output.metrics.nan_reference = 2;
	output.metrics.inf_ground_truth = 1;
	output.metrics.worst_count = 0;
	assert_string_equal(
	    format_miss(&arena, &output, DTYPE_FLOAT32),
	    "output 'y': 12 of 4096 elements exceed the bound 0.008 + 0.01 |ground truth| (15 % may exceed it), "
	    "2 are NaN (0 in the ground truth), 0 are infinite (1 in the ground truth)");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(places_and_shapes_read_as_in_torch),
	    cmocka_unit_test(values_have_the_digits_their_dtype_can_tell_apart),
	    cmocka_unit_test(bytes_are_printed_with_units),
	    cmocka_unit_test(a_miss_is_reported_with_bound_count_and_worst_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
