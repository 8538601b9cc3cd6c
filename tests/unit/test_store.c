/* The store: what was put is found, nothing damaged is, and neither a broken file, a full disk, a read-only folder, a
 * dead process nor one that writes at the same time loses what was kept.
 *
 * LMDB forbids handles to cross a fork, so every other process here is forked before it opens anything. */
#include "cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <lmdb.h>

/* --- A root of its own for each test ------------------------------------------------------------------------------ */

struct place {
	char root[256];
	struct err note, err;
	struct arena arena;
};

static int place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);
	const char *base = getenv("TMPDIR");

	snprintf(p->root, sizeof p->root, "%s/reftest-store-XXXXXX", base != NULL && *base != '\0' ? base : "/tmp");
	if (mkdtemp(p->root) == NULL || chmod(p->root, 0755) != 0)
		return -1;
	*state = p;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st, (void)type, (void)walk;
	return remove(path);
}

static int place_remove(void **state)
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

static bool there(const struct place *p, const char *name)
{
	return access(in(p, name), F_OK) == 0;
}

static struct store *try_open(struct place *p, bool read_only)
{
	return store_open(p->root, &(struct store_options){.read_only = read_only}, &p->note, &p->err);
}

static struct store *open_here(struct place *p)
{
	struct store *store = try_open(p, false);

	if (store == NULL)
		fail_msg("%s", p->err.text);
	return store;
}

/* --- Verdicts with contents that can be foretold ------------------------------------------------------------------ */

static struct digest number_digest(int number)
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

static int put_number(struct place *p, struct store *store, int number, size_t length)
{
	const char *text = number_text(p, number, length);
	struct store_put put = {
	    .subject = number_digest(number), .witness = number_digest(-1), .text = text, .length = strlen(text),
	    .definition = "gemm/sample", .case_id = arena_printf(&p->arena, "case %06d", number), .fields = "f",
	    .fields_length = 1, .keep_verdict = true,
	};

	return store_put(store, &put, 1, &p->err);
}

static enum cache_answer get_number(struct place *p, struct store *store, int number, size_t length)
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

static void assert_there(struct place *p, struct store *store, int from, int to, size_t length)
{
	for (int i = from; i < to; i++)
		if (get_number(p, store, i, length) != CACHE_HIT)
			fail_msg("verdict %d of %d to %d is not there: %s", i, from, to, p->err.text);
}

/* A store with `count` verdicts, closed again. */
static void fill(struct place *p, int count, size_t length)
{
	struct store *store = open_here(p);

	for (int i = 0; i < count; i++)
		assert_int_equal(put_number(p, store, i, length), 0);
	store_close(store);
}

/* --- Finding what was put ----------------------------------------------------------------------------------------- */

static void a_verdict_that_was_put_is_found_even_after_opening_again(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);

	assert_string_equal(p->note.text, "");
	assert_true(store_writable(store));
	assert_int_equal(get_number(p, store, 1, 10), CACHE_MISS);
	assert_int_equal(put_number(p, store, 1, 10), 0);
	assert_int_equal(get_number(p, store, 1, 10), CACHE_HIT);
	assert_int_equal(get_number(p, store, 2, 10), CACHE_MISS);
	store_close(store);
	store = open_here(p);
	assert_string_equal(p->note.text, "");
	assert_int_equal(get_number(p, store, 1, 10), CACHE_HIT);
	store_close(store);
}

static void a_store_ignores_itself_in_git(void **state)
{
	struct place *p = *state;
	char text[8] = "";

	store_close(open_here(p));
	int fd = open(in(p, ".gitignore"), O_RDONLY);

	assert_int_equal(read(fd, text, sizeof text), 2);
	assert_string_equal(text, "*\n");
	close(fd);
}

