/* test_fingerprint - which changes of a definition change its subject digest, and which messages report them. */
#include "cache/fingerprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "cache/checksummed_record.h"

/* A definition, with all structures to which it points, so that a test may change each of them. */
struct sample {
	struct axis axes[3];
	struct tensor_spec inputs[3], outputs[2];
	const char *constraints[2];
	struct definition definition;
};

static void sample_make(struct sample *s)
{
	*s = (struct sample){
	    .axes = {{"batch_size", true, 0}, {"hidden_size", false, 4096}, {"one", false, 1}},
	    .inputs = {{.name = "x", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {0, 1}},
	               {.name = "weight", .dtype = DTYPE_BFLOAT16, .rank = 1, .axis = {1}, .optional = true},
	               {.name = "eps", .dtype = DTYPE_FLOAT32, .rank = RANK_SCALAR}},
	    .outputs = {{.name = "output", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {0, 1}},
	                {.name = "count", .dtype = DTYPE_INT64, .rank = 0}},
	    .constraints = {"batch_size > 0", "hidden_size == 4096"},
	};
	s->definition = (struct definition){
	    .name = "rmsnorm_h4096", .op_type = "rmsnorm", .description = "", .axes = s->axes, .axis_count = 3,
	    .inputs = s->inputs, .input_count = 3, .outputs = s->outputs, .output_count = 2,
	    .constraints = s->constraints, .constraint_count = 2,
	    .reference = "def run(x, weight, eps):\n    return x, 1\n",
	};
	s->definition.reference_length = strlen(s->definition.reference);
}

static struct digest subject_of(const struct definition *definition)
{
	struct arena arena = {0};
	struct fields fields = {0};

	definition_fields(definition, &arena, &fields);
	struct digest digest = fields_digest(&fields);

	arena_free(&arena);
	return digest;
}

static bool unchanged(const struct sample *s)
{
	struct sample fresh;

	sample_make(&fresh);
	struct digest then = subject_of(&fresh.definition), now = subject_of(&s->definition);

	return digest_equal(&then, &now);
}

static void name_tags_description_and_place_leave_no_trace(void **state)
{
	static const char *const tags[] = {"model:llama-3.1-8b"};
	struct sample s;

	(void)state;
	sample_make(&s);
	s.definition.name = "other";
	s.definition.description = "Something else.";
	s.definition.tags = tags;
	s.definition.tag_count = 1;
	s.definition.reference_line = 77;
	assert_true(unchanged(&s));
}

static void the_order_of_constraints_leaves_no_trace(void **state)
{
	struct sample s;

	(void)state;
	sample_make(&s);
	const char *constraint = s.constraints[0];

	s.constraints[0] = s.constraints[1];
	s.constraints[1] = constraint;
	assert_true(unchanged(&s));
}

static void the_order_of_axes_leaves_a_trace(void **state)
{
	struct sample s;

	(void)state;
	sample_make(&s);
	struct axis axis = s.axes[0];

	s.axes[0] = s.axes[1];
	s.axes[1] = axis;
	for (int i = 0; i < 2; i++) { /* the axes were swapped, so the shapes must refer to them by their new indices */
		s.inputs[0].axis[i] = s.outputs[0].axis[i] = 1 - i;
		s.inputs[1].axis[0] = 0;
	}
	assert_false(unchanged(&s));
}

/* The inputs have different dtypes and shapes, but an op family may still distinguish them by their order. */
static void the_order_of_inputs_leaves_a_trace(void **state)
{
	for (int i = 1; i < 3; i++) {
		struct sample s;

		(void)state;
		sample_make(&s);
		struct tensor_spec input = s.inputs[i];

		s.inputs[i] = s.inputs[0];
		s.inputs[0] = input;
		assert_false(unchanged(&s));
	}
}

static void the_order_of_outputs_leaves_a_trace(void **state)
{
	struct sample s;

	(void)state;
	sample_make(&s);
	struct tensor_spec output = s.outputs[0];

	s.outputs[0] = s.outputs[1];
	s.outputs[1] = output;
	assert_false(unchanged(&s));
}

