#include "repos/interrupted_update.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/string_list.h"

enum { CONTENT_MOST = 512 << 20 };

/* The files of a commit, and the paths at which the working tree differs from this commit. Both lists are sorted. */
struct side {
	struct string_list files;   /* the paths of the commit's files */
	struct string_list differs; /* the paths at which the working tree differs from the commit */
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool holds(const struct string_list *list, const char *path)
{
	return list->count > 0 &&
	       bsearch(&path, list->items, (size_t)list->count, sizeof *list->items, compare) != NULL;
}

/* Runs a command that prints paths, each with a NUL after it. */
static int list_paths(struct git_command *git, const char *const *words, struct arena *arena, struct string_list *out)
{
	*out = (struct string_list){.arena = arena};
	if (git_run(git, words, NULL) != 0)
		return -1;
	for (size_t at = 0; at < git->out.length; at += strlen(git->out.data + at) + 1)
		string_list_add(out, arena_string(arena, git->out.data + at));
	if (out->count > 0)
		qsort(out->items, (size_t)out->count, sizeof *out->items, compare);
	return 0;
}

/* Compares the working tree with a commit. Uses a separate git index, so that the index of the checkout stays
 * unchanged. */
static int read_side(struct git_command *git, const char *commit, struct arena *arena, struct side *out)
{
	const char *index = arena_printf(arena, "%s/.git/reftest-index", git->folder);
	struct git_command own = {.folder = git->folder, .index = index, .inherited = git->inherited};
	const char *const read_tree[] = {"read-tree", commit, NULL};
	static const char *const refresh[] = {"update-index", "-q", "--refresh", NULL};
	static const char *const files[] = {"ls-files", "-z", NULL};
	static const char *const differs[] = {"diff-files", "--name-only", "-z", NULL};

	unlink(index);
	unlink(arena_printf(arena, "%s.lock", index));
	int rc = git_run(&own, read_tree, NULL) == 0 ? 0 : -1;

	if (rc == 0) {
		git_run(&own, refresh, NULL); /* the exit status is ignored, because it only says whether files
					       * differ */
		rc = list_paths(&own, files, arena, &out->files);
	}
	if (rc == 0)
		rc = list_paths(&own, differs, arena, &out->differs);
	unlink(index);
	git_command_free(&own);
	return rc;
}

/* Reads a file, or the target of a symbolic link. Returns false if the path is neither a file nor a symbolic link. */
static bool read_working_file(const char *path, struct buf *out)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof target);

	buf_clear(out);
	if (n >= 0) {
		buf_add(out, target, (size_t)n);
		return true;
	}
	return file_read(AT_FDCWD, path, CONTENT_MOST, out, NULL, NULL) == FILE_OK;
}

/* Returns whether `content` equals the file `path` in the commit. If `beginning` is true, `content` may also be only
 * the beginning of this file. */
static bool has_content(struct git_command *git, const char *commit, const char *path, const struct buf *content,
			bool beginning, struct arena *arena)
{
	const char *const words[] = {"cat-file", "blob", arena_printf(arena, "%s:%s", commit, path), NULL};

	return git_run(git, words, NULL) == 0 &&
	       (beginning ? content->length <= git->out.length : content->length == git->out.length) &&
	       (content->length == 0 || memcmp(content->data, git->out.data, content->length) == 0);
}

static bool is_foreign(struct git_command *git, const char *path, const char *old, const char *new, struct arena *arena)
{
	const char *file = arena_printf(arena, "%s/%s", git->folder, path);
	struct buf content = {0};
	struct stat st;
	bool foreign = lstat(file, &st) == 0 &&
		       (!read_working_file(file, &content) || (!has_content(git, old, path, &content, false, arena) &&
							       !has_content(git, new, path, &content, true, arena)));

	buf_free(&content);
	return foreign;
}

/* Returns the first path at which the working tree differs from both commits. Somebody else must have changed this
 * file. */
static const char *find_foreign(struct git_command *git, const struct side *here, const struct side *other,
				const char *old, const char *new, struct arena *arena)
{
	for (int i = 0; i < here->differs.count; i++) {
		const char *path = here->differs.items[i];

		if (holds(&other->files, path) && !holds(&other->differs, path))
			continue;
		if (is_foreign(git, path, old, new, arena))
			return path;
	}
	return NULL;
}

const char *update_find_foreign_file(struct git_command *git, const char *old, const char *new, struct arena *arena)
{
	struct side before, after;

	if (read_side(git, old, arena, &before) < 0 || read_side(git, new, arena, &after) < 0)
		return "";
	const char *found = find_foreign(git, &before, &after, old, new, arena);

	return found != NULL ? found : find_foreign(git, &after, &before, old, new, arena);
}
