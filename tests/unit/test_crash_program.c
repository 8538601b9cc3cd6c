/* test_crash_program - the whole program survives a crash at any call that changes a file. Each command that writes
 * runs many times, each time with one fault at one of these calls. The faults are: the program is killed before, during
 * or after the call; the write is cut short; the disk is broken or full; the clock jumps. After every fault, all stored
 * verdicts remain and are correct, and each file that others read has its old or its new content. A second run of the
 * same command repairs everything and leaves no temporary file. */
#include "tests/unit/program_world.h"

#include <lmdb.h>

enum { POINTS_LEAST = 900 };

static const char *const fault_names[FAULT_COUNT] = {
    [FAULT_NONE] = "no fault",
    [FAULT_BEFORE] = "killed before",
    [FAULT_TORN] = "killed in or after",
    [FAULT_SHORT] = "short write",
    [FAULT_EIO] = "EIO",
    [FAULT_ENOSPC] = "disk full from",
    [FAULT_AHEAD] = "clock ahead",
    [FAULT_BACK] = "clock back",
};

static struct world w;
static struct known_list first, second, all;

/* A check that runs after the run with a fault (`mended` is false), and again after a second run of the same command
 * (`mended` is true). Returns NULL or a description of what is wrong. */
typedef const char *look(bool mended);

/* --- files with their old or their new content -------------------------------------------------------------------- */

/* Checks that a file has its old or its new content. If `old` is NULL, the file may also be missing. If `mended`, only
 * the new content is right. Returns NULL, or `why` if the file is wrong. */
static const char *old_or_new(const char *name, const char *old, const char *new, bool mended, const char *why)
{
	struct buf now = {0}, one = {0}, two = {0};
	bool there = bytes_of(in_root(&w, name), &now), was = old != NULL && bytes_of(old, &one), good;

	if (!bytes_of(new, &two))
		return "there is nothing to compare with";
	good = there && now.length == two.length && memcmp(now.data, two.data, two.length) == 0;
	if (!mended && !good)
		good = there ? was && now.length == one.length && memcmp(now.data, one.data, one.length) == 0 : !was;
	buf_free(&now);
	buf_free(&one);
	buf_free(&two);
	return good ? NULL : why;
}

static const char *archive_whole(bool mended)
{
	return old_or_new("archive", in_base(&w, "first.archive"), in_base(&w, "second.archive"), mended,
			  "the exported file is neither the old nor the new one");
}

static const char *new_archive_whole(bool mended)
{
	return old_or_new("archive", NULL, in_base(&w, "second.archive"), mended,
			  "the exported file is neither absent nor whole");
}

static const char *tests_whole(bool mended)
{
	return old_or_new("tests/references/test_gemm.py", in_base(&w, "generated/tests/references/test_gemm.py"),
			  in_base(&w, "generated.after/tests/references/test_gemm.py"), mended,
			  "the generated file is neither the old nor the new one");
}

static const char *new_tests_whole(bool mended)
{
	const char *why =
	    old_or_new("tests/references/test_gemm.py", NULL, in_base(&w, "generated/tests/references/test_gemm.py"),
		       mended, "the generated file is neither absent nor whole");

	return why != NULL ? why
			   : old_or_new("tests/references/conftest.py", NULL,
					in_base(&w, "generated/tests/references/conftest.py"), mended,
					"conftest.py is neither absent nor whole");
}

static const char *hook_runs(bool mended)
{
	const char *path = in_root(&w, ".git/hooks/pre-commit");
	struct buf text = {0};

	if (access(path, X_OK) != 0)
		return "there is no hook that git would run";
	if (mended && access(in_root(&w, ".git/hooks/pre-commit.before-reftest"), X_OK) != 0)
		return "the hook that existed before is not run any more";
	bool good = bytes_of(path, &text) &&
		    (mended ? strstr(text.data, "reftest hook") != NULL
			    : strncmp(text.data, "#!/bin/sh\n", 10) == 0 && text.data[text.length - 1] == '\n');

	buf_free(&text);
	return good ? NULL : "the hook is neither the old nor the new one";
}

/* Checks that the user's earlier hook is in its place again, so that git runs it. If `mended` is false, reftest's hook
 * may still be there instead. */
