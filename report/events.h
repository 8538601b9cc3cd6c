/* events - writes the events of `verify --format jsonl` and `watch --json`: one JSON object per line, on standard
 * output. docs/json.md lists the events and their fields. */
#ifndef REFTEST_REPORT_EVENTS_H
#define REFTEST_REPORT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/run.h"

/* The numbers in the events of a batch. A batch is a set of changed definitions that are verified together. */
struct batch_counts {
	int64_t number;		     /* the number of the batch; batch 1 verifies all definitions at the start */
	int verdicts[STATUS_COUNT];
	int gone;		     /* the number of deleted definitions in the batch */
	int definitions;	     /* the number of verified definitions in the batch */
	int written;		     /* the number of generated pytest files that were replaced or removed since the
				      * last batch */
	int64_t cases_planned, cases_run, cases_cached;
	double seconds; /* the time since the first change of the batch was detected */
};

/* Writes the names "op_type/name" of the changed definitions at `paths`. */
void event_changed(const struct batch_counts *batch, const char *const *paths, int count);
void event_plan(const struct batch_counts *batch);
/* Does not flush standard output, because a batch may have a thousand results. */
void event_verdict(const struct batch_counts *batch, const struct result *result);
void event_gone(const struct batch_counts *batch, const char *path);
void event_batch(const struct batch_counts *batch);
/* `by_status` has the number of definitions with each status. */
void event_ready(const char *root, int definitions, const int *by_status);
void event_notice(const char *sentence);
void event_exec(const char *how_it_ended);
void event_end(int exit_status);

/* Returns the counts of a run of `verify`. The whole run is one batch, with the number 1. */
struct batch_counts event_counts(const struct run *run);

#endif
