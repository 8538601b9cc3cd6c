/* test_watcher - the watcher on a real folder: which changes it reports and when. The test never waits, because inotify
 * queues the event before the call of write returns, and because the test sets the clock itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include <cmocka.h>

#include "base/buf.h"
#include "watcher/fs/limits.h"
#include "watcher/fs/watcher.h"

static const struct watched_tree trees[] = {
    {"definitions", 1, 1, ".json"},
    {"blob", 8, 0, NULL},
};

/* The type that statfs reports for every file system; 0: the real type. The test needs a fake type because it has no
 * NFS server. */
static long fake_type;

int statfs(const char *path, struct statfs *out)
{
	long rc = syscall(SYS_statfs, path, out);

	if (rc == 0 && fake_type != 0)
		out->f_type = fake_type;
	return (int)rc;
}

struct scene {
	char root[80], top[64];
	struct watcher *watcher;
	int64_t now;
	const char *incomplete; /* the name of a file that counts as incomplete */
	char out[8192];
};

static bool complete(const char *path, void *context)
{
	const struct scene *scene = context;

	return scene->incomplete == NULL || strcmp(path, scene->incomplete) != 0;
}

static void shell(const struct scene *scene, const char *command)
{
	char line[1024];

	snprintf(line, sizeof line, "cd %s && { %s; }", scene->top, command);
	assert_int_equal(system(line), 0);
}

static void begin(struct scene *scene, int limit, bool poll)
{
	struct err err = {""};

	*scene = (struct scene){.top = "/tmp/test_watcher.XXXXXX"};
	assert_non_null(mkdtemp(scene->top));
	snprintf(scene->root, sizeof scene->root, "%s/root", scene->top);
	shell(scene, "mkdir -p root/definitions/norm root/definitions/gemm root/blob; echo 1 >root/definitions/norm/old.json");
	scene->watcher = watcher_open(&(struct watcher_options){.root = scene->root,
								.trees = trees,
								.tree_count = 2,
								.complete = complete,
								.context = scene,
								.watch_limit = limit,
								.poll = poll},
				      &err);
	assert_non_null(scene->watcher);
}

static void end(struct scene *scene)
{
	char line[128];

	watcher_close(scene->watcher);
	snprintf(line, sizeof line, "rm -rf %s", scene->top);
	assert_int_equal(system(line), 0);
}

/* Returns the changes that the watcher reports `after_ms` milliseconds later, separated by blanks. "*" means that any
 * file may have changed. */
static const char *changes_after(struct scene *scene, int64_t after_ms)
{
	struct arena arena = {0};
	struct changes changes;
	size_t length = 0;

	scene->now += after_ms;
	watcher_turn(scene->watcher, scene->now);
	scene->out[0] = '\0';
	if (watcher_changes(scene->watcher, scene->now, &arena, &changes)) {
		length += (size_t)snprintf(scene->out, sizeof scene->out, "%s", changes.everything ? "*" : "");
		for (int i = 0; i < changes.count && length < sizeof scene->out - 256; i++)
			length += (size_t)snprintf(scene->out + length, sizeof scene->out - length, "%s%s", length > 0 ? " " : "",
			                           changes.paths[i]);
	}
	arena_free(&arena);
	return scene->out;
}

