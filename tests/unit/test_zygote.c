/* test_zygote - which spare runners the zygote (the Python process that forks the runners) forks, and when. The zygote
 * is the real one, but without torch. The children of the zygote report "ready" after a moment and do nothing else. */
#include "workers/pool/zygote.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "workers/sandbox/sandbox.h"

enum { PLACES = 8, AT_ONCE = 3, GENEROUS_MS = 60000 };

struct setting {
	struct zygote runners;
	int epoll;
	char script[64];
};

static void write_template(char path[64])
{
	FILE *file;
	int fd;

	strcpy(path, "/tmp/reftest-test-runners-XXXXXX");
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	assert_non_null(file);
	fprintf(file, "import importlib.util, sys, time\n"
		      "spec = importlib.util.spec_from_file_location('runner', 'python/runner.py')\n"
		      "runner = importlib.util.module_from_spec(spec)\n"
		      "spec.loader.exec_module(runner)\n"
		      "started = 0\n"
		      "def warm_up(*how):\n"
		      "    time.sleep(0.05)\n"
		      "    if 'REFTEST_TEST_REFUSES' in runner.os.environ and started > 1:\n"
		      "        raise RuntimeError('no memory')\n"
		      "    if 'REFTEST_TEST_LEAVES' in runner.os.environ and runner.os.fork() == 0:\n"
		      "        time.sleep(600)\n"
		      "runner.warm_up = warm_up\n"
		      "runner.further_steps = lambda device: ()\n"
		      "runner.free_gpu_memory = lambda device: 5 << 30\n"
		      "channel = runner.Channel(3)\n"
		      "channel.send({'template': {'torch': 'none', 'cuda': None, 'python': 'any', 'layers': 0}})\n"
		      "sandbox = runner.Sandbox(int(sys.argv[3]), 'cpu', sys.argv[4], sys.argv[5])\n"
		      "template = runner.Zygote(channel, {'device': sys.argv[1], 'threads': 1}, sandbox, runner.Child)\n"
		      "fork = template.fork\n"
		      "def counted(*request):\n"
		      "    global started\n"
		      "    started += 1\n"
		      "    fork(*request)\n"
		      "template.fork = counted\n"
		      "try:\n"
		      "    template.serve()\n"
		      "finally:\n"
		      "    template.close()\n");
	assert_int_equal(fclose(file), 0);
}

static void open_pool(struct setting *setting, const char *device)
{
	struct err err = {""};

	write_template(setting->script);
	setenv("REFTEST_RUNNER", setting->script, 1);
	setenv("REFTEST_KERNELS", getenv("REFTEST_BUILD") == NULL ? "build" : getenv("REFTEST_BUILD"), 0);
	setting->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_true(setting->epoll >= 0);
	if (zygote_open(&setting->runners, "/usr/bin/python3", device, "/", PLACES, 1, setting->epoll, &err) != 0)
		fail_msg("%s", err.text);
}

static void close_pool(struct setting *setting)
{
	zygote_close(&setting->runners);
	close(setting->epoll);
	unlink(setting->script);
}

static int on_their_way(const struct zygote *runners)
{
	int count = 0;

	for (int i = 0; i < runners->room; i++)
		count += runners->children[i].state == CHILD_FORKING || runners->children[i].state == CHILD_WARMING;
	return count;
}

/* Waits until `spares` children are ready. Returns the largest number of children that were starting at the same time.
 */
static int gather(struct setting *setting, int spares)
{
	int64_t end = clock_ms() + GENEROUS_MS;
	struct epoll_event event;
	struct err err = {""};
	int most = 0;

	while (zygote_spares(&setting->runners) < spares && clock_ms() < end) {
		if (zygote_want(&setting->runners, (struct runner_demand){spares, 0}, &err) != 0 ||
		    zygote_dispatch(&setting->runners, clock_ms(), &err) != 0)
			fail_msg("%s", err.text);
		most = on_their_way(&setting->runners) > most ? on_their_way(&setting->runners) : most;
		epoll_wait(setting->epoll, &event, 1, 10);
	}
	assert_int_equal(zygote_spares(&setting->runners), spares);
	return most;
}

static void a_gpus_contexts_are_made_a_few_at_a_time(void **state)
{
	struct setting setting;

	(void)state;
	open_pool(&setting, "cuda:0");
	assert_int_equal(gather(&setting, PLACES), AT_ONCE);
	assert_int_equal(setting.runners.gpu_free, 5LL << 30); /* the runners reported it */
	for (int i = 0; i < PLACES; i++) { /* replaces all children; again, at most AT_ONCE of the new children may be
					    * starting at the same time */
		struct child *child = zygote_take(&setting.runners, false);

		assert_non_null(child);
		zygote_drop(&setting.runners, child);
	}
	assert_int_equal(gather(&setting, PLACES), AT_ONCE);
	close_pool(&setting);
}

static void a_cpus_children_are_made_all_at_once(void **state)
{
	struct setting setting;

	(void)state;
	open_pool(&setting, "cpu");
	assert_int_equal(gather(&setting, PLACES), PLACES);
	close_pool(&setting);
}

