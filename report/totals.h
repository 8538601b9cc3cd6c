/* totals - counts the definitions of a run in each status, for the summary line and the exit status. */
#ifndef REFTEST_REPORT_TOTALS_H
#define REFTEST_REPORT_TOTALS_H

#include <stdint.h>

#include "engine/run.h"

struct totals {
	int64_t definitions, by_status[STATUS_COUNT], unknown, changed, findings;
	int64_t elements; /* number of output elements that were compared */
};

struct totals totals_of(const struct run *run);

#endif
