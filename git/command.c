#include "git/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

extern char **environ;

enum { WORDS_MOST = 64, PRINTED_MOST = 256 << 20 };

/* The settings of every git command. Hooks are turned off, because a hook from the user's template directory could run
 * any program. Git's maintenance in the background is turned off, because it could go on after the git command has
 * ended and reftest has released its lock. */
static const char *const settings[] = {
    "core.hooksPath=/dev/null", "gc.auto=0",		  "maintenance.auto=false",
    "submodule.recurse=false",  "advice.detachedHead=false", "protocol.ext.allow=never",
};

/* Returns whether the variable must not be in git's environment: it describes one repository, or changes the effect of
 * reftest's git commands. */
static bool is_dropped(const char *variable)
{
	static const char *const kept[] = {"GIT_SSL_", "GIT_SSH", "GIT_HTTP_", "GIT_PROXY_", "GIT_CONFIG_GLOBAL=",
					   "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM=", "GIT_EXEC_PATH=",
					   "GIT_TRACE", "GIT_CURL_VERBOSE="};

	if (strncmp(variable, "GIT_", 4) != 0)
		return false;
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
			return false;
	return true;
}

static char **make_environment(const struct git_command *git, struct arena *arena)
{
	size_t count = 0, kept = 0;

	while (environ[count] != NULL)
		count++;
	char **all = arena_array(arena, count + 7, sizeof *all);

	for (size_t i = 0; i < count; i++)
		if (!is_dropped(environ[i]))
			all[kept++] = environ[i];
	all[kept++] = arena_string(arena, "GIT_TERMINAL_PROMPT=0");
	all[kept++] = arena_string(arena, "LC_ALL=C");
	all[kept++] = arena_string(arena, "GIT_NO_REPLACE_OBJECTS=1"); /* as in git/objects.c */
	all[kept++] = arena_string(arena, "GIT_OPTIONAL_LOCKS=0"); /* without this variable, a killed `git status` would
								    * leave a lock file */
	if (!git->lfs)
		all[kept++] = arena_string(arena, "GIT_LFS_SKIP_SMUDGE=1");
	if (git->index != NULL)
		all[kept++] = arena_printf(arena, "GIT_INDEX_FILE=%s", git->index);
	return all;
}

static char **make_arguments(const struct git_command *git, const char *const *words, struct arena *arena)
{
	char **all = arena_array(arena, WORDS_MOST + 2 * (sizeof settings / sizeof *settings) + 6, sizeof *all);
	int count = 0;

	all[count++] = arena_string(arena, "git");
	if (git->folder != NULL) {
		all[count++] = arena_string(arena, "-C");
		all[count++] = arena_string(arena, git->folder);
		all[count++] = arena_string(arena, "--git-dir=.git");
		all[count++] = arena_string(arena, "--work-tree=.");
	}
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		all[count++] = arena_string(arena, "-c");
		all[count++] = arena_string(arena, settings[i]);
	}
	for (int i = 0; words[i] != NULL && i < WORDS_MOST; i++)
		all[count++] = arena_string(arena, words[i]);
	return all;
}

/* The child process runs this function. Restores the default action of every signal that reftest ignores, and unblocks
 * all signals. */
static void become_git(char **arguments, char **environment, int in, int out, int said, int inherited)
{
	sigset_t none;

	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	environ = environment;
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0 ||
	    (inherited >= 0 && fcntl(inherited, F_SETFD, 0) < 0))
		_exit(127);
	execvp("git", arguments);
	_exit(127);
}

/* Reads the whole file into `to`, and appends a NUL. */
static void read_printed(int fd, struct buf *to)
{
	ssize_t n = 1;

	buf_clear(to);
	while (n > 0 && to->length < PRINTED_MOST) {
		buf_reserve(to, 64 * 1024);
		n = pread(fd, to->data + to->length, 64 * 1024 - 1, (off_t)to->length);
		to->length += n > 0 ? (size_t)n : 0;
	}
	buf_text(to, "");
}

static int wait_for(pid_t process)
{
	int status = 0;

	while (waitpid(process, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int git_run(struct git_command *git, const char *const *words, struct err *err)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out = memfd_create("git-out", MFD_CLOEXEC),
	    said = memfd_create("git-said", MFD_CLOEXEC), status = -1;
	struct arena arena = {0};
	char **arguments = make_arguments(git, words, &arena), **environment = make_environment(git, &arena);
	pid_t process = in < 0 || out < 0 || said < 0 ? -1 : fork();

	if (process == 0)
		become_git(arguments, environment, in, out, said, git->inherited);
	if (process < 0)
		err_errno(err, "cannot start git");
	else if ((status = wait_for(process)) == 127)
		status = err_set(err, "cannot start git; check that it is installed");
	if (process > 0) {
		read_printed(out, &git->out);
		read_printed(said, &git->said);
	}
	for (int i = 0; i < 3; i++)
		if ((const int[]){in, out, said}[i] >= 0)
			close((const int[]){in, out, said}[i]);
	arena_free(&arena);
	return status;
}

const char *git_said(struct git_command *git)
{
	char *found = git->said.data, *line = git->said.data;

	if (git->said.length == 0)
		return "";
	for (char *next; line != NULL && *line != '\0'; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		found = line;
		if (strncmp(line, "fatal: ", 7) == 0 || strncmp(line, "error: ", 7) == 0)
			return line + 7;
	}
	return found;
}

void git_command_free(struct git_command *git)
{
	buf_free(&git->out);
	buf_free(&git->said);
}
