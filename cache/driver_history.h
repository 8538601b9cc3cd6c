/* driver_history - keeps the margins of verdicts that differ only by the version of the GPU's driver. The driver is not
 * a part of a verdict's key, so in the store one of these verdicts replaces the other. The verdict that is kept records
 * the margin of the replaced verdict (struct driver_margin in dataset/verdict.h) for `reftest drift`. */
#ifndef REFTEST_CACHE_DRIVER_HISTORY_H
#define REFTEST_CACHE_DRIVER_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Both texts are in the form that verdict_write writes, and have the same subject and witness. If `dropped` has margins
 * that `kept` lacks, adds these margins to the text of `kept`, appends the result to the buffer, and returns true.
 * Otherwise returns false. The appended text lists the newest margin of each driver, and at most DRIVER_MARGINS_MAX
 * margins. Also returns false if a text is not a verdict. */
bool driver_history_join(const char *kept, size_t kept_length, const char *dropped, size_t dropped_length,
			 struct buf *out);

#endif
