/* test_workload - workload lines are read completely. A bad line is rejected with its line number and column, and the
 * other lines are still read. */
#include "dataset/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

enum { BATCH, LEN, HEADS, AXES };
enum { Q, INDPTR, SCALE, COUNT, FLAG, STATE, INPUTS };

static const struct axis axes[AXES] = {{"batch_size", true, 0}, {"len_indptr", true, 0}, {"heads", false, 8}};
static const struct tensor_spec inputs[INPUTS] = {
    {.name = "q", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {BATCH, HEADS}},
    {.name = "indptr", .dtype = DTYPE_INT32, .rank = 1, .axis = {LEN}},
    {.name = "scale", .dtype = DTYPE_FLOAT32, .rank = RANK_SCALAR},
    {.name = "count", .dtype = DTYPE_INT8, .rank = RANK_SCALAR},
    {.name = "flag", .dtype = DTYPE_BOOL, .rank = RANK_SCALAR},
    {.name = "state", .dtype = DTYPE_FLOAT32, .rank = 1, .axis = {BATCH}, .optional = true},
};
static const struct tensor_spec outputs[] = {
    {.name = "out", .dtype = DTYPE_FLOAT32, .rank = 3, .axis = {BATCH, LEN, HEADS}}};
static const char *const constraints[] = {"len_indptr == batch_size + 1", "heads == indptr[-1].item()",
                                          "batch_size // (len_indptr - 3) >= -9"};
static const struct definition definition = {
    .name = "attend",
    .axes = axes,
    .axis_count = AXES,
    .inputs = inputs,
    .input_count = INPUTS,
    .outputs = outputs,
    .output_count = 1,
    .constraints = constraints,
    .constraint_count = 3,
    .left_out = (const char *const[]){"mode"},
    .left_out_count = 1,
    .custom_inputs_entrypoint = "make",
};

/* The parts of a workload line. A test can replace one of them. */
static const char *const parts[] = {
    "{\"definition\": \"attend\", ",
    "\"solution\": null, ",
    "\"workload\": {",
    "\"uuid\": \"u1\", ",
    "\"axes\": {\"batch_size\": 4, \"len_indptr\": 5}, ",
    "\"inputs\": {\"q\": {\"type\": \"random\"}, ",
    "\"indptr\": {\"type\": \"safetensors\", \"path\": \"./blob//w/./a.safetensors\", \"tensor_key\": \"indptr\"}, ",
    "\"scale\": {\"type\": \"scalar\", \"value\": 0.125}, ",
    "\"count\": {\"type\": \"scalar\", \"value\": -3}, ",
    "\"flag\": {\"type\": \"scalar\", \"value\": true}",
    "}}, ",
    "\"evaluation\": null}",
};
enum {
	DEFINITION,
	SOLUTION,
	WORKLOAD,
	UUID,
	AXIS_VALUES,
	INPUT_Q,
	INPUT_INDPTR,
	INPUT_SCALE,
	INPUT_COUNT,
	INPUT_FLAG,
	CLOSE,
	EVALUATION,
	PARTS
};

/* Appends a line that consists of `parts`, with `part` in place of parts[replaced]. If `part` is NULL, no part is
 * replaced. Returns the column at which part number `replaced` begins. */
static size_t add_line(struct buf *text, int replaced, const char *part)
{
	size_t start = text->length, column = 0;

	for (int i = 0; i < PARTS; i++) {
		if (i == replaced)
			column = text->length - start + 1;
		buf_text(text, i == replaced && part != NULL ? part : parts[i]);
	}
	buf_text(text, "\n");
	return column;
}

/* Checks the message for a line in which `part` replaces parts[replaced]: "w.jsonl:1:COLUMN: `sentence`". The error is
 * `offset` bytes after the beginning of `part`. */
