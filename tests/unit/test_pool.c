/* test_pool - a pool with real judges and a real Python: event loops, workers that another process kills, processes
 * that are left after the pool closes, and cases that need more than one run of a reference. */
#include "tests/unit/pool_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>

/* the test reads a variable of the pool: whether a case waits for its second attempt */
#include "workers/pool/pool.c"

/* --- event loops, and processes that are killed from outside ------------------------------------------------------ */

static void endless_loops_are_ended(void **state)
{
	struct setting slow = {.pool = open_pool(1, 1, false)};
	struct pool_result result = verify(&slow, HEAD RUN "    print('round and round', flush=True)\n    while True: pass\n");

	(void)state;
	expect(&result, STATUS_ERROR, REASON_TIMEOUT, "the reference did not answer within 1 s");
	assert_string_equal(result.printed, "round and round\n");
	assert_false(result.keep);
	result = verify(&slow, "while True: pass\n");
	expect(&result, STATUS_ERROR, REASON_TIMEOUT, "the reference did not load within 1 s");
	result = verify(&slow, HEAD RUN "    time.sleep(600)\n");
	expect(&result, STATUS_ERROR, REASON_TIMEOUT, NULL);
	expect_all_is_well(&slow);
	pool_close(slow.pool);
	arena_free(&slow.arena);
}

/* Returns the parent of a process, or 0 if the process does not exist. */
static pid_t parent_of(const char *pid)
{
	char path[64], text[512] = "";
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
	if ((file = fopen(path, "re")) == NULL)
		return 0;
	if (fread(text, 1, sizeof text - 1, file) > 0 && strrchr(text, ')') != NULL)
		sscanf(strrchr(text, ')') + 1, " %*c %d", &parent);
	fclose(file);
	return parent;
}

/* Appends the content of /proc/PID/NAME to `text`. */
static void append_proc(const char *pid, const char *name, char *text, size_t size)
{
	char path[64];
	size_t length = strlen(text);
	FILE *file;

	snprintf(path, sizeof path, "/proc/%.20s/%.20s", pid, name);
	if ((file = fopen(path, "re")) == NULL)
		return;
	size_t end = length + fread(text + length, 1, size - length - 1, file);

	fclose(file);
	for (size_t i = length; i < end; i++)
		text[i] = text[i] == '\0' ? ' ' : text[i];
	text[end] = '\0';
}

enum { CHILDREN_MAX = 16 };

/* Finds the child processes whose name or command line contains `word`, and returns their number. A child that forked,
 * but did not call exec, has the command line of its parent. */
static int find_children(const char *word, pid_t *children)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while ((entry = readdir(proc)) != NULL) {
		char text[4096] = "";

		if (parent_of(entry->d_name) != getpid())
			continue;
		append_proc(entry->d_name, "comm", text, sizeof text);
		append_proc(entry->d_name, "cmdline", text, sizeof text);
		if (strstr(text, word) != NULL && found < CHILDREN_MAX)
			children[found++] = (pid_t)atoi(entry->d_name);
	}
	closedir(proc);
	return found;
}

/* Sends a signal to the child processes whose name or command line contains `word`, and returns their number. Finds all
 * these children before it sends the first signal, because the children of a killed child become children of this
 * process. */
static int signal_children(const char *word, int number)
{
	pid_t children[CHILDREN_MAX];
	int found = find_children(word, children);

	for (int i = 0; i < found; i++)
		kill(children[i], number);
	/* waits until the killed processes have ended; by then, their own children have been killed, too */
	for (int i = 0; i < found && number == SIGKILL; i++)
		waitid(P_PID, (id_t)children[i], &(siginfo_t){0}, WEXITED | WNOWAIT);
	return found;
}

/* Starts a reference, and sends a signal to a worker while the reference runs. Sends the signal in each of the first
 * `times` attempts, and checks that there are at least `times` attempts. */
static struct pool_result signal_while_it_runs(struct setting *setting, const char *victim, int number, int times)
{
	static const char mark[] = "/tmp/reftest-test-pool-XXXXXX";
	const struct job *jobs[] = {&rmsnorm};
	char path[sizeof mark], reference[1024];
	struct pool_result result;
	struct err err = {""};
	int fd = open_tells(), killed = 0;

