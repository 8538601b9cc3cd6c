/* objects - runs git to read contents by object id, to list the entries of an index that git/index.h cannot parse, and
 * to get the output of other git commands. A single process of `git cat-file --batch` reads all contents of a run. It
 * is started at the first request. git is not allowed to fetch missing contents from a git remote. */
#ifndef REFTEST_GIT_OBJECTS_H
#define REFTEST_GIT_OBJECTS_H

#include <sys/types.h>

#include "base/buf.h"
#include "git/index.h"
#include "git/repository.h"

/* A git process and the pipes to it. */
struct git {
	pid_t process; /* 0: no process was started */
	int in, out;   /* the ends of two pipes, to git's standard input and from git's standard output; owned */
};

/* Starts git in the repository with the arguments `words`, which end with NULL. Returns 0, or -1 and sets `err` if git
 * cannot be started. */
int git_start(struct git *git, const struct repository *repository, const char *const *words, struct err *err);

/* Closes the pipes and waits for the process. Returns the exit status of git, or -1 if no process was started or a
 * signal killed it. */
int git_end(struct git *git);

/* Runs a git command and replaces the contents of `out` with its output. Returns 0. Returns -1 and sets `err` if the
 * command fails or prints more than `limit` bytes. */
int git_output(const struct repository *repository, const char *const *words, size_t limit, struct buf *out,
	       struct err *err);

/* Reads the content of an object from the process `git`, which is started if necessary. `path` is the file that has
 * this content; only messages use it. Returns 0 on success. Returns -1 and sets `err` on error, or if the content has
 * more than `limit` bytes. Returns 1 and sets `err` if the repository is a partial clone that does not have the
 * content. */
int git_object(struct git *git, const struct repository *repository, const unsigned char *object, const char *path,
	       size_t limit, struct buf *out, struct err *err);

/* Reads the index of the repository from the index file or, if index_parse does not support its format, from `git
 * ls-files`. The paths of the entries may point into `bytes`. A missing index file counts as an empty index. Returns 0,
 * or -1 and sets `err`. */
int git_index(const struct repository *repository, struct buf *bytes, struct arena *arena, struct index *out,
	      struct err *err);

#endif
