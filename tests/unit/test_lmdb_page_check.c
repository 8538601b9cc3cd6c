/* test_lmdb_page_check - the page check accepts the file after every commit of LMDB, and finds damage. */
#include "cache/lmdb_page_check.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <lmdb.h>

struct place {
	char folder[256], data[300], lock[300];
	MDB_env *env;
	MDB_dbi table[3];
	uint32_t seed;
};

/* LMDB uses the page size of the machine, but at most 32 KiB. */
static size_t page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 32768 ? 32768 : (size_t)size;
}

static uint32_t dice(struct place *p, uint32_t sides)
{
	p->seed = p->seed * 1664525 + 1013904223;
	return (p->seed >> 8) % sides;
}

static int place_make(void **state)
{
	static const char *const names[] = {"one", "two", "three"};
	struct place *p = calloc(1, sizeof *p);
	const char *base = getenv("TMPDIR");
	MDB_txn *txn;

	snprintf(p->folder, sizeof p->folder, "%s/reftest-pages-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
	if (mkdtemp(p->folder) == NULL)
		return -1;
	snprintf(p->data, sizeof p->data, "%s/data.mdb", p->folder);
	snprintf(p->lock, sizeof p->lock, "%s/lock.mdb", p->folder);
	if (mdb_env_create(&p->env) != 0 || mdb_env_set_maxdbs(p->env, 3) != 0 ||
	    mdb_env_set_mapsize(p->env, 64 << 20) != 0 ||
	    mdb_env_open(p->env, p->folder, MDB_NOSYNC | MDB_NOTLS, 0644) != 0 ||
	    mdb_txn_begin(p->env, NULL, 0, &txn) != 0)
		return -1;
	for (int i = 0; i < 3; i++)
		if (mdb_dbi_open(txn, names[i], MDB_CREATE, &p->table[i]) != 0)
			return -1;
	*state = p;
	return mdb_txn_commit(txn);
}

static int place_remove(void **state)
{
	struct place *p = *state;

	mdb_env_close(p->env);
	unlink(p->data);
	unlink(p->lock);
	rmdir(p->folder);
	free(p);
	return 0;
}

static enum lmdb_page_check_answer check(const struct place *p, struct err *why)
{
	int fd = open(p->data, O_RDONLY);
	enum lmdb_page_check_answer answer = lmdb_page_check(fd, why);

	close(fd);
	return answer;
}

/* Changes rows of all sizes in small and large tables. In the first half of the rounds there are more puts than
 * deletions, in the second half more deletions. */
static void change_something(struct place *p, MDB_txn *txn, int round)
{
	char key[64];
	size_t room = dice(p, 10) == 0 ? 30000 : dice(p, 3) == 0 ? 3000 : 100;
	MDB_dbi table = p->table[dice(p, 3)];
	MDB_val name = {(size_t)snprintf(key, sizeof key, "%*u", (int)dice(p, 60) + 1, dice(p, 400)), key}, value;

	if (dice(p, 100) < (round < 150 ? 30 : 80)) {
		int rc = mdb_del(txn, table, &name, NULL);

		assert_true(rc == 0 || rc == MDB_NOTFOUND);
		return;
	}
	value = (MDB_val){dice(p, (uint32_t)room), NULL};
	value.mv_data = calloc(1, value.mv_size + 1);
	assert_int_equal(mdb_put(txn, table, &name, &value, 0), 0);
	free(value.mv_data);
}

static void every_commit_leaves_a_sound_file(void **state)
{
	struct place *p = *state;
	struct err why;
	MDB_txn *txn, *reader = NULL;

	for (int round = 0; round < 300; round++) {
		if (round % 7 == 0) { /* opens a reader, so that LMDB keeps old pages for a while */
			mdb_txn_abort(reader);
			assert_int_equal(mdb_txn_begin(p->env, NULL, MDB_RDONLY, &reader), 0);
		}
		assert_int_equal(mdb_txn_begin(p->env, NULL, 0, &txn), 0);
		for (uint32_t i = dice(p, 60); i > 0; i--)
			change_something(p, txn, round);
		if (round == 290)
			for (int i = 0; i < 3; i++)
				assert_int_equal(mdb_drop(txn, p->table[i], 0), 0);
		if (dice(p, 10) == 0) {
			mdb_txn_abort(txn);
			continue;
		}
		assert_int_equal(mdb_txn_commit(txn), 0);
		if (check(p, &why) != LMDB_PAGE_CHECK_SOUND)
			fail_msg("round %d: %s", round, why.text);
	}
	mdb_txn_abort(reader);
}

static void fill(struct place *p, int rounds)
{
	MDB_txn *txn;

	for (int round = 0; round < rounds; round++) {
		assert_int_equal(mdb_txn_begin(p->env, NULL, 0, &txn), 0);
		for (int i = 0; i < 40; i++)
			change_something(p, txn, 0);
		assert_int_equal(mdb_txn_commit(txn), 0);
	}
}

static void an_empty_file_is_sound_and_a_stranger_is_not(void **state)
{
	struct place *p = *state;
	struct err why = {""};
	char path[320];

	snprintf(path, sizeof path, "%s/other", p->folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);

	unlink(path);
	assert_int_equal(lmdb_page_check(fd, &why), LMDB_PAGE_CHECK_SOUND);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(write(fd, "words ", 6), 6);
		assert_int_equal(lmdb_page_check(fd, &why), LMDB_PAGE_CHECK_DAMAGED);
	}
	close(fd);
	assert_int_equal(lmdb_page_check(fd, &why), LMDB_PAGE_CHECK_ERROR);
	assert_non_null(strstr(why.text, "Bad file descriptor"));
}