static void refused(int replaced, const char *part, size_t offset, const char *sentence)
{
	struct arena arena = {0};
	struct buf text = {0}, wanted = {0};
	size_t column = add_line(&text, replaced, part) + offset;
	struct workload_file file = workloads_load("w.jsonl", &definition, text.data, text.length, &arena);

	buf_printf(&wanted, "w.jsonl:1:%zu: %s", column, sentence);
	assert_int_equal(file.count, 1);
	assert_int_equal(file.invalid, 1);
	assert_non_null(file.lines[0].error);
	assert_string_equal(file.lines[0].error, wanted.data);
	assert_null(file.lines[0].axis);
	assert_null(file.lines[0].inputs);
	arena_free(&arena);
	buf_free(&text);
	buf_free(&wanted);
}

static struct workload_file load(struct buf *text, struct arena *arena)
{
	struct workload_file file = workloads_load("w.jsonl", &definition, text->data, text->length, arena);

	for (int i = 0; i < file.count; i++)
		if (file.lines[i].error != NULL)
			fail_msg("%s", file.lines[i].error);
	return file;
}

static void a_line_is_read_in_full(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	add_line(&text, -1, NULL);
	struct workload_file file = load(&text, &arena);
	const struct workload *w = file.lines;

	assert_int_equal(file.count, 1);
	assert_string_equal(w->uuid, "u1");
	assert_int_equal(w->line, 1);
	assert_true(w->axis[BATCH] == 4 && w->axis[LEN] == 5 && w->axis[HEADS] == 8);
	assert_int_equal(w->inputs[Q].kind, SOURCE_RANDOM);
	assert_int_equal(w->inputs[INDPTR].kind, SOURCE_SAFETENSORS);
	assert_string_equal(w->inputs[INDPTR].path, "blob/w/a.safetensors");
	assert_string_equal(w->inputs[INDPTR].tensor_key, "indptr");
	assert_true(w->inputs[SCALE].kind == SOURCE_SCALAR && w->inputs[SCALE].scalar_kind == SCALAR_FLOAT);
	assert_true(w->inputs[SCALE].number == 0.125);
	assert_true(w->inputs[COUNT].scalar_kind == SCALAR_INT && w->inputs[COUNT].integer == -3 &&
	            w->inputs[COUNT].number == -3);
	assert_true(w->inputs[FLAG].scalar_kind == SCALAR_BOOL && w->inputs[FLAG].integer == 1 &&
	            w->inputs[FLAG].number == 1);
	assert_int_equal(w->inputs[STATE].kind, SOURCE_ABSENT);
	arena_free(&arena);
	buf_free(&text);
}

static void lines_are_counted_with_the_blank_ones(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	buf_text(&text, "\n  \t\r\n");
	add_line(&text, UUID, "\"uuid\": \"a\", ");
	buf_text(&text, "\n");
	add_line(&text, UUID, "\"uuid\": \"b\", ");
	text.data[text.length - 1] = '\r'; /* the last line has no line feed */
	struct workload_file file = load(&text, &arena);

	assert_int_equal(file.count, 2);
	assert_int_equal(file.invalid, 0);
	assert_int_equal(file.lines[0].line, 3);
	assert_int_equal(file.lines[1].line, 5);
	assert_string_equal(file.lines[1].uuid, "b");
	file = workloads_load("w.jsonl", &definition, NULL, 0, &arena);
	assert_int_equal(file.count, 0);
	file = workloads_load("w.jsonl", &definition, "\n\n", 2, &arena);
	assert_int_equal(file.count, 0);
	arena_free(&arena);
	buf_free(&text);
}

static void a_bad_line_leaves_the_others_alone(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	add_line(&text, UUID, "\"uuid\": \"a\", ");
	buf_text(&text, "{\"definition\": }\n");
	add_line(&text, AXIS_VALUES, "\"axes\": {}, ");
	add_line(&text, UUID, "\"uuid\": \"b\", ");
	struct workload_file file = workloads_load("w.jsonl", &definition, text.data, text.length, &arena);

	assert_int_equal(file.count, 4);
	assert_int_equal(file.invalid, 2);
	assert_null(file.lines[0].error);
	assert_string_equal(file.lines[1].error, "w.jsonl:2:16: expected a value, found '}'");
	assert_null(file.lines[1].uuid);
	assert_string_equal(file.lines[2].error,
	                    "w.jsonl:3:79: expected a value for the axis \"batch_size\", found none");
	assert_string_equal(file.lines[2].uuid, "u1");
	assert_null(file.lines[3].error);
	assert_int_equal(file.lines[3].line, 4);
	arena_free(&arena);
	buf_free(&text);
}

