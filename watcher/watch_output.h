/* watch_output - prints the output of `reftest watch`. The output is lines of text or, with --json, one JSON object per
 * event and line. docs/watch.md lists the events. */
#ifndef REFTEST_WATCHER_WATCH_OUTPUT_H
#define REFTEST_WATCHER_WATCH_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/run.h"
#include "report/text_and_json.h"
#include "watcher/last_statuses.h"

struct watch_output {
	bool json;
	struct report_options report;
};

/* The numbers that the events of a batch report. A batch is a set of changed definitions that are verified together. */
struct batch_counts {
	int64_t number;		     /* the number of the batch; batch 1 verifies all definitions at the start */
	int verdicts[STATUS_COUNT];
	int gone;		     /* the number of deleted definitions */
	int definitions;	     /* the number of definitions in the batch */
	int written;		     /* the number of generated pytest files that were replaced or removed since the
				      * last batch */
	int64_t cases_planned, cases_run, cases_cached;
	double seconds; /* the time since the first change of the batch was detected */
};

/* Prints the names "op_type/name" of the changed definitions. `count` may be 0. */
void print_changed(const struct watch_output *output, const struct batch_counts *batch, const char *const *paths,
		  int count);
void print_planned(const struct watch_output *output, const struct batch_counts *batch);
void print_result(const struct watch_output *output, const struct batch_counts *batch, const struct result *result);
void print_gone(const struct watch_output *output, const struct batch_counts *batch, const char *path);
void print_batch(const struct watch_output *output, const struct batch_counts *batch);
/* Prints the number of definitions with each status. Call this when no batch is running. */
void print_ready(const struct watch_output *output, const char *root, const struct last_statuses *table);
/* Prints a message that does not concern a single definition, for example that verdicts cannot be stored. */
void print_notice(const struct watch_output *output, const char *sentence);
void print_command(const struct watch_output *output, const char *how_it_ended);

#endif