static enum child_event see(struct setting *setting, struct child *child, int64_t now_ms)
{
	struct err err = {""};
	size_t length;
	char *line;

	if (zygote_dispatch(&setting->runners, now_ms, &err) != 0)
		fail_msg("%s", err.text);
	return child_next(child, now_ms, &line, &length);
}

/* The child's socket closes long before the child ends, as when the driver takes long to destroy a GPU context. */
static void a_slow_end_is_still_reported_with_its_cause(void **state)
{
	enum child_event event = CHILD_NOTHING;
	struct setting setting;
	struct child *child;
	size_t length;
	char *line;

	(void)state;
	open_pool(&setting, "cpu");
	gather(&setting, 1);
	child = zygote_take(&setting.runners, false);
	assert_non_null(child);
	assert_int_equal(syscall(SYS_pidfd_send_signal, child->pidfd, SIGSEGV, NULL, 0), 0);
	while (child->channel.fd >= 0)
		assert_int_equal(child_next(child, clock_ms(), &line, &length), CHILD_NOTHING);
	assert_int_equal(child_next(child, clock_ms() + GENEROUS_MS, &line, &length), CHILD_NOTHING);
	assert_true(child->shut);
	for (int64_t end = clock_ms() + GENEROUS_MS; event != CHILD_ENDED && clock_ms() < end; usleep(1000))
		event = see(&setting, child, clock_ms());
	assert_int_equal(event, CHILD_ENDED);
	assert_false(child->shut);
	assert_true(WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGSEGV);
	close_pool(&setting);
}

static void the_spare_that_waited_longest_is_used(void **state)
{
	const struct child *oldest = NULL;
	struct setting setting;

	(void)state;
	open_pool(&setting, "cuda:0");
	gather(&setting, PLACES);
	for (int i = 0; i < setting.runners.room; i++) {
		struct child *child = &setting.runners.children[i];

		if (child->state != CHILD_SPARE)
			continue;
		child->ready_ms = 1000 - i;
		oldest = child;
	}
	assert_ptr_equal(zygote_take(&setting.runners, false), oldest);
	assert_int_equal(zygote_spares(&setting.runners), PLACES - 1);
	close_pool(&setting);
}

/* A new zygote waits until all processes that references left have ended, because such a process could change the
 * zygote while the zygote starts. */
static void a_zygote_starts_only_when_no_process_is_left(void **state)
{
	struct setting setting;
	struct err err = {""};
	pid_t child;

	(void)state;
	open_pool(&setting, "cpu");
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid(); /* a process in a session of its own counts as a process that a reference left */
		pause();
		_exit(0);
	}
	while (getsid(child) != child)
		usleep(1000);
	setting.runners.orphans_ms = 1; /* simulates that the previous zygote has ended */
	assert_int_equal(zygote_want(&setting.runners, (struct runner_demand){1, 0}, &err), 0);
	assert_int_equal(setting.runners.zygote.pid, 0);
	gather(&setting, 1);
	assert_int_equal(kill(child, 0), -1);
	close_pool(&setting);
}

/* Each runner starts a process, which inherits the runner's pipe. The pipe has a writer until both the runner and the
 * process that it started have ended. */
static void a_runner_is_gone_when_all_its_processes_are(void **state)
{
	const bool has_namespaces = (sandbox_probe(false) & SANDBOX_PID) != 0;
	int64_t number, end = clock_ms() + (has_namespaces ? GENEROUS_MS : 500);
	struct setting setting;
	struct child *child;
	struct err err = {""};
	char printed[64];
	ssize_t got;

	(void)state;
	setenv("REFTEST_TEST_LEAVES", "1", 1);
	open_pool(&setting, "cpu");
	gather(&setting, 1);
	child = zygote_take(&setting.runners, false);
	assert_non_null(child);
	number = child->number;
	int pipe = dup(child->pipe);

	assert_false(zygote_is_gone(&setting.runners, number));
	assert_false(zygote_is_gone(&setting.runners, 0));
	zygote_drop(&setting.runners, child);
	for (; !zygote_is_gone(&setting.runners, number) && clock_ms() < end; usleep(1000))
		if (zygote_dispatch(&setting.runners, clock_ms(), &err) != 0)
			fail_msg("%s", err.text);
	assert_int_equal(zygote_is_gone(&setting.runners, number), has_namespaces);
	while ((got = read(pipe, printed, sizeof printed)) > 0)
		;
	assert_true(!has_namespaces || got == 0);
	close(pipe);
	close_pool(&setting);
	unsetenv("REFTEST_TEST_LEAVES");
}

/* ---- control groups: ordinary folders take their place ---- */

static int fake_groups = -1; /* the folder in which mkdirat makes groups; -1: none */