static void a_save_is_reported_at_once_and_only_once(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	assert_string_equal(changes_after(&s, 0), "");
	shell(&s, "echo 2 >root/definitions/norm/old.json; echo 1 >root/definitions/gemm/new.json");
	assert_string_equal(changes_after(&s, 0), "definitions/gemm/new.json definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 500), "");
	end(&s);
}

/* The types of file systems come from the kernel's headers. CIFS_SUPER_MAGIC must also be recognised on a machine where
 * f_type has 32 bits and the number is therefore negative. */
static void what_inotify_cannot_see_is_polled(void **state)
{
	static const struct {
		long magic;
		bool polled;
	} rows[] = {
	    {NFS_SUPER_MAGIC, true},   {V9FS_MAGIC, true},      {FUSE_SUPER_MAGIC, true},   {SMB_SUPER_MAGIC, true},
	    {CIFS_SUPER_MAGIC, true},  {SMB2_SUPER_MAGIC, true}, {(int)CIFS_SUPER_MAGIC, true}, {CEPH_SUPER_MAGIC, true},
	    {AFS_SUPER_MAGIC, true},   {AFS_FS_MAGIC, true},    {CODA_SUPER_MAGIC, true},   {OCFS2_SUPER_MAGIC, true},
	    {EXT4_SUPER_MAGIC, false}, {TMPFS_MAGIC, false},    {BTRFS_SUPER_MAGIC, false}, {XFS_SUPER_MAGIC, false},
	    {OVERLAYFS_SUPER_MAGIC, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct scene s;

		fake_type = rows[i].magic;
		begin(&s, 0, false);
		struct watcher_counts counts = watcher_counts(s.watcher);
		const char *sentence = watcher_notice(s.watcher);

		if ((counts.polled > 0) != rows[i].polled || (counts.watched > 0) == rows[i].polled)
			fail_msg("%#lx: %d polled, %d watched", (unsigned long)rows[i].magic, counts.polled, counts.watched);
		if (rows[i].polled && (sentence == NULL || strstr(sentence, "inotify does not report") == NULL))
			fail_msg("%#lx: no message", (unsigned long)rows[i].magic);
		assert_null(watcher_notice(s.watcher)); /* the message is returned only once */
		end(&s);
	}
	fake_type = 0;
}

static void other_names_and_other_places_are_nobodys_business(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "cd root; echo 1 >definitions/norm/x.json~; echo 1 >definitions/norm/.x.json.swp; mkdir other;"
	          " echo 1 >other/x.json; echo 1 >definitions/top.json; mkdir definitions/norm/deep;"
	          " echo 1 >definitions/norm/deep/x.json; echo 1 >x.json");
	assert_string_equal(changes_after(&s, 500), "");
	end(&s);
}

static void renames_in_out_and_over_are_reported_at_both_ends(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "cd root/definitions; mv norm/old.json gemm/moved.json");
	assert_string_equal(changes_after(&s, 0), "definitions/gemm/moved.json");
	assert_string_equal(changes_after(&s, 100), "definitions/norm/old.json");
	shell(&s, "cd root/definitions; echo 3 >norm/tmp; mv norm/tmp norm/old.json; mv gemm/moved.json ../../away.json");
	assert_string_equal(changes_after(&s, 0), "definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 100), "definitions/gemm/moved.json");
	end(&s);
}

static void a_file_that_does_not_parse_yet_waits_for_its_writer(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	s.incomplete = "definitions/norm/old.json";
	shell(&s, ": >root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 0), "");
	s.incomplete = NULL;
	shell(&s, "echo whole >root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 20), "definitions/norm/old.json");
	end(&s);
}

static void a_file_still_held_open_is_reported_when_closed_or_quiet(void **state)
{
	(void)state;
	struct scene s;
	char path[128];

	begin(&s, 0, false);
	snprintf(path, sizeof path, "%s/definitions/norm/old.json", s.root);
	FILE *file = fopen(path, "w");

	fputs("{}", file);
	fflush(file);
	assert_string_equal(changes_after(&s, 0), "");
	assert_string_equal(changes_after(&s, 100), "definitions/norm/old.json");
	fputs("{}", file);
	fflush(file);
	assert_string_equal(changes_after(&s, 0), "");
	fclose(file);
	assert_string_equal(changes_after(&s, 0), "definitions/norm/old.json");
	end(&s);
}

static void a_new_folder_is_reported_file_by_file_and_watched(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "mkdir made; echo 1 >made/a.json; echo 1 >made/b.json; mv made root/definitions/rope");
	assert_string_equal(changes_after(&s, 0), "definitions/rope/a.json definitions/rope/b.json");
	shell(&s, "echo 2 >root/definitions/rope/a.json");
	assert_string_equal(changes_after(&s, 0), "definitions/rope/a.json");
	shell(&s, "mv root/definitions/rope root/definitions/rope2");
	assert_string_equal(changes_after(&s, 0), "definitions/rope2/a.json definitions/rope2/b.json");
	assert_string_equal(changes_after(&s, 100), "definitions/rope/");
	shell(&s, "echo 3 >root/definitions/rope2/b.json; rm -r root/definitions/rope2");
	assert_string_equal(changes_after(&s, 0), "");
	assert_string_equal(changes_after(&s, 100), "definitions/rope2/ definitions/rope2/a.json definitions/rope2/b.json");
	end(&s);
}

static void a_folder_filled_faster_than_it_is_watched_misses_nothing(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "cd root/blob; mkdir -p a/b/c; echo 1 >a/b/c/x; echo 1 >a/y; mkdir a/b/d; mv a/b/c a/b/d/c;"
	          " echo 2 >a/b/d/c/z");
	assert_string_equal(changes_after(&s, 0), "blob/a/b/d/c/x blob/a/b/d/c/z blob/a/y");
	end(&s);
}

static void a_linked_folder_is_watched_where_it_leads(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "mkdir one two; echo 1 >one/a.json; echo 1 >two/b.json; ln -s ../../one root/definitions/link");
	assert_string_equal(changes_after(&s, 0), "definitions/link/a.json");
	shell(&s, "echo 2 >one/a.json");
	assert_string_equal(changes_after(&s, 0), "definitions/link/a.json");
	shell(&s, "ln -sfn ../../two root/definitions/link");
	assert_string_equal(changes_after(&s, 0), "definitions/link/b.json");
	assert_string_equal(changes_after(&s, 100), "definitions/link/");
	shell(&s, "echo 2 >two/b.json; echo 2 >one/a.json");
	assert_string_equal(changes_after(&s, 0), "definitions/link/b.json");
	shell(&s, "rm -r two");
	assert_string_equal(changes_after(&s, 0), "");
	assert_string_equal(changes_after(&s, 100), "definitions/link/ definitions/link/b.json");
	/* writes the file in the folder to which the link points; this causes no event in a watched folder */
	shell(&s, "mkdir two; echo 3 >two/c.json");
	assert_string_equal(changes_after(&s, 1000), "definitions/link/c.json");
	end(&s);
}

