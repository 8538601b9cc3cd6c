/* test_settings - checks what a dataset can set in reftest.toml, what only the command line can set, and the message
 * for each mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "engine/run_defaults.h"
#include "engine/settings.h"

static struct settings *taken(const char *text)
{
	struct err err = {""};
	struct settings *settings = settings_parse(text, strlen(text), text[0] == '{', &err);

	if (settings == NULL)
		fail_msg("%s: %s", text, err.text);
	return settings;
}

static void expect_refused(const char *text, const char *message)
{
	struct err err = {""};
	struct settings *settings = settings_parse(text, strlen(text), text[0] == '{', &err);

	if (settings != NULL)
		fail_msg("%s: it was taken", text);
	if (strstr(err.text, message) == NULL)
		fail_msg("%s: '%s' does not say '%s'", text, err.text, message);
}

static void expect_text(const struct settings *settings, enum setting_id id, const char *text, int line)
{
	assert_string_equal(settings->of[id].text, text);
	assert_int_equal(settings->of[id].line, line);
}

static void every_setting_is_read_with_its_line(void **state)
{
	struct settings *s = taken("# defaults\nsizes = [\"small\", \"large\"]\ndevice = \"cpu\"\nground-truth = [\"auto\", \"solution\"]\n"
				   "tolerance = [\"bfloat16=8e-3,1e-2\", \"1e-4\"]\naccept = \"approved,unattested\"\n"
				   "require-containment = [\"files\", \"network\"]\n\n[hook]\nstrict = true\nall = false\n");

	(void)state;
	expect_text(s, SETTING_SIZES, "small,large", 2);
	assert_true(s->size[SIZE_SMALL] && !s->size[SIZE_MEDIUM] && s->size[SIZE_LARGE]);
	expect_text(s, SETTING_DEVICE, "cpu", 3);
	assert_string_equal(s->ground_truth, "auto,solution");
	expect_text(s, SETTING_TOLERANCE, "bfloat16=8e-3,1e-2 1e-4", 5);
	assert_true(s->by_dtype[DTYPE_BFLOAT16].atol == 8e-3 && s->by_dtype[DTYPE_BFLOAT16].rtol == 1e-2);
	assert_true(s->by_dtype[DTYPE_FLOAT32].atol == 1e-4 && s->by_dtype[DTYPE_FLOAT32].hit_ratio < 0);
	assert_string_equal(s->accept, "approved,unattested");
	assert_string_equal(s->required, "files,network");
	expect_text(s, SETTING_HOOK_STRICT, "true", 10);
	assert_true(s->hook_strict && !s->hook_all);
	settings_free(s);
	s = taken("");
	for (int id = 0; id < SETTING_COUNT; id++)
		assert_null(s->of[id].key);
	assert_null(settings_required(s, NULL));
	settings_free(s);
	settings_free(taken("hook.all = true # a dotted key\n"));
}

static void mistakes_are_named_with_their_place(void **state)
{
	(void)state;
	expect_refused("szes = \"small\"", "reftest.toml:1:1: unknown setting \"szes\"; did you mean \"sizes\"?");
	expect_refused("[hook]\nstict = true", "reftest.toml:2:1: unknown setting \"hook.stict\"; did you mean \"hook.strict\"?");
	expect_refused("\"hook.strict\" = true", "unknown setting \"hook.strict\"");
	expect_refused("[sizes]\nsmall = true", "sizes: expected a text, or a list of texts, found a table");
	expect_refused("[nothing.like.it]", "docs/settings.md lists the settings");
	expect_refused("ground_truth = \"auto\"", "did you mean \"ground-truth\"?");
	expect_refused("sizes = 1", "sizes: expected a text, or a list of texts, found a whole number");
	expect_refused("sizes = [\"small\",\n 2]", "reftest.toml:2:2: sizes: expected");
	expect_refused("sizes = [\"small,large\"]", "'small,large' is no name");
	expect_refused("sizes = []", "sizes: the list is empty");
	expect_refused("sizes = \"\"", "'' is no name");
	expect_refused("sizes = \"smal\"", "unknown size 'smal'");
	expect_refused("device = \"cud\"", "unknown device 'cud'");
	expect_refused("accept = \"failed\"", "unknown state 'failed'");
	expect_refused("accept = \"approved,\"", "unknown state ''");
	/* a message is one line, even if a name in the message contains a line feed */
	expect_refused("accept = \"ap\\nroved\"", "unknown state 'ap\\x0aroved'");
	expect_refused("sizes = \"sm\\nall\"", "unknown size 'sm\\x0aall'");
	expect_refused("device = \"c\\npu\"", "unknown device 'c\\x0apu'");
	expect_refused("tolerance = \"bfloat61=1\"", "invalid tolerance 'bfloat61=1'");
	expect_refused("tolerance = 1e-4", "tolerance: expected a text");
	expect_refused("[hook]\nstrict = \"yes\"", "hook.strict: expected true or false, found a text");
	expect_refused("hook = true", "write the table [hook] instead");
	expect_refused("sizes = \"small\"\nsizes = \"large\"", "reftest.toml:2:");
	expect_refused("sizes = ", "reftest.toml:1:");
	expect_refused("a = \"\\u0000\"", "\\u0000");
	expect_refused("sizes = \"small\" \xc3\xa9", "reftest.toml:1:");
	expect_refused("sizes \xc3\xa4 = \"small\"", "reftest.toml:1:");
	expect_refused("device = 1979-05-27", "found a date or a time");
}