static const char *old_hook_is_back(bool mended)
{
	struct buf text = {0};

	if (access(in_root(&w, ".git/hooks/pre-commit"), X_OK) != 0)
		return "there is no hook that git would run";
	bool good = !mended || (bytes_of(in_root(&w, ".git/hooks/pre-commit"), &text) &&
				strcmp(text.data, "#!/bin/sh\nexit 0\n") == 0);

	buf_free(&text);
	return good ? NULL : "the hook that existed before was not restored";
}

static const char *new_hook_runs(bool mended)
{
	if (!mended && access(in_root(&w, ".git/hooks/pre-commit"), F_OK) != 0)
		return NULL;
	return access(in_root(&w, ".git/hooks/pre-commit"), X_OK) == 0 ? NULL : "git would not run the hook";
}

enum { UNBORN = 2 * 4096 }; /* a store that has never kept a verdict has at most this many bytes */

/* Returns an error if an undamaged cache was set aside as cache.aside-`from` or under a higher number; else NULL.
 * Ignores caches of at most UNBORN bytes: a crash during the creation of a cache leaves an incomplete cache, which a
 * later run may set aside. */
static const char *quarantine_only_below(int from)
{
	struct stat st;
	char name[64];

	for (; from <= 9; from++) {
		snprintf(name, sizeof name, ".reftest/cache.aside-%d/data.mdb", from);
		if (stat(in_root(&w, name), &st) == 0 && st.st_size > UNBORN)
			return "more was set aside than was damaged";
	}
	return NULL;
}

/* Checks that the unusable cache was set aside unchanged. */
static const char *quarantine_kept(bool mended)
{
	struct buf now = {0}, was = {0};
	bool good = true;

	if (bytes_of(in_root(&w, ".reftest/cache.aside-1/data.mdb"), &now))
		good = bytes_of(in_base(&w, "garbage/.reftest/cache/data.mdb"), &was) && now.length == was.length &&
		       memcmp(now.data, was.data, was.length) == 0;
	else if (mended)
		good = false;
	buf_free(&now);
	buf_free(&was);
	if (!good)
		return "the damaged cache is not set aside unchanged";
	return quarantine_only_below(2);
}

static const char *older_kept(bool mended)
{
	if (mended && access(in_root(&w, ".reftest/cache.aside-1/data.mdb"), F_OK) != 0)
		return "the cache of another version is gone";
	return quarantine_only_below(2);
}

static const char *only_unborn_aside(bool mended)
{
	(void)mended;
	return quarantine_only_below(1);
}

static const char *nothing_aside(bool mended)
{
	(void)mended;
	return access(in_root(&w, ".reftest/cache.aside-1"), F_OK) != 0 ? NULL : "the cache was set aside";
}

/* --- the commands under test -------------------------------------------------------------------------------------- */