static void each_uuid_stands_once(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	add_line(&text, UUID, "\"uuid\": \"b\", ");
	add_line(&text, UUID, "\"uuid\": \"a\", ");
	add_line(&text, UUID, "\"uuid\": \"b\", ");
	add_line(&text, UUID, "\"uuid\": \"b\", ");
	struct workload_file file = workloads_load("w.jsonl", &definition, text.data, text.length, &arena);

	assert_int_equal(file.invalid, 2);
	assert_null(file.lines[0].error);
	assert_string_equal(file.lines[2].error, "w.jsonl:3:65: expected a unique uuid, found the uuid of line 1");
	assert_string_equal(file.lines[3].error, "w.jsonl:4:65: expected a unique uuid, found the uuid of line 1");
	assert_null(file.lines[2].axis);
	arena_free(&arena);
	buf_free(&text);
}

static void missing_and_wrong_fields_are_refused(void **state)
{
	static const struct {
		int part;
		const char *text;
		size_t offset;
		const char *sentence;
	} cases[] = {
	    {DEFINITION, "{\"definition\": \"attends\", ", 15,
	     "expected \"attend\", the file's name, found \"attends\""},
	    {DEFINITION, "{\"definition\": 3, ", 15, "expected \"attend\", the file's name, found 3"},
	    {DEFINITION, "{", 0, "expected a field \"definition\" (the name of the definition), found none"},
	    {SOLUTION, "\"solution\": \"s\", ", 12, "expected null in a workload, found \"s\""},
	    {EVALUATION, "\"evaluation\": {}}", 14, "expected null in a workload, found an object"},
	    {UUID, "\"uuid\": \"\", ", 8, "expected a non-empty string, found \"\""},
	    {UUID, "\"uuid\": 7, ", 8, "expected a non-empty string, found 7"},
	    {UUID, "\"uuid\": \"a\\nb\", ", 8, "expected a string without control or invisible characters, found \"a\\x0ab\""},
	    {WORKLOAD, "\"workload\": {\"uuid\": \"u\"}, \"x\": {", 12,
	     "expected a field \"axes\" (an object), found none"},
	    {WORKLOAD, "\"workload\": {\"uuid\": \"u\", \"axes\": {\"batch_size\": 4, \"len_indptr\": 5}}, \"x\": {",
	     12, "expected a field \"inputs\" (an object), found none"},
	    {WORKLOAD, "\"workload\": {}, \"x\": {", 12, "expected a field \"uuid\" (a string), found none"},
	    {WORKLOAD, "\"workload\": [], \"x\": {", 12, "expected an object, found a list"},
	    {AXIS_VALUES, "\"axes\": [], ", 8, "expected an object, found a list"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 4, \"len_indptr\": 5, \"tokens\": 2}, ", 53,
	     "expected an axis of the definition, found \"tokens\"; remove it"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 4}, ", 8,
	     "expected a value for the axis \"len_indptr\", found none"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": -1, \"len_indptr\": 5}, ", 23,
	     "expected an integer from 0 to 9007199254740991, found -1"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 1.5, \"len_indptr\": 5}, ", 23,
	     "expected an integer from 0 to 9007199254740991, found 1.5"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": \"four\", \"len_indptr\": 5}, ", 23,
	     "expected an integer from 0 to 9007199254740991, found \"four\""},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 9223372036854775808, \"len_indptr\": 5}, ", 23,
	     "expected an integer from 0 to 9007199254740991, found 9223372036854775808"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 4, \"len_indptr\": 5, \"heads\": 9}, ", 52,
	     "expected 8, the value of the const axis heads, found 9"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 4, \"len_indptr\": 6}, ", 8,
	     "expected axis values that satisfy the constraint len_indptr == batch_size + 1: 6 == 4 + 1 is false"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 2, \"len_indptr\": 3}, ", 8,
	     "the constraint \"batch_size // (len_indptr - 3) >= -9\" cannot be evaluated: a division by zero"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 4503599627370496, \"len_indptr\": 4503599627370497}, ", 8,
	     "expected tensors of at most 2^48 bytes, but these axes make q larger"},
	    {AXIS_VALUES, "\"axes\": {\"batch_size\": 16777216, \"len_indptr\": 16777217}, ", 8,
	     "expected tensors of at most 2^48 bytes, but these axes make out larger"},
	    {INPUT_Q, "\"inputs\": {", 10, "expected a source for the input \"q\", found none"},
	    {INPUT_Q, "\"inputs\": {\"q\": {\"type\": \"random\"}, \"p\": {\"type\": \"random\"}, ", 41,
	     "expected an input of the definition, found \"p\"; remove it"},
	    {INPUT_Q, "\"inputs\": {\"q\": \"random\", ", 16, "expected an object with a \"type\", found \"random\""},
	    {INPUT_Q, "\"inputs\": {\"q\": null, ", 16, "expected an object with a \"type\", found null"},
	    {INPUT_Q, "\"inputs\": {\"q\": {}, ", 16,
	     "expected a field \"type\" (\"random\", \"scalar\", \"safetensors\" or \"custom\"), found none"},
	    {INPUT_Q, "\"inputs\": {\"q\": {\"type\": \"zeros\"}, ", 25,
	     "expected \"random\", \"scalar\", \"safetensors\" or \"custom\", found \"zeros\""},
	    {INPUT_Q, "\"inputs\": {\"q\": {\"type\": 1}, ", 25,
	     "expected \"random\", \"scalar\", \"safetensors\" or \"custom\", found 1"},
	    {INPUT_Q, "\"inputs\": {\"q\": {\"type\": \"scalar\", \"value\": 1}, ", 25,
	     "expected \"random\" or \"safetensors\", because the definition declares q as a tensor, found \"scalar\""},
	    {INPUT_SCALE, "\"scale\": {\"type\": \"safetensors\", \"path\": \"a\", \"tensor_key\": \"k\"}, ", 18,
	     "expected \"scalar\" or \"random\", because the definition declares scale as a Python scalar, found "
	     "\"safetensors\""},
	    {INPUT_SCALE, "\"scale\": {\"type\": \"scalar\"}, ", 9,
	     "expected a field \"value\" (of a scalar), found none"},
	    {INPUT_SCALE, "\"scale\": {\"type\": \"scalar\", \"value\": null}, ", 37, "expected a number, found null"},
	    {INPUT_SCALE, "\"scale\": {\"type\": \"scalar\", \"value\": true}, ", 37, "expected a number, found true"},
	    {INPUT_COUNT, "\"count\": {\"type\": \"scalar\", \"value\": 1.5}, ", 37,
	     "expected an integer that fits int8, found 1.5"},
	    {INPUT_COUNT, "\"count\": {\"type\": \"scalar\", \"value\": 128}, ", 37,
	     "expected an integer that fits int8, found 128"},
	    {INPUT_COUNT, "\"count\": {\"type\": \"scalar\", \"value\": -129}, ", 37,
	     "expected an integer that fits int8, found -129"},
	    {INPUT_FLAG, "\"flag\": {\"type\": \"scalar\", \"value\": 1}", 36,
	     "expected true or false, because the input is bool, found 1"},
	    {INPUT_INDPTR, "\"indptr\": {\"type\": \"safetensors\", \"tensor_key\": \"k\"}, ", 10,
	     "expected a field \"path\" (a string), found none"},
	    {INPUT_INDPTR, "\"indptr\": {\"type\": \"safetensors\", \"path\": \"a\"}, ", 10,
	     "expected a field \"tensor_key\" (a string), found none"},
	    {INPUT_INDPTR, "\"indptr\": {\"type\": \"safetensors\", \"path\": \"a\", \"tensor_key\": \"\"}, ", 61,
	     "expected a non-empty string, found \"\""},
	    {INPUT_INDPTR, "\"indptr\": {\"type\": \"safetensors\", \"path\": \"\", \"tensor_key\": \"k\"}, ", 42,
	     "expected a non-empty string, found \"\""},
	    {INPUT_INDPTR, "\"indptr\": {\"type\": \"safetensors\", \"path\": \"a\\u001b\", \"tensor_key\": \"k\"}, ",
	     42, "expected a string without control or invisible characters, found \"a\\x1b\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		refused(cases[i].part, cases[i].text, cases[i].offset, cases[i].sentence);
}

