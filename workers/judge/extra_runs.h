/* extra_runs - the additional runs of a case for checks that need no ground truth. trial_internal.h declares the other
 * functions of this module. */
#ifndef REFTEST_WORKERS_JUDGE_EXTRA_RUNS_H
#define REFTEST_WORKERS_JUDGE_EXTRA_RUNS_H

#include "base/arena.h"

/* Returns the names of the checks that `--edge` runs for a case with an op family, such as "strided, rows, numerics".
 * This text is part of the subject of the case (engine/cases_subject.c), so a case runs again after a change of the
 * text. */
const char *extra_runs_beside(struct arena *arena);

#endif
