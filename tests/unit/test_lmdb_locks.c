/* test_lmdb_locks - no process ever waits for a mutex of LMDB, because it takes a file lock first. If a process is
 * killed at the moment at which such a mutex wakes it, the wakeup is lost, and all other waiting processes wait for
 * ever. */
#include "cache/lmdb_locks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cache/store.h"
#include "tests/unit/folder.h"

enum { PROCESSES = 8, ROUNDS = 150 };

/* Memory that the processes of a test share. */
struct counts {
	atomic_int taken, waited; /* the number of calls of pthread_mutex_lock on mutexes that processes share, and the
				   * number of those calls that had to wait */
};

static struct counts *counts;

/* This function is called in place of the C library's, also by LMDB. */
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int (*real)(pthread_mutex_t *) = NULL;
	int rc = pthread_mutex_trylock(mutex);
	bool shared = (mutex->__data.__kind & 0x80) != 0; /* glibc's bit for PTHREAD_PROCESS_SHARED */

	if (counts != NULL && shared) {
		atomic_fetch_add(&counts->taken, 1);
		if (rc == EBUSY)
			atomic_fetch_add(&counts->waited, 1);
	}
	if (rc != EBUSY)
		return rc;
	*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	return real(mutex);
}

static struct store *open_store(void)
{
	struct store_options options = {0};
	struct err note, err;

	return store_open(".", &options, &note, &err);
}

/* Writes and reads ROUNDS facts. Returns the exit status of the process. */
static int write_and_read(int number)
{
	struct store *store = open_store();
	struct arena arena = {0};
	bool right = store != NULL;

	for (int i = 0; right && i < ROUNDS; i++) {
		struct err err;
		const char *value;
		char key[32];

		snprintf(key, sizeof key, "%d of %d", i, number);
		right = store_put_fact(store, key, key, &err) == 0 &&
			store_fact(store, key, &arena, &value, &err) == CACHE_HIT && strcmp(value, key) == 0;
	}
	store_close(store);
	arena_free(&arena);
	return right ? 0 : 1;
}

static void no_process_waits_for_a_mutex(void **state)
{
	pid_t children[PROCESSES];

	(void)state;
	store_close(open_store());
	counts->taken = counts->waited = 0;
	for (int i = 0; i < PROCESSES; i++)
		if ((children[i] = fork()) == 0)
			_exit(write_and_read(i));
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		waitpid(children[i], &status, 0);
		assert_int_equal(status, 0);
	}
	assert_true(counts->taken >= PROCESSES * ROUNDS * 2);
	assert_int_equal(counts->waited, 0);
}

static const char lock_file[] = "lock.mdb";

/* Opens the lock file and waits for both locks. Returns the descriptor. */
static int take_both(void)
{
	int locks = lmdb_locks_open(lock_file);

	lmdb_lock(locks, LMDB_LOCK_WRITE, ".", lock_file);
	lmdb_lock(locks, LMDB_LOCK_READERS, ".", lock_file);
	return locks;
}

/* Starts a process that takes both locks, and then kills itself with signal `number`, or exits if `number` is 0. The
 * process is also killed if it has not got the locks within a minute. Returns the process's wait status. */
static int status_with_both(int number)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		alarm(60);
		if (take_both() == LMDB_LOCKS_NONE)
			_exit(1);
		if (number != 0)
			raise(number);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status;
}

static void a_process_that_dies_releases_its_locks(void **state)
{
	(void)state;
	put(lock_file, "");
	int killed = status_with_both(SIGKILL);

	assert_true(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
	assert_int_equal(status_with_both(0), 0);
}

static void a_lock_is_held_until_it_is_released(void **state)
{
	(void)state;
	put(lock_file, "");
	for (enum lmdb_lock lock = LMDB_LOCK_WRITE; lock <= LMDB_LOCK_READERS; lock++) {
		int locks = lmdb_locks_open(lock_file), status;

		lmdb_lock(locks, lock, ".", lock_file);
		pid_t child = fork();

		if (child == 0) {
			int own = lmdb_locks_open(lock_file);

			lmdb_lock(own, lock, ".", lock_file);
			_exit(own == LMDB_LOCKS_NONE);
		}
		usleep(100000);
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
		lmdb_unlock(locks, lock);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		close(locks);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(no_process_waits_for_a_mutex, enter_folder, leave_folder),
	    cmocka_unit_test_setup_teardown(a_process_that_dies_releases_its_locks, enter_folder, leave_folder),
	    cmocka_unit_test_setup_teardown(a_lock_is_held_until_it_is_released, enter_folder, leave_folder),
	};

	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return counts == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
