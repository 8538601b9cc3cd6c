/* test_run - checks which definitions a run reads, runs and stores. Some definitions are up to date, some are stale,
 * some change while their reference runs, some fail, and some are equal to others except for their names. Some runs are
 * interrupted, and some cannot store or run anything. */
#include "tests/unit/engine_world.h"

#include "engine/expected_seconds.h"

#define FIRST	    "definitions/rmsnorm/first_h64.json"
#define SECOND	    "definitions/rmsnorm/second_h64.json"
#define FIRST_TEXT  WORLD_DEFINITION("first_h64", "return hidden_states * weight")
#define SECOND_TEXT WORLD_DEFINITION("second_h64", "return weight * hidden_states")
#define EDITED_FIRST_TEXT WORLD_DEFINITION("first_h64", "return 2 * hidden_states * weight")
#define EDITED_TEXT WORLD_DEFINITION("second_h64", "return 2 * weight * hidden_states")

static void write_both(struct world *w)
{
	world_write(w, FIRST, "first_h64", FIRST_TEXT);
	world_write(w, SECOND, "second_h64", SECOND_TEXT);
}

static void run_once(struct world *w)
{
	world_run(w);
	world_end(w);
}

static enum status status_of(const struct world *w, const char *name)
{
	const struct result *result = world_result(w, name);

	assert_non_null(result);
	assert_true(result->known);
	return result->status;
}

static void a_new_definition_is_read_run_and_stored(void **state)
{
	struct world *w = *state;

	write_both(w);
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_PASSED);
	assert_int_equal(status_of(w, "second_h64"), STATUS_PASSED);
	assert_int_equal(world_count(w, "read:"), 2);
	assert_true(world_count(w, "run:first_h64/") > 0);
	assert_int_equal(world_count(w, "store:first_h64/"), world_count(w, "run:first_h64/"));
	assert_int_equal(world_count(w, "store:second_h64/"), world_count(w, "run:second_h64/"));
	assert_int_equal(world_count(w, "note:"), 2);
	world_end(w);
}

static void what_is_up_to_date_is_neither_read_nor_run(void **state)
{
	struct world *w = *state;

	write_both(w);
	run_once(w);
	w->options.details = false;
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_PASSED);
	assert_true(world_result(w, "first_h64")->from_summary);
	assert_int_equal(world_count(w, "read:") + world_count(w, "run:") + world_count(w, "store:"), 0);
	world_end(w);
}

/* reftest finds the stored summary of an earlier run even if the tolerances in reftest.toml have changed. Therefore it
 * must compare these tolerances separately. */
static void another_bound_of_the_dataset_makes_no_summary_count(void **state)
{
	struct world *w = *state;
	struct tolerance *bound = &w->options.cases.dataset_by_dtype[DTYPE_FLOAT32];

	write_both(w);
	w->options.details = false;
	w->options.cases.dataset_bounds = true;
	for (int i = 0; i < 3; i++) { /* the first two runs have the same tolerances */
		*bound = (struct tolerance){i < 2 ? 0.1 : 0.2, 0.1, -1};
		world_run(w);
		assert_int_equal(world_result(w, "first_h64")->from_summary, i == 1);
		assert_int_equal(world_count(w, "run:first_h64/") > 0, i != 1);
		world_end(w);
	}
}

static void a_file_that_was_touched_is_read_and_not_run(void **state)
{
	struct world *w = *state;

	write_both(w);
	run_once(w);
	world_write(w, SECOND, "second_h64", SECOND_TEXT);
	w->options.details = false;
	world_run(w);
	assert_int_equal(status_of(w, "second_h64"), STATUS_PASSED);
	assert_int_equal(world_count(w, "read:"), 1);
	assert_int_equal(world_count(w, "read:second_h64"), 1);
	assert_int_equal(world_count(w, "run:"), 0);
	assert_int_equal(world_count(w, "note:second_h64"), 1);
	world_end(w);
}

