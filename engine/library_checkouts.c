#include "engine/library_checkouts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "git/command.h"
#include "repos/known_repositories.h"
#include "repos/repos_config.h"

#define VARIABLE "REFTEST_CHECKOUTS"

static bool is_checkout(const char *path, struct arena *arena)
{
	struct stat st;

	return stat(arena_printf(arena, "%s/.git", path), &st) == 0 && S_ISDIR(st.st_mode);
}

/* Returns the folder of a library's checkout, or NULL if there is none. */
static const char *find_path(const struct program *program, const struct repos_config *config,
			     const struct known_repository *library, struct arena *arena)
{
	struct repos_entry *entry = repos_config_find(config, library->name);
	const char *path = NULL;

	if (program->repos != NULL)
		path = arena_printf(arena, "%s/%s", program->repos, library->name);
	else if (entry != NULL && entry->checkout.status != CHECKOUT_INCOMPLETE)
		path = entry->checkout.path;
	return path != NULL && is_checkout(path, arena) ? path : NULL;
}

/* Runs git in a checkout. Returns git's exit status, or -1. Sets `out` to what git printed, without the last
 * newline. */
static int ask_git(const char *path, const char *const *words, struct arena *arena, const char **out)
{
	struct git_command git = {.folder = path, .inherited = -1};
	int status = git_run(&git, words, NULL);

	*out = arena_copy(arena, git.out.data, git.out.length > 0 ? git.out.length - 1 : 0);
	git_command_free(&git);
	return status;
}

/* Returns why the checkout cannot be used; if it can be used, returns NULL and sets `commit`. */
static const char *examine(const char *path, struct arena *arena, const char **commit)
{
	static const char *const head[] = {"rev-parse", "--verify", "--quiet", "HEAD^{commit}", NULL};
	static const char *const status[] = {"status", "--porcelain", NULL};
	const char *changes;

	*commit = "";
	if (ask_git(path, head, arena, commit) != 0)
		return arena_printf(arena, "git finds no commit in %s", path);
	if (ask_git(path, status, arena, &changes) != 0)
		return arena_printf(arena, "git cannot compare the checkout %s with its HEAD commit", path);
	if (changes[0] == '\0')
		return NULL;
	return arena_printf(arena, "%s has uncommitted changes, so the commit does not identify the code", path);
}

static void add_checkout(const struct program *program, const struct known_repository *library, const char *path,
			 struct arena *arena, struct buf *out)
{
	const char *folder = strcmp(library->python, ".") == 0 ? path : arena_printf(arena, "%s/%s", path, library->python);
	const char *real = realpath(folder, NULL), *commit, *why = examine(path, arena, &commit);

	buf_text(out, out->length > 1 ? ", " : "");
	buf_json_string(out, library->name);
	buf_text(out, ": {\"folder\": ");
	buf_json_string(out, real != NULL ? real : folder);
	buf_text(out, ", \"commit\": ");
	buf_json_string(out, commit);
	buf_text(out, ", \"why\": ");
	if (why != NULL)
		buf_json_string(out, why);
	else
		buf_text(out, "null");
	buf_printf(out, ", \"preferred\": %s}", program->repos != NULL ? "true" : "false");
	free((void *)real);
}

int library_checkouts_announce(const struct program *program, struct arena *arena, struct err *err)
{
	struct repos_config config = {NULL, NULL, 0};
	struct buf out = {0};
	int rc = 0;

	if (program->repos == NULL && repos_config_read(program->root, arena, &config, err) < 0)
		return -1;
	buf_text(&out, "{");
	for (int i = 0; i < known_repository_count; i++) {
		const struct known_repository *library = &known_repositories[i];
		const char *path = library->python == NULL ? NULL : find_path(program, &config, library, arena);

		if (path != NULL)
			add_checkout(program, library, path, arena, &out);
	}
	if (out.length == 1 && program->repos != NULL)
		rc = err_set(err, "%s has no checkout of sglang or flashinfer; `reftest clone --target-dir %s` clones them",
			     program->repos, program->repos);
	buf_text(&out, "}");
	if (out.length > 2)
		setenv(VARIABLE, out.data, 1);
	else
		unsetenv(VARIABLE);
	buf_free(&out);
	return rc;
}

const char *library_checkout_path(const struct program *program, const char *name, struct arena *arena)
{
	const struct known_repository *library = known_repository_find(name);
	struct repos_config config = {NULL, NULL, 0};
	struct err ignored;

	if (library == NULL || (program->repos == NULL && (program->root[0] == '\0' ||
							    repos_config_read(program->root, arena, &config, &ignored) < 0)))
		return NULL;
	return find_path(program, &config, library, arena);
}
