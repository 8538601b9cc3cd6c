/* test_device_queue - checks how the tasks of a run are spread over several devices, what happens if a device fails
 * or lacks memory, and that no result is lost or reported twice. The devices are fakes that log their tasks, but the
 * last test has two real pools. */
#include "tests/unit/pool_world.h"

#include <sys/eventfd.h>

#include "engine/pool_case_runner.h"
#include "engine/device_queue.h"

enum { DEVICES = 3, TASKS = 24, JOBS = 4 };

/* A fake device; the test decides the results of this device. */
struct fake {
	struct task tasks[TASKS]; /* in the order in which they were submitted */
	int task_count;
	struct pool_result results[TASKS * JOBS]; /* results that are ready and not taken yet */
	int ready, taken;
	bool fails;      /* dispatch returns an error */
	bool closed;
	int dispatches;
	int event;       /* the event descriptor of the device */
	uint32_t layers; /* the layers of the sandbox; 0: not known */
	struct verdict verdict;
};

struct world {
	struct fake fakes[DEVICES];
	struct runner runner;
	struct job jobs[TASKS][JOBS];
	const struct job *lists[TASKS][JOBS];
	struct task tasks[TASKS];
	struct arena arena;
	int seen[TASKS][JOBS]; /* number of results that were returned to the caller, for each job */
	int guards_closed;
};

static char noted[4096];

static void note(const char *sentence)
{
	strcat(noted, sentence);
	strcat(noted, "\n");
}

static void fake_submit(void *self, const struct task *task)
{
	struct fake *fake = self;

	assert_in_range(fake->task_count, 0, TASKS - 1);
	fake->tasks[fake->task_count++] = *task;
}

static void fake_cancel(void *self, const void *owner)
{
	struct fake *fake = self;

	for (int i = 0; i < fake->task_count; i++)
		if (fake->tasks[i].owner == owner)
			fake->tasks[i].job_count = 0;
}

static int fake_fd(const void *self)
{
	return ((const struct fake *)self)->event;
}

static int fake_dispatch(void *self, struct err *err)
{
	struct fake *fake = self;

	fake->dispatches++;
	return fake->fails ? err_set(err, "the judge does not start") : 0;
}

static void *fake_next_owner(const void *self)
{
	const struct fake *fake = self;

	return fake->taken < fake->ready ? fake->results[fake->taken].owner : NULL;
}

static bool fake_next(void *self, struct arena *arena, struct pool_result *out)
{
	struct fake *fake = self;

	(void)arena;
	*out = fake->results[fake->taken++];
	return true;
}

static int fake_pending(const void *self)
{
	(void)self;
	fail_msg("the count of a device is not asked for");
	return 0;
}

static int fake_running(const void *self, struct pool_running *out, int most)
{
	const struct fake *fake = self;

	if (fake->task_count == 0 || most < 1)
		return 0;
	out[0] = (struct pool_running){.lane = 0, .job = fake->tasks[0].jobs[0]};
	return 1;
}

static struct pool_versions fake_versions(const void *self)
{
	(void)self;
	return (struct pool_versions){"2.13.0", "3.11.7"};
}

static bool fake_layers(const void *self, uint32_t *out)
{
	*out = ((const struct fake *)self)->layers;
	return *out != 0;
}

static void fake_close(void *self)
{
	struct fake *fake = self;

	assert_false(fake->closed);
	fake->closed = true;
}

static void guard_closed(void *context)
{
	struct world *w = context;

	for (int i = 0; i < DEVICES; i++)
		assert_true(w->fakes[i].closed);
	w->guards_closed++;
}

static int open_world(void **state)
{
	static const struct runner_calls calls = {fake_submit,	   fake_cancel,	 fake_fd,      fake_dispatch,
						  fake_next_owner, fake_next,	 fake_pending, fake_running,
						  fake_versions,	   fake_layers,	 fake_close};
	static const char *const names[] = {"cuda:0", "cuda:1", "cuda:2"};
	struct world *w = calloc(1, sizeof *w);
	struct device_runner devices[DEVICES];
	struct err err = {""};

	noted[0] = '\0';
	for (int i = 0; i < DEVICES; i++) {
		w->fakes[i].event = eventfd(0, EFD_CLOEXEC);
		devices[i] = (struct device_runner){names[i], {&calls, &w->fakes[i]}, i == 2 ? 2 : 1};
	}
	w->runner = device_queue(devices, DEVICES, note, guard_closed, w, &err);
	assert_non_null(w->runner.calls);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	w->runner.calls->close(w->runner.self);
	assert_int_equal(w->guards_closed, 1);
	for (int i = 0; i < DEVICES; i++)
		close(w->fakes[i].event);
	arena_free(&w->arena);
	free(w);
	return 0;
}

