#include "git/changes.h"

#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/unsafe_character.h"
#include "git/objects.h"

enum { LISTING_BYTES = 1 << 30 };

int git_merge_base(const struct repository *repository, const char *name, struct arena *arena, const char **commit,
		   struct err *err)
{
	const char *const words[] = {"merge-base", name, "HEAD", NULL};
	struct buf text = {0};
	/* an unsafe name is not passed to git, because git's error messages contain the name unescaped */
	int rc = name[0] == '-' || !text_is_safe(name) ? -1 : git_output(repository, words, 256, &text, NULL);

	if (rc == 0)
		*commit = arena_copy(arena, text.data, strcspn(text.data, "\n"));
	else
		err_set(
		    err,
		    "git finds no common ancestor of '%s' and HEAD; if this is a shallow clone, fetch the whole "
		    "history (actions/checkout: fetch-depth: 0; else `git fetch --unshallow`)",
		    err_show(name).text);
	buf_free(&text);
	return rc;
}

/* Runs the git command `words`, which prints NUL-terminated paths. Adds those paths that are below the dataset's
 * directory. */
static int list_files(const struct repository *repository, const char *const *words, struct arena *arena,
		      struct git_files *out, struct err *err)
{
	size_t head = strlen(repository->prefix), room = (size_t)out->count;
	struct buf text = {0};
	int rc = git_output(repository, words, LISTING_BYTES, &text, err);

	if (rc == 0) {
		for (size_t i = 0; i < text.length; i++)
			room += text.data[i] == '\0';
		const char **list = arena_array(arena, room, sizeof *list);

		if (out->count > 0)
			memcpy(list, out->list, (size_t)out->count * sizeof *list);
		out->list = list;
		for (size_t at = 0; at < text.length; at += strlen(text.data + at) + 1)
			if (strncmp(text.data + at, repository->prefix, head) == 0)
				out->list[out->count++] = arena_string(arena, text.data + at + head);
	}
	buf_free(&text);
	return rc;
}

int git_changed_files(const struct repository *repository, const char *commit, struct arena *arena, struct git_files *out,
		      struct err *err)
{
	const char *below = arena_printf(arena, ":(top,literal)%s", repository->prefix);
	const char *const changed[] = {"diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", commit, "--", NULL};
	const char *const untracked[] = {"ls-files", "--others", "--exclude-standard", "-z", "--", below, NULL};

	*out = (struct git_files){NULL, 0};
	if (list_files(repository, changed, arena, out, err) < 0)
		return -1;
	return list_files(repository, untracked, arena, out, err);
}

/* Reads an entry of `git ls-tree -z`: "MODE TYPE OBJECT\tPATH". Returns whether the entry is a file below the
 * prefix. */
static bool read_entry(const struct repository *repository, const char *entry, struct arena *arena, struct git_file *out)
{
	const char *tab = strchr(entry, '\t'), *object = strstr(entry, " blob ");
	size_t head = strlen(repository->prefix);

	if (tab == NULL || object == NULL || object > tab || strncmp(tab + 1, repository->prefix, head) != 0)
		return false;
	object += strlen(" blob ");
	if (tab - object != 2 * repository->object_bytes ||
	    !hex_read(object, out->object, (size_t)repository->object_bytes))
		return false;
	out->path = arena_string(arena, tab + 1 + head);
	return true;
}

int git_commit_files(const struct repository *repository, const char *commit, const char *below, struct arena *arena,
		     const struct git_file **out, struct err *err)
{
	const char *folder = arena_printf(arena, "%s%s/", repository->prefix, below);
	const char *const words[] = {"ls-tree", "-r", "-z", "--full-tree", commit, "--", folder, NULL};
	struct buf text = {0};
	size_t entries = 0;
	int count = 0;

	if (git_output(repository, words, LISTING_BYTES, &text, err) < 0) {
		buf_free(&text);
		return -1;
	}
	for (size_t i = 0; i < text.length; i++)
		entries += text.data[i] == '\0';
	struct git_file *files = arena_array(arena, entries, sizeof *files);

	for (size_t at = 0; at < text.length; at += strlen(text.data + at) + 1)
		count += read_entry(repository, text.data + at, arena, &files[count]);
	*out = files;
	buf_free(&text);
	return count;
}
