/* test_file: the same bytes always, a class for each definition, and the old class of what cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "artifacts/templates.h"
#include "artifacts/test_file.h"

static const struct axis axes[] = {
    {"batch_size", true, 0}, {"hidden_size", false, 64}, {"n", false, 3}, {"N", false, 4}, {"name", false, 5}};
static const struct tensor_spec tensor = {.name = "x", .dtype = DTYPE_BFLOAT16, .rank = 2, .axis = {0, 1}};
static const int64_t values[] = {7, 64, 3, 4, 5};
static const struct test_size sizes[] = {{"small", values}, {"large", values}};
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
				   .variant = 1,
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
	    "\nclass TestAB:\n    OP_TYPE = \"rmsnorm\"\n    NAME = \"a_b\"\n    VARIANT = 1  # of op family rmsnorm\n    HIDDEN_SIZE = 64\n    N = 3\n"));
	assert_non_null(strstr(out.data, "        n=N,\n        N=4,\n        name=5,\n"));
	assert_non_null(
	    strstr(out.data,
		   "    EPS = 1e-05  # model:x?\n    THETA = None  # unattested: rmsnorm_probe asks the reference\n"));
	assert_non_null(strstr(out.data, "    JUDGE = None\n    PROBE = staticmethod(rmsnorm_probe)\n"));
	assert_non_null(strstr(out.data, "        conftest.size(\"small\", batch_size=7),\n"));
	assert_non_null(strstr(out.data, "        rmsnorm_flashinfer,\n        rmsnorm_sglang,\n"));
	assert_non_null(strstr(out.data, "    return \\\"\\\"\\\"x\\\"\\\"\\\"\n"));
	assert_non_null(strstr(out.data, "\ndef rmsnorm_inputs("));
	buf_free(&out);
	buf_free(&again);
}

/* One rule where all sizes have it; else one for each. */
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
	assert_non_null(strstr(out.data, "    RULES = conftest.rules()\n    SAMPLES = False\n"));
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
	buf_free(&out);
}

/* Values of Python scalars stand by size where they differ. */
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
	assert_non_null(strstr(out.data, "    SCALARS = conftest.constants()\n"));
	d.inputs = inputs;
	d.input_count = 4;
	c.scalars = scalars;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    SCALARS = conftest.constants(\n        scale=[0.5],\n        frozen=[\n"
					 "            True,\n            False,\n        ],\n        pad=[-1],\n    )\n"));
	buf_free(&out);
}

/* Where no family says it, nothing is asserted of what a reference leaves in its inputs. */
static void a_class_says_which_inputs_may_be_written_to(void **state)
{
	static const struct test_left left[] = {{"x", "y", true}, {"held", NULL, true}, {"buffer", NULL, false}};
	struct definition d = definition_named("a_b", "x\n");
	struct test_class c = class_of(&d);
	struct buf out = {0};

	(void)state;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    LEAVES = conftest.constants()\n"));
	c.left = left;
	c.left_count = 3;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data,
			       "    LEAVES = conftest.constants(\n        x=\"y\",\n"
			       "        held=conftest.KEPT_OR_WRITTEN,\n        buffer=conftest.WRITTEN,\n    )\n"));
	c.family = NULL;
	out.length = 0;
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "    LEAVES = None\n"));
	assert_null(strstr(out.data, "LEAVES = conftest"));
	buf_free(&out);
}

