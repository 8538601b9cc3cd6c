/* test_dataset - the root and the files of a dataset are found, in a fixed order, with each definition's workload. */
#include "dataset/dataset.h"

#include <errno.h>
#include <fcntl.h>

#include "base/buf.h"
#include "tests/unit/folder.h"

/* Unsets the environment variables that name a root. */
static int enter(void **state)
{
	unsetenv("REFTEST_ROOT");
	unsetenv("FIB_DATASET_PATH");
	return enter_folder(state);
}

static void folder(const char *path)
{
	assert_int_equal(mkdir(path, 0777), 0);
}

/* Checks that the paths of the files are the lines of `expected`. */
static void check_paths(const struct dataset_file *files, int count, const char *expected)
{
	struct buf text = {0};

	buf_text(&text, "");
	for (int i = 0; i < count; i++)
		buf_printf(&text, "%s\n", files[i].path);
	assert_string_equal(text.data, expected);
	buf_free(&text);
}

static void files_are_found_in_the_order_of_their_paths(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};
	struct stat st;

	(void)state;
	folder("definitions");
	folder("definitions/a");
	folder("definitions/a-b");
	folder("definitions/a.b");
	folder("workloads");
	folder("workloads/a");
	put("definitions/a/z.json", "12345");
	put("definitions/a/y.json", "");
	put("definitions/a/Y.json", "");
	put("definitions/a/y-1.json", "");
	put("definitions/a-b/x.json", "");
	put("definitions/a.b/x.json", "");
	put("workloads/a/z.jsonl", "");
	put("workloads/a/a.jsonl", "");
	assert_int_equal(dataset_scan(".", &arena, &dataset, &err), 0);
	check_paths(dataset.definitions, dataset.definition_count,
	            "definitions/a-b/x.json\ndefinitions/a.b/x.json\ndefinitions/a/Y.json\ndefinitions/a/y-1.json\n"
	            "definitions/a/y.json\ndefinitions/a/z.json\n");
	for (int i = 1; i < dataset.definition_count; i++)
		assert_true(strcmp(dataset.definitions[i - 1].path, dataset.definitions[i].path) < 0);
	check_paths(dataset.workloads, dataset.workload_count, "workloads/a/a.jsonl\nworkloads/a/z.jsonl\n");
	const struct dataset_file *z = &dataset.definitions[5];

	assert_string_equal(z->op_type, "a");
	assert_string_equal(z->name, "z");
	assert_int_equal(stat("definitions/a/z.json", &st), 0);
	assert_true(z->stat.size == 5 && z->stat.inode == st.st_ino);
	assert_true(z->stat.mtime_ns == (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	assert_int_equal(dataset.problem_count, 0);
	assert_ptr_equal(dataset_workload(&dataset, z), &dataset.workloads[1]);
	assert_null(dataset_workload(&dataset, &dataset.definitions[4]));
	assert_string_equal(dataset.root, ".");
	assert_int_equal(faccessat(dataset.fd, "definitions/a/z.json", R_OK, 0), 0);
	dataset_close(&dataset);
	dataset_close(&dataset);
	arena_free(&arena);
}

/* Writes a random name of up to 13 bytes. Its characters are from `letters`. Among them are '-' and '.', which sort
 * before '/', and a character that is not ASCII. */
static void any_name(uint32_t *state, char *out)
{
	static const char *const letters[] = {"a", "a", "b", "-", ".", "~", "\xC3\xBF"};
	size_t length = (*state = *state * 1664525u + 1013904223u) % 7;

	strcpy(out, "a"); /* each name begins with "a", so no file is hidden */
	for (size_t i = 0; i < length; i++) {
		*state = *state * 1664525u + 1013904223u;
		strcat(out, letters[(*state >> 16) % (sizeof letters / sizeof *letters)]);
	}
}

/* The order is correct for names with a common prefix of any length. The program compares the first eight bytes of two
 * names as one number, so some names of the test differ within these bytes, and some only after them. */
static void any_names_are_found_in_the_order_of_their_paths(void **state)
{
	static const char *const shared[] = {"", "x", "alike_in_more_than_eight_bytes_"};
	struct arena arena = {0};
	struct dataset dataset;
	char path[128], name[16];
	uint32_t random = 7;
	int folders = 0;

	(void)state;
	folder("definitions");
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
		for (int k = 0; k < 12; k++) {
			any_name(&random, name);
			snprintf(path, sizeof path, "definitions/a%s%s", shared[i], name);
			folders += mkdir(path, 0777) == 0;
			size_t length = strlen(path);

			for (int n = 0; n < 60; n++) {
				any_name(&random, name);
				snprintf(path + length, sizeof path - length, "/%s%s.json", shared[i], name);
				put(path, "");
			}
		}
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	assert_in_range(dataset.definition_count, 40 * folders, 60 * folders);
	for (int i = 0; i < dataset.definition_count; i++) {
		const struct dataset_file *file = &dataset.definitions[i];

		assert_true(i == 0 || strcmp(file[-1].path, file->path) < 0);
		snprintf(path, sizeof path, "definitions/%s/%s.json", file->op_type, file->name);
		assert_string_equal(path, file->path);
	}
	dataset_close(&dataset);
	arena_free(&arena);
}

/* With these names, the order of the files depends on their suffixes: '.' sorts before letters, and ".json" before
 * ".jsonl". */
static void every_definition_gets_its_workload(void **state)
{
	static const char *const names[] = {"llama3",       "llama3.1",  "llama3-1", "llama3.json", "llama3.jsona",
	                                    "llama3.jsonz", "llama3.js", "llama",    "z.z",         "z"};
	struct arena arena = {0};
	struct dataset dataset;
	char path[64];

	(void)state;
	folder("definitions");
	folder("definitions/a");
	folder("workloads");
	folder("workloads/a");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "definitions/a/%s.json", names[i]);
		put(path, "");
		snprintf(path, sizeof path, "workloads/a/%s.jsonl", names[i]);
		put(path, "");
	}
	put("definitions/a/alone.json", "");
	put("workloads/a/other.jsonl", "");
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	assert_int_equal(dataset.definition_count, sizeof names / sizeof *names + 1);
	for (int i = 0; i < dataset.definition_count; i++) {
		const struct dataset_file *d = &dataset.definitions[i], *w = dataset_workload(&dataset, d);

		if (strcmp(d->name, "alone") == 0)
			assert_null(w);
		else if (w == NULL)
			fail_msg("%s got no workload", d->path);
		else
			assert_string_equal(d->name, w->name);
	}
	dataset_close(&dataset);
	arena_free(&arena);
}

