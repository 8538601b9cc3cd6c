/* archive_v2 - reads exported files of format 2, which the previous version of reftest wrote (cache/export_import.h
 * writes format 3). This module is to be deleted in the next version of reftest. */
#ifndef REFTEST_CACHE_ARCHIVE_V2_H
#define REFTEST_CACHE_ARCHIVE_V2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "cache/verdict_line.h"

/* Returns true if the bytes begin like an exported file of format 2 or 1. */
bool archive_v2_is(const void *bytes, size_t length);

/* Reads an exported file of format 2. Calls `take` for the records of each block; the records become invalid when
 * `take` returns. The verdicts of the records are packed (dataset/verdict_packed.c). Their checksums are correct, but
 * the caller must still call verdict_line_check. Calls `refused` for each part that cannot be read. Returns 0, or -1
 * with an error message if the bytes are not an exported file of format 2, or if `take` returned -1. */
typedef int archive_v2_take(const struct verdict_line *records, int count, void *context, struct err *err);
typedef void archive_v2_refused(const char *sentence, int64_t count, void *context);
int archive_v2_read(const void *bytes, size_t length, archive_v2_take *take, archive_v2_refused *refused, void *context,
		    struct err *err);

#endif