static void an_edited_definition_is_stale_and_no_other_runs(void **state)
{
	struct world *w = *state;

	write_both(w);
	run_once(w);
	world_write(w, SECOND, "second_h64", EDITED_TEXT);
	w->options.details = false;
	world_run(w);
	assert_int_equal(world_count(w, "run:first_h64/"), 0);
	assert_true(world_count(w, "run:second_h64/") > 0);
	assert_int_equal(world_count(w, "store:second_h64/"), world_count(w, "run:second_h64/"));
	world_end(w);
}

static void an_edit_of_a_comment_runs_nothing(void **state)
{
	struct world *w = *state;

	write_both(w);
	run_once(w);
	world_write(w, SECOND, "second_h64",
		    WORLD_DEFINITION("second_h64", "return weight * hidden_states  # in this order"));
	world_run(w);
	assert_int_equal(status_of(w, "second_h64"), STATUS_PASSED);
	assert_int_equal(world_count(w, "run:"), 0);
	world_end(w);
}

/* The judge makes a finding of a second, different epsilon in the description. Other sentences run nothing. */
static void another_statement_of_a_constant_runs_every_case(void **state)
{
	static const char text[] = FIRST_TEXT, epsilon[] = "Epsilon is 1e-6.";
	struct world *w = *state;
	const char *rest = strstr(text, epsilon) + strlen(epsilon);
	int head = (int)(rest - text);
	char more[2048], conflict[2048];

	snprintf(more, sizeof more, "%.*s It has rows.%s", head, text, rest);
	snprintf(conflict, sizeof conflict, "%.*s In Llama, epsilon is 1e-5.%s", head, text, rest);
	world_write(w, FIRST, "first_h64", text);
	run_once(w);
	world_write(w, FIRST, "first_h64", more);
	run_once(w);
	assert_int_equal(world_count(w, "run:"), 0);
	world_write(w, FIRST, "first_h64", conflict);
	run_once(w);
	assert_int_equal(world_count(w, "run:"), 2);
}

static void a_file_that_changes_while_its_reference_runs_stores_nothing(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->content[1].during = EDITED_TEXT;
	world_run(w);
	assert_true(world_result(w, "second_h64")->changed);
	assert_false(world_result(w, "first_h64")->changed);
	assert_int_equal(world_count(w, "store:second_h64/"), 0);
	assert_int_equal(world_count(w, "note:second_h64"), 0);
	assert_true(world_count(w, "store:first_h64/") > 0);
	world_end(w);

	world_run(w); /* the changed text of second_h64 has no verdict yet */
	assert_true(world_count(w, "run:second_h64/") > 0);
	assert_int_equal(world_count(w, "run:first_h64/"), 0);
	world_end(w);
}

static void a_failure_is_stored_too(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->fails = "second_h64";
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_PASSED);
	assert_int_equal(status_of(w, "second_h64"), STATUS_FAILED);
	assert_int_equal(world_count(w, "store:second_h64/"), world_count(w, "run:second_h64/"));
	world_end(w);

	world_run(w);
	assert_int_equal(status_of(w, "second_h64"), STATUS_FAILED);
	assert_int_equal(world_count(w, "run:"), 0);
	world_end(w);
}

static void force_runs_what_is_up_to_date(void **state)
{
	struct world *w = *state;

	write_both(w);
	run_once(w);
	int cases = world_count(w, "run:");

	w->options.force = true;
	world_run(w);
	assert_int_equal(world_count(w, "run:"), cases);
	world_end(w);
}

static void cached_only_runs_nothing(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->options.cached_only = true;
	world_run(w);
	assert_int_equal(world_count(w, "run:"), 0);
	assert_int_equal(status_of(w, "first_h64"), STATUS_SKIPPED);
	assert_int_equal(world_result(w, "first_h64")->reason, REASON_NOT_CACHED);
	world_end(w);
}

static void a_dry_run_runs_and_stores_nothing(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->options.dry_run = true;
	world_run(w);
	assert_int_equal(
	    world_count(w, "run:") + world_count(w, "store:") + world_count(w, "note:") + world_count(w, "count:"), 0);
	assert_false(world_result(w, "first_h64")->known);
	assert_false(world_result(w, "first_h64")->waiting);
	assert_true(w->run.misses[LACK_NOTHING_STORED] > 0);
	world_end(w);
}

