/* test_definition_axes - the axes, shapes and constraints of definitions: how they load, how the lengths of axes and the
 * bytes of tensors are computed, and which mistakes are rejected. */
#include "dataset/definition_parse.h"

#include "dataset/axis_expressions.h"
#include "tests/unit/definition_text.h"

#define EXPR(name, expression) "\"" name "\": {\"type\": \"expr\", \"expression\": \"" expression "\"}"
#define AXES_WITH(more) "\"axes\": {" more ", \"batch\": {\"type\": \"var\"}, \"hidden\": {\"type\": \"const\", \"value\": 64}},"

static void a_const_axis_is_an_exact_integer(void **state)
{
	static const char *const refused_values[][2] = {
	    {"-1", "-1"},
	    {"2.5", "2.5"},
	    {"9223372036854775808", "9223372036854775808"},
	    {"9007199254740992", "9007199254740992"},
	    {"1e30", "1e30"},
	    {"\"64k\"", "\"64k\""},
	    {"\"\"", "\"\""},
	    {"\"9007199254740992\"", "\"9007199254740992\""},
	    {"null", "null"},
	    {"[64]", "a list"},
	};
	char line[256], sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof refused_values / sizeof *refused_values; i++) {
		snprintf(line, sizeof line, "\"axes\": {\"hidden\": {\"type\": \"const\", \"value\": %s}},",
		         refused_values[i][0]);
		snprintf(sentence, sizeof sentence,
		         "d.json:6:47: expected an integer from 0 to 9007199254740991, found %s", refused_values[i][1]);
		rejected(AXES, line, sentence);
	}
}

static void a_shape_names_axes_that_exist(void **state)
{
	(void)state;
	rejected(INPUTS, "\"inputs\": {\"x\": {\"shape\": [\"batch\", \"hiden\"], \"dtype\": \"int8\"}},",
	        "d.json:7:37: expected the name of an axis, found \"hiden\"; did you mean \"hidden\"?");
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"tokens\"], \"dtype\": \"int8\"}},",
	        "d.json:8:29: expected the name of an axis, found \"tokens\"; declare it under \"axes\"");
	for (int rank = RANK_MAX; rank <= RANK_MAX + 1; rank++) {
		struct buf line = {0};

		buf_text(&line, "\"outputs\": {\"y\": {\"shape\": [\"batch\"");
		for (int i = 1; i < rank; i++)
			buf_text(&line, ", \"batch\"");
		buf_text(&line, "], \"dtype\": \"int8\"}},");
		if (rank == RANK_MAX)
			accepted(OUTPUTS, line.data);
		else
			rejected(OUTPUTS, line.data, "d.json:8:28: expected at most 16 dimensions, found 17");
		buf_free(&line);
	}
}

static void an_axis_with_one_value_is_const(void **state)
{
	static const struct {
		const char *line;
		int64_t value; /* the length of `batch` that the constraints imply; 0: `batch` stays var */
	} constraints[] = {
	    {"\"constraints\": [\"hidden == 2 * batch\"],", 32},
	    {"\"constraints\": [\"batch == hidden + 1\", \"batch > 3\"],", 65},
	    {"\"constraints\": [\"hidden == 3 * batch\"],", 0},
	    {"\"constraints\": [\"hidden * batch == 0\"],", 0},
	    {"\"constraints\": [\"batch == 2 ** 52\"],", 0}, /* the tensor would be too large for any machine */
	};

	(void)state;
	for (size_t i = 0; i < sizeof constraints / sizeof *constraints; i++) {
		struct arena arena = {0};
		const struct definition *d = load(CONSTRAINTS, constraints[i].line, &arena, NULL);

		assert_non_null(d);
		assert_string_equal(d->axes[0].name, "batch");
		assert_int_equal(d->axes[0].value, constraints[i].value);
		assert_int_equal(d->axes[0].var, constraints[i].value == 0);
		arena_free(&arena);
	}
}

