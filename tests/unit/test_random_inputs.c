/* test_random_inputs - random numbers that are computed from a key and a counter: they equal published results, and the
 * key depends only on the input, the axes and the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "kernels/core/op.h"
#include "kernels/core/random_inputs.h"

/* The result for a counter and a key of zeros, as published with Random123 (kat_vectors, philox4x32 10). The other
 * published vectors cannot be used, because they set the upper half of the counter, which is always 0 in reftest. The
 * next test uses a second implementation instead. */
static void philox_gives_its_published_answer(void **state)
{
	struct philox out = philox_block(0, 0);

	(void)state;
	assert_int_equal(out.word[0], 0x6627e8d5);
	assert_int_equal(out.word[1], 0xe169c58d);
	assert_int_equal(out.word[2], 0xbc57ac4c);
	assert_int_equal(out.word[3], 0x9b00dbd8);
}

/* A second implementation of Philox, which follows the paper and uses only 64-bit products. */
static void second_opinion(uint64_t key, uint64_t block, uint32_t out[4])
{
	uint64_t c[4] = {block & 0xffffffff, block >> 32, 0, 0}, k[2] = {key & 0xffffffff, key >> 32};

	for (int round = 0; round < 10; round++) {
		uint64_t a = c[0] * 0xD2511F53, b = c[2] * 0xCD9E8D57;
		uint64_t next[4] = {(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff};

		memcpy(c, next, sizeof c);
		k[0] = (k[0] + 0x9E3779B9) & 0xffffffff;
		k[1] = (k[1] + 0xBB67AE85) & 0xffffffff;
	}
	for (int i = 0; i < 4; i++)
		out[i] = (uint32_t)c[i];
}

static void philox_agrees_with_a_second_implementation(void **state)
{
	uint64_t key = 1, block = 7;
	uint32_t want[4];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct philox out = philox_block(key, block);

		second_opinion(key, block, want);
		assert_memory_equal(out.word, want, sizeof want);
		assert_int_equal(philox_bits(key, (int64_t)(block >> 3) * 4 + 2),
				 philox_block(key, block >> 3).word[2]);
		key = key * 6364136223846793005u + 1442695040888963407u;
		block = block * 2862933555777941757u + 3037000493u;
	}
}

/* philox_run writes the words of its blocks and nothing else. This must be so for every number of blocks, even if the
 * number is no multiple of the vector length. In some calls, the upper 32 bits of the block number change from one
 * block to the next. */
static void a_run_has_the_words_of_its_blocks(void **state)
{
	enum { MOST = 131 };
	uint32_t words[4 * MOST + 4];

	(void)state;
	for (int64_t count = 0; count <= MOST; count++) {
		uint64_t key = UINT64_C(0x9876543210fedcba) * (uint64_t)(count + 1);
		int64_t first = (INT64_C(1) << 32) * (count % 3) - (count % 3 == 0 ? 0 : count / 2);

		memset(words, 0xa5, sizeof words);
		philox_run(key, first, count, words);
		for (int64_t b = 0; b < count; b++) {
			struct philox want = philox_block(key, (uint64_t)(first + b));

			assert_memory_equal(words + 4 * b, want.word, sizeof want.word);
		}
		for (int64_t i = 4 * count; i < 4 * MOST + 4; i++)
			assert_int_equal(words[i], 0xa5a5a5a5);
	}
}

static void uniform_numbers_lie_on_their_grid_and_reach_both_ends(void **state)
{
	(void)state;
	for (int bits = 1; bits <= 23; bits++) {
		assert_true(uniform_signed(0, bits) == -1.0f);
		assert_true(uniform_signed(0xffffffff, bits) == 1.0f - 1.0f / (float)(1 << bits));
		for (int64_t i = 0; i < 1000; i++) {
			float value = uniform_signed(philox_bits(5, i), bits), steps = value * (float)(1 << bits);

			assert_true(value >= -1 && value < 1);
			assert_true(steps == (float)(int32_t)steps);
		}
	}
}

static const struct op_axis two_axes[] = {{"batch", true, 0}, {"hidden", false, 64}};
static const struct op_axis swapped_axes[] = {{"hidden", false, 64}, {"batch", true, 0}};
static const struct op_arg two_inputs[] = {{.name = "x", .rank = 2, .axis = {0, 1}},
					   {.name = "y", .rank = 1, .axis = {1}}};

