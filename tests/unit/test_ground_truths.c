/* test_ground_truths - which ground truths a run uses for an op family. On a GPU, a run uses the libraries whose tables
 * list the family, unless --ground-truth excludes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "engine/ground_truths.h"
#include "engine/solution_truth.h"
#include "tests/unit/folder.h"

/* A made-up table of ground truths by torch, which need not be installed. Torch is used for gemm by default, for
 * rmsnorm on request, and never for page. */
static const char table[] = "from reftest_providers import Row, Table\n"
			    "TABLES = (Table('torch', (), {'gemm': Row(None), 'rmsnorm': Row(None, on_request=True)},\n"
			    "                {'page': 'it has no pages'}),)\n";

/* Runs the tests in the root of the project. */
static int name_provider(void **state)
{
	char provider[4096];

	(void)state;
	if (getcwd(provider, sizeof provider - 32) == NULL)
		return -1;
	strcat(provider, "/python/provider.py");
	return setenv("REFTEST_PROVIDER", provider, 1);
}

/* Two tables, both of the library SGLang. One of the tables has no row for softmax. */
static const char two_tables[] = "from reftest_providers import Row, Table\n"
				 "TABLES = (Table('sglang', (), {'gemm': Row(None)}),\n"
				 "          Table('sgl_kernel', (), {'gemm': Row(None), 'softmax': Row(None)}))\n";

static int set_up(void **state)
{
	if (enter_folder(state) != 0)
		return -1;
	setenv("REFTEST_PROVIDERS", *state, 1);
	put("torch.py", table);
	return 0;
}

/* Returns the names of the ground truths that a run on an sm_90 GPU uses, separated by blanks. If `family` is NULL, the
 * definition has no family. */
static char *asked(const char *choice, const char *family, const struct own_truth *own, int own_count)
{
	struct program program = {.store = NULL};
	struct arena arena = {0};
	struct buf names = {0};
	struct truth_choice chosen;
	struct err err = {""};

	if (ground_truths_choose(&program, choice, "/usr/bin/python3", "sm_90", &arena, &chosen, &err) != 0)
		fail_msg("%s", err.text);
	if (chosen.trouble != NULL)
		fail_msg("%s", chosen.trouble);
	struct truths truths = ground_truths_for(&chosen, family == NULL ? NULL : op_by_name(family), own, own_count, NULL, &arena);
	for (int i = 0; i < truths.count; i++)
		buf_printf(&names, "%s%s", i > 0 ? " " : "", truths.items[i].name);
	arena_free(&arena);
	return names.data;
}

static void assert_asked_among(const struct own_truth *own, int own_count, const char *choice, const char *family,
			       const char *expected)
{
	char *names = asked(choice, family, own, own_count);

	assert_string_equal(names == NULL ? "" : names, expected);
	free(names);
}

static void assert_asked_with(const struct truth *truth, const char *choice, const char *family, const char *expected)
{
	const struct own_truth own = {.truth = *truth};

	assert_asked_among(&own, 1, choice, family, expected);
}

static void assert_asked(const char *choice, const char *family, const char *expected)
{
	const struct truth missing = {.name = "truth", .version = "none", .refused = "there is no file"};

	assert_asked_with(&missing, choice, family, expected);
}

/* A dataset may have a ground truth of its own. A run uses this ground truth for each definition without a family. For
 * a definition with a family, a run uses it only on request. */
static void the_datasets_own_truth_is_used_without_a_family_and_on_request(void **state)
{
	const struct truth own = {.name = "truth", .version = "1", .program = true};

	(void)state;
	assert_asked_with(&own, "auto", NULL, "truth");
	assert_asked_with(&own, "auto", "gemm", "torch builtin");
	assert_asked_with(&own, "all", NULL, "truth");
	assert_asked_with(&own, "all", "gemm", "torch builtin truth");
	assert_asked_with(&own, "truth,builtin", "gemm", "truth builtin");
	assert_asked_with(&own, "truth,builtin", NULL, "truth");
	assert_asked_with(&own, "builtin", NULL, "");
	assert_asked("auto", NULL, "");
	assert_asked("truth", "gemm", "truth"); /* "truth" cannot be used; it is listed nevertheless, so that the run
						 * reports it */
}

