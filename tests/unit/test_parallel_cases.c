/* test_parallel_cases - checks which cases of a task may move to an idle lane (a judge and its runner). Several lanes
 * run the cases of a slow definition only if its reference keeps no data from one case to the next. The verdicts are
 * the same as with one lane. */
#include "tests/unit/pool_world.h"

#include <math.h>

#include "workers/pool/pool.c" /* included, because the test reads the lanes of struct pool */

enum { CASES = 6 };

static const double one_second[CASES] = {1, 1, 1, 1, 1, 1};

static struct queued *new_work(const double *seconds, int count)
{
	static const struct job *const jobs[CASES] = {&rmsnorm, &rmsnorm, &rmsnorm, &rmsnorm, &rmsnorm, &rmsnorm};
	const struct task task = {.name = "rmsnorm/rmsnorm_h64", .jobs = jobs, .seconds = seconds, .job_count = count};
	struct queued *work = queued_new(&task);

	work->separable = SEPARABLE_YES;
	isolation_set(work, "a test");
	return work;
}

/* ---- which cases move ---- */

static void half_of_the_seconds_that_are_left_move(void **state)
{
	static const double seconds[CASES] = {1, 1, 1, 1, 4, 1};
	struct queued *work = new_work(seconds, CASES), *part;

	(void)state;
	work->job = 1; /* the case with this index is running */
	assert_true(parallel_cases_seconds(work) == 7);
	part = parallel_cases_take(work);
	assert_int_equal(work->task.job_count, 4);
	assert_int_equal(part->task.job_count, 2);
	assert_ptr_equal(part->task.jobs, work->task.jobs + 4);
	assert_ptr_equal(part->task.seconds, seconds + 4);
	assert_int_equal(part->job, 0);
	assert_int_equal(part->isolation, ISOLATION_OWN);
	assert_string_equal(part->own_because, "a test");
	assert_true(parallel_cases_seconds(part) == 1);
	queued_free(part);
	part = parallel_cases_take(work);
	assert_int_equal(part->task.job_count, 1);
	assert_int_equal(work->task.job_count, 3);
	queued_free(part);
	queued_free(work);
}

static void the_case_that_runs_never_moves(void **state)
{
	struct queued *work = new_work(one_second, 2), *part = parallel_cases_take(work);

	(void)state;
	assert_int_equal(work->task.job_count, 1);
	assert_true(parallel_cases_seconds(work) == 0 && parallel_cases_seconds(part) == 0);
	queued_free(part);
	queued_free(work);
}

static void what_must_stay_together_has_no_seconds_to_give(void **state)
{
	struct queued *work = new_work(one_second, CASES);

	(void)state;
	assert_true(parallel_cases_seconds(work) == CASES - 1);
	work->separable = SEPARABLE_NO;
	assert_true(parallel_cases_seconds(work) == 0);
	work->separable = SEPARABLE_UNKNOWN;
	assert_true(parallel_cases_seconds(work) == CASES - 1);
	work->alone = true;
	assert_true(parallel_cases_seconds(work) == 0);
	work->alone = false;
	work->isolation = ISOLATION_UNKNOWN;
	assert_true(parallel_cases_seconds(work) == 0);
	work->isolation = ISOLATION_KEPT;
	work->reached = strdup("it opens a file");
	assert_true(parallel_cases_seconds(work) == 0);
	free(work->reached);
	work->reached = NULL;
	work->failure = strdup("{}");
	assert_true(parallel_cases_seconds(work) == 0);
	queued_free(work);
}

static void a_task_may_forbid_it(void **state)
{
	static const struct truth_program program = {.name = "truth"};
	struct job unknown = rmsnorm;
	const struct job *const known[] = {&rmsnorm, &rmsnorm}, *const one_unknown[] = {&rmsnorm, &unknown};
	struct task task = {.jobs = known, .job_count = 2, .seconds = one_second};

	(void)state;
	assert_true(parallel_cases_by_task(&task));
	task.seconds = NULL;
	assert_false(parallel_cases_by_task(&task));
	task.seconds = one_second;
	task.programs = &program;
	task.program_count = 1;
	assert_false(parallel_cases_by_task(&task));
	task.program_count = 0;
	unknown.constants[0].value = NAN;
	task.jobs = one_unknown;
	assert_false(parallel_cases_by_task(&task));
}

/* ---- in a pool ---- */

/* The source code of a slow reference that returns `value`. The reference keeps no data from one case to the next,
 * unless the code in `more` does so. */
#define SLOW(more, value)                                                                                              \
	"import torch\n" more "def run(hidden_states, weight):\n    x, w = hidden_states, weight\n"                     \
	"    for i in range(1500):\n        torch.matmul(torch.ones(64, 64), torch.ones(64, 64))\n"                    \
	"    y = x * torch.rsqrt(x.double().pow(2).mean(-1, keepdim=True) + 1e-6).float() * w\n    return " value "\n"

