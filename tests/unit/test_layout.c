/* test_layout - tensors in the shared arena are aligned and do not overlap. The second layout puts each tensor at
 * another place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/protocol/layout.h"

/* The sizes of the tensors. The second layout must give every tensor another address than the first layout. It reverses
 * the order of the tensors and shifts them. If a tensor still gets the same address, the layout tries a larger
 * shift. */
static const struct {
	int count;
	int64_t bytes[4];
} lists[] = {
    {0, {0}},
    {1, {1}},
    {1, {0}},
    {2, {512, 4096}}, /* the smallest shift, 3 * LAYOUT_ALIGN, would give the second tensor the same address */
    {3, {1000, 1000, 1000}},
    {4, {0, 0, 0, 0}},
    {4, {256, 255, 257, 8192}},
    {4, {1, (int64_t)1 << 40, 3, 1}},
};
enum { LISTS = sizeof lists / sizeof lists[0] };

static void every_tensor_is_aligned_and_has_a_gap_on_both_sides(void **state)
{
	struct arena arena = {0};

	(void)state;
	for (int i = 0; i < 2 * LISTS; i++) {
		const int64_t *bytes = lists[i / 2].bytes;
		struct layout layout = layout_make(bytes, lists[i / 2].count, i % 2, &arena);
		int64_t at = 0;

		assert_int_equal(layout.gap_count, layout.count + 1);
		for (int g = 0; g < layout.gap_count; g++) {
			const struct layout_gap *gap = &layout.gaps[g];

			assert_int_equal(gap->begin, at);
			assert_true(gap->end - gap->begin >= LAYOUT_GAP);
			at = gap->end;
			if (gap->after >= 0) {
				assert_int_equal(gap->end, layout.offset[gap->after]);
				assert_int_equal(at % LAYOUT_ALIGN, 0);
				at += bytes[gap->after];
			}
		}
		assert_int_equal(at, layout.total);
	}
	arena_free(&arena);
}

static void no_tensor_keeps_its_address_in_the_second_run(void **state)
{
	struct arena arena = {0};

	(void)state;
	for (int i = 0; i < LISTS; i++) {
		struct layout first = layout_make(lists[i].bytes, lists[i].count, 0, &arena);
		struct layout second = layout_make(lists[i].bytes, lists[i].count, 1, &arena);

		for (int t = 0; t < lists[i].count; t++)
			assert_int_not_equal(first.offset[t], second.offset[t]);
		if (lists[i].count > 0)
			assert_int_equal((second.offset[lists[i].count - 1] - LAYOUT_GAP) / LAYOUT_ALIGN % 2, 1);
	}
	arena_free(&arena);
}

static void sizes_beyond_counting_give_the_largest_number_and_no_overflow(void **state)
{
	struct arena arena = {0};
	const int64_t bytes[] = {INT64_MAX - 300, 16, INT64_MAX};

	(void)state;
	assert_int_equal(layout_make(bytes, 3, 0, &arena).total, INT64_MAX);
	assert_int_equal(layout_make(bytes, 3, 1, &arena).total, INT64_MAX);
	assert_int_equal(layout_round(INT64_MAX - 3), INT64_MAX);
	assert_int_equal(layout_round(257), 512);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_tensor_is_aligned_and_has_a_gap_on_both_sides),
	    cmocka_unit_test(no_tensor_keeps_its_address_in_the_second_run),
	    cmocka_unit_test(sizes_beyond_counting_give_the_largest_number_and_no_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
