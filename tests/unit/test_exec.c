/* test_exec - `watch --exec` starts the command, passes the names of definitions to it, and ends it even if it
 * misbehaves. */
#include "watcher/exec.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/close_range.h>

#include <cmocka.h>

enum { LIMIT_MS = 60000 };

struct session {
	char text[256 * 1024]; /* what the command printed */
	int output;
	struct exec exec;
};

static struct session *begin(const char *command)
{
	struct session *session = calloc(1, sizeof *session);
	char path[] = "/tmp/reftest-hook-XXXXXX";

	assert_non_null(session);
	session->output = mkostemp(path, O_CLOEXEC);
	assert_true(session->output >= 0);
	unlink(path);
	exec_open(&session->exec, command, session->output);
	return session;
}

static void end(struct session *session)
{
	exec_close(&session->exec);
	close(session->output);
	free(session);
}

static void run(struct session *session)
{
	struct err err = {""};

	assert_int_equal(exec_run(&session->exec, &err), 0);
	assert_string_equal(err.text, "");
}

/* Waits until the command ends, then returns what the command printed since the last call of this function. */
static const char *wait_for_end(struct session *session)
{
	struct pollfd fd = {exec_fd(&session->exec), POLLIN, 0};
	int status = 0;

	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
	assert_true(exec_ended(&session->exec, &status));
	ssize_t length = pread(session->output, session->text, sizeof session->text - 1, 0);

	assert_true(length >= 0);
	session->text[length] = '\0';
	assert_int_equal(ftruncate(session->output, 0), 0);
	assert_int_equal(lseek(session->output, 0, SEEK_SET), 0);
	return session->text;
}

#define SAYS                                                                                                           \
	"echo $REFTEST_NAMES $REFTEST_COUNT $REFTEST_PASSED $REFTEST_FAILED $REFTEST_ERROR $REFTEST_SKIPPED "          \
	"$REFTEST_INVALID"

static void what_comes_while_it_runs_is_one_more_run_with_each_name_once(void **state)
{
	char gate[] = "/tmp/reftest-gate-XXXXXX", command[512];

	(void)state;
	assert_non_null(mkdtemp(gate));
	snprintf(command, sizeof command, SAYS "; while [ -d %s ]; do sleep 0.01; done", gate);
	struct session *session = begin(command);

	exec_name(&session->exec, "norm", "a", STATUS_PASSED);
	run(session);
	exec_name(&session->exec, "norm", "b", STATUS_FAILED);
	run(session);
	exec_name(&session->exec, "norm", "b", STATUS_PASSED); /* the same definition was saved again */
	exec_name(&session->exec, "gemm", "c", STATUS_INVALID);
	exec_name(&session->exec, "gemm", "d", STATUS_PASSED);
	exec_forget(&session->exec, "gemm/d");
	run(session);
	assert_true(session->exec.wanted);
	assert_int_equal(rmdir(gate), 0);
	assert_string_equal(wait_for_end(session), "norm/a 1 1 0 0 0 0\n");
	run(session);
	assert_false(session->exec.wanted);
	assert_string_equal(wait_for_end(session), "gemm/c norm/b 2 1 0 0 0 1\n");
	run(session); /* a name that was passed to an earlier command is not passed again */
	assert_string_equal(wait_for_end(session), "0 0 0 0 0 0\n");
	end(session);
}

static void it_reads_nothing_and_has_no_descriptor_of_ours(void **state)
{
	/* The test's parent may have left descriptors open. This call marks these descriptors as close-on-exec, so that
	 * the command does not inherit them. */
	assert_int_equal(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
	struct session *session =
	    begin("cat; for fd in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$fd ] || echo $fd; done; echo end");

	(void)state;
	run(session);
	assert_string_equal(wait_for_end(session), "end\n");
	end(session);
}

static void ten_thousand_names_are_cut_at_a_lines_end(void **state)
{
	struct session *session = begin("printf '%s\\n' \"$REFTEST_NAMES\"; echo $REFTEST_COUNT $REFTEST_PASSED");
	char name[64];
	int lines = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "a_norm_with_a_name_that_is_rather_long_%05d", i);
		exec_name(&session->exec, "rmsnorm", name, STATUS_PASSED);
	}
	run(session);
	const char *text = wait_for_end(session);

	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_in_range(strlen(text), EXEC_NAMES - 128, EXEC_NAMES + 64);
	assert_int_equal(strncmp(text, "rmsnorm/a_norm_with_a_name_that_is_rather_long_00000\n", 53), 0);
	assert_int_equal((strlen(text) - strlen("10000 10000\n")) % 53, 0); /* the list of names is cut after a whole
									     * name */
	assert_true(lines > 1000);
	assert_non_null(strstr(text, "\n10000 10000\n"));
	end(session);
}

static void how_it_ended_is_reported(void **state)
{
	static const struct {
		const char *command, *end;
	} rows[] = {{"exit 3", "exit status 3"},
		    {"kill -9 $$", "signal 9 (SIGKILL, Killed)"},
		    {"no such command 2>/dev/null", "exit status 127"}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct session *session = begin(rows[i].command);
		int status;

		run(session);
		struct pollfd fd = {exec_fd(&session->exec), POLLIN, 0};

		assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
		assert_true(exec_ended(&session->exec, &status));
		assert_string_equal(process_end(status).text, rows[i].end);
		assert_int_equal(exec_fd(&session->exec), -1);
		end(session);
	}
}

static void it_ends_with_us_and_its_children_too(void **state)
{
	char line[64] = "";
	struct session *session = begin("trap '' INT TERM; sleep 1000 & echo $!; wait");

	(void)state;
	run(session);
	for (int i = 0; i < LIMIT_MS && strchr(line, '\n') == NULL; i++) {
		usleep(1000);
		assert_true(pread(session->output, line, sizeof line - 1, 0) >= 0);
	}
	pid_t child = (pid_t)strtol(line, NULL, 10);

	assert_true(child > 0);
	assert_int_equal(kill(child, 0), 0);
	end(session);
	/* the child is adopted by another process, which may reap it late, so the child may be a zombie for a while */
	for (int i = 0; i < LIMIT_MS; i++) {
		char path[64], text[512] = "";

		snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
		FILE *file = fopen(path, "r");

		if (file == NULL)
			return;
		text[fread(text, 1, sizeof text - 1, file)] = '\0';
		fclose(file);
		if (strstr(text, ") Z") != NULL || strstr(text, ") X") != NULL)
			return;
		usleep(1000);
	}
	fail();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_comes_while_it_runs_is_one_more_run_with_each_name_once),
	    cmocka_unit_test(it_reads_nothing_and_has_no_descriptor_of_ours),
	    cmocka_unit_test(ten_thousand_names_are_cut_at_a_lines_end),
	    cmocka_unit_test(how_it_ended_is_reported),
	    cmocka_unit_test(it_ends_with_us_and_its_children_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