/* Solutions are used only if --ground-truth names them. --ground-truth can name all solutions, or those of a certain
 * name or author. */
static void solutions_are_used_if_they_are_named(void **state)
{
	const struct own_truth own[] = {
	    {.truth = {.name = "truth", .version = "1", .program = true}},
	    {.truth = {.name = "chain", .version = "none"}},
	    {.truth = {.name = "solution:a", .version = "2", .program = true}, .author = "ada"},
	    {.truth = {.name = "solution:b", .version = "3", .program = true}, .author = "baseline"},
	};

	(void)state;
	assert_asked_among(own, 4, "auto", NULL, "truth");
	assert_asked_among(own, 4, "all", "gemm", "torch builtin truth");
	assert_asked_among(own, 4, "solution", NULL, "solution:a solution:b");
	assert_asked_among(own, 4, "solution:b", "gemm", "solution:b");
	assert_asked_among(own, 4, "solution:ada,builtin", "gemm", "solution:a builtin");
	assert_asked_among(own, 4, "solution:baseline,solution", NULL, "solution:b solution:a");
	assert_asked_among(own, 4, "auto,solution:baseline", NULL, "truth solution:b");
	assert_asked_among(own, 4, "auto,solution:nobody", NULL, "truth");
	assert_asked_among(own, 4, "auto,solution", "gemm", "torch builtin solution:a solution:b");
	assert_asked_among(own, 4, "all,solution:a", "gemm", "torch builtin truth solution:a");
	assert_asked_among(own, 4, "solution:c", NULL, "solution:c"); /* solution c is listed although it cannot be
								       * used */
	assert_asked_among(own, 1, "solution", NULL, "solution");
}

static void more_solutions_than_a_case_can_use_are_no_silent_loss(void **state)
{
	struct own_truth own[GROUND_TRUTHS_MAX + 3] = {{.truth = {.name = "truth", .version = "1"}},
							    {.truth = {.name = "chain", .version = "1"}}};
	char names[GROUND_TRUTHS_MAX + 3][32];
	struct program program = {.store = NULL};
	struct arena arena = {0};
	struct truth_choice chosen;
	struct err err = {""};

	(void)state;
	for (int i = OWN_TRUTHS; i < GROUND_TRUTHS_MAX + 3; i++) {
		snprintf(names[i], sizeof names[i], "solution:%d", i);
		own[i] = (struct own_truth){.truth = {.name = names[i], .version = "1", .program = true}, .author = "ada"};
	}
	assert_int_equal(ground_truths_choose(&program, "solution", NULL, "cpu", &arena, &chosen, &err), 0);
	struct truths truths = ground_truths_for(&chosen, NULL, own, GROUND_TRUTHS_MAX + 3, NULL, &arena);

	assert_int_equal(truths.count, GROUND_TRUTHS_MAX);
	assert_non_null(strstr(truths.items[GROUND_TRUTHS_MAX - 1].refused, "more ground truths than one case can use"));
	/* a verdict by this ground truth, stored when the list was not too long, does not count */
	assert_string_not_equal(truths.items[GROUND_TRUTHS_MAX - 1].version, "1");
	assert_null(truths.items[GROUND_TRUTHS_MAX - 2].refused);
	assert_string_equal(truths.items[GROUND_TRUTHS_MAX - 2].version, "1");
	arena_free(&arena);
}

static void sglang_means_both_of_its_tables(void **state)
{
	(void)state;
	put("sglang.py", two_tables);
	assert_asked("sglang", "softmax", "sglang sgl_kernel");
	assert_asked("sglang,builtin", "gemm", "sglang sgl_kernel builtin");
	assert_asked("sgl_kernel,sglang", "gemm", "sgl_kernel sglang");
	assert_asked("sgl_kernel", "gemm", "sgl_kernel");
}

static void a_row_on_request_is_used_by_name_and_by_all_but_not_by_default(void **state)
{
	(void)state;
	assert_asked("auto", "gemm", "torch builtin");
	assert_asked("auto", "rmsnorm", "builtin");
	assert_asked("auto", "page", "builtin");
	assert_asked("all", "gemm", "torch builtin");
	assert_asked("all", "rmsnorm", "torch builtin");
	assert_asked("all", "page", "builtin");
	assert_asked("torch", "rmsnorm", "torch");
	assert_asked("builtin,torch", "rmsnorm", "builtin torch");
}

