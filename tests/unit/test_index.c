/* test_index - reftest reads from git's index file the same list of files that git prints, in each format that git
 * writes. Damaged index files do no harm. */
#include "git/index.h"

#include <fcntl.h>

#include "base/file.h"
#include "git/objects.h"
#include "tests/unit/folder.h"

static void shell(const char *command)
{
	if (system(command) != 0)
		fail_msg("this failed: %s", command);
}

/* Unsets the environment variables that name a git repository. */
static int enter(void **state)
{
	unsetenv("GIT_DIR");
	unsetenv("GIT_INDEX_FILE");
	unsetenv("GIT_WORK_TREE");
	return enter_folder(state);
}

/* Creates a repository with a link, with names that sort before and after a '/', and with names of many lengths, so
 * that every padding of an index entry occurs. */
static void fill(const char *how)
{
	char command[256];

	snprintf(command, sizeof command, "git init -q %s .", how);
	shell(command);
	shell("mkdir -p a a-b deep/er/still; for i in 1 22 333 4444 55555 666666 7777777 88888888 999999999; do echo "
	      "$i >a/$i; "
	      "echo b$i >a-b/$i.json; echo $i >deep/er/still/$i; done; echo x >a.b; ln -s a/1 link; chmod +x a/22");
	shell("n=$(printf %4000s x | tr ' ' y); d=$(printf '%s' \"$n\" | cut -c 1-200); mkdir $d && echo long >$d/$d");
	shell("git add -A");
}

static void read_both(struct buf *bytes, struct buf *listing, struct arena *arena, struct index *out,
		      struct index *expected, enum index_answer answer)
{
	static const char *const words[] = {"ls-files", "-t", "--stage", "-z", NULL};
	struct repository repository;
	struct err err = {""};

	assert_int_equal(repository_find(".", &repository, &err), 0);
	assert_int_equal(git_output(&repository, words, 1 << 20, listing, &err), 0);
	assert_int_equal(
	    index_parse_listing(listing->data, listing->length, repository.object_bytes, arena, expected, &err), 0);
	assert_int_equal(file_read(AT_FDCWD, repository.index, 1 << 20, bytes, NULL, &err), FILE_OK);
	assert_int_equal(index_parse(bytes->data, bytes->length, repository.object_bytes, arena, out, &err), answer);
}

static void assert_same(const struct index *a, const struct index *b)
{
	assert_int_equal(a->count, b->count);
	for (int i = 0; i < a->count; i++) {
		assert_string_equal(a->entries[i].path, b->entries[i].path);
		assert_int_equal(a->entries[i].kind, b->entries[i].kind);
		assert_int_equal(a->entries[i].conflict, b->entries[i].conflict);
		assert_int_equal(a->entries[i].skipped, b->entries[i].skipped);
		assert_memory_equal(a->entries[i].object, b->entries[i].object, OBJECT_BYTES);
	}
}

static int skipped_in(const struct index *index)
{
	int skipped = 0;

	for (int i = 0; i < index->count; i++)
		skipped += index->entries[i].skipped;
	return skipped;
}

static void expect_as_listed(int at_least, int skipped)
{
	struct buf bytes = {0}, listing = {0};
	struct arena arena = {0};
	struct index index, expected;

	read_both(&bytes, &listing, &arena, &index, &expected, INDEX_OK);
	assert_true(index.count >= at_least);
	assert_int_equal(skipped_in(&index), skipped);
	assert_same(&index, &expected);
	for (int i = 0; i < index.count; i++)
		assert_ptr_equal(index_find(&index, index.entries[i].path), &index.entries[i]);
	assert_null(index_find(&index, "a/none"));
	buf_free(&bytes);
	buf_free(&listing);
	arena_free(&arena);
}

static void version_of(char expected)
{
	struct buf bytes = {0};

	assert_int_equal(file_read(AT_FDCWD, ".git/index", 1 << 20, &bytes, NULL, NULL), FILE_OK);
	assert_int_equal(bytes.data[7], expected);
	buf_free(&bytes);
}

static void versions_2_to_4_are_read_as_git_lists_them(void **state)
{
	(void)state;
	fill("");
	version_of(2);
	expect_as_listed(30, 0);
	shell("git update-index --skip-worktree a/1"); /* the flag skip-worktree needs index version 3 */
	version_of(3);
	expect_as_listed(30, 1);
	shell("git update-index --index-version 4");
	version_of(4);
	expect_as_listed(30, 1);
}

static void an_index_with_sha256_is_read(void **state)
{
	(void)state;
	fill("--object-format=sha256");
	expect_as_listed(30, 0);
	shell("git update-index --index-version 4");
	expect_as_listed(30, 0);
}