static void nothing_leaks_over_exec(void **state)
{
	struct place *p = *state;
	struct store *store;
	bool open_before[256];

	for (int fd = 0; fd < 256; fd++)
		open_before[fd] = fcntl(fd, F_GETFD) >= 0;
	store = open_here(p);
	assert_int_equal(put_number(p, store, 1, 10), 0);
	for (int fd = 0; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (!open_before[fd] && flags >= 0)
			assert_true(flags & FD_CLOEXEC);
	}
	store_close(store);
	for (int fd = 0; fd < 256; fd++)
		assert_int_equal(open_before[fd], fcntl(fd, F_GETFD) >= 0);
}

static void verdicts_on_one_subject_come_newest_last(void **state)
{
	static const int order[] = {5, 2, 9, 1, 7, 2, 8}; /* witness 2 is put again later */
	static const int expected[] = {5, 9, 1, 7, 2, 8};
	struct place *p = *state;
	struct store *store = open_here(p);
	const struct stored_verdict *found;
	struct digest subject = number_digest(100), other = number_digest(101);

	for (size_t i = 0; i < 7; i += i < 4 ? 1 : 3) { /* four batches of one, one of three */
		struct store_put puts[3];
		int count = i < 4 ? 1 : 3;

		for (int j = 0; j < count; j++)
			puts[j] = (struct store_put){
			    .subject = subject,
			    .witness = number_digest(order[i + (size_t)j]),
			    .text = "{}",
			    .length = 2,
			    .definition = "d",
			    .case_id = "c",
			    .fields = "",
			    .keep_verdict = true,
			};
		assert_int_equal(store_put(store, puts, count, &p->err), 0);
	}
	assert_int_equal(store_verdicts(store, &other, &p->arena, &found, &p->err), 0);
	assert_int_equal(store_verdicts(store, &subject, &p->arena, &found, &p->err), 6);
	for (int i = 0; i < 6; i++) {
		struct digest witness = number_digest(expected[i]);

		assert_true(digest_equal(&found[i].witness, &witness));
		assert_int_equal(found[i].length, 2);
		assert_string_equal(found[i].text, "{}");
	}
	store_close(store);
}

static void the_latest_of_a_case_moves_without_a_verdict(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	struct latest latest;
	struct digest subject = number_digest(3), witness = number_digest(4);

	assert_int_equal(store_latest(store, "gemm/sample", "case 000001", &p->arena, &latest, &p->err), CACHE_MISS);
	assert_int_equal(put_number(p, store, 1, 10), 0);
	struct store_put put = {.subject = subject, .witness = witness, .definition = "gemm/sample",
	                        .case_id = "case 000001", .fields = "other", .fields_length = 5};

	assert_int_equal(store_put(store, &put, 1, &p->err), 0);
	assert_int_equal(store_latest(store, "gemm/sample", "case 000001", &p->arena, &latest, &p->err), CACHE_HIT);
	assert_true(digest_equal(&latest.subject, &subject));
	assert_true(digest_equal(&latest.witness, &witness));
	assert_int_equal(latest.fields_length, 5);
	assert_memory_equal(latest.fields, "other", 5);
	const char *text;
	size_t length;

	assert_int_equal(store_verdict(store, &subject, &witness, &p->arena, &text, &length, &p->err), CACHE_MISS);
	assert_int_equal(get_number(p, store, 1, 10), CACHE_HIT); /* the old verdict stays */
	store_close(store);
}

static void the_cases_of_a_definition_are_listed_in_order_however_long_their_names(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	const char *const *ids;
	char *endless = arena_alloc(&p->arena, 5001);

	memset(endless, 'z', 5000);
	const char *const names[] = {"workload:b", endless, "small:n=1", "workload:a"};

	for (size_t i = 0; i < 4; i++) {
		struct store_put put = {.definition = i % 2 ? endless : "gemm/a", .case_id = names[i], .fields = ""};

		put.definition = "gemm/a";
		assert_int_equal(store_put(store, &put, 1, &p->err), 0);
		put.definition = endless;
		assert_int_equal(store_put(store, &put, 1, &p->err), 0);
	}
	assert_int_equal(store_latest_ids(store, "gemm/", &p->arena, &ids, &p->err), 0);
	assert_int_equal(store_latest_ids(store, endless, &p->arena, &ids, &p->err), 4);
	assert_int_equal(store_latest_ids(store, "gemm/a", &p->arena, &ids, &p->err), 4);
	assert_string_equal(ids[0], "small:n=1");
	assert_string_equal(ids[1], "workload:a");
	assert_string_equal(ids[2], "workload:b");
	assert_string_equal(ids[3], endless);
	store_close(store);
}