static void everything_else_of_the_schema_leaves_a_trace(void **state)
{
	struct sample s;

	(void)state;
#define CHANGED(change)                                                                                                \
	sample_make(&s);                                                                                               \
	assert_true(unchanged(&s));                                                                                    \
	change;                                                                                                        \
	assert_false(unchanged(&s))
	CHANGED(s.axes[1].value = 4097);
	CHANGED(s.axes[1].var = true);
	CHANGED(s.axes[0].name = "batch");
	CHANGED(s.definition.axis_count = 2);
	CHANGED(s.inputs[0].dtype = DTYPE_FLOAT16);
	CHANGED(s.inputs[0].axis[1] = 0);
	CHANGED(s.inputs[0].rank = 1);
	CHANGED(s.inputs[0].param = "y");
	CHANGED((s.definition.left_out = &s.constraints[0], s.definition.left_out_count = 1));
	CHANGED(s.inputs[2].rank = 0); /* a 0-D tensor is not a Python scalar */
	CHANGED(s.inputs[1].optional = false);
	CHANGED(s.inputs[1].name = "w");
	CHANGED(s.definition.input_count = 2);
	CHANGED(s.outputs[0].dtype = DTYPE_FLOAT32);
	CHANGED(s.outputs[0].name = "y");
	CHANGED(s.definition.output_count = 1);
	CHANGED(s.constraints[0] = "batch_size > 1");
	CHANGED(s.definition.constraint_count = 1);
	CHANGED(s.definition.op_type = "gemm");
	CHANGED(s.definition.reference = "def run(x, weight, eps):\n    return x, 2\n");
	CHANGED(s.definition.entry_point = "_x_reference");
#undef CHANGED
}

static void a_comment_in_the_reference_leaves_no_trace(void **state)
{
	struct sample s;

	(void)state;
	sample_make(&s);
	s.definition.reference = "def run(x, weight, eps):\n    '''What it is.'''\n    return x, 1  # yes\n";
	s.definition.reference_length = strlen(s.definition.reference);
	assert_true(unchanged(&s));
}

/* The subject digest must be the same on every machine and in every version. If the digest of this definition changes,
 * all stored verdicts become useless. If equal lists of fields get another digest, FINGERPRINT_FORMAT must get a new
 * value. A new field that every definition has needs no new value, because no old list equals a new one. */
static void the_digest_of_a_definition_is_the_same_everywhere(void **state)
{
	struct sample s;
	char hex[DIGEST_HEX];

	(void)state;
	sample_make(&s);
	struct digest digest = subject_of(&s.definition);

	digest_hex(&digest, hex);
	assert_string_equal(hex, "0ad14bb0159c1a4a912a1cf271ff6742");
}

static void fields_cannot_run_into_each_other(void **state)
{
	static const char *const lists[][4] = {
	    {"a", "bc", NULL, NULL}, {"ab", "c", NULL, NULL}, {"a", "b", "c", ""}, {"a", "", "bc", ""},
	    {"", "abc", NULL, NULL}, {"a", "bc", "", ""},     {"a", "", "b", "c"}, {"b", "c", "a", "x"},
	};
	enum { LISTS = sizeof lists / sizeof *lists };
	struct digest digests[LISTS];
	struct arena arena = {0};

	(void)state;
	for (int i = 0; i < LISTS; i++) {
		struct fields fields = {0};

		for (int j = 0; j < 4 && lists[i][j] != NULL; j += 2)
			field_text(&fields, &arena, lists[i][j], lists[i][j + 1]);
		digests[i] = fields_digest(&fields);
		for (int j = 0; j < i; j++)
			assert_false(digest_equal(&digests[i], &digests[j]));
	}
	arena_free(&arena);
}

static void the_order_of_adding_does_not_matter(void **state)
{
	struct arena arena = {0};
	struct fields one = {0}, two = {0};

	(void)state;
	for (int i = 0; i < 100; i++) {
		field_printf(&one, &arena, "tag", "%d", i); /* all fields have the same tag, so they are sorted by
							     * digest */
		field_printf(&two, &arena, "tag", "%d", 99 - i);
	}
	struct digest a = fields_digest(&one), b = fields_digest(&two);

	assert_true(digest_equal(&a, &b));
	arena_free(&arena);
}

static void a_copy_of_a_list_grows_by_itself(void **state)
{
	struct arena arena = {0};
	struct fields list = {0};

	(void)state;
	field_text(&list, &arena, "a", "1");
	struct fields one = fields_copy(&list, &arena), two = fields_copy(&list, &arena);

	field_text(&one, &arena, "b", "2");
	field_text(&two, &arena, "c", "3");
	assert_int_equal(list.count, 1);
	assert_string_equal(one.items[0].tag, "a");
	assert_string_equal(one.items[1].tag, "b");
	assert_string_equal(two.items[1].tag, "c");
	arena_free(&arena);
}

