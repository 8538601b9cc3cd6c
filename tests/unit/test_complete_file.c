/* test_complete_file - the watcher considers a definition, workload or solution file complete if the file parses, or if
 * it cannot be read and waiting would not help. Also tests that git's lock file is found from any folder of a
 * repository. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "git/index_lock.h"
#include "watcher/complete_file.h"

static char root[] = "/tmp/test_ripe.XXXXXX";

static void shell(const char *command)
{
	char line[512];

	snprintf(line, sizeof line, "cd %s && { %s; }", root, command);
	assert_int_equal(system(line), 0);
}

static int make_root(void **state)
{
	(void)state;
	if (mkdtemp(root) == NULL)
		return -1;
	shell("mkdir -p definitions/x workloads/x solutions/x/d blob");
	return 0;
}

static int remove_root(void **state)
{
	char line[128];

	(void)state;
	snprintf(line, sizeof line, "chmod -R u+rwX %s; rm -rf %s", root, root);
	return system(line);
}

static void a_definition_is_complete_when_it_parses(void **state)
{
	(void)state;
	assert_false(is_complete_file(root, "definitions/x/d.json"));
	shell(": >definitions/x/d.json");
	assert_false(is_complete_file(root, "definitions/x/d.json"));
	shell("printf '{\"name\": ' >definitions/x/d.json");
	assert_false(is_complete_file(root, "definitions/x/d.json"));
	shell("printf '{\"name\": 1}' >definitions/x/d.json");
	assert_true(is_complete_file(root, "definitions/x/d.json"));
	shell("printf '{\"name\": 1}}' >definitions/x/d.json");
	assert_false(is_complete_file(root, "definitions/x/d.json"));
}

static void a_workload_file_is_complete_when_each_line_parses(void **state)
{
	(void)state;
	shell("printf '{\"a\": 1}\n\n{\"b\": 2}\n' >workloads/x/w.jsonl");
	assert_true(is_complete_file(root, "workloads/x/w.jsonl"));
	shell("printf '{\"a\": 1}\n{\"b\": ' >workloads/x/w.jsonl");
	assert_false(is_complete_file(root, "workloads/x/w.jsonl"));
	shell(": >workloads/x/w.jsonl");
	assert_false(is_complete_file(root, "workloads/x/w.jsonl"));
}

static void a_solution_is_complete_when_it_parses(void **state)
{
	(void)state;
	shell("printf '{\"name\": ' >solutions/x/d/s.json");
	assert_false(is_complete_file(root, "solutions/x/d/s.json"));
	shell("printf '{\"name\":\n1}' >solutions/x/d/s.json");
	assert_true(is_complete_file(root, "solutions/x/d/s.json"));
}

static void what_can_never_be_read_is_not_waited_for(void **state)
{
	(void)state;
	shell("mkfifo definitions/x/pipe.json; echo x >blob/b");
	assert_true(is_complete_file(root, "definitions/x/pipe.json"));
	assert_true(is_complete_file(root, "definitions/x/"));
	assert_true(is_complete_file(root, "blob/b"));
	assert_false(is_complete_file(root, "blob/none"));
}

static void a_lock_of_git_is_found_from_below_and_through_a_worktree(void **state)
{
	struct git_lock lock;
	char below[64];

	(void)state;
	git_lock_find(root, &lock);
	assert_false(git_lock_held(&lock));
	shell("mkdir .git");
	snprintf(below, sizeof below, "%s/definitions", root);
	git_lock_find(below, &lock);
	assert_false(git_lock_held(&lock));
	shell(": >.git/index.lock");
	assert_true(git_lock_held(&lock));
	shell("mv .git elsewhere; echo 'gitdir: elsewhere' >.git");
	git_lock_find(below, &lock);
	assert_true(git_lock_held(&lock));
	shell("rm elsewhere/index.lock");
	assert_false(git_lock_held(&lock));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_definition_is_complete_when_it_parses),
	    cmocka_unit_test(a_workload_file_is_complete_when_each_line_parses),
	    cmocka_unit_test(a_solution_is_complete_when_it_parses),
	    cmocka_unit_test(what_can_never_be_read_is_not_waited_for),
	    cmocka_unit_test(a_lock_of_git_is_found_from_below_and_through_a_worktree),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
