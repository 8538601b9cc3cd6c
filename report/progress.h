/* progress - shows on a terminal what a run of `verify` does now: how many cases it has run and how many failed, how
 * long it may still take, and the case that each runner executes. The lines are below everything that is printed. They
 * are drawn on standard error, at most ten times a second, and are erased at the end. */
#ifndef REFTEST_REPORT_PROGRESS_H
#define REFTEST_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/run.h"

enum { PROGRESS_LINES = 6 };

struct progress_display {
	bool on;		   /* false: every function does nothing */
	FILE *terminal;		   /* the stream that `stderr` was before progress_open */
	FILE *hook;		   /* what `stderr` is now: a stream that erases the lines before it writes */
	pid_t owner;		   /* processes that are forked later have a copy of the hook, and must not erase lines */
	int drawn[PROGRESS_LINES]; /* the columns of each line */
	int count;		   /* the number of lines that are drawn */
};

/* `wanted` is false if standard error is no terminal. Until progress_close, `stderr` erases the lines before it writes.
 * `display` must not move. */
void progress_open(struct progress_display *display, bool wanted);
void progress_close(struct progress_display *display);

void progress_draw(struct progress_display *display, const struct run *run);
/* Erases the lines. Call this before printing on standard output. */
void progress_erase(struct progress_display *display);

#endif