static void make_file(int folder, const char *name)
{
	close(openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* Takes the place of the C library's function. In `fake_groups`, makes the files of a group in the new folder, as the
 * kernel does for a folder of cgroup v2. */
int mkdirat(int folder, const char *path, mode_t mode)
{
	int made = (int)syscall(SYS_mkdirat, folder, path, mode);

	if (made == 0 && folder == fake_groups) {
		int group = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		make_file(group, "pids.max");
		make_file(group, "cgroup.procs");
		close(group);
	}
	return made;
}

static void a_runner_moves_to_its_control_group(void **state)
{
	char path[] = "/tmp/reftest-test-groups-XXXXXX", command[64], written[8] = "";
	struct setting setting;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(path));
	open_pool(&setting, "cpu");
	setting.runners.groups.own = fake_groups = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	gather(&setting, 1);
	fd = openat(fake_groups, "1/cgroup.procs", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, written, sizeof written), 1);
	assert_string_equal(written, "0"); /* a process that writes "0" to cgroup.procs moves itself into the group */
	close(fd);
	setting.runners.groups.own = -1;
	close_pool(&setting);
	close(fake_groups);
	fake_groups = -1;
	snprintf(command, sizeof command, "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void without_its_control_group_no_runner_starts(void **state)
{
	struct setting setting;
	struct err err = {""};
	int before;

	(void)state;
	open_pool(&setting, "cpu");
	gather(&setting, 1);
	setting.runners.groups.own = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* no folder can be made in
											 * /proc */
	before = count_descriptors();
	assert_int_equal(zygote_want(&setting.runners, (struct runner_demand){2, 0}, &err), -1);
	assert_non_null(strstr(err.text, "cannot make a control group for a reference"));
	assert_int_equal(count_descriptors(), before);
	close(setting.runners.groups.own);
	setting.runners.groups.own = -1;
	close_pool(&setting);
}

/* A case that runs alone gets a runner that has run no reference, so this one is kept, and not a used one before it. */
static void a_runner_without_a_past_is_kept(void **state)
{
	struct setting setting;
	struct child *first = NULL;

	(void)state;
	open_pool(&setting, "cpu");
	gather(&setting, 3);
	for (int i = setting.runners.room - 1; i >= 0; i--)
		if (setting.runners.children[i].state == CHILD_SPARE)
			first = &setting.runners.children[i];
	assert_non_null(first);
	first->used = true;
	zygote_thin(&setting.runners);
	assert_int_equal(zygote_spares(&setting.runners), 1); /* zygote_spares does not count used runners */
	assert_int_equal(first->state, CHILD_ENDING);
	assert_int_equal(zygote_ending(&setting.runners), 2);
	close_pool(&setting);
}

/* If a new runner cannot use the GPU while a reference runs, the reference may use all memory, so the run goes on. If no
 * reference runs, the run ends with the runner's message. */
static void a_runner_that_is_refused_for_now_ends_no_run(void **state)
{
	struct setting setting;
	int64_t end = clock_ms() + GENEROUS_MS;
	struct epoll_event event;
	struct err err = {""};
	struct child *taken;
	int rc = 0;

	(void)state;
	setenv("REFTEST_TEST_REFUSES", "1", 1);
	open_pool(&setting, "cuda:0");
	gather(&setting, 1); /* starts the zygote */
	unsetenv("REFTEST_TEST_REFUSES");
	taken = zygote_take(&setting.runners, false);
	assert_non_null(taken);
	assert_true(setting.runners.gpu_free > 0);
	while (setting.runners.gpu_free > 0 && clock_ms() < end) {
		assert_int_equal(zygote_want(&setting.runners, (struct runner_demand){1, 0}, &err), 0);
		assert_int_equal(zygote_dispatch(&setting.runners, clock_ms(), &err), 0);
		epoll_wait(setting.epoll, &event, 1, 10);
	}
	assert_int_equal(setting.runners.gpu_free, 0);
	zygote_drop(&setting.runners, taken);
	while (rc == 0 && clock_ms() < end) {
		rc = zygote_want(&setting.runners, (struct runner_demand){1, 0}, &err) == 0
			 ? zygote_dispatch(&setting.runners, clock_ms(), &err)
			 : -1;
		epoll_wait(setting.epoll, &event, 1, 10);
	}
	assert_int_equal(rc, -1);
	assert_non_null(strstr(err.text, "no memory"));
	close_pool(&setting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_gpus_contexts_are_made_a_few_at_a_time),
	    cmocka_unit_test(a_cpus_children_are_made_all_at_once),
	    cmocka_unit_test(a_slow_end_is_still_reported_with_its_cause),
	    cmocka_unit_test(the_spare_that_waited_longest_is_used),
	    cmocka_unit_test(a_zygote_starts_only_when_no_process_is_left),
	    cmocka_unit_test(a_runner_is_gone_when_all_its_processes_are),
	    cmocka_unit_test(a_runner_moves_to_its_control_group),
	    cmocka_unit_test(without_its_control_group_no_runner_starts),
	    cmocka_unit_test(a_runner_without_a_past_is_kept),
	    cmocka_unit_test(a_runner_that_is_refused_for_now_ends_no_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
