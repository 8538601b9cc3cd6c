/* test_store_damage - a damaged record is never returned, and no stored verdict is lost because of a broken file, a
 * full disk or a read-only folder. */
#include "tests/unit/store_world.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <lmdb.h>

/* --- Damage ------------------------------------------------------------------------------------------------------- */

static void a_verdict_with_one_changed_byte_is_a_miss_and_is_counted(void **state)
{
	struct place *p = *state;
	size_t length, seen = 0;

	fill(p, 1, 400);
	char *bytes = slurp(p, &length);
	char *row = memmem(bytes, length, "rftr\1\0\2\0", 8); /* the first bytes of a verdict's record */

	assert_non_null(row);
	for (size_t at = (size_t)(row - bytes), end = at + 20 + 12 + 402; at < end; at++) {
		char flipped = (char)(bytes[at] ^ 0x40);

		scribble(p, (off_t)at, &flipped, 1);
		struct store *store = try_open(p, at % 2 == 0);
		struct store_stats stats;

		assert_non_null(store);
		assert_int_equal(get_number(p, store, 0, 400), CACHE_MISS);
		assert_int_equal(store_stats(store, &stats, &p->err), 0);
		assert_int_equal(stats.damaged, 1);
		store_close(store);
		scribble(p, (off_t)at, &bytes[at], 1);
		seen++;
	}
	assert_int_equal(seen, 434);
	struct store *store = open_here(p);

	assert_there(p, store, 0, 1, 400);
	store_close(store);
	free(bytes);
}

static bool opening_checks_the_pages(struct place *p)
{
	struct store *store = open_here(p);
	struct store_stats stats;

	assert_string_equal(p->note.text, "");
	assert_int_equal(store_stats(store, &stats, &p->err), 0);
	assert_there(p, store, 0, 5, 10);
	store_close(store);
	return stats.checked;
}

/* Sets the times of the file `clean` to `seconds` seconds from now. */
static void date_clean(const struct place *p, time_t seconds)
{
	struct timespec times[2];

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
	times[0].tv_sec += seconds;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, in(p, "cache/clean"), times, 0), 0);
}

static void a_file_is_trusted_without_a_look_only_as_it_was_left(void **state)
{
	struct place *p = *state;

	fill(p, 5, 10);
	date_clean(p, 10);
	assert_false(opening_checks_the_pages(p));
	date_clean(p, -10); /* the file may have changed in the same clock tick as the last commit, so it is checked */
	assert_true(opening_checks_the_pages(p));
	date_clean(p, 10); /* after a check, the file is trusted, as it is after a commit */
	assert_false(opening_checks_the_pages(p));
	struct stat st;

	assert_int_equal(stat(in(p, "cache/data.mdb"), &st), 0);
	assert_int_equal(truncate(in(p, "cache/data.mdb"), st.st_size + 1), 0);
	assert_true(opening_checks_the_pages(p));
	date_clean(p, 10);
	int fd = open(in(p, "cache/clean"), O_RDWR);

	assert_int_equal(pwrite(fd, "!", 1, 30), 1);
	close(fd);
	date_clean(p, 10);
	assert_true(opening_checks_the_pages(p));
	assert_int_equal(unlink(in(p, "cache/clean")), 0);
	assert_true(opening_checks_the_pages(p));
}

/* Opens the store, and checks that the damaged file was set aside and that the new store works. */
static void assert_set_aside(struct place *p, int times)
{
	char aside[64];
	struct store *store = open_here(p);

	snprintf(aside, sizeof aside, "cache.aside-%d", times);
	if (strstr(p->note.text, aside) == NULL)
		fail_msg("the note does not name %s: \"%s\"", aside, p->note.text);
	assert_true(there(p, aside));
	assert_int_equal(get_number(p, store, 0, 10), CACHE_MISS);
	assert_int_equal(put_number(p, store, 0, 10), 0);
	assert_int_equal(get_number(p, store, 0, 10), CACHE_HIT);
	store_close(store);
	store = open_here(p);
	assert_string_equal(p->note.text, "");
	assert_int_equal(get_number(p, store, 0, 10), CACHE_HIT);
	store_close(store);
}

static void a_file_of_garbage_is_set_aside_with_a_sentence(void **state)
{
	struct place *p = *state;

	fill(p, 3, 10);
	scribble(p, 0, "This is no database, but some text that was copied here.", 56);
	assert_null(try_open(p, true)); /* a read-only open does not set the file aside */
	assert_non_null(strstr(p->err.text, "not an LMDB database"));
	assert_set_aside(p, 1);
	int fd = open(in(p, "cache/data.mdb"), O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, "short", 5), 5);
	close(fd);
	assert_set_aside(p, 2);
}