	memcpy(path, mark, sizeof mark);
	close(mkstemp(path));
	/* the reference reports that it runs, then waits until the file is deleted */
	snprintf(reference, sizeof reference,
	         HEAD RUN "    if exists_outside('%s'): tell_outside()\n"
	         "    while exists_outside('%s'): time.sleep(0.01)\n    return y\n", path, path);
	submit(setting->pool, reference, jobs, 1, NULL);
	while (!pool_next(setting->pool, &setting->arena, &result)) {
		struct pollfd poll_pool = {pool_fd(setting->pool), POLLIN, 0};
		char byte;

		poll(&poll_pool, 1, 10);
		if (pool_dispatch(setting->pool, &err) != 0)
			fail_msg("%s", err.text);
		if (read(fd, &byte, 1) == 1) {
			assert_int_equal(signal_children(victim, number), 1);
			if (++killed == times)
				unlink(path);
		}
	}
	unlink(path);
	close(fd);
	assert_int_equal(killed, times);
	return result;
}

static struct pool_result kill_while_it_runs(struct setting *setting, const char *victim, int times)
{
	return signal_while_it_runs(setting, victim, SIGKILL, times);
}

static void a_judge_or_template_killed_by_others_costs_a_second_try(void **state)
{
	struct pool_result result = kill_while_it_runs(*state, "reftest-judge", 1);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	result = kill_while_it_runs(*state, "runner.py", 1);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	expect_all_is_well(*state);
}

static void a_judge_killed_twice_is_an_error_of_that_case(void **state)
{
	struct pool_result result = kill_while_it_runs(*state, "reftest-judge", 2);

	expect(&result, STATUS_ERROR, REASON_CRASHED, "the judge terminated with signal 9 (SIGKILL, Killed)");
	expect(&result, STATUS_ERROR, REASON_CRASHED, "in the second attempt");
	assert_false(result.keep);
	result = kill_while_it_runs(*state, "runner.py", 2);
	expect(&result, STATUS_ERROR, REASON_CRASHED, "killed together with its parent");
	expect_all_is_well(*state);
}

/* Runs two references at the same time, each with a judge of its own, kills one of the judges, and lets the references
 * end. Writes the process ids of the judges to `judges`. */
static int kill_one_of_two_judges(struct setting *two, pid_t *judges)
{
	static const char mark[] = "/tmp/reftest-test-pool-XXXXXX";
	const struct job *jobs[] = {&rmsnorm};
	char path[sizeof mark], reference[1024], byte;
	struct pool_result result;
	struct err err = {""};
	int fd = open_tells(), running = 0, count = 0, results = 0;

	memcpy(path, mark, sizeof mark);
	close(mkstemp(path));
	snprintf(reference, sizeof reference,
	         HEAD RUN "    if exists_outside('%s'): tell_outside()\n"
	         "    while exists_outside('%s'): time.sleep(0.01)\n    return y\n", path, path);
	for (int i = 0; i < 2; i++)
		submit(two->pool, reference, jobs, 1, NULL);
	while (results < 2) {
		struct pollfd poll_pool = {pool_fd(two->pool), POLLIN, 0};

		poll(&poll_pool, 1, 10);
		if (pool_dispatch(two->pool, &err) != 0)
			fail_msg("%s", err.text);
		if (read(fd, &byte, 1) == 1 && ++running == 2) {
			count = find_children("reftest-judge", judges);
			assert_int_equal(kill(judges[0], SIGKILL), 0);
			unlink(path);
		}
		while (pool_next(two->pool, &two->arena, &result)) {
			expect(&result, STATUS_PASSED, REASON_NONE, NULL);
			results++;
		}
	}
	close(fd);
	return count;
}

/* The second attempt gets a new judge. An existing judge may have received SIGKILL from another reference, but may
 * still be running. */
static void a_second_try_gets_a_new_judge(void **state)
{
	struct setting two = {.pool = open_pool(2, GENEROUS_S, false)};
	pid_t before[CHILDREN_MAX], after[CHILDREN_MAX];
	int count = kill_one_of_two_judges(&two, before), left = find_children("reftest-judge", after);

	(void)state;
	assert_int_equal(count, 2);
	assert_in_range(left, 1, 2);
	for (int i = 0; i < left; i++)
		for (int k = 0; k < count; k++)
			assert_int_not_equal(after[i], before[k]);
	pool_close(two.pool);
	arena_free(&two.arena);
}

