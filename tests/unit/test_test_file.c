/* test_test_file - the generated pytest file: the same definitions give the same bytes, each definition has a class,
 * and a definition that cannot be read keeps its old class. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testgen/support_files.h"
#include "testgen/test_file.h"

static const struct axis axes[] = {
    {"batch_size", true, 0}, {"hidden_size", false, 64}, {"n", false, 3}, {"N", false, 4}, {"name", false, 5}};
static const struct tensor_spec tensor = {.name = "x", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {0, 1}};
static const int64_t values[] = {7, 64, 3, 4, 5};
static const struct test_size sizes[] = {{"small", values, JOB_RUNS_ALL}, {"large", values, JOB_RUNS_BOTH}};
static const struct test_role roles[] = {{"hidden", "x"}, {"eps", "e\"ps"}}, output_roles[] = {{"output", "y"}};
static const struct test_constant constants[] = {{"eps", "model:x\n", 1e-5}, {"theta", "unattested", NAN}};

static struct definition definition_named(const char *name, const char *reference)
{
	return (struct definition){.name = name,
				   .op_type = "rmsnorm",
				   .axes = axes,
				   .axis_count = 5,
				   .inputs = &tensor,
				   .input_count = 1,
				   .outputs = &tensor,
				   .output_count = 1,
				   .reference = reference,
				   .reference_length = strlen(reference)};
}

static struct test_class class_of(const struct definition *d)
{
	return (struct test_class){.name = d->name,
				   .definition = d,
				   .family = "rmsnorm",
				   .roles = roles,
				   .role_count = 2,
				   .output_roles = output_roles,
				   .output_role_count = 1,
				   .sizes = sizes,
				   .size_count = 2,
				   .constants = constants,
				   .constant_count = 2};
}

static void a_class_has_what_the_definition_says(void **state)
{
	struct definition d = definition_named("a_b", "def run(x):\n    return \"\"\"x\"\"\"\n");
	struct test_class c = class_of(&d);
	struct buf out = {0}, again = {0};

	(void)state;
	test_file_write("definitions/rmsnorm", &c, 1, &out);
	test_file_write("definitions/rmsnorm", &c, 1, &again);
	assert_string_equal(out.data, again.data);
	assert_non_null(strstr(
	    out.data,
	    "\nclass TestAB(conftest.DefinitionTests):\n    OP_TYPE = \"rmsnorm\"\n    NAME = \"a_b\"\n    FAMILY = \"rmsnorm\"\n"
	    "    ROLES = conftest.constants(\n        hidden=\"x\",\n        eps=\"e\\x22ps\",\n    )\n"
	    "    OUTPUT_ROLES = conftest.constants(\n        output=\"y\",\n    )\n    HIDDEN_SIZE = 64\n    N = 3\n"));
	assert_non_null(strstr(out.data, "        n=N,\n        N=4,\n        name=5,\n"));
	assert_non_null(strstr(out.data, "    EPS = 1e-05  # model:x?\n    THETA = None  # unattested\n"));
	assert_null(strstr(out.data, "    PROBE ="));
	assert_non_null(strstr(out.data, "        conftest.size(\"small\", batch_size=7),\n"));
	assert_null(strstr(out.data, "    EDGES ="));
	assert_non_null(strstr(out.data, "    return \\\"\\\"\\\"x\\\"\\\"\\\"\n"));
	buf_free(&out);
	buf_free(&again);
}

/* The modes are on one line if it has at most 88 columns. If the line would be longer, each mode has a line of its
 * own. */
static void a_class_has_the_modes_of_its_operation(void **state)
{
	static const char *const modes[] = {"causal", "a_mode_of_a_rather_long_name", "another_mode_of_a_long_name", "one_more"};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	c.modes = modes;
	c.mode_count = 1;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    MODES = (\"causal\",)\n"));
	c.mode_count = 2;
	buf_clear(&out);
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    MODES = (\"causal\", \"a_mode_of_a_rather_long_name\")\n"));
	c.mode_count = 4;
	buf_clear(&out);
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    MODES = (\n        \"causal\",\n        \"a_mode_of_a_rather_long_name\",\n"
					 "        \"another_mode_of_a_long_name\",\n        \"one_more\",\n    )\n"));
	buf_free(&out);
}

