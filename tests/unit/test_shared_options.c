/* test_shared_options - checks how the options that several commands share become members of struct run_options: the
 * defaults, the conversions and the rules. Some lists of options and choices exist in two files; the test compares the
 * copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/shared_options.h"
#include "repos/known_repositories.h"

struct read {
	struct program program;
	struct run_options run;
	struct err err;
	int rc;
};

static struct read read_options(const struct shared_options *o)
{
	struct read r = {.err = {""}};

	r.program.root_given = "from the global option";
	r.program.repos = "from the server";
	r.rc = shared_options_read(o, &r.program, &r.run, &r.err);
	return r;
}

static void without_options_every_definition_gets_a_process_of_its_own(void **state)
{
	const struct shared_options o = shared_options_default();
	const struct read r = read_options(&o);

	(void)state;
	assert_int_equal(r.rc, 0);
	assert_false(r.run.kept_runners);
	assert_true(r.run.timeout_s == 120);
	assert_true(r.run.cases.workloads);
	assert_true(r.run.cases.size[SIZE_MEDIUM] && !r.run.cases.size[SIZE_LARGE]);
	assert_false(r.run.cases.sizes_given);
	assert_true(r.run.cases.tolerance.atol < 0 && r.run.cases.tolerance.hit_ratio < 0);
	assert_non_null(r.run.watcher);
	assert_string_equal(r.program.root_given, "from the global option");
	assert_string_equal(r.program.repos, "from the server");
}

static void an_option_reaches_the_run(void **state)
{
	struct shared_options o = shared_options_default();

	(void)state;
	o.root = "there";
	o.repos = "checkouts";
	o.isolation = "kept";
	o.alone = o.index = o.no_workloads = o.staged_arena = true;
	o.rtol = 0.5;
	o.sizes = "large";
	const struct read r = read_options(&o);

	assert_int_equal(r.rc, 0);
	assert_true(r.run.kept_runners && r.run.from_index && r.run.staged);
	assert_null(r.run.watcher);
	assert_false(r.run.cases.workloads);
	assert_true(r.run.cases.size[SIZE_LARGE] && !r.run.cases.size[SIZE_SMALL] && r.run.cases.sizes_given);
	assert_true(r.run.cases.tolerance.rtol == 0.5);
	assert_string_equal(r.program.root_given, "there");
	assert_string_equal(r.program.repos, "checkouts");
}

/* If the user gives the ID of a case, this case is made, even if --sizes, --edge or --backward exclude it. */
static void a_case_is_made_from_its_id(void **state)
{
	struct shared_options o = shared_options_default();

	(void)state;
	o.sizes = "small";
	o.case_id[0] = "edge:x:backward";
	const struct read r = read_options(&o);

	assert_int_equal(r.rc, 0);
	assert_true(r.run.cases.size[SIZE_LARGE] && r.run.cases.edge && r.run.cases.backward);
	assert_string_equal(r.run.cases.only[0], "edge:x:backward");
	assert_null(r.run.cases.only[1]);
}

static void invalid_values_are_refused(void **state)
{
	struct shared_options o = shared_options_default();

	(void)state;
	o.timeout = 0;
	assert_string_equal(read_options(&o).err.text, "--timeout takes a number of seconds above 0");
	o.timeout = 1;
	o.hit_ratio = 1.5;
	assert_string_equal(read_options(&o).err.text, "--hit-ratio takes a number above 0 and at most 1, not 1.5");
	o.hit_ratio = 0;
	assert_int_equal(read_options(&o).rc, -1);
	o.hit_ratio = -1;
	o.sizes = "huge";
	assert_int_equal(read_options(&o).rc, -1);
}