static void facts_are_kept_and_replaced(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	char long_key[600];
	const char *value;

	memset(long_key, 'k', sizeof long_key - 1);
	long_key[sizeof long_key - 1] = '\0';
	assert_int_equal(store_fact(store, "torch", &p->arena, &value, &p->err), CACHE_MISS);
	assert_int_equal(store_put_fact(store, "torch", "2.12", &p->err), 0);
	assert_int_equal(store_put_fact(store, "torch", "2.13", &p->err), 0);
	assert_int_equal(store_put_fact(store, "empty", "", &p->err), 0);
	assert_int_equal(store_fact(store, "torch", &p->arena, &value, &p->err), CACHE_HIT);
	assert_string_equal(value, "2.13");
	assert_int_equal(store_fact(store, "empty", &p->arena, &value, &p->err), CACHE_HIT);
	assert_string_equal(value, "");
	assert_int_equal(store_put_fact(store, long_key, "x", &p->err), -1);
	assert_int_equal(store_put_fact(store, "", "x", &p->err), -1);
	assert_int_equal(store_fact(store, long_key, &p->arena, &value, &p->err), CACHE_MISS);
	assert_int_equal(store_fact(store, "", &p->arena, &value, &p->err), CACHE_MISS);
	store_close(store);
}

static void counters_and_rows_are_told(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	struct store_stats stats;

	for (int i = 0; i < 3; i++)
		assert_int_equal(put_number(p, store, i, 10), 0);
	assert_int_equal(store_put_fact(store, "torch", "2.13", &p->err), 0);
	assert_there(p, store, 0, 2, 10);
	assert_int_equal(get_number(p, store, 9, 10), CACHE_MISS);
	assert_int_equal(store_stats(store, &stats, &p->err), 0);
	assert_int_equal(stats.hits, 2);
	assert_int_equal(stats.misses, 1);
	assert_int_equal(stats.damaged, 0);
	assert_int_equal(stats.verdicts, 3);
	assert_int_equal(stats.latest, 3);
	assert_int_equal(stats.facts, 1);
	assert_int_equal(stats.files, 0);
	assert_true(stats.bytes > 8192);
	store_close(store);
}

/* Changes octets of data.mdb behind everybody's back. */
static void scribble(const struct place *p, off_t offset, const void *bytes, size_t length)
{
	int fd = open(in(p, "cache/data.mdb"), O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, length, offset), length);
	close(fd);
}

/* The octets of data.mdb; free() them. */
static char *slurp(const struct place *p, size_t *length)
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

/* --- Files -------------------------------------------------------------------------------------------------------- */

static struct file_entry file_entry(struct place *p, const char *path, int number)
{
	struct file_entry entry = {
	    .path = path,
	    .seen = {.stat = {(uint64_t)number, 7, INT64_MAX - number, -number}, .read_ns = number,
	             .content = number_digest(number)},
	    .has_summary = number % 2 == 0,
	    .blob_count = number % 3,
	};
	const char **blobs = arena_array(&p->arena, 3, sizeof *blobs);