static void a_class_has_the_edge_cases_and_the_probe_of_its_family(void **state)
{
	static const struct test_size edges[] = {{"no_rows", values, 0}, {"one_row", values, 0}};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	c.edges = edges;
	c.edge_count = 2;
	c.probe = values;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    EDGES = (\n        conftest.edge(\"no_rows\", batch_size=7),\n"
					 "        conftest.edge(\"one_row\", batch_size=7),\n    )\n"));
	assert_non_null(strstr(out.data, "    PROBE = conftest.probe(\"probe\", batch_size=7)\n"));
	assert_non_null(strstr(out.data, "    RUNS = ((1, 2, 1), (1, 2))\n"));
	assert_non_null(strstr(out.data, "    THETA = None  # unattested: PROBE asks the reference\n"));
	buf_free(&out);
}

/* If the tolerance rule of an output is the same for all sizes, the class of the generated test has only this rule. If
 * the rules differ, the class has one rule for each size. An output that the family's own code judges has no tolerance
 * rule. */
static void a_class_has_the_rules_of_its_outputs(void **state)
{
	static const struct tensor_spec outputs[] = {{.name = "y", .dtype = DTYPE_BFLOAT16},
						     {.name = "l s\"e", .dtype = DTYPE_FLOAT32}};
	static const struct tolerance rules[] = {
	    {0.5, 0, 1}, {1e-5, 1e-3, 1}, {0.5, 0, 1}, {2.2250738585072014e-308, 1.2345678901234567e-101, 0.125}};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	test_file_write("x", &c, 1, &out);
	assert_null(strstr(out.data, "    RULES ="));
	assert_null(strstr(out.data, "    SAMPLES ="));
	d.outputs = outputs;
	d.output_count = 2;
	c.rules = rules;
	c.samples = true;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(
	    out.data, "    RULES = conftest.rules(\n        [  # y\n            (0.5, 0.0, 1.0),\n        ],\n"
		      "        [  # l s\"e\n            (1e-05, 0.001, 1.0),\n"
		      "            (2.2250738585072014e-308, 1.2345678901234567e-101, 0.125),\n        ],\n    )\n"));
	assert_non_null(strstr(out.data, "    SAMPLES = True\n"));
	c.judged = (const bool[]){false, true};
	buf_clear(&out);
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "        ],\n        None,  # l s\"e: reftest's kernels judge it\n    )\n"));
	buf_free(&out);
}

/* If the value of a Python scalar depends on the size, the class lists the values by size. */
static void a_class_has_the_scalars_of_its_sizes(void **state)
{
	static const struct tensor_spec inputs[] = {
	    {.name = "scale", .dtype = DTYPE_FLOAT32, .rank = RANK_SCALAR},
	    {.name = "x", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {0, 1}},
	    {.name = "frozen", .dtype = DTYPE_BOOL, .rank = RANK_SCALAR},
	    {.name = "pad", .dtype = DTYPE_INT32, .rank = RANK_SCALAR}};
	static const double scalars[] = {0.5, 0, 1, -1, 0.5, 0, 0, -1};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	test_file_write("x", &c, 1, &out);
	assert_null(strstr(out.data, "    SCALARS ="));
	d.inputs = inputs;
	d.input_count = 4;
	c.scalars = scalars;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    SCALARS = conftest.constants(\n        scale=[0.5],\n        frozen=[\n"
					 "            True,\n            False,\n        ],\n        pad=[-1],\n    )\n"));
	buf_free(&out);
}

/* If no family recognises the operation, the class does not check whether a reference changes its inputs. */
static void a_class_says_which_inputs_may_be_written_to(void **state)
{
	static const struct test_left left[] = {
	    {"x", "y", true}, {"state", "y", false}, {"held", NULL, true}, {"buffer", NULL, false}};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	test_file_write("x", &c, 1, &out);
	assert_null(strstr(out.data, "    LEAVES ="));
	c.left = left;
	c.left_count = 4;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data,
			       "    LEAVES = conftest.constants(\n        x=\"y\",\n"
			       "        state=conftest.written(\"y\"),\n"
			       "        held=conftest.KEPT_OR_WRITTEN,\n        buffer=conftest.WRITTEN,\n    )\n"));
	c.family = NULL;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    LEAVES = None\n"));
	assert_null(strstr(out.data, "LEAVES = conftest"));
	buf_free(&out);
}

/* Some cases have the axis lengths of another case, but omit an optional input or set a scalar to its default. */
static void a_class_lists_what_cases_omit(void **state)
{
	static const char *const omitted[] = {"z", "bias"};
	static const struct test_number numbers[] = {{"scale", DTYPE_FLOAT32, 0}, {"pad", DTYPE_INT32, -1}};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	test_file_write("x", &c, 1, &out);
	assert_null(strstr(out.data, "OMITTED"));
	assert_null(strstr(out.data, "DEFAULT_NUMBERS"));
	c.omitted = omitted;
	c.omitted_count = 2;
	c.numbers = numbers;
	c.number_count = 2;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    OMITTED = (\"z\", \"bias\")\n"
					 "    DEFAULT_NUMBERS = conftest.constants(\n        scale=0.0,\n        pad=-1,\n    )\n"));
	buf_free(&out);
}