static void long_values_are_cut_for_reading_but_hashed_whole(void **state)
{
	char text[1001];
	struct arena arena = {0};
	struct fields fields = {0};

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	memcpy(text + 195, "\xE2\x82\xAC", 3); /* a character lies across the cut */
	field_text(&fields, &arena, "a", text);
	text[999] = 'y';
	field_text(&fields, &arena, "a", text);
	field_printf(&fields, &arena, "a", "%s%s", text, text);
	assert_int_equal(strlen(fields.items[0].value), 198);
	assert_string_equal(fields.items[0].value + 193, "xx...");
	assert_false(digest_equal(&fields.items[0].digest, &fields.items[1].digest));
	assert_false(digest_equal(&fields.items[1].digest, &fields.items[2].digest));
	arena_free(&arena);
}

static void control_characters_do_not_reach_a_terminal(void **state)
{
	struct arena arena = {0};
	struct fields fields = {0};

	(void)state;
	field_text(&fields, &arena, "a", "x\n\x1b[31my\x7f");
	assert_string_equal(fields.items[0].value, "x  [31my ");
	arena_free(&arena);
}

static void fields_read_back_as_they_were_written(void **state)
{
	struct sample s;
	struct arena arena = {0};
	struct fields fields = {0}, again;
	struct buf bytes = {0};

	(void)state;
	sample_make(&s);
	definition_fields(&s.definition, &arena, &fields);
	fields_write(&fields, &bytes);
	assert_int_equal(fields_read(bytes.data, bytes.length, &arena, &again), 0);
	assert_int_equal(again.count, fields.count);
	for (int i = 0; i < fields.count; i++) {
		assert_string_equal(again.items[i].tag, fields.items[i].tag);
		assert_true((again.items[i].value == NULL) == (fields.items[i].value == NULL));
		if (fields.items[i].value != NULL)
			assert_string_equal(again.items[i].value, fields.items[i].value);
	}
	assert_int_equal(fields_changed(&fields, &again, &arena, NULL, 0), 0);
	buf_free(&bytes);
	arena_free(&arena);
}

/* A field has a displayed value and a hashed value, which may differ. A field may also have only the digest of the
 * hashed value. */
static void each_field_reads_back_with_its_value_and_digest(void **state)
{
	struct arena arena = {0};
	struct fields fields = {0}, again;
	struct buf bytes = {0};
	char *text = arena_alloc(&arena, 3 * FIELD_VALUE_MAX);

	(void)state;
	memset(text, 'x', 3 * FIELD_VALUE_MAX - 1);
	field_text(&fields, &arena, "a", "const 64");
	field_add(&fields, &arena, "b", "64", "const 64", 8);
	field_text(&fields, &arena, "c", "");
	field_text(&fields, &arena, "d", "=00112233445566778899aabbccddeeff=");
	field_text(&fields, &arena, "e", text);
	field_add(&fields, &arena, "f", "shown", "hashed", 6);
	field_add(&fields, &arena, "g", NULL, "", 0);
	field_add(&fields, &arena, "h", "two\nlines", "two\nlines", 9);
	fields_write(&fields, &bytes);
	assert_int_equal(fields_read(bytes.data, bytes.length, &arena, &again), 0);
	assert_int_equal(again.count, fields.count);
	for (int i = 0; i < again.count; i++) {
		assert_true(digest_equal(&again.items[i].digest, &fields.items[i].digest));
		if (fields.items[i].value != NULL)
			assert_string_equal(again.items[i].value, fields.items[i].value);
		else
			assert_null(again.items[i].value);
	}
	assert_true(bytes.length < 600); /* if the hashed value equals the displayed value, it is stored only once */
	buf_free(&bytes);
	arena_free(&arena);
}

static void fields_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = {
	    "", "0", "1\t", "-1\t", "x\t", "99999999999999999999\t", "5000\t", "1\ta\t", "1\ta\t\t", "1\ta\t0011\t",
	    "1\ta\t00112233445566778899aabbccddeeffx\t", "1\ta\t00112233445566778899aabbccddeefg\t", "1\ta\t=\033\t",
	    "1\t\001\t=\t", "1\ta\t=b\tc\t=d\t", "2\ta\t=b\t", "0\ta\t=b\t",
	};
	struct arena arena = {0};
	struct fields fields;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (fields_read(texts[i], strlen(texts[i]), &arena, &fields) == 0)
			fail_msg("'%s' is read as fields", texts[i]);
	assert_int_equal(fields_read("1\ta\t=b\t", 7, &arena, &fields), 0);
	assert_int_equal(fields_read("0\t", 2, &arena, &fields), 0);
	arena_free(&arena);
}