static void paths_stay_below_the_root(void **state)
{
	static const char *const paths[] = {"/etc/passwd", "..", "../a", "a/../../b", "a/..", "./", ".", "/"};
	char part[256], sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		snprintf(part, sizeof part,
		         "\"indptr\": {\"type\": \"safetensors\", \"path\": \"%s\", \"tensor_key\": \"k\"}, ",
		         paths[i]);
		snprintf(sentence, sizeof sentence,
		         "expected a relative path that stays inside the dataset's folder, found \"%s\"", paths[i]);
		refused(INPUT_INDPTR, part, 42, sentence);
	}
}

static void an_optional_input_may_be_left_out_or_null_or_given(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	add_line(&text, INPUT_Q, "\"inputs\": {\"state\": null, \"q\": {\"type\": \"random\"}, ");
	assert_int_equal(load(&text, &arena).lines[0].inputs[STATE].kind, SOURCE_ABSENT);
	buf_clear(&text);
	add_line(&text, INPUT_Q, "\"inputs\": {\"state\": {\"type\": \"random\"}, \"q\": {\"type\": \"random\"}, ");
	assert_int_equal(load(&text, &arena).lines[0].inputs[STATE].kind, SOURCE_RANDOM);
	buf_clear(&text);
	add_line(&text, INPUT_Q, "\"inputs\": {\"mode\": null, \"q\": {\"type\": \"random\"}, ");
	assert_null(load(&text, &arena).lines[0].error);
	arena_free(&arena);
	buf_free(&text);
	refused(INPUT_Q, "\"inputs\": {\"mode\": {\"type\": \"random\"}, \"q\": {\"type\": \"random\"}, ", 19,
	        "expected an input of the definition, found \"mode\"; remove it");
}

