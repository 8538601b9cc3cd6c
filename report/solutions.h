/* solutions - prints the results of solutions (`verify --solutions`, engine/solution_candidates.h). docs/json.md lists
 * the JSON fields. */
#ifndef REFTEST_REPORT_SOLUTIONS_H
#define REFTEST_REPORT_SOLUTIONS_H

#include "base/buf.h"
#include "engine/run.h"

/* Prints a line for each solution, with details of the first case that has the solution's status, and a last line with
 * counts. */
void solutions_print(const struct run *run);

/* Appends the member "solutions" of the JSON object of a run. */
void solutions_json(const struct run *run, struct buf *out);

#endif
