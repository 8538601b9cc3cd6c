/* verdict_internal - declares the reader of the packed form of a verdict, which older versions of reftest stored and
 * exported (dataset/verdict_packed.c). verdict_parse, verdict_head and verdict_time use it. */
#ifndef REFTEST_DATASET_VERDICT_INTERNAL_H
#define REFTEST_DATASET_VERDICT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "dataset/verdict.h"

bool verdict_is_packed(const void *text, size_t length);

/* Returns the verdict, allocated in `arena`. Returns NULL if the bytes are not a packed verdict, or fail a check that
 * verdict_parse also makes. */
const struct verdict *verdict_unpack(const void *bytes, size_t length, struct arena *arena);

struct packed_parts {
	int64_t time; /* of the verdict */
	const unsigned char *skeleton, *marks, *numbers;
	size_t skeleton_length, marks_length, numbers_length;
};

/* Finds the parts of a packed verdict. Returns false if the bytes are not a packed verdict. */
bool packed_split(const void *bytes, size_t length, struct packed_parts *out);

#endif
