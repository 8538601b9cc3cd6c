/* test_process - child processes of this program start in a clean state, the program notices their end, and no child is
 * left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/pool/process.h"
#include "workers/pool/leftover_processes.h"

static int run(const char *script, const int *fds, int fd_count, struct process *process)
{
	char *argv[] = {"sh", "-c", (char *)(uintptr_t)script, NULL}, *envp[] = {NULL};
	struct err err = {""};

	return process_start(process, "/bin/sh", argv, envp, fds, fd_count, &err);
}

static int wait_for(struct process *process)
{
	struct pollfd poll_pidfd = {process->pidfd, POLLIN, 0};
	int status = -1;

	assert_int_equal(poll(&poll_pidfd, 1, 30000), 1);
	assert_true(process_ended(process, &status));
	assert_int_equal(process->pid, 0);
	return status;
}

static void ends_of_processes_are_reported_in_words(void **state)
{
	const int nothing[] = {-1, -1, -1};
	struct process process;

	(void)state;
	assert_int_equal(run("exit 3", nothing, 3, &process), 0);
	assert_string_equal(process_end(wait_for(&process)).text, "exit status 3");
	assert_int_equal(run("kill -SEGV $$", nothing, 3, &process), 0);
	assert_string_equal(process_end(wait_for(&process)).text, "signal 11 (SIGSEGV, Segmentation fault)");
	assert_true(process_was_killed(SIGKILL) && process_was_killed(SIGTERM));
	assert_false(process_was_killed(SIGSEGV) || process_was_killed(0) || process_was_killed(9 << 8));
}

static void a_program_that_is_not_there_is_a_sentence(void **state)
{
	char *argv[] = {"x", NULL}, *envp[] = {NULL};
	struct process process;
	struct err err = {""};

	(void)state;
	assert_int_equal(process_start(&process, "/no/such/program", argv, envp, NULL, 0, &err), -1);
	assert_string_equal(err.text, "cannot start /no/such/program: No such file or directory");
	assert_int_equal(process.pid, 0);
}

/* A child inherits no blocked or ignored signals and no open files, and does not belong to the terminal's process
 * group. */
static void a_child_begins_clean(void **state)
{
	static const char script[] = "test \"$(ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat)\" -eq $$ || exit 1;"
	                             "test ! -e /proc/$$/fd/9 || exit 2; kill -USR1 $$; exit 4";
	int pipe_fds[2], high;
	struct process process;
	sigset_t set;

	(void)state;
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	high = fcntl(pipe_fds[1], F_DUPFD_CLOEXEC, 9);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	const int fds[] = {-1, pipe_fds[1], -1};

	assert_int_equal(run(script, fds, 3, &process), 0);
	assert_string_equal(process_end(wait_for(&process)).text, "signal 10 (SIGUSR1, User defined signal 1)");
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(high);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* The child must get descriptor x under the number y, and y under the number x. */
static void descriptors_arrive_where_they_are_asked_for(void **state)
{
	int a[2], b[2];
	char text[8] = "";
	struct process process;

	(void)state;
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	const int crossed[] = {-1, b[1], a[1], 1, 2};

	assert_int_equal(run("echo out; echo err >&2", crossed, 5, &process), 0);
	assert_int_equal(wait_for(&process), 0);
	assert_int_equal(read(b[0], text, 4), 4);
	assert_memory_equal(text, "out\n", 4);
	assert_int_equal(read(a[0], text, 4), 4);
	assert_memory_equal(text, "err\n", 4);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

/* A child starts a process in a new session and dies. This program becomes the parent of that process, which is now an
 * orphan, and ends it. A child in this program's own session keeps running. */
static void orphans_of_other_sessions_are_ended_and_only_they(void **state)
{
	const int nothing[] = {-1, -1, -1};
	struct process parent, own;
	int status, up[2], found = 0;
	char byte;

	(void)state;
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	const int fds[] = {-1, up[1], -1};

	assert_int_equal(run("exec sleep 60", nothing, 3, &own), 0);
	assert_int_equal(run("setsid sh -c 'sleep 60 & echo up; sleep 60' & exit 0", fds, 3, &parent), 0);
	assert_int_equal(wait_for(&parent), 0);
	assert_int_equal(read(up[0], &byte, 1), 1); /* waits until the orphan is in its own session */
	for (int more = leftover_processes_kill(); more > 0; more = leftover_processes_kill())
		found += more;
	assert_true(found >= 2);
	close(up[0]);
	close(up[1]);
	assert_false(process_ended(&own, &status));
	process_kill(&own);
	assert_true(process_was_killed(wait_for(&own)));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(ends_of_processes_are_reported_in_words),
	    cmocka_unit_test(a_program_that_is_not_there_is_a_sentence),
	    cmocka_unit_test(a_child_begins_clean),
	    cmocka_unit_test(descriptors_arrive_where_they_are_asked_for),
	    cmocka_unit_test(orphans_of_other_sessions_are_ended_and_only_they),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
