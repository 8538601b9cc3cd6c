/* fingerprint_internal - declares the reader of lists of fields that older versions of reftest stored
 * (cache/fingerprint_older.c), for fields_read. */
#ifndef REFTEST_CACHE_FINGERPRINT_INTERNAL_H
#define REFTEST_CACHE_FINGERPRINT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/fingerprint.h"

#define FIELDS_V2 UINT32_C(0x80000002) /* a list in the packed format begins with these four bytes */

/* Returns false if the bytes are not such a list; `out` is then incomplete. */
bool fields_read_v2(const void *bytes, size_t length, struct arena *arena, struct fields *out);

#endif