static uint64_t key_of(const struct op_axis *axes, const char *definition, int64_t batch, int64_t hidden, uint64_t seed,
                       int input)
{
	struct op_problem problem = {
	    .name = definition, .op_type = "t", .axes = axes, .axis_count = 2, .inputs = two_inputs, .input_count = 2};
	int64_t values[2] = {axes == two_axes ? batch : hidden, axes == two_axes ? hidden : batch};
	struct op_case c = {.problem = &problem, .axis = values, .seed = seed};

	return input_key(&c, input);
}

static void a_key_depends_on_input_axes_and_seed(void **state)
{
	uint64_t key = key_of(two_axes, "one", 3, 64, 0, 0);

	(void)state;
	assert_true(key_of(two_axes, "one", 3, 64, 0, 0) == key);
	assert_true(key_of(two_axes, "one", 4, 64, 0, 0) != key);
	assert_true(key_of(two_axes, "one", 3, 65, 0, 0) != key);
	assert_true(key_of(two_axes, "one", 3, 64, 1, 0) != key);
	assert_true(key_of(two_axes, "one", 3, 64, 0, 1) != key);
}

static void a_key_depends_neither_on_the_name_nor_on_the_order_of_axes(void **state)
{
	uint64_t key = key_of(two_axes, "one", 3, 64, 0, 0);

	(void)state;
	assert_true(key_of(two_axes, "another", 3, 64, 0, 0) == key);
	assert_true(key_of(swapped_axes, "one", 3, 64, 0, 0) == key);
}

static void generic_values_fill_every_float_and_no_byte_more(void **state)
{
	(void)state;
	for (int d = 0; d < DTYPE_COUNT; d++) {
		enum dtype dtype = (enum dtype)d;
		int64_t elements = 33, bytes = dtype_bytes(dtype, elements);
		/* the allocation has exactly this size, so that a sanitizer detects a read beyond the end */
		uint8_t *data = malloc((size_t)bytes);

		assert_non_null(data);
		memset(data, 0, (size_t)bytes);
		if (dtype_is_float(dtype))
			for (int64_t unit = 0; unit < generic_units(dtype, elements); unit++)
				generic_store(data, dtype, 11, unit);
		for (int64_t i = 0; i < elements; i++) {
			double value = dtype_load(data, dtype, i),
			       want = (double)uniform_signed(philox_bits(11, i), 23);

			if (!dtype_is_float(dtype))
				assert_true(value == 0);
			else if (dtype == DTYPE_FLOAT8_E8M0FNU)
				assert_true(value == 1);
			else
				assert_true(value >= want - 0.25 && value <= want + 0.25);
		}
		free(data);
	}
}

/* Every order has each number once, and the first and the last number are in the part that a case uses. */
static void shuffled_ends_are_used(void **state)
{
	enum { MOST = 40 };

	(void)state;
	for (int64_t count = 1; count <= MOST; count++)
		for (int64_t used = 0; used <= count + 1; used++)
			for (uint64_t key = 0; key < 8; key++) {
				int64_t order[MOST], seen[MOST] = {0}, ends = 0;

				philox_shuffle_ends(key, count, used, order);
				for (int64_t i = 0; i < count; i++) {
					assert_in_range(order[i], 0, count - 1);
					seen[order[i]]++;
					ends += i < used && (order[i] == 0 || order[i] == count - 1);
				}
				for (int64_t i = 0; i < count; i++)
					assert_int_equal(seen[i], 1);
				if (used > 1 && count > 1)
					assert_int_equal(ends, 2);
				if (used == 1)
					assert_int_equal(order[0], count - 1);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shuffled_ends_are_used),
	    cmocka_unit_test(philox_gives_its_published_answer),
	    cmocka_unit_test(philox_agrees_with_a_second_implementation),
	    cmocka_unit_test(a_run_has_the_words_of_its_blocks),
	    cmocka_unit_test(uniform_numbers_lie_on_their_grid_and_reach_both_ends),
	    cmocka_unit_test(a_key_depends_on_input_axes_and_seed),
	    cmocka_unit_test(a_key_depends_neither_on_the_name_nor_on_the_order_of_axes),
	    cmocka_unit_test(generic_values_fill_every_float_and_no_byte_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