	entry.seen.object.length = (unsigned char)(number % 3 == 0 ? 0 : number % 3 == 1 ? 20 : 32);
	memset(entry.seen.object.bytes, number, entry.seen.object.length);
	for (int i = 0; i < entry.blob_count; i++)
		blobs[i] = arena_printf(&p->arena, "blob/%d-%d.safetensors", number, i);
	entry.blobs = blobs;
	if (entry.has_summary)
		entry.summary = (struct summary){
		    .context = number_digest(number + 1),
		    .inputs = number_digest(number + 2),
		    .status = 3,
		    .reason = 18,
		    .weak = 1,
		    .cases = 1,
		    .passed = 2,
		    .failed = 3,
		    .errors = 4,
		    .skipped = 5,
		    .invalid = UINT32_MAX,
		    .elements = UINT64_MAX,
		};
	return entry;
}

static void assert_same_entry(const struct file_entry *a, const struct file_entry *b)
{
	assert_string_equal(a->path, b->path);
	assert_memory_equal(&a->seen, &b->seen, sizeof a->seen);
	assert_int_equal(a->has_summary, b->has_summary);
	assert_memory_equal(&a->summary, &b->summary, sizeof a->summary);
	assert_int_equal(a->blob_count, b->blob_count);
	for (int i = 0; i < a->blob_count; i++)
		assert_string_equal(a->blobs[i], b->blobs[i]);
}

static void files_come_back_sorted_and_by_prefix(void **state)
{
	static const char *const paths[] = {"workloads/a/x.jsonl", "definitions/b/y.json", "definitions/a/x.json",
	                                    "definitions/a/x-.json", "definitions", "blob/x"};
	static const int sorted[] = {5, 4, 3, 2, 1, 0};
	struct place *p = *state;
	struct store *store = open_here(p);
	struct file_entry entries[6];
	const struct file_entry *found;

	assert_int_equal(store_files(store, "", &p->arena, &found, &p->err), 0);
	for (int i = 0; i < 6; i++)
		entries[i] = file_entry(p, paths[i], i);
	assert_int_equal(store_put_files(store, entries, 6, NULL, 0, &p->err), 0);
	assert_int_equal(store_files(store, "", &p->arena, &found, &p->err), 6);
	for (int i = 0; i < 6; i++)
		assert_same_entry(&found[i], &entries[sorted[i]]);
	assert_int_equal(store_files(store, "definitions/", &p->arena, &found, &p->err), 3);
	assert_string_equal(found[0].path, "definitions/a/x-.json");
	assert_string_equal(found[2].path, "definitions/b/y.json");
	assert_int_equal(store_files(store, "zzz", &p->arena, &found, &p->err), 0);
	static const char *const removed[] = {"definitions/a/x.json", "never/there"};

	assert_int_equal(store_put_files(store, NULL, 0, removed, 2, &p->err), 0);
	assert_int_equal(store_files(store, "definitions/", &p->arena, &found, &p->err), 2);
	store_close(store);
}

struct visited {
	const struct file_entry *expected;
	int count;
};

static void visit(const struct file_entry *entry, void *context)
{
	struct visited *visited = context;

	assert_same_entry(entry, &visited->expected[visited->count++]);
}

static void files_can_be_visited_one_by_one(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	struct file_entry entries[9];
	struct visited all = {.expected = entries}, some = {.expected = entries + 3};

	for (int i = 0; i < 9; i++)
		entries[i] = file_entry(p, arena_printf(&p->arena, "%c/%d", "abc"[i / 3], i), i);
	assert_int_equal(store_each_file(store, "", visit, &all, &p->err), 0);
	assert_int_equal(all.count, 0);
	assert_int_equal(store_put_files(store, entries, 9, NULL, 0, &p->err), 0);
	assert_int_equal(store_each_file(store, "", visit, &all, &p->err), 0);
	assert_int_equal(all.count, 9);
	assert_int_equal(store_each_file(store, "b/", visit, &some, &p->err), 0);
	assert_int_equal(some.count, 3);
	store_close(store);
}