static void leftovers_and_other_files_are_no_part_of_it(void **state)
{
	static const char *const others[] = {
	    "definitions/a/.json",      "definitions/a/.x.json",     "definitions/a/x.json~",
	    "definitions/a/x.json.bak", "definitions/a/.x.json.swp", "definitions/a/#x.json#",
	    "definitions/a/x.jsonl",    "definitions/a/x.JSON",      "definitions/a/json",
	    "definitions/top.json",     "definitions/.hidden/x.json"};
	struct arena arena = {0};
	struct dataset dataset;

	(void)state;
	folder("definitions");
	folder("definitions/a");
	folder("definitions/.hidden");
	folder("definitions/a/deep.json");
	folder("definitions/a/deeper");
	put("definitions/a/deeper/x.json", "");
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		put(others[i], "");
	put("definitions/a/x.json", "");
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	check_paths(dataset.definitions, dataset.definition_count, "definitions/a/x.json\n");
	assert_int_equal(dataset.workload_count, 0);
	assert_null(dataset_workload(&dataset, dataset.definitions));
	assert_int_equal(dataset.problem_count, 0);
	dataset_close(&dataset);
	arena_free(&arena);
}

static void links_are_followed(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;

	(void)state;
	folder("elsewhere");
	folder("definitions");
	put("elsewhere/x.json", "123");
	put("file", "");
	assert_int_equal(symlink("../elsewhere", "definitions/linked"), 0);
	assert_int_equal(symlink("../file", "definitions/file"), 0);
	assert_int_equal(symlink("../nowhere", "definitions/nowhere"), 0);
	assert_int_equal(symlink("x.json", "elsewhere/y.json"), 0);
	assert_int_equal(symlink("none", "elsewhere/z.json"), 0);
	assert_int_equal(symlink("..", "elsewhere/up.json"), 0);
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	check_paths(dataset.definitions, dataset.definition_count,
	            "definitions/linked/x.json\ndefinitions/linked/y.json\n");
	assert_true(dataset.definitions[1].stat.size == 3);
	assert_int_equal(dataset.problem_count, 1);
	assert_string_equal(dataset.problems[0],
	                    "definitions/linked/z.json: cannot stat the file: No such file or directory");
	dataset_close(&dataset);
	arena_free(&arena);
}