static void a_judge_stopped_by_others_costs_a_second_try(void **state)
{
	struct setting impatient = {.pool = open_pool(1, 3, false)};
	struct pool_result result = signal_while_it_runs(&impatient, "reftest-judge", SIGSTOP, 1);

	(void)state;
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	expect_all_is_well(&impatient);
	pool_close(impatient.pool);
	arena_free(&impatient.arena);
}

/* Returns true if the environment of some process contains the word. */
static bool any_process_with(const char *word)
{
	char command[256];

	snprintf(command, sizeof command, "grep -qsa '%s' /proc/[0-9]*/environ", word);
	return system(command) == 0;
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void closing_leaves_no_process_and_no_descriptor_behind(void **state)
{
	int before = open_descriptors();
	struct setting busy = {.pool = open_pool(2, GENEROUS_S, false)};
	const struct job *jobs[] = {&rmsnorm};
	struct err err = {""};
	const char *path = "/tmp/reftest-test-pool-closing";
	char reference[1024], byte;
	int fd = open_tells();

	(void)state;
	setenv("REFTEST_TEST_MARK", path, 1);
	/* the reference starts a stopped child and, in a session of its own, a daemon that ignores all signals that can
	 * be ignored */
	snprintf(reference, sizeof reference,
	         HEAD "import subprocess\n" RUN
	              "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP INT; sleep 600'], start_new_session=True)\n"
	              "    subprocess.Popen(['sh', '-c', 'kill -STOP $$; sleep 600'])\n"
	              "    tell_outside()\n    time.sleep(600)\n");
	for (int i = 0; i < 2; i++)
		submit(busy.pool, reference, jobs, 1, NULL);
	for (int ready = 0; ready < 2; ready += read(fd, &byte, 1) == 1) {
		struct pollfd poll_pool = {pool_fd(busy.pool), POLLIN, 0};

		poll(&poll_pool, 1, 10);
		assert_int_equal(pool_dispatch(busy.pool, &err), 0);
	}
	close(fd);
	unsetenv("REFTEST_TEST_MARK");
	assert_true(any_process_with(path));
	pool_close(busy.pool);
	assert_false(any_process_with(path));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(open_descriptors(), before);
	arena_free(&busy.arena);
}

/* Runs `test_pool abandon REFERENCE`: starts a reference and waits to be killed. */
static int abandon(const char *reference)
{
	const struct job *jobs[] = {&rmsnorm};
	struct setting setting = {.pool = open_pool(1, GENEROUS_S, false)};

	submit(setting.pool, reference, jobs, 1, NULL);
	next_result(setting.pool, &setting.arena);
	return 1;
}

static void when_the_program_itself_is_killed_nothing_stays_behind(void **state)
{
	const char *path = "/tmp/reftest-test-pool-killed";
	char reference[1024], byte;
	int fd = open_tells();
	const int fds[] = {-1, STDERR_FILENO, STDERR_FILENO};
	struct process program;
	struct err err = {""};
	int status;

	(void)state;
	snprintf(reference, sizeof reference,
	         HEAD "import subprocess\n" RUN
	              "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP INT; sleep 600'], start_new_session=True)\n"
	              "    tell_outside()\n    time.sleep(600)\n");
	char *argv[] = {"test_pool", "abandon", reference, NULL};

	setenv("REFTEST_TEST_MARK", path, 1);
	assert_int_equal(process_start(&program, "/proc/self/exe", argv, environ, fds, 3, &err), 0);
	unsetenv("REFTEST_TEST_MARK");
	while (read(fd, &byte, 1) == 0) {
		assert_false(process_ended(&program, &status));
		poll(NULL, 0, 10);
	}
	assert_true(any_process_with(path));
	kill(program.pid, SIGKILL);
	while (!process_ended(&program, &status))
		poll(NULL, 0, 10);
	for (int patience = 500; any_process_with(path) && patience > 0; patience--)
		poll(NULL, 0, 10);
	assert_false(any_process_with(path));
	close(fd);
}

/* ---- the pool itself ---- */

/* If a case lacks memory while another case is running, it is tried again after the other case has ended. */
static void a_lack_of_memory_counts_only_if_no_other_case_runs(void **state)
{
	struct setting wide = {.pool = open_pool(2, GENEROUS_S, false)};
	static const int64_t huge[] = {(int64_t)1 << 40, HIDDEN};
	struct job large = rmsnorm;
	const struct job *small_jobs[] = {&rmsnorm}, *large_jobs[] = {&large};
	char path[] = "/tmp/reftest-test-pool-XXXXXX", reference[1024];
	int fd = mkstemp(path);
	struct pool_result result;
	struct err err = {""};

	(void)state;
	assert_true(fd >= 0);
	large.axis = huge;
	snprintf(reference, sizeof reference, HEAD RUN "    while exists_outside('%s'): time.sleep(0.01)\n    return y\n", path);
	submit(wide.pool, reference, small_jobs, 1, NULL);
	submit(wide.pool, CORRECT, large_jobs, 1, NULL);
	while (wide.pool->shared.alone.first == NULL) {
		struct pollfd poll_pool = {pool_fd(wide.pool), POLLIN, 0};

		assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
		assert_int_equal(pool_dispatch(wide.pool, &err), 0);
		assert_false(pool_next(wide.pool, &wide.arena, &result));
	}
	unlink(path);
	close(fd);
	result = next_result(wide.pool, &wide.arena);
	assert_ptr_equal(result.job, &rmsnorm);
	result = next_result(wide.pool, &wide.arena);
	assert_ptr_equal(result.job, &large);
	expect(&result, STATUS_SKIPPED, REASON_MEMORY, NULL);
	pool_close(wide.pool);
	arena_free(&wide.arena);
}

static void dispatch_once(struct pool *pool)
{
	struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};
	struct err err = {""};

	assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
	assert_int_equal(pool_dispatch(pool, &err), 0);
}

