/* test_store_many_processes - sixty-four processes use one store at the same time: they put, read, merge, export and
 * sweep. Meanwhile the file grows and is replaced by a smaller one, and some processes are killed. No stored verdict is
 * lost, no verdict is wrong, and every process ends. fsync does nothing in this test, so the processes wait only for
 * processors and locks. */
#include "cache/store.h"

#include <ftw.h>
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

#include "cache/export_import.h"
#include "tests/unit/numbered_verdicts.h"

enum { PROCESSES = 64, ROUNDS = 24, ALL = PROCESSES * ROUNDS, DAY = 86400, LIMIT_S = 240 };

static volatile char *acked; /* one byte for each of ALL verdicts, in memory that all processes share; 1: the verdict is
			      * stored */

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

__attribute__((visibility("default"))) int fsync(int fd)
{
	(void)fd;
	return 0;
}

struct actor {
	char root[128];
	struct store *store;
	struct arena arena;
	struct err note, err;
	int number;
	unsigned noise;
};

static unsigned draw(struct actor *a)
{
	return (a->noise = a->noise * 1664525 + 1013904223) >> 8;
}

/* Verdicts with numbers from ALL on are dated long ago, so sweeping removes them. */
static struct store_put put_of(struct actor *a, int number)
{
	bool old = number >= ALL;

	return numbered_verdict(&a->arena, number, old ? 1000 : 200 * DAY + number,
			old		  ? 60000
			: number % 5 == 0 ? 40000
					  : 500);
}

static void give_up(struct actor *a, const char *what)
{
	fprintf(stderr, "# process %d: %s: %s %s\n", a->number, what, a->err.text, a->note.text);
	_exit(1);
}

static void open_it(struct actor *a)
{
	struct store_options options = {0};

	a->store = store_open(a->root, &options, &a->note, &a->err);
	if (a->store == NULL || a->note.text[0] != '\0')
		give_up(a, "open");
}

static void put(struct actor *a, int number)
{
	struct store_put one = put_of(a, number);

	if (store_put(a->store, &one, 1, &a->err) != 0)
		give_up(a, "put");
	if (number < ALL)
		acked[number] = 1;
}

static void merge(struct actor *a, int number)
{
	struct store_put one = put_of(a, number);
	struct store_merged merged;
	struct verdict_line record = {.subject = one.subject,
				  .witness = one.witness,
				  .text = one.text,
				  .length = one.length,
				  .made = verdict_time(one.text, one.length)};

	if (store_merge(a->store, &record, 1, &merged, &a->err) != 0)
		give_up(a, "merge");
	acked[number] = 1;
}

static void look(struct actor *a, int number)
{
	bool must = acked[number] != 0;
	struct store_put expected = put_of(a, number);
	const char *text;
	size_t length;
	enum cache_answer answer =
	    store_verdict(a->store, &expected.subject, &expected.witness, &a->arena, &text, &length, &a->err);

	if (answer == CACHE_HIT && (length != expected.length || memcmp(text, expected.text, length) != 0))
		give_up(a, "a wrong verdict");
	if (answer == CACHE_ERROR)
		give_up(a, "read");
	if (must && answer != CACHE_HIT)
		give_up(a, "a verdict was lost");
}

static void sweep(struct actor *a)
{
	struct buf stored = {0};
	struct store_needs needs = {.stored = &stored, .days = 30};
	struct store_swept swept;

	if (store_verdict_keys(a->store, &stored, &a->err) != 0 || store_gc(a->store, &needs, false, &swept, &a->err) != 0)
		give_up(a, "sweep");
	buf_free(&stored);
}

static void export(struct actor *a)
{
	char path[200];
	struct export_counts out;

	snprintf(path, sizeof path, "%s/archive%d", a->root, a->number);
	if (export_verdicts(a->store, path, NULL, &out, &a->err) != 0 || out.left_out != 0)
		give_up(a, "export");
}

/* The work of one process. Of eight processes, one dies in the middle of its work, and another one opens the store
 * again in each round, as `verify` does. */
static void act(struct actor *a)
{
	alarm(LIMIT_S);
	open_it(a);
	for (int round = 0; round < ROUNDS; round++) {
		int mine = a->number * ROUNDS + round;

		if (a->number % 8 == 1) {
			store_close(a->store);
			open_it(a);
		}
		if (a->number % 8 == 2 && round == ROUNDS / 2)
			kill(getpid(), SIGKILL);
		(a->number % 8 == 3 ? merge : put)(a, mine);
		look(a, mine);
		if (a->number % 8 == 4)
			put(a, ALL + mine);
		if (a->number % 16 == 5 && round % 8 == 7)
			sweep(a);
		if (a->number % 16 == 6 && round % 12 == 11)
			export(a);
		/* After the store's file has been replaced, a process sees the verdicts of other processes only after
		 * its next write. But it must see its own verdicts immediately. */
		look(a, a->number * ROUNDS + (int)(draw(a) % (unsigned)(round + 1)));
		arena_free(&a->arena);
	}
	store_close(a->store);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static void sixty_four_processes_lose_nothing(void **state)
{
	struct actor a = {.root = "/tmp/reftest-many-XXXXXX"};
	pid_t children[PROCESSES];
	struct err err;
	int kept = 0;

	(void)state;
	acked = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(acked != MAP_FAILED);
	assert_non_null(mkdtemp(a.root));
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			a.number = i;
			a.noise = (unsigned)i;
			act(&a);
			_exit(0);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		waitpid(children[i], &status, 0);
		if (i % 8 == 2 ? !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) : status != 0)
			fail_msg("process %d ended with %x", i, status);
	}
	assert_int_equal(store_damage(a.root, &err), 0);
	open_it(&a);
	for (int i = 0; i < ALL; i++) {
		kept += acked[i];
		look(&a, i);
	}
	assert_true(kept >= ALL - PROCESSES / 8 * ROUNDS);
	sweep(&a);
	for (int i = 0; i < ALL; i++)
		look(&a, i);
	store_close(a.store);
	arena_free(&a.arena);
	nftw(a.root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	munmap((void *)acked, ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(sixty_four_processes_lose_nothing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
