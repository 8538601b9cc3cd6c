/* test_store_turns - only one process at a time opens or closes the store. In newer versions of LMDB (0.9.31 of Ubuntu
 * 24.04, but not 0.9.24 of Debian 12), the last user of a database destroys the mutexes in lock.mdb before it releases
 * the file lock. A process that opens the database between these two steps waits for the lock and then uses destroyed
 * mutexes, so each of its transactions fails with EINVAL. The test makes the time between the two steps half a second
 * long. It also checks that a process does no harm if it dies between the two steps. */
#include "cache/store.h"

#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <lmdb.h>

/* Memory that two processes share: the progress of the process that closes the store. */
struct stage {
	volatile int closing;	/* number of calls of pthread_mutex_destroy on LMDB's mutexes */
	/* how long each call of pthread_mutex_destroy takes, in milliseconds; -1: the process dies in the call */
	volatile int linger_ms;
};

static struct stage *stage;

/* This function is called in place of the C library's, also by LMDB. As in glibc, the function only marks the mutex as
 * destroyed. */
__attribute__((visibility("default"))) int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	mutex->__data.__kind = -1;
	if (stage != NULL) {
		stage->closing = stage->closing + 1;
		if (stage->linger_ms < 0)
			raise(SIGKILL);
		usleep((useconds_t)stage->linger_ms * 1000);
	}
	return 0;
}

static struct store *open_store(const char *root, struct err *err)
{
	struct store_options options = {0};
	struct err note;

	return store_open(root, &options, &note, err);
}

static int put_fact(const char *root, const char *key, struct err *err)
{
	struct store *store = open_store(root, err);
	int answer = store != NULL ? store_put_fact(store, key, "kept", err) : -1;

	store_close(store);
	return answer;
}

static bool ended(pid_t child)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

/* Returns true if this version of LMDB is known to destroy the mutexes. With versions of LMDB that do
 * not destroy them, the test only checks that the store works. */
static bool destroys(void)
{
	int major, minor, patch;

	mdb_version(&major, &minor, &patch);
	return major == 0 && minor == 9 && patch >= 29;
}

/* Starts a process that stores an entry and closes the store. Each call of pthread_mutex_destroy in this process takes
 * `linger_ms` milliseconds. */
static pid_t begin_closing(const char *root, int linger_ms)
{
	stage->closing = 0;
	stage->linger_ms = linger_ms;
	pid_t child = fork();

	if (child == 0) {
		struct err err = {""};

		_exit(put_fact(root, "by the one that closes", &err) == 0 ? 0 : 1);
	}
	for (int i = 0; i < 5000 && stage->closing == 0 && !ended(child); i++)
		usleep(1000);
	if (destroys())
		assert_true(stage->closing > 0);
	return child;
}

static int in_another_process(const char *root)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct err err = {""};

		stage->linger_ms = 0;
		int answer = put_fact(root, "by the one that opens", &err);

		if (answer != 0)
			fprintf(stderr, "%s\n", err.text);
		_exit(answer == 0 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status;
}

static void expect_facts(const char *root)
{
	struct err err = {""};
	struct arena arena = {0};
	const char *value;
	struct store *store = open_store(root, &err);

	assert_non_null(store);
	assert_int_equal(store_fact(store, "by the one that closes", &arena, &value, &err), CACHE_HIT);
	assert_int_equal(store_fact(store, "by the one that opens", &arena, &value, &err), CACHE_HIT);
	store_close(store);
	arena_free(&arena);
}

static void a_process_that_opens_while_another_closes_can_write(void **state)
{
	int status;

	pid_t child = begin_closing(*state, 250);

	assert_int_equal(in_another_process(*state), 0);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	expect_facts(*state);
}

static void a_process_that_dies_while_it_closes_leaves_a_usable_store(void **state)
{
	int status;

	pid_t child = begin_closing(*state, -1);

	assert_int_equal(in_another_process(*state), 0);
	waitpid(child, &status, 0);
	assert_true(destroys() ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == 0);
	stage->linger_ms = 0;
	expect_facts(*state);
}

static int make_root(void **state)
{
	char *root = strdup("/tmp/reftest-turns-XXXXXX");

	stage = mmap(NULL, sizeof *stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*state = root;
	return stage == MAP_FAILED || mkdtemp(root) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static int remove_root(void **state)
{
	nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	munmap(stage, sizeof *stage);
	stage = NULL;
	free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_process_that_opens_while_another_closes_can_write, make_root, remove_root),
	    cmocka_unit_test_setup_teardown(a_process_that_dies_while_it_closes_leaves_a_usable_store, make_root, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
