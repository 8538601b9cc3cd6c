/* hook - installs and removes git hooks that verify each commit. The hooks are written to the folder from which git
 * runs hooks: the folder in core.hooksPath, or else the `hooks` folder of the repository, which all worktrees share.
 * Uninstalling restores the previous hooks.
 *
 * An existing hook is renamed, and runs first. If the existing hook fails, nothing is verified. A hook of reftest is
 * recognized by its second line and by its third line, a digest of the rest of the file. If the digest is wrong, a user
 * or another program has changed the hook. The command then reports the hook and leaves it unchanged. */
#include "cli/command.h"
#include "cli/command_line.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/fold_output.h"
#include "base/hash.h"
#include "base/show.h"
#include "cli/hook_result.h"
#include "cli/shared_options.h"
#include "engine/staged_dataset.h"
#include "git/objects.h"

/* git runs pre-merge-commit for a merge that it commits automatically, and pre-commit for all other commits. */
static const char *const hooks[] = {"pre-commit", "pre-merge-commit"};
static const char mark[] = "# reftest hook: verifies what is about to be committed";
static const char digest_line[] = "# reftest-hook: "; /* older versions of reftest wrote no digest line */
static const char aside[] = "before-reftest";

enum { HOOKS = sizeof hooks / sizeof *hooks, HOOK_BYTES = 1 << 20 };

struct hook_options {
	struct shared_options shared;
	bool strict, all;
};

