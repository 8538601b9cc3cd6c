/* test_store_stopped - a process that is stopped by Ctrl-Z (SIGTSTP) does not block others that open, write or close
 * the store. A process that is stopped by SIGSTOP can block others. Then a message names the stopped process and says
 * what to do, and the blocked process continues as soon as it can. */
#include "cache/store.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/lmdb_env.h"

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

/* Starts a process that writes without a pause. It has a process group of its own, because the test may have been
 * started in an orphaned process group, in which the kernel ignores SIGTSTP. */
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

static void a_process_that_is_stopped_blocks_nobody(void **state)
{
	char root[] = "/tmp/reftest-stopped-XXXXXX";
	int status;

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(put_fact(root, "first"), 0);
	pid_t child = begin_writing(root);

	alarm(LIMIT_S); /* if the processes block each other, this ends the test */
	for (int i = 0; i < STOPS; i++) {
		usleep((useconds_t)(i * 37 % 1000)); /* lets the process reach a random point of its work */
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

static int stop_here(MDB_txn *txn, struct env *env, void *context)
{
	(void)txn, (void)env, (void)context;
	return raise(SIGSTOP);
}

/* Stops the child inside a transaction of the store. */
static void stop_while_writing(const char *root)
{
	static struct env env;
	struct err note, err;

	_exit(env_open(&env, root, false, &note, &err) != ENV_OPEN || env_write(&env, stop_here, NULL, &err) != 0);
}

/* Stops the child while the child holds the lock for opening and closing. */
static void stop_while_opening(const char *root)
{
	char folder[64];

	snprintf(folder, sizeof folder, "%s/.reftest", root);
	int fd = open(folder, O_RDONLY | O_DIRECTORY);

	_exit(flock(fd, LOCK_EX) != 0 || raise(SIGSTOP) != 0);
}

static pid_t begin_stopped(const char *root, void (*stops)(const char *))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		stops(root);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	return child;
}

/* Starts a process that puts one verdict. Sets `out` to a pipe from which the test can read the standard error of the
 * process. */
static pid_t begin_put(const char *root, FILE **out)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();

	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		_exit(put_fact(root, "by the one that waits") != 0);
	}
	close(ends[1]);
	*out = fdopen(ends[0], "r");
	return child;
}

static void assert_reported_and_done(const char *root, void (*stops)(const char *))
{
	char line[8192] = "", wanted[64];
	FILE *reported;
	int status;
	pid_t holder = begin_stopped(root, stops), waits = begin_put(root, &reported);

	alarm(LIMIT_S); /* if the process never gets the lock, SIGALRM kills it */
	assert_non_null(fgets(line, sizeof line, reported));
	assert_non_null(strstr(line, root));
	snprintf(wanted, sizeof wanted, "process %d, which is stopped: `kill -CONT %d`", (int)holder, (int)holder);
	assert_non_null(strstr(line, wanted));
	kill(holder, SIGCONT);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(waits, &status, 0), waits);
	assert_int_equal(status, 0);
	alarm(0);
	assert_null(fgets(line, sizeof line, reported)); /* the message is printed only once */
	fclose(reported);
}

static void a_blocked_process_names_the_process_that_blocks_it(void **state)
{
	char root[] = "/tmp/reftest-held-XXXXXX", command[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_int_equal(put_fact(root, "first"), 0);
	assert_reported_and_done(root, stop_while_writing);
	assert_reported_and_done(root, stop_while_opening);
	snprintf(command, sizeof command, "rm -rf %s", root);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_process_that_is_stopped_blocks_nobody),
	                                   cmocka_unit_test(a_blocked_process_names_the_process_that_blocks_it)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