static void axes_are_computed_from_others(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d =
	    load(AXES, AXES_WITH(EXPR("c", "a * 2") "," EXPR("a", "(hidden // 3 - 1) ** 2 % 33") "," EXPR("n", "batch * a / 2")), &arena, &err);
	int64_t axis[5] = {-1, -1, -1, 5, 64}, wrong[5] = {-1, -1, 11, 5, 64}, unknown[5] = {-1, -1, -1, -1, 64};
	int at;

	(void)state;
	assert_string_equal(err.text, "");
	assert_true(!d->axes[0].var && d->axes[0].value == 8 && !d->axes[1].var && d->axes[1].value == 4 && d->axes[2].var);
	assert_string_equal(d->axis_expressions[2], "batch * a / 2");
	assert_null(d->axis_expressions[3]);
	assert_string_equal(d->constraints[d->constraint_count - 1], "n == batch * a / 2");
	assert_int_equal(axis_expressions_compute(d, axis, &at, &err), 0);
	assert_true(axis[0] == 8 && axis[1] == 4 && axis[2] == 10);
	assert_int_equal(axis_expressions_compute(d, unknown, &at, &err), 0);
	assert_true(unknown[0] == 8 && unknown[2] == -1);
	assert_int_equal(axis_expressions_compute(d, wrong, &at, &err), -1);
	assert_int_equal(at, 2);
	assert_string_equal(err.text, "expected the axis n to be 10, the value of batch * a / 2, found 11");
	wrong[2] = -1;
	wrong[3] = 4503599627370497;
	assert_int_equal(axis_expressions_compute(d, wrong, &at, &err), -1);
	assert_string_equal(err.text, "the axis n = batch * a / 2 cannot be computed: the value is 9.00719925e+15, not an "
				      "integer from 0 to 9007199254740991");
	arena_free(&arena);
}

/* The length of an axis may be an expression with other axes. To find axes that depend on themselves, reftest evaluates
 * the expressions once with a batch of 1. A negative length is no error there. */
static void an_axis_may_be_negative_for_small_lengths(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(AXES, AXES_WITH(EXPR("a", "b + 1") "," EXPR("b", "batch - 7")), &arena, &err);
	int64_t axis[4] = {-1, -1, 9, 64};
	int at;

	(void)state;
	assert_non_null(d);
	assert_int_equal(axis_expressions_compute(d, axis, &at, &err), 0);
	assert_true(axis[0] == 3 && axis[1] == 2);
	arena_free(&arena);
}

static void an_axis_that_cannot_be_computed_is_refused(void **state)
{
	static const struct {
		const char *axes, *sentence;
	} cases[] = {
	    {AXES_WITH(EXPR("a", "hidden +")), "d.json:6:46: the expression cannot be computed: column 9 of the expression \"hidden +\": "
					       "expected a value, found the end of the expression"},
	    {AXES_WITH(EXPR("a", "1 + k")), "d.json:6:46: the expression cannot be computed: column 5 of the expression \"1 + k\": "
					    "expected the name of an axis, found 'k'"},
	    {AXES_WITH(EXPR("a", "hidden // 0")), "d.json:6:46: the expression cannot be computed: a division by zero"},
	    {AXES_WITH(EXPR("a", "hidden / 3")),
	     "d.json:6:46: the expression cannot be computed: the value is 21.3333333, not an integer from 0 to "
	     "9007199254740991"},
	    {AXES_WITH(EXPR("a", "1 - hidden")),
	     "d.json:6:46: the expression cannot be computed: the value is -63, not an integer from 0 to 9007199254740991"},
	    {AXES_WITH(EXPR("a", "a + 1")), "d.json:6:46: expected an expression without a cycle, but the axis "
					    "\"a\" depends on itself"},
	    {AXES_WITH(EXPR("a", "b + batch") "," EXPR("b", "a - 1")),
	     "d.json:6:46: expected an expression without a cycle, but the axis \"a\" depends on itself"},
	    {AXES_WITH("\"a\": {\"type\": \"expr\"}"),
	     "d.json:6:15: expected a field \"expression\" (a string, because the type of the axis is \"expr\"), found none"},
	    {AXES_WITH("\"a\": {\"type\": \"expr\", \"expression\": 2}"), "d.json:6:46: expected an expression in a string, found 2"},
	};
	static const char *const more[] = {EXPR("a", "hiden * 2"), EXPR("a", "hidden *"), EXPR("a", "hidden == 64"),
					   EXPR("a", "9223372036854775807 * hidden"), EXPR("a", "")};
	char line[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		rejected(AXES, cases[i].axes, cases[i].sentence);
	for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
		struct arena arena = {0};
		struct err err = {""};

		snprintf(line, sizeof line, AXES_WITH("%s"), more[i]);
		assert_null(load(AXES, line, &arena, &err));
		assert_memory_equal(err.text, "d.json:6:46: the expression cannot be computed: ", 48);
		arena_free(&arena);
	}
}

