/* test_described_inputs - the values of inputs in definitions without an op family. The name of an input determines its
 * values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/core/dtype_convert.h"
#include "workers/judge/described_inputs.h"

enum { BATCH, POINTERS, INDICES, PAGES, WIDTH, AXES };

static const struct op_axis axes[AXES] = {{"batch_size", true, 0},
					  {"len_indptr", true, 0},
					  {"num_kv_indices", true, 0},
					  {"num_pages", true, 0},
					  {"width", false, 4}};
static const int64_t values[AXES] = {4, 5, 9, 6, 4};
static const struct op_arg inputs[] = {
    {.name = "q", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {BATCH, WIDTH}},
    {.name = "pages", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {PAGES, WIDTH}},
    {.name = "kv_indptr", .dtype = DTYPE_INT32, .rank = 1, .axis = {POINTERS}},
    {.name = "kv_indices", .dtype = DTYPE_INT32, .rank = 1, .axis = {INDICES}, .description = "index of each page"},
    {.name = "seq_lens", .dtype = DTYPE_INT64, .rank = 1, .axis = {BATCH}},
    {.name = "mask", .dtype = DTYPE_BOOL, .rank = 2, .axis = {BATCH, WIDTH}},
    {.name = "probs", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {BATCH, WIDTH}},
    {.name = "variance", .dtype = DTYPE_FLOAT16, .rank = 1, .axis = {WIDTH}},
    {.name = "cos", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {BATCH, WIDTH}},
    {.name = "sin", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {BATCH, WIDTH}},
    {.name = "perm", .dtype = DTYPE_INT32, .rank = 1, .axis = {INDICES}},
    {.name = "s", .dtype = DTYPE_FLOAT32, .rank = 1, .axis = {WIDTH}, .description = "Running variance of each channel"},
    {.name = "p", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {BATCH, WIDTH}, .description = "attention probabilities"},
    {.name = "hidden_states", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {BATCH, WIDTH}},
    {.name = "count", .dtype = DTYPE_INT32, .rank = 1, .axis = {BATCH}},
    {.name = "rms_eps", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR},
    {.name = "sm_scale", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR},
    {.name = "beta", .dtype = DTYPE_FLOAT32, .rank = OP_SCALAR},
    {.name = "topk", .dtype = DTYPE_INT64, .rank = OP_SCALAR},
    {.name = "num_groups", .dtype = DTYPE_INT64, .rank = OP_SCALAR},
    {.name = "num_pages", .dtype = DTYPE_INT64, .rank = OP_SCALAR},
    {.name = "offset", .dtype = DTYPE_INT64, .rank = OP_SCALAR},
    {.name = "causal", .dtype = DTYPE_BOOL, .rank = OP_SCALAR},
};
enum { PERM = 10, ROWS = 13, INPUTS = 15, MOST = 32 };

static const struct op_problem problem = {.name = "p", .op_type = "novel", .description = "", .axes = axes,
					  .axis_count = AXES, .inputs = inputs, .input_count = sizeof inputs / sizeof *inputs};

static void names_say_the_kind(void **state)
{
	static const struct described_input expected[INPUTS] = {
	    {INPUT_GENERIC, -1}, {INPUT_GENERIC, -1},	    {INPUT_POINTERS, INDICES}, {INPUT_INDICES, PAGES},
	    {INPUT_LENGTHS, -2}, {INPUT_MASK, -1},	    {INPUT_PROBABILITIES, -1}, {INPUT_POSITIVE, -1},
	    {INPUT_COSINES, -1}, {INPUT_SINES, -1},	    {INPUT_PERMUTATION, -1},   {INPUT_POSITIVE, -1},
	    {INPUT_PROBABILITIES, -1}, {INPUT_ROWS, -1},    {INPUT_GENERIC, -1},
	};

	(void)state;
	for (int i = 0; i < INPUTS; i++) {
		struct described_input found = described_input(&problem, NULL, 0, i);

		if (found.kind != expected[i].kind || (expected[i].axis != -2 && found.axis != expected[i].axis))
			fail_msg("input %s: %s of axis %d", inputs[i].name, input_kind_name(found.kind), found.axis);
	}
	assert_true(described_input(&problem, NULL, 0, 4).axis >= 0); /* any axis except BATCH */
	assert_int_not_equal(described_input(&problem, NULL, 0, 4).axis, BATCH);
}