/* An axis may have any text as its name, even one that would end the argument list and begin a statement. */
static void names_that_are_no_identifiers_are_keys(void **state)
{
	static const struct axis odd_axes[] = {{.name = "a=1)\nimport os", .var = true}, {.name = "class", .value = 8}};
	static const int64_t row[] = {3, 8};
	static const struct test_size size[] = {{"small", row, JOB_RUNS_ALL}};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	d.axes = odd_axes;
	d.axis_count = 2;
	c.sizes = size;
	c.size_count = 1;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "        **{\"a=1)\\nimport os\": None},\n        **{\"class\": 8},\n"));
	assert_non_null(strstr(out.data, "(conftest.size(\"small\", **{\"a=1)\\nimport os\": 3}),)"));
	assert_null(strstr(out.data, "CLASS ="));
	assert_non_null(strstr(out.data, "    RUNS = ((1, 2, 1),)\n"));
	buf_free(&out);
}

static void namesakes_get_numbers(void **state)
{
	struct definition d[2] = {definition_named("a_b", "x\n"), definition_named("a__b", "x\n")};
	struct test_class c[2] = {class_of(&d[0]), class_of(&d[1])};
	struct buf out = {0};

	(void)state;
	test_file_write("x", c, 2, &out);
	assert_non_null(strstr(out.data, "\nclass TestAB(conftest.DefinitionTests):\n"));
	assert_non_null(strstr(out.data, "\nclass TestAB_2(conftest.DefinitionTests):\n"));
	buf_free(&out);
}

static void the_old_class_is_found_again_whatever_texts_pretend(void **state)
{
	struct definition d[3] = {definition_named("a", "# definition: \"b\"\n# definition: none\ndef main():\n"),
				  definition_named("b\"\\", "x = 1  # definition: \"c\"\ny = 2\n"), definition_named("c", "x\n")};
	struct test_class c[3] = {class_of(&d[0]), class_of(&d[1]), class_of(&d[2])};
	struct buf out = {0}, again = {0};
	const char *text;
	size_t length;

	(void)state;
	test_file_write("x", c, 3, &out);
	assert_false(test_file_class(out.data, out.length, "b", &text, &length));
	for (int i = 0; i < 3; i++) {
		struct test_class kept[3] = {c[0], c[1], c[2]};

		assert_true(test_file_class(out.data, out.length, d[i].name, &kept[i].kept, &kept[i].kept_length));
		kept[i].definition = NULL;
		buf_clear(&again);
		test_file_write("x", kept, 3, &again);
		assert_string_equal(again.data, out.data);
	}
	buf_free(&out);
	buf_free(&again);
}

static bool drops(const struct test_class *from, int from_count, const struct test_class *to, int to_count)
{
	struct buf old = {0}, new = {0};

	test_file_write("x", from, from_count, &old);
	if (to_count > 0)
		test_file_write("x", to, to_count, &new);
	bool answer = test_file_drops(old.data, old.length, new.data, new.length);

	buf_free(&old);
	buf_free(&new);
	return answer;
}

static void a_class_that_is_dropped_is_seen(void **state)
{
	struct definition d[4] = {definition_named("a", "x  # definition: \"d\"\n"), definition_named("b", "# definition: \"d\"\n"),
	                          definition_named("c", "x\n"), definition_named("b", "y\n")};
	struct test_class c[3] = {class_of(&d[0]), class_of(&d[1]), class_of(&d[2])};
	struct test_class without_second[2] = {c[0], c[2]}, edited[3] = {c[0], class_of(&d[3]), c[2]};

	(void)state;
	assert_false(drops(c, 3, c, 3));
	assert_false(drops(c, 3, edited, 3));
	assert_false(drops(c, 2, c, 3));
	assert_false(drops(without_second, 2, c, 3));
	assert_true(drops(c, 3, c, 2));
	assert_true(drops(c, 3, c + 1, 2));
	assert_true(drops(c, 3, without_second, 2));
	assert_true(drops(c, 1, NULL, 0));
}

static void a_class_without_a_family_says_so(void **state)
{
	struct definition d = definition_named("a", "x\n");
	struct test_class c = {.name = d.name, .definition = &d};
	struct buf out = {0};

	(void)state;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    FAMILY = None\n    HIDDEN_SIZE = 64\n"));
	assert_null(strstr(out.data, "ROLES"));
	buf_free(&out);
}