/* A dataset must not start a program, send data elsewhere, use up the machine, or replace a ground truth. Therefore
 * reftest.toml must not contain the settings in `refused`. */
static void a_dataset_cannot_set_what_only_the_user_may(void **state)
{
	static const char *const refused[] = {"remote", "python", "exec", "jobs", "memory", "timeout", "repos", "isolation",
					      "no-workloads", "cached-only", "force", "root", "seed", "device-class", "atol"};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		snprintf(text, sizeof text, "%s = \"x\"", refused[i]);
		expect_refused(text, "because its author may be a stranger");
	}
	expect_refused("ground-truth = \"torch\"", "expected \"auto\" or \"all\"");
	expect_refused("ground-truth = \"automatic\"", "expected \"auto\" or \"all\"");
	expect_refused("require-containment = \"none\"", "not 'none'");
	expect_refused("require-containment = \"files,\\\"\"", "expected \"full\"");
	settings_free(taken("require-containment = []"));
}

static void reftest_json_is_read_with_the_lines_to_write(void **state)
{
	struct settings *s = taken("{\"require_containment\": [\"files\", \"network\"], \"ground_truth\": \"auto,solution\"}");

	(void)state;
	assert_string_equal(s->required, "files,network");
	assert_string_equal(s->ground_truth, "auto,solution");
	assert_string_equal(s->note,
			    "later versions of reftest will not read reftest.json: delete this file, and move its settings to "
			    "reftest.toml: "
			    "require-containment = \"files,network\"; ground-truth = \"auto,solution\"");
	settings_free(s);
	settings_free(taken("{}"));
	expect_refused("{\"sizes\": \"small\"}", "reftest.json:1:11: unknown setting \"sizes\"; settings belong in reftest.toml");
	expect_refused("{\"require_containment\": 1}", "found");
	expect_refused("{\"require_containment\": [1]}", "found");
	expect_refused("{\"ground_truth\": \"torch\"}", "expected \"auto\"");
	expect_refused("{", "reftest.json:1:");
}

/* ---- options ---- */

static bool is_known(const char *name)
{
	const char *unused, *key;

	for (int i = 0; (key = settings_key(i, &unused)) != NULL; i++)
		if (strcmp(key, name) == 0)
			return true;
	return false;
}

static bool is_option(const struct command *command, const char *name)
{
	for (int i = 0; i < command->row_count; i++)
		if (strcmp(option_word(&command->rows[i]) + strlen("--"), name) == 0)
			return true;
	return false;
}

static void keys_are_names_of_options(void **state)
{
	const struct command *const with_settings[] = {&command_verify, &command_watch};
	const char *user_only, *key;

	(void)state;
	for (size_t c = 0; c < 2; c++)
		for (int i = 0; i < with_settings[c]->row_count; i++) {
			const char *name = option_word(&with_settings[c]->rows[i]) + strlen("--");

			if (!is_known(name))
				fail_msg("neither a dataset nor only the user may set --%s: add a row to engine/settings.c", name);
		}
	for (int i = 0; (key = settings_key(i, &user_only)) != NULL; i++) {
		const char *dot = strchr(key, '.');

		if (!is_option(&command_verify, key) && !is_option(&command_watch, key) && strcmp(key, "remote") != 0 &&
		    !(dot != NULL && is_option(&command_hook, dot + 1)))
			fail_msg("the setting %s is the name of no option", key);
	}
}

static void the_command_line_wins(void **state)
{
	struct settings *s = taken("sizes = \"large\"\ndevice = \"cuda:1\"\naccept = \"checked\"\nrequire-containment = \"full\"\n"
				   "tolerance = \"1e-3\"\nground-truth = \"all\"");
	struct run_options open = {.cases = case_options_default()}, given = open;
	struct err err = {""};

	(void)state;
	run_defaults(s, &open);
	assert_true(open.cases.size[SIZE_LARGE] && !open.cases.size[SIZE_SMALL]);
	assert_string_equal(open.device, "cuda:1");
	assert_int_not_equal(open.accept_bits, 0);
	assert_true(open.cases.dataset_bounds && open.details);
	assert_int_equal(open.from_settings, (1u << SETTING_HOOK_STRICT) - 1);
	assert_string_equal(settings_required(s, open.required), "full");
	assert_null(settings_required(s, "none"));

	assert_int_equal(run_sizes_read("small", &given.cases, &err), 0);
	given.device = "cpu";
	given.accept = "";
	given.required = "none";
	given.ground_truth = "builtin";
	run_defaults(s, &given);
	assert_true(given.cases.size[SIZE_SMALL] && !given.cases.size[SIZE_LARGE]);
	assert_string_equal(given.device, "cpu");
	assert_int_equal(given.accept_bits, 0);
	assert_int_equal(given.from_settings, 1u << SETTING_TOLERANCE);
	settings_free(s);

	struct run_options none = {.cases = case_options_default()};

	run_defaults(NULL, &none);
	assert_string_equal(none.device, "auto");
	assert_true(none.cases.size[SIZE_SMALL] && none.cases.size[SIZE_MEDIUM] && !none.cases.size[SIZE_LARGE]);
	assert_int_equal(none.from_settings, 0);
}

