/* command - runs a git command that may change a repository or contact a server, and keeps its output.
 *
 * git runs as a child process, never through a shell. When reftest's process ends, git gets the signal SIGKILL. The git
 * process runs no hooks, starts no work in the background and asks no questions. Environment variables that name a
 * repository are removed. */
#ifndef REFTEST_GIT_COMMAND_H
#define REFTEST_GIT_COMMAND_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct git_command {
	const char *folder; /* the working tree; its repository is folder/.git; NULL: the command has no repository */
	const char *index;  /* the file of the index; NULL: the index of the repository itself */
	bool lfs;	    /* true: git-lfs may replace LFS pointers by file contents */
	int inherited;	    /* a file descriptor that git and its children inherit, such as a lock; -1: none */
	struct buf out;	    /* what git printed on standard output, NUL-terminated; git_command_free frees it */
	struct buf said;    /* what git printed on standard error */
};

/* Runs `git WORDS…`; `words` ends with NULL. Replaces the contents of `out` and `said`. Returns git's exit status, or
 * 128 + N if signal N killed git. Returns -1 and sets `err` if git cannot be started. */
int git_run(struct git_command *git, const char *const *words, struct err *err);

/* Returns the first line on git's standard error that begins with "fatal: " or "error: ", without this prefix. If there
 * is no such line, returns the last line. The result has no line end. The returned text is a part of `said`, which the
 * function splits into lines. Returns "" if git printed nothing on standard error. */
const char *git_said(struct git_command *git);

void git_command_free(struct git_command *git);

#endif
