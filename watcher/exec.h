/* exec - runs the command of `watch --exec` in a shell after each batch, one process at a time. While the command runs,
 * definitions with new results are collected for its next run, each with its latest status.
 *
 * The standard input of the command is /dev/null, and the command inherits no descriptors besides standard output and
 * standard error. In the environment of the command, REFTEST_NAMES has the sorted names "op_type/name" of the
 * definitions, one per line, and REFTEST_COUNT has their number. REFTEST_PASSED, REFTEST_CHECKED, REFTEST_FAILED,
 * REFTEST_ERROR, REFTEST_SKIPPED and REFTEST_INVALID have the number of definitions with each status. If all names need
 * more than EXEC_NAMES bytes, REFTEST_NAMES has only some of them, because the kernel accepts at most 128 KiB for one
 * variable. */
#ifndef REFTEST_WATCHER_EXEC_H
#define REFTEST_WATCHER_EXEC_H

#include <stdbool.h>

#include "dataset/verdict.h"
#include "watcher/last_statuses.h"
#include "workers/pool/process.h"

enum { EXEC_NAMES = 96 * 1024 };

struct exec {
	const char *command; /* the shell command; NULL: --exec was not given */
	int output;          /* the descriptor for the command's standard output */
	struct process process;
	struct last_statuses names; /* the definitions ("op_type/name") for the next run of the command */
	bool wanted;                /* the command must run again when the running command has ended */
};

void exec_open(struct exec *exec, const char *command, int output);
void exec_name(struct exec *exec, const char *op_type, const char *name, enum status status);
void exec_forget(struct exec *exec, const char *op_type_and_name); /* call this when a definition no longer exists */
/* Starts the command or, if it is running, sets `wanted`. Returns -1 and sets `err` if the command cannot be
 * started. */
int exec_run(struct exec *exec, struct err *err);
int exec_fd(const struct exec *exec); /* returns a descriptor that becomes readable when the command ends; -1: the
				       * command is not running */
/* If the command has ended, sets `status` to its wait status and returns true. If `wanted` is also set, the caller must
 * call exec_run again. */
bool exec_ended(struct exec *exec, int *status);
void exec_close(struct exec *exec); /* kills the command if it is running */

#endif
