/* The command of `watch --exec`, whatever it does. */
#include "commands/hook.h"

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

struct told {
	char text[256 * 1024]; /* what it printed */
	int output;
	struct hook hook;
};

static struct told *begin(const char *command)
{
	struct told *told = calloc(1, sizeof *told);
	char path[] = "/tmp/reftest-hook-XXXXXX";

	assert_non_null(told);
	told->output = mkostemp(path, O_CLOEXEC);
	assert_true(told->output >= 0);
	unlink(path);
	hook_open(&told->hook, command, told->output);
	return told;
}

static void end(struct told *told)
{
	hook_close(&told->hook);
	close(told->output);
	free(told);
}

static void run(struct told *told)
{
	struct err err = {""};

	assert_int_equal(hook_run(&told->hook, &err), 0);
	assert_string_equal(err.text, "");
}

/* Waits for its end; what it printed since the last time is in `text`. */
static const char *wait_for_end(struct told *told)
{
	struct pollfd fd = {hook_fd(&told->hook), POLLIN, 0};
	int status = 0;

	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
	assert_true(hook_ended(&told->hook, &status));
	ssize_t length = pread(told->output, told->text, sizeof told->text - 1, 0);

	assert_true(length >= 0);
	told->text[length] = '\0';
	assert_int_equal(ftruncate(told->output, 0), 0);
	assert_int_equal(lseek(told->output, 0, SEEK_SET), 0);
	return told->text;
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
	struct told *told = begin(command);

	hook_name(&told->hook, "norm", "a", STATUS_PASSED);
	run(told);
	hook_name(&told->hook, "norm", "b", STATUS_FAILED);
	run(told);
	hook_name(&told->hook, "norm", "b", STATUS_PASSED); /* saved again */
	hook_name(&told->hook, "gemm", "c", STATUS_INVALID);
	hook_name(&told->hook, "gemm", "d", STATUS_PASSED);
	hook_forget(&told->hook, "gemm/d");
	run(told);
	assert_true(told->hook.wanted);
	assert_int_equal(rmdir(gate), 0);
	assert_string_equal(wait_for_end(told), "norm/a 1 1 0 0 0 0\n");
	run(told);
	assert_false(told->hook.wanted);
	assert_string_equal(wait_for_end(told), "gemm/c norm/b 2 1 0 0 0 1\n");
	run(told); /* nothing is carried over */
	assert_string_equal(wait_for_end(told), "0 0 0 0 0 0\n");
	end(told);
}

static void it_reads_nothing_and_has_no_descriptor_of_ours(void **state)
{
	/* What whoever started us left open is not ours. */
	assert_int_equal(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC), 0);
	struct told *told =
	    begin("cat; for fd in 3 4 5 6 7 8 9; do [ ! -e /proc/$$/fd/$fd ] || echo $fd; done; echo end");

	(void)state;
	run(told);
	assert_string_equal(wait_for_end(told), "end\n");
	end(told);
}

static void ten_thousand_names_are_cut_at_a_lines_end(void **state)
{
	struct told *told = begin("printf '%s\\n' \"$REFTEST_NAMES\"; echo $REFTEST_COUNT $REFTEST_PASSED");
	char name[64];
	int lines = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "a_norm_with_a_name_that_is_rather_long_%05d", i);
		hook_name(&told->hook, "rmsnorm", name, STATUS_PASSED);
	}
	run(told);
	const char *text = wait_for_end(told);

	for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_in_range(strlen(text), HOOK_NAMES - 128, HOOK_NAMES + 64);
	assert_int_equal(strncmp(text, "rmsnorm/a_norm_with_a_name_that_is_rather_long_00000\n", 53), 0);
	assert_int_equal((strlen(text) - strlen("10000 10000\n")) % 53, 0); /* no name is cut in two */
	assert_true(lines > 1000);
	assert_non_null(strstr(text, "\n10000 10000\n"));
	end(told);
}

static void how_it_ended_is_told(void **state)
{
	static const struct {
		const char *command, *end;
	} rows[] = {{"exit 3", "exit status 3"},
		    {"kill -9 $$", "signal 9 (SIGKILL, Killed)"},
		    {"no such command 2>/dev/null", "exit status 127"}};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct told *told = begin(rows[i].command);
		int status;

		run(told);
		struct pollfd fd = {hook_fd(&told->hook), POLLIN, 0};

		assert_int_equal(poll(&fd, 1, LIMIT_MS), 1);
		assert_true(hook_ended(&told->hook, &status));
		assert_string_equal(process_end(status).text, rows[i].end);
		assert_int_equal(hook_fd(&told->hook), -1);
		end(told);
	}
}

static void it_ends_with_us_and_its_children_too(void **state)
{
	char line[64] = "";
	struct told *told = begin("trap '' INT TERM; sleep 1000 & echo $!; wait");

	(void)state;
	run(told);
	for (int i = 0; i < LIMIT_MS && strchr(line, '\n') == NULL; i++) {
		usleep(1000);
		assert_true(pread(told->output, line, sizeof line - 1, 0) >= 0);
	}
	pid_t child = (pid_t)strtol(line, NULL, 10);

	assert_true(child > 0);
	assert_int_equal(kill(child, 0), 0);
	end(told);
	for (int i = 0; i < LIMIT_MS; i++) { /* whoever adopts it reaps it when he likes; dead it must be */
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
	    cmocka_unit_test(how_it_ended_is_told),
	    cmocka_unit_test(it_ends_with_us_and_its_children_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
