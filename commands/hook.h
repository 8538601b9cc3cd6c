/* hook - the command of `watch --exec`: run by the shell after each batch, one at a time. What comes while it runs is
 * gathered and handed to one more run, each definition once, with the last word on it.
 *
 * It reads nothing (/dev/null) and has no descriptor of ours. Its environment has REFTEST_NAMES (names "op_type/name" on lines of
 * their own, sorted, cut at HOOK_NAMES bytes, at a line's end: the kernel takes no more than 128 KiB), REFTEST_COUNT (how many there are in all), and of these REFTEST_PASSED, REFTEST_FAILED, REFTEST_ERROR,
 * REFTEST_SKIPPED, REFTEST_INVALID. */
#ifndef REFTEST_COMMANDS_HOOK_H
#define REFTEST_COMMANDS_HOOK_H

#include <stdbool.h>

#include "commands/roll.h"
#include "dataset/verdict.h"
#include "workers/process.h"

enum { HOOK_NAMES = 96 * 1024 };

struct hook {
	const char *command; /* NULL: there is none */
	int output;          /* descriptor for what it prints */
	struct process process;
	struct roll names;   /* "op_type/name", for the next run */
	bool wanted;
};

void hook_open(struct hook *hook, const char *command, int output);
void hook_name(struct hook *hook, const char *op_type, const char *name, enum status status);
void hook_forget(struct hook *hook, const char *op_type_and_name); /* it is no more */
/* Runs the command, now or after the run under way. -1: it cannot be started. */
int hook_run(struct hook *hook, struct err *err);
int hook_fd(const struct hook *hook); /* readable once it has ended; -1: nothing runs */
/* true: it has ended, with this wait status; hook_run again if `wanted`. */
bool hook_ended(struct hook *hook, int *status);
void hook_close(struct hook *hook); /* ends what runs */

#endif
