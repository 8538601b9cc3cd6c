#include "watcher/rebuild.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

extern char **environ;

static const struct watched_tree trees[] = {{"kernels", 2, 0, NULL}};
static const char *const products[REBUILD_PRODUCTS] = {"reftest", "libreftest_kernels.so",
						       "libreftest_kernels_cuda.so"};

/* Returns whether a change of this file can make a build necessary. Returns false for temporary files of editors. */
static bool is_source(const char *path)
{
	static const char *const suffixes[] = {".c", ".h", ".cu", ".cuh", ".json", "/"};
	const char *name = strrchr(path, '/');
	size_t length = strlen(path);

	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t tail = strlen(suffixes[i]);

		if (length > tail && strcmp(path + length - tail, suffixes[i]) == 0)
			return name == NULL || name[1] != '.';
	}
	return false;
}

static bool always_complete(const char *path, void *context)
{
	(void)path;
	(void)context;
	return true;
}

/* Finds the checkout in which this program was built by `make` without arguments. Such a program is in a folder build/,
 * and a Makefile is in the parent folder. Returns false if there is no checkout. */
static bool find_checkout(struct rebuild *rebuild)
{
	char path[PATH_MAX], makefile[PATH_MAX + 16];
	struct err err;

	if (file_program_directory(path, sizeof path, &err) != 0)
		return false;
	char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path || strcmp(slash, "/build") != 0)
		return false;
	*slash = '\0';
	snprintf(makefile, sizeof makefile, "%s/Makefile", path);
	snprintf(rebuild->folder, sizeof rebuild->folder, "%s", path);
	return access(makefile, R_OK) == 0;
}

void rebuild_open(struct rebuild *rebuild)
{
	struct watcher_options how = {.trees = trees, .tree_count = 1, .complete = always_complete};

	*rebuild = (struct rebuild){.make = {0, -1}, .make_output = -1};
	how.root = rebuild->folder;
	if (find_checkout(rebuild))
		rebuild->watcher = watcher_open(&how, NULL);
}

static void close_output(struct rebuild *rebuild)
{
	if (rebuild->make_output >= 0)
		close(rebuild->make_output);
	rebuild->make_output = -1;
}

void rebuild_close(struct rebuild *rebuild)
{
	int status;

	if (rebuild->make.pid != 0) {
		process_kill(&rebuild->make);
		for (int i = 0; i < 500 && !process_ended(&rebuild->make, &status); i++)
			usleep(1000);
	}
	close_output(rebuild);
	if (rebuild->watcher != NULL)
		watcher_close(rebuild->watcher);
	rebuild->watcher = NULL;
}

int rebuild_fd(const struct rebuild *rebuild)
{
	return rebuild->watcher != NULL ? watcher_fd(rebuild->watcher) : -1;
}

int rebuild_make_fd(const struct rebuild *rebuild)
{
	return rebuild->make.pid != 0 ? rebuild->make.pidfd : -1;
}

int64_t rebuild_deadline(const struct rebuild *rebuild)
{
	return rebuild->watcher != NULL ? watcher_deadline(rebuild->watcher) : INT64_MAX;
}

static struct stat look_at_product(const struct rebuild *rebuild, int i)
{
	char path[PATH_MAX + 64];
	struct stat st;

	snprintf(path, sizeof path, "%s/build/%s", rebuild->folder, products[i]);
	return stat(path, &st) == 0 ? st : (struct stat){0};
}

static bool has_new_product(const struct rebuild *rebuild)
{
	for (int i = 0; i < REBUILD_PRODUCTS; i++) {
		struct stat st = look_at_product(rebuild, i);

		if (st.st_ino != rebuild->before[i].st_ino || st.st_mtim.tv_sec != rebuild->before[i].st_mtim.tv_sec ||
		    st.st_mtim.tv_nsec != rebuild->before[i].st_mtim.tv_nsec)
			return true;
	}
	return false;
}

static int start_make(struct rebuild *rebuild, struct err *err)
{
	char *argv[] = {"make", "-s", "-C", rebuild->folder, "all", NULL};

	for (int i = 0; i < REBUILD_PRODUCTS; i++)
		rebuild->before[i] = look_at_product(rebuild, i);
	rebuild->wanted = false;
	close_output(rebuild);
	rebuild->make_output = memfd_create("make", MFD_CLOEXEC);
	const int fds[] = {-1, rebuild->make_output, rebuild->make_output};

	return process_start(&rebuild->make, "/usr/bin/make", argv, environ, fds, 3, err);
}

/* Sets `err` to a message with the last lines of make's output. */
static void describe_failure(const struct rebuild *rebuild, int status, struct err *err)
{
	char text[1500] = "";
	struct stat st;
	off_t room = (off_t)sizeof text - 1;
	off_t from = fstat(rebuild->make_output, &st) == 0 && st.st_size > room ? st.st_size - room : 0;
	ssize_t length = pread(rebuild->make_output, text, sizeof text - 1, from);
	const char *begin = from > 0 && strchr(text, '\n') != NULL ? strchr(text, '\n') + 1 : text;

	err_set(err, "make in %.1000s failed (%s), so the previous kernels stay in use:\n%s", rebuild->folder,
		process_end(status).text, length > 0 ? begin : "");
}

static bool sources_changed(struct rebuild *rebuild, int64_t now_ms)
{
	struct arena arena = {0};
	struct changes changes;
	bool changed = false;

	watcher_turn(rebuild->watcher, now_ms);
	while (watcher_notice(rebuild->watcher) != NULL)
		; /* discards the messages of this watcher */
	if (watcher_pending(rebuild->watcher) > 0 && watcher_changes(rebuild->watcher, now_ms, &arena, &changes)) {
		changed = changes.everything;
		for (int i = 0; i < changes.count; i++)
			changed = changed || is_source(changes.paths[i]);
	}
	arena_free(&arena);
	return changed;
}

enum rebuild_news rebuild_turn(struct rebuild *rebuild, int64_t now_ms, struct err *err)
{
	int status;

	if (rebuild->watcher == NULL)
		return REBUILD_NOTHING;
	rebuild->wanted = sources_changed(rebuild, now_ms) || rebuild->wanted;
	if (rebuild->make.pid != 0) {
		if (!process_ended(&rebuild->make, &status))
			return REBUILD_NOTHING;
		if (rebuild->wanted) /* runs make again, because a source changed while make was running */
			return start_make(rebuild, err) < 0 ? REBUILD_FAILED : REBUILD_NOTHING;
		if (status == 0)
			return has_new_product(rebuild) ? REBUILD_NEW : REBUILD_SAME;
		describe_failure(rebuild, status, err);
		return REBUILD_FAILED;
	}
	if (!rebuild->wanted)
		return REBUILD_NOTHING;
	return start_make(rebuild, err) < 0 ? REBUILD_FAILED : REBUILD_MAKING;
}