#define AT(member) offsetof(struct hook_options, member)
static const struct option_row rows[] = {
    ROW_ROOT,
    {"--strict", OPTION_FLAG, AT(strict), NULL, NULL,
     "install: also reject a commit that changes a definition which this machine cannot verify"},
    {"--all", OPTION_FLAG, AT(all), NULL, NULL,
     "install: verify every definition at each commit, and not only the definitions that the commit changes"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

struct place {
	struct repository repository;
	const char *folder; /* absolute path of the folder of hooks */
	const char *program;
	bool strict, all;
	struct arena *arena;
};

/* ---- the script -------------------------------------------------------------------------------------------------- */

/* Appends a word, quoted for a shell. */
static void put_word(struct buf *out, const char *text)
{
	buf_text(out, "'");
	for (; *text != '\0'; text++)
		if (*text == '\'')
			buf_text(out, "'\\''");
		else
			buf_add(out, text, 1);
	buf_text(out, "'");
}

/* Writes the hook's script without its first three lines. git runs a hook in the top folder of the current worktree. */
static void write_body(const struct place *place, const char *hook, struct buf *out)
{
	const char *prefix = place->repository.prefix;

	buf_text(out, "# `reftest hook uninstall` removes this hook. `git commit --no-verify` skips this hook.\n");
	buf_printf(out, "before=$(dirname \"$0\")/%s.%s\n", hook, aside);
	buf_text(out, "if [ -x \"$before\" ]; then \"$before\" \"$@\" || exit $?; fi\nroot=");
	put_word(out, prefix[0] != '\0' ? prefix : ".");
	/* `git ls-files` exits with 1 if the index has no definitions. `verify` reports every other error of git. */
	buf_text(
	    out,
	    "\n# If the index has no definitions, there is nothing to verify.\n"
	    "git --literal-pathspecs ls-files --error-unmatch -- \"$root/definitions\" >/dev/null 2>&1 || [ $? != 1 ] "
	    "|| exit 0\n"
	    "# In a sparse checkout the root may not exist, but verdicts are stored below it.\n"
	    "[ -d \"$root\" ] || mkdir -p \"$root\" || exit 1\n"
	    "reftest=");
	put_word(out, place->program);
	buf_printf(out,
		   "\n[ -x \"$reftest\" ] || reftest=$(command -v reftest) || {\n\techo 'reftest is no longer installed "
		   "here, so nothing was verified; git commit --no-verify skips this hook' >&2\n\texit 1\n}\n"
		   "\"$reftest\" verify --root \"$root\" --changed --staged --hook%s%s || exit $?\n",
		   place->strict ? " --strict" : "", place->all ? " --all" : "");
	/* `generate` reads the working tree. The hook can therefore check the commit only if the working tree equals
	 * the index. */
	buf_text(out,
		 "# Generated tests that the commit makes out of date are written, and must be added to it.\n"
		 "git --literal-pathspecs ls-files --error-unmatch -- \"$root/tests/references/conftest.py\" >/dev/null 2>&1 || exit 0\n"
		 "if git --literal-pathspecs diff --quiet -- \"$root/definitions\" \"$root/tests/references\"; then\n"
		 "\ttests=$(\"$reftest\" generate --root \"$root\" --hook 2>&1) || { code=$?; printf '%s\\n' \"$tests\" >&2; exit $code; }\n"
		 "else\n\techo 'reftest: the generated tests were not checked, because definitions/ or tests/references/ has changes "
		 "outside this commit' >&2\nfi\n");
}

static void write_script(const struct place *place, const char *hook, struct buf *out)
{
	struct buf body = {0};
	char hex[DIGEST_HEX];

	write_body(place, hook, &body);
	struct digest digest = digest_of(body.data, body.length);

	digest_hex(&digest, hex);
	buf_printf(out, "#!/bin/sh\n%s.\n%s%s\n%s", mark, digest_line, hex, body.data);
	buf_free(&body);
}

/* ---- where it belongs -------------------------------------------------------------------------------------------- */

static int find_place(struct program *program, struct place *place, struct err *err)
{
	static const char *const words[] = {"rev-parse", "--git-path", "hooks", NULL};
	char folder[PATH_MAX];
	struct buf text = {0};

	if (staged_root(program->root_given, program->root, sizeof program->root, err) < 0 ||
	    repository_find(program->root, &place->repository, err) < 0 ||
	    file_program_directory(folder, sizeof folder, err) < 0)
		return -1;
	int rc = git_output(&place->repository, words, PATH_MAX, &text, err);

	if (rc == 0) {
		text.data[strcspn(text.data, "\n")] = '\0';
		place->folder = text.data[0] == '/'
				    ? arena_string(place->arena, text.data)
				    : arena_printf(place->arena, "%s/%s", place->repository.top, text.data);
		place->program = arena_printf(place->arena, "%s/reftest", folder);
	}
	buf_free(&text);
	return rc;
}

/* Fails if core.hooksPath names a folder that all repositories of a user share, because a hook in this folder would run
 * in all of them. A relative path is accepted, because it names a folder of this repository alone. A path in this
 * repository's own configuration is also accepted. */
static int refuse_shared(const struct place *place, struct err *err)
{
	static const char *const words[] = {"config", "--show-scope", "--type=path", "--get", "core.hooksPath", NULL};
	struct buf text = {0};
	int rc = 0;

	/* If core.hooksPath is not set, git exits with an error, and there is nothing to refuse. */
	if (git_output(&place->repository, words, PATH_MAX, &text, NULL) == 0 &&
	    (strncmp(text.data, "global\t/", 8) == 0 || strncmp(text.data, "system\t/", 8) == 0))
		rc = err_set(err,
			     "%s contains the hooks of all your repositories (core.hooksPath in the %.6s "
			     "configuration), so nothing was installed. Let a hook there run `reftest verify "
			     "--changed --staged --hook`; or give this repository its own hooks, which git then "
			     "runs instead: git config core.hooksPath '%s/hooks' && reftest hook install",
			     place->folder, text.data, place->repository.common);
	buf_free(&text);
	return rc;
}

enum owned { OWNED_NONE, OWNED_OURS, OWNED_EDITED, OWNED_OTHERS };

static enum owned owner_of_text(const char *text)
{
	const char *second = strchr(text, '\n'), *third = second != NULL ? strchr(second + 1, '\n') : NULL;
	char hex[DIGEST_HEX] = "";
	struct digest noted, found;

	if (third == NULL || strncmp(second + 1, mark, strlen(mark)) != 0)
		return OWNED_OTHERS;
	const char *body = strchr(++third, '\n');

	if (strncmp(third, digest_line, strlen(digest_line)) != 0)
		return OWNED_OURS;
	snprintf(hex, sizeof hex, "%s", third + strlen(digest_line));
	if (body == NULL || !digest_parse(hex, &noted))
		return OWNED_EDITED;
	found = digest_of(body + 1, strlen(body + 1));
	return digest_equal(&noted, &found) ? OWNED_OURS : OWNED_EDITED;
}

/* Finds out whether reftest or the user wrote the hook at `path`. Returns -1 and sets `err` if the hook cannot be
 * read. */
static int owner_of(const char *path, struct buf *text, struct err *err)
{
	struct stat st;
	enum file_answer answer = file_read(AT_FDCWD, path, HOOK_BYTES, text, NULL, err);

	if (answer == FILE_ABSENT)
		return lstat(path, &st) == 0 ? OWNED_OTHERS : OWNED_NONE; /* a dangling symbolic link also counts as the
									   * user's hook */
	if (answer != FILE_OK)
		return -1;
	return (int)(text->length > 0 ? owner_of_text(text->data) : OWNED_OTHERS);
}

static int move(const char *from, const char *to, struct err *err)
{
	struct stat st;

	if (lstat(to, &st) == 0)
		return err_set(
		    err,
		    "%s exists: it is the hook that an earlier `reftest hook install` replaced; restore its old name, "
		    "or remove it",
		    to);
	return rename(from, to) < 0 ? err_errno(err, "cannot rename %s to %s", from, to) : 0;
}

/* ---- install, uninstall ------------------------------------------------------------------------------------------ */

/* Gives the user's hook at `path` a second name, `before`, as a hard link. A link is used so that `path` always has a
 * hook. The second name exists already if an earlier install was interrupted after this step. */
static int save_previous(const char *path, const char *before, struct err *err)
{
	struct stat one, two;

	if (lstat(path, &one) == 0 && lstat(before, &two) == 0 && one.st_ino == two.st_ino && one.st_dev == two.st_dev)
		return 0;
	if (lstat(before, &two) != 0 && link(path, before) == 0)
		return 0;
	/* renames the hook on a filesystem without hard links; sets `err` if another file has the second name */
	return move(path, before, err);
}

static int install_one(const struct place *place, const char *hook, struct err *err)
{
	const char *path = arena_printf(place->arena, "%s/%s", place->folder, hook);
	const char *before = arena_printf(place->arena, "%s.%s", path, aside);
	struct buf there = {0}, script = {0};
	int owner = owner_of(path, &there, err), rc = owner < 0 ? -1 : 0;

	if (owner == OWNED_EDITED)
		rc = err_set(err,
			     "%s was edited after reftest installed it, so the file is left unchanged; to install "
			     "the hook again, first move the file away",
			     path);
	if (owner == OWNED_OTHERS)
		rc = save_previous(path, before, err);
	if (rc == 0) {
		write_script(place, hook, &script);
		rc = file_replace_program(path, script.data, script.length, err);
		if (rc == 0 && chmod(path, 0755) < 0)
			rc = err_errno(err, "cannot make %s executable", path);
		if (rc < 0 && owner == OWNED_OTHERS && rename(before, path) == 0)
			unlink(before); /* if both names are links to one file, rename does not remove `before` */
	}
	if (rc >= 0)
		show_print(stdout, "%s %s%s\n", path, rc > 0 ? "installed" : "is already installed",
		       owner == OWNED_OTHERS ? "; the previous hook runs first" : "");
	buf_free(&there);
	buf_free(&script);
	return rc < 0 ? -1 : 0;
}

/* Replaces reftest's hook by the user's previous hook, in one step. */
static int uninstall_one(const struct place *place, const char *hook, struct err *err)
{
	const char *path = arena_printf(place->arena, "%s/%s", place->folder, hook);
	const char *before = arena_printf(place->arena, "%s.%s", path, aside);
	struct buf there = {0};
	struct stat st;
	int owner = owner_of(path, &there, err);
	bool chained = lstat(before, &st) == 0;

	buf_free(&there);
	if (owner < 0)
		return -1;
	if (owner == OWNED_OTHERS || owner == OWNED_EDITED) {
		show_print(stdout, "%s %s, so the file is left unchanged%s\n", path,
		       owner == OWNED_EDITED ? "was edited after reftest installed it" : "was not written by reftest",
		       chained ? ", and so is the previous hook" : "");
		return 0;
	}
	if (chained && rename(before, path) < 0)
		return err_errno(err, "cannot rename %s to %s", before, path);
	if (!chained && owner == OWNED_OURS && unlink(path) < 0)
		return err_errno(err, "cannot remove %s", path);
	if (owner == OWNED_OURS)
		show_print(stdout, "%s removed%s\n", path, chained ? "; the previous hook is restored" : "");
	return 0;
}

/* Calls `each` for every hook. First calls `check` if it is not NULL; `check` may reject the folder of hooks. */
static int act(struct program *program, const struct hook_options *o, int (*check)(const struct place *, struct err *),
	       int (*each)(const struct place *, const char *, struct err *), struct err *err)
{
	struct arena arena = {0};
	struct place place = {.arena = &arena, .strict = o->strict, .all = o->all};

	shared_options_root(&o->shared, program);
	int rc = find_place(program, &place, err);

	if (rc == 0 && check != NULL)
		rc = check(&place, err);
	for (int i = 0; i < HOOKS && rc == 0; i++)
		rc = each(&place, hooks[i], err);
	arena_free(&arena);
	return rc == 0 ? EXIT_VERIFIED : EXIT_USAGE;
}

/* Prints how many definitions in git's index have no verdict. The hook verifies such a definition only when a commit
 * changes it. */
static void tell_unknown(struct program *program)
{
	const struct run_options options = {.cases = case_options_default()};
	const struct unchanged_counts unchanged = hook_result_unchanged(program, &options, NULL);
	const int64_t count = unchanged.unknown + unchanged.failed;

	if (count > 0)
		show_print(stdout,
			   "%" PRId64 " of %" PRId64 " definitions %s not verified; `reftest verify` verifies %s. The "
			   "hook verifies only the definitions that a commit changes\n",
			   count, unchanged.definitions, count == 1 ? "is" : "are", count == 1 ? "it" : "them");
}

static int run_install(struct program *program, const void *options, const struct words *names, struct err *err)
{
	const struct hook_options *o = options;

	(void)names;
	int code = act(program, options, refuse_shared, install_one, err);

	if (code == EXIT_VERIFIED && !o->all)
		tell_unknown(program);
	return code;
}

static int run_uninstall(struct program *program, const void *options, const struct words *names, struct err *err)
{
	(void)names;
	return act(program, options, NULL, uninstall_one, err);
}

static const struct subcommand subcommands[] = {
    {"install", "", "install the hooks", 0, 0, run_install},
    {"uninstall", "", "remove the hooks, and restore the hooks that they replaced", 0, 0, run_uninstall},
};
enum { SUBCOMMANDS = sizeof subcommands / sizeof subcommands[0] };

static int start(struct program *program, int argc, char **argv)
{
	struct hook_options o = {.shared = shared_options_default()};
	struct command_line line;
	const struct subcommand *sub = NULL;

	if (command_line_begin(&line, &command_hook, argc, argv, &o))
		sub = command_line_subcommand(&line);
	if (sub != NULL) {
		fold_output();
		line.code = sub->run(program, &o, &line.names, &line.err);
	}
	return command_line_end(&line);
}

const struct command command_hook = {
    .name = "hook",
    .summary = "install or remove the git hooks that verify each commit",
    .synopsis = "[options] install | uninstall",
    .description =
	"The hooks pre-commit and pre-merge-commit run `reftest verify --changed --staged --hook`, which verifies the "
	"definitions that a commit changes. If tests were generated, the hooks also update the generated tests. The hooks are "
	"written to the folder in which git looks for hooks. An existing hook is kept and runs first. `uninstall` leaves hooks "
	"of other programs and edited hooks unchanged.",
    .rows = rows,
    .row_count = ROWS,
    .subcommands = subcommands,
    .subcommand_count = SUBCOMMANDS,
    .run = start,
};