static void a_truncated_file_is_set_aside_wherever_it_was_cut(void **state)
{
	struct place *p = *state;
	size_t length, at = 0;
	int aside = 0;

	fill(p, 200, 3000);
	char *bytes = slurp(p, &length);

	for (size_t cut = length - 1; cut > 100; cut = cut * 3 / 4) {
		int fd = open(in(p, "cache/data.mdb"), O_RDWR | O_TRUNC);

		assert_int_equal(write(fd, bytes, cut), cut);
		close(fd);
		assert_set_aside(p, ++aside);
		at = cut;
	}
	assert_true(at < 200);
	free(bytes);
}

/* Whole pages are overwritten by zeros, by noise, and by other pages of the same file. The store never crashes, and
 * every verdict that is found is right. */
static void damaged_pages_never_crash_and_never_give_a_wrong_verdict(void **state)
{
	struct place *p = *state;
	size_t length, size = page_size();
	char *noise = malloc(size);
	int set_aside = 0, harmless = 0;
	unsigned seed = 1;

	fill(p, 60, 300);
	char *bytes = slurp(p, &length);

	for (size_t page = 0; page < length / size; page++) {
		for (int kind = 0; kind < 4; kind++) {
			int fd = open(in(p, "cache/data.mdb"), O_RDWR | O_TRUNC);

			for (size_t i = 0; i < size; i++)
				noise[i] = (char)(kind == 0 ? 0 : (seed = seed * 1664525 + 1013904223) >> 24);
			if (kind == 2)
				memcpy(noise, bytes + (page + 1) * size % length, size);
			if (kind == 3) { /* only a part of the page is overwritten */
				memcpy(noise, bytes + page * size, size);
				memset(noise + seed % 4000, 0xFF, 96);
			}
			assert_int_equal(write(fd, bytes, length), length);
			assert_int_equal(pwrite(fd, noise, size, (off_t)(page * size)), size);
			close(fd);
			struct store *store = open_here(p);

			*(p->note.text[0] != '\0' ? &set_aside : &harmless) += 1;
			for (int i = 0; i < 60; i++)
				assert_int_not_equal(get_number(p, store, i, 300), CACHE_ERROR);
			assert_int_equal(put_number(p, store, 1000, 300), 0);
			store_close(store);
		}
	}
	assert_true(set_aside > 20 && harmless > 5);
	free(noise);
	free(bytes);
}

static void a_store_of_another_format_is_set_aside(void **state)
{
	struct place *p = *state;
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val key = {3, "key"}, value = {5, "value"};

	fill(p, 1, 10);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_open(env, in(p, "cache"), 0, 0644), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
	key = (MDB_val){8, "reftest"};
	assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
	assert_null(try_open(p, true));
	assert_non_null(strstr(p->err.text, "another version of reftest created it"));
	assert_set_aside(p, 1);
}

static void a_file_of_another_lmdb_is_set_aside(void **state)
{
	struct place *p = *state;

	fill(p, 1, 10);
	scribble(p, 16 + 4, "\2\0\0\0", 4); /* writes another format number to both meta pages */
	scribble(p, (off_t)page_size() + 16 + 4, "\2\0\0\0", 4);
	assert_set_aside(p, 1);
}

static void a_folder_or_a_file_in_the_way_is_a_sentence(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdir(in(p, ""), 0755), 0);
	int fd = open(in(p, "cache"), O_CREAT | O_WRONLY, 0644);

	close(fd);
	assert_null(try_open(p, false));
	assert_non_null(strstr(p->err.text, "/.reftest/cache"));
	assert_int_equal(unlink(in(p, "cache")), 0);
	assert_int_equal(mkdir(in(p, "cache"), 0755), 0);
	assert_int_equal(mkdir(in(p, "cache/data.mdb"), 0755), 0);
	assert_set_aside(p, 1);
}

static void a_root_that_is_not_there_is_a_sentence(void **state)
{
	struct place *p = *state;
	size_t length = strlen(p->root);

	strcat(p->root, "/nowhere");
	assert_null(try_open(p, false));
	assert_non_null(strstr(p->err.text, "No such file"));
	assert_null(try_open(p, true));
	assert_string_equal(p->err.text, "");
	p->root[length] = '\0';
}

/* --- read-only, full and removed stores --------------------------------------------------------------------------- */