static void two_links_to_one_folder_tell_of_both(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "mkdir one; ln -s ../../one root/definitions/l1; ln -s ../../one root/definitions/l2");
	changes_after(&s, 200);
	shell(&s, "echo 1 >one/a.json");
	assert_string_equal(changes_after(&s, 0), "definitions/l1/a.json definitions/l2/a.json");
	shell(&s, "rm root/definitions/l1");
	assert_string_equal(changes_after(&s, 0), "");
	assert_string_equal(changes_after(&s, 100), "definitions/l1/");
	shell(&s, "echo 2 >one/a.json");
	assert_string_equal(changes_after(&s, 0), "definitions/l2/a.json");
	end(&s);
}

static void a_loop_of_links_ends(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "ln -s .. root/blob/up; ln -s . root/blob/here; ln -s ../blob root/blob/again; echo 1 >root/blob/x");
	assert_non_null(strstr(changes_after(&s, 200), "blob/x"));
	assert_true(watcher_counts(s.watcher).watched < 32);
	end(&s);
}

static void a_linked_file_is_looked_at_where_it_leads(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "echo 1 >target.json; ln -s ../../../target.json root/definitions/norm/l.json");
	assert_string_equal(changes_after(&s, 0), "definitions/norm/l.json");
	shell(&s, "echo changed >target.json");
	assert_string_equal(changes_after(&s, 1000), "definitions/norm/l.json");
	assert_string_equal(changes_after(&s, 1000), "");
	end(&s);
}