/* A workload line that consists only of the object that is the value of "workload" in other lines. Its inputs are of
 * every kind except safetensors. */
#define BARE(uuid, more)                                                                                               \
	"{\"uuid\": \"" uuid "\", \"axes\": {\"batch_size\": 4, \"len_indptr\": 5}, \"inputs\": {\"q\": {\"type\": "    \
	"\"random\"}, \"indptr\": {\"type\": \"custom\"}, \"scale\": {\"type\": \"custom\"}, \"count\": {\"type\": "     \
	"\"scalar\", \"value\": 1}, \"flag\": {\"type\": \"random\"}}" more "}\n"

/* Checks the message for a file that has only this line. */
static void refused_line(const struct definition *d, const char *line, const char *sentence)
{
	struct arena arena = {0};
	struct workload_file file = workloads_load("w.jsonl", d, line, strlen(line), &arena);

	assert_int_equal(file.count, 1);
	assert_non_null(file.lines[0].error);
	assert_string_equal(file.lines[0].error, sentence);
	arena_free(&arena);
}

static void a_workload_may_be_the_whole_line(void **state)
{
	static const char two[] = BARE("u", "") BARE("u", "");
	struct definition without = definition;
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	buf_text(&text, BARE("u1", "") BARE("u2", ", \"definition\": \"attend\", \"solution\": null"));
	struct workload_file file = load(&text, &arena);

	assert_int_equal(file.count, 2);
	assert_string_equal(file.lines[0].uuid, "u1");
	assert_true(file.lines[0].axis[BATCH] == 4 && file.lines[0].axis[HEADS] == 8);
	assert_true(file.lines[0].inputs[Q].kind == SOURCE_RANDOM && file.lines[0].inputs[INDPTR].kind == SOURCE_CUSTOM);
	assert_true(file.lines[0].inputs[SCALE].kind == SOURCE_CUSTOM && file.lines[0].inputs[COUNT].integer == 1);
	assert_false(file.lines[0].tolerance.given);
	file = workloads_load("w.jsonl", &definition, two, sizeof two - 1, &arena);
	assert_string_equal(file.lines[1].error, "w.jsonl:2:10: expected a unique uuid, found the uuid of line 1");
	file = traces_load("t.jsonl", &definition, text.data, text.length, &arena);
	assert_string_equal(file.lines[0].error, "t.jsonl:1:1: expected a field \"workload\" (an object), found none");
	arena_free(&arena);
	buf_free(&text);
	without.custom_inputs_entrypoint = NULL;
	refused_line(&without, BARE("u", ""),
		     "w.jsonl:1:114: expected \"random\", \"scalar\" or \"safetensors\", because the definition has no "
		     "custom_inputs_entrypoint, found \"custom\"");
	refused_line(&definition, BARE("u", ", \"definition\": \"other\""),
		     "w.jsonl:1:238: expected \"attend\", the file's name, found \"other\"");
	refused_line(&definition, "{\"uuid\": \"u\", \"inputs\": {}}\n",
		     "w.jsonl:1:1: expected a field \"axes\" (an object), found none");
	refused_line(&definition, "{\"uuid\": \"u\", \"axes\": {\"batch_size\": 1}, \"inputs\": {}}\n",
		     "w.jsonl:1:23: expected a value for the axis \"len_indptr\", found none");
	refused_line(&definition, "{\"name\": \"u\"}\n", "w.jsonl:1:1: expected a field \"workload\" (an object), found none");
}