/* Verifies two definitions in two lanes. The second reference runs beside the first, and raises `exception` after the
 * first has ended. `limit` is the value of --memory. Returns how often the second reference was called. */
static int attempts_without_memory(const char *exception, int64_t limit)
{
	struct setting wide = {.pool = open_pool(2, GENEROUS_S, false)};
	const struct job *jobs[] = {&rmsnorm};
	char paths[2][40] = {"/tmp/reftest-test-pool-XXXXXX", "/tmp/reftest-test-pool-XXXXXX"}, first[1024], second[1024], byte;
	int files[] = {mkstemp(paths[0]), mkstemp(paths[1])}, tells = open_tells(), attempts = 1;
	struct pool_result result;

	assert_true(files[0] >= 0 && files[1] >= 0);
	wide.pool->shared.memory = limit;
	snprintf(first, sizeof first, HEAD RUN "    while exists_outside('%s'): time.sleep(0.01)\n    return y\n", paths[0]);
	snprintf(second, sizeof second,
		 HEAD RUN "    tell_outside()\n    while exists_outside('%s'): time.sleep(0.01)\n    raise %s\n", paths[1], exception);
	submit(wide.pool, first, jobs, 1, NULL);
	submit(wide.pool, second, jobs, 1, &attempts);
	while (read(tells, &byte, 1) == 0)
		dispatch_once(wide.pool);
	unlink(paths[0]);
	result = next_result(wide.pool, &wide.arena);
	assert_null(result.owner);
	unlink(paths[1]);
	result = next_result(wide.pool, &wide.arena);
	expect(&result, STATUS_ERROR, strcmp(exception, "MemoryError") == 0 ? REASON_MEMORY_LIMIT : REASON_RAISED,
	       exception[0] == 'R' ? "out of memory" : exception);
	while (read(tells, &byte, 1) == 1)
		attempts++;
	close(tells);
	close(files[0]);
	close(files[1]);
	pool_close(wide.pool);
	arena_free(&wide.arena);
	return attempts;
}

/* Verifies two cases of a definition whose reference has no memory while it is loaded, directly after another runner was
 * killed. Returns how often the reference was loaded. */
