/* watch_output - prints the output of `reftest watch`. The output is lines of text or, with --json, the events of
 * report/events.h. */
#ifndef REFTEST_WATCHER_WATCH_OUTPUT_H
#define REFTEST_WATCHER_WATCH_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/run.h"
#include "report/events.h"
#include "report/text.h"
#include "watcher/last_statuses.h"

struct watch_output {
	bool json;
	struct report_options report;
};

/* Prints the names "op_type/name" of the changed definitions. `count` is their number, which may be 0. */
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