static void what_took_effect_is_described(void **state)
{
	struct settings *s = taken("sizes = \"small\"\naccept = \"checked\"");
	struct buf out = {0};

	(void)state;
	settings_describe(s, 1u << SETTING_SIZES | 1u << SETTING_ACCEPT | 1u << SETTING_DEVICE, &out);
	assert_string_equal(out.data, "reftest.toml sets sizes = small (line 1); accept = checked (line 2)");
	buf_clear(&out);
	settings_describe(s, 1u << SETTING_ACCEPT, &out);
	assert_string_equal(out.data, "reftest.toml sets accept = checked (line 2)");
	buf_free(&out);
	settings_free(s);
}

/* The tolerance in reftest.toml replaces the tolerance of the family, and the tolerance of the definition replaces
 * both. */
static void a_definition_has_the_last_word_on_its_bounds(void **state)
{
	const struct tolerance none = {-1, -1, -1};
	struct tolerance own[1] = {none}, dataset[DTYPE_COUNT];
	struct tensor_spec output = {.name = "y", .dtype = DTYPE_BFLOAT16};
	struct definition d = {.outputs = &output, .output_count = 1, .output_tolerance = own, .tolerance = none};
	const struct rule family = {.atol = 1, .rtol = 2, .hit_ratio = 0.5};
	struct case_options options = case_options_default();

	(void)state;
	for (int i = 0; i < DTYPE_COUNT; i++)
		dataset[i] = none;
	dataset[DTYPE_BFLOAT16] = (struct tolerance){3, 4, -1};
	struct rule rule = definition_rule(&d, 0, dataset, family);

	assert_true(rule.atol == 3 && rule.rtol == 4 && rule.hit_ratio == 0.5);
	d.tolerance.atol = 5;
	own[0].rtol = 6;
	rule = definition_rule(&d, 0, dataset, family);
	assert_true(rule.atol == 5 && rule.rtol == 6);
	assert_false(cases_have_dataset_bound(&options, &d));
	memcpy(options.dataset_by_dtype, dataset, sizeof dataset);
	options.dataset_bounds = true;
	assert_false(cases_have_dataset_bound(&options, &d));
	d.tolerance.atol = -1;
	assert_true(cases_have_dataset_bound(&options, &d));
	options.tolerance.atol = 1e-4; /* as with --atol 1e-4 */
	assert_false(cases_have_dataset_bound(&options, &d));
	options.tolerance.atol = -1;
	output.dtype = DTYPE_FLOAT32;
	assert_false(cases_have_dataset_bound(&options, &d));
}

/* Even in a text of the largest allowed size, nested tables cannot overflow the stack. */
static void deep_texts_are_refused_or_read(void **state)
{
	static char text[(16 << 10) + 2];
	struct err err = {""};

	(void)state;
	for (size_t i = 0; i + 4 < sizeof text; i += 2)
		memcpy(text + i, "a.", 3);
	strcpy(text + sizeof text - 6, "a=1");
	assert_null(settings_parse(text, strlen(text), false, &err));
	memset(text, '[', sizeof text - 2);
	assert_null(settings_parse(text, strlen(text), false, &err));
	assert_null(settings_parse("[[[", 3, false, &err));
	assert_string_equal(err.text, "reftest.toml: the file is not valid TOML");
	memset(text, ' ', sizeof text - 1);
	assert_null(settings_parse(text, sizeof text - 1, false, &err));
	assert_non_null(strstr(err.text, "more than 16 KiB"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_setting_is_read_with_its_line),
	    cmocka_unit_test(mistakes_are_named_with_their_place),
	    cmocka_unit_test(a_dataset_cannot_set_what_only_the_user_may),
	    cmocka_unit_test(reftest_json_is_read_with_the_lines_to_write),
	    cmocka_unit_test(keys_are_names_of_options),
	    cmocka_unit_test(the_command_line_wins),
	    cmocka_unit_test(what_took_effect_is_described),
	    cmocka_unit_test(a_definition_has_the_last_word_on_its_bounds),
	    cmocka_unit_test(deep_texts_are_refused_or_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