/* ---- steps of the tests ---- */

/* Submits the task with this number, which has `jobs` jobs of `seconds` seconds each. */
static void ask(struct world *w, int number, int jobs, double seconds)
{
	double *each = arena_array(&w->arena, JOBS, sizeof *each);

	for (int i = 0; i < jobs; i++) {
		each[i] = seconds;
		w->lists[number][i] = &w->jobs[number][i];
	}
	w->tasks[number] = (struct task){.name = "t", .jobs = w->lists[number], .seconds = each, .job_count = jobs,
					 .owner = &w->tasks[number]};
	w->runner.calls->submit(w->runner.self, &w->tasks[number]);
}

static void dispatch(struct world *w)
{
	struct err err = {""};

	if (w->runner.calls->dispatch(w->runner.self, &err) != 0)
		fail_msg("%s", err.text);
}

/* Lets the device finish a job of one of its tasks. */
static void finish(struct world *w, int device, const struct task *task, int job, enum reason reason)
{
	struct fake *fake = &w->fakes[device];
	struct verdict *verdict = arena_alloc(&w->arena, sizeof *verdict);

	*verdict = (struct verdict){.status = reason == REASON_NONE ? STATUS_PASSED : STATUS_SKIPPED, .reason = reason};
	fake->results[fake->ready++] = (struct pool_result){.owner = task->owner, .job = task->jobs[job], .verdict = verdict};
}

/* Takes all ready results. Returns their number. */
static int take_all(struct world *w)
{
	struct pool_result result;
	int count = 0;

	while (w->runner.calls->next_owner(w->runner.self) != NULL && w->runner.calls->next(w->runner.self, &w->arena, &result)) {
		for (int t = 0; t < TASKS; t++)
			for (int i = 0; i < JOBS; i++)
				w->seen[t][i] += result.job == &w->jobs[t][i];
		count++;
	}
	return count;
}

/* Lets all devices finish their jobs, except those that have failed, until no job is pending. */
static void finish_everything(struct world *w)
{
	int finished[DEVICES] = {0};

	for (int round = 0; w->runner.calls->pending(w->runner.self) > 0; round++) {
		assert_in_range(round, 0, 100);
		dispatch(w);
		for (int d = 0; d < DEVICES; d++)
			for (; !w->fakes[d].fails && finished[d] < w->fakes[d].task_count; finished[d]++)
				for (int i = 0; i < w->fakes[d].tasks[finished[d]].job_count; i++)
					finish(w, d, &w->fakes[d].tasks[finished[d]], i, REASON_NONE);
		take_all(w);
	}
}

static void expect_each_once(const struct world *w, int tasks, int jobs)
{
	for (int t = 0; t < tasks; t++)
		for (int i = 0; i < jobs; i++)
			if (w->seen[t][i] != 1)
				fail_msg("job %d of task %d has %d results", i, t, w->seen[t][i]);
}

static void a_device_gets_a_task_when_it_has_room(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 12; i++)
		ask(w, i, 1, i);
	assert_int_equal(w->fakes[0].task_count + w->fakes[1].task_count + w->fakes[2].task_count, 0);
	dispatch(w);
	assert_int_equal(w->fakes[0].task_count, 2); /* one task runs in the device's only lane, and one waits */
	assert_int_equal(w->fakes[1].task_count, 2);
	assert_int_equal(w->fakes[2].task_count, 4); /* two tasks run in the device's two lanes, and two wait */
	assert_int_equal(w->runner.calls->pending(w->runner.self), 12);
	finish(w, 1, &w->fakes[1].tasks[0], 0, REASON_NONE);
	assert_int_equal(take_all(w), 1);
	assert_int_equal(w->runner.calls->pending(w->runner.self), 11);
	dispatch(w);
	assert_int_equal(w->fakes[1].task_count, 3);
	assert_int_equal(w->fakes[0].task_count, 2);
}

static void few_tasks_are_spread_over_all_devices(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < DEVICES; i++)
		ask(w, i, 1, 1);
	dispatch(w);
	for (int d = 0; d < DEVICES; d++)
		assert_int_equal(w->fakes[d].task_count, 1);
}

static void the_longest_tasks_are_spread_first(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 9; i++)
		ask(w, i, 1, i);
	dispatch(w);
	assert_ptr_equal(w->fakes[2].tasks[0].owner, &w->tasks[8]);
	for (int d = 0; d < DEVICES; d++)
		for (int i = 0; i < w->fakes[d].task_count; i++)
			assert_true(w->fakes[d].tasks[i].seconds[0] >= 2); /* the shortest tasks (0 and 1 seconds)
									    * wait */
	finish_everything(w);
	expect_each_once(w, 9, 1);
}

