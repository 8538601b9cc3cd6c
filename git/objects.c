#include "git/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

extern char **environ;

enum { WORDS = 16, WORDS_OURS = 6, LISTING_BYTES = 1 << 30, INDEX_BYTES = 1 << 30 };

/* ---- running git ------------------------------------------------------------------------------------------------ */

/* Returns whether `git rev-parse --local-env-vars` lists the variable. The listed variables describe one repository,
 * and a git process in another repository must not get them. */
static bool is_local(const char *variable)
{
	static const char *const names[] = {"GIT_ALTERNATE_OBJECT_DIRECTORIES",
					    "GIT_CONFIG",
					    "GIT_CONFIG_PARAMETERS",
					    "GIT_CONFIG_COUNT",
					    "GIT_OBJECT_DIRECTORY",
					    "GIT_DIR",
					    "GIT_WORK_TREE",
					    "GIT_IMPLICIT_WORK_TREE",
					    "GIT_GRAFT_FILE",
					    "GIT_INDEX_FILE",
					    "GIT_NO_REPLACE_OBJECTS",
					    "GIT_REPLACE_REF_BASE",
					    "GIT_PREFIX",
					    "GIT_SHALLOW_FILE",
					    "GIT_COMMON_DIR"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = strlen(names[i]);

		if (strncmp(variable, names[i], length) == 0 && variable[length] == '=')
			return true;
	}
	return false;
}

/* Returns whether reftest sets this variable in make_environment, or passes to git a command-line option with the same
 * effect. */
static bool is_ours(const char *variable)
{
	static const char *const names[] = {"GIT_INDEX_FILE=", "GIT_PREFIX=", "GIT_DIR=", "GIT_WORK_TREE=",
					    "GIT_NO_REPLACE_OBJECTS="};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Returns the environment for git, allocated in `arena` and terminated by NULL. Git must not replace objects
 * (refs/replace): the name of an object says what a commit contains, and stored verdicts count as long as it is the
 * same. */
static char **make_environment(const struct repository *repository, struct arena *arena)
{
	size_t count = 0, kept = 0;

	while (environ[count] != NULL)
		count++;
	char **all = arena_array(arena, count + 8, sizeof *all);

	for (size_t i = 0; i < count; i++)
		if (!is_ours(environ[i]) && (repository->environment || !is_local(environ[i])))
			all[kept++] = environ[i];
	all[kept++] = arena_printf(arena, "GIT_INDEX_FILE=%s", repository->index);
	all[kept++] = arena_string(arena, "GIT_OPTIONAL_LOCKS=0");
	all[kept++] = arena_string(arena, "GIT_NO_LAZY_FETCH=1");
	all[kept++] = arena_string(arena, "GIT_NO_REPLACE_OBJECTS=1");
	all[kept++] = arena_string(arena, "GIT_TERMINAL_PROMPT=0");
	return all;
}

static int spawn(struct git *git, const struct repository *repository, const char *const *words, int in, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	struct arena arena = {0};
	char **argv = arena_array(&arena, WORDS + WORDS_OURS, sizeof *argv);
	sigset_t none, pipe_signal;
	int count = 0, rc;

	argv[count++] = arena_string(&arena, "git");
	argv[count++] = arena_string(&arena, "-C");
	argv[count++] = arena_string(&arena, repository->top);
	argv[count++] = arena_printf(&arena, "--git-dir=%s", repository->directory);
	argv[count++] = arena_printf(&arena, "--work-tree=%s", repository->top);
	for (int i = 0; words[i] != NULL && i < WORDS; i++)
		argv[count++] = arena_string(&arena, words[i]);
	sigemptyset(&none);
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE); /* git gets the default action of SIGPIPE, which reftest itself ignores */
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &pipe_signal);
	posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (repository->partial && strcmp(words[0], "cat-file") == 0) /* discard standard error, where git prints two
								       * lines for each missing object */
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(&git->process, "git", &actions, &attributes, argv, make_environment(repository, &arena));
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	arena_free(&arena);
	return rc;
}