/* Loads a line of the form BARE with this tolerance. */
static struct workload_tolerance tolerance_of(const char *tolerance, struct arena *arena)
{
	struct buf text = {0};

	buf_printf(&text, BARE("u", ", \"tolerance\": %s"), tolerance);
	struct workload_tolerance out = load(&text, arena).lines[0].tolerance;

	buf_free(&text);
	return out;
}

static void a_tolerance_has_defaults_and_two_spellings(void **state)
{
	static const struct {
		const char *text, *sentence;
	} wrong[] = {
	    {"[]", "w.jsonl:1:237: expected an object, found a list"},
	    {"{\"max_atl\": 1}", "w.jsonl:1:249: expected \"max_atol\", \"max_rtol\", \"required_matched_ratio\", "
				 "\"max_error_cap\" or \"allow_negative_inf\", found \"max_atl\""},
	    {"{\"max_atol\": -1}", "w.jsonl:1:250: expected a number of at least 0, found -1"},
	    {"{\"max_error_cap\": \"1\"}", "w.jsonl:1:255: expected a number of at least 0, found \"1\""},
	    {"{\"required_match_ratio\": 0}", "w.jsonl:1:262: expected a number above 0 and at most 1, found 0"},
	    {"{\"required_match_ratio\": 1, \"required_matched_ratio\": 1}",
	     "w.jsonl:1:237: expected either \"required_matched_ratio\" or \"required_match_ratio\", found both"},
	    {"{\"allow_negative_inf\": 1}", "w.jsonl:1:260: expected true or false, found 1"},
	};
	struct arena arena = {0};
	struct workload_tolerance t = tolerance_of("{\"max_rtol\": 0.05, \"required_match_ratio\": 0.98}", &arena);

	(void)state;
	assert_true(t.given && t.bounds.atol == 1e-2 && t.bounds.rtol == 0.05 && t.bounds.hit_ratio == 0.98);
	assert_true(t.error_cap < 0 && !t.allows_negative_infinity);
	t = tolerance_of("{\"required_matched_ratio\": 1, \"max_atol\": 0, \"max_error_cap\": 2, \"allow_negative_inf\": true}",
			 &arena);
	assert_true(t.bounds.atol == 0 && t.bounds.rtol == 1e-2 && t.bounds.hit_ratio == 1);
	assert_true(t.error_cap == 2 && t.allows_negative_infinity);
	t = tolerance_of("{\"max_atol\": null, \"max_error_cap\": null, \"allow_negative_inf\": null}", &arena);
	assert_true(t.bounds.atol == 1e-2 && t.bounds.hit_ratio == 0.99 && t.error_cap < 0 && !t.allows_negative_infinity);
	assert_false(tolerance_of("null", &arena).given);
	arena_free(&arena);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct buf line = {0};

		buf_printf(&line, BARE("u", ", \"tolerance\": %s"), wrong[i].text);
		refused_line(&definition, line.data, wrong[i].sentence);
		buf_free(&line);
	}
}