static void urgent_tasks_come_first(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 12; i++)
		ask(w, i, 1, 9);
	dispatch(w);
	w->tasks[20] = w->tasks[0];
	w->tasks[20].urgent = true;
	w->tasks[20].owner = &w->tasks[20];
	w->runner.calls->submit(w->runner.self, &w->tasks[20]);
	finish(w, 0, &w->fakes[0].tasks[0], 0, REASON_NONE);
	take_all(w);
	dispatch(w);
	assert_ptr_equal(w->fakes[0].tasks[2].owner, &w->tasks[20]);
}

static void the_cases_of_a_device_that_fails_run_elsewhere(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 8; i++)
		ask(w, i, JOBS, i);
	dispatch(w);
	finish(w, 0, &w->fakes[0].tasks[0], 1, REASON_NONE); /* the caller takes this result before the device fails */
	take_all(w);
	finish(w, 0, &w->fakes[0].tasks[0], 2, REASON_NONE); /* the caller has not taken this result when the device
							      * fails */
	w->fakes[0].fails = true;
	dispatch(w);
	assert_string_equal(noted, "");
	assert_int_equal(take_all(w), 1);
	finish_everything(w);
	expect_each_once(w, 8, JOBS);
	assert_string_equal(noted, "cuda:0 is no longer used, and its cases run on the other devices: the judge does "
	    "not start\n");
	assert_true(w->fakes[0].closed && !w->fakes[1].closed);
	assert_int_equal(w->runner.calls->pending(w->runner.self), 0);
}

static void two_devices_may_fail_and_the_last_is_the_end(void **state)
{
	struct world *w = *state;
	struct err err = {""};

	for (int i = 0; i < 8; i++)
		ask(w, i, JOBS, i);
	dispatch(w);
	w->fakes[0].fails = w->fakes[1].fails = true;
	finish_everything(w);
	expect_each_once(w, 8, JOBS);
	assert_non_null(strstr(noted, "cuda:0 is no longer used"));
	assert_non_null(strstr(noted, "cuda:1 is no longer used"));
	ask(w, 8, 1, 1);
	w->fakes[2].fails = true;
	assert_int_equal(w->runner.calls->dispatch(w->runner.self, &err), -1);
	assert_string_equal(err.text, "cuda:2: the judge does not start");
}

static void a_lack_of_memory_is_tried_on_another_device(void **state)
{
	struct world *w = *state;
	int before;

	ask(w, 0, 2, 1);
	dispatch(w);
	assert_int_equal(w->fakes[2].task_count, 1);
	finish(w, 2, &w->fakes[2].tasks[0], 0, REASON_MEMORY);
	finish(w, 2, &w->fakes[2].tasks[0], 1, REASON_NONE);
	assert_int_equal(take_all(w), 1);
	assert_int_equal(w->runner.calls->pending(w->runner.self), 1);
	assert_int_equal(w->fakes[0].task_count + w->fakes[1].task_count, 1);
	before = w->fakes[0].task_count == 1 ? 0 : 1;
	assert_int_equal(w->fakes[before].tasks[0].job_count, 1);
	assert_ptr_equal(w->fakes[before].tasks[0].jobs[0], &w->jobs[0][0]);
	finish(w, before, &w->fakes[before].tasks[0], 0, REASON_MEMORY); /* after this second attempt there is no third
									  * one */
	assert_int_equal(take_all(w), 1);
	expect_each_once(w, 1, 2);
	assert_int_equal(w->runner.calls->pending(w->runner.self), 0);
}

static void the_device_that_lacks_memory_is_not_tried_again(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 7; i++)
		ask(w, i, 1, 1);
	dispatch(w);
	for (int i = 0; i < 2; i++)
		finish(w, 2, &w->fakes[2].tasks[i], 0, REASON_NONE);
	finish(w, 2, &w->fakes[2].tasks[2], 0, REASON_MEMORY);
	assert_int_equal(take_all(w), 2);
	assert_int_equal(w->fakes[2].task_count, 3);
	assert_int_equal(w->fakes[0].task_count + w->fakes[1].task_count, 5);
}

static void what_is_cancelled_runs_nowhere(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 9; i++)
		ask(w, i, 2, i);
	dispatch(w);
	for (int i = 0; i < 9; i += 2)
		w->runner.calls->cancel(w->runner.self, &w->tasks[i]);
	assert_int_equal(w->runner.calls->pending(w->runner.self), 8);
	w->fakes[0].fails = true;
	finish_everything(w);
	for (int t = 0; t < 9; t++)
		assert_int_equal(w->seen[t][0], t % 2);
}

