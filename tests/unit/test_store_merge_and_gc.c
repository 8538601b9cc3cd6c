/* test_store_merge_and_gc - merging, sweeping and compaction of a store. Of several verdicts with the same key, the
 * newest stays. Verdicts in use are not swept. A smaller file can replace the file of the store while another process
 * writes to the store. A check of the store finds every changed byte that matters. */
#include "cache/store.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "cache/expired_summaries.h"
#include "cache/export_import.h"
#include "cache/fingerprint.h"
#include "cache/witness.h"
#include "dataset/verdict.h"

enum { DAY = 86400 };

struct place {
	const char *containment; /* the containment of the verdicts that put_of makes */
	const char *driver;	 /* the GPU driver of the verdicts that put_of makes */
	double margin;
	const char *expired; /* the last value of FACT_SUMMARIES_EXPIRED */
	char root[128], file[160];
	struct err err;
	struct arena arena;
	struct store *store;
	int64_t now;
};

static void open_it(struct place *p)
{
	struct store_options options = {0};
	struct err note;

	p->store = store_open(p->root, &options, &note, &p->err);
	if (p->store == NULL)
		fail_msg("%s", p->err.text);
}

static void close_it(struct place *p)
{
	store_close(p->store);
	p->store = NULL;
}

static int place_make(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	strcpy(p->root, "/tmp/reftest-house-XXXXXX");
	if (mkdtemp(p->root) == NULL)
		return -1;
	snprintf(p->file, sizeof p->file, "%s/archive", p->root);
	p->now = time(NULL);
	open_it(p);
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

	store_close(p->store);
	arena_free(&p->arena);
	nftw(p->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

/* Builds a verdict on subject `number`, computed with version `torch` of torch. The case ran for `seconds` seconds, and
 * the date of the verdict is `made`. */
static struct store_put put_of(struct place *p, int number, const char *torch, double seconds, int64_t made)
{
	const struct output_verdict output = {.name = "output", .metrics = {.elements = 1, .hits = 1, .margin = p->margin}};
	struct fields subject = {0}, witness = {0}, all;
	struct verdict verdict = {.device_class = "sm_90",
				  .ground_truth = "builtin",
				  .ground_truth_version = "1",
				  .torch = torch,
				  .driver = p->driver,
				  .outputs = &output,
				  .output_count = p->driver != NULL,
				  .containment = p->containment,
				  .seconds = seconds,
				  .time = made};
	struct buf text = {0}, packed = {0};

	field_printf(&subject, &p->arena, "axes.n", "%d", number);
	all = fields_copy(&subject, &p->arena);
	witness_fields("builtin", "1", "sm_90", torch, NULL, NULL, &p->arena, &witness);
	witness_fields("builtin", "1", "sm_90", torch, NULL, NULL, &p->arena, &all);
	verdict_write(&verdict, &text);
	fields_write(&all, &packed);
	struct store_put put = {.subject = fields_digest(&subject),
				.witness = fields_digest(&witness),
				.text = arena_copy(&p->arena, text.data, text.length),
				.length = text.length,
				.definition = arena_printf(&p->arena, "norm/n%d", number),
				.case_id = "small:n=1",
				.fields = arena_copy(&p->arena, packed.data, packed.length),
				.fields_length = packed.length,
				.keep_verdict = true};

	buf_free(&text);
	buf_free(&packed);
	return put;
}

static struct store_put put(struct place *p, int number, const char *torch, double seconds, int64_t made)
{
	struct store_put put = put_of(p, number, torch, seconds, made);

	if (store_put(p->store, &put, 1, &p->err) != 0)
		fail_msg("%s", p->err.text);
	return put;
}

static void merge(struct place *p, int number, const char *torch, double seconds, int64_t made,
		  struct store_merged *merged)
{
	struct store_put put = put_of(p, number, torch, seconds, made);
	struct case_name name = {put.definition, put.case_id};
	struct verdict_line record = {.subject = put.subject,
				  .witness = put.witness,
				  .made = made,
				  .text = put.text,
				  .length = put.length,
				  .fields = put.fields,
				  .fields_length = put.fields_length,
				  .names = &name,
				  .name_count = 1};

	assert_int_equal(verdict_line_check(&record, &p->arena, &p->err) != NULL, 1);
	assert_int_equal(store_merge(p->store, &record, 1, merged, &p->err), 0);
}

/* Reads the seconds of the verdicts on a subject, from the oldest to the newest. */
static int seconds_of(struct place *p, int number, double seconds[4])
{
	struct store_put put = put_of(p, number, "1", 0, 0);
	const struct stored_verdict *found;
	int count = store_verdicts(p->store, &put.subject, &p->arena, &found, &p->err);

	for (int i = 0; i < count && i < 4; i++)
		seconds[i] = verdict_parse(found[i].text, found[i].length, &p->arena, NULL)->seconds;
	return count;
}

static void expect_seconds(struct place *p, int number, double expected)
{
	double seconds[4];

	assert_int_equal(seconds_of(p, number, seconds), 1);
	assert_true(seconds[0] == expected);
}

static void of_equal_keys_the_newest_stays(void **state)
{
	struct place *p = *state;
	struct store_merged merged = {0};

	put(p, 1, "2.1", 10, p->now - 100);
	merge(p, 1, "2.1", 20, p->now - 200, &merged); /* a verdict that is older than the stored one */
	expect_seconds(p, 1, 10);
	merge(p, 1, "2.1", 30, p->now - 100, &merged); /* a verdict with the same date as the stored one */
	expect_seconds(p, 1, 10);
	merge(p, 1, "2.1", 40, p->now - 50, &merged);
	expect_seconds(p, 1, 40);
	merge(p, 2, "2.1", 50, p->now - 50, &merged);
	expect_seconds(p, 2, 50);
	assert_true(merged.taken == 1 && merged.replaced == 1 && merged.kept == 2);
}

/* A verdict with full containment is not replaced by a verdict with gaps in its containment, even if the verdict with
 * gaps is newer. */
static void the_better_contained_verdict_stays(void **state)
{
	static const char *const weaker[] = {NULL, "files,network", "memory"};
	struct place *p = *state;
	struct store_merged merged = {0};

	for (int i = 0; i < 3; i++) {
		p->containment = "full";
		put(p, i, "2.1", 10, p->now - 200);
		p->containment = weaker[i];
		merge(p, i, "2.1", 20, p->now - 100, &merged);
		expect_seconds(p, i, 10);
	}
	put(p, 7, "2.1", 10, p->now - 100);
	merge(p, 7, "2.1", 20, p->now - 50, &merged); /* both verdicts have the same gaps in their containment, so the
						       * newer one stays */
	expect_seconds(p, 7, 20);
	p->containment = "full";
	merge(p, 7, "2.1", 30, p->now - 200, &merged);
	expect_seconds(p, 7, 30);
	p->containment = NULL;
	assert_true(merged.kept == 3 && merged.replaced == 2 && merged.taken == 0);
}

static struct store_put on_driver(struct place *p, const char *driver, double margin)
{
	p->driver = driver;
	p->margin = margin;
	return put_of(p, 1, "2.13", 1, 0);
}

/* Checks that subject 1 has one verdict, with the driver `driver`. `others` lists the margins with other drivers, as in
 * "550:0.25 ". */
static void expect_drivers(struct place *p, const char *driver, const char *others)
{
	const struct store_put key = put_of(p, 1, "2.13", 1, 0);
	const struct stored_verdict *all;
	struct buf text = {0};

	assert_int_equal(store_verdicts(p->store, &key.subject, &p->arena, &all, &p->err), 1);
	const struct verdict *v = verdict_parse(all[0].text, all[0].length, &p->arena, &p->err);

	assert_non_null(v);
	assert_string_equal(v->driver == NULL ? "none" : v->driver, driver);
	for (int i = 0; i < v->driver_count; i++)
		buf_printf(&text, "%s:%g ", v->drivers[i].driver, v->drivers[i].margin);
	assert_string_equal(text.data == NULL ? "" : text.data, others);
	buf_free(&text);
}

/* The version of the driver is not a part of a verdict's key. Therefore a verdict with another driver replaces the
 * stored verdict, but the new verdict keeps the margins that were measured with other drivers. */
/* Checks whether summaries have expired since the last call. */
static void expect_expired(struct place *p, bool expected)
{
	const char *value = "", *before = p->expired;

	store_fact(p->store, FACT_SUMMARIES_EXPIRED, &p->arena, &value, NULL);
	p->expired = value;
	assert_int_equal(before == NULL ? value[0] != '\0' : strcmp(before, value) != 0, expected);
}

/* A summary of a definition may contain a case for which another verdict is merged. */
static void a_merged_verdict_on_a_known_subject_expires_summaries(void **state)
{
	struct place *p = *state;
	struct store_merged merged = {0};

	put(p, 1, "1", 1, p->now - 9);
	put(p, 1, "1", 2, p->now - 8);
	merge(p, 2, "1", 1, p->now - 8, &merged);
	expect_expired(p, false);
	merge(p, 1, "2", 1, p->now - 7, &merged);
	expect_expired(p, true);
	merge(p, 1, "1", 1, p->now - 9, &merged);
	expect_expired(p, false);
	merge(p, 1, "1", 1, p->now - 6, &merged);
	expect_expired(p, true);
}

static void margins_on_other_drivers_stay(void **state)
{
	struct place *p = *state;
	struct store_merged merged = {0};
	int64_t day = p->now - 20 * DAY;

	on_driver(p, "550", 0.25);
	put(p, 1, "2.13", 1, day);
	expect_drivers(p, "550", "");
	on_driver(p, "550", 0.375); /* a second verdict with the driver of the first one */
	put(p, 1, "2.13", 1, day + 1);
	expect_drivers(p, "550", "");
	on_driver(p, "570", 0.5);
	put(p, 1, "2.13", 1, day + 2);
	expect_drivers(p, "570", "550:0.375 ");

	/* If a merged verdict is newer than the stored one, it replaces the stored one. If the merged verdict is older,
	 * only its margin is added to the stored verdict. */
	on_driver(p, "580", 0.75);
	merge(p, 1, "2.13", 1, day + 4, &merged);
	expect_drivers(p, "580", "550:0.375 570:0.5 ");
	on_driver(p, "560", 4);
	merge(p, 1, "2.13", 1, day + 3, &merged);
	assert_true(merged.replaced == 1 && merged.kept == 1);
	expect_drivers(p, "580", "550:0.375 570:0.5 560:4 ");
	on_driver(p, "570", 8); /* this verdict is older than the known margin with driver 570, so its margin is
				 * ignored */
	merge(p, 1, "2.13", 1, day, &merged);
	expect_drivers(p, "580", "550:0.375 570:0.5 560:4 ");

	/* Older versions of reftest do not store the driver. If a verdict without a driver replaces the stored verdict,
	 * the new verdict keeps the margins that were measured with each driver. */
	p->driver = NULL;
	put(p, 1, "2.13", 1, day + 5);
	expect_drivers(p, "none", "550:0.375 570:0.5 560:4 580:0.75 ");
	on_driver(p, "580", 0.75);
	put(p, 1, "2.13", 1, day + 6);
	expect_drivers(p, "580", "550:0.375 570:0.5 560:4 ");
}

static void of_many_drivers_the_newest_stay(void **state)
{
	struct place *p = *state;

	for (int i = 0; i < 2 * DRIVER_MARGINS_MAX; i++) {
		on_driver(p, arena_printf(&p->arena, "%d.0", i), i);
		put(p, 1, "2.13", 1, p->now - 1000 + i);
	}
	const struct store_put key = put_of(p, 1, "2.13", 1, 0);
	const struct stored_verdict *all;

	assert_int_equal(store_verdicts(p->store, &key.subject, &p->arena, &all, &p->err), 1);
	const struct verdict *v = verdict_parse(all[0].text, all[0].length, &p->arena, &p->err);

	assert_int_equal(v->driver_count, DRIVER_MARGINS_MAX);
	assert_true(v->drivers[0].margin == DRIVER_MARGINS_MAX - 1);
	assert_true(v->drivers[DRIVER_MARGINS_MAX - 1].margin == 2 * DRIVER_MARGINS_MAX - 2);
}

static void a_clock_that_was_ahead_wins_once_at_most(void **state)
{
	struct place *p = *state;
	struct store_merged merged = {0};

	put(p, 1, "2.1", 10, p->now + 1000 * DAY);
	/* both verdicts have dates in the future, so the stored one stays */
	merge(p, 1, "2.1", 20, p->now + 2000 * DAY, &merged);
	expect_seconds(p, 1, 10);
	assert_true(merged.kept == 1);
}

/* The date of a verdict decides which verdict is the newest. The order in which verdicts are merged does not matter. */
static void verdicts_of_one_subject_stay_in_the_order_of_their_making(void **state)
{
	struct place *p = *state;
	struct store_merged merged = {0};
	double seconds[4];

	put(p, 1, "2.3", 30, p->now - 30);
	merge(p, 1, "2.1", 10, p->now - 50, &merged);
	merge(p, 1, "2.4", 40, p->now - 20, &merged);
	assert_int_equal(seconds_of(p, 1, seconds), 3);
	assert_true(seconds[0] == 10 && seconds[1] == 30 && seconds[2] == 40);
}

static void what_is_known_of_a_case_is_not_overwritten(void **state)
{
	struct place *p = *state;
	struct store_merged merged = {0};
	struct store_put mine = put(p, 1, "2.1", 10, p->now - 100), other = put_of(p, 2, "2.1", 1, 1);
	struct case_name name = {mine.definition, mine.case_id};
	struct verdict_line record = {.subject = other.subject,
				  .witness = other.witness,
				  .made = 1,
				  .text = other.text,
				  .length = other.length,
				  .fields = other.fields,
				  .fields_length = other.fields_length,
				  .names = &name,
				  .name_count = 1};
	struct latest latest;

	assert_int_equal(store_merge(p->store, &record, 1, &merged, &p->err), 0);
	assert_int_equal(store_latest(p->store, mine.definition, mine.case_id, &p->arena, &latest, &p->err), CACHE_HIT);
	assert_true(digest_equal(&latest.subject, &mine.subject));
}

static void complain(const char *sentence, int64_t count, void *context)
{
	(void)context;
	fail_msg("%d refused: %s", (int)count, sentence);
}

static void what_is_exported_is_imported(void **state)
{
	struct place *p = *state;
	struct place q = {.now = p->now};
	struct export_counts out;
	struct import_counts in;
	struct latest latest;

	for (int i = 0; i < 50; i++)
		put(p, i, i % 2 ? "2.1" : "2.2", i, p->now - i);
	put(p, 7, "2.9", 70, p->now - 2); /* a second verdict on subject 7; `latest` names only the newer one */
	assert_int_equal(export_verdicts(p->store, p->file, NULL, &out, &p->err), 0);
	assert_true(out.verdicts == 51 && out.left_out == 0);
	snprintf(q.root, sizeof q.root, "%.100s/other", p->root);
	assert_int_equal(mkdir(q.root, 0755), 0);
	open_it(&q);
	assert_int_equal(import_verdicts(q.store, p->file, NULL, complain, NULL, &in, &q.err), 0);
	assert_true(in.whole && in.merged.taken == 51);
	for (int i = 0; i < 50; i++) {
		double seconds[4];

		assert_int_equal(seconds_of(&q, i, seconds), i == 7 ? 2 : 1);
		assert_true(seconds[i == 7] == (i == 7 ? 70 : i));
		assert_int_equal(
		    store_latest(q.store, put_of(&q, i, "1", 0, 0).definition, "small:n=1", &q.arena, &latest, NULL),
		    CACHE_HIT);
	}
	assert_int_equal(import_verdicts(q.store, p->file, NULL, complain, NULL, &in, &q.err), 0);
	assert_true(in.merged.taken == 0 && in.merged.kept == 51);
	close_it(&q);
	arena_free(&q.arena);
}

/* --- Sweeping ----------------------------------------------------------------------------------------------------- */

static struct store_swept sweep(struct place *p, const struct digest *subjects, int subject_count,
				const struct digest *definitions, int definition_count, int days, bool dry_run)
{
	struct buf stored = {0};
	struct store_needs needs = {subjects, subject_count, definitions, definition_count, &stored, days};
	struct store_swept swept;

	if (store_verdict_keys(p->store, &stored, &p->err) != 0 ||
	    store_gc(p->store, &needs, dry_run, &swept, &p->err) != 0)
		fail_msg("%s", p->err.text);
	buf_free(&stored);
	return swept;
}

static bool there(struct place *p, int number)
{
	double seconds[4];

	return seconds_of(p, number, seconds) > 0;
}

static void a_verdict_stored_while_the_dataset_is_read_stays(void **state)
{
	struct place *p = *state;
	struct buf stored = {0};
	struct store_needs needs = {.stored = &stored, .days = 0};
	struct store_swept swept;

	put(p, 1, "2.1", 1, p->now - 2);
	assert_int_equal(store_verdict_keys(p->store, &stored, &p->err), 0);
	put(p, 2, "2.1", 1, p->now - 1);
	assert_int_equal(store_gc(p->store, &needs, false, &swept, &p->err), 0);
	assert_int_equal(swept.verdicts, 1);
	assert_false(there(p, 1));
	assert_true(there(p, 2));
	buf_free(&stored);
}

static void what_is_needed_or_young_stays(void **state)
{
	struct place *p = *state;
	struct store_put needed = put(p, 1, "2.1", 1, p->now - 100 * DAY),
			 named = put(p, 2, "2.1", 1, p->now - 100 * DAY);
	struct digest definition = digest_of(named.definition, strlen(named.definition));

	put(p, 3, "2.1", 1, p->now - 100 * DAY);
	put(p, 4, "2.1", 1, p->now - 29 * DAY);
	put(p, 5, "2.1", 1, p->now);
	assert_int_equal(sweep(p, &needed.subject, 1, &definition, 1, 30, true).verdicts, 1);
	assert_true(there(p, 3)); /* gc was a dry run, so the verdict is still there */
	struct store_swept swept = sweep(p, &needed.subject, 1, &definition, 1, 30, false);

	assert_true(swept.verdicts == 1 && swept.latest == 1 && swept.damaged == 0);
	assert_true(there(p, 1) && there(p, 2) && !there(p, 3) && there(p, 4) && there(p, 5));
}

/* The age of a verdict is measured from the date of the newest verdict, not from the clock. */
static void nothing_grows_old_while_nobody_looks(void **state)
{
	struct place *p = *state;

	put(p, 1, "2.1", 1, p->now - 1010 * DAY);
	put(p, 2, "2.1", 1, p->now - 1000 * DAY);
	assert_int_equal(sweep(p, NULL, 0, NULL, 0, 30, false).verdicts, 0);
	put(p, 3, "2.1", 1, p->now + 1000 * DAY); /* dated in the future, as if the clock had jumped ahead and back */
	assert_int_equal(sweep(p, NULL, 0, NULL, 0, 30, false).verdicts, 0);
	assert_true(there(p, 1) && there(p, 2) && there(p, 3));
}

static void files_that_are_gone_are_forgotten(void **state)
{
	struct place *p = *state;
	struct file_entry entries[] = {{.path = "archive"}, {.path = "gone"}};
	const struct file_entry *left;
	int fd = open(p->file, O_CREAT | O_WRONLY, 0644);

	close(fd);
	assert_int_equal(store_put_files(p->store, entries, 2, NULL, 0, &p->err), 0);
	assert_int_equal(sweep(p, NULL, 0, NULL, 0, 30, false).files, 1);
	assert_int_equal(store_files(p->store, "", &p->arena, &left, &p->err), 1);
	assert_string_equal(left[0].path, "archive");
}

/* Puts verdicts with a text of `size` bytes; the text does not matter. */
static void put_bulk(struct place *p, int from, int to, size_t size, int64_t made)
{
	char *text = arena_alloc(&p->arena, size + 64);
	int head = sprintf(text, "{\"time\": %lld} ", (long long)made);

	memset(text + head, 'x', size);
	for (int i = from; i < to; i++) {
		struct store_put bulk = put_of(p, i, "2.1", 0, 0);

		bulk.text = text;
		bulk.length = (size_t)head + size;
		if (store_put(p->store, &bulk, 1, &p->err) != 0)
			fail_msg("%s", p->err.text);
	}
}

/* A process still has the old file open after another file has replaced it. Its next write goes to the new file. */
static void a_smaller_file_takes_its_place_and_no_writer_loses(void **state)
{
	struct place *p = *state;
	int go[2], ready[2], status;
	char word;

	assert_true(pipe(go) == 0 && pipe(ready) == 0);
	put_bulk(p, 0, 200, 20000, p->now - 100 * DAY);
	put(p, 1000, "2.1", 1000, p->now);
	close_it(p);
	pid_t child = fork();

	if (child == 0) {
		open_it(p);
		double seconds[4];
		int before = seconds_of(p, 1000, seconds);

		if (write(ready[1], "r", 1) != 1 || read(go[0], &word, 1) != 1)
			_exit(2);
		put(p, 2000, "2.1", 2000, p->now);
		int after = seconds_of(p, 1000, seconds) + seconds_of(p, 2000, seconds);

		store_close(p->store);
		_exit(before == 1 && after == 2 ? 0 : 1);
	}
	assert_int_equal(read(ready[0], &word, 1), 1);
	open_it(p);
	struct store_swept swept = sweep(p, NULL, 0, NULL, 0, 30, false);

	assert_int_equal(swept.verdicts, 200);
	assert_true(swept.bytes_before > 4 << 20 && swept.bytes_after < 1 << 20);
	assert_int_equal(write(go[1], "g", 1), 1);
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	expect_seconds(p, 1000, 1000);
	close_it(p);
	open_it(p);
	expect_seconds(p, 1000, 1000);
	expect_seconds(p, 2000, 2000);
	for (int i = 0; i < 2; i++)
		close(go[i]), close(ready[i]);
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

static void count_bad(const char *sentence, void *context)
{
	(void)sentence;
	++*(int *)context;
}

/* Returns true if a check of the pages or of the rows finds damage. */
static bool found(struct place *p)
{
	struct store_options options = {.read_only = true};
	struct store_inspected seen;
	struct err note, err = {""};
	int reported = 0;

	if (store_damage(p->root, &err) != 0)
		return true;
	struct store *store = store_open(p->root, &options, &note, &err);

	if (store == NULL)
		return true;
	int answer = store_inspect(store, count_bad, &reported, &seen, &err);

	assert_int_equal(reported, seen.bad);
	store_close(store);
	return answer != 0 || reported > 0;
}

/* Returns true if every verdict is found unchanged. */
static bool all_right(struct place *p)
{
	struct store_options options = {.read_only = true};
	struct err note;
	bool right = true;

	p->store = store_open(p->root, &options, &note, &p->err);
	if (p->store == NULL)
		return false;
	for (int i = 0; i < 3; i++) {
		struct store_put put = put_of(p, i, "2.1", i + 0.5, 1000 + i);
		struct latest latest;
		const char *text;
		size_t length;

		right =
		    right &&
		    store_verdict(p->store, &put.subject, &put.witness, &p->arena, &text, &length, NULL) == CACHE_HIT &&
		    length == put.length && memcmp(text, put.text, length) == 0 &&
		    store_latest(p->store, put.definition, put.case_id, &p->arena, &latest, NULL) == CACHE_HIT &&
		    latest.fields_length == put.fields_length &&
		    memcmp(latest.fields, put.fields, put.fields_length) == 0;
	}
	close_it(p);
	arena_free(&p->arena);
	return right;
}

/* Returns true if 64 bytes around `at` are all zeros. */
static bool is_empty_room(int fd, off_t at)
{
	static const char zeros[64];
	char around[64];

	return at >= 32 && pread(fd, around, sizeof around, at - 32) == sizeof around &&
	       memcmp(around, zeros, sizeof around) == 0;
}

static void every_changed_byte_is_found_or_does_not_matter(void **state)
{
	struct place *p = *state;
	char path[200];
	struct stat st;
	int seen = 0, harmless = 0;
	size_t rows = 0; /* the size in bytes of all keys (32 each) and all records (20 each for a frame, and the text) */

	for (int i = 0; i < 3; i++) {
		struct store_put row = put(p, i, "2.1", i + 0.5, 1000 + i);

		rows += 32 + 20 + 12 + row.length;
		rows += 32 + 20 + 32 + 4 + strlen(row.definition) + 4 + strlen(row.case_id) + row.fields_length;
	}
	store_put_fact(p->store, "torch", "2.13", &p->err);
	close_it(p);
	assert_false(found(p));
	snprintf(path, sizeof path, "%s/.reftest/cache/data.mdb", p->root);
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	for (off_t at = 0; at < st.st_size; at++) {
		unsigned char was, is;

		assert_int_equal(pread(fd, &was, 1, at), 1);
		if (at % 61 != 0 && is_empty_room(fd, at))
			continue; /* a part of the file that has only zeros is unused; only one byte in 61 is tried
				   * there */
		is = was ^ (unsigned char)(1u << at % 8);
		assert_int_equal(pwrite(fd, &is, 1, at), 1);
		if (found(p))
			seen++;
		else if (all_right(p))
			harmless++;
		else
			fail_msg("byte %ld of %ld was changed: a row is lost, and that is not reported", (long)at,
				 (long)st.st_size);
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
	}
	close(fd);
	print_message("%d changed bytes were found, and %d do not matter\n", seen, harmless);
	assert_true(seen >= (int)rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(of_equal_keys_the_newest_stays, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(the_better_contained_verdict_stays, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(a_merged_verdict_on_a_known_subject_expires_summaries, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(margins_on_other_drivers_stay, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(of_many_drivers_the_newest_stay, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(a_clock_that_was_ahead_wins_once_at_most, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(verdicts_of_one_subject_stay_in_the_order_of_their_making, place_make,
					    place_remove),
	    cmocka_unit_test_setup_teardown(what_is_known_of_a_case_is_not_overwritten, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(what_is_exported_is_imported, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(a_verdict_stored_while_the_dataset_is_read_stays, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(what_is_needed_or_young_stays, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(nothing_grows_old_while_nobody_looks, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(files_that_are_gone_are_forgotten, place_make, place_remove),
	    cmocka_unit_test_setup_teardown(a_smaller_file_takes_its_place_and_no_writer_loses, place_make,
					    place_remove),
	    cmocka_unit_test_setup_teardown(every_changed_byte_is_found_or_does_not_matter, place_make, place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
