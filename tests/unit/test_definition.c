/* test_definition - definitions load completely, and each kind of mistake is rejected with a message that names the
 * line. test_definition_axes.c has the tests of axes, shapes and constraints. */
#include "dataset/definition_parse.h"
#include "tests/unit/definition_text.h"

/* Checks that `name` is the function that reftest calls in the reference. */
static void calls(const char *name, const char *source)
{
	struct arena arena = {0};
	struct err err = {""};
	char line[256];

	snprintf(line, sizeof line, "\"reference\": \"%s\"", source);
	const struct definition *d = load(REFERENCE, line, &arena, &err);

	assert_non_null(d);
	assert_string_equal(d->entry_point, name);
	arena_free(&arena);
}

static void a_definition_is_read_in_full(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(0, NULL, &arena, &err);

	(void)state;
	assert_string_equal(err.text, "");
	assert_non_null(d);
	assert_string_equal(d->name, "norm_h64");
	assert_string_equal(d->op_type, "norm");
	assert_string_equal(d->description, "A norm.");
	assert_int_equal(d->tag_count, 2);
	assert_string_equal(d->tags[1], "status:verified");
	assert_int_equal(d->axis_count, 2);
	assert_true(d->axes[0].var && d->axes[0].value == 0 && !d->axes[1].var && d->axes[1].value == 64);
	assert_string_equal(d->axes[1].name, "hidden");
	assert_string_equal(d->axis_descriptions[0], "");
	assert_string_equal(d->axis_descriptions[1], "h");
	assert_int_equal(d->input_count, 3);
	assert_true(d->inputs[0].rank == 2 && d->inputs[0].axis[0] == 0 && d->inputs[0].axis[1] == 1);
	assert_true(d->inputs[0].dtype == DTYPE_BFLOAT16 && !d->inputs[0].optional);
	assert_true(d->inputs[1].rank == RANK_SCALAR && d->inputs[1].optional);
	assert_string_equal(d->inputs[0].description, "");
	assert_string_equal(d->inputs[1].description, "An epsilon.");
	assert_true(d->inputs[2].rank == 0 && d->inputs[2].dtype == DTYPE_INT32);
	assert_int_equal(d->output_count, 1);
	assert_string_equal(d->outputs[0].name, "y");
	assert_int_equal(d->constraint_count, 2);
	assert_string_equal(d->constraints[1], "n.item() == batch");
	assert_string_equal(d->reference, "import torch\n\ndef run(x, eps, n):\n    return x\n");
	assert_int_equal(d->reference_length, strlen(d->reference));
	assert_int_equal(d->reference_line, 10);
	assert_true(d->tolerance.atol < 0 && d->tolerance.rtol < 0 && d->tolerance.hit_ratio < 0);
	assert_true(d->output_tolerance[0].atol < 0);
	assert_int_equal(d->note_count, 0);
	assert_int_equal(definition_axis(d, "hidden"), 1);
	assert_int_equal(definition_axis(d, "x"), -1);
	assert_int_equal(definition_input(d, "n"), 2);
	assert_int_equal(definition_input(d, "y"), -1);
	arena_free(&arena);
}

static void what_may_be_left_out_may_be_null_too(void **state)
{
	struct arena arena = {0};

	(void)state;
	accepted(DESCRIPTION, "");
	accepted(DESCRIPTION, "\"description\": null,");
	accepted(TAGS, "");
	accepted(TAGS, "\"tags\": null,");
	accepted(TAGS, "\"tags\": [],");
	accepted(CONSTRAINTS, "\"constraints\": null,");
	accepted(CONSTRAINTS, "\"constraints\": [],");
	const struct definition *d = load(DESCRIPTION, "", &arena, NULL);

	assert_string_equal(d->description, "");
	arena_free(&arena);
}

static void every_dtype_is_known(void **state)
{
	char line[256];

	(void)state;
	for (int i = 0; i < DTYPE_COUNT; i++) {
		snprintf(line, sizeof line, "\"outputs\": {\"y\": {\"shape\": [\"batch\"], \"dtype\": \"%s\"}},",
		         dtype_name((enum dtype)i));
		accepted(OUTPUTS, line);
	}
}

