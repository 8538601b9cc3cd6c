/* test_store_readers - the store survives readers that die while they read. LMDB keeps all pages that a reader may
 * still need. If a dead reader were never removed from the table of readers, the file would grow without limit, and the
 * table could become full. */
#include "cache/store.h"

#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 60000, WRITES = 800, ROOM = 16 << 20, PLACES_MOST = 1000 };

/* Replaces fdatasync by a function that does nothing, because the test needs no durability. */
__attribute__((visibility("default"))) int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

struct place {
	char root[64];
	char text[BYTES];
	struct err note, err;
	struct arena arena;
};

static struct store *open_here(struct place *p)
{
	struct store_options options = {.read_only = false};
	struct store *store = store_open(p->root, &options, &p->note, &p->err);

	if (store == NULL)
		fail_msg("%s", p->err.text);
	return store;
}

/* Puts verdict `number`, whose text depends on `turn`. Each call replaces the verdict, which frees pages. */
static void put(struct place *p, struct store *store, int number, int turn)
{
	memset(p->text, 'a' + turn % 26, BYTES);
	struct store_put one = {.subject = digest_of(&number, sizeof number),
				.witness = digest_of("w", 1),
				.text = p->text,
				.length = BYTES,
				.definition = "norm/n",
				.case_id = "case",
				.fields = "fields",
				.fields_length = 6,
				.keep_verdict = true};

	if (store_put(store, &one, 1, &p->err) != 0)
		fail_msg("%s", p->err.text);
}

static off_t bytes_of_file(const struct place *p)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof path, "%s/.reftest/cache/data.mdb", p->root);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static int reading = -1; /* the child uses this pipe to report that it is in the middle of a read */

static void stop_here(const struct verdict_line *record, int64_t left, void *context)
{
	(void)record, (void)left, (void)context;
	if (write(reading, "", 1) == 1)
		pause();
	_exit(1);
}

/* Starts a process that stays in the middle of a read. Returns its pid, or 0 if the table of readers is full. */
static pid_t begin_reader(struct place *p)
{
	int fds[2];
	char byte;

	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails, the child dies with the test */
		struct store_options options = {.read_only = true};
		struct store *store = store_open(p->root, &options, &p->note, &p->err);
		int64_t damaged;

		reading = fds[1];
		close(fds[0]);
		if (store != NULL)
			store_each_verdict(store, stop_here, NULL, &damaged, &p->err);
		_exit(2);
	}
	close(fds[1]);
	ssize_t heard = read(fds[0], &byte, 1);

	close(fds[0]);
	if (heard == 1)
		return child;
	waitpid(child, NULL, 0);
	return 0;
}

static void end_reader(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Starts a process that opens the store and does nothing. */
static pid_t begin_holder(struct place *p)
{
	int fds[2];
	char byte;

	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_here(p);
		if (write(fds[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	close(fds[1]);
	return child;
}

static void a_living_reader_keeps_what_it_may_see(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);

	put(p, store, 0, 0);
	pid_t child = begin_reader(p);

	assert_true(child > 0);
	for (int i = 0; i < WRITES; i++)
		put(p, store, 1, i);
	assert_true(bytes_of_file(p) > WRITES / 2 * BYTES); /* shows that a live reader makes the file grow, as the next
							     * tests assume */
	end_reader(child);
	store_close(store);
}

static void the_place_of_a_dead_reader_is_free_for_who_opens(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);

	put(p, store, 0, 0);
	store_close(store);
	pid_t holder = begin_holder(p); /* while a process has the store open, LMDB keeps the table of readers */

	end_reader(begin_reader(p));
	store = open_here(p);
	for (int i = 0; i < WRITES; i++)
		put(p, store, 1, i);
	assert_true(bytes_of_file(p) < 16 * BYTES); /* the file did not grow, because LMDB used the same pages again */
	end_reader(holder);
	store_close(store);
}

/* A process that has had the store open for days, such as `watch`, also removes dead readers. */
static void the_place_of_a_dead_reader_is_free_for_who_had_it_open(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);

	put(p, store, 0, 0);
	end_reader(begin_reader(p));
	for (int i = 0; i < WRITES; i++)
		put(p, store, 1, i);
	assert_true(bytes_of_file(p) <= ROOM); /* the memory map did not grow */
	store_close(store);
}

static void readers_that_died_in_every_place_are_no_obstacle(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	pid_t children[PLACES_MOST];
	int count = 0;

	put(p, store, 0, 0);
	for (; count < PLACES_MOST && (children[count] = begin_reader(p)) > 0; count++)
		;
	assert_in_range(count, 250, PLACES_MOST - 1); /* the loop ended because the table of readers is full */
	for (int i = 0; i < count; i++)
		end_reader(children[i]);

	struct digest subject = digest_of(&(int){0}, sizeof(int)), witness = digest_of("w", 1);
	const char *text;
	size_t length;

	assert_int_equal(store_verdict(store, &subject, &witness, &p->arena, &text, &length, &p->err), CACHE_HIT);
	assert_int_equal(length, BYTES);
	store_close(store);
}

static int place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	strcpy(p->root, "/tmp/reftest-readers-XXXXXX");
	*state = p;
	return mkdtemp(p->root) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static int place_remove(void **state)
{
	struct place *p = *state;

	nftw(p->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	arena_free(&p->arena);
	free(p);
	return 0;
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    HERE(a_living_reader_keeps_what_it_may_see),
	    HERE(the_place_of_a_dead_reader_is_free_for_who_opens),
	    HERE(the_place_of_a_dead_reader_is_free_for_who_had_it_open),
	    HERE(readers_that_died_in_every_place_are_no_obstacle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