static void shapes_may_contain_sizes_and_expressions(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(OUTPUTS,
					  "\"outputs\": {\"y\": {\"shape\": [\"1\", \"hidden // 2\", \"batch + 1\", \"1\"], "
					  "\"dtype\": \"bfloat16\"}},",
					  &arena, &err);
	int64_t axis[5] = {6, -1, -1, -1, -1};
	int at;

	(void)state;
	assert_string_equal(err.text, "");
	assert_int_equal(d->axis_count, 5);
	const int *shape = d->outputs[0].axis;

	assert_true(shape[0] == 2 && shape[1] == 3 && shape[2] == 4 && shape[3] == 2);
	assert_string_equal(d->axes[3].name, "hidden // 2");
	assert_true(!d->axes[2].var && d->axes[2].value == 1 && !d->axes[3].var && d->axes[3].value == 32 && d->axes[4].var);
	axis[1] = 64;
	assert_int_equal(axis_expressions_compute(d, axis, &at, &err), 0);
	assert_true(axis[2] == 1 && axis[3] == 32 && axis[4] == 7);
	arena_free(&arena);
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"64 // 0\"], \"dtype\": \"bfloat16\"}},",
		"d.json:8:29: the expression cannot be computed: a division by zero");
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"hiden\"], \"dtype\": \"bfloat16\"}},",
		"d.json:8:29: expected the name of an axis, found \"hiden\"; did you mean \"hidden\"?");
}

/* In the dtype float4_e2m1fn_x2, one byte contains two values. The last axis of a tensor's shape counts the bytes. */
static void shapes_of_packed_dtypes_count_bytes(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(OUTPUTS,
					  "\"outputs\": {\"y\": {\"shape\": [\"batch\", \"hidden // 2\"], \"dtype\": \"float4_e2m1fn_x2\"}, "
					  "\"z\": {\"shape\": [\"hidden // 2\"], \"dtype\": \"float4_e2m1fn_x2\"}},",
					  &arena, &err);

	(void)state;
	assert_string_equal(err.text, "");
	assert_int_equal(d->outputs[0].dtype, DTYPE_FLOAT4_E2M1);
	const struct axis *last = &d->axes[d->outputs[0].axis[1]];

	assert_string_equal(last->name, "2 * (hidden // 2)");
	assert_true(!last->var && last->value == 64);
	assert_ptr_equal(&d->axes[d->outputs[1].axis[0]], last);
	arena_free(&arena);
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [], \"dtype\": \"float4_e2m1fn_x2\"}},",
		"d.json:8:28: expected at least one dimension, because float4_e2m1fn_x2 packs two values of the last dimension into a byte");
}

static void counts_are_bounded(void **state)
{
	struct buf line = {0};

	(void)state;
	buf_text(&line, "\"axes\": {\"batch\": {\"type\": \"var\"}");
	for (int i = 0; i < DEFINITION_AXES; i++)
		buf_printf(&line, ", \"a%d\": {\"type\": \"var\"}", i);
	buf_text(&line, "},");
	rejected(AXES, line.data, "d.json:6:9: expected at most 128 axes, found 129");
	buf_clear(&line);
	buf_text(&line, "\"inputs\": {\"x\": {\"shape\": [], \"dtype\": \"int8\"}");
	for (int i = 0; i < DEFINITION_TENSORS; i++)
		buf_printf(&line, ", \"a%d\": {\"shape\": [], \"dtype\": \"int8\"}", i);
	buf_text(&line, "},");
	rejected(INPUTS, line.data, "d.json:7:11: expected at most 64 inputs, found 65");
	buf_clear(&line);
	buf_text(&line, "\"tags\": [\"\"");
	for (int i = 0; i < 256; i++)
		buf_text(&line, ", \"t\"");
	buf_text(&line, "],");
	rejected(TAGS, line.data, "d.json:5:9: expected at most 256 strings, found 257");
	buf_free(&line);
}

static void a_tensor_has_countable_bytes(void **state)
{
	(void)state;
	rejected(
	    AXES,
	    "\"axes\": {\"batch\": {\"type\": \"var\"}, \"hidden\": {\"type\": \"const\", \"value\": "
	    "9007199254740991}},",
	    "d.json:7:27: expected a tensor of at most 2^48 bytes, but the const axes alone make it larger");
	accepted(AXES, "\"axes\": {\"batch\": {\"type\": \"var\"}, \"hidden\": {\"type\": \"const\", \"value\": "
	            "140737488355328}},");
	rejected(
	    AXES,
	    "\"axes\": {\"batch\": {\"type\": \"var\"}, \"hidden\": {\"type\": \"const\", \"value\": "
	    "140737488355329}},",
	    "d.json:7:27: expected a tensor of at most 2^48 bytes, but the const axes alone make it larger");
}