static void fields_cut_anywhere_are_damaged(void **state)
{
	struct sample s;
	struct arena arena = {0};
	struct fields fields = {0}, again;
	struct buf bytes = {0};

	(void)state;
	sample_make(&s);
	definition_fields(&s.definition, &arena, &fields);
	fields_write(&fields, &bytes);
	for (size_t length = 0; length < bytes.length; length++) {
		char *copy = malloc(length + 1);

		memcpy(copy, bytes.data, length);
		assert_int_equal(fields_read(copy, length, &arena, &again), -1);
		assert_int_equal(again.count, 0);
		free(copy);
	}
	buf_add(&bytes, "", 1);
	assert_int_equal(fields_read(bytes.data, bytes.length, &arena, &again), -1);
	assert_int_equal(fields_read("\xFF\xFF\xFF\xFF", 4, &arena, &again), -1);
	buf_free(&bytes);
	arena_free(&arena);
}

static void a_change_is_reported_in_a_sentence(void **state)
{
	struct sample s;
	struct arena arena = {0};
	struct fields then = {0}, now = {0};
	const char *string_list[16];

	(void)state;
	sample_make(&s);
	definition_fields(&s.definition, &arena, &then);
	s.axes[1].value = 2048;
	s.axes[0].name = "batch";
	s.inputs[1].optional = false;
	s.constraints[0] = "batch > 0";
	s.definition.reference_length = 4;
	definition_fields(&s.definition, &arena, &now);
	field_add(&now, &arena, "blob.w", NULL, "x", 1);
	assert_int_equal(fields_changed(&then, &now, &arena, string_list, 16), 10);
	assert_string_equal(string_list[0], "axes changed: batch_size, hidden_size, one, now batch, hidden_size, one");
	assert_string_equal(string_list[1], "axes.batch is new: var");
	assert_string_equal(string_list[2], "axes.batch_size was removed; it was var");
	assert_string_equal(string_list[3], "axes.hidden_size changed: 4096, now 2048");
	assert_string_equal(string_list[4], "blob.w is new");
	assert_string_equal(string_list[5], "constraints changed: batch_size > 0; hidden_size == 4096, now batch > 0; "
					    "hidden_size == 4096");
	assert_string_equal(string_list[6],
			    "inputs.weight changed: bfloat16[hidden_size], optional, now bfloat16[hidden_size]");
	assert_string_equal(string_list[7],
			    "inputs.x changed: bfloat16[batch_size, hidden_size], now bfloat16[batch, hidden_size]");
	assert_string_equal(string_list[9], "reference changed");
	arena_free(&arena);
}

static void no_more_sentences_are_written_than_there_is_room_for(void **state)
{
	struct arena arena = {0};
	struct fields then = {0}, now = {0};
	const char *string_list[3] = {NULL, NULL, "untouched"};

	(void)state;
	for (int i = 0; i < 5; i++)
		field_text(&now, &arena, arena_printf(&arena, "%d", i), "x");
	assert_int_equal(fields_changed(&then, &now, &arena, string_list, 2), 5);
	assert_string_equal(string_list[1], "1 is new: x");
	assert_string_equal(string_list[2], "untouched");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(name_tags_description_and_place_leave_no_trace),
	    cmocka_unit_test(the_order_of_constraints_leaves_no_trace),
	    cmocka_unit_test(the_order_of_axes_leaves_a_trace),
	    cmocka_unit_test(the_order_of_inputs_leaves_a_trace),
	    cmocka_unit_test(the_order_of_outputs_leaves_a_trace),
	    cmocka_unit_test(everything_else_of_the_schema_leaves_a_trace),
	    cmocka_unit_test(a_comment_in_the_reference_leaves_no_trace),
	    cmocka_unit_test(the_digest_of_a_definition_is_the_same_everywhere),
	    cmocka_unit_test(fields_cannot_run_into_each_other),
	    cmocka_unit_test(the_order_of_adding_does_not_matter),
	    cmocka_unit_test(a_copy_of_a_list_grows_by_itself),
	    cmocka_unit_test(long_values_are_cut_for_reading_but_hashed_whole),
	    cmocka_unit_test(control_characters_do_not_reach_a_terminal),
	    cmocka_unit_test(fields_read_back_as_they_were_written),
	    cmocka_unit_test(each_field_reads_back_with_its_value_and_digest),
	    cmocka_unit_test(fields_that_are_none_are_refused),
	    cmocka_unit_test(fields_cut_anywhere_are_damaged),
	    cmocka_unit_test(a_change_is_reported_in_a_sentence),
	    cmocka_unit_test(no_more_sentences_are_written_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