static void reading_alone_makes_nothing(void **state)
{
	struct place *p = *state;

	assert_null(try_open(p, true));
	assert_string_equal(p->err.text, "");
	assert_false(there(p, ""));
	fill(p, 2, 10);
	assert_int_equal(unlink(in(p, "cache/lock.mdb")), 0);
	assert_int_equal(unlink(in(p, "cache/clean")), 0);
	struct store *store = try_open(p, true);

	assert_non_null(store);
	assert_false(store_writable(store));
	assert_there(p, store, 0, 2, 10);
	assert_int_equal(put_number(p, store, 3, 10), -1);
	assert_non_null(strstr(p->err.text, "opened read-only"));
	store_close(store);
	assert_false(there(p, "cache/lock.mdb"));
	assert_false(there(p, "cache/clean"));
}

/* Runs `work` in a child process as a user other than root; returns its exit status. */
static int as_nobody(struct place *p, int (*work)(struct place *))
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(99);
		_exit(work(p));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int use_read_only_folder(struct place *p)
{
	struct store *store = try_open(p, false);

	if (store == NULL || store_writable(store))
		return 1;
	if (strstr(p->note.text, "cannot be written") == NULL ||
	    strstr(p->note.text, "new verdicts are not stored") == NULL)
		return 2;
	for (int i = 0; i < 20; i++)
		if (get_number(p, store, i, 10) != CACHE_HIT)
			return 3;
	if (put_number(p, store, 100, 10) != -1 || strstr(p->err.text, "cannot be written") == NULL)
		return 4;
	if (get_number(p, store, 1, 10) != CACHE_HIT)
		return 5;
	store_close(store);
	return 0;
}

static int find_nothing_to_be_had(struct place *p)
{
	struct store *store = try_open(p, false);

	return store == NULL && strstr(p->err.text, "Permission denied") != NULL ? 0 : 1;
}

