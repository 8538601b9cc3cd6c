/* hit_counts - counts how often the store had a verdict for a case, over all runs, for `reftest cache stats`.
 *
 * Each run appends one line of text to <root>/.reftest/counts. The run locks the file, but does not sync it. If the
 * file has become long, the run replaces all lines by one line that contains the sum of each number. If the counts were
 * in the store, each run would need a write transaction, even if nothing has changed. The counts are only statistics,
 * so a line that a crash truncated is skipped, and a failed write is not reported.
 *
 * The misses are counted by reason (`enum lack` in engine/rerun_reason.h). A new reason must also be added to
 * HIT_COUNTS_REASONS, to the list of numbers in line_read (cache/hit_counts.c), to the table `reasons` of cli/cache.c
 * and to docs/json.md. Lines from older versions of this program lack some numbers, which count as 0. */
#ifndef REFTEST_CACHE_HIT_COUNTS_H
#define REFTEST_CACHE_HIT_COUNTS_H

#include <stdint.h>

enum { HIT_COUNTS_REASONS = 8 };

struct cache_stats {
	int64_t runs, hits;
	/* Number of misses for each value of `enum lack` (engine/rerun_reason.h), in the order of this enum. */
	int64_t misses[HIT_COUNTS_REASONS];
};

void hit_counts_add(const char *root, const struct cache_stats *more);
/* Sets `out` to the sums over all runs, or to zero if the file does not exist. */
void hit_counts_read(const char *root, struct cache_stats *out);

#endif