static void constraints_say_the_kind(void **state)
{
	enum { COUNT = 14 };
	static const struct {
		const char *text;
		int input;
		struct described_input expected;
	} rows[] = {
	    {"num_pages == count[-1].item()", COUNT, {INPUT_POINTERS, PAGES}},
	    {"count[ -1 ].item()==num_pages", COUNT, {INPUT_POINTERS, PAGES}},
	    {"num_pages == count[-1]", COUNT, {INPUT_POINTERS, PAGES}},
	    {"count[-1] == num_pages", COUNT, {INPUT_POINTERS, PAGES}},
	    {"count.max() < width", COUNT, {INPUT_INDICES, WIDTH}},
	    {"count.max() <= width - 1", COUNT, {INPUT_INDICES, WIDTH}},
	    {"width > count.max()", COUNT, {INPUT_INDICES, WIDTH}},
	    {"kv_indices.max() < width", 3, {INPUT_INDICES, WIDTH}},
	    {"count.max() <= width", COUNT, {INPUT_GENERIC, -1}},
	    {"count.max() < width2", COUNT, {INPUT_GENERIC, -1}},
	    {"count.max() < width and 1 == 1", COUNT, {INPUT_GENERIC, -1}},
	    {"counts.max() < width", COUNT, {INPUT_GENERIC, -1}},
	    {"num_pages == hidden_states[-1]", 13, {INPUT_ROWS, -1}}, /* no effect: hidden_states has no integers */
	    {"width == mask[-1]", 5, {INPUT_MASK, -1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *constraints[] = {"1 == 1", rows[i].text};
		struct described_input found = described_input(&problem, constraints, 2, rows[i].input);

		if (found.kind != rows[i].expected.kind || found.axis != rows[i].expected.axis)
			fail_msg("%s: %s of axis %d", rows[i].text, input_kind_name(found.kind), found.axis);
	}
}

/* Fills an input and loads its elements as doubles. Returns their number. */
static int fill(int input, enum op_contents contents, double out[MOST])
{
	struct op_case c = {.problem = &problem, .axis = values};
	struct described_input described = described_input(&problem, NULL, 0, input);
	unsigned char bytes[MOST * 8];
	struct tensor tensor = {.data = bytes, .dtype = inputs[input].dtype, .rank = inputs[input].rank, .elements = 1};

	op_case_set_contents(&c, 7, contents);
	for (int d = 0; d < tensor.rank; d++) {
		tensor.shape[d] = values[inputs[input].axis[d]];
		tensor.elements *= tensor.shape[d];
	}
	assert_true(tensor.elements <= MOST);
	described_input_fill(&c, input, &described, &tensor);
	for (int64_t i = 0; i < tensor.elements; i++)
		out[i] = dtype_load(bytes, tensor.dtype, i);
	return (int)tensor.elements;
}

static void all_within(int input, enum op_contents contents, double least, double most)
{
	double found[MOST];
	int count = fill(input, contents, found);

	for (int i = 0; i < count; i++)
		if (!(found[i] >= least && found[i] <= most))
			fail_msg("input %s: element %d is %g", inputs[input].name, i, found[i]);
}

static void values_are_valid_in_both_sets(void **state)
{
	double found[MOST], sines[MOST];

	(void)state;
	for (int r = 0; r < CONTENTS_COUNT; r++) {
		enum op_contents contents = (enum op_contents)r;
		int count = fill(2, contents, found);

		assert_true(found[0] == 0 && found[count - 1] == 9);
		for (int i = 1; i < count; i++)
			assert_true(found[i] >= found[i - 1]);
		all_within(3, contents, 0, 5);
		all_within(4, contents, 1, 9);
		all_within(5, contents, 0, 1);
		all_within(7, contents, 0.5, 1.5);
		fill(6, contents, found);
		for (int row = 0; row < 4; row++)
			assert_true(fabs(found[4 * row] + found[4 * row + 1] + found[4 * row + 2] + found[4 * row + 3] - 1) < 1e-6);
		count = fill(8, contents, found);
		fill(9, contents, sines);
		for (int i = 0; i < count; i++)
			assert_true(fabs(found[i] * found[i] + sines[i] * sines[i] - 1) < 1e-6);
	}
}

static void the_sets_differ(void **state)
{
	double first[MOST], second[MOST];

	(void)state;
	for (int i = 2; i < INPUTS - 1; i++) {
		int count = fill(i, CONTENTS_FIRST, first);

		fill(i, CONTENTS_SECOND, second);
		if (memcmp(first, second, (size_t)count * sizeof *first) == 0)
			fail_msg("input %s has the same values in both sets", inputs[i].name);
	}
}

static void permutations_have_each_number_once(void **state)
{
	(void)state;
	for (int r = 0; r < CONTENTS_COUNT; r++) {
		double found[MOST];
		unsigned seen = 0;
		int count = fill(PERM, (enum op_contents)r, found);

		for (int i = 0; i < count; i++)
			seen |= 1u << (int)found[i];
		assert_int_equal(count, 9);
		assert_int_equal(seen, (1u << 9) - 1);
	}
}

/* Returns the largest absolute element of a row. */
static double largest(const double *row)
{
	double found = 0;

	for (int i = 0; i < 4; i++)
		found = fmax(found, fabs(row[i]));
	return found;
}

static void some_rows_are_small_and_some_large(void **state)
{
	(void)state;
	for (int r = 0; r < CONTENTS_COUNT; r++) {
		double found[MOST];

		fill(ROWS, (enum op_contents)r, found);
		assert_true(largest(found) <= 1 && largest(found) > 0.01);
		assert_true(largest(found + 4) <= 1e-3 && largest(found + 4) > 0);
		assert_true(fabs(found[8]) <= 1 && fabs(found[9]) <= 1 && fabs(found[10]) <= 8 && fabs(found[11]) <= 1);
		assert_true(largest(found + 8) >= 4 && largest(found + 12) <= 2 && largest(found + 12) > 1);
	}
	struct described_input described = described_input(&problem, NULL, 0, ROWS);
	assert_false(described_input_is_generic(&described, 1 << 20));
	assert_true(described_input_is_generic(&described, (1 << 20) + 1));
}

static void names_say_the_values_of_scalars(void **state)
{
	static const double expected[] = {1e-6, 0.125, 1, 2, 1, 6, 0, 0};

	(void)state;
	for (int i = 0; i < 8; i++)
		if (described_scalar(&problem, values, INPUTS + i) != expected[i])
			fail_msg("%s is %g", inputs[INPUTS + i].name, described_scalar(&problem, values, INPUTS + i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(names_say_the_kind),
	    cmocka_unit_test(constraints_say_the_kind),
	    cmocka_unit_test(constraints_say_the_kind),
	    cmocka_unit_test(values_are_valid_in_both_sets),
	    cmocka_unit_test(the_sets_differ),
	    cmocka_unit_test(permutations_have_each_number_once),
	    cmocka_unit_test(some_rows_are_small_and_some_large),
	    cmocka_unit_test(names_say_the_values_of_scalars),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
