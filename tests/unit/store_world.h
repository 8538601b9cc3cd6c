/* store_world - gives each test a temporary root with a store of its own. The content of each verdict follows from its
 * number. */
#ifndef REFTEST_TESTS_STORE_WORLD_H
#define REFTEST_TESTS_STORE_WORLD_H

#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* --- a temporary root for each test ------------------------------------------------------------------------------- */

struct place {
	char root[256];
	struct err note, err;
	struct arena arena;
};

static inline int place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	const char *base = getenv("TMPDIR");

	snprintf(p->root, sizeof p->root, "%s/reftest-store-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
	if (mkdtemp(p->root) == NULL || chmod(p->root, 0755) != 0)
		return -1;
	*state = p;
	return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static inline int place_remove(void **state)
{
	struct place *p = *state;

	arena_free(&p->arena);
	nftw(p->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

static const char *in(const struct place *p, const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/.reftest/%s", p->root, name);
	return path[turn];
}

static inline bool there(const struct place *p, const char *name)
{
	return access(in(p, name), F_OK) == 0;
}

static inline struct store *try_open(struct place *p, bool read_only)
{
	return store_open(p->root, &(struct store_options){.read_only = read_only}, &p->note, &p->err);
}

static inline struct store *open_here(struct place *p)
{
	struct store *store = try_open(p, false);

	if (store == NULL)
		fail_msg("%s", p->err.text);
	return store;
}

/* --- verdicts whose content follows from their number ------------------------------------------------------------- */

static inline struct digest number_digest(int number)
{
	return digest_of(&number, sizeof number);
}

static const char *number_text(struct place *p, int number, size_t length)
{
	char *text = arena_alloc(&p->arena, length + 16);
	int head = snprintf(text, 16, "%d ", number);

	memset(text + head, 'a' + number % 26, length);
	return text;
}

static inline int put_number(struct place *p, struct store *store, int number, size_t length)
{
	const char *text = number_text(p, number, length);
	struct store_put put = {
	    .subject = number_digest(number), .witness = number_digest(-1), .text = text, .length = strlen(text),
	    .definition = "gemm/sample", .case_id = arena_printf(&p->arena, "case %06d", number), .fields = "f",
	    .fields_length = 1, .keep_verdict = true,
	};

	return store_put(store, &put, 1, &p->err);
}

static inline enum cache_answer get_number(struct place *p, struct store *store, int number, size_t length)
{
	struct digest subject = number_digest(number), witness = number_digest(-1);
	const char *text, *expected = number_text(p, number, length);
	size_t found;
	enum cache_answer answer = store_verdict(store, &subject, &witness, &p->arena, &text, &found, &p->err);

	if (answer == CACHE_HIT) {
		assert_int_equal(found, strlen(expected));
		assert_memory_equal(text, expected, found);
		assert_int_equal(text[found], '\0');
	}
	return answer;
}

static inline void assert_there(struct place *p, struct store *store, int from, int to, size_t length)
{
	for (int i = from; i < to; i++)
		if (get_number(p, store, i, length) != CACHE_HIT)
			fail_msg("verdict %d of %d to %d is missing: %s", i, from, to, p->err.text);
}

/* Creates a store with `count` verdicts and closes it. */
static inline void fill(struct place *p, int count, size_t length)
{
	struct store *store = open_here(p);

	for (int i = 0; i < count; i++)
		assert_int_equal(put_number(p, store, i, length), 0);
	store_close(store);
}

/* --- the store's file as bytes ------------------------------------------------------------------------------------ */

/* Overwrites bytes of data.mdb directly, without LMDB. */
static inline void scribble(const struct place *p, off_t offset, const void *bytes, size_t length)
{
	int fd = open(in(p, "cache/data.mdb"), O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, offset), length);
	close(fd);
}

/* Reads data.mdb; the caller frees the result. */
static inline char *slurp(const struct place *p, size_t *length)
{
	FILE *file = fopen(in(p, "cache/data.mdb"), "rb");
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	char *bytes = malloc((size_t)st.st_size);

	assert_int_equal(fread(bytes, 1, (size_t)st.st_size, file), st.st_size);
	fclose(file);
	*length = (size_t)st.st_size;
	return bytes;
}

/* LMDB uses the page size of the machine, but at most 32 KiB. */
static inline size_t page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 32768 ? 32768 : (size_t)size;
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

#endif