static const struct scenario {
	const char *name, *state;
	const char *words[WORDS];
	const struct expected *expected;
	const struct known_list *before; /* the verdicts that must not be lost */
	look *look;
	/* A run without a fault must make at least this many calls at which a fault can occur. The exact number is not
	 * known, because it depends on how many verdicts `verify` stores in one transaction. */
	long least;
} scenarios[] = {
    {"the first verify",
     "fresh",
     {"verify", "--format", "json", "--device", "cpu", "--sizes", "small", "--jobs", "1"},
     first_texts,
     NULL,
     only_unborn_aside,
     18},
    {"verify after an edit",
     "edited",
     {"verify", "--format", "json", "--device", "cpu", "--sizes", "small", "--jobs", "1"},
     second_texts,
     &first,
     nothing_aside,
     18},
    {"a look at a new checkout",
     "kept",
     {"verify", "--cached-only", "--format", "json", "--device", "cpu", "--sizes", "small"},
     first_texts,
     &first,
     nothing_aside,
     11},
    {"the first import", "fresh", {"cache", "import", "../first.archive"}, first_texts, NULL, only_unborn_aside, 15},
    {"import into a cache",
     "edited",
     {"cache", "import", "../second.archive"},
     second_texts,
     &first,
     nothing_aside,
     11},
    {"export over a file", "exported", {"cache", "export", "archive"}, second_texts, &second, archive_whole, 6},
    {"export to a new file", "both", {"cache", "export", "archive"}, second_texts, &second, new_archive_whole, 5},
    {"gc", "large", {"cache", "gc"}, first_texts, &first, nothing_aside, 18},
    {"the first generate", "kept", {"generate"}, first_texts, &first, new_tests_whole, 13},
    {"generate after an edit", "generated.edited", {"generate"}, NULL, &first, tests_whole, 8},
    {"hook install over a hook", "hooked", {"hook", "install"}, NULL, NULL, hook_runs, 11},
    {"hook uninstall", "chained", {"hook", "uninstall"}, NULL, NULL, old_hook_is_back, 2},
    {"hook install", "git", {"hook", "install"}, NULL, NULL, new_hook_runs, 10},
    {"verify over garbage",
     "garbage",
     {"verify", "--format", "json", "--device", "cpu", "--sizes", "small", "--jobs", "1"},
     first_texts,
     NULL,
     quarantine_kept,
     18},
    {"verify over an older cache",
     "older",
     {"verify", "--format", "json", "--device", "cpu", "--sizes", "small", "--jobs", "1"},
     first_texts,
     NULL,
     older_kept,
     18},
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* --- the states in which the commands start ----------------------------------------------------------------------- */

/* Writes a store in a format that this version does not know. */
static void age_cache(void)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_val key = {8, (void *)(uintptr_t) "reftest"}, value = {5, (void *)(uintptr_t) "older"};

	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_open(env, in_root(&w, ".reftest/cache"), MDB_NOSYNC, 0644), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
	assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
}

