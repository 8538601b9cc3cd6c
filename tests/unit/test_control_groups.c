/* test_control_groups - the folder of this process's control group, and the cases in which reftest cannot use this
 * group. tests/e2e/containment/a-control-group-limits-a-reference-as-a-whole.sh tests the limits of the groups. */
#include "workers/pool/control_groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROC "22 1 0:20 / /proc rw - proc proc rw\n"
#define MOUNT(root, place) PROC "30 23 0:26 " root " " place " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define USUAL MOUNT("/", "/sys/fs/cgroup")

static void the_folder_of_the_group_is_found(void **state)
{
	static const struct {
		const char *cgroup, *mountinfo, *folder; /* the content of two files in /proc, and the expected folder;
							  * NULL: no folder is found */
	} cases[] = {
	    {"0::/\n", USUAL, "/sys/fs/cgroup/"},
	    {"0::/user.slice/a.scope\n", USUAL, "/sys/fs/cgroup/user.slice/a.scope"},
	    {"4:memory:/x\n0::/y\n", MOUNT("/", "/sys/fs/cgroup/unified"), "/sys/fs/cgroup/unified/y"},
	    {"0::/docker/1/a\n", MOUNT("/docker/1", "/sys/fs/cgroup"), "/sys/fs/cgroup/a"},
	    {"0::/docker/1\n", MOUNT("/docker/1", "/sys/fs/cgroup"), "/sys/fs/cgroup"},
	    {"0::/docker/12\n", MOUNT("/docker/1", "/sys/fs/cgroup"), NULL},
	    {"0::/../outside\n", USUAL, NULL}, /* a path outside this cgroup namespace */
	    {"0::/a\n", PROC, NULL},
	    {"0::/a\n", PROC "30 23 0:26 / /sys/fs/cgroup rw - tmpfs cgroup2 rw\n", NULL},
	    {"0::/a\n", MOUNT("/", "/odd\\040place"), NULL},
	    {"0::/a\n", "cut - cgroup2 x", NULL},
	    {"4:memory:/x\n", USUAL, NULL},
	    {"0::", USUAL, NULL},
	    {"", USUAL, NULL},
	};
	char folder[256];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		bool found = control_groups_folder(cases[i].cgroup, cases[i].mountinfo, folder, sizeof folder);

		assert_int_equal(found, cases[i].folder != NULL);
		if (found)
			assert_string_equal(folder, cases[i].folder);
	}
	assert_false(control_groups_folder("0::/user.slice\n", USUAL, folder, 16));
}

static void without_a_group_nothing_is_done(void **state)
{
	struct control_groups groups = {.parent = -1, .own = -1};
	int fd = 7;

	(void)state;
	assert_false(control_groups_used(&groups));
	assert_int_equal(control_group_add(&groups, &fd), 0);
	assert_int_equal(fd, -1);
	assert_false(control_group_ran_out_of_memory(&groups, 1));
	control_group_remove(&groups, 1);
	control_groups_close(&groups);
}

static void put(int folder, const char *file, const char *text)
{
	int fd = openat(folder, file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* In this test, ordinary files stand in for the kernel's files of a control group. */
static void the_memory_of_an_empty_group_is_not_limited(void **state)
{
	char path[] = "/tmp/reftest-groups-XXXXXX", limit[32] = "";
	struct control_groups groups = {.parent = -1};
	int fd;

	(void)state;
	assert_non_null(mkdtemp(path));
	groups.own = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(groups.own, "3", 0700), 0);
	put(groups.own, "3/memory.current", "1000\n");
	put(groups.own, "3/memory.max", "");
	put(groups.own, "3/cgroup.procs", "");
	assert_int_equal(control_group_limit_memory(&groups, 3, 234), -1);
	put(groups.own, "3/cgroup.procs", "17\n");
	assert_int_equal(control_group_limit_memory(&groups, 3, 234), 0);
	fd = openat(groups.own, "3/memory.max", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, limit, sizeof limit - 1), 4);
	assert_string_equal(limit, "1234");
	close(fd);
	for (const char *const *file = (const char *const[]){"3/memory.current", "3/memory.max", "3/cgroup.procs", NULL}; *file; file++)
		assert_int_equal(unlinkat(groups.own, *file, 0), 0);
	assert_int_equal(unlinkat(groups.own, "3", AT_REMOVEDIR), 0);
	close(groups.own);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_folder_of_the_group_is_found),
	    cmocka_unit_test(without_a_group_nothing_is_done),
	    cmocka_unit_test(the_memory_of_an_empty_group_is_not_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