static void permissions_are_reported(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	shell(&s, "chmod 600 root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 0), "definitions/norm/old.json");
	end(&s);
}

static void the_limit_of_watches_is_reported_with_its_remedy_and_the_rest_polled(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 2, false); /* a limit of two watches is enough for the root and one folder */
	const char *notice = watcher_notice(s.watcher);

	assert_non_null(notice);
	assert_non_null(strstr(notice, "fs.inotify.max_user_watches"));
	assert_non_null(strstr(notice, "sudo sysctl fs.inotify.max_user_watches="));
	assert_null(watcher_notice(s.watcher));
	shell(&s, "echo 2 >root/definitions/norm/old.json; echo 1 >root/blob/x; echo 1 >root/definitions/gemm/g.json");
	assert_string_equal(changes_after(&s, 500), "blob/x definitions/gemm/g.json definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 500), "");
	end(&s);
}

/* Enters a new user namespace, and sets its limit of inotify watches. The kernel counts the watches of each namespace
 * separately. Returns false if this is not permitted. */
static bool enter_namespace(int watches)
{
	char map[64];
	int uid = (int)getuid();
	FILE *file;

	if (unshare(CLONE_NEWUSER) != 0)
		return false;
	snprintf(map, sizeof map, "0 %d 1\n", uid);
	file = fopen("/proc/self/uid_map", "w");
	if (file == NULL || fputs(map, file) < 0 || fclose(file) != 0)
		return false;
	file = fopen("/proc/sys/user/max_inotify_watches", "w");
	return file != NULL && fprintf(file, "%d\n", watches) > 0 && fclose(file) == 0;
}

static void the_limit_of_a_user_namespace_is_reported_by_its_own_name(void **state)
{
	enum { CANNOT = 77 };
	int status;

	(void)state;
	pid_t child = fork();

	if (child == 0) {
		struct scene s;

		if (!enter_namespace(2)) /* two watches are enough for the root and one folder */
			_exit(CANNOT);
		begin(&s, 0, false);
		const char *notice = watcher_notice(s.watcher);
		bool told_so = notice != NULL && strstr(notice, "user.max_inotify_watches is 2)") != NULL &&
		            strstr(notice, "sudo sysctl user.max_inotify_watches=") != NULL;

		shell(&s, "echo 2 >root/definitions/norm/old.json");
		told_so = told_so && strcmp(changes_after(&s, 500), "definitions/norm/old.json") == 0;
		end(&s);
		_exit(told_so ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == CANNOT)
		skip(); /* this machine does not permit user namespaces */
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Reads the limit of inotify watches from a fake /proc. `fs` and `user` are the values of fs.inotify.max_user_watches
 * and user.max_inotify_watches, and `map` is the content of uid_map. */
static struct limit limit_with(const char *fs, const char *user, const char *map)
{
	char proc[] = "/tmp/reftest-proc-XXXXXX", line[512];

	assert_non_null(mkdtemp(proc));
	snprintf(line, sizeof line,
	         "cd %s && mkdir -p sys/fs/inotify sys/user self && echo %s >sys/fs/inotify/max_user_watches && "
	         "echo %s >sys/user/max_inotify_watches && echo %s >self/uid_map", proc, fs, user, map);
	assert_int_equal(system(line), 0);
	struct limit limit = limit_of("watches", proc);

	snprintf(line, sizeof line, "rm -r %s", proc);
	assert_int_equal(system(line), 0);
	return limit;
}

static void the_smallest_limit_is_the_one_that_counts(void **state)
{
	static const char all[] = "0 0 4294967295", some[] = "0 1000 1";
	struct limit limit = limit_with("8192", "8192", all);

	(void)state;
	assert_string_equal(limit.name, "fs.inotify.max_user_watches");
	assert_int_equal(limit.value, 8192);
	assert_false(limit.outside);
	limit = limit_with("8192", "2147483647", some);
	assert_string_equal(limit.name, "fs.inotify.max_user_watches");
	assert_int_equal(limit.value, 8192);
	assert_true(limit.outside);
	limit = limit_with("8192", "100", some);
	assert_string_equal(limit.name, "user.max_inotify_watches");
	assert_int_equal(limit.value, 100);
	assert_false(limit.outside);
}

static void polling_finds_what_inotify_would_have_reported(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, true);
	assert_string_equal(changes_after(&s, 500), "");
	shell(&s, "cd root/definitions; printf 2 >norm/old.json; echo 1 >norm/new.json; mkdir rope; echo 1 >rope/r.json");
	assert_string_equal(changes_after(&s, 500), "definitions/norm/new.json definitions/norm/old.json definitions/rope/r.json");
	assert_string_equal(changes_after(&s, 500), "");
	shell(&s, "cd root/definitions; rm norm/new.json; rm -r rope");
	changes_after(&s, 500);
	assert_string_equal(changes_after(&s, 100), "definitions/norm/new.json definitions/rope/");
	end(&s);
}

static void polling_sees_through_a_stat_that_lies(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, true);
	shell(&s, "printf aa >root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 500), "definitions/norm/old.json");
	/* The second write keeps the size, and the old mtime is set again. Only the ctime, which a program cannot set,
	 * changes. If only the ctime of a file has changed, the watcher reads the file at once, and reports a change
	 * only if the content differs. */
	shell(&s, "touch -d '2001-01-01' root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 500), "");
	shell(&s, "printf bb >root/definitions/norm/old.json; touch -d '2001-01-01' root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 500), "definitions/norm/old.json");
	end(&s);
}

static void a_root_that_vanishes_is_waited_for(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	int generation = watcher_generation(s.watcher);

	shell(&s, "mv root elsewhere");
	assert_string_equal(changes_after(&s, 0), "");
	assert_false(watcher_has_root(s.watcher));
	assert_non_null(strstr(watcher_notice(s.watcher), "no longer exists"));
	assert_true(watcher_deadline(s.watcher) <= s.now + 100);
	shell(&s, "echo 5 >elsewhere/definitions/norm/old.json; mv elsewhere root");
	changes_after(&s, 100);
	assert_true(watcher_has_root(s.watcher));
	assert_non_null(strstr(watcher_notice(s.watcher), "is back"));
	assert_string_equal(changes_after(&s, 100), "*");
	assert_int_equal(watcher_generation(s.watcher), generation);
	shell(&s, "echo 6 >root/definitions/norm/old.json");
	assert_string_equal(changes_after(&s, 0), "definitions/norm/old.json");
	shell(&s, "rm -r root; mkdir -p root/definitions/norm; echo 7 >root/definitions/norm/n.json");
	changes_after(&s, 100);
	assert_string_equal(changes_after(&s, 100), "*");
	assert_int_equal(watcher_generation(s.watcher), generation + 1);
	shell(&s, "echo 8 >root/definitions/norm/n.json");
	assert_string_equal(changes_after(&s, 0), "definitions/norm/n.json");
	end(&s);
}

static void a_polled_root_that_vanishes_is_waited_for(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, true);
	for (int i = 0; i < 4; i++) /* polls the folder for a while */
		assert_string_equal(changes_after(&s, 500), "");
	shell(&s, "mv root elsewhere");
	changes_after(&s, 500);
	changes_after(&s, 500);
	assert_false(watcher_has_root(s.watcher));
	shell(&s, "mv elsewhere root");
	changes_after(&s, 100);
	assert_true(watcher_has_root(s.watcher));
	assert_string_equal(changes_after(&s, 100), "*");
	end(&s);
}

static void a_parent_of_the_root_that_is_moved_is_noticed(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	changes_after(&s, 0);
	shell(&s, "mkdir inner; mv root inner/; mv inner/root root; mkdir x; mv root x/root; mv x y; mv y/root root");
	assert_string_equal(changes_after(&s, 1000), "");
	assert_true(watcher_has_root(s.watcher));
	end(&s);
}

static void an_overflow_tells_everything_once_it_is_quiet(void **state)
{
	(void)state;
	struct scene s;

	begin(&s, 0, false);
	/* Causes more events than fs.inotify.max_queued_events allows (16384 by default), so that the event of a new
	 * folder is lost. */
	FILE *limit = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	long most = 0;

	assert_non_null(limit);
	assert_int_equal(fscanf(limit, "%ld", &most), 1);
	fclose(limit);
	char path[128];
	int rounds = (int)(most < 200000 ? most : 200000) / 2 + 10;

	for (int i = 0; i < rounds; i++) { /* writes two files alternately, because the kernel merges consecutive equal
					    * events */
		snprintf(path, sizeof path, "%s/definitions/norm/f%d.json", s.root, i % 2);
		FILE *file = fopen(path, "w");

		fclose(file);
	}
	shell(&s, "mkdir root/definitions/late; echo 1 >root/definitions/late/l.json");
	changes_after(&s, 0);
	assert_true(watcher_counts(s.watcher).overflows > 0);
	changes_after(&s, 99);
	assert_string_equal(changes_after(&s, 1), "*");
	shell(&s, "echo 2 >root/definitions/late/l.json");
	assert_string_equal(changes_after(&s, 0), "definitions/late/l.json");
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_save_is_reported_at_once_and_only_once),
	    cmocka_unit_test(other_names_and_other_places_are_nobodys_business),
	    cmocka_unit_test(renames_in_out_and_over_are_reported_at_both_ends),
	    cmocka_unit_test(a_file_that_does_not_parse_yet_waits_for_its_writer),
	    cmocka_unit_test(a_file_still_held_open_is_reported_when_closed_or_quiet),
	    cmocka_unit_test(a_new_folder_is_reported_file_by_file_and_watched),
	    cmocka_unit_test(a_folder_filled_faster_than_it_is_watched_misses_nothing),
	    cmocka_unit_test(a_linked_folder_is_watched_where_it_leads),
	    cmocka_unit_test(two_links_to_one_folder_tell_of_both),
	    cmocka_unit_test(a_loop_of_links_ends),
	    cmocka_unit_test(a_linked_file_is_looked_at_where_it_leads),
	    cmocka_unit_test(permissions_are_reported),
	    cmocka_unit_test(the_limit_of_watches_is_reported_with_its_remedy_and_the_rest_polled),
	    cmocka_unit_test(the_limit_of_a_user_namespace_is_reported_by_its_own_name),
	    cmocka_unit_test(the_smallest_limit_is_the_one_that_counts),
	    cmocka_unit_test(polling_finds_what_inotify_would_have_reported),
	    cmocka_unit_test(polling_sees_through_a_stat_that_lies),
	    cmocka_unit_test(what_inotify_cannot_see_is_polled),
	    cmocka_unit_test(a_root_that_vanishes_is_waited_for),
	    cmocka_unit_test(a_polled_root_that_vanishes_is_waited_for),
	    cmocka_unit_test(a_parent_of_the_root_that_is_moved_is_noticed),
	    cmocka_unit_test(an_overflow_tells_everything_once_it_is_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
