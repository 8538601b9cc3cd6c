/* watch_tell - what `reftest watch` says, as lines for people or as one JSON object a line. */
#ifndef REFTEST_COMMANDS_WATCH_TELL_H
#define REFTEST_COMMANDS_WATCH_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "commands/pass.h"
#include "commands/report.h"
#include "commands/roll.h"

struct watch_teller {
	bool json;
	struct report_options report;
};

/* One set of changes on its way to its verdicts. */
struct batch_counts {
	int64_t number;                /* 1: everything, at the start */
	int told[STATUS_COUNT];        /* verdicts */
	int gone;                      /* definitions deleted */
	int definitions;               /* those that it looks at */
	int written;                   /* generated pytest files that were replaced or removed since the batch before */
	int64_t cases_planned, cases_run, cases_cached;
	double seconds;                /* since the first of its changes was noticed */
};

/* `about`: 0 or more names "op_type/name". */
void tell_changed(const struct watch_teller *teller, const struct batch_counts *batch, const char *const *paths, int count);
void tell_planned(const struct watch_teller *teller, const struct batch_counts *batch);
void tell_outcome(const struct watch_teller *teller, const struct batch_counts *batch, const struct outcome *outcome);
void tell_gone(const struct watch_teller *teller, const struct batch_counts *batch, const char *path);
void tell_batch(const struct watch_teller *teller, const struct batch_counts *batch);
/* All that is known now, when nothing is on its way. */
void tell_ready(const struct watch_teller *teller, const char *root, const struct roll *roll);
/* A sentence that is no verdict: polling, a root that is gone, verdicts that cannot be kept. */
void tell_notice(const struct watch_teller *teller, const char *sentence);
void tell_command(const struct watch_teller *teller, const char *how_it_ended);

#endif