static void what_cannot_be_read_is_reported(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;

	(void)state;
	folder("definitions");
	folder("definitions/a");
	put("definitions/a/x.json", "");
	put("definitions/a/bad\nname.json", "");
	assert_int_equal(symlink("loop", "definitions/loop"), 0);
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	assert_int_equal(dataset.definition_count, 1);
	assert_int_equal(dataset.problem_count, 2);
	assert_string_equal(dataset.problems[0],
	                    "definitions/a/bad\\x0aname.json: ignored, because the name has control or invisible characters; "
	                    "rename it");
	assert_string_equal(dataset.problems[1],
	                    "definitions/loop: cannot open the folder: Too many levels of symbolic links");
	dataset_close(&dataset);
	arena_free(&arena);
}

static void a_root_without_definitions_is_reported(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;
	struct err err = {""};

	(void)state;
	assert_int_equal(dataset_scan(".", &arena, &dataset, &err), 0);
	assert_int_equal(dataset.definition_count, 0);
	assert_int_equal(dataset.problem_count, 1);
	assert_string_equal(dataset.problems[0], "definitions: cannot open the folder: No such file or directory");
	dataset_close(&dataset);
	assert_int_equal(dataset_scan("none", &arena, &dataset, &err), -1);
	assert_string_equal(err.text, "none: cannot open the dataset's folder: No such file or directory");
	dataset_close(&dataset);
	arena_free(&arena);
}

static void a_pipe_is_listed_and_blocks_nobody(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;

	(void)state;
	folder("definitions");
	folder("definitions/a");
	assert_int_equal(mkfifo("definitions/a/x.json", 0666), 0);
	assert_int_equal(mkfifo("definitions/pipe", 0666), 0);
	assert_int_equal(symlink("pipe", "definitions/link"), 0);
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	check_paths(dataset.definitions, dataset.definition_count,
	            "definitions/a/x.json\n"); /* x.json is a pipe: it is listed here, and refused when it is read */
	assert_int_equal(dataset.problem_count, 0);
	dataset_close(&dataset);
	arena_free(&arena);
}

static void some_of_it_is_what_the_whole_has_there(void **state)
{
	(void)state;
	struct arena arena = {0};
	struct dataset all, some;
	const char *const paths[] = {
	    "definitions/a/.hidden.json", "definitions/a/deep/x.json", "definitions/a/gone.json", "definitions/a/one.json",
	    "definitions/b/folder.json",  "definitions/b/two.json",    "definitions/one.json",    "elsewhere/a/one.json",
	};

	folder("definitions");
	folder("definitions/a");
	folder("definitions/a/deep");
	folder("definitions/b");
	folder("definitions/b/folder.json");
	folder("workloads");
	folder("workloads/b");
	put("definitions/a/one.json", "1");
	put("definitions/a/other.json", "1");
	put("definitions/a/.hidden.json", "1");
	put("definitions/a/deep/x.json", "1");
	put("definitions/b/two.json", "22");
	put("workloads/b/two.jsonl", "333");
	folder("truths");
	folder("truths/b");
	put("truths/b/two.py", "4444");
	put("truths/b/two.txt", "");
	put("truths/b/none.py", "");
	folder("approved");
	folder("approved/b");
	put("approved/b/two.json", "{}");
	put("approved/b/gone.json", "{}");
	assert_int_equal(dataset_scan(".", &arena, &all, NULL), 0);
	check_paths(all.truths, all.truth_count, "truths/b/none.py\ntruths/b/two.py\n");
	assert_null(dataset_truth(&all, &all.definitions[0]));
	check_paths(all.approvals, all.approval_count, "approved/b/gone.json\napproved/b/two.json\n");
	assert_int_equal(dataset_some(".", paths, sizeof paths / sizeof *paths, &arena, &some, NULL), 0);
	assert_true(some.some && !all.some);
	check_paths(some.definitions, some.definition_count, "definitions/a/one.json\ndefinitions/b/two.json\n");
	check_paths(some.workloads, some.workload_count, "workloads/b/two.jsonl\n");
	check_paths(some.truths, some.truth_count, "truths/b/two.py\n");
	assert_null(dataset_truth(&some, &some.definitions[0]));
	assert_ptr_equal(dataset_truth(&some, &some.definitions[1]), &some.truths[0]);
	check_paths(some.approvals, some.approval_count, "approved/b/two.json\n");
	assert_null(dataset_approval(&some, &some.definitions[0]));
	assert_ptr_equal(dataset_approval(&some, &some.definitions[1]), &some.approvals[0]);
	assert_null(dataset_workload(&some, &some.definitions[0]));
	assert_ptr_equal(dataset_workload(&some, &some.definitions[1]), &some.workloads[0]);
	assert_string_equal(some.definitions[1].op_type, "b");
	assert_string_equal(some.definitions[1].name, "two");
	for (int i = 0; i < all.definition_count; i++)
		if (strcmp(all.definitions[i].path, "definitions/b/two.json") == 0)
			assert_memory_equal(&all.definitions[i].stat, &some.definitions[1].stat, sizeof some.definitions[1].stat);
	dataset_close(&all);
	dataset_close(&some);
	arena_free(&arena);
}

