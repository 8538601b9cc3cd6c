/* test_coverage - the checklists of all families are well-formed; coverage follows from shapes, roles and cases, and
 * not from names. The report names what is not covered, as text and as JSON. */
#include "tests/unit/engine_world.h"

#include <cjson/cJSON.h>

#include "engine/coverage.h"
#include "report/coverage_matrix.h"

/* ---- the tables ---- */

static bool has_role(const struct op *op, const char *name)
{
	for (const struct op_role *role = op->roles; role->name != NULL; role++)
		if (strcmp(role->name, name) == 0)
			return true;
	return false;
}

static bool has_mode(const struct op *op, const char *name, size_t length)
{
	for (const struct op_mode *mode = op->modes; mode != NULL && mode->name != NULL; mode++)
		if (strlen(mode->name) == length && strncmp(mode->name, name, length) == 0)
			return true;
	return false;
}

static bool knows_modes(const struct op *op, const char *modes)
{
	for (const char *at = modes; *at != '\0';) {
		size_t length = strcspn(at, "|");

		if (!has_mode(op, at, length))
			return false;
		at += length + (at[length] == '|');
	}
	return true;
}

/* Checks that each role and mode of a row exists, because a row with a misspelt role or mode would be "absent" in every
 * definition. */
static void expect_names(const struct op *op, const struct op_coverage *row)
{
	bool of_mode = row->measure == coverage_mode, of_switch = row->measure == coverage_switch;

	if (row->role != NULL && !(of_mode ? knows_modes(op, row->role) : has_role(op, row->role)))
		fail_msg("%s, %s: there is no '%s'", op->name, row->name, row->role);
	if (row->other != NULL && !(of_switch ? knows_modes(op, row->other) : has_role(op, row->other)))
		fail_msg("%s, %s: there is no '%s'", op->name, row->name, row->other);
	if (of_switch)
		assert_non_null(row->other);
}

static void expect_values(const struct op *op, const struct op_coverage *row)
{
	int count = 0;

	for (; count < COVERAGE_VALUES && row->values[count].name != NULL; count++) {
		const struct coverage_value *value = &row->values[count];

		if (!(value->least <= value->most))
			fail_msg("%s, %s: no number is '%s'", op->name, row->name, value->name);
		for (int i = 0; i < count; i++)
			if (strcmp(row->values[i].name, value->name) == 0 ||
			    (value->least >= row->values[i].least && value->most <= row->values[i].most))
				fail_msg("%s, %s: '%s' hides '%s'", op->name, row->name, row->values[i].name, value->name);
	}
	assert_in_range(count, 2, COVERAGE_VALUES);
}

static void checklists_are_well_formed(void **state)
{
	(void)state;
	for (int i = 0; i < op_count; i++) {
		const struct op *op = op_table[i].op;
		int count = 0;

		if (op->coverage == NULL)
			fail_msg("%s has no checklist", op->name);
		for (const struct op_coverage *row = op->coverage; row->name != NULL; row++, count++) {
			assert_true(count < COVERAGE_AXES);
			assert_non_null(row->measure);
			for (const struct op_coverage *other = op->coverage; other != row; other++)
				assert_string_not_equal(other->name, row->name);
			expect_names(op, row);
			expect_values(op, row);
		}
		assert_true(count > 1);
	}
}

/* ---- a case ---- */

/* A family's checklist has axes, and each axis has a list of values. Returns the name of the value that the case has on
 * `axis`, or NULL if it has none of them. */
static const char *covered(const struct op *op, const struct op_case *c, const char *axis)
{
	const struct coverage_view view = coverage_view_of(op, c);

	for (const struct op_coverage *row = op->coverage; row->name != NULL; row++) {
		if (strcmp(row->name, axis) != 0)
			continue;
		int value = coverage_of(&view, row);

		return value < 0 ? NULL : row->values[value].name;
	}
	fail_msg("there is no axis '%s'", axis);
	return NULL;
}

/* The axes of a definition whose name does not fit its shapes. */
enum { BATCH, TOKENS, HEADS, V_HEADS, K, V, AXES };
static const struct op_axis axes[AXES] = {
    [BATCH] = {"batch", true, 0},      [TOKENS] = {"tokens", true, 0}, [HEADS] = {"heads", false, 2},
    [V_HEADS] = {"v_heads", false, 4}, [K] = {"k", false, 64},         [V] = {"v", false, 32}};
static const struct op_arg inputs[] = {
    {.name = "q", .dtype = DTYPE_FLOAT16, .rank = 4, .axis = {BATCH, TOKENS, HEADS, K}},
    {.name = "k", .dtype = DTYPE_FLOAT16, .rank = 4, .axis = {BATCH, TOKENS, HEADS, K}},
    {.name = "v", .dtype = DTYPE_FLOAT16, .rank = 4, .axis = {BATCH, TOKENS, V_HEADS, V}},
    {.name = "beta", .rank = 3, .axis = {BATCH, TOKENS, V_HEADS}},
    {.name = "initial_state", .rank = 4, .axis = {BATCH, V_HEADS, V, K}, .optional = true},
    {.name = "use_qk_l2norm_in_kernel", .dtype = DTYPE_BOOL, .rank = OP_SCALAR},
};
static const struct op_arg output = {
    .name = "output", .dtype = DTYPE_FLOAT16, .rank = 4, .axis = {BATCH, TOKENS, V_HEADS, V}};
static const struct op_problem delta_rule = {.name = "delta_rule_packed_k128_v128",
					     .op_type = "delta_rule",
					     .description = "",
					     .axes = axes,
					     .axis_count = AXES,
					     .inputs = inputs,
					     .input_count = 6,
					     .outputs = &output,
					     .output_count = 1};