static int loads_without_memory(void)
{
	struct setting setting = {.pool = open_pool(1, GENEROUS_S, false)};
	const struct job *jobs[] = {&rmsnorm, &rmsnorm};
	struct zygote *runners = &setting.pool->shared.runners;
	struct child *killed = &runners->children[runners->room - 1]; /* a slot that no runner uses */
	int tells = open_tells(), loads = 1;
	struct pool_result result;
	char byte;

	setting.pool->shared.memory = INT64_MAX;
	assert_int_equal(killed->state, CHILD_NONE);
	killed->state = CHILD_ENDING;
	submit(setting.pool, HEAD "tell_outside()\nraise MemoryError\n" RUN "    return y\n", jobs, 2, NULL);
	while (read(tells, &byte, 1) == 0)
		dispatch_once(setting.pool);
	killed->state = CHILD_NONE;
	for (int i = 0; i < 2; i++) {
		result = next_result(setting.pool, &setting.arena);
		expect(&result, STATUS_ERROR, REASON_MEMORY_LIMIT, "the reference failed to load: MemoryError");
	}
	while (read(tells, &byte, 1) == 1)
		loads++;
	close(tells);
	pool_close(setting.pool);
	arena_free(&setting.arena);
	return loads;
}

/* If a reference needs more memory than the machine has left while other cases run, its case is tried again after these
 * cases have ended. If the reference reaches a limit that the user set, the result counts. */
static void a_reference_without_memory_is_tried_again_alone(void **state)
{
	(void)state;
	assert_int_equal(attempts_without_memory("MemoryError", INT64_MAX), 2);
	assert_int_equal(attempts_without_memory("MemoryError", 1 << 30), 1);
	assert_int_equal(attempts_without_memory("torch.OutOfMemoryError", 1 << 30), 2); /* the GPU has no memory */
	assert_int_equal(attempts_without_memory("RuntimeError('CUDA error: out of memory')", 1 << 30), 2);
	assert_int_equal(attempts_without_memory("ValueError", INT64_MAX), 1);
	assert_int_equal(loads_without_memory(), 2); /* both cases share the second load */
}

static void cases_of_several_definitions_run_side_by_side(void **state)
{
	struct setting wide = {.pool = open_pool(3, GENEROUS_S, false)};
	const struct job *jobs[] = {&rmsnorm, &rmsnorm};
	int owners[8], reported[8] = {0};

	(void)state;
	for (int i = 0; i < 8; i++)
		submit(wide.pool, i % 2 == 0 ? CORRECT : HEAD RUN "    return y + 1\n", jobs, 2, &owners[i]);
	assert_int_equal(pool_pending(wide.pool), 16);
	for (int i = 0; i < 16; i++) {
		struct pool_result result = next_result(wide.pool, &wide.arena);
		ptrdiff_t who = (int *)result.owner - owners;

		assert_int_equal(result.verdict->status, who % 2 == 0 ? STATUS_PASSED : STATUS_FAILED);
		reported[who]++;
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(reported[i], 2);
	pool_close(wide.pool);
	arena_free(&wide.arena);
}

static void what_is_cancelled_is_not_reported(void **state)
{
	struct setting *setting = *state;
	const struct job *jobs[] = {&rmsnorm, &rmsnorm};
	int running, queued;

	submit(setting->pool, HEAD RUN "    time.sleep(600)\n", jobs, 2, &running);
	submit(setting->pool, CORRECT, jobs, 2, &queued);
	submit(setting->pool, CORRECT, jobs, 1, setting);
	for (int i = 0; i < 20; i++) {
		struct pollfd poll_pool = {pool_fd(setting->pool), POLLIN, 0};
		struct err err = {""};

		poll(&poll_pool, 1, 20);
		assert_int_equal(pool_dispatch(setting->pool, &err), 0);
	}
	assert_int_equal(pool_pending(setting->pool), 5);
	pool_cancel(setting->pool, &running);
	pool_cancel(setting->pool, &queued);
	assert_int_equal(pool_pending(setting->pool), 1);
	struct pool_result result = next_result(setting->pool, &setting->arena);

	assert_ptr_equal(result.owner, setting);
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
}

static void tensors_may_go_through_the_host(void **state)
{
	struct setting staged = {.pool = open_pool(1, GENEROUS_S, true)};
	struct pool_result result = verify(&staged, CORRECT);

	(void)state;
	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	result = verify(&staged, HEAD RUN "    y[0, 1] += 1\n    return y\n");
	expect(&result, STATUS_FAILED, REASON_NUMERIC, "[0, 1]");
	result = verify(&staged, HEAD RUN "    w[5] = 77\n    return y\n");
	expect(&result, STATUS_FAILED, REASON_MUTATED_INPUT, "'weight', first at [5]");
	pool_close(staged.pool);
	arena_free(&staged.arena);
}

static void a_case_that_is_too_large_is_skipped_with_both_figures(void **state)
{
	static const int64_t huge[] = {(int64_t)1 << 40, HIDDEN};
	struct job job = rmsnorm;

	job.axis = huge;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_SKIPPED, REASON_MEMORY, "the case needs 1");
	expect(&result, STATUS_SKIPPED, REASON_MEMORY, " are free");
	assert_false(result.keep);
	expect_all_is_well(*state);
}