/* Copies the file into a new file without a name. */
static int copy_of(const struct place *p, char **bytes, size_t *length)
{
	struct stat st;
	int from = open(p->data, O_RDONLY), to = open(p->folder, O_TMPFILE | O_RDWR, 0644);

	assert_int_equal(fstat(from, &st), 0);
	*length = (size_t)st.st_size;
	*bytes = malloc(*length);
	assert_int_equal(pread(from, *bytes, *length, 0), *length);
	assert_int_equal(pwrite(to, *bytes, *length, 0), *length);
	close(from);
	return to;
}

/* Changes `length` bytes at `offset`, checks the pages, and restores the bytes. */
static enum lmdb_page_check_answer check_with(int fd, const char *bytes, size_t offset, const void *changed, size_t length,
					 struct err *why)
{
	assert_int_equal(pwrite(fd, changed, length, (off_t)offset), length);
	enum lmdb_page_check_answer answer = lmdb_page_check(fd, why);

	assert_int_equal(pwrite(fd, bytes + offset, length, (off_t)offset), length);
	return answer;
}

static void a_page_of_zeros_is_damage_unless_nobody_refers_to_it(void **state)
{
	struct place *p = *state;
	static const char zeros[32768];
	size_t size = page_size();
	char *bytes;
	size_t length, damaged = 0;
	struct err why;

	fill(p, 20);
	int fd = copy_of(p, &bytes, &length);

	for (size_t page = 0; page < length / size; page++)
		damaged += check_with(fd, bytes, page * size, zeros, size, &why) == LMDB_PAGE_CHECK_DAMAGED;
	assert_true(damaged > length / size / 4); /* the content of free pages and of pages with long values is not
						   * checked */
	assert_int_equal(check_with(fd, bytes, 0, zeros, size, &why), LMDB_PAGE_CHECK_DAMAGED);
	assert_int_equal(check_with(fd, bytes, size, zeros, size, &why), LMDB_PAGE_CHECK_DAMAGED);
	assert_int_equal(lmdb_page_check(fd, &why), LMDB_PAGE_CHECK_SOUND);
	close(fd);
	free(bytes);
}

/* Whatever value a byte has, the check returns an answer and reads nothing out of bounds. */
static void every_byte_of_every_head_may_be_anything(void **state)
{
	struct place *p = *state;
	char *bytes;
	size_t length, size = page_size();
	struct err why;
	int damaged = 0;

	fill(p, 3);
	int fd = copy_of(p, &bytes, &length);

	for (size_t page = 0; page < length / size; page++)
		for (size_t at = page * size, end = at + (page < 2 ? 160 : 64); at < end; at++) {
			static const char values[] = {0, 1, -1, 0x7F};

			for (size_t i = 0; i < sizeof values; i++) {
				enum lmdb_page_check_answer answer = check_with(fd, bytes, at, &values[i], 1, &why);

				assert_int_not_equal(answer, LMDB_PAGE_CHECK_ERROR);
				damaged += answer == LMDB_PAGE_CHECK_DAMAGED;
			}
		}
	assert_true(damaged > 1000);
	close(fd);
	free(bytes);
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    HERE(every_commit_leaves_a_sound_file),
	    HERE(an_empty_file_is_sound_and_a_stranger_is_not),
	    HERE(a_page_of_zeros_is_damage_unless_nobody_refers_to_it),
	    HERE(every_byte_of_every_head_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