static void namesakes_get_numbers_and_a_family_stands_once(void **state)
{
	struct definition d[2] = {definition_named("a_b", "x\n"), definition_named("a__b", "x\n")};
	struct test_class c[2] = {class_of(&d[0]), class_of(&d[1])};
	struct buf out = {0};

	(void)state;
	test_file_write("x", c, 2, &out);
	assert_non_null(strstr(out.data, "\nclass TestAB:\n"));
	assert_non_null(strstr(out.data, "\nclass TestAB_2:\n"));
	char *first = strstr(out.data, "\ndef rmsnorm_inputs(");

	assert_non_null(first);
	assert_null(strstr(first + 1, "\ndef rmsnorm_inputs("));
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

static void a_family_without_a_template_gets_the_generic_inputs(void **state)
{
	struct definition d = definition_named("a", "x\n");
	struct test_class c = class_of(&d);
	struct template t;
	struct buf out = {0};

	(void)state;
	assert_false(template_of("nosuch", &t));
	c.family = "nosuch";
	test_file_write("x", &c, 1, &out);
	assert_non_null(strstr(out.data, "conftest.generic_inputs(definition, axes, device, seed)"));
	assert_non_null(strstr(out.data, "    GROUND_TRUTHS = ()\n"));
	buf_free(&out);
}

static int occurrences(const char *text, const char *part)
{
	int count = 0;

	for (const char *at = text; (at = strstr(at, part)) != NULL; at++)
		count++;
	return count;
}

/* make noted which functions {name}_{part} a template has: each that its text defines, and no other. */
static void a_template_has_the_parts_that_its_text_defines(void **state)
{
	struct template t;
	const char *text;
	int own = 0;

	(void)state;
	for (int i = 0; template_at(i, &t); i++) {
		size_t length = template_text(&t, &text);

		for (int part = 0; part < TEMPLATE_PARTS; part++) {
			char line[128];
			int width = snprintf(line, sizeof line, "\ndef %s_%s(", t.name,
					     template_part_name((enum template_part)part));
			bool defined = length > 0 && /* with the newline before it */
				       memmem(text - 1, length + 1, line, (size_t)width) != NULL;

			assert_int_equal(defined, t.owner[part] != NULL && strcmp(t.owner[part], t.name) == 0);
			own += defined;
		}
	}
	assert_true(own > 20);
}

/* Before the functions of the families that import it, and with their parts where they have none of their own; also
 * where only the text of an old class tells which family it is. */
static void what_families_share_stands_once_before_them(void **state)
{
	struct definition d[2] = {definition_named("a", "x\n"), definition_named("b", "x\n")};
	struct test_class c[2] = {class_of(&d[0]), class_of(&d[1])};
	struct template t, attention, ragged, other;
	struct buf out = {0}, again = {0};
	const char *text;
	size_t length;

	(void)state;
	assert_true(template_of("gqa_paged", &t) && template_of("attention", &attention));
	assert_true(template_of("attention_ragged", &ragged) && template_of("mla_paged", &other));
	assert_string_equal(t.owner[TEMPLATE_FLASHINFER], "gqa_paged");
	assert_string_equal(t.owner[TEMPLATE_INPUTS], "attention_paged");
	assert_string_equal(t.owner[TEMPLATE_TOLERANCE], "attention");
	assert_null(t.owner[TEMPLATE_JUDGE]);
	assert_true(template_needs(&t, &attention) && template_needs(&t, &t));
	assert_false(template_needs(&t, &ragged) || template_needs(&t, &other));
	c[0].family = "gqa_ragged";
	c[1].family = "gqa_paged";
	test_file_write("x", c, 2, &out);
	assert_int_equal(occurrences(out.data, "\ndef attention_split("), 1);
	assert_int_equal(occurrences(out.data, "\ndef attention_paged_inputs("), 1);
	assert_int_equal(occurrences(out.data, "\ndef attention_ragged_inputs("), 1);
	assert_int_equal(occurrences(out.data, "\ndef mla_paged_torch("), 0);
	assert_int_equal(occurrences(out.data, "kernels."), 0);
	assert_true(strstr(out.data, "\ndef attention_paged_inputs(") < strstr(out.data, "\ndef gqa_paged_torch("));
	assert_non_null(strstr(out.data, "        return attention_paged_inputs("));
	assert_non_null(strstr(out.data, "TOLERANCE = staticmethod(attention_tolerance)\n"));
	for (int i = 0; i < 2; i++) {
		assert_true(test_file_class(out.data, out.length, d[i].name, &text, &length));
		c[i] = (struct test_class){.name = d[i].name, .kept = text, .kept_length = length};
	}
	test_file_write("x", c, 2, &again);
	assert_string_equal(again.data, out.data);
	buf_free(&out);
	buf_free(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_class_has_what_the_definition_says),
	    cmocka_unit_test(a_class_has_the_rules_of_its_outputs),
	    cmocka_unit_test(a_class_has_the_scalars_of_its_sizes),
	    cmocka_unit_test(a_class_says_which_inputs_may_be_written_to),
	    cmocka_unit_test(namesakes_get_numbers_and_a_family_stands_once),
	    cmocka_unit_test(the_old_class_is_found_again_whatever_texts_pretend),
	    cmocka_unit_test(a_class_that_is_dropped_is_seen),
	    cmocka_unit_test(a_family_without_a_template_gets_the_generic_inputs),
	    cmocka_unit_test(a_template_has_the_parts_that_its_text_defines),
	    cmocka_unit_test(what_families_share_stands_once_before_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
