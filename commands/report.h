/* report - outcomes as text and as JSON, and the exit code they amount to. */
#ifndef REFTEST_COMMANDS_REPORT_H
#define REFTEST_COMMANDS_REPORT_H

#include "commands/pass.h"

struct report_options {
	bool strict;         /* findings count as failures */
	bool only_changed;   /* say nothing of what was verified before and still is */
	int width;           /* columns that a line of text may take; 0: as many as it wants */
	const char *command; /* the words that repeat this run's options: "--device cpu --seed 3" */
};

/* What could not be looked at, on stderr. */
void report_problems(const struct pass *pass);

/* One outcome as a line, with details below it when it is not passed. */
void report_outcome(const struct outcome *outcome, const struct report_options *options);

/* The last line of a text report. */
void report_summary(const struct pass *pass, const struct report_options *options);

/* The whole of a pass as one JSON object (schema 1; README, "JSON"). */
void report_json(const struct pass *pass, const struct report_options *options);

/* One case as it stands there, on one line. */
void report_json_case(struct buf *out, const struct outcome *outcome, const struct case_outcome *c);

/* What stands between 0 and "everything asked for is verified". */
int report_exit_code(const struct pass *pass, const struct report_options *options);

#endif
