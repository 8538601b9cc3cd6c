/* objects - what only git can tell: contents by their names, and the answers of its commands. One `git cat-file
 * --batch` serves a whole run, started when the first content is asked for. Nothing is fetched from a remote for us. */
#ifndef REFTEST_GIT_OBJECTS_H
#define REFTEST_GIT_OBJECTS_H

#include <sys/types.h>

#include "base/buf.h"
#include "git/index.h"
#include "git/repository.h"

/* A git that runs. {0} is none. */
struct git {
	pid_t process; /* 0: none */
	int in, out;   /* its standard input, its standard output; owned */
};

/* Runs git in the repository with these words (NULL ends them). -1: it cannot be started. */
int git_start(struct git *git, const struct repository *repository, const char *const *words, struct err *err);

/* Closes what leads to it and waits for its end. Its exit status; -1: none was started, or a signal ended it. */
int git_end(struct git *git);

/* What such a git prints, at most `limit` bytes of it, into `out` (replaced). 0, or -1 with a sentence when it fails.
 */
int git_output(const struct repository *repository, const char *const *words, size_t limit, struct buf *out,
	       struct err *err);

/* The content of an object, through `git`, which is started if it is none yet. More than `limit` bytes is an error. -1
 * with a sentence that begins with `path`, for which it is wanted; 1 with one: a partial clone left it on its remote. */
int git_object(struct git *git, const struct repository *repository, const unsigned char *object, const char *path,
	       size_t limit, struct buf *out, struct err *err);

/* The index of the repository, from its file or, if that is of a form not read here, from git. The paths of the entries
 * may point into `bytes`. No file is an empty index. -1 with a sentence. */
int git_index(const struct repository *repository, struct buf *bytes, struct arena *arena, struct index *out,
	      struct err *err);

#endif