static void a_path_tells_whose_it_is(void **state)
{
	(void)state;
	char path[64];

	assert_true(dataset_definition_path("workloads/a/b.jsonl", path, sizeof path));
	assert_string_equal(path, "definitions/a/b.json");
	assert_true(dataset_definition_path("approved/a/b.json", path, sizeof path));
	assert_string_equal(path, "definitions/a/b.json");
	assert_false(dataset_definition_path("approved/a/b.py", path, sizeof path));
	assert_true(dataset_definition_path("definitions/a/b.json", path, sizeof path));
	assert_string_equal(path, "definitions/a/b.json");
	assert_false(dataset_definition_path("workloads/a/b.json", path, sizeof path));
	assert_false(dataset_definition_path("definitions/a/.json", path, sizeof path));
	assert_false(dataset_definition_path("definitions//b.json", path, sizeof path));
	assert_false(dataset_definition_path("definitions/a/c/b.json", path, sizeof path));
	assert_false(dataset_definition_path("definitions/a/\033.json", path, sizeof path));
	assert_false(dataset_definition_path("definitions/a/b.json", path, 12));
}

static void check_root(const char *given, const char *root, const char *sentence)
{
	char found[4096] = "";
	struct err err = {""};
	int answer = dataset_find_root(given, found, sizeof found, &err);

	assert_string_equal(err.text, sentence == NULL ? "" : sentence);
	assert_int_equal(answer, root == NULL ? -1 : 0);
	if (root != NULL)
		assert_string_equal(found, root);
}

static void the_root_is_the_first_that_is_named(void **state)
{
	char path[256];

	(void)state;
	folder("one");
	folder("one/definitions");
	folder("one/inner");
	folder("two");
	folder("two/definitions");
	folder("empty");
	assert_int_equal(setenv("FIB_DATASET_PATH", "two", 1), 0);
	check_root(NULL, "two", NULL);
	assert_int_equal(setenv("REFTEST_ROOT", "", 1), 0);
	check_root(NULL, "two", NULL); /* an empty variable counts as unset */
	assert_int_equal(setenv("REFTEST_ROOT", "one", 1), 0);
	check_root(NULL, "one", NULL);
	check_root("two", "two", NULL);
	check_root("empty", NULL,
	           "empty: this folder, named by --root, is not a dataset: it contains no folder definitions/");
	check_root("none", NULL, "none: there is no such folder; --root must name a dataset");
	assert_int_equal(setenv("REFTEST_ROOT", "none", 1), 0);
	check_root(NULL, NULL, "none: there is no such folder; $REFTEST_ROOT must name a dataset");
	unsetenv("REFTEST_ROOT");
	unsetenv("FIB_DATASET_PATH");
	check_root(NULL, NULL,
	           "no dataset found: neither the working directory nor a parent folder contains definitions/; "
	           "pass one with --root DIR or $REFTEST_ROOT");
	assert_int_equal(chdir("one"), 0);
	check_root(NULL, ".", NULL);
	assert_int_equal(chdir("inner"), 0);
	snprintf(path, sizeof path, "%s/one", (char *)*state);
	check_root(NULL, path, NULL);
}

