/* A process that Ctrl-Z stops holds up nobody: whoever else writes to the store, or opens or closes it, does so at
 * once. */
#include "cache/store.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STOPS = 150, LIMIT_S = 60 };

static int put_fact(const char *root, const char *key)
{
	struct store_options options = {0};
	struct err note, err;
	struct store *store = store_open(root, &options, &note, &err);
	int answer = store != NULL ? store_put_fact(store, key, "kept", &err) : -1;

	store_close(store);
	return answer;
}

/* Writes without a pause, in a process group of its own: the terminal's stop does nothing to one that nobody looks
 * after. */
static pid_t begin_writing(const char *root)
{
	pid_t child = fork();

	if (child == 0) {
		setpgid(0, 0);
		while (put_fact(root, "by the one that is stopped") == 0)
			;
		_exit(1);
	}
	setpgid(child, child);
	return child;
}

static void one_that_is_stopped_holds_up_nobody(void **state)
{
	char root[] = "/tmp/reftest-stopped-XXXXXX";
	int status;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(put_fact(root, "first"), 0);
	pid_t child = begin_writing(root);

	alarm(LIMIT_S); /* a deadlock ends the test */
	for (int i = 0; i < STOPS; i++) {
		usleep((useconds_t)(i * 37 % 1000)); /* somewhere in the middle of what it does */
		assert_int_equal(kill(child, SIGTSTP), 0);
		assert_int_equal(waitpid(child, &status, WUNTRACED), child);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(put_fact(root, "by the other"), 0);
		kill(child, SIGCONT);
	}
	alarm(0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	char command[64];

	snprintf(command, sizeof command, "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(one_that_is_stopped_holds_up_nobody)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
