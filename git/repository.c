#include "git/repository.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"

enum { GITFILE_BYTES = 8192, CONFIG_BYTES = 1 << 20 };

/* Sets `out` to "FOLDER/NAME", or to NAME if NAME is absolute. Returns false if the path does not fit in PATH_MAX
 * bytes. */
static bool join(const char *folder, const char *name, char *out)
{
	int length =
	    name[0] == '/' ? snprintf(out, PATH_MAX, "%s", name) : snprintf(out, PATH_MAX, "%s/%s", folder, name);

	return length > 0 && length < PATH_MAX;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Reads a path from the first line of a small file. The path follows the text `head`, such as "gitdir: ", and is
 * relative to `folder`. */
static bool read_pointer(const char *path, const char *head, const char *folder, char *out)
{
	char target[PATH_MAX], joined[PATH_MAX];
	struct buf text = {0};
	size_t skip = strlen(head);
	bool found = false;

	if (file_read(AT_FDCWD, path, GITFILE_BYTES, &text, NULL, NULL) == FILE_OK && text.length > skip &&
	    strncmp(text.data, head, skip) == 0) {
		int length = (int)strcspn(text.data + skip, "\r\n");

		found = snprintf(target, sizeof target, "%.*s", length, text.data + skip) < (int)sizeof target &&
			join(folder, target, joined) && realpath(joined, out) != NULL;
	}
	buf_free(&text);
	return found;
}

/* Returns whether `top` contains .git, and sets `directory` to the repository's directory. In worktrees and submodules,
 * .git is a file with the line "gitdir: PATH". */
static bool is_repository(const char *top, char *directory)
{
	char path[PATH_MAX];
	struct stat st;

	if (!join(top, ".git", path) || stat(path, &st) != 0)
		return false;
	return S_ISDIR(st.st_mode) ? realpath(path, directory) != NULL : read_pointer(path, "gitdir: ", top, directory);
}

bool repository_above(const char *folder, char *top, char *directory)
{
	if (realpath(folder, top) == NULL)
		return false;
	for (;;) {
		char *slash = strrchr(top, '/');

		if (is_repository(top[0] == '\0' ? "/" : top, directory))
			return true;
		if (slash == NULL || top[0] == '\0')
			return false;
		*slash = '\0';
	}
}

/* Resolves the path in a GIT_* variable. A relative path is relative to the working directory or, if it does not exist
 * there, to `top`. Git starts a hook at the top of the working tree, and the GIT_* variables of the hook have paths
 * relative to the top. The hook may have changed its working directory before it started reftest. */
static bool from_here_or_top(const char *path, const char *top, char *out)
{
	char joined[PATH_MAX];

	return realpath(path, out) != NULL || (top[0] != '\0' && join(top, path, joined) && realpath(joined, out) != NULL);
}

/* Finds the repository to which the environment refers. If GIT_DIR is set, the working tree is $GIT_WORK_TREE or, if
 * that is not set, the working directory. If GIT_DIR is not set, finds the repository that contains the working
 * directory. Before the call, `top` must be the top of the dataset's own repository, or "" if there is none. */
static bool environment_repository(char *top, char *directory)
{
	const char *given = getenv("GIT_DIR"), *tree = getenv("GIT_WORK_TREE");
	char own[PATH_MAX];

	memcpy(own, top, sizeof own);
	if (given == NULL || *given == '\0')
		return repository_above(".", top, directory);
	return from_here_or_top(given, own, directory) &&
	       from_here_or_top(tree != NULL && *tree != '\0' ? tree : ".", own, top);
}

/* Returns whether a line of a config file sets `key` to a value that begins with `value`. */
static bool sets(const char *line, const char *key, const char *value)
{
	size_t length = strlen(key);

	return strncasecmp(line, key, length) == 0 &&
	       strncasecmp(line + length + strspn(line + length, " \t="), value, strlen(value)) == 0;
}

static void set_by(const char *line, const char *key, bool *out)
{
	*out = !sets(line, key, "false") && (*out || sets(line, key, "true"));
}

/* Reads settings from a config file of the repository, and stores them in `repository`. The parser handles only one
 * setting per line, because git itself writes these settings in this form. */
static void read_config(struct repository *repository, const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct buf text = {0};

	if (join(folder, name, path) &&
	    file_read(AT_FDCWD, path, CONFIG_BYTES, &text, NULL, NULL) == FILE_OK && text.length > 0)
		for (const char *line = text.data; line != NULL; line = strchr(line, '\n')) {
			line += strspn(line, " \t\r\n");
			if (sets(line, "objectformat", "sha256"))
				repository->object_bytes = 32;
			if (sets(line, "promisor", "true") || sets(line, "partialclone", ""))
				repository->partial = true;
			set_by(line, "sparsecheckout", &repository->sparse);
			set_by(line, "sparsecheckoutcone", &repository->cone);
		}
	buf_free(&text);
}

/* Sets the prefix to the path of `root` relative to the top of the working tree. Returns false if `root` is outside the
 * working tree. */
static bool find_prefix(struct repository *repository, const char *root)
{
	size_t length = strcmp(repository->top, "/") == 0 ? 0 : strlen(repository->top);
	char full[PATH_MAX];

	if (realpath(root, full) == NULL || strncmp(full, repository->top, length) != 0 ||
	    (full[length] != '/' && full[length] != '\0'))
		return false;
	const char *rest = full[length] == '/' ? full + length + 1 : "";

	return snprintf(repository->prefix, sizeof repository->prefix, "%s%s", rest, *rest != '\0' ? "/" : "") <
	       PATH_MAX;
}

static int finish(struct repository *repository, struct err *err)
{
	const char *index = repository->environment ? getenv("GIT_INDEX_FILE") : NULL;
	char commondir[PATH_MAX], path[PATH_MAX];
	bool fits = join(repository->directory, "commondir", commondir);

	if (!fits || !read_pointer(commondir, "", repository->directory, repository->common))
		memcpy(repository->common, repository->directory, sizeof repository->common);
	fits = fits && join(repository->directory, "index", repository->index);
	if (index != NULL && *index != '\0' && !from_here_or_top(index, repository->top, repository->index))
		fits = fits && realpath(".", path) != NULL && join(path, index, repository->index); /* realpath fails if
												     * the index does
												     * not exist yet */
	read_config(repository, repository->common, "config");
	read_config(repository, repository->directory, "config.worktree");
	if (repository->top[0] == '\0')
		memcpy(repository->top, "/", 2);
	return fits ? 0
		    : err_set(err, "%s: the paths in this git repository are longer than the system allows",
			      repository->top);
}

int repository_find(const char *root, struct repository *out, struct err *err)
{
	const char *tree = getenv("GIT_WORK_TREE");
	char top[PATH_MAX] = "", directory[PATH_MAX];

	*out = (struct repository){.object_bytes = 20};
	bool own = repository_above(root, out->top, out->directory);

	if (own)
		memcpy(top, out->top, sizeof top);
	bool named = environment_repository(top, directory);

	out->environment = named && (!own || strcmp(directory, out->directory) == 0);
	if (out->environment && (!own || (tree != NULL && *tree != '\0'))) {
		memcpy(out->top, top, sizeof top);
		memcpy(out->directory, directory, sizeof directory);
	}
	if ((!own && !named) || !find_prefix(out, root) || !is_folder(out->directory))
		return err_set(err, "%s is not in a git repository, so there is no git index to read", root);
	return finish(out, err);
}