/* The list says which value of --ground-truth it is from, even if all ground truths of the list are named. */
static void a_list_keeps_the_value_of_the_option(void **state)
{
	static const struct {
		const char *text;
		enum truth_option option;
	} rows[] = {
	    {NULL, TRUTHS_OF_AUTO},	   {"auto", TRUTHS_OF_AUTO},   {"auto,builtin", TRUTHS_OF_AUTO},
	    {"all", TRUTHS_OF_ALL},	   {"all,builtin", TRUTHS_OF_ALL}, {"builtin", TRUTHS_NAMED},
	    {"torch,builtin", TRUTHS_NAMED},
	};
	const struct own_truth none = {.truth = {.name = TRUTH_NAME}};
	struct program program = {.store = NULL};
	struct arena arena = {0};
	struct err err = {""};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct truth_choice choice;

		assert_int_equal(ground_truths_choose(&program, rows[i].text, "/usr/bin/python3", "cpu", &arena, &choice, &err), 0);
		assert_int_equal(ground_truths_for(&choice, op_by_name("page"), &none, 1, NULL, &arena).option, rows[i].option);
	}
	assert_int_equal(ground_truths_builtin(op_by_name("page"), &arena).option, TRUTHS_NAMED);
	arena_free(&arena);
}

/* If a run uses a ground truth on request, the context that is stored with the run's verdicts names this ground truth.
 * Therefore a run without this ground truth does not reuse these verdicts. */
static void a_ground_truth_on_request_is_in_the_context_of_runs_that_use_it(void **state)
{
	struct program program = {.store = NULL};
	struct arena arena = {0};
	struct truth_choice automatic, all;
	struct err err = {""};

	(void)state;
	assert_int_equal(ground_truths_choose(&program, "auto", "/usr/bin/python3", "sm_90", &arena, &automatic, &err), 0);
	assert_int_equal(ground_truths_choose(&program, "all", "/usr/bin/python3", "sm_90", &arena, &all, &err), 0);
	assert_null(strstr(ground_truths_context(&automatic, &arena), "rmsnorm"));
	assert_non_null(strstr(ground_truths_context(&automatic, &arena), "gemm"));
	assert_non_null(strstr(ground_truths_context(&all, &arena), "rmsnorm"));
	arena_free(&arena);
}

static void the_path_of_a_solution_names_its_definition(void **state)
{
	static const char *const others[] = {"solutions/x.json", "solutions/x/d.json", "solutions/a/x/d/e/s.json",
					     "solutions/x/d/s.py", "solutions/x/d/.s.json", "definitions/x/d/s.json"};
	char definition[64];

	(void)state;
	assert_true(solution_definition_path("solutions/ada/x/d/s.json", definition, sizeof definition));
	assert_string_equal(definition, "definitions/x/d.json");
	assert_true(solution_definition_path("solutions/x/d/s.json", definition, sizeof definition));
	assert_string_equal(definition, "definitions/x/d.json");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		assert_false(solution_definition_path(others[i], definition, sizeof definition));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(solutions_are_used_if_they_are_named, set_up, leave_folder),
	    cmocka_unit_test(more_solutions_than_a_case_can_use_are_no_silent_loss),
	    cmocka_unit_test_setup_teardown(the_datasets_own_truth_is_used_without_a_family_and_on_request, set_up,
					    leave_folder),
	    cmocka_unit_test(the_path_of_a_solution_names_its_definition),
	    cmocka_unit_test_setup_teardown(sglang_means_both_of_its_tables, set_up, leave_folder),
	    cmocka_unit_test_setup_teardown(a_list_keeps_the_value_of_the_option, set_up, leave_folder),
	    cmocka_unit_test_setup_teardown(a_row_on_request_is_used_by_name_and_by_all_but_not_by_default, set_up,
					    leave_folder),
	    cmocka_unit_test_setup_teardown(a_ground_truth_on_request_is_in_the_context_of_runs_that_use_it, set_up,
					    leave_folder),
	};

	return cmocka_run_group_tests(tests, name_provider, NULL);
}