/* Writes the class of a definition whose only axis has the name `name` and the constant length 77. */
static void write_class_with_axis(const char *name, struct buf *out)
{
	const struct axis axis = {name, false, 77};
	struct definition d = definition_named("a", "def run(x):\n    return x\n");
	struct test_class c = class_of(&d);

	d.axes = &axis;
	d.axis_count = 1;
	c.roles = c.output_roles = NULL;
	c.role_count = c.output_role_count = c.size_count = d.input_count = d.output_count = 0;
	test_file_write("definitions/rmsnorm", &c, 1, out);
}

/* Writes the class of a definition whose axis has the name `attribute` in lower case. Fails if this axis becomes an
 * attribute of the class. */
static void expect_reserved(const char *attribute, size_t length)
{
	char name[64] = "";
	struct buf out = {0};

	assert_true(length < sizeof name);
	for (size_t i = 0; i < length; i++)
		name[i] = (char)tolower((unsigned char)attribute[i]);
	write_class_with_axis(name, &out);
	if (strstr(out.data, " = 77\n") != NULL)
		fail_msg("an axis may take the attribute %.*s: add it to `reserved` in testgen/test_file.c", (int)length, attribute);
	buf_free(&out);
}

/* In a generated class, an axis becomes an attribute, unless DefinitionTests already has an attribute of this name. */
static void no_axis_takes_an_attribute_of_the_base_class(void **state)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	struct buf text = {0}, out = {0};
	int count = 0;
	size_t length;

	(void)state;
	write_class_with_axis("another", &out);
	assert_non_null(strstr(out.data, "    ANOTHER = 77\n"));
	shipped_text(0, &text);
	/* a line may define several attributes, as in "    MODES = SIZES = ()" */
	for (const char *line = strstr(text.data, "\nclass DefinitionTests:") + 1; strncmp(line, "    def ", 8) != 0;
	     line = strchr(line, '\n') + 1)
		for (const char *at = line + strspn(line, " ");
		     (length = strspn(at, letters)) > 0 && strncmp(at + length, " = ", 3) == 0; at += length + 3, count++)
			expect_reserved(at, length);
	assert_true(count > 10);
	buf_free(&text);
	buf_free(&out);
}

/* Each file that reftest writes beside conftest.py is in the folder LIBRARIES_FOLDER. Comments at the beginning of each
 * of these files tell code formatters to skip the file. */
static void what_all_tests_use_is_shipped_beside_them(void **state)
{
	struct buf text = {0};
	bool torch = false;
	const char *name;

	(void)state;
	assert_string_equal(shipped_name(0), "conftest.py");
	shipped_text(0, &text);
	assert_non_null(strstr(text.data, "\n# ---- reftest's own kernels ---"));
	assert_non_null(strstr(text.data, "\n# ---- the tests ---"));
	for (int i = 1; (name = shipped_name(i)) != NULL; i++) {
		buf_clear(&text);
		shipped_text(i, &text);
		assert_memory_equal(name, LIBRARIES_FOLDER, strlen(LIBRARIES_FOLDER));
		assert_memory_equal(text.data, "# fmt: off\n# ruff: noqa\n\"\"\"", 27);
		if (strcmp(name, LIBRARIES_FOLDER "torch.py") == 0)
			torch = strstr(text.data, "\nTABLES = (") != NULL;
	}
	assert_true(torch);
	buf_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_class_has_what_the_definition_says),
	    cmocka_unit_test(a_class_has_the_modes_of_its_operation),
	    cmocka_unit_test(a_class_has_the_edge_cases_and_the_probe_of_its_family),
	    cmocka_unit_test(a_class_has_the_rules_of_its_outputs),
	    cmocka_unit_test(a_class_has_the_scalars_of_its_sizes),
	    cmocka_unit_test(a_class_says_which_inputs_may_be_written_to),
	    cmocka_unit_test(a_class_lists_what_cases_omit),
	    cmocka_unit_test(names_that_are_no_identifiers_are_keys),
	    cmocka_unit_test(namesakes_get_numbers),
	    cmocka_unit_test(the_old_class_is_found_again_whatever_texts_pretend),
	    cmocka_unit_test(a_class_that_is_dropped_is_seen),
	    cmocka_unit_test(a_class_without_a_family_says_so),
	    cmocka_unit_test(no_axis_takes_an_attribute_of_the_base_class),
	    cmocka_unit_test(what_all_tests_use_is_shipped_beside_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