/* With `forget`, a dry run frees the cases of each reported definition, so that a plan for a million definitions needs
 * little memory. */
static void a_dry_run_may_forget_what_was_reported(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->options.dry_run = w->options.forget = true;
	world_run(w);
	assert_int_equal(w->run.count, 2);
	for (int i = 0; i < w->run.count; i++) {
		assert_int_equal(w->run.results[i]->case_count, 0);
		assert_null(w->run.results[i]->arena.block);
		assert_false(w->run.results[i]->known);
	}
	world_end(w);
}

/* If two definitions with different names have the same reference and the same inputs, each of their cases runs only
 * once. */
static void equal_cases_run_once(void **state)
{
	struct world *w = *state;

	world_write(w, FIRST, "first_h64", FIRST_TEXT);
	world_write(w, SECOND, "second_h64", WORLD_DEFINITION("second_h64", "return hidden_states * weight"));
	world_run(w);
	assert_int_equal(world_count(w, "run:second_h64/"), 0);
	assert_int_equal(world_count(w, "store:second_h64/"), world_count(w, "run:first_h64/"));
	assert_true(world_result(w, "second_h64")->cases[0].shared);
	assert_int_equal(w->run.cases_run, world_count(w, "run:first_h64/"));
	world_end(w);
}

static void an_interrupted_run_keeps_what_it_has(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->interrupt_after = 1;
	world_run(w);
	assert_true(w->run.interrupted);
	assert_int_equal(world_count(w, "run:"), 1);
	assert_int_equal(world_count(w, "store:first_h64/"), 1);
	assert_int_equal(world_count(w, "note:"), 0);
	assert_false(world_result(w, "first_h64")->known);
	world_end(w);
}

/* Runs only the second case of first_h64, and then all its cases. Returns how many of them run then. */
static int run_after_one_case(struct world *w, int *all)
{
	char id[128];
	const char *const only[] = {id, NULL};

	world_write(w, FIRST, "first_h64", FIRST_TEXT);
	world_run(w);
	*all = world_result(w, "first_h64")->case_count;
	assert_true(*all > 1);
	snprintf(id, sizeof id, "%s", world_result(w, "first_h64")->cases[1].test->id);
	world_end(w);
	w->options.cases.only = only;
	w->options.force = true;
	run_once(w);
	assert_int_equal(world_count(w, "run:first_h64/"), 1);
	w->options.cases.only = NULL;
	w->options.force = false;
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_PASSED);
	world_end(w);
	return world_count(w, "run:first_h64/");
}

/* A reference that keeps something from one case to the next may pass a case alone that it fails after others. */
static void what_passes_alone_does_not_count_after_others(void **state)
{
	struct world *w = *state;
	int all;

	w->keeps_state = true;
	int again = run_after_one_case(w, &all);

	assert_int_equal(again, all);
	run_once(w);
	assert_int_equal(world_count(w, "run:"), 0);
}

/* If the process of the earlier cases ended, a case ran alone, although it was submitted after others. */
static void what_ran_in_a_second_process_does_not_count(void **state)
{
	struct world *w = *state;

	w->keeps_state = w->loses_process = true;
	world_write(w, FIRST, "first_h64", FIRST_TEXT);
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_PASSED);
	assert_false(world_result(w, "first_h64")->in_store);
	world_end(w);
	int all = world_count(w, "run:first_h64/");

	w->loses_process = false;
	w->options.details = false; /* a summary would suffice */
	world_run(w);
	assert_true(world_result(w, "first_h64")->in_store);
	world_end(w);
	assert_int_equal(world_count(w, "run:first_h64/"), all);
	w->options.details = true;
	run_once(w);
	assert_int_equal(world_count(w, "run:"), 0);
}

static void what_keeps_nothing_runs_in_any_order(void **state)
{
	int all;

	assert_int_equal(run_after_one_case(*state, &all), 0);
}