static void bytes_are_counted_without_overflow(void **state)
{
	static const struct {
		enum dtype dtype;
		int rank;
		int64_t sizes[4], bytes;
	} cases[] = {
	    {DTYPE_BFLOAT16, 2, {3, 5}, 30},
	    {DTYPE_FLOAT4_E2M1, 1, {5}, 3},
	    {DTYPE_INT64, 0, {0}, 8},
	    {DTYPE_INT64, RANK_SCALAR, {0}, 0},
	    {DTYPE_INT8, 2, {0, 7}, 0},
	    {DTYPE_INT8, 2, {-1, 7}, 7},
	    {DTYPE_INT8, 2, {1 << 24, 1 << 24}, (int64_t)1 << 48},
	    {DTYPE_INT16, 2, {1 << 24, 1 << 24}, -1},
	    {DTYPE_INT8, 4, {(int64_t)1 << 52, (int64_t)1 << 52, (int64_t)1 << 52, 1}, -1},
	    {DTYPE_INT8,
	     4,
	     {(int64_t)1 << 40, (int64_t)1 << 40, 0, 1},
	     -1}, /* the tensor has no elements, but the computation of its strides would overflow */
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct tensor_spec spec = {.dtype = cases[i].dtype, .rank = cases[i].rank, .axis = {0, 1, 2, 3}};

		assert_true(definition_bytes(&spec, cases[i].sizes) == cases[i].bytes);
	}
}

static void a_constraint_can_hold(void **state)
{
	(void)state;
	rejected(CONSTRAINTS, "\"constraints\": [\"hidden % 3 == 0\"],",
	        "d.json:9:17: expected a constraint that can be satisfied, but the values of the const axes make it false: hidden % 3 == "
	        "0: 64 % 3 == 0 "
	        "is false");
	rejected(CONSTRAINTS, "\"constraints\": [\"\"],",
	        "d.json:9:17: expected a non-empty string, found \"\"");
}

static void a_constraint_that_is_no_python_is_refused(void **state)
{
	(void)state;
	rejected(CONSTRAINTS, "\"constraints\": [\"batch ==\"],", "d.json:9:17: expected a Python expression, found \"batch ==\"");
	rejected(CONSTRAINTS, "\"constraints\": [\"batch == (1\"],", "d.json:9:17: expected a Python expression, found \"batch == (1\"");
	rejected(CONSTRAINTS, "\"constraints\": [\"batch = 1\"],", "d.json:9:17: expected a Python expression, found \"batch = 1\"");
	rejected(CONSTRAINTS, "\"constraints\": [\" \"],", "d.json:9:17: expected a Python expression, found \" \"");
	accepted(CONSTRAINTS, "\"constraints\": [\"all(batch > k for k in (1, 2)) # why\"],");
}