static void options_that_change_a_case_are_repeated(void **state)
{
	const char *tolerance = "bfloat16=1e-3";
	struct shared_options o = shared_options_default();
	struct arena arena = {0};

	(void)state;
	assert_string_equal(shared_options_repeat(&o, &arena), "");
	o.index = true;
	o.seed = 3;
	o.atol = 0.5;
	o.isolation = "kept";
	o.tolerances = (struct words){&tolerance, 1};
	assert_string_equal(shared_options_repeat(&o, &arena),
			    " --staged --seed 3 --atol 0.5 --isolation kept --tolerance bfloat16=1e-3");
	arena_free(&arena);
}

/* Returns the words of a list in python/reftest_ray, with spaces around each word. */
static const char *coordinator_list(const char *name, struct arena *arena)
{
	struct buf text = {0};

	assert_int_equal(file_read(AT_FDCWD, "python/reftest_ray/reftest_ray/__main__.py", 1 << 20, &text, NULL, NULL), FILE_OK);
	const char *from = strstr(text.data, arena_printf(arena, "\n%s = ", name));

	assert_non_null(from);
	char *list = arena_printf(arena, "%.*s", (int)(strstr(from, ".split()") - from), from);

	for (char *at = list; *at != '\0'; at++)
		*at = *at == '"' || *at == '\n' || *at == '(' || *at == ')' ? ' ' : *at;
	buf_free(&text);
	return list;
}

static int words_in(const char *list)
{
	int count = 0;

	for (const char *at = list; (at = strstr(at, " --")) != NULL; at += 3)
		count++;
	return count;
}

static bool has_option(const struct command *command, const char *word)
{
	for (int i = 0; i < command->row_count; i++)
		if (strcmp(option_word(&command->rows[i]), word) == 0)
			return true;
	return false;
}

/* The coordinator of a fleet sets the options --root, --device and --jobs of `work` itself. Each other option of `work`
 * is also an option of `verify`, and the coordinator passes it on to the workers. */
static void the_coordinator_of_a_fleet_passes_every_option_of_work_on(void **state)
{
	static const char own[] = " --root --device --jobs ";
	struct arena arena = {0};
	const char *with_value = coordinator_list("SHARED_WITH_VALUE", &arena), *flags = coordinator_list("SHARED_FLAGS", &arena);
	int passed_on = 0;

	(void)state;
	for (int i = 0; i < command_work.row_count; i++) {
		const struct option_row *row = &command_work.rows[i];
		const char *word = arena_printf(&arena, " %s ", option_word(row));
		const char *list = row->kind == OPTION_FLAG ? flags : with_value;

		if (strstr(own, word) != NULL)
			continue;
		if (strstr(list, word) == NULL)
			fail_msg("%s of `work` is not in %s of python/reftest_ray/reftest_ray/__main__.py", option_word(row),
				 list == flags ? "SHARED_FLAGS" : "SHARED_WITH_VALUE");
		if (!has_option(&command_verify, option_word(row)))
			fail_msg("`work` has %s, but `verify` has not", option_word(row));
		passed_on++;
	}
	assert_int_equal(passed_on, words_in(with_value) + words_in(flags));
	arena_free(&arena);
}

static void clone_offers_every_repository(void **state)
{
	struct arena arena = {0};
	const char *all = "";

	(void)state;
	for (int i = 0; i < known_repository_count; i++)
		all = arena_printf(&arena, "%s%s%s", all, i > 0 ? "|" : "", known_repositories[i].name);
	for (int i = 0; i < command_clone.row_count; i++)
		if (strcmp(option_word(&command_clone.rows[i]), "--only") == 0) {
			assert_string_equal(command_clone.rows[i].choices, all);
			arena_free(&arena);
			return;
		}
	fail_msg("`clone` has no option --only");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(without_options_every_definition_gets_a_process_of_its_own),
	    cmocka_unit_test(an_option_reaches_the_run),
	    cmocka_unit_test(a_case_is_made_from_its_id),
	    cmocka_unit_test(invalid_values_are_refused),
	    cmocka_unit_test(options_that_change_a_case_are_repeated),
	    cmocka_unit_test(the_coordinator_of_a_fleet_passes_every_option_of_work_on),
	    cmocka_unit_test(clone_offers_every_repository),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