/* If one case must run, the cases before it must run again in the same process. */
static void an_interrupted_run_of_what_keeps_something_begins_again(void **state)
{
	struct world *w = *state;
	uint64_t signal;

	for (int keeps = 0; keeps < 2; keeps++) {
		w->keeps_state = keeps == 1;
		world_write(w, FIRST, "first_h64", keeps == 1 ? EDITED_FIRST_TEXT : FIRST_TEXT);
		w->interrupt_after = 1;
		run_once(w);
		assert_int_equal(read(w->signals, &signal, sizeof signal), sizeof signal);
		w->interrupt_after = 0;
		world_run(w);
		assert_int_equal(world_count(w, "run:first_h64/"),
				 world_result(w, "first_h64")->case_count - (keeps == 1 ? 0 : 1));
		world_end(w);
	}
}

static void a_runner_that_breaks_leaves_every_case_unverified(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->breaks = true;
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_SKIPPED);
	assert_int_equal(world_result(w, "second_h64")->reason, REASON_UNSUPPORTED_DEVICE);
	assert_int_equal(world_count(w, "store:"), 0);
	assert_int_equal(world_count(w, "close:runner"), 0); /* only the caller closes the runner, because the caller
							      * opened it */
	world_end(w);
}

static void what_cannot_be_stored_is_verified_again(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->full = true;
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_PASSED);
	assert_string_equal(w->run.not_stored, "no space left");
	assert_false(world_result(w, "first_h64")->in_store);
	assert_int_equal(world_count(w, "note:"), 0);
	world_end(w);
	w->full = false;
	world_run(w);
	assert_true(world_count(w, "run:first_h64/") > 0);
	world_end(w);
}

static void an_invalid_definition_costs_no_other(void **state)
{
	struct world *w = *state;

	write_both(w);
	world_write(w, FIRST, "first_h64", "{\"name\": 1}");
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_INVALID);
	assert_int_equal(status_of(w, "second_h64"), STATUS_PASSED);
	assert_int_equal(world_count(w, "run:first_h64/"), 0);
	world_end(w);
}

static void a_file_that_cannot_be_read_is_invalid(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->content[0].text = NULL;
	world_run(w);
	assert_int_equal(status_of(w, "first_h64"), STATUS_INVALID);
	assert_non_null(strstr(world_result(w, "first_h64")->message, "cannot be read"));
	assert_int_equal(status_of(w, "second_h64"), STATUS_PASSED);
	world_end(w);
}

/* A reference that reads a file depends on more than its text, so its verdicts are never stored. */
static void what_reads_more_than_its_inputs_is_never_stored(void **state)
{
	struct world *w = *state;

	world_write(w, FIRST, "first_h64", WORLD_DEFINITION("first_h64", "return open('x').read()"));
	world_run(w);
	assert_true(world_count(w, "run:first_h64/") > 0);
	assert_int_equal(world_count(w, "store:"), 0);
	assert_false(world_result(w, "first_h64")->in_store);
	world_end(w);
	world_run(w);
	assert_true(world_count(w, "run:first_h64/") > 0);
	world_end(w);
}

static double asked_seconds(const struct task *task)
{
	double seconds = 0;

	for (int i = 0; i < task->job_count; i++) {
		assert_true(task->seconds[i] > 0);
		seconds += task->seconds[i];
	}
	return seconds;
}

/* The runner starts with the longest task, so each task states how long it will probably take. The task states the
 * stored time, even if it was measured with an earlier text of the definition. If no time is stored, the task states an
 * estimate. */
static void a_task_says_how_long_it_took_last(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->slow = "second_h64";
	world_run(w);
	assert_int_equal(w->task_count, 2);
	assert_true(asked_seconds(&w->tasks[0]) < WORLD_SLOW_S && asked_seconds(&w->tasks[1]) < WORLD_SLOW_S);
	world_end(w);
	world_write(w, SECOND, "second_h64", EDITED_TEXT);
	w->options.force = true;
	world_run(w);
	assert_int_equal(w->task_count, 2);
	assert_true(asked_seconds(&w->tasks[0]) < WORLD_SLOW_S);
	assert_true(asked_seconds(&w->tasks[1]) == WORLD_SLOW_S * (double)w->tasks[1].job_count);
	world_end(w);
}