static void a_blob_that_is_not_there_is_skipped(void **state)
{
	static const struct input_source from_file[] = {
	    {.kind = SOURCE_SAFETENSORS, .path = "no/such/file.safetensors", .tensor_key = "x"}, {.kind = SOURCE_RANDOM}};
	struct job job = rmsnorm;

	job.inputs = from_file;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_SKIPPED, REASON_MISSING_BLOB, "no/such/file.safetensors");
	assert_false(result.keep);
}

static void expect_evidence(const struct pool_result *result, const char *name, enum check_result expected, const char *words)
{
	const struct verdict *v = result->verdict;

	for (int i = 0; i < v->check_count; i++) {
		if (strcmp(v->checks[i].name, name) != 0)
			continue;
		if (v->checks[i].result != expected || strstr(v->checks[i].evidence, words) == NULL)
			fail_msg("the check %s %s: %s", name, check_result_name(v->checks[i].result), v->checks[i].evidence);
		return;
	}
	fail_msg("the verdict has no check %s", name);
}

static void without_a_family_form_and_determinism_are_still_checked(void **state)
{
	struct job job = rmsnorm;

	job.op = NULL;
	job.no_truth = "no family knows this";
	job.constant_count = 0;
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_CHECKED, REASON_NO_GROUND_TRUTH, "no family knows this");
	assert_null(result.verdict->ground_truth);
	expect_evidence(&result, "outputs", CHECK_HOLDS, "1 output has the declared shape and dtype");
	expect_evidence(&result, "repeat", CHECK_HOLDS, "the same bits");
	expect_evidence(&result, "finite", CHECK_HOLDS, "no element");
	result = verify_job(*state, HEAD RUN "    y[1, 2] = float('nan')\n    return y\n", &job);
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "The check finite fails: output 'output' has 1 NaN elements");
	result = verify_job(*state, HEAD RUN "    y[1, 2] = float('-inf')\n    return y\n", &job);
	expect(&result, STATUS_CHECKED, REASON_NO_GROUND_TRUTH, NULL);
	expect_evidence(&result, "finite", CHECK_PROPERTY, "output 'output' has 1 infinite elements");
	result = verify_job(*state, HEAD RUN "    return y.T\n", &job);
	expect(&result, STATUS_FAILED, REASON_SHAPE, NULL);
	result = verify_job(*state, HEAD "n = 0\n" RUN "    global n\n    n += 1\n    return y + n\n", &job);
	expect(&result, STATUS_FAILED, REASON_NONDETERMINISTIC, NULL);
	expect_evidence(&result, "repeat", CHECK_FAILS, "differs between two runs");
	result = verify_job(*state, HEAD RUN "    x[1, 2] = 9\n    return y\n", &job);
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, NULL);
	expect_evidence(&result, "inputs_kept", CHECK_FAILS, "nothing in the definition says that the operation writes to it");
	assert_int_equal(result.verdict->finding_count, 1);
	assert_non_null(strstr(result.verdict->findings[0], "changed its input 'hidden_states', first at [1, 2]: "));
	result = verify_job(*state, HEAD RUN "    raise ValueError('not like this')\n", &job);
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "no family knows this\nOn generic inputs");
	expect(&result, STATUS_SKIPPED, REASON_NO_GROUND_TRUTH, "ValueError: not like this");
	result = verify_job(*state, "def run(: pass\n", &job);
	expect(&result, STATUS_ERROR, REASON_RAISED, "SyntaxError");
}

