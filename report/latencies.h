/* latencies - prints the latencies that `reftest bench` (run_options.cases.bench; docs/bench.md) measured, and appends
 * them to a file, because stored verdicts do not contain them. */
#ifndef REFTEST_REPORT_LATENCIES_H
#define REFTEST_REPORT_LATENCIES_H

#include "engine/run.h"

/* The file with the latencies, relative to the dataset's root. Each run of `reftest bench` appends a line for each
 * measured case. */
#define LATENCIES_FILE ".reftest/bench.jsonl"

/* Prints a line for each latency of each case of a result. */
void latencies_print(const struct result *result);

/* Appends a line {"time", "name", "op_type", "case"} to LATENCIES_FILE for each measured case of the run; "case" has
 * the same fields as in the JSON of `verify`. Returns 0, or -1 and sets `err`. */
int latencies_keep(const struct run *run, struct err *err);

#endif