static void json_errors_have_their_place(void **state)
{
	(void)state;
	rejected(NAME, "\"name\": norm,", "d.json:2:9: expected a value, found 'norm'");
	rejected(NAME, "\"name\": \"a\", \"name\": \"norm_h64\",",
	        "d.json:2:14: expected each key once, found \"name\" a second time");
	rejected(AXES, "\"axes\": {\"a\": {\"type\": \"var\"}, \"a\": {\"type\": \"var\"}},",
	        "d.json:6:32: expected each key once, found \"a\" a second time");
}

static void missing_fields_are_named(void **state)
{
	static const struct {
		int line;
		const char *sentence;
	} cases[] = {
	    {NAME, "d.json:1:1: expected a field \"name\" (a string), found none"},
	    {AXES, "d.json:1:1: expected a field \"axes\" (an object), found none"},
	    {INPUTS, "d.json:1:1: expected a field \"inputs\" (an object), found none"},
	    {OUTPUTS, "d.json:1:1: expected a field \"outputs\" (an object), found none"},
	    {REFERENCE, "d.json:1:1: expected a field \"reference\" (a string), found none"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		rejected(cases[i].line, cases[i].line == REFERENCE ? "\"x\": 0" : "", cases[i].sentence);
	rejected(AXES, "\"axes\": {\"hidden\": {\"type\": \"const\"}},",
	        "d.json:6:20: expected a field \"value\" (an integer, because the axis is const), found none");
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"dtype\": \"int8\"}},",
	        "d.json:8:18: expected a field \"shape\" (a list of axes, or null for a Python scalar), found none");
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": null}},",
	        "d.json:8:18: expected a field \"dtype\" (\"bfloat16\", \"int32\", …), found none");
	rejected(OUTPUTS, "\"outputs\": {},", "d.json:8:12: expected at least one output, found none");
}

