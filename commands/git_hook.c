/* hook - git hooks that verify what is about to be committed: put where git looks for them (core.hooksPath, the folder
 * that worktrees share), in front of whatever is there, and taken away again with everything as it was.
 *
 * A hook that is there already is renamed and run first; what it says no to is not verified. Ours is known by its
 * second line and a digest of what follows the third, so one that somebody put over it, or edited, is left alone and
 * named. */
#include "commands/command.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "commands/options.h"
#include "commands/staged.h"
#include "git/objects.h"

/* A merge that git commits by itself runs the second one. */
static const char *const hooks[] = {"pre-commit", "pre-merge-commit"};
static const char mark[] = "# reftest hook: verifies what is about to be committed";
static const char digest_line[] = "# reftest-hook: "; /* of those that older versions wrote there is none */
static const char aside[] = "before-reftest";

enum { HOOKS = sizeof hooks / sizeof *hooks, HOOK_BYTES = 1 << 20 };

struct hook_options {
	const char *root;
	bool strict;
};

#define AT(member) offsetof(struct hook_options, member)
static const struct option_row rows[] = {
    {"--root", OPTION_TEXT, AT(root), "DIR", "the dataset"},
    {"--strict", OPTION_FLAG, AT(strict), NULL,
     "install: also refuse commits that change what cannot be verified on this machine"},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

struct place {
	struct repository repository;
	const char *folder; /* of the hooks; absolute */
	const char *program;
	bool strict;
	struct arena *arena;
};

/* ---- the script -----------------------------------------------------------------------------------------------------
 */

/* As one word of a shell. */
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

/* Git runs it at the top of the working tree, whichever of its worktrees that is. */
static void write_body(const struct place *place, const char *hook, struct buf *out)
{
	const char *prefix = place->repository.prefix;

	buf_text(out, "# `reftest hook uninstall` takes it away. A commit with --no-verify goes past it.\n");
	buf_printf(out, "before=$(dirname \"$0\")/%s.%s\n", hook, aside);
	buf_text(out, "if [ -x \"$before\" ]; then \"$before\" \"$@\" || exit $?; fi\nroot=");
	put_word(out, prefix[0] != '\0' ? prefix : ".");
	/* 1: the index lists none. Whatever else git has to say, `verify` tells. */
	buf_text(
	    out,
	    "\n# of a commit without definitions there is nothing to verify\n"
	    "git --literal-pathspecs ls-files --error-unmatch -- \"$root/definitions\" >/dev/null 2>&1 || [ $? != 1 ] "
	    "|| exit 0\n"
	    "# the index may hold what the working tree does not (a sparse checkout); the verdicts are kept there\n"
	    "[ -d \"$root\" ] || mkdir -p \"$root\" || exit 1\n"
	    "reftest=");
	put_word(out, place->program);
	buf_printf(out,
		   "\n[ -x \"$reftest\" ] || reftest=$(command -v reftest) || {\n"
		   "\techo 'there is no reftest here any more, so nothing was verified; git commit --no-verify goes "
		   "past this' >&2\n\texit 1\n}\n"
		   "exec \"$reftest\" verify --root \"$root\" --changed --staged --hook%s\n",
		   place->strict ? " --strict" : "");
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

/* ---- where it belongs -----------------------------------------------------------------------------------------------
 */

static int find_place(struct reftest *reftest, struct place *place, struct err *err)
{
	static const char *const words[] = {"rev-parse", "--git-path", "hooks", NULL};
	char program[PATH_MAX];
	struct buf text = {0};

	if (staged_root(reftest->root_given, reftest->root, sizeof reftest->root, err) < 0 ||
	    repository_find(reftest->root, &place->repository, err) < 0 ||
	    file_program_directory(program, sizeof program, err) < 0)
		return -1;
	int rc = git_output(&place->repository, words, PATH_MAX, &text, err);

	if (rc == 0) {
		text.data[strcspn(text.data, "\n")] = '\0';
		place->folder = text.data[0] == '/'
				    ? arena_string(place->arena, text.data)
				    : arena_printf(place->arena, "%s/%s", place->repository.top, text.data);
		place->program = arena_printf(place->arena, "%s/reftest", program);
	}
	buf_free(&text);
	return rc;
}

/* Git may be told to look for the hooks of every repository of somebody in one folder. A hook that is put there would run
 * in all of them; a path relative to each repository, or one that this repository's own configuration names, is its own. */
static int refuse_shared(const struct place *place, struct err *err)
{
	static const char *const words[] = {"config", "--show-scope", "--type=path", "--get", "core.hooksPath", NULL};
	struct buf text = {0};
	int rc = 0;

	/* It fails if nothing is configured. */
	if (git_output(&place->repository, words, PATH_MAX, &text, NULL) == 0 &&
	    (strncmp(text.data, "global\t/", 8) == 0 || strncmp(text.data, "system\t/", 8) == 0))
		rc = err_set(err,
			     "%s is where git looks for hooks in all of your repositories (core.hooksPath of the %.6s "
			     "configuration), so nothing was installed. Let a hook there run `reftest verify --changed "
			     "--staged --hook`; or give this repository hooks of its own, which git then runs instead "
			     "of those: git config core.hooksPath '%s/hooks' && reftest hook install",
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

/* Whose is the hook at `path`? -1 with a sentence when that cannot be told. */
static int owner_of(const char *path, struct buf *text, struct err *err)
{
	struct stat st;
	enum file_answer answer = file_read(AT_FDCWD, path, HOOK_BYTES, text, NULL, err);

	if (answer == FILE_ABSENT)
		return lstat(path, &st) == 0 ? OWNED_OTHERS : OWNED_NONE; /* a link to nothing is somebody's still */
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
		    "%s is in the way: it is the hook that was there before an earlier install; put it where it "
		    "belongs, or remove it",
		    to);
	return rename(from, to) < 0 ? err_errno(err, "%s cannot be renamed to %s", from, to) : 0;
}

/* ---- install, uninstall ---------------------------------------------------------------------------------------------
 */

/* Gives the hook at `path` a second name, so that there is one that git runs at every moment. An install that died
 * after this has done it already. */
static int keep_aside(const char *path, const char *before, struct err *err)
{
	struct stat one, two;

	if (lstat(path, &one) == 0 && lstat(before, &two) == 0 && one.st_ino == two.st_ino && one.st_dev == two.st_dev)
		return 0;
	if (lstat(before, &two) != 0 && link(path, before) == 0)
		return 0;
	return move(path, before, err); /* a filesystem without second names; or the sentence what is in the way */
}

static int install_one(const struct place *place, const char *hook, struct err *err)
{
	const char *path = arena_printf(place->arena, "%s/%s", place->folder, hook);
	const char *before = arena_printf(place->arena, "%s.%s", path, aside);
	struct buf there = {0}, script = {0};
	int owner = owner_of(path, &there, err), rc = owner < 0 ? -1 : 0;

	if (owner == OWNED_EDITED)
		rc = err_set(err,
			     "%s was edited since reftest installed it, so it is left as it is; to have it anew, move it "
			     "away and install again",
			     path);
	if (owner == OWNED_OTHERS)
		rc = keep_aside(path, before, err);
	if (rc == 0) {
		write_script(place, hook, &script);
		rc = file_replace_program(path, script.data, script.length, err);
		if (rc == 0 && chmod(path, 0755) < 0)
			rc = err_errno(err, "%s cannot be made executable", path);
		if (rc < 0 && owner == OWNED_OTHERS && rename(before, path) == 0)
			unlink(before); /* of two names of one file rename leaves both */
	}
	if (rc >= 0)
		printf("%s %s%s\n", path, rc > 0 ? "installed" : "is installed already",
		       owner == OWNED_OTHERS ? "; the hook that was there is run first" : "");
	buf_free(&there);
	buf_free(&script);
	return rc < 0 ? -1 : 0;
}

/* Ours goes, and the one that was there before takes its place, in one step. */
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
		printf("%s %s, so it is left as it is%s\n", path,
		       owner == OWNED_EDITED ? "was edited since reftest installed it" : "is not reftest's",
		       chained ? ", and so is the hook that reftest put aside" : "");
		return 0;
	}
	if (chained && rename(before, path) < 0)
		return err_errno(err, "%s cannot be renamed to %s", before, path);
	if (!chained && owner == OWNED_OURS && unlink(path) < 0)
		return err_errno(err, "%s cannot be removed", path);
	if (owner == OWNED_OURS)
		printf("%s removed%s\n", path, chained ? "; the hook that was there before is back" : "");
	return 0;
}

static int act(struct reftest *reftest, const char *what, bool strict, struct err *err)
{
	struct arena arena = {0};
	struct place place = {.arena = &arena, .strict = strict};
	bool install = strcmp(what, "install") == 0;
	int rc = find_place(reftest, &place, err);

	if (rc == 0 && install)
		rc = refuse_shared(&place, err);
	for (int i = 0; i < HOOKS && rc == 0; i++)
		rc = (install ? install_one : uninstall_one)(&place, hooks[i], err);
	arena_free(&arena);
	return rc == 0 ? EXIT_VERIFIED : EXIT_USAGE;
}

int command_hook(struct reftest *reftest, int argc, char **argv)
{
	struct hook_options o = {.root = NULL};
	struct told told;

	if (options_begin(&told, "hook [options] install | uninstall", rows, ROWS, argc, argv, &o)) {
		const char *word = told.names.count == 1 ? told.names.items[0] : "";

		if (strcmp(word, "install") != 0 && strcmp(word, "uninstall") != 0) {
			err_set(&told.err, "hook takes one word: install or uninstall");
		} else {
			reftest->root_given = o.root != NULL ? o.root : reftest->root_given;
			told.code = act(reftest, word, o.strict, &told.err);
		}
	}
	return options_end(&told);
}
