/* totals - counts the definitions of a run in each status, for the summary line and the exit status. */
#ifndef REFTEST_REPORT_TOTALS_H
#define REFTEST_REPORT_TOTALS_H

#include <stdint.h>

#include "engine/run.h"

struct totals {
	int64_t definitions, by_status[STATUS_COUNT], unknown, changed, findings;
	int64_t checked[CHECKED_KINDS]; /* for each kind, the number of definitions with STATUS_CHECKED */
	/* The counts of the summary line. `shown` is `by_status` without the definitions that lack a verdict.
	 * `shown_unknown` counts the definitions that were never verified, and `shown_stale` counts the other
	 * definitions that lack a verdict. */
	int64_t shown[STATUS_COUNT], shown_stale, shown_unknown;
	int64_t elements; /* number of output elements that were compared */
};

/* Returns whether some case of the definition has no valid verdict and did not run. */
bool totals_lacks_verdict(const struct result *result);

struct totals totals_of(const struct run *run);

#endif
