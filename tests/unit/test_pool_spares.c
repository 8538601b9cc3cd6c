/* test_pool_spares - spare runners, which the pool starts before a case needs them: which case gets a spare runner, and
 * when new ones are started. */
#include "tests/unit/pool_world.h"

#include "workers/pool/pool.c" /* included, because the test reads the lanes of struct pool */

enum { SLOW_S = 2, SPARES = 3 };

/* Patches for runner.py. With SLOW, a runner needs SLOW_S seconds to become ready, as on a GPU. With LONG, a runner
 * that is ready goes on with its warm-up for another minute. With FAILING, the warm-up of a ready runner fails. */
#define SLOW "warm_up = runner.warm_up\n" "runner.warm_up = lambda *how: (time.sleep(2), warm_up(*how))[1]\n"
#define LONG "runner.further_steps = lambda device: ((lambda: time.sleep(0.02)) for _ in range(3000))\n"
#define FAILING "runner.further_steps = lambda device: ((lambda: 1 / 0) for _ in range(3))\n"

/* Opens a pool whose spare runners are all ready. */
static struct pool *open_slow_pool(const char *patch)
{
	struct pool_options options = {.device = "cpu", .python = python(), .root = "/", .lanes = 1,
	                               .timeout_s = GENEROUS_S, .spares = SPARES, .judge = test_judge()};
	char path[64];
	struct err err = {""};
	struct pool *pool = open_patched_pool(&options, patch, path);

	pool_warm(pool);
	while (pool_spares(pool) < SPARES || !pool->shared.lanes[0].up) {
		struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

		assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
		assert_int_equal(pool_dispatch(pool, &err), 0);
	}
	unlink(path);
	return pool;
}

static void spares_made_ahead_answer_a_burst(void **state)
{
	struct setting warm = {.pool = open_slow_pool(SLOW)};
	int64_t start = clock_ms();

	(void)state;
	for (int i = 0; i < SPARES; i++) {
		struct pool_result result = verify(&warm, CORRECT);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	}
	if (clock_ms() - start >= SLOW_S * 1000)
		fail_msg("%d definitions waited for a runner: %lld ms", SPARES, (long long)(clock_ms() - start));
	pool_close(warm.pool);
	arena_free(&warm.arena);
}

static void a_spare_that_warms_on_makes_way(void **state)
{
	static const char *const patches[] = {LONG, FAILING};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct setting warm = {.pool = open_slow_pool(patches[i])};
		int64_t start = clock_ms();
		struct pool_result result = verify(&warm, CORRECT);

		expect(&result, STATUS_PASSED, REASON_NONE, NULL);
		if (clock_ms() - start > 20000)
			fail_msg("a definition waited %lld ms for a fully warmed-up runner",
			         (long long)(clock_ms() - start));
		pool_close(warm.pool);
		arena_free(&warm.arena);
	}
}

/* On a GPU, each spare runner uses memory of the device. If a case fails because the device lacks memory, the pool ends
 * the spare runners and runs the case again. */
static void spares_make_room_for_a_case_that_lacks_memory(void **state)
{
	struct setting warm = {.pool = open_slow_pool(SLOW)};
	static const int64_t huge[] = {(int64_t)1 << 40, HIDDEN};
	struct job large = rmsnorm;
	char *device = warm.pool->shared.device;

	(void)state;
	large.axis = huge;
	warm.pool->shared.device = strdup("one with little memory");
	assert_non_null(warm.pool->shared.device);
	struct pool_result result = verify_job(&warm, CORRECT, &large);

	expect(&result, STATUS_SKIPPED, REASON_MEMORY, NULL);
	assert_int_equal(pool_spares(warm.pool), 0); /* the new spare runners are not ready yet */
	result = verify(&warm, CORRECT);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	free(warm.pool->shared.device);
	warm.pool->shared.device = device;
	pool_close(warm.pool);
	arena_free(&warm.arena);
}

/* On a GPU, starting a runner takes long, so spare runners are started even while cases wait. On the CPU, starting a
 * runner would delay the waiting cases, so spare runners are started only when the pool is idle. */