static void a_constant_that_nothing_attests_is_probed_and_verifies_nothing(void **state)
{
	struct setting *setting = *state;
	struct job job = rmsnorm;
	const struct job *jobs[] = {&job, &job};

	job.constants[0] = (struct op_constant){"eps", NAN, "unattested", ""};
	submit(setting->pool, HEAD RUN "    return y\n", jobs, 2, NULL);
	for (int i = 0; i < 2; i++) {
		struct pool_result result = next_result(setting->pool, &setting->arena);

		expect(&result, STATUS_CHECKED, REASON_UNATTESTED,
		       "if eps is 1e-06; the outputs of the reference imply this value, but no axis, name, "
		       "description or model states it");
		assert_int_equal(result.verdict->constant_count, 1);
		assert_true(fabs(result.verdict->constants[0].value - 1e-6) < 1e-9);
		assert_string_equal(result.verdict->constants[0].source, "unattested");
		assert_int_equal(result.verdict->finding_count, 1);
		assert_string_equal(result.verdict->findings[0],
		                    "eps is unattested: nothing in the definition states its value; the outputs of "
				    "the reference imply that it is 1e-06");
	}
	struct pool_result result = verify_job(setting, HEAD RUN "    return y + float('nan')\n", &job);

	assert_int_not_equal(result.verdict->status, STATUS_PASSED);
}

/* Tests inputs and outputs of every dtype, a 0-D tensor, a tensor without elements, an absent tensor, and Python
 * scalars of each type. */
static void every_kind_of_argument_arrives_and_returns(void **state)
{
	static const struct op_axis sizes[] = {{"n", true, 0}, {"none", true, 0}};
	static const int64_t values[] = {6, 0};
	struct op_arg in[OP_ARGS] = {{0}}, out[OP_ARGS] = {{0}};
	struct input_source from[OP_ARGS] = {{0}};
	struct rule exact[OP_ARGS];
	char names[OP_ARGS][16];
	int count = 0;
	struct job job = rmsnorm;

	for (int dtype = 0; dtype < DTYPE_COUNT; dtype++, count++)
		in[count] = (struct op_arg){.dtype = (enum dtype)dtype, .rank = 1};
	in[count++] = (struct op_arg){.dtype = DTYPE_FLOAT16, .rank = 0};
	in[count++] = (struct op_arg){.dtype = DTYPE_BFLOAT16, .rank = 3, .axis = {0, 1, 0}};
	in[count++] = (struct op_arg){.dtype = DTYPE_INT64, .rank = OP_SCALAR};
	in[count++] = (struct op_arg){.dtype = DTYPE_FLOAT32, .rank = OP_SCALAR};
	in[count++] = (struct op_arg){.dtype = DTYPE_BOOL, .rank = OP_SCALAR};
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "a%d", i);
		out[i] = in[i];
		in[i].name = out[i].name = names[i];
		exact[i] = (struct rule){0, 0, 1};
	}
	from[count - 3] =
	    (struct input_source){.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_INT, .integer = ((int64_t)1 << 60) + 1};
	from[count - 2] = (struct input_source){.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_FLOAT, .number = -INFINITY};
	from[count - 1] = (struct input_source){.kind = SOURCE_SCALAR, .scalar_kind = SCALAR_BOOL, .integer = 1, .number = 1};
	in[count] = (struct op_arg){.name = "absent", .dtype = DTYPE_FLOAT32, .rank = 1, .optional = true};
	from[count].kind = SOURCE_ABSENT;
	job.problem = (struct op_problem){.name = "all", .op_type = "all", .description = "", .axes = sizes, .axis_count = 2,
	                                  .inputs = in, .input_count = count + 1, .outputs = out, .output_count = count};
	job.axis = values;
	job.inputs = from;
	job.rules = exact;
	job.op = NULL;
	job.no_truth = "none";
	job.constant_count = 0;
	struct pool_result result = verify_job(
	    *state, HEAD "def run(absent, **a):\n"
	                 "    assert absent is None\n"
	                 "    assert type(a['a17']) is int and a['a17'] == 2**60 + 1, a['a17']\n"
	                 "    assert type(a['a18']) is float and a['a18'] == float('-inf'), a['a18']\n"
	                 "    assert a['a19'] is True, a['a19']\n"
	                 "    assert a['a15'].shape == () and a['a16'].shape == (6, 0, 6)\n"
	                 "    assert a['a0'].abs().sum() > 0 and a['a6'].sum() == 0 and a['a10'].dtype == torch.bool\n"
	                 "    return a\n", &job);

	expect(&result, STATUS_CHECKED, REASON_NO_GROUND_TRUTH, "none");
	result = verify_job(*state, HEAD "def run(absent, **a):\n    a['a17'] = 0.5\n    return a\n", &job);
	expect(&result, STATUS_FAILED, REASON_DTYPE, "output 'a17' is () float32, but it is declared as () int64");
}