static void long_roots_are_refused(void **state)
{
	char path[6000], small[4];
	struct err err;

	(void)state;
	memset(path, 'r', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	check_root(path, NULL, "the path in --root has 5999 bytes, more than the system allows");
	assert_int_equal(dataset_find_root("/usr", small, sizeof small, &err), -1);
	struct arena arena = {0};
	struct dataset dataset;

	assert_int_equal(dataset_scan(path, &arena, &dataset, &err), -1);
	assert_string_equal(err.text, "the path of the dataset has 5999 bytes, more than the system allows");
}

static void times_beyond_64_bits_wrap(void **state)
{
	struct stat st = {.st_mtim = {.tv_sec = INT64_MAX, .tv_nsec = 999999999},
	                  .st_ctim = {.tv_sec = -1, .tv_nsec = 1}};
	struct file_stat a = file_stat_of(&st);

	(void)state;
	st.st_mtim.tv_nsec--;
	assert_true(a.mtime_ns != file_stat_of(&st).mtime_ns);
	assert_true(a.ctime_ns == -999999999);
}

static void no_descriptor_is_left_open(void **state)
{
	struct arena arena = {0};
	struct dataset dataset;

	(void)state;
	folder("definitions");
	folder("definitions/a");
	put("definitions/a/x.json", "");
	assert_int_equal(symlink("loop", "definitions/loop"), 0);
	int before = open(".", O_RDONLY | O_CLOEXEC);

	close(before);
	assert_int_equal(dataset_scan(".", &arena, &dataset, NULL), 0);
	dataset_close(&dataset);
	int after = open(".", O_RDONLY | O_CLOEXEC);

	assert_int_equal(before, after);
	close(after);
	arena_free(&arena);
}

#define test(name) cmocka_unit_test_setup_teardown(name, enter, leave_folder)

static void what_is_listed_is_paired_as_the_walk_pairs(void **state)
{
	static const struct listed_file files[] = {
	    {"definitions/a/.hidden.json", {1, {1}}}, {"definitions/a/x.json", {1, {2}}},
	    {"definitions/a/x.json~", {1, {3}}},      {"definitions/a/y.json", {0, {0}}},
	    {"definitions/b/c/z.json", {1, {4}}},     {"definitions/z.json", {1, {5}}},
	    {"workloads/a/x.jsonl", {1, {6}}},	      {"workloads/b/y.jsonl", {1, {7}}}};
	struct arena arena = {0};
	struct dataset dataset;

	(void)state;
	assert_int_equal(dataset_listed(".", files, sizeof files / sizeof *files, &arena, &dataset, NULL), 0);
	check_paths(dataset.definitions, dataset.definition_count, "definitions/a/x.json\ndefinitions/a/y.json\n");
	assert_string_equal(dataset.definitions[0].op_type, "a");
	assert_string_equal(dataset.definitions[0].name, "x");
	assert_true(object_name_equal(dataset.definitions[0].object, &files[1].object));
	/* two absent object names count as different */
	assert_false(object_name_equal(dataset.definitions[1].object, &files[3].object));
	assert_string_equal(dataset_workload(&dataset, &dataset.definitions[0])->path, "workloads/a/x.jsonl");
	assert_null(dataset_workload(&dataset, &dataset.definitions[1]));
	dataset_close(&dataset);
	assert_int_equal(dataset_listed("none", files, 1, &arena, &dataset, NULL), -1);
	dataset_close(&dataset);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    test(files_are_found_in_the_order_of_their_paths),
	    test(any_names_are_found_in_the_order_of_their_paths),
	    test(every_definition_gets_its_workload),
	    test(leftovers_and_other_files_are_no_part_of_it),
	    test(links_are_followed),
	    test(some_of_it_is_what_the_whole_has_there),
	    test(a_path_tells_whose_it_is),
	    test(what_cannot_be_read_is_reported),
	    test(a_root_without_definitions_is_reported),
	    test(what_is_listed_is_paired_as_the_walk_pairs),
	    test(a_pipe_is_listed_and_blocks_nobody),
	    test(the_root_is_the_first_that_is_named),
	    test(long_roots_are_refused),
	    test(times_beyond_64_bits_wrap),
	    test(no_descriptor_is_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
