/* counts - how often verdicts were found here, over all runs, for `reftest cache stats`.
 *
 * <root>/.reftest/counts has a line of text for each run, appended under a lock without a sync and summed when it
 * grows: a run in which nothing changed must not cost a transaction. Statistics: a line that a crash tore is passed
 * over, and no failure to write one is told. */
#ifndef REFTEST_CACHE_COUNTS_H
#define REFTEST_CACHE_COUNTS_H

#include <stdint.h>

enum { COUNTS_REASONS = 6 };

struct counts {
	int64_t runs, hits;
	int64_t misses[COUNTS_REASONS]; /* by plan's `enum lack` (plan/plan.h); these numbers are on disk */
};

void counts_add(const char *root, const struct counts *more);
/* Zeros if there is nothing to read. */
void counts_read(const char *root, struct counts *out);

#endif
