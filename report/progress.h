/* progress - shows the progress of `verify` on a terminal: how many cases have run, how many have failed, how long the
 * run may still take, and which case each runner executes. The progress lines are below all printed text. They are
 * drawn on standard error, at most ten times a second, and are erased at the end. */
#ifndef REFTEST_REPORT_PROGRESS_H
#define REFTEST_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/run.h"

enum { PROGRESS_LINES = 6 };

struct progress_display {
	bool on;		   /* if false, all functions do nothing */
	FILE *terminal;		   /* the stream that `stderr` was before progress_open */
	FILE *hook;		   /* the value of `stderr` until progress_close: a stream that erases the progress
				    * lines before it writes */
	pid_t owner;		   /* the process that may erase the progress lines; its forked children must not */
	int drawn[PROGRESS_LINES]; /* the number of columns of each drawn line */
	int count;		   /* the number of drawn lines */
};

/* `wanted` must be false if standard error is not a terminal. Until progress_close, a write to `stderr` first erases
 * the progress lines. `display` must not move. */
void progress_open(struct progress_display *display, bool wanted);
void progress_close(struct progress_display *display);

void progress_draw(struct progress_display *display, const struct run *run);
/* Erases the progress lines. Call this before printing on standard output. */
void progress_erase(struct progress_display *display);

#endif