int git_start(struct git *git, const struct repository *repository, const char *const *words, struct err *err)
{
	int in[2], out[2];

	*git = (struct git){0};
	if (pipe2(in, O_CLOEXEC) < 0)
		return err_errno(err, "cannot open a pipe to git");
	if (pipe2(out, O_CLOEXEC) < 0) {
		close(in[0]);
		close(in[1]);
		return err_errno(err, "cannot open a pipe to git");
	}
	int rc = spawn(git, repository, words, in[0], out[1]);

	close(in[0]);
	close(out[1]);
	git->in = in[1];
	git->out = out[0];
	if (rc == 0)
		return 0;
	close(in[1]);
	close(out[0]);
	*git = (struct git){0};
	errno = rc;
	return err_errno(err, "cannot start git; check that it is installed");
}

int git_end(struct git *git)
{
	int status = -1;

	if (git->process == 0)
		return -1;
	close(git->in);
	close(git->out);
	while (waitpid(git->process, &status, 0) < 0 && errno == EINTR)
		;
	*git = (struct git){0};
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static ssize_t read_some(int fd, void *bytes, size_t room)
{
	ssize_t n;

	while ((n = read(fd, bytes, room)) < 0 && errno == EINTR)
		;
	return n;
}

int git_output(const struct repository *repository, const char *const *words, size_t limit, struct buf *out,
	       struct err *err)
{
	struct git git;
	ssize_t n = -1;

	buf_clear(out);
	if (git_start(&git, repository, words, err) < 0)
		return -1;
	close(git.in);
	git.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (out->length <= limit) {
		buf_reserve(out, 64 * 1024);
		n = read_some(git.out, out->data + out->length, out->room - out->length - 1);
		if (n <= 0)
			break;
		out->length += (size_t)n;
	}
	buf_text(out, ""); /* appends the terminating NUL */
	int status = git_end(&git);

	if (n == 0 && status == 0)
		return 0;
	return err_set(err, "`git %s` failed with exit status %d; the messages of git are above", words[0], status);
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static void put_hex(const unsigned char *object, int bytes, char *out)
{
	for (int i = 0; i < bytes; i++)
		snprintf(out + 2 * i, 3, "%02x", object[i]);
}

static bool read_all(int fd, char *bytes, size_t length)
{
	for (size_t done = 0; done < length;) {
		ssize_t n = read_some(fd, bytes + done, length - done);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* Reads a line of at most `room` - 1 bytes, byte by byte, because the bytes after the line must stay unread. */
static bool read_line(int fd, char *line, size_t room)
{
	for (size_t i = 0; i < room; i++) {
		if (!read_all(fd, line + i, 1))
			return false;
		if (line[i] == '\n') {
			line[i] = '\0';
			return true;
		}
	}
	return false;
}

/* Reads an answer of `git cat-file --batch`: the line "OBJECT blob SIZE" and the content, or the line "OBJECT missing".
 * If a partial clone lacks the content, some versions of git exit without an answer. */
static int read_answer(struct git *git, const char *name, bool partial, const char *path, size_t limit,
		       struct buf *out, struct err *err)
{
	char line[256], end;
	size_t length = strlen(name), size;
	bool answers = read_line(git->out, line, sizeof line);

	if (!answers)
		git_end(git);
	if (partial && (!answers || strcmp(line + strcspn(line, " "), " missing") == 0)) {
		err_set(err,
			"%s: this partial clone does not have the content of the file; fetch the content with `git "
			"cat-file -e %s`",
			path, name);
		return 1;
	}
	if (!answers)
		return err_set(err, "%s: git exited instead of returning the content of the file", path);
	if (strncmp(line, name, length) != 0 || strncmp(line + length, " blob ", 6) != 0)
		return err_set(err, "%s: git does not have the object %.12s, which holds the content of this file (git "
				    "says '%s'); run `git fsck` to find the cause",
			       path, name, line + (strlen(line) > length ? length + 1 : 0));
	size = strtoull(line + length + 6, NULL, 10);
	if (size > limit)
		return err_set(err, "%s: the content in git's index has %zu bytes, more than the limit of %zu", path,
			       size, limit);
	buf_reserve(out, size + 1);
	if (!read_all(git->out, out->data, size) || !read_all(git->out, &end, 1) || end != '\n')
		return err_set(err, "%s: git exited before it had returned the whole content of the file", path);
	out->length = size;
	out->data[size] = '\0';
	return 0;
}

int git_object(struct git *git, const struct repository *repository, const unsigned char *object, const char *path,
	       size_t limit, struct buf *out, struct err *err)
{
	static const char *const words[] = {"cat-file", "--batch", NULL};
	char name[2 * OBJECT_BYTES + 2] = "";

	buf_clear(out);
	if (git->process == 0 && git_start(git, repository, words, err) < 0)
		return -1;
	put_hex(object, repository->object_bytes, name);
	strcat(name, "\n");
	if (!file_write_all(git->in, name, strlen(name))) {
		git_end(git);
		return err_set(err, "%s: git exited before the content of the file was requested", path);
	}
	name[strlen(name) - 1] = '\0';
	int rc = read_answer(git, name, repository->partial, path, limit, out, err);

	if (rc < 0)
		git_end(git); /* end git, because the rest of its output would be mistaken for the next answer */
	return rc;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Removes the entries that `git add --intent-to-add` made, because `git ls-files` lists them as empty files. */
static int drop_announced(const struct repository *repository, struct arena *arena, struct index *index,
			  struct err *err)
{
	static const char *const words[] = {"diff-files", "--name-only", "--diff-filter=A", "-z", NULL};
	struct index_entry *kept = arena_array(arena, (size_t)index->count, sizeof *kept);
	struct buf text = {0};
	size_t at = 0;
	int count = 0;

	if (git_output(repository, words, LISTING_BYTES, &text, err) < 0) {
		buf_free(&text);
		return -1;
	}
	for (int i = 0; i < index->count; i++) { /* the index and git's output are sorted by path */
		while (at < text.length && strcmp(text.data + at, index->entries[i].path) < 0)
			at += strlen(text.data + at) + 1;
		if (at >= text.length || strcmp(text.data + at, index->entries[i].path) != 0)
			kept[count++] = index->entries[i];
	}
	*index = (struct index){kept, count};
	buf_free(&text);
	return 0;
}

static int list_index(const struct repository *repository, struct buf *bytes, struct arena *arena, struct index *out,
		      struct err *err)
{
	static const char *const words[] = {"ls-files", "-t", "--stage", "-z", NULL};

	if (git_output(repository, words, LISTING_BYTES, bytes, err) < 0 ||
	    index_parse_listing(bytes->data, bytes->length, repository->object_bytes, arena, out, err) < 0)
		return -1;
	return drop_announced(repository, arena, out, err);
}

int git_index(const struct repository *repository, struct buf *bytes, struct arena *arena, struct index *out,
	      struct err *err)
{
	struct err why = {""};
	enum file_answer answer = file_read(AT_FDCWD, repository->index, INDEX_BYTES, bytes, NULL, err);

	*out = (struct index){0};
	if (answer != FILE_OK)
		return answer == FILE_ABSENT ? 0 : -1;
	switch (index_parse(bytes->data, bytes->length, repository->object_bytes, arena, out, &why)) {
	case INDEX_OK:
		return 0;
	case INDEX_BAD:
		return err_set(err, "%s is not a git index: %s", repository->index, why.text);
	case INDEX_OTHER:
		break;
	}
	return list_index(repository, bytes, arena, out, err);
}
