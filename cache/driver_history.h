/* driver_history - keeps the margins of verdicts that differ only in the version of the GPU's driver. The margin is the
 * largest error, relative to the tolerance (base/metrics.h). The driver is not a part of a verdict's key. In the store,
 * one of two such verdicts therefore replaces the other. The verdict that is kept records the margin of the replaced
 * verdict (struct driver_margin in dataset/verdict.h) for `reftest drift`. */
#ifndef REFTEST_CACHE_DRIVER_HISTORY_H
#define REFTEST_CACHE_DRIVER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* `kept` and `dropped` are two verdicts with the same subject and witness, as texts that verdict_write wrote. If
 * `dropped` has margins that `kept` lacks, adds these margins to the text of `kept`, appends the resulting text to
 * `out`, and returns true. Otherwise returns false. The appended text lists the newest margin of each driver, but no
 * more than DRIVER_MARGINS_MAX margins. Also returns false if a text is not a verdict. */
bool driver_history_join(const char *kept, size_t kept_length, const char *dropped, size_t dropped_length,
			 struct buf *out);

#endif