static void what_is_only_announced_is_left_out(void **state)
{
	struct buf bytes = {0}, listing = {0};
	struct arena arena = {0};
	struct index index, expected;

	(void)state;
	fill("");
	shell("echo soon >a/announced; : >a/empty; git add -N a/announced; git add a/empty");
	read_both(&bytes, &listing, &arena, &index, &expected, INDEX_OK);
	assert_int_equal(index.count, expected.count - 1);
	assert_null(index_find(&index, "a/announced"));
	assert_non_null(index_find(&index, "a/empty"));
	buf_free(&bytes);
	buf_free(&listing);
	arena_free(&arena);
}

static void the_versions_of_a_conflict_are_one_entry(void **state)
{
	(void)state;
	fill("-b main");
	shell("git config user.name t; git config user.email t@localhost; git commit -qm 1; git checkout -qb other; "
	      "echo o >a/1; "
	      "git commit -qam o; git checkout -q main; echo m >a/1; git commit -qam m; git merge -q other >/dev/null "
	      "|| true");
	expect_as_listed(30, 0);
	struct buf bytes = {0}, listing = {0};
	struct arena arena = {0};
	struct index index, expected;

	read_both(&bytes, &listing, &arena, &index, &expected, INDEX_OK);
	assert_true(index_find(&index, "a/1")->conflict);
	assert_false(index_find(&index, "a/22")->conflict);
	buf_free(&bytes);
	buf_free(&listing);
	arena_free(&arena);
}

/* In some formats, the index file alone does not have all paths. git_index must still return the list that git
 * prints. */
static void expect_left_to_git(const char *announced, bool sparse)
{
	struct buf bytes = {0}, listing = {0}, again = {0};
	struct arena arena = {0};
	struct index index, expected;
	struct repository repository;
	struct err err = {""};

	read_both(&bytes, &listing, &arena, &index, &expected, INDEX_OTHER);
	assert_int_equal(repository_find(".", &repository, &err), 0);
	assert_int_equal(git_index(&repository, &again, &arena, &index, &err), 0);
	assert_null(index_find(&index, announced));
	assert_int_equal(index.count, expected.count - 1);
	assert_false(index_find(&index, "a/1")->skipped);
	assert_int_equal(index_find(&index, "deep/er/still/1")->skipped, sparse);
	buf_free(&bytes);
	buf_free(&listing);
	buf_free(&again);
	arena_free(&arena);
}

static void a_split_index_is_left_to_git(void **state)
{
	(void)state;
	fill("");
	shell("git update-index --split-index; echo x >a/new; git add a/new; echo y >announced; git add -N announced");
	expect_left_to_git("announced", false);
}

static void a_sparse_index_is_left_to_git(void **state)
{
	(void)state;
	fill("-b main");
	shell("git config user.name t; git config user.email t@localhost; git commit -qm 1; git sparse-checkout init "
	      "--cone "
	      "--sparse-index; git sparse-checkout set a; echo y >announced; git add -N announced");
	expect_left_to_git("announced", true);
}

/* git_index returns an answer for any bytes, and reads no byte beyond the end. Each index is copied to an allocation of
 * exactly its size, so that a sanitizer detects a read beyond the end. */
static void garbled_indexes_get_an_answer(void **state)
{
	struct buf bytes = {0};
	int bad = 0;

	(void)state;
	fill("");
	for (int version = 2; version <= 4; version += 2) {
		if (version == 4)
			shell("git update-index --index-version 4");
		assert_int_equal(file_read(AT_FDCWD, ".git/index", 1 << 20, &bytes, NULL, NULL), FILE_OK);
		for (size_t i = 0; i < 2 * bytes.length; i++) {
			size_t length = i < bytes.length ? i : bytes.length;
			char *copy = malloc(length > 0 ? length : 1);
			struct arena arena = {0};
			struct index index;

			assert_non_null(copy);
			memcpy(copy, bytes.data, length);
			if (i >= bytes.length)
				copy[i - bytes.length] = (char)(copy[i - bytes.length] ^ (1 << (i % 8)));
			bad += index_parse(copy, length, 20, &arena, &index, NULL) == INDEX_BAD;
			arena_free(&arena);
			free(copy);
		}
	}
	assert_true(bad > 1000);
	buf_free(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(versions_2_to_4_are_read_as_git_lists_them, enter, leave_folder),
	    cmocka_unit_test_setup_teardown(an_index_with_sha256_is_read, enter, leave_folder),
	    cmocka_unit_test_setup_teardown(what_is_only_announced_is_left_out, enter, leave_folder),
	    cmocka_unit_test_setup_teardown(the_versions_of_a_conflict_are_one_entry, enter, leave_folder),
	    cmocka_unit_test_setup_teardown(a_split_index_is_left_to_git, enter, leave_folder),
	    cmocka_unit_test_setup_teardown(a_sparse_index_is_left_to_git, enter, leave_folder),
	    cmocka_unit_test_setup_teardown(garbled_indexes_get_an_answer, enter, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