static void a_case_covers_what_its_shapes_say(void **state)
{
	const struct op *op = op_by_name("delta_rule")->op;
	const int64_t axis[] = {1, 8, 2, 4, 64, 32};
	struct err why = {""};
	struct op_case c = {.problem = &delta_rule, .axis = axis, .variant = op->match(&delta_rule, &why)};

	(void)state;
	if (c.variant < 0)
		fail_msg("%s", why.text);
	assert_string_equal(covered(op, &c, "sequences"), "in a batch");
	assert_string_equal(covered(op, &c, "state layout"), "[V, K]");
	assert_string_equal(covered(op, &c, "initial state"), "given");
	assert_string_equal(covered(op, &c, "final state"), "none");
	assert_string_equal(covered(op, &c, "D and Dv"), "different");
	assert_string_equal(covered(op, &c, "values"), "grouped");
	assert_string_equal(covered(op, &c, "dtype"), "float16");
	assert_string_equal(covered(op, &c, "QK norm"), "none");
	c.scalar[5] = 1;
	c.absent = 1 << 4;
	assert_string_equal(covered(op, &c, "QK norm"), "applied");
	assert_string_equal(covered(op, &c, "initial state"), "zero");
}

static void a_property_that_does_not_apply_is_no_value(void **state)
{
	struct op_coverage row = {"page size", coverage_length, .role = "k", .axis = 1, .values = {{"1", 1, 1, NULL}}};
	const struct op_case c = {.problem = &(struct op_problem){.name = ""}};
	const struct coverage_view view = {&c, {.mode_count = 0}};

	(void)state;
	assert_int_equal(coverage_of(&view, &row), -1);
}

/* ---- a run ---- */

static void plan(struct world *w)
{
	world_write(w, "definitions/rmsnorm/first.json", "first", WORLD_DEFINITION("first", "return hidden_states * weight"));
	world_write(w, "definitions/rmsnorm/fused_add.json", "fused_add",
		    WORLD_DEFINITION("fused_add", "return weight * hidden_states"));
	w->options.dry_run = w->options.cached_only = w->options.thorough = true;
	world_run(w);
}

static const struct covered_family *family_named(const struct coverage *coverage, const char *name)
{
	for (int i = 0; i < coverage->family_count; i++)
		if (strcmp(coverage->families[i].op->name, name) == 0)
			return &coverage->families[i];
	fail();
	return NULL;
}

static void definitions_and_cases_are_counted(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};

	plan(w);
	const struct coverage coverage = coverage_of_run(&w->run, &arena);
	const struct covered_family *family = family_named(&coverage, "rmsnorm");
	int cases = world_result(w, "first")->case_count + world_result(w, "fused_add")->case_count;

	assert_int_equal(world_count(w, "run:"), 0);
	assert_int_equal(coverage.definition_count, 2);
	assert_int_equal(family->definitions, 2);
	assert_int_equal(family->cases, cases);
	assert_string_equal(family->op->coverage[0].name, "residual");
	assert_int_equal(family->counts[0][0].definitions, 0); /* the name "fused_add" does not count as a residual */
	assert_int_equal(family->counts[0][1].definitions, 2);
	assert_int_equal(family->counts[0][1].cases, cases);
	assert_int_equal(family_named(&coverage, "gemm")->definitions, 0);
	arena_free(&arena);
	world_end(w);
}

static void holes_are_sentences(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};
	struct buf text = {0};

	plan(w);
	const struct coverage coverage = coverage_of_run(&w->run, &arena);

	coverage_matrix_text(&coverage, true, &text);
	assert_non_null(strstr(text.data, "rmsnorm: 2 definitions, "));
	assert_non_null(strstr(text.data, "added: 0, none: 2\n"));
	assert_non_null(strstr(text.data, "\nno definition of rmsnorm adds a residual\n"));
	assert_null(strstr(text.data, "no definition of rmsnorm has no residual"));
	assert_null(strstr(text.data, "no definition of gemm"));
	assert_non_null(strstr(text.data, "  rmsnorm/first, "));
	assert_null(strstr(text.data, ";\n"));
	for (int i = 0; i < coverage.hole_count; i++)
		assert_string_equal(coverage.families[coverage.holes[i].family].op->name, "rmsnorm");
	buf_free(&text);
	arena_free(&arena);
	world_end(w);
}

static void the_matrix_is_json(void **state)
{
	struct world *w = *state;
	struct arena arena = {0};
	struct buf text = {0};

	plan(w);
	const struct coverage coverage = coverage_of_run(&w->run, &arena);

	buf_text(&text, "{");
	coverage_matrix_json(&coverage, &text);
	buf_text(&text, "}");
	cJSON *json = cJSON_Parse(text.data);

	assert_non_null(json);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "families")), op_count);
	const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "definitions"), 0);

	assert_string_equal(cJSON_GetObjectItem(first, "family")->valuestring, "rmsnorm");
	const cJSON *residual = cJSON_GetObjectItem(cJSON_GetObjectItem(first, "axes"), "residual");

	assert_int_equal(cJSON_GetArraySize(residual), 1);
	assert_string_equal(cJSON_GetArrayItem(residual, 0)->valuestring, "none");
	assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(json, "holes"), 0), "message")->valuestring,
			    "no definition of rmsnorm adds a residual");
	cJSON_Delete(json);
	buf_free(&text);
	arena_free(&arena);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(checklists_are_well_formed),
	    cmocka_unit_test(a_case_covers_what_its_shapes_say),
	    cmocka_unit_test(a_property_that_does_not_apply_is_no_value),
	    cmocka_unit_test_setup_teardown(definitions_and_cases_are_counted, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(holes_are_sentences, world_set_up, world_tear_down),
	    cmocka_unit_test_setup_teardown(the_matrix_is_json, world_set_up, world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