static void a_length_may_be_written_as_a_text(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	add_line(&text, AXIS_VALUES, "\"axes\": {\"batch_size\": \"4\", \"len_indptr\": 5}, ");
	struct workload_file file = workloads_load("w.jsonl", &definition, text.data, text.length, &arena);

	assert_int_equal(file.invalid, 0);
	assert_int_equal(file.lines[0].axis[0], 4);
	arena_free(&arena);
	buf_free(&text);
}

static void values_at_the_edge_are_accepted(void **state)
{
	struct arena arena = {0};
	struct buf text = {0};

	(void)state;
	add_line(&text, AXIS_VALUES, "\"axes\": {\"batch_size\": 0, \"len_indptr\": 1, \"heads\": 8}, ");
	const struct workload *w = load(&text, &arena).lines;

	assert_true(w->axis[BATCH] == 0 && w->axis[LEN] == 1);
	buf_clear(&text);
	add_line(&text, INPUT_COUNT, "\"count\": {\"type\": \"scalar\", \"value\": 127}, ");
	assert_int_equal(load(&text, &arena).lines[0].inputs[COUNT].integer, 127);
	buf_clear(&text);
	add_line(&text, INPUT_SCALE, "\"scale\": {\"type\": \"scalar\", \"value\": 1}, ");
	w = load(&text, &arena).lines;
	assert_true(w->inputs[SCALE].scalar_kind == SCALAR_FLOAT && w->inputs[SCALE].number == 1);
	buf_clear(&text);
	add_line(&text, INPUT_SCALE, "\"scale\": {\"type\": \"random\"}, ");
	assert_int_equal(load(&text, &arena).lines[0].inputs[SCALE].kind, SOURCE_RANDOM);
	arena_free(&arena);
	buf_free(&text);
}

static void too_much_is_refused_without_being_parsed(void **state)
{
	struct arena arena = {0};
	size_t length = (size_t)WORKLOAD_BYTES + 1;
	char *bytes = calloc(1, length);
	struct workload_file file = workloads_load("w.jsonl", &definition, bytes, length, &arena);

	(void)state;
	assert_int_equal(file.count, 1);
	assert_int_equal(file.invalid, 1);
	assert_string_equal(file.lines[0].error,
	                    "w.jsonl: the file has 268435457 bytes, more than the limit of 268435456");
	length = 2 * ((size_t)WORKLOAD_LINES + 5);
	for (size_t i = 0; i < length; i += 2)
		memcpy(bytes + i, "7\n", 2);
	file = workloads_load("w.jsonl", &definition, bytes, length, &arena);
	assert_int_equal(file.count, WORKLOAD_LINES + 1);
	assert_string_equal(file.lines[0].error, "w.jsonl:1:1: expected a workload object, found 7");
	assert_string_equal(file.lines[WORKLOAD_LINES].error,
	                    "w.jsonl:100001:1: expected at most 100000 workloads, found more; split the file");
	free(bytes);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_line_is_read_in_full),
	    cmocka_unit_test(lines_are_counted_with_the_blank_ones),
	    cmocka_unit_test(a_bad_line_leaves_the_others_alone),
	    cmocka_unit_test(each_uuid_stands_once),
	    cmocka_unit_test(missing_and_wrong_fields_are_refused),
	    cmocka_unit_test(paths_stay_below_the_root),
	    cmocka_unit_test(an_optional_input_may_be_left_out_or_null_or_given),
	    cmocka_unit_test(a_workload_may_be_the_whole_line),
	    cmocka_unit_test(a_tolerance_has_defaults_and_two_spellings),
	    cmocka_unit_test(a_length_may_be_written_as_a_text),
	    cmocka_unit_test(values_at_the_edge_are_accepted),
	    cmocka_unit_test(too_much_is_refused_without_being_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