static void events_of_every_device_wake_the_caller(void **state)
{
	struct world *w = *state;
	struct pollfd events = {w->runner.calls->fd(w->runner.self), POLLIN, 0};
	uint64_t one = 1;

	dispatch(w);
	assert_int_equal(poll(&events, 1, 0), 0);
	assert_int_equal(write(w->fakes[1].event, &one, sizeof one), sizeof one);
	assert_int_equal(poll(&events, 1, 0), 1);
	assert_int_equal(read(w->fakes[1].event, &one, sizeof one), sizeof one);
	assert_int_equal(poll(&events, 1, 0), 0);
	ask(w, 0, 1, 1);
	assert_int_equal(poll(&events, 1, 0), 1);
}

static void lanes_and_layers_are_those_of_all_devices(void **state)
{
	struct world *w = *state;
	struct pool_running running[8];
	uint32_t layers;

	for (int i = 0; i < 6; i++)
		ask(w, i, 1, 1);
	assert_false(w->runner.calls->layers(w->runner.self, &layers));
	w->fakes[1].layers = 7;
	w->fakes[2].layers = 13;
	assert_true(w->runner.calls->layers(w->runner.self, &layers));
	assert_int_equal(layers, 5);
	assert_string_equal(w->runner.calls->versions(w->runner.self).torch, "2.13.0");
	dispatch(w);
	assert_int_equal(w->runner.calls->running(w->runner.self, running, 8), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(running[i].lane, i);
	assert_int_equal(w->runner.calls->running(w->runner.self, running, 2), 2);
}

/* ---- two real pools ---- */

static void close_real_guard(void *context)
{
	pool_guard_close(context);
}

static struct pool *open_guarded(void)
{
	struct pool_options options = {.device = "cpu", .python = python(), .root = "/", .lanes = 1, .guarded = true,
				       .own = true, .timeout_s = GENEROUS_S, .judge = test_judge()};
	struct err err = {""};
	struct pool *pool = pool_open(&options, &err);

	if (pool == NULL)
		fail_msg("%s", err.text);
	return pool;
}

static void two_pools_share_a_run(void **state)
{
	enum { RUNS = 4 };
	static const struct job *const jobs[] = {&rmsnorm};
	static const char owners[RUNS];
	struct pool_guard guard = pool_guard_open();
	struct pool *pools[] = {open_guarded(), open_guarded()};
	const struct device_runner devices[] = {{"cpu", pool_runner(pools[0]), 1}, {"cpu", pool_runner(pools[1]), 1}};
	struct arena arena = {0};
	struct err err = {""};
	struct runner both = device_queue(devices, 2, note, close_real_guard, &guard, &err);
	struct pool_result result;
	bool used[2] = {false, false};

	(void)state;
	for (int i = 0; i < RUNS; i++) {
		const struct task task = {.name = "rmsnorm/rmsnorm_h64", .reference = CORRECT, .jobs = jobs, .job_count = 1,
					  .owner = (void *)(uintptr_t)&owners[i]};

		both.calls->submit(both.self, &task);
	}
	while (both.calls->pending(both.self) > 0) {
		struct pollfd events = {both.calls->fd(both.self), POLLIN, 0};

		assert_int_equal(poll(&events, 1, GENEROUS_S * 1000), 1);
		if (both.calls->dispatch(both.self, &err) != 0)
			fail_msg("%s", err.text);
		for (int i = 0; i < 2; i++)
			used[i] = used[i] || pool_next_owner(pools[i]) != NULL;
		while (both.calls->next(both.self, &arena, &result))
			expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	}
	assert_true(used[0] && used[1]);
	both.calls->close(both.self);
	arena_free(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_device_gets_a_task_when_it_has_room),
	    TEST(few_tasks_are_spread_over_all_devices),
	    TEST(the_longest_tasks_are_spread_first),
	    TEST(urgent_tasks_come_first),
	    TEST(the_cases_of_a_device_that_fails_run_elsewhere),
	    TEST(two_devices_may_fail_and_the_last_is_the_end),
	    TEST(a_lack_of_memory_is_tried_on_another_device),
	    TEST(the_device_that_lacks_memory_is_not_tried_again),
	    TEST(what_is_cancelled_runs_nowhere),
	    TEST(events_of_every_device_wake_the_caller),
	    TEST(lanes_and_layers_are_those_of_all_devices),
	    cmocka_unit_test(two_pools_share_a_run),
	};

	pool_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