static void spares_are_made_anew_when_they_do_not_disturb(void **state)
{
	static const struct {
		const char *device;
		bool warm;
		int spares, waiting, working;
		bool refill;
	} rows[] = {
	    {"cpu", true, 0, 0, 0, true},     {"cpu", true, 0, 1, 0, false},    {"cpu", true, 0, 0, 1, false},
	    {"cpu", false, 0, 0, 0, false},   {"cuda:0", true, 4, 0, 0, true},  {"cuda:0", true, 0, 1, 0, true},
	    {"cuda:0", true, 2, 0, 1, false}, {"cuda:0", true, 1, 0, 1, true},  {"cuda:0", true, 0, 1, 1, true},
	    {"cuda:0", false, 0, 1, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct child children[4] = {{.state = CHILD_NONE}};
		char device[16];
		struct pool pool = {.warm = rows[i].warm,
				    .shared = {.device = device, .runners = {.children = children, .room = 4}}};

		snprintf(device, sizeof device, "%s", rows[i].device);
		for (int k = 0; k < rows[i].spares; k++)
			children[k].state = CHILD_SPARE;
		if (may_refill(&pool, rows[i].waiting, rows[i].working) != rows[i].refill)
			fail_msg("row %zu is wrong", i);
	}
}

static void queued_tasks_get_no_runner_while_a_case_runs_alone(void **state)
{
	struct queued queued = {.task = {.name = "queued"}}, retried = {.alone = true}, given = {.alone = true};
	struct lane lanes[2] = {{.phase = LANE_WAITING, .work = &given}, {.phase = LANE_IDLE}};
	struct pool pool = {.shared = {.device = "cuda:0", .lanes = lanes, .lane_count = 2}};

	(void)state;
	given.isolation = ISOLATION_OWN;
	pool.queue.first = &queued;
	pool.shared.alone.first = &retried;
	assert_int_equal(spares_wanted(&pool).fresh + spares_wanted(&pool).any, 1);
	given.alone = false;
	assert_int_equal(spares_wanted(&pool).fresh + spares_wanted(&pool).any, 2);
}

/* On a GPU with much free memory, runners are started for more queued tasks than there are lanes. */
static void runners_are_started_ahead_where_memory_is_free(void **state)
{
	static const struct {
		const char *device;
		int64_t gpu_free;
		int queued, wanted;
		bool warm, lacked_memory;
	} rows[] = {
	    {"cpu", 0, 20, 2, false, false},
	    {"cuda:0", 0, 20, 2, false, false},
	    {"cuda:0", memory_for_ahead - 1, 20, 2, false, false},
	    {"cuda:0", 3 * memory_for_ahead, 20, 5, false, false},
	    {"cuda:0", 3 * memory_for_ahead, 4, 4, false, false},
	    {"cuda:0", 100 * memory_for_ahead, 20, 2 + AHEAD_MOST, false, false},
	    {"cuda:0", 3 * memory_for_ahead, 20, 2, true, false},
	    {"cuda:0", 3 * memory_for_ahead, 20, 2, false, true},
	};
	static struct queued queued[20], alone = {.alone = true};
	struct lane lanes[2] = {{.phase = LANE_IDLE}, {.phase = LANE_IDLE}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char device[16];
		struct pool pool = {.warm = rows[i].warm, .queue = {.first = &queued[0]},
				    .shared = {.device = device, .lanes = lanes, .lane_count = 2,
					       .runners = {.gpu_free = rows[i].gpu_free}}};

		pool.shared.alone.first = rows[i].lacked_memory ? &alone : NULL;
		snprintf(device, sizeof device, "%s", rows[i].device);
		for (int k = 0; k < rows[i].queued; k++)
			queued[k] = (struct queued){.isolation = ISOLATION_OWN,
						    .next = k + 1 < rows[i].queued ? &queued[k + 1] : NULL};
		if (spares_wanted(&pool).fresh != rows[i].wanted)
			fail_msg("row %zu: %d runners are wanted", i, spares_wanted(&pool).fresh);
	}
}

/* A case that runs alone, because it lacked memory, waits until the runners that ended before it have freed theirs. */
static void a_case_that_runs_alone_waits_for_runners_that_end(void **state)
{
	char device[] = "cpu";
	struct queued work = {.alone = true, .isolation = ISOLATION_OWN};
	struct child children[1] = {{.state = CHILD_ENDING}};
	struct pool_shared shared = {.device = device, .runners = {.children = children, .room = 1}};
	struct lane lane = {.phase = LANE_WAITING, .judge = {.pid = 1}, .up = true, .work = &work,
			    .truth = {.run_fd = -1, .deadline = INT64_MAX}};
	struct err err = {""};

	(void)state;
	shared.lanes = &lane;
	shared.lane_count = 1;
	assert_int_equal(lane_advance(&shared, &lane, &err), 0);
	assert_true(lane.alone_by > 0);
	children[0].state = CHILD_NONE;
	assert_int_equal(lane_advance(&shared, &lane, &err), 0);
	assert_int_equal(lane.alone_by, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(spares_made_ahead_answer_a_burst),
	    cmocka_unit_test(a_spare_that_warms_on_makes_way),
	    cmocka_unit_test(spares_make_room_for_a_case_that_lacks_memory),
	    cmocka_unit_test(spares_are_made_anew_when_they_do_not_disturb),
	    cmocka_unit_test(queued_tasks_get_no_runner_while_a_case_runs_alone),
	    cmocka_unit_test(runners_are_started_ahead_where_memory_is_free),
	    cmocka_unit_test(a_case_that_runs_alone_waits_for_runners_that_end),
	};
	pool_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
