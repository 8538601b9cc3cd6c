/* latencies - prints the latencies of a run with run_options.cases.bench (`reftest bench`; docs/bench.md), and appends
 * them to a file. Stored verdicts do not contain latencies. */
#ifndef REFTEST_REPORT_LATENCIES_H
#define REFTEST_REPORT_LATENCIES_H

#include "engine/run.h"

/* The file below the root to which each run appends a line for each case that was measured. */
#define LATENCIES_FILE ".reftest/bench.jsonl"

/* Prints a line for each latency of each case of a result. */
void latencies_print(const struct result *result);

/* Appends a line {"time", "name", "op_type", "case"} to the file for each measured case of the run; "case" has the same
 * fields as in the JSON of `verify`. Returns 0, or -1 and sets `err`. */
int latencies_keep(const struct run *run, struct err *err);

#endif