static void make_repository(void)
{
	write_text(in_root(&w, ".git/HEAD"), "ref: refs/heads/main\n");
	write_text(in_root(&w, ".git/config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
	assert_int_equal(mkdir(in_root(&w, ".git/objects"), 0777), 0);
	assert_int_equal(mkdir(in_root(&w, ".git/refs"), 0777), 0);
	assert_int_equal(mkdir(in_root(&w, ".git/hooks"), 0777), 0);
	save_as(&w, "git");
	write_text(in_root(&w, ".git/hooks/pre-commit"), "#!/bin/sh\nexit 0\n");
	assert_int_equal(chmod(in_root(&w, ".git/hooks/pre-commit"), 0755), 0);
	save_as(&w, "hooked");
	must_run(&w, (const char *const[]){"hook", "install", NULL}, 0);
	save_as(&w, "chained");
}

static void make_first_states(void)
{
	assert_int_equal(mkdir(w.root, 0777), 0);
	write_first_texts(&w);
	save_as(&w, "fresh");
	must_run(&w, run_verify, 1);
	assert_null(wrong_status(&w, first_texts, false));
	assert_int_equal(read_known(w.root, &first), 0);
	export_to(&w, "first.archive");
	save_as(&w, "kept");
	make_repository();
	begin_with(&w, "kept");
	fill_cache(&w);
	save_as(&w, "large");
	begin_with(&w, "kept");
	write_bytes(in_root(&w, ".reftest/cache/data.mdb"), "garbage, garbage, garbage", 25);
	save_as(&w, "garbage");
	begin_with(&w, "kept");
	age_cache();
	save_as(&w, "older");
}

static void make_second_states(void)
{
	begin_with(&w, "kept");
	write_second_texts(&w);
	save_as(&w, "edited");
	must_run(&w, run_verify, 1);
	assert_null(wrong_status(&w, second_texts, false));
	assert_int_equal(read_known(w.root, &second), 0);
	export_to(&w, "second.archive");
	save_as(&w, "both");
	copy_tree(in_base(&w, "both"), in_base(&w, "exported"));
	struct buf archive = {0};

	assert_true(bytes_of(in_base(&w, "first.archive"), &archive));
	write_bytes(in_base(&w, "exported/archive"), archive.data, archive.length);
	buf_free(&archive);
}

static void make_generated_states(void)
{
	static const char *const words[] = {"generate", NULL};

	begin_with(&w, "kept");
	must_run(&w, words, 0);
	save_as(&w, "generated");
	write_second_texts(&w);
	save_as(&w, "generated.edited");
	must_run(&w, words, 0);
	save_as(&w, "generated.after");
}

static int make_world(void **state)
{
	(void)state;
	world_make(&w);
	make_first_states();
	make_second_states();
	make_generated_states();
	all = second; /* the second store also contains the verdicts of the first */
	assert_true(first.count == 6 && second.count == 6 + 8);
	return 0;
}

static int free_world(void **state)
{
	(void)state;
	world_free(&w);
	return 0;
}

/* --- a crash, and the run after it -------------------------------------------------------------------------------- */

/* the call at which the fault occurred */
static char last[sizeof((struct faults *)NULL)->last];

static void dig(const struct scenario *s, const char *when, enum fault fault, long at, const char *why)
{
	if (why != NULL)
		fail_msg("%s, %s call %ld (%s), %s: %s\n%s%s", s->name, fault_names[fault], at, last, when, why,
			 printed(&w.out), printed(&w.err));
}

static bool answers_verify(const struct scenario *s)
{
	return strcmp(s->words[0], "verify") == 0;
}

/* Checks right after the fault: no verdict is lost, and every verdict that can be read is correct. */
static const char *crashed(const struct scenario *s, int status, enum fault fault)
{
	static const struct known_list none;
	static struct known_list some;
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	const char *why = s->look(false);

	if (killed != (w.faults->struck && (fault == FAULT_BEFORE || fault == FAULT_TORN)))
		return "the program ended with another status than expected";
	if (WIFSIGNALED(status) && !killed)
		return "the program was ended by another signal";
	if (why == NULL && !killed && answers_verify(s))
		why = wrong_status(&w, s->expected, true);
	if (why == NULL && s->before != NULL)
		why = wrong_store(&w, s->before, &all);
	else if (why == NULL && read_known(w.root, &some) == 0)
		why = wrong_store(&w, &none, &all);
	return why;
}

/* Runs the same command again without a fault, and checks what is cached. */
static const char *mended(const struct scenario *s, int code)
{
	int found = run_plainly(&w, s->words);
	const char *why = found != code ? "the next run does not end as it should" : s->look(true);

	if (why == NULL && answers_verify(s))
		why = wrong_status(&w, s->expected, false);
	if (why == NULL && (why = leftover(&w)) == NULL && s->before != NULL)
		why = wrong_store(&w, s->before, &all);
	if (why == NULL && s->expected != NULL) {
		found = run_plainly(&w, run_cached);
		why = found != 1 ? "what is cached is not all that there is" : wrong_status(&w, s->expected, false);
		if (why == NULL)
			why = wrong_store(&w, s->expected == first_texts ? &first : &second, &all);
	}
	return why;
}

/* Runs the scenario once with the fault; returns the number of calls of that run. */
static long run_one(const struct scenario *s, enum fault fault, long at, int code)
{
	begin_with(&w, s->state);
	int status = run_with(&w, s->words, fault, at);
	long calls = w.faults->calls;

	w.faults->clock_s = STILL_S;
	snprintf(last, sizeof last, "%s", w.faults->last);
	dig(s, "at once", fault, at, crashed(s, status, fault));
	bool struck = w.faults->struck;

	dig(s, "afterwards", fault, at, mended(s, code));
	w.faults->struck = struck;
	return calls;
}

static long run_scenario(const struct scenario *s)
{
	/* Two scenarios begin with a damaged or older cache. After it was set aside, the run does the same as in the
	 * scenario "the first verify", which is tried with every kind of fault. Therefore the two are tried with only
	 * one kind. */
	enum fault last_fault = s->look == quarantine_kept || s->look == older_kept ? FAULT_BEFORE : FAULT_BACK;
	long points = 0, calls;

	begin_with(&w, s->state);
	int code = run_plainly(&w, s->words);

	calls = w.faults->calls;
	dig(s, "without a fault", FAULT_NONE, 0, s->look(true));
	for (enum fault fault = FAULT_BEFORE; fault <= last_fault; fault++)
		for (long at = 1, step = fault < FAULT_AHEAD ? 1 : 3; run_one(s, fault, at, code) >= at; at += step)
			points += w.faults->struck;
	print_message("%-28s %4ld calls, %5ld faults\n", s->name, calls, points);
	if (calls < s->least)
		fail_msg("%s: %ld calls were counted, at least %ld are expected", s->name, calls, s->least);
	return points;
}

static void at_every_point_of_the_program(void **state)
{
	const char *only = getenv("SCENARIO"); /* to debug one scenario, set SCENARIO to its name */
	long points = 0;

	(void)state;
	for (int i = 0; i < SCENARIOS; i++)
		if (only == NULL || strcmp(only, scenarios[i].name) == 0)
			points += run_scenario(&scenarios[i]);
	print_message("%ld faults\n", points);
	assert_true(only != NULL || points >= POINTS_LEAST);
}

/* --- clocks and torn files ---------------------------------------------------------------------------------------- */

/* For each of `clocks`, edits the dataset without changing the sizes of files, and runs the program with this clock.
 * Each run must report the verdict of the current text, and no verdict of an earlier run may be lost. */
static void whatever_the_clock_shows(void **state)
{
	static const int64_t clocks[] = {
	    0, 3653 * 86400LL, -3653 * 86400LL, 1, 40 * 365 * 86400LL, -1000 * 86400LL, STILL_S};

	(void)state;
	begin_with(&w, "kept");
	for (int i = 0; i < (int)(sizeof clocks / sizeof *clocks); i++) {
		const struct expected *expected = i % 2 == 0 ? second_texts : first_texts;

		(i % 2 == 0 ? write_second_texts : write_first_texts)(&w);
		w.faults->clock_s = clocks[i];
		for (int turn = 0; turn < 2; turn++) {
			must_run(&w, turn == 0 ? run_verify : run_cached, 1);
			const char *why = wrong_status(&w, expected, false);

			why = why != NULL ? why : wrong_store(&w, i == 0 ? &first : &second, &all);
			if (why != NULL)
				fail_msg("clock %d, run %d: %s\n%s", i, turn, why, printed(&w.err));
		}
		must_run(&w, (const char *const[]){"cache", "gc", "--days", "3650", NULL}, 0);
	}
	w.faults->clock_s = STILL_S;
}

/* Cuts the file at a random place, or overwrites a part of the file with noise or zeros. */
static void tear(const char *path, unsigned *noise)
{
	unsigned draws[3];
	struct buf bytes = {0};

	for (int i = 0; i < 3; i++)
		draws[i] = (*noise = *noise * 1664525 + 1013904223) >> 8;
	assert_true(bytes_of(path, &bytes));
	size_t at = draws[1] % bytes.length, length = draws[2] % 2000;

	if (draws[0] % 3 == 0)
		bytes.length = at;
	for (; draws[0] % 3 != 0 && length > 0 && at < bytes.length; at++, length--)
		bytes.data[at] = (char)(draws[0] % 3 == 1 ? 0 : (*noise = *noise * 1664525 + 1013904223) >> 24);
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write(fd, bytes.data, bytes.length), bytes.length);
	close(fd);
	buf_free(&bytes);
}

static void a_torn_cache_costs_a_run_never_an_answer(void **state)
{
	enum { TEARS = 90 };
	unsigned noise = 6;
	int aside = 0;

	(void)state;
	for (int i = 0; i < TEARS; i++) {
		begin_with(&w, "both");
		tear(in_root(&w, ".reftest/cache/data.mdb"), &noise);
		int code = run_plainly(&w, run_cached);
		const char *why = code != 1 && code != 3 ? "it ends otherwise than by what it found"
							 : wrong_status(&w, second_texts, true);

		if (why == NULL && i % 3 == 0) {
			code = run_plainly(&w, run_verify);
			why = code != 1 ? "a run does not end as it should" : wrong_status(&w, second_texts, false);
			aside += access(in_root(&w, ".reftest/cache.aside-1"), F_OK) == 0;
		}
		if (why != NULL)
			fail_msg("tear %d: ended with %d, %s\n%s%s", i, code, why, printed(&w.out), printed(&w.err));
	}
	assert_true(aside > 5 && aside < TEARS / 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(at_every_point_of_the_program),
	    cmocka_unit_test(whatever_the_clock_shows),
	    cmocka_unit_test(a_torn_cache_costs_a_run_never_an_answer),
	};

	return cmocka_run_group_tests(tests, make_world, free_world);
}