static void a_read_only_folder_is_read_and_says_why_nothing_is_kept(void **state)
{
	struct place *p = *state;

	if (geteuid() == 0)
		assert_int_equal(chmod(p->root, 0755), 0);
	else
		assert_int_equal(chmod(p->root, 0555), 0);
	assert_int_equal(as_nobody(p, find_nothing_to_be_had), 0);
	assert_int_equal(chmod(p->root, 0755), 0);
	fill(p, 20, 10);
	assert_int_equal(chmod(in(p, "cache/data.mdb"), 0444), 0);
	assert_int_equal(chmod(in(p, "cache/lock.mdb"), 0444), 0);
	assert_int_equal(chmod(in(p, "cache"), 0555), 0);
	assert_int_equal(as_nobody(p, use_read_only_folder), 0);
	assert_int_equal(unlink(in(p, "cache/clean")) == 0 || geteuid() != 0, true);
	assert_int_equal(as_nobody(p, use_read_only_folder), 0);
	assert_int_equal(chmod(in(p, "cache"), 0755), 0);
	assert_int_equal(chmod(in(p, "cache/data.mdb"), 0644), 0);
	assert_int_equal(chmod(in(p, "cache/lock.mdb"), 0644), 0);
	struct store *store = open_here(p);

	assert_there(p, store, 0, 20, 10);
	store_close(store);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* A limit on the size of the file simulates a full disk. The limits range from the present size of the file to ten
 * pages more. */
static void a_full_disk_loses_nothing_and_says_so(void **state)
{
	struct place *p = *state;
	struct stat st;
	int refused = 0, kept = 30;

	signal(SIGXFSZ, SIG_IGN);
	fill(p, kept, 2000);
	assert_int_equal(stat(in(p, "cache/data.mdb"), &st), 0);
	for (rlim_t more = 0; more <= 10 * 4096; more += 2048) {
		struct store *store = open_here(p);

		limit_file_size((rlim_t)st.st_size + more);
		int number = kept + 1000, rc = 0;

		for (int i = 0; i < 20 && rc == 0; i++)
			rc = put_number(p, store, number++, 9000);
		if (rc != 0) {
			refused++;
			assert_non_null(strstr(p->err.text, "cannot be written"));
			assert_false(store_writable(store));
			assert_int_not_equal(get_number(p, store, number - 1, 9000), CACHE_HIT);
		}
		assert_there(p, store, 0, kept, 2000);
		limit_file_size(RLIM_INFINITY);
		assert_int_equal(put_number(p, store, kept++, 2000), 0); /* without the limit, the store works again */
		assert_true(store_writable(store));
		assert_there(p, store, 0, kept, 2000);
		store_close(store);
		store = open_here(p);
		assert_string_equal(p->note.text, "");
		assert_there(p, store, 0, kept, 2000);
		store_close(store);
	}
	assert_true(refused > 5);
}

static void a_disk_too_full_to_begin_a_store_is_a_sentence(void **state)
{
	struct place *p = *state;

	signal(SIGXFSZ, SIG_IGN);
	for (rlim_t limit = 0; limit < 40000; limit += 2000) {
		limit_file_size(limit);
		struct store *store = try_open(p, false);

		limit_file_size(RLIM_INFINITY);
		if (store == NULL)
			assert_non_null(strstr(p->err.text, "cannot be"));
		store_close(store);
	}
	struct store *store = open_here(p); /* opening the store repairs every interrupted change */

	assert_int_equal(put_number(p, store, 1, 10), 0);
	assert_there(p, store, 1, 2, 10);
	store_close(store);
}

/* Runs in a child: mounts a small disk over the root, fills it, and uses the store there. Returns 77 if mounting is not
 * permitted. */
static int use_full_disk(struct place *p)
{
	char path[300];
	static const char block[4096] = "x";

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", p->root, "tmpfs", 0, "size=1m") != 0)
		return 77;
	struct store *store = try_open(p, false);

	if (store == NULL || put_number(p, store, 1, 2000) != 0)
		return 1;
	store_close(store);
	snprintf(path, sizeof path, "%s/ballast", p->root);
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	while (write(fd, block, sizeof block) > 0)
		;
	/* deletes lock.mdb, as if the cache had been restored from a backup; the full disk has no room for a new
	 * lock.mdb, and the process must survive this */
	if (unlink(in(p, "cache/lock.mdb")) != 0)
		return 2;
	while (write(fd, block, sizeof block) > 0)
		;
	store = try_open(p, false);
	if (store == NULL || get_number(p, store, 1, 2000) != CACHE_HIT)
		return 3;
	if (store_writable(store) || put_number(p, store, 2, 9000) != -1 ||
	    strstr(p->err.text, "No space left") == NULL)
		return 4;
	store_close(store);
	if (ftruncate(fd, 300000) != 0)
		return 5;
	store = try_open(p, false);
	while (write(fd, block, sizeof block) > 0)
		;
	if (store == NULL || put_number(p, store, 2, 90000) != -1 || strstr(p->err.text, "cannot be written") == NULL)
		return 6;
	return get_number(p, store, 1, 2000) == CACHE_HIT && get_number(p, store, 2, 90000) == CACHE_MISS ? 0 : 7;
}

static void a_disk_that_is_really_full_loses_nothing_and_says_so(void **state)
{
	struct place *p = *state;
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(use_full_disk(p));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("SKIPPED: mounting a small disk needs root\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void a_store_removed_under_a_running_process_is_begun_anew(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);

	assert_int_equal(put_number(p, store, 1, 10), 0);
	nftw(in(p, ""), remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_false(there(p, ""));
	assert_int_equal(get_number(p, store, 1, 10), CACHE_HIT); /* the open file can still be read */
	assert_int_equal(put_number(p, store, 2, 10), 0);
	store_close(store);
	store = open_here(p);
	assert_int_equal(get_number(p, store, 2, 10), CACHE_HIT);
	store_close(store);
}

static void the_map_grows_with_what_is_kept(void **state)
{
	enum { ROWS = 40, BYTES = 1 << 20 }; /* 40 MiB in total, which is more than LMDB's first memory map */
	struct place *p = *state;
	struct store *store = open_here(p);

	for (int i = 0; i < ROWS; i++)
		assert_int_equal(put_number(p, store, i, BYTES), 0);
	assert_there(p, store, 0, ROWS, BYTES);
	store_close(store);
	store = open_here(p);
	assert_int_equal(put_number(p, store, ROWS, 10), 0);
	assert_there(p, store, 0, 2, BYTES);
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    HERE(a_verdict_with_one_changed_byte_is_a_miss_and_is_counted),
	    HERE(a_file_is_trusted_without_a_look_only_as_it_was_left),
	    HERE(a_file_of_garbage_is_set_aside_with_a_sentence),
	    HERE(a_truncated_file_is_set_aside_wherever_it_was_cut),
	    HERE(damaged_pages_never_crash_and_never_give_a_wrong_verdict),
	    HERE(a_store_of_another_format_is_set_aside),
	    HERE(a_file_of_another_lmdb_is_set_aside),
	    HERE(a_folder_or_a_file_in_the_way_is_a_sentence),
	    HERE(a_root_that_is_not_there_is_a_sentence),
	    HERE(reading_alone_makes_nothing),
	    HERE(a_read_only_folder_is_read_and_says_why_nothing_is_kept),
	    HERE(a_full_disk_loses_nothing_and_says_so),
	    HERE(a_disk_too_full_to_begin_a_store_is_a_sentence),
	    HERE(a_disk_that_is_really_full_loses_nothing_and_says_so),
	    HERE(a_store_removed_under_a_running_process_is_begun_anew),
	    HERE(the_map_grows_with_what_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
