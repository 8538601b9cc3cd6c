/* extra_runs - the additional runs of a case for checks that need no ground truth. The functions that the judge calls
 * are in trial_internal.h. */
#ifndef REFTEST_WORKERS_JUDGE_EXTRA_RUNS_H
#define REFTEST_WORKERS_JUDGE_EXTRA_RUNS_H

#include "base/arena.h"

/* Returns the names of the checks that `--edge` makes for a case with an op family: "strided, rows, numerics". This text
 * is in the subject of such a case. */
const char *extra_runs_beside(struct arena *arena);

#endif
