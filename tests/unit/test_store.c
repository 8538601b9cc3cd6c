/* test_store - the store finds each stored verdict by its subject, its case or its path, and returns the newest verdict
 * last. */
#include "tests/unit/store_world.h"

/* --- finding verdicts --------------------------------------------------------------------------------------------- */

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
	static const int order[] = {5, 2, 9, 1, 7, 2, 8}; /* the verdict with witness 2 is put twice */
	static const int expected[] = {5, 9, 1, 7, 2, 8};
	struct place *p = *state;
	struct store *store = open_here(p);
	const struct stored_verdict *found;
	struct digest subject = number_digest(100), other = number_digest(101);

	for (size_t i = 0; i < 7; i += i < 4 ? 1 : 3) { /* puts 1 + 1 + 1 + 1 + 3 verdicts */
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
	assert_int_equal(get_number(p, store, 1, 10), CACHE_HIT); /* an older verdict is still in the store */
	store_close(store);
}

static void names_of_cases_may_have_any_length(void **state)
{
	struct place *p = *state;
	struct store *store = open_here(p);
	char *endless = arena_alloc(&p->arena, 5001);
	struct latest latest;

	memset(endless, 'z', 5000);
	const struct store_put put = {.definition = endless, .case_id = endless, .fields = ""};

	assert_int_equal(store_put(store, &put, 1, &p->err), 0);
	assert_int_equal(store_latest(store, endless, endless, &p->arena, &latest, &p->err), CACHE_HIT);
	assert_int_equal(store_latest(store, endless, endless + 1, &p->arena, &latest, &p->err), CACHE_MISS);
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

static void counters_and_rows_are_reported(void **state)
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
		    .checked = number % 4 == 0 ? 6 : 0, /* a row without checked cases is stored in another format */
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

static void count_visits(const struct file_entry *entry, void *context)
{
	(void)entry;
	++*(int *)context;
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

/* store_each_file_apart passes the rows below the prefix to one visitor, and all other rows to a second visitor. Both
 * visitors get their rows in order. A damaged row is counted. */
static void the_rows_below_a_prefix_can_be_visited_apart(void **state)
{
	static const char *const prefixes[] = {"a/", "b/", "c/", "b/4", "0/", "d/"};
	struct place *p = *state;
	struct store *store = open_here(p);
	struct file_entry entries[9];
	struct store_stats stats;
	size_t length;

	for (int i = 0; i < 9; i++)
		entries[i] = file_entry(p, arena_printf(&p->arena, "%c/%d", "abc"[i / 3], i), i);
	assert_int_equal(store_put_files(store, entries, 9, NULL, 0, &p->err), 0);
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		struct file_entry others[9];
		int first = -1, inside_count = 0, other_count = 0;

		for (int k = 0; k < 9; k++)
			if (strncmp(entries[k].path, prefixes[i], strlen(prefixes[i])) != 0)
				others[other_count++] = entries[k];
			else if (inside_count++ == 0)
				first = k;
		struct visited in_prefix = {.expected = entries + (first < 0 ? 0 : first)}, elsewhere = {.expected = others};
		const struct file_visitor inside = {visit, &in_prefix}, outside = {visit, &elsewhere};

		assert_int_equal(store_each_file_apart(store, prefixes[i], &inside, &outside, &p->err), 0);
		assert_int_equal(in_prefix.count, inside_count);
		assert_int_equal(elsewhere.count, other_count);
	}
	store_close(store);
	char *bytes = slurp(p, &length), *row = memmem(bytes, length, "rftr\1\0\4\0", 8);

	assert_non_null(row);
	scribble(p, row - bytes + 30, "!", 1);
	free(bytes);
	store = open_here(p);
	int counted = 0;
	const struct file_visitor inside = {count_visits, &counted}, outside = {count_visits, &counted};

	assert_int_equal(store_each_file_apart(store, "zzz/", &inside, &outside, &p->err), 0);
	assert_int_equal(counted, 8);
	assert_int_equal(store_stats(store, &stats, &p->err), 0);
	assert_int_equal(stats.damaged, 1);
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
	char *bytes = slurp(p, &length), *row = memmem(bytes, length, "rftr\1\0\4\0", 8); /* damages one of three
											   * rows */

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
	const int64_t second = 1000000000, now = 1700000000 * second, racy = UNCHANGED_FILE_RACY_MS * (second / 1000);
	struct file_stat stat = {.inode = 1, .size = 2, .mtime_ns = now, .ctime_ns = now - 5};
	struct file_seen seen = {.stat = stat, .read_ns = now + racy};

	(void)state;
	assert_true(file_seen_holds(&seen, &stat));
	seen.read_ns--;
	assert_false(file_seen_holds(&seen, &stat)); /* the stat was read so soon after a write that a later write could
						      * have the same time */
	seen.read_ns = now + racy;
	stat.ctime_ns = seen.stat.ctime_ns = now + 1;
	assert_false(file_seen_holds(&seen, &stat)); /* the ctime is newer than the mtime: another file replaced this
						      * one, or its mtime was set back */
	seen.read_ns = now - second;
	assert_false(file_seen_holds(&seen, &stat)); /* the times of the file are in the future */
	seen.read_ns = INT64_MAX;
	stat.mtime_ns = seen.stat.mtime_ns = stat.ctime_ns = seen.stat.ctime_ns = INT64_MIN;
	assert_true(file_seen_holds(&seen, &stat)); /* the difference of the extreme times does not overflow */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	    HERE(a_verdict_that_was_put_is_found_even_after_opening_again),
	    HERE(a_store_ignores_itself_in_git),
	    HERE(nothing_leaks_over_exec),
	    HERE(verdicts_on_one_subject_come_newest_last),
	    HERE(the_latest_of_a_case_moves_without_a_verdict),
	    HERE(names_of_cases_may_have_any_length),
	    HERE(facts_are_kept_and_replaced),
	    HERE(counters_and_rows_are_reported),
	    HERE(files_come_back_sorted_and_by_prefix),
	    HERE(files_can_be_visited_one_by_one),
	    HERE(the_rows_below_a_prefix_can_be_visited_apart),
	    HERE(a_damaged_row_of_a_file_is_passed_over_and_counted),
	    HERE(a_path_that_is_no_key_is_not_remembered),
	    HERE(twenty_thousand_files_fit_into_one_transaction),
	    HERE(a_file_is_believed_only_if_it_had_been_still_when_it_was_read),
	    HERE(any_difference_of_stat_is_a_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