static void a_run_that_ends_at_a_failure_keeps_the_order_of_files(void **state)
{
	struct world *w = *state;

	write_both(w);
	w->options.fail_fast = true;
	world_run(w);
	assert_int_equal(w->task_count, 2);
	assert_true(w->tasks[0].seconds == NULL && w->tasks[1].seconds == NULL);
	world_end(w);
}

/* Without a stored time, the estimate depends on the family and on the sizes of the tensors. */
static void what_never_ran_is_estimated(void **state)
{
	static const int64_t small[] = {4, 64}, large[] = {4096, 64};
	static const struct op_axis axes[] = {{"batch_size", true, 0}, {"hidden_size", false, 64}};
	static const struct op_arg args[] = {{.name = "x", .dtype = DTYPE_FLOAT32, .rank = 2, .axis = {0, 1}}};
	static const struct input_source sources[] = {{.kind = SOURCE_RANDOM}};
	struct job job = {.problem = {.axes = axes, .axis_count = 2, .inputs = args, .input_count = 1,
				      .outputs = args, .output_count = 1},
			  .inputs = sources, .axis = small};
	double least = expected_seconds(0, "rope", &job);

	(void)state;
	assert_true(least > 0 && expected_seconds(0, NULL, &job) > 0);
	assert_true(expected_seconds(7, "rope", &job) == 7);
	job.axis = large;
	assert_true(expected_seconds(0, "rope", &job) > least);
	assert_true(expected_seconds(0, "sampling", &job) > expected_seconds(0, "rope", &job));
	assert_true(expected_seconds(0, "nobody_knows_it", &job) == expected_seconds(0, NULL, &job));
}

/* The field case.checks of a subject lists the checks. If the text of this field changes, every case with checks runs
 * again. */
static void the_subject_of_a_case_with_checks_names_them(void **state)
{
	struct world *w = *state;
	int found = 0;

	world_write(w, FIRST, "first_h64", FIRST_TEXT);
	w->options.cases.edge = w->options.details = true;
	world_run(w);
	const struct result *result = world_result(w, "first_h64");

	for (int i = 0; i < result->case_count; i++)
		for (int k = 0; k < result->cases[i].test->fields.count; k++)
			if (strcmp(result->cases[i].test->fields.items[k].tag, "case.checks") == 0) {
				assert_string_equal(result->cases[i].test->fields.items[k].value, "strided, rows, numerics");
				found++;
			}
	assert_int_equal(found, 1);
	world_end(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_new_definition_is_read_run_and_stored),
	    TEST(what_is_up_to_date_is_neither_read_nor_run),
	    TEST(another_bound_of_the_dataset_makes_no_summary_count),
	    TEST(a_file_that_was_touched_is_read_and_not_run),
	    TEST(an_edited_definition_is_stale_and_no_other_runs),
	    TEST(an_edit_of_a_comment_runs_nothing),
	    TEST(another_statement_of_a_constant_runs_every_case),
	    TEST(a_file_that_changes_while_its_reference_runs_stores_nothing),
	    TEST(a_failure_is_stored_too),
	    TEST(force_runs_what_is_up_to_date),
	    TEST(cached_only_runs_nothing),
	    TEST(a_dry_run_runs_and_stores_nothing),
	    TEST(a_dry_run_may_forget_what_was_reported),
	    TEST(equal_cases_run_once),
	    TEST(an_interrupted_run_keeps_what_it_has),
	    TEST(what_passes_alone_does_not_count_after_others),
	    TEST(what_ran_in_a_second_process_does_not_count),
	    TEST(what_keeps_nothing_runs_in_any_order),
	    TEST(an_interrupted_run_of_what_keeps_something_begins_again),
	    TEST(a_runner_that_breaks_leaves_every_case_unverified),
	    TEST(what_cannot_be_stored_is_verified_again),
	    TEST(an_invalid_definition_costs_no_other),
	    TEST(a_file_that_cannot_be_read_is_invalid),
	    TEST(what_reads_more_than_its_inputs_is_never_stored),
	    TEST(a_task_says_how_long_it_took_last),
	    TEST(a_run_that_ends_at_a_failure_keeps_the_order_of_files),
	    TEST(the_subject_of_a_case_with_checks_names_them),
	    cmocka_unit_test(what_never_ran_is_estimated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
