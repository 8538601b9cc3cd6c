/* objects - runs git. It reads objects by their ids, lists the entries of an index that git/index.h cannot parse, and
 * returns the output of other git commands. One process of `git cat-file --batch` reads all objects of a run. The
 * process starts when the first object is needed, and must not fetch missing objects from a remote. */
#ifndef REFTEST_GIT_OBJECTS_H
#define REFTEST_GIT_OBJECTS_H

#include <sys/types.h>

#include "base/buf.h"
#include "git/index.h"
#include "git/repository.h"

struct git {
	pid_t process; /* 0: no process was started */
	int in, out;   /* the pipe to git's standard input, and the pipe from its standard output; owned */
};

/* Starts git in the repository with the arguments `words`; the last word is followed by NULL. Returns 0, or -1 and sets
 * `err` if git cannot be started. */
int git_start(struct git *git, const struct repository *repository, const char *const *words, struct err *err);

/* Closes the pipes and waits for the process. Returns the exit status of git, or -1 if no process was started or a
 * signal killed it. */
int git_end(struct git *git);

/* Runs a git command and replaces the contents of `out` with its output. Returns 0. Returns -1 and sets `err` if the
 * command fails or prints more than `limit` bytes. */
int git_output(const struct repository *repository, const char *const *words, size_t limit, struct buf *out,
	       struct err *err);

/* Reads the content of an object from the process `git`, which is started if necessary. `path` is the name of the file
 * with this content, for error messages. Returns 0 on success. Returns -1 and sets `err` on error, or if the content
 * has more than `limit` bytes. Returns 1 and sets `err` if the repository is a partial clone that does not have the
 * content. */
int git_object(struct git *git, const struct repository *repository, const unsigned char *object, const char *path,
	       size_t limit, struct buf *out, struct err *err);

/* Reads the index of the repository from its file. If index_parse does not support the file's format, runs `git
 * ls-files` instead. The paths of the entries may point into `bytes`. A missing index file counts as an empty index.
 * Returns 0, or -1 and sets `err`. */
int git_index(const struct repository *repository, struct buf *bytes, struct arena *arena, struct index *out,
	      struct err *err);

#endif