static void wrong_types_are_refused(void **state)
{
	static const struct {
		int line;
		const char *text, *sentence;
	} cases[] = {
	    {NAME, "\"name\": 7,", "d.json:2:9: expected a string, found 7"},
	    {NAME, "\"name\": \"\",", "d.json:2:9: expected a name, found an empty string"},
	    {DESCRIPTION, "\"description\": [],", "d.json:4:16: expected a string, found a list"},
	    {TAGS, "\"tags\": \"a\",", "d.json:5:9: expected a list of strings, found \"a\""},
	    {TAGS, "\"tags\": [\"a\", 1],", "d.json:5:15: expected a non-empty string, found 1"},
	    {TAGS, "\"tags\": [\"a\", \"\"],", "d.json:5:15: expected a non-empty string, found \"\""},
	    {AXES, "\"axes\": [],", "d.json:6:9: expected an object, found a list"},
	    {AXES, "\"axes\": {\"batch\": 4},", "d.json:6:19: expected an object with a \"type\", found 4"},
	    {AXES, "\"axes\": {\"batch\": {\"type\": \"dynamic\"}},",
	     "d.json:6:28: expected \"const\", \"var\" or \"expr\", found \"dynamic\""},
	    {AXES, "\"axes\": {\"batch\": {\"type\": null}},",
	     "d.json:6:28: expected \"const\", \"var\" or \"expr\", found null"},
	    {AXES, "\"axes\": {\"batch\": {\"type\": \"var\", \"description\": 1}},",
	     "d.json:6:50: expected a string, found 1"},
	    {INPUTS, "\"inputs\": null,", "d.json:7:11: expected an object, found null"},
	    {INPUTS, "\"inputs\": {\"x\": \"bfloat16\"},",
	     "d.json:7:17: expected an object with \"shape\" and \"dtype\", found \"bfloat16\""},
	    {INPUTS, "\"inputs\": {\"x\": {\"shape\": \"batch\", \"dtype\": \"int8\"}},",
	     "d.json:7:27: expected a list of axes, or null for a Python scalar, found \"batch\""},
	    {INPUTS, "\"inputs\": {\"x\": {\"shape\": [\"batch\", 64], \"dtype\": \"int8\"}},",
	     "d.json:7:37: expected the name of an axis (write a size as a string: \"1\"), found 64"},
	    {INPUTS, "\"inputs\": {\"x\": {\"shape\": [\"batch\", null], \"dtype\": \"int8\"}},",
	     "d.json:7:37: expected the name of an axis, found null"},
	    {INPUTS, "\"inputs\": {\"x\": {\"shape\": [\"batch\"], \"dtype\": 8}},",
	     "d.json:7:47: expected the name of a dtype, found 8"},
	    {INPUTS, "\"inputs\": {\"x\": {\"shape\": [\"batch\"], \"dtype\": \"int8\", \"optional\": 1}},",
	     "d.json:7:67: expected true or false, found 1"},
	    {CONSTRAINTS, "\"constraints\": \"batch > 1\",",
	     "d.json:9:16: expected a list of strings, found \"batch > 1\""},
	    {REFERENCE, "\"reference\": [\"def run(): pass\"]", "d.json:10:14: expected a string, found a list"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		rejected(cases[i].line, cases[i].text, cases[i].sentence);
	struct arena arena = {0};
	struct err err;

	assert_null(definition_parse("d.json", NULL, NULL, "[1]", 3, &arena, &err));
	assert_string_equal(err.text, "d.json:1:1: expected a definition object, found a list");
	arena_free(&arena);
}

static void an_unknown_dtype_is_refused_with_a_proposal(void **state)
{
	(void)state;
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"batch\"], \"dtype\": \"float8_e4m3f\"}},",
	        "d.json:8:48: expected a dtype, found \"float8_e4m3f\"; did you mean \"float8_e4m3fn\"?");
	rejected(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"batch\"], \"dtype\": \"string\"}},",
	        "d.json:8:48: expected a dtype (float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, "
	        "float8_e8m0fnu, "
	        "float4_e2m1, int64, int32, int16, int8, uint32, uint8, bool), found \"string\"");
}

static void an_earlier_name_of_a_dtype_is_noted(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d =
	    load(OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"batch\"], \"dtype\": \"float8_e4m3\"}},", &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_int_equal(d->outputs[0].dtype, DTYPE_FLOAT8_E4M3FN);
	assert_int_equal(d->note_count, 1);
	assert_string_equal(d->notes[0], "d.json:8:48: this dtype is read as float8_e4m3fn, which earlier versions of "
					 "flashinfer-bench call float8_e4m3");
	arena_free(&arena);
}

static void without_a_known_dtype_no_case_can_run(void **state)
{
	static const char sentence[] = "no case can run, because the dtype is \"unknown\"; replace \"unknown\" by a dtype";
	static const struct {
		int line;
		const char *text, *place;
	} unknown[] = {
	    {OUTPUTS, "\"outputs\": {\"y\": {\"shape\": [\"batch\"], \"dtype\": \"unknown\"}},", "d.json:8:48: "},
	    {INPUTS, "\"inputs\": {\"x\": {\"shape\": [], \"dtype\": \"unknown\", \"optional\": false}},", "d.json:7:40: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		struct arena arena = {0};
		const struct definition *d = load(unknown[i].line, unknown[i].text, &arena, NULL);

		assert_non_null(d);
		assert_non_null(d->unverifiable);
		assert_string_equal(d->unverifiable, arena_printf(&arena, "%s%s", unknown[i].place, sentence));
		assert_int_equal(d->left_out_count, 0);
		arena_free(&arena);
	}
}

static void inputs_that_no_case_passes_are_left_out(void **state)
{
	struct arena arena = {0};
	const struct definition *d = load(INPUTS,
	    "\"inputs\": {\"a\": {\"shape\": [\"batch\"], \"dtype\": \"unknown\", \"optional\": true, \"param\": \"b\"}, "
	    "\"x\": {\"shape\": [\"batch\"], \"dtype\": \"int8\", \"param\": \"y\"}, "
	    "\"c\": {\"shape\": null, \"dtype\": \"string\"}, \"e\": {\"shape\": null, \"dtype\": \"dtype\"}, "
	    "\"f\": {\"shape\": null, \"dtype\": \"str\"}},", &arena, NULL);
	const char *const names[] = {"a", "b", "c", "e", "f"};

	(void)state;
	assert_non_null(d);
	assert_null(d->unverifiable);
	assert_int_equal(d->input_count, 1);
	assert_string_equal(d->inputs[0].name, "x");
	assert_string_equal(d->inputs[0].param, "y");
	assert_int_equal(d->left_out_count, 5);
	for (int i = 0; i < 5; i++)
		assert_string_equal(d->left_out[i], names[i]);
	assert_string_equal(d->notes[0], "d.json:7:17: this input is omitted in every case, because its dtype is "
	    "\"unknown\"");
	assert_string_equal(d->notes[1], "d.json:7:154: this input is omitted in every case, because it is neither a "
	    "tensor nor a number");
	assert_true(definition_fits_arguments(d));
	arena_free(&arena);
	rejected(INPUTS, "\"inputs\": {\"x\": {\"shape\": [], \"dtype\": \"int8\", \"param\": \"a b\"}},",
	        "d.json:7:57: expected the name of an argument that has only letters, digits and '_' and does not begin with "
	        "a digit, "
	        "found \"a b\"");
	accepted(INPUTS, "\"inputs\": {\"1\": {\"shape\": null, \"dtype\": \"string\"}, \"x\": {\"shape\": [], \"dtype\": \"int8\"}},");
	rejected(INPUTS, "\"inputs\": {\"x\": {\"dtype\": \"string\"}},",
	        "d.json:7:17: expected a field \"shape\" (a list of axes, or null for a Python scalar), found none");
}

static void sources_that_are_not_run_are_kept(void **state)
{
	struct arena arena = {0};
	const struct definition *d = load(DESCRIPTION, "\"init\": \"def _a_init():\\n  pass\", \"check\": \"x\",", &arena, NULL);

	(void)state;
	assert_string_equal(d->init, "def _a_init():\n  pass");
	assert_string_equal(d->check, "x");
	assert_int_equal(d->note_count, 0);
	d = load(DESCRIPTION, "\"init\": [], \"check\": null,", &arena, NULL);
	assert_string_equal(d->init, "");
	assert_string_equal(d->check, "");
	assert_int_equal(d->note_count, 1);
	assert_string_equal(d->notes[0], "d.json:4:9: expected Python source in a string; the field is ignored");
	arena_free(&arena);
}

static void a_tag_names_the_traced_function(void **state)
{
	static const char *const tags[][2] = {
	    {"\"tags\": [\"a\", \"fi_api:flashinfer.norm.rms_norm2\", \"fi_api:b\"],", "flashinfer.norm.rms_norm2"},
	    {"\"tags\": [\"fi_api:a\"],", "a"},
	};
	static const char *const wrong[] = {"", "a.", ".a", "a..b", "a b", "1.a", "a.1", "a-b", "\u00e9"};
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
		struct arena arena = {0};

		const struct definition *d = load(TAGS, tags[i][0], &arena, NULL);

		assert_string_equal(d->fi_api, tags[i][1]);
		assert_string_equal(d->init, "");
		arena_free(&arena);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct arena arena = {0};

		snprintf(line, sizeof line, "\"tags\": [\"fi_api:%s\"],", wrong[i]);
		const struct definition *d = load(TAGS, line, &arena, NULL);

		assert_null(d->fi_api);
		assert_string_equal(d->notes[0], "d.json:5:10: expected a dotted name after \"fi_api:\"; the tag is ignored");
		arena_free(&arena);
	}
}

/* Loads the definition after replacing its line "op_type" by `line`. Returns the op_type, which is in `arena`. */
static const char *op_type_of(const char *line, const char *folder, struct arena *arena)
{
	struct buf text = {0};
	struct err err = {""};

	for (int i = 0; i < LINES; i++)
		buf_text(&text, i == OP_TYPE ? line : lines[i]);
	const struct definition *d = definition_parse("d.json", folder, NULL, text.data, text.length, arena, &err);

	buf_free(&text);
	assert_string_equal(err.text, "");
	assert_non_null(d);
	assert_int_equal(d->note_count, 0);
	return d->op_type;
}

static void the_folder_is_the_op_type_of_a_definition_without_one(void **state)
{
	static const char *const absent[] = {"", "\"op_type\": null,"};
	struct arena arena = {0};

	(void)state;
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
		assert_string_equal(op_type_of(absent[i], "gemm", &arena), "gemm");
		assert_string_equal(op_type_of(absent[i], NULL, &arena), "");
	}
	assert_string_equal(op_type_of("\"op_type\": \"norm\",", NULL, &arena), "norm");
	arena_free(&arena);
	rejected(OP_TYPE, "\"op_type\": \"\",", "d.json:3:12: expected a name, found an empty string");
	rejected(OP_TYPE, "\"op_type\": 1,", "d.json:3:12: expected a string, found 1");
}

static void the_function_that_makes_inputs_is_named(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(DESCRIPTION, "\"custom_inputs_entrypoint\": \"make\", \"hf_id\": \"a/b\",", &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_string_equal(d->custom_inputs_entrypoint, "make");
	assert_string_equal(d->hf_id, "a/b");
	assert_int_equal(d->input_code.kind, INPUT_CODE_ENTRYPOINT);
	assert_null(d->input_code.function); /* the reference has no function "make" */
	assert_string_equal(d->input_code.place, "d.json:4:29");
	assert_int_equal(d->note_count, 1);
	assert_non_null(strstr(d->notes[0], "d.json:4:29: custom_inputs_entrypoint names the function make"));
	d = load(DESCRIPTION, "\"custom_inputs_entrypoint\": null, \"hf_id\": null,", &arena, &err);
	assert_non_null(d);
	assert_true(d->custom_inputs_entrypoint == NULL && d->hf_id == NULL);
	arena_free(&arena);
	rejected(DESCRIPTION, "\"custom_inputs_entrypoint\": [],", "d.json:4:29: expected a string, found a list");
	rejected(DESCRIPTION, "\"custom_inputs_entrypoint\": \"a.b\",",
		"d.json:4:29: expected the name of a function that has only letters, digits and '_' and does not begin with "
		"a digit, "
		"found \"a.b\"");
	rejected(DESCRIPTION, "\"hf_id\": 1,", "d.json:4:10: expected a string, found 1");
}

static void names_are_those_of_the_file_and_of_python(void **state)
{
	(void)state;
	rejected(NAME, "\"name\": \"norm_h65\",", "d.json:2:9: expected \"norm_h64\", the file's name, "
	                                         "found \"norm_h65\"");
	rejected(OP_TYPE, "\"op_type\": \"gemm\",",
	        "d.json:3:12: expected \"norm\", the file's folder, found \"gemm\"");
	rejected(NAME, "\"name\": \"a/b\",",
	        "d.json:2:9: expected a name without '/', found \"a/b\"");
	rejected(NAME, "\"name\": \"a\\u001b[1m\",",
	        "d.json:2:9: expected a name without control or invisible characters, found \"a\\x1b[1m\"");
	rejected(AXES, "\"axes\": {\"\": {\"type\": \"var\"}},", "d.json:6:14: expected an axis name, found an empty string");
	rejected(AXES, "\"axes\": {\"a\\u202eb\": {\"type\": \"var\"}},",
	        "d.json:6:22: expected an axis name without control or invisible characters, found \"a\\u202eb\"");
	/* the name of an axis need not be a Python identifier, because no Python code uses it */
	accepted(AXES, "\"axes\": {\"batch\": {\"type\": \"var\"}, \"hidden\": {\"type\": \"const\", \"value\": 64}, "
	            "\"2h\": {\"type\": \"var\"}, \"kv-heads / 2\": {\"type\": \"var\"}, \"\xC3\xA9\": {\"type\": \"var\"}},");
	/* an input whose name cannot be the name of a Python argument is passed by position */
	accepted(INPUTS, "\"inputs\": {\"x-1\": {\"shape\": [], \"dtype\": \"int8\"}, \"2x\": {\"shape\": [], \"dtype\": \"int8\"}, "
	              "\"lambda\": {\"shape\": [], \"dtype\": \"int8\"}},");
	rejected(INPUTS, "\"inputs\": {\"\": {\"shape\": [], \"dtype\": \"int8\"}},",
	        "d.json:7:16: expected an input's name, found an empty string");
	accepted(INPUTS, "\"inputs\": {\"n\": {\"shape\": [], \"dtype\": \"int8\"}, \"\xCE\xB1\": {\"shape\": [], \"dtype\": \"int8\"}},");
	rejected(OUTPUTS, "\"outputs\": {\"\": {\"shape\": [], \"dtype\": \"int8\"}},",
	        "d.json:8:17: expected an output's name, found an empty string");
	accepted(OUTPUTS, "\"outputs\": {\"out put (1)\": {\"shape\": [], \"dtype\": \"int8\"}},");
	/* an output with the name of an input is updated in place */
	accepted(OUTPUTS, "\"outputs\": {\"x\": {\"shape\": [], \"dtype\": \"int8\"}},");
	accepted(INPUTS, "\"inputs\": {\"batch\": {\"shape\": [], \"dtype\": \"int8\"}, \"n\": {\"shape\": [], \"dtype\": "
	              "\"int8\"}},");
	accepted(INPUTS, "\"inputs\": {\"n\": {\"shape\": [], \"dtype\": \"int8\"}},");
}

static void names_have_a_length(void **state)
{
	char name[202], line[512], sentence[512];

	(void)state;
	memset(name, 'n', 201);
	name[201] = '\0';
	snprintf(line, sizeof line, "\"axes\": {\"%s\": {\"type\": \"var\"}},", name);
	rejected(AXES, line, "d.json:6:215: expected an axis name of at most 200 bytes, found 201");
	snprintf(line, sizeof line, "\"outputs\": {\"%s\": {\"shape\": [], \"dtype\": \"int8\"}},", name);
	snprintf(sentence, sizeof sentence,
	         "d.json:8:218: expected an output's name of at most 200 bytes, found 201");
	rejected(OUTPUTS, line, sentence);
}

static void an_output_with_the_name_of_an_input_is_noted(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d =
	    load(OUTPUTS, "\"outputs\": {\"x\": {\"shape\": [], \"dtype\": \"int8\"}},", &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_int_equal(d->note_count, 1);
	assert_string_equal(d->notes[0], "d.json:8:18: an input and an output have the same name, \"x\", which newer "
	                                 "versions of flashinfer-bench refuse");
	arena_free(&arena);
}

static void a_reference_defines_run(void **state)
{
	static const char *const sources[] = {
	    "def run(x):\\n  pass",
	    "import torch\\n\\n@torch.no_grad()\\ndef run(x):\\n  pass",
	    "async def run(x):\\n  pass",
	    "class run:\\n  pass",
	    "run = torch.add",
	    "run: object = f",
	    "from m import run",
	    "from m import f as run",
	    "from m import (f,\\n  run)",
	    "from m import *",
	    "import run",
	    "a, run = f, g",
	    "import m; run = m.f",
	    "def\\trun (x):pass",
	    "def f():\\r\\n  pass\\r\\ndef run():\\r\\n  pass",
	    "def f():\\r  pass\\rdef run():\\r  pass",
	    "if cuda:\\n  def run(x): pass",
	    "try:\\n  from m import run\\nexcept ImportError:\\n  run = None",
	    "def f():\\n  global run\\n  run = f",
	    "exec(source)",
	    "for run in functions: pass",
	    "with f() as run: pass",
	    "(run := f)",
	    "def _a_reference(x):\\n  pass\\ndef run(x):\\n  return _a_reference(x)",
	};
	static const char *const wrong[][2] = {
	    {"def runs(x):\\n  pass",
	     "expected Python source with a function run() or …_reference() at top level, found only runs; rename it "
	     "to run"},
	    {"async def _a_reference(x):\\n  pass",
	     "expected Python source with a function run() or …_reference() at top level, found only _a_reference, "
	     "which is async"},
	    {"class A:\\n  def run(x):\\n    pass",
	     "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"# def run(x):\\n",
	     "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"# run = f", "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"print(1)", "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"'''\\ndef run(x): pass\\n'''",
	     "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"class A:\\n  run = 1",
	     "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"def f():\\n  run = 1",
	     "expected Python source with a function run() or …_reference() at top level, found only f; rename it to "
	     "run"},
	    {"[run for run in x]",
	     "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"def run(x)\\n  pass",
	     "the reference is not valid Python at line 1, column 11: expected ':', found the end of the line"},
	    {"import torch\\ndef run(x):\\n  return (x +\\n", "the reference is not valid Python at line 3, column 10: "
								   "'(' is never closed"},
	    {"rune = 3", "expected Python source with a function run() or …_reference() at top level, found none"},
	    {"x = 1\\ny = \'\'\'\\ndef run(x):\\n",
	     "the reference is not valid Python at line 2, column 5: the string is not terminated"},
	    {"", "expected Python source that defines run(), found an empty string"},
	    {" \\n\\t", "expected Python source that defines run(), found an empty string"},
	};
	char line[256], sentence[256];

	(void)state;
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		snprintf(line, sizeof line, "\"reference\": \"%s\"", sources[i]);
		accepted(REFERENCE, line);
	}
	calls("run", "def run(x):\\n  pass");
	calls("_norm_reference", "def f():\\n  pass\\ndef _norm_reference(x):\\n  pass");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(line, sizeof line, "\"reference\": \"%s\"", wrong[i][0]);
		snprintf(sentence, sizeof sentence, "d.json:10:14: %s", wrong[i][1]);
		rejected(REFERENCE, line, sentence);
	}
}

static void files_that_references_read_are_below_the_root(void **state)
{
	static const char *const wrong[] = {"/etc/passwd", "..", "../a", "a/../b", "a/..", ".hidden", "a/.git/config",
					    ".", "./a",	 "a/",   "a//b",   "a\\nb",	 "a\\u202eb"};
	struct arena arena = {0};
	struct err err = {""};
	static const char sentence[] = "d.json:5:11: expected a path relative to the dataset's folder";
	char line[4096];
	const struct definition *d = load(TAGS, "\"reads\": [\"b/a.txt\", \"a b/it's..\"],", &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_int_equal(d->note_count, 0);
	assert_int_equal(d->read_count, 2);
	assert_string_equal(d->reads[0], "a b/it's.."); /* sorted, because the order in the file has no meaning */
	assert_string_equal(d->reads[1], "b/a.txt");
	d = load(TAGS, "\"reads\": null,", &arena, &err);
	assert_int_equal(d->read_count, 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		snprintf(line, sizeof line, "\"reads\": [\"%s\"],", wrong[i]);
		assert_null(load(TAGS, line, &arena, &err));
		assert_memory_equal(err.text, sentence, sizeof sentence - 1);
	}
	snprintf(line, sizeof line, "\"reads\": [\"%01025d\"],", 0);
	assert_null(load(TAGS, line, &arena, &err));
	assert_memory_equal(err.text, sentence, sizeof sentence - 1);
	arena_free(&arena);
	rejected(TAGS, "\"reads\": [\"a\", \"a\"],", "d.json:5:16: expected each file once, found \"a\" again");
	rejected(TAGS, "\"reads\": \"a\",", "d.json:5:10: expected a list of strings, found \"a\"");
	rejected(TAGS, "\"reads\": [1],", "d.json:5:11: expected a non-empty string, found 1");
	rejected(TAGS, "\"reads\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17],",
		"d.json:5:10: expected at most 16 strings, found 17");
}

static void tolerances_are_read_and_bounded(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d =
	    load(TAGS, "\"tolerance\": {\"atol\": 0.5, \"rtol\": 0, \"hit_ratio\": 0.9},", &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_true(d->tolerance.atol == 0.5 && d->tolerance.rtol == 0 && d->tolerance.hit_ratio == 0.9);
	d = load(OUTPUTS,
	         "\"outputs\": {\"z\": {\"shape\": [], \"dtype\": \"int8\"}, \"y\": {\"shape\": [], \"dtype\": "
	         "\"int8\", \"tolerance\": {\"rtol\": 1e-2}}},",
	         &arena, &err);
	assert_non_null(d);
	assert_true(d->output_tolerance[0].rtol < 0 && d->output_tolerance[1].rtol == 1e-2 &&
	            d->output_tolerance[1].atol < 0);
	arena_free(&arena);
	rejected(TAGS, "\"tolerance\": 0.1,",
	        "d.json:5:14: expected an object with \"atol\", \"rtol\", \"hit_ratio\", found 0.1");
	rejected(TAGS, "\"tolerance\": {\"atol\": -1},", "d.json:5:23: expected a number of at least 0, found -1");
	rejected(TAGS, "\"tolerance\": {\"atol\": \"1\"},", "d.json:5:23: expected a number of at least 0, found \"1\"");
	rejected(TAGS, "\"tolerance\": {\"hit_ratio\": 0},",
	        "d.json:5:28: expected a number above 0 and at most 1, found 0");
	rejected(TAGS, "\"tolerance\": {\"hit_ratio\": 1.5},",
	        "d.json:5:28: expected a number above 0 and at most 1, found 1.5");
	rejected(TAGS, "\"tolerance\": {\"a_tol\": 1},",
	        "d.json:5:24: expected \"atol\", \"rtol\" or \"hit_ratio\", found \"a_tol\"");
}

static void unknown_fields_are_noted(void **state)
{
	struct arena arena = {0};
	struct err err = {""};
	const struct definition *d = load(TAGS, "\"chart\": {}, \"constraint\": [],", &arena, &err);

	(void)state;
	assert_non_null(d);
	assert_int_equal(d->note_count, 2);
	assert_string_equal(d->notes[0], "d.json:5:10: the field \"chart\" is unknown to the schema and ignored");
	assert_string_equal(d->notes[1],
	                    "d.json:5:28: the field \"constraint\" is unknown to the schema and ignored; did you mean "
	                    "\"constraints\"?");
	d = load(INPUTS, "\"inputs\": {\"n\": {\"shape\": [], \"dtype\": \"int8\", \"init\": 3, \"tolerance\": {}}},",
	         &arena, &err);
	assert_non_null(d);
	assert_int_equal(d->note_count, 2);
	assert_string_equal(d->notes[0], "d.json:7:56: the field \"init\" is unknown to the schema and ignored");
	d = load(AXES,
	         "\"axes\": {\"batch\": {\"type\": \"var\", \"value\": 3, \"description\": \"\"}, \"hidden\": "
	         "{\"type\": \"const\", \"value\": 64, \"min\": 1}},",
	         &arena, &err);
	assert_non_null(d);
	assert_int_equal(d->note_count, 2);
	assert_string_equal(d->notes[0], "d.json:6:44: the field \"value\" is unknown to the schema and ignored");
	assert_string_equal(d->notes[1], "d.json:6:115: the field \"min\" is unknown to the schema and ignored");
	arena_free(&arena);
}

static void ten_thousand_unknown_fields_leave_twenty_notes(void **state)
{
	struct arena arena = {0};
	struct buf line = {0};
	struct err err = {""};

	(void)state;
	for (int i = 0; i < 10000; i++)
		buf_printf(&line, "\"field %d\": %d,", i, i);
	const struct definition *d = load(TAGS, line.data, &arena, &err);

	assert_non_null(d);
	assert_int_equal(d->note_count, 20);
	assert_non_null(strstr(d->notes[19], "this field is unknown to the schema and ignored; reftest does not list further "
					     "unknown fields"));
	arena_free(&arena);
	buf_free(&line);
}

static void a_file_beyond_the_limit_is_refused(void **state)
{
	struct arena arena = {0};
	struct err err;
	char *bytes = malloc(DEFINITION_BYTES + 1);

	(void)state;
	memset(bytes, ' ', DEFINITION_BYTES + 1);
	assert_null(definition_parse("d.json", NULL, NULL, bytes, DEFINITION_BYTES + 1, &arena, &err));
	assert_string_equal(err.text, "d.json: the file has 16777217 bytes, more than the limit of 16777216");
	assert_null(definition_parse("d.json", NULL, NULL, bytes, DEFINITION_BYTES, &arena, &err));
	assert_string_equal(err.text, "d.json:1:1: expected a value, found only spaces");
	free(bytes);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_definition_is_read_in_full),
	    cmocka_unit_test(what_may_be_left_out_may_be_null_too),
	    cmocka_unit_test(every_dtype_is_known),
	    cmocka_unit_test(json_errors_have_their_place),
	    cmocka_unit_test(missing_fields_are_named),
	    cmocka_unit_test(wrong_types_are_refused),
	    cmocka_unit_test(an_unknown_dtype_is_refused_with_a_proposal),
	    cmocka_unit_test(an_earlier_name_of_a_dtype_is_noted),
	    cmocka_unit_test(without_a_known_dtype_no_case_can_run),
	    cmocka_unit_test(inputs_that_no_case_passes_are_left_out),
	    cmocka_unit_test(sources_that_are_not_run_are_kept),
	    cmocka_unit_test(a_tag_names_the_traced_function),
	    cmocka_unit_test(the_folder_is_the_op_type_of_a_definition_without_one),
	    cmocka_unit_test(the_function_that_makes_inputs_is_named),
	    cmocka_unit_test(names_are_those_of_the_file_and_of_python),
	    cmocka_unit_test(names_have_a_length),
	    cmocka_unit_test(an_output_with_the_name_of_an_input_is_noted),
	    cmocka_unit_test(a_reference_defines_run),
	    cmocka_unit_test(files_that_references_read_are_below_the_root),
	    cmocka_unit_test(tolerances_are_read_and_bounded),
	    cmocka_unit_test(unknown_fields_are_noted),
	    cmocka_unit_test(ten_thousand_unknown_fields_leave_twenty_notes),
	    cmocka_unit_test(a_file_beyond_the_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