static void a_constraint_that_cannot_be_checked_is_kept_and_noted(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(
	    CONSTRAINTS,
	    "\"constraints\": [\"all(n < batch)\", \"batch >= 1\", \"hidden == math.log2(batch)\", \"2 ** 64 == 0\"],",
	    &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_int_equal(d->constraint_count, 1);
	assert_string_equal(d->constraints[0], "batch >= 1");
	assert_int_equal(d->unchecked_count, 3);
	assert_string_equal(d->constraints[3], "all(n < batch)");
	assert_string_equal(d->constraints[1], "2 ** 64 == 0");
	assert_int_equal(d->note_count, 3);
	assert_string_equal(d->notes[0], "d.json:9:17: this constraint is not checked: column 1 of the constraint \"all(n < "
	                                 "batch)\": expected the name of an axis or an input, found 'all'");
	arena_free(&arena);
}

/* An axis without a type, and a length that is a string or true, are accepted, because flashinfer-bench accepts
 * them. */
static void an_axis_without_a_type_and_a_length_that_is_no_number(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(
	    AXES, "\"axes\": {\"batch\": {}, \"hidden\": {\"value\": \"64\"}, \"one\": {\"type\": \"const\", \"value\": true}, "
	          "\"none\": {\"type\": \"const\", \"value\": 0}},",
	    &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_true(d->axes[0].var);
	assert_false(d->axes[1].var);
	assert_int_equal(d->axes[1].value, 64);
	assert_int_equal(d->axes[2].value, 1);
	assert_int_equal(d->axes[3].value, 0);
	assert_int_equal(d->note_count, 0);
	arena_free(&arena);
}

static void an_expression_that_no_lengths_fit_is_noted(void **state)
{
	static const struct {
		const char *expression, *note; /* the note that the expression causes; NULL: no note */
	} rows[] = {
	    {"8 // (n - n)",
	     "d.json:6:64: reftest tried several lengths of the axes, but could not compute the expression for any of "
	     "them: the axis a = 8 // (n - n) cannot be computed: a division by zero"},
	    {"n % (m - m)",
	     "d.json:6:64: reftest tried several lengths of the axes, but could not compute the expression for any of "
	     "them: the axis a = n % (m - m) cannot be computed: a division by zero"},
	    {"n // 64", NULL},
	    {"64 // (n // 64)", NULL}, /* can be computed if n is at least 64 */
	    {"n - 1000", NULL},	       {"n - m - 1", NULL}, {"m - n - 1", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena = {0};
		struct err err = {""};
		char line[200];

		snprintf(line, sizeof line, AXES_WITH("\"n\": {}, \"m\": {}, \"a\": {\"type\": \"expr\", \"expression\": \"%s\"}"), rows[i].expression);
		const struct definition *d = load(AXES, line, &arena, &err);

		assert_non_null(d);
		assert_int_equal(d->note_count, rows[i].note != NULL);
		if (rows[i].note != NULL)
			assert_string_equal(d->notes[0], rows[i].note);
		arena_free(&arena);
	}
}

static void a_length_may_be_a_text_that_flashinfer_bench_converts(void **state)
{
	static const struct {
		const char *value;
		int64_t length; /* the length that reftest reads; -1: it rejects the definition */
	} texts[] = {
	    {"\"+128\"", 128}, {"\" 128 \"", 128}, {"\"1_000\"", 1000}, {"\"128.0\"", 128}, {"\"007\"", 7},
	    {"false", 0}, {"null", -1}, {"[]", -1},
	    {"\"-0\"", 0},	 {"\"-1\"", -1},     {"\"_1\"", -1},	   {"\"1__0\"", -1},  {"\"1_\"", -1}, {"\"\"", -1},
	    {"\"1.5\"", -1},   {"\"0x10\"", -1},   {"\"1 2\"", -1},	   {"\".0\"", -1},    {"\"9007199254740992\"", -1},
	    {"\"9007199254740991\"", ((int64_t)1 << 53) - 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct arena arena = {0};
		struct err err = {""};
		char line[200];

		snprintf(line, sizeof line, AXES_WITH("\"n\": {\"type\": \"const\", \"value\": %s}"), texts[i].value);
		const struct definition *d = load(AXES, line, &arena, &err);

		assert_true((d != NULL) == (texts[i].length >= 0));
		if (d != NULL)
			assert_int_equal(d->axes[0].value, texts[i].length);
		arena_free(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_const_axis_is_an_exact_integer),
	    cmocka_unit_test(a_shape_names_axes_that_exist),
	    cmocka_unit_test(an_axis_with_one_value_is_const),
	    cmocka_unit_test(axes_are_computed_from_others),
	    cmocka_unit_test(an_axis_may_be_negative_for_small_lengths),
	    cmocka_unit_test(an_axis_that_cannot_be_computed_is_refused),
	    cmocka_unit_test(shapes_may_contain_sizes_and_expressions),
	    cmocka_unit_test(shapes_of_packed_dtypes_count_bytes),
	    cmocka_unit_test(counts_are_bounded),
	    cmocka_unit_test(a_tensor_has_countable_bytes),
	    cmocka_unit_test(bytes_are_counted_without_overflow),
	    cmocka_unit_test(a_constraint_can_hold),
	    cmocka_unit_test(a_constraint_that_is_no_python_is_refused),
	    cmocka_unit_test(a_constraint_that_cannot_be_checked_is_kept_and_noted),
	    cmocka_unit_test(an_expression_that_no_lengths_fit_is_noted),
	    cmocka_unit_test(a_length_may_be_a_text_that_flashinfer_bench_converts),
	    cmocka_unit_test(an_axis_without_a_type_and_a_length_that_is_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
