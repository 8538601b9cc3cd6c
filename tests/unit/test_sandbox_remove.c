/* test_sandbox_remove - a folder with temporary files is removed, whatever a reference did to the folder. */
#include "workers/sandbox/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 3000 }; /* this many nested folders have a path that is longer than Linux allows */

static char place[] = "/tmp/reftest-remove-XXXXXX";

static int make_place(void **state)
{
	(void)state;
	return mkdtemp(place) != NULL && chdir(place) == 0 && mkdir("hostile", 0700) == 0 ? 0 : -1;
}

static int remove_place(void **state)
{
	(void)state;
	return chdir("/") == 0 ? rmdir(place) : -1;
}

static void write_file(int parent, const char *name)
{
	int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
}

static void assert_removed(void)
{
	sandbox_remove_folder("hostile");
	assert_int_equal(access("hostile", F_OK), -1);
	assert_int_equal(mkdir("hostile", 0700), 0);
}

static void folders_are_removed_however_deep_they_are(void **state)
{
	int fd = open("hostile", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fd, "folder", 0700), 0);
		write_file(fd, "file");

		int next = openat(fd, "folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		fd = next;
	}
	close(fd);
	assert_removed();
}

static void folders_are_removed_whatever_their_mode_is(void **state)
{
	(void)state;
	assert_int_equal(mkdir("hostile/outer", 0700), 0);
	assert_int_equal(mkdir("hostile/outer/inner", 0700), 0);
	write_file(AT_FDCWD, "hostile/outer/inner/file");
	assert_int_equal(chmod("hostile/outer/inner", 0), 0);
	assert_int_equal(chmod("hostile/outer", 0500), 0);
	assert_int_equal(chmod("hostile", 0), 0);
	assert_removed();
}

static void names_that_the_removal_uses_are_removed(void **state)
{
	(void)state;
	write_file(AT_FDCWD, "hostile/removed-0");
	assert_int_equal(mkdir("hostile/removed-1", 0700), 0);
	assert_int_equal(mkdir("hostile/removed-1/removed-0", 0700), 0);
	assert_int_equal(mkdir("hostile/removed-1/removed-0/\n\xff", 0700), 0);
	assert_removed();
}

static void no_link_is_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdir("kept", 0750), 0);
	write_file(AT_FDCWD, "kept/file");
	assert_int_equal(symlink("../kept", "hostile/link"), 0);
	assert_int_equal(mkdir("hostile/folder", 0700), 0);
	assert_int_equal(symlink("../../kept", "hostile/folder/link"), 0);
	assert_removed();

	struct stat st;

	assert_int_equal(stat("kept", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0750);
	assert_int_equal(unlink("kept/file"), 0);
	assert_int_equal(symlink("kept", "link"), 0);
	sandbox_remove_folder("link");
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(rmdir("kept"), 0);
}

static void what_is_not_there_needs_no_removal(void **state)
{
	(void)state;
	sandbox_remove_folder("missing");
	sandbox_remove_folder("hostile");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(folders_are_removed_however_deep_they_are),
	    cmocka_unit_test(folders_are_removed_whatever_their_mode_is),
	    cmocka_unit_test(names_that_the_removal_uses_are_removed),
	    cmocka_unit_test(no_link_is_followed),
	    cmocka_unit_test(what_is_not_there_needs_no_removal),
	};

	return cmocka_run_group_tests(tests, make_place, remove_place);
}