static void a_damaged_row_of_a_file_is_passed_over_and_counted(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	struct file_entry entries[3];
	const struct file_entry *found;
	struct store_stats stats;
	size_t length;

	for (int i = 0; i < 3; i++)
		entries[i] = file_entry(p, arena_printf(&p->arena, "%d", i), i);
	assert_int_equal(store_put_files(store, entries, 3, NULL, 0, &p->err), 0);
	store_close(store);
	char *bytes = slurp(p, &length), *row = memmem(bytes, length, "rftr\1\0\4\0", 8); /* one of the three */

	assert_non_null(row);
	scribble(p, row - bytes + 30, "!", 1);
	free(bytes);
	store = open_here(p);
	assert_int_equal(store_files(store, "", &p->arena, &found, &p->err), 2);
	assert_int_equal(store_stats(store, &stats, &p->err), 0);
	assert_int_equal(stats.damaged, 1);
	store_close(store);
}

static void a_path_that_is_no_key_is_not_remembered(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	char path[600];
	const struct file_entry *found;

	memset(path, 'p', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	struct file_entry entries[] = {file_entry(p, path, 1), file_entry(p, "", 2),
	                               file_entry(p, path + 599 - 511, 3)};
	const char *removed[] = {path, ""};

	assert_int_equal(store_put_files(store, entries, 3, removed, 2, &p->err), 0);
	assert_int_equal(store_files(store, "", &p->arena, &found, &p->err), 1);
	assert_same_entry(&found[0], &entries[2]);
	assert_int_equal(store_files(store, path, &p->arena, &found, &p->err), 0);
	store_close(store);
}

static void twenty_thousand_files_fit_into_one_transaction(void **state)
{
	enum { FILES = 20000 };
	struct place *p = *state;
	struct store *store = open_here(p);
	struct file_entry *entries = arena_array(&p->arena, FILES, sizeof *entries);
	const struct file_entry *found;

	for (int i = 0; i < FILES; i++)
		entries[i] = file_entry(p, arena_printf(&p->arena, "definitions/op/definition_%05d.json", i), i);
	assert_int_equal(store_put_files(store, entries, FILES, NULL, 0, &p->err), 0);
	assert_int_equal(store_files(store, "", &p->arena, &found, &p->err), FILES);
	for (int i = 0; i < FILES; i++)
		assert_same_entry(&found[i], &entries[i]);
	store_close(store);
}

static void a_file_is_believed_only_if_it_had_been_still_when_it_was_read(void **state)
{
	const int64_t second = 1000000000, now = 1700000000 * second, racy = STORE_RACY_MS * (second / 1000);
	struct file_stat stat = {.inode = 1, .size = 2, .mtime_ns = now, .ctime_ns = now - 5};
	struct file_seen seen = {.stat = stat, .read_ns = now + racy};

	(void)state;
	assert_true(file_seen_holds(&seen, &stat));
	seen.read_ns--;
	assert_false(file_seen_holds(&seen, &stat)); /* read too soon after it was written */
	seen.read_ns = now + racy;
	stat.ctime_ns = seen.stat.ctime_ns = now + 1;
	assert_false(file_seen_holds(&seen, &stat)); /* renamed over, or its mtime was set back */
	seen.read_ns = now - second;
	assert_false(file_seen_holds(&seen, &stat)); /* an mtime in the future */
	seen.read_ns = INT64_MAX;
	stat.mtime_ns = seen.stat.mtime_ns = stat.ctime_ns = seen.stat.ctime_ns = INT64_MIN;
	assert_true(file_seen_holds(&seen, &stat)); /* no overflow */
}

static void any_difference_of_stat_is_a_change(void **state)
{
	const struct file_stat then = {.inode = 1, .size = 2, .mtime_ns = 3, .ctime_ns = 4};
	const struct file_seen seen = {.stat = then, .read_ns = (int64_t)1 << 60};

	(void)state;
	assert_true(file_seen_holds(&seen, &then));
	assert_false(file_seen_holds(&seen, &(struct file_stat){9, 2, 3, 4}));
	assert_false(file_seen_holds(&seen, &(struct file_stat){1, 9, 3, 4}));
	assert_false(file_seen_holds(&seen, &(struct file_stat){1, 2, 9, 4}));
	assert_false(file_seen_holds(&seen, &(struct file_stat){1, 2, 3, 9}));
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

static void a_verdict_with_one_changed_octet_is_a_miss_and_is_counted(void **state)
{
	struct place *p = *state;
	size_t length, seen = 0;

	fill(p, 1, 400);
	char *bytes = slurp(p, &length);
	char *row = memmem(bytes, length, "rftr\1\0\2\0", 8); /* the frame of a verdict */

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

/* As if `clean` had been written so many seconds from now. */
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
	date_clean(p, -10); /* too soon after the last commit: it might have changed within the same tick */
	assert_true(opening_checks_the_pages(p));
	date_clean(p, 10); /* a look is as good as a commit */
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

/* Opens what is there: it must have been set aside, and the new store must work. */
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
	assert_null(try_open(p, true)); /* not to be touched by a reader */
	assert_non_null(strstr(p->err.text, "no LMDB database"));
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

/* LMDB's pages are as large as the machine's, up to 32 KiB. */
static size_t page_size(void)
{
	long size = sysconf(_SC_PAGESIZE);

	return size > 32768 ? 32768 : (size_t)size;
}

/* Whole pages of zeros, of noise, and of other pages of the same file: never a crash; what is found is right. */
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
			if (kind == 3) { /* only part of the page */
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
	assert_non_null(strstr(p->err.text, "another version made it"));
	assert_set_aside(p, 1);
}

static void a_file_of_another_lmdb_is_set_aside(void **state)
{
	struct place *p = *state;

	fill(p, 1, 10);
	scribble(p, 16 + 4, "\2\0\0\0", 4); /* the data format of both heads */
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

/* --- Read-only, full, taken away ---------------------------------------------------------------------------------- */

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
	assert_non_null(strstr(p->err.text, "opened for reading alone"));
	store_close(store);
	assert_false(there(p, "cache/lock.mdb"));
	assert_false(there(p, "cache/clean"));
}

/* Runs `work` in a child, as somebody who is not root, and gives its exit status. */
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
	    strstr(p->note.text, "new verdicts are not kept") == NULL)
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

/* A file that may not grow stands for a disk that is full; everywhere the limit may lie. */
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
		assert_int_equal(put_number(p, store, kept++, 2000), 0); /* there is room again */
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
	struct store *store = open_here(p); /* whatever was left half-made is mended */

	assert_int_equal(put_number(p, store, 1, 10), 0);
	assert_there(p, store, 1, 2, 10);
	store_close(store);
}

/* In a child: mounts a small disk of its own over the root, fills it, and uses the store there. 77: may not mount. */
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
	if (unlink(in(p, "cache/lock.mdb")) != 0) /* as after a restore: mapping a new one must not end us */
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
	assert_int_equal(get_number(p, store, 1, 10), CACHE_HIT); /* the open file is still there to be read */
	assert_int_equal(put_number(p, store, 2, 10), 0);
	store_close(store);
	store = open_here(p);
	assert_int_equal(get_number(p, store, 2, 10), CACHE_HIT);
	store_close(store);
}

