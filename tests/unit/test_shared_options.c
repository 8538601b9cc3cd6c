/* test_shared_options - checks how the options that several commands share become members of struct run_options: the
 * defaults, the conversions and the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "cli/shared_options.h"

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

/* The ID says which cases must be made, whatever --sizes, --edge and --backward say. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(without_options_every_definition_gets_a_process_of_its_own),
	    cmocka_unit_test(an_option_reaches_the_run),
	    cmocka_unit_test(a_case_is_made_from_its_id),
	    cmocka_unit_test(invalid_values_are_refused),
	    cmocka_unit_test(options_that_change_a_case_are_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
