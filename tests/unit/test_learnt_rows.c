/* test_learnt_rows - if the rows along an axis are independent of each other in the first case of a definition, they
 * must also be independent in later cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/learnt_rows.h"

enum { CASES = 3 };

/* A result with three cases. For each case, `said` has a word for each axis: "n+ s-" means that rows are independent
 * along n, but not along s. */
struct world {
	struct result result;
	struct case_result cases[CASES];
	struct test_case tests[CASES];
	struct job jobs[CASES];
	struct input_source sources[CASES];
	struct verdict verdicts[CASES];
	struct check checks[CASES];
	struct check_axis axes[CASES][2];
	char names[CASES][2][2];
};

static void say(struct world *w, const char *const said[CASES])
{
	memset(w, 0, sizeof *w);
	w->result.cases = w->cases;
	w->result.case_count = CASES;
	for (int i = 0; i < CASES; i++) {
		w->checks[i] = (struct check){.name = "rows", .result = CHECK_HOLDS, .evidence = "as said", .axes = w->axes[i]};
		for (const char *at = said[i]; *at != '\0'; at += 2 + (at[2] == ' ')) {
			char *name = w->names[i][w->checks[i].axis_count];

			name[0] = *at;
			w->axes[i][w->checks[i].axis_count++] = (struct check_axis){name, at[1] == '+'};
			if (at[1] == '-')
				w->checks[i].result = CHECK_PROPERTY;
		}
		w->sources[i].kind = SOURCE_RANDOM;
		w->jobs[i].inputs = &w->sources[i];
		w->jobs[i].problem.input_count = 1;
		w->tests[i] = (struct test_case){.id = i == 0 ? "first" : "later", .job = &w->jobs[i]};
		w->verdicts[i] = (struct verdict){.status = STATUS_CHECKED, .checks = &w->checks[i], .check_count = 1};
		w->cases[i] = (struct case_result){.test = &w->tests[i], .verdict = &w->verdicts[i]};
	}
}

static void expect_statuses(struct world *w, enum status one, enum status two, enum status three)
{
	learn_rows(&w->result);
	assert_int_equal(w->cases[0].verdict->status, one);
	assert_int_equal(w->cases[1].verdict->status, two);
	assert_int_equal(w->cases[2].verdict->status, three);
}

static void what_is_so_in_all_cases_is_a_property(void **state)
{
	(void)state;
	struct world w;

	say(&w, (const char *const[]){"n- s+", "n- s+", "n-"});
	expect_statuses(&w, STATUS_CHECKED, STATUS_CHECKED, STATUS_CHECKED);
	say(&w, (const char *const[]){"", "n-", "n+"});
	expect_statuses(&w, STATUS_CHECKED, STATUS_CHECKED, STATUS_CHECKED);
	arena_free(&w.result.arena);
}

static void rows_that_were_independent_stay_so(void **state)
{
	(void)state;
	struct world w;

	say(&w, (const char *const[]){"n+ s+", "n+ s-", "s+"});
	expect_statuses(&w, STATUS_CHECKED, STATUS_SKIPPED, STATUS_CHECKED);
	assert_int_equal(w.cases[1].verdict->checks[0].result, CHECK_FAILS);
	assert_non_null(strstr(w.cases[1].verdict->message, "rows along 's' are independent of each other in case first"));
	assert_int_equal(w.verdicts[1].status, STATUS_CHECKED); /* the stored verdict is unchanged */
	learn_rows(&w.result);
	const char *said = strstr(w.cases[1].verdict->checks[0].evidence, "in case first");

	assert_non_null(said);
	assert_null(strstr(said + 1, "in case first")); /* the second call of learn_rows adds no message */
	arena_free(&w.result.arena);
}

static void an_axis_is_learnt_in_the_first_case_that_has_it(void **state)
{
	(void)state;
	struct world w;

	say(&w, (const char *const[]){"n+", "s+", "s-"});
	w.verdicts[0].check_count = 0;
	expect_statuses(&w, STATUS_CHECKED, STATUS_CHECKED, STATUS_SKIPPED);
	w.cases[1].verdict = NULL; /* case 1 has no verdict, so it shows nothing about axis s */
	w.cases[2].verdict = &w.verdicts[2];
	learn_rows(&w.result);
	assert_int_equal(w.cases[2].verdict->status, STATUS_CHECKED);
	arena_free(&w.result.arena);
}

static void known_inputs_make_it_a_failure(void **state)
{
	(void)state;
	struct world w;

	say(&w, (const char *const[]){"n+", "n+", "n-"});
	w.sources[2].kind = SOURCE_SAFETENSORS;
	expect_statuses(&w, STATUS_CHECKED, STATUS_CHECKED, STATUS_FAILED);
	assert_int_equal(w.cases[2].verdict->reason, REASON_NUMERIC);
	arena_free(&w.result.arena);
}

/* If a case passed because it agrees with a ground truth, the check `rows` does not change its status. If the run asked
 * for checks, the case gets a finding instead. */
static void a_ground_truth_decides(void **state)
{
	(void)state;
	struct world w;

	say(&w, (const char *const[]){"n+", "n-", "n-"});
	w.verdicts[1].status = STATUS_PASSED;
	expect_statuses(&w, STATUS_CHECKED, STATUS_PASSED, STATUS_SKIPPED);
	assert_int_equal(w.cases[1].verdict->finding_count, 0);
	arena_free(&w.result.arena);
	say(&w, (const char *const[]){"n+", "n-", "n+"});
	for (int i = 0; i < CASES; i++) {
		w.verdicts[i].status = STATUS_PASSED;
		w.jobs[i].checks = true;
	}
	w.verdicts[1].findings = (const char *const[]){"another"};
	w.verdicts[1].finding_count = 1;
	for (int turn = 0; turn < 2; turn++)
		expect_statuses(&w, STATUS_PASSED, STATUS_PASSED, STATUS_PASSED);
	assert_int_equal(w.cases[1].verdict->finding_count, 2);
	assert_string_equal(w.cases[1].verdict->findings[0], "another");
	assert_non_null(strstr(w.cases[1].verdict->findings[1], "rows: rows along 'n' are independent of each other in case first"));
	assert_int_equal(w.cases[2].verdict->finding_count, 0);
	arena_free(&w.result.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_is_so_in_all_cases_is_a_property),
	    cmocka_unit_test(rows_that_were_independent_stay_so),
	    cmocka_unit_test(an_axis_is_learnt_in_the_first_case_that_has_it),
	    cmocka_unit_test(known_inputs_make_it_a_failure),
	    cmocka_unit_test(a_ground_truth_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