static void sources_that_disagree_are_a_finding(void **state)
{
	struct job job = rmsnorm;

	strcpy(job.constants[0].conflict, "the description says that eps is 1e-05");
	struct pool_result result = verify_job(*state, CORRECT, &job);

	expect(&result, STATUS_PASSED, REASON_NONE, NULL);
	assert_int_equal(result.verdict->finding_count, 1);
	assert_string_equal(result.verdict->findings[0], job.constants[0].conflict);
}

static void an_interpreter_without_torch_is_a_sentence(void **state)
{
	static const struct {
		const char *python, *says;
	} wrongs[] = {{"/bin/true", "does not start as a runner (exit status 0)"},
	              {"/no/such/python", "cannot start /no/such/python"}};
	const struct job *jobs[] = {&rmsnorm};

	(void)state;
	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct pool_options options = {.device = "cpu", .python = wrongs[i].python, .root = "/", .lanes = 1,
		                               .timeout_s = GENEROUS_S, .judge = test_judge()};
		struct err err = {""};
		struct pool *pool = pool_open(&options, &err);
		int rc = 0;

		assert_non_null(pool);
		submit(pool, CORRECT, jobs, 1, NULL);
		while (rc == 0) {
			struct pollfd poll_pool = {pool_fd(pool), POLLIN, 0};

			assert_int_equal(poll(&poll_pool, 1, GENEROUS_S * 1000), 1);
			rc = pool_dispatch(pool, &err);
		}
		if (strstr(err.text, wrongs[i].says) == NULL)
			fail_msg("%s", err.text);
		pool_close(pool);
	}
}

static void a_device_is_asked_for_its_class(void **state)
{
	const struct judge_program judge = test_judge();
	char class_name[64], product[256];
	struct err err = {""};

	(void)state;
	assert_int_equal(pool_probe_device(&judge, "cpu", class_name, sizeof class_name, product, sizeof product, &err), 0);
	assert_string_equal(class_name, "cpu");
	assert_int_equal(pool_probe_device(&judge, "tpu", class_name, sizeof class_name, product, sizeof product, &err), -1);
	assert_string_equal(err.text, "unknown device \"tpu\"; expected cpu or cuda:N");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_judge_or_template_killed_by_others_costs_a_second_try),
	    cmocka_unit_test(a_judge_killed_twice_is_an_error_of_that_case),
	    cmocka_unit_test(what_is_cancelled_is_not_reported),
	    cmocka_unit_test(a_case_that_is_too_large_is_skipped_with_both_figures),
	    cmocka_unit_test(a_blob_that_is_not_there_is_skipped),
	    cmocka_unit_test(without_a_family_form_and_determinism_are_still_checked),
	    cmocka_unit_test(a_constant_that_nothing_attests_is_probed_and_verifies_nothing),
	    cmocka_unit_test(every_kind_of_argument_arrives_and_returns),
	    cmocka_unit_test(sources_that_disagree_are_a_finding),
	};
	const struct CMUnitTest own_pools[] = {
	    cmocka_unit_test(endless_loops_are_ended),
	    cmocka_unit_test(a_second_try_gets_a_new_judge),
	    cmocka_unit_test(a_judge_stopped_by_others_costs_a_second_try),
	    cmocka_unit_test(closing_leaves_no_process_and_no_descriptor_behind),
	    cmocka_unit_test(when_the_program_itself_is_killed_nothing_stays_behind),
	    cmocka_unit_test(a_lack_of_memory_counts_only_if_no_other_case_runs),
	    cmocka_unit_test(a_reference_without_memory_is_tried_again_alone),
	    cmocka_unit_test(cases_of_several_definitions_run_side_by_side),
	    cmocka_unit_test(tensors_may_go_through_the_host),
	    cmocka_unit_test(an_interpreter_without_torch_is_a_sentence),
	    cmocka_unit_test(a_device_is_asked_for_its_class),
	};
	bool abandons = argc > 2 && strcmp(argv[1], "abandon") == 0;

	pool_main(argc, argv);
	if (abandons)
		return abandon(argv[2]);
	return cmocka_run_group_tests(tests, set_up, tear_down) + cmocka_run_group_tests(own_pools, NULL, NULL);
}
