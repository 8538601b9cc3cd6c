/* cached_run - plans a run without executing a case, for the commands that show the cases of a dataset or the contents
 * of the cache. */
#ifndef REFTEST_CLI_CACHED_RUN_H
#define REFTEST_CLI_CACHED_RUN_H

#include "base/buf.h"
#include "cli/options.h"
#include "engine/run.h"

struct cached_run {
	struct run_options options; /* cached_run sets `cached_only`, `dry_run` and `each` */
	const struct words *names, *op_types; /* select definitions; NULL: all definitions */
	/* Prints the finished run, and returns the exit status. If the run has problems (run.problem_count), they are
	 * already printed. */
	int (*show)(struct run *run, const void *command, struct err *err);
	const void *command; /* the second argument of `show`: the options of the command */
};

/* Plans the cases of the selected definitions, looks up their verdicts, and calls `show`. Returns the exit status of
 * `show`. On error, returns the exit status for the error, with a message. */
int cached_run(struct program *program, const struct cached_run *what, struct err *err);

/* Returns `code`, or EXIT_USAGE if the run had problems. */
int cached_run_status(const struct run *run, int code);

/* Prints a JSON object with the members "schema" and "root", followed by `members` (text). Frees `members`. */
void cached_run_print_json(const struct run *run, struct buf *members);
/* Prints lines. On a terminal, long lines are wrapped between words. Frees `lines`. */
void cached_run_print_text(struct buf *lines);

#endif
