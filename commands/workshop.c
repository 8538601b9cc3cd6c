#include "commands/workshop.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

extern char **environ;

static const struct watched_tree trees[] = {{"kernels", 2, 0, NULL}};
static const char *const products[WORKSHOP_PRODUCTS] = {"reftest", "libreftest_kernels.so", "libreftest_kernels_cuda.so"};

/* What make would take for a source. Editors' leftovers are none. */
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

static bool is_ripe(const char *path, void *context)
{
	(void)path;
	(void)context;
	return true;
}

/* "/home/me/reftest/build" with a Makefile beside: the plain build, which `make` alone makes again. */
static bool find_checkout(struct workshop *workshop)
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
	snprintf(workshop->folder, sizeof workshop->folder, "%s", path);
	return access(makefile, R_OK) == 0;
}

void workshop_open(struct workshop *workshop)
{
	struct watcher_options how = {.trees = trees, .tree_count = 1, .ripe = is_ripe};

	*workshop = (struct workshop){.make = {0, -1}, .said = -1};
	how.root = workshop->folder;
	if (find_checkout(workshop))
		workshop->watcher = watcher_open(&how, NULL);
}

static void forget_said(struct workshop *workshop)
{
	if (workshop->said >= 0)
		close(workshop->said);
	workshop->said = -1;
}

void workshop_close(struct workshop *workshop)
{
	int status;

	if (workshop->make.pid != 0) {
		process_kill(&workshop->make);
		for (int i = 0; i < 500 && !process_ended(&workshop->make, &status); i++)
			usleep(1000);
	}
	forget_said(workshop);
	if (workshop->watcher != NULL)
		watcher_close(workshop->watcher);
	workshop->watcher = NULL;
}

int workshop_fd(const struct workshop *workshop)
{
	return workshop->watcher != NULL ? watcher_fd(workshop->watcher) : -1;
}

int workshop_make_fd(const struct workshop *workshop)
{
	return workshop->make.pid != 0 ? workshop->make.pidfd : -1;
}

int64_t workshop_deadline(const struct workshop *workshop)
{
	return workshop->watcher != NULL ? watcher_deadline(workshop->watcher) : INT64_MAX;
}

static struct stat look_at_product(const struct workshop *workshop, int i)
{
	char path[PATH_MAX + 64];
	struct stat st;

	snprintf(path, sizeof path, "%s/build/%s", workshop->folder, products[i]);
	return stat(path, &st) == 0 ? st : (struct stat){0};
}

static bool made_something(const struct workshop *workshop)
{
	for (int i = 0; i < WORKSHOP_PRODUCTS; i++) {
		struct stat st = look_at_product(workshop, i);

		if (st.st_ino != workshop->before[i].st_ino || st.st_mtim.tv_sec != workshop->before[i].st_mtim.tv_sec ||
		    st.st_mtim.tv_nsec != workshop->before[i].st_mtim.tv_nsec)
			return true;
	}
	return false;
}

static int start_make(struct workshop *workshop, struct err *err)
{
	char *argv[] = {"make", "-s", "-C", workshop->folder, "all", NULL};

	for (int i = 0; i < WORKSHOP_PRODUCTS; i++)
		workshop->before[i] = look_at_product(workshop, i);
	workshop->wanted = false;
	forget_said(workshop);
	workshop->said = memfd_create("make", MFD_CLOEXEC);
	const int fds[] = {-1, workshop->said, workshop->said};

	return process_start(&workshop->make, "/usr/bin/make", argv, environ, fds, 3, err);
}

/* The end of what make said, at a line's beginning. */
static void tell_failure(const struct workshop *workshop, int status, struct err *err)
{
	char text[1500] = "";
	struct stat st;
	off_t room = (off_t)sizeof text - 1;
	off_t from = fstat(workshop->said, &st) == 0 && st.st_size > room ? st.st_size - room : 0;
	ssize_t length = pread(workshop->said, text, sizeof text - 1, from);
	const char *begin = from > 0 && strchr(text, '\n') != NULL ? strchr(text, '\n') + 1 : text;

	err_set(err, "make in %.1000s failed (%s), so the kernels are still those of before:\n%s", workshop->folder,
	        process_end(status).text, length > 0 ? begin : "");
}

static bool sources_changed(struct workshop *workshop, int64_t now_ms)
{
	struct arena arena = {0};
	struct changes changes;
	bool changed = false;

	watcher_turn(workshop->watcher, now_ms);
	while (watcher_notice(workshop->watcher) != NULL)
		; /* of a checkout that moves there is nothing to say */
	if (watcher_pending(workshop->watcher) > 0 && watcher_changes(workshop->watcher, now_ms, &arena, &changes)) {
		changed = changes.everything;
		for (int i = 0; i < changes.count; i++)
			changed = changed || is_source(changes.paths[i]);
	}
	arena_free(&arena);
	return changed;
}

enum workshop_news workshop_turn(struct workshop *workshop, int64_t now_ms, struct err *err)
{
	int status;

	if (workshop->watcher == NULL)
		return WORKSHOP_NOTHING;
	workshop->wanted = sources_changed(workshop, now_ms) || workshop->wanted;
	if (workshop->make.pid != 0) {
		if (!process_ended(&workshop->make, &status))
			return WORKSHOP_NOTHING;
		if (workshop->wanted) /* it may have read half of the change */
			return start_make(workshop, err) < 0 ? WORKSHOP_FAILED : WORKSHOP_NOTHING;
		if (status == 0)
			return made_something(workshop) ? WORKSHOP_NEW : WORKSHOP_SAME;
		tell_failure(workshop, status, err);
		return WORKSHOP_FAILED;
	}
	if (!workshop->wanted)
		return WORKSHOP_NOTHING;
	return start_make(workshop, err) < 0 ? WORKSHOP_FAILED : WORKSHOP_MAKING;
}