/* Runs the cases in a pool with several lanes. Returns the largest number of lanes that worked on the cases at once. */
static int lanes_at_work(struct setting *setting, const struct task *task, bool own, enum status expected)
{
	struct pool *pool = setting->pool;
	struct err err = {""};
	struct pool_result result;
	int most = 0, count = 0, seen[CASES] = {0};

	pool->own = own;
	pool_submit(pool, task);
	while (pool_pending(pool) > 0) {
		struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};
		int working = 0;

		assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
		assert_int_equal(pool_dispatch(pool, &err), 0);
		for (int i = 0; i < pool->shared.lane_count; i++)
			working += pool->shared.lanes[i].work != NULL && pool->shared.lanes[i].work->task.owner == task->owner;
		most = working > most ? working : most;
		while (pool_next(pool, &setting->arena, &result)) {
			expect(&result, expected, expected == STATUS_FAILED ? REASON_NUMERIC : REASON_NONE, NULL);
			for (int i = 0; i < task->job_count; i++)
				seen[i] += task->jobs[i] == result.job;
			count++;
		}
	}
	assert_int_equal(count, task->job_count);
	for (int i = 0; i < count; i++)
		assert_int_equal(seen[i], 1);
	return most;
}

struct cases {
	struct job jobs[CASES];
	const struct job *list[CASES];
	struct task task;
};

static void fill(struct cases *cases, const char *reference)
{
	for (int i = 0; i < CASES; i++) {
		cases->jobs[i] = rmsnorm;
		cases->jobs[i].seed = (uint64_t)i;
		cases->list[i] = &cases->jobs[i];
	}
	cases->task = (struct task){.name = "rmsnorm/rmsnorm_h64", .reference = reference, .jobs = cases->list,
				    .seconds = one_second, .job_count = CASES, .owner = cases};
}

static void idle_lanes_take_cases_of_a_slow_definition(void **state)
{
	struct cases cases;

	fill(&cases, SLOW("", "y"));
	assert_true(lanes_at_work(*state, &cases.task, true, STATUS_PASSED) > 1);
	assert_true(lanes_at_work(*state, &cases.task, false, STATUS_PASSED) > 1);
	fill(&cases, SLOW("", "2 * y"));
	assert_true(lanes_at_work(*state, &cases.task, true, STATUS_FAILED) > 1);
}

static void cases_that_could_see_each_other_stay_together(void **state)
{
	struct cases cases;

	fill(&cases, SLOW("seen = []\n", "y"));
	assert_int_equal(lanes_at_work(*state, &cases.task, true, STATUS_PASSED), 1);
	fill(&cases, SLOW("import os\n", "y"));
	assert_int_equal(lanes_at_work(*state, &cases.task, true, STATUS_PASSED), 1);
}

static void what_a_user_waits_for_stays_together(void **state)
{
	struct cases cases;

	fill(&cases, SLOW("", "y"));
	cases.task.urgent = true;
	assert_int_equal(lanes_at_work(*state, &cases.task, true, STATUS_PASSED), 1);
}

static void short_cases_are_not_worth_a_runner(void **state)
{
	static const double seconds[CASES] = {1, 0.01, 0.01, 0.01, 0.01, 0.01};
	struct cases cases;

	fill(&cases, SLOW("", "y"));
	cases.task.seconds = seconds;
	assert_int_equal(lanes_at_work(*state, &cases.task, true, STATUS_PASSED), 1);
}

static void cancelling_stops_every_part(void **state)
{
	struct setting *setting = *state;
	struct pool *pool = setting->pool;
	struct err err = {""};
	struct cases cases;
	int working = 0;

	pool->own = true;
	fill(&cases, SLOW("", "y"));
	pool_submit(pool, &cases.task);
	while (working < 2) {
		struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

		assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
		assert_int_equal(pool_dispatch(pool, &err), 0);
		working = 0;
		for (int i = 0; i < 3; i++)
			working += pool->shared.lanes[i].work != NULL;
	}
	pool_cancel(pool, &cases);
	assert_int_equal(pool_pending(pool), 0);
	assert_null(pool_next_owner(pool));
	expect_all_is_well(setting);
}

static int open_lanes(void **state)
{
	struct setting *setting = calloc(1, sizeof *setting);

	assert_non_null(setting);
	setting->pool = open_pool(3, GENEROUS_S, false);
	*state = setting;
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(half_of_the_seconds_that_are_left_move),
	    cmocka_unit_test(the_case_that_runs_never_moves),
	    cmocka_unit_test(what_must_stay_together_has_no_seconds_to_give),
	    cmocka_unit_test(a_task_may_forbid_it),
	    cmocka_unit_test(idle_lanes_take_cases_of_a_slow_definition),
	    cmocka_unit_test(cases_that_could_see_each_other_stay_together),
	    cmocka_unit_test(what_a_user_waits_for_stays_together),
	    cmocka_unit_test(short_cases_are_not_worth_a_runner),
	    cmocka_unit_test(cancelling_stops_every_part),
	};

	pool_main(argc, argv);
	return cmocka_run_group_tests(tests, open_lanes, tear_down);
}