static void the_map_grows_with_what_is_kept(void **state)
{
	enum { ROWS = 40, BYTES = 1 << 20 }; /* 40 MiB, more than the first map */
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

/* --- Other processes ---------------------------------------------------------------------------------------------- */

/* A child that runs `work` at once, with its own end of two pipes to step it by. */
struct child {
	pid_t pid;
	int to, from;
};

static void tell(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(98);
}

static void hear(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(97);
}

static struct child child_start(struct place *p, void (*work)(struct place *, int in_fd, int out_fd))
{
	struct child child;
	int to[2], from[2];

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	child.pid = fork();
	if (child.pid == 0) {
		close(to[1]);
		close(from[0]);
		work(p, to[0], from[1]);
		_exit(0);
	}
	close(to[0]);
	close(from[1]);
	child.to = to[1];
	child.from = from[0];
	return child;
}

static int child_end(struct child child)
{
	int status = -1;

	close(child.to);
	waitpid(child.pid, &status, 0);
	close(child.from);
	return status;
}

static void write_some(struct place *p, int in_fd, int out_fd)
{
	tell(out_fd);
	hear(in_fd);
	struct store *store = try_open(p, false);

	if (store == NULL)
		_exit(1);
	for (int i = 0; i < 20; i++)
		if (put_number(p, store, (int)getpid() * 1000 + i, 500) != 0)
			_exit(2);
	for (int i = 0; i < 20; i++)
		if (get_number(p, store, (int)getpid() * 1000 + i, 500) != CACHE_HIT)
			_exit(3);
	store_close(store);
}

/* Several processes open at the same moment and write; everything they wrote is there afterwards. */
static void open_at_once(struct place *p)
{
	enum { CHILDREN = 6 };
	struct child children[CHILDREN];

	for (int i = 0; i < CHILDREN; i++)
		children[i] = child_start(p, write_some);
	for (int i = 0; i < CHILDREN; i++)
		hear(children[i].from);
	for (int i = 0; i < CHILDREN; i++)
		tell(children[i].to);
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(child_end(children[i]), 0);
	struct store *store = open_here(p);

	assert_string_equal(p->note.text, "");
	for (int i = 0; i < CHILDREN; i++)
		assert_there(p, store, (int)children[i].pid * 1000, (int)children[i].pid * 1000 + 20, 500);
	store_close(store);
}

static void several_processes_begin_and_write_one_store_at_once(void **state)
{
	struct place *p = *state;

	for (int round = 0; round < 10; round++) {
		nftw(in(p, ""), remove_one, 16, FTW_DEPTH | FTW_PHYS);
		open_at_once(p);
		assert_false(there(p, "cache.aside-1"));
	}
}

static void of_several_processes_that_find_garbage_one_sets_it_aside(void **state)
{
	struct place *p = *state;
	size_t length;

	fill(p, 500, 1500); /* so large that they all look at it at the same time */
	char *bytes = slurp(p, &length);

	for (int round = 0; round < 10; round++) {
		nftw(in(p, ""), remove_one, 16, FTW_DEPTH | FTW_PHYS);
		fill(p, 1, 10);
		int fd = open(in(p, "cache/data.mdb"), O_WRONLY | O_TRUNC);

		assert_int_equal(write(fd, bytes, length - page_size()), length - page_size());
		close(fd);
		open_at_once(p);
		assert_true(there(p, "cache.aside-1"));
		assert_false(there(p, "cache.aside-2"));
	}
	free(bytes);
}

static void write_beyond_the_map(struct place *p, int in_fd, int out_fd)
{
	hear(in_fd);
	struct store *store = try_open(p, false);

	for (int i = 0; i < 24; i++)
		if (store == NULL || put_number(p, store, i, 1 << 20) != 0)
			_exit(1);
	tell(out_fd);
	hear(in_fd);
	store_close(store);
}

static void a_map_grown_by_another_process_is_adopted(void **state)
{
	struct place *p = *state;
	struct child child = child_start(p, write_beyond_the_map);
	struct store *store = open_here(p); /* with the small map */

	assert_int_equal(get_number(p, store, 0, 1 << 20), CACHE_MISS);
	tell(child.to);
	hear(child.from);
	assert_there(p, store, 0, 24, 1 << 20);
	assert_int_equal(put_number(p, store, 24, 1 << 20), 0);
	assert_there(p, store, 0, 25, 1 << 20);
	tell(child.to);
	assert_int_equal(child_end(child), 0);
	store_close(store);
}

static void write_for_ever(struct place *p, int in_fd, int out_fd)
{
	struct store *store = try_open(p, false);

	(void)in_fd;
	for (int i = 0; store != NULL; i++) {
		if (put_number(p, store, i, 700) != 0)
			_exit(1);
		arena_free(&p->arena);
		tell(out_fd); /* number i is kept */
	}
}

static void a_writer_killed_at_any_moment_leaves_all_it_had_told(void **state)
{
	struct place *p = *state;
	int told = 0;

	for (int round = 0; round < 20; round++) {
		struct child child = child_start(p, write_for_ever);
		char c;

		told = 0;
		for (int i = 0; i <= round * 3; i++) {
			hear(child.from);
			told++;
		}
		kill(child.pid, SIGKILL);
		while (read(child.from, &c, 1) == 1)
			told++;
		child_end(child);
		struct store *store = open_here(p);

		assert_string_equal(p->note.text, "");
		assert_there(p, store, 0, told, 700);
		assert_int_equal(put_number(p, store, 100000 + round, 10), 0); /* the dead one's lock is no obstacle */
		store_close(store);
	}
}

static void open_and_hold(struct place *p, int in_fd, int out_fd)
{
	struct store *store = try_open(p, false);

	if (store == NULL || put_number(p, store, 1, 10) != 0)
		_exit(1);
	tell(out_fd);
	hear(in_fd);
	if (put_number(p, store, 2, 10) != 0) /* goes to the new store, not into the one set aside */
		_exit(2);
	store_close(store);
}

static void a_store_that_another_process_set_aside_is_left_behind(void **state)
{
	struct place *p = *state;
	struct child child = child_start(p, open_and_hold);

	hear(child.from);
	assert_int_equal(rename(in(p, "cache"), in(p, "cache.aside-1")), 0);
	struct store *store = open_here(p);

	assert_int_equal(get_number(p, store, 1, 10), CACHE_MISS);
	tell(child.to);
	assert_int_equal(child_end(child), 0);
	assert_int_equal(get_number(p, store, 2, 10), CACHE_HIT);
	store_close(store);
}

static void readers_and_a_writer_work_side_by_side(void **state)
{
	struct place *p = *state;
	struct child child = child_start(p, write_for_ever);
	struct store *store;

	struct store_stats stats;

	hear(child.from);
	store = try_open(p, true);
	assert_non_null(store);
	assert_int_equal(store_stats(store, &stats, &p->err), 0);
	assert_false(stats.checked); /* another process works on it */
	for (int i = 0; i < 100; i++) {
		assert_there(p, store, i, i + 1, 700);
		hear(child.from);
	}
	kill(child.pid, SIGKILL);
	child_end(child);
	store_close(store);
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    HERE(a_verdict_that_was_put_is_found_even_after_opening_again),
	    HERE(a_store_ignores_itself_in_git),
	    HERE(nothing_leaks_over_exec),
	    HERE(verdicts_on_one_subject_come_newest_last),
	    HERE(the_latest_of_a_case_moves_without_a_verdict),
	    HERE(the_cases_of_a_definition_are_listed_in_order_however_long_their_names),
	    HERE(facts_are_kept_and_replaced),
	    HERE(counters_and_rows_are_told),
	    HERE(files_come_back_sorted_and_by_prefix),
	    HERE(files_can_be_visited_one_by_one),
	    HERE(a_damaged_row_of_a_file_is_passed_over_and_counted),
	    HERE(a_path_that_is_no_key_is_not_remembered),
	    HERE(twenty_thousand_files_fit_into_one_transaction),
	    HERE(a_file_is_believed_only_if_it_had_been_still_when_it_was_read),
	    HERE(any_difference_of_stat_is_a_change),
	    HERE(a_verdict_with_one_changed_octet_is_a_miss_and_is_counted),
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
	    HERE(several_processes_begin_and_write_one_store_at_once),
	    HERE(of_several_processes_that_find_garbage_one_sets_it_aside),
	    HERE(a_map_grown_by_another_process_is_adopted),
	    HERE(a_writer_killed_at_any_moment_leaves_all_it_had_told),
	    HERE(a_store_that_another_process_set_aside_is_left_behind),
	    HERE(readers_and_a_writer_work_side_by_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
