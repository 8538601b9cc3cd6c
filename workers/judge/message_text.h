/* message_text - text for messages: indices, values, sizes, and how an output differs from its ground truth. */
#ifndef REFTEST_WORKERS_JUDGE_MESSAGE_TEXT_H
#define REFTEST_WORKERS_JUDGE_MESSAGE_TEXT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "dataset/verdict.h"

/* Returns an index as text, such as "[0, 17]", or "[]" for rank 0. */
const char *format_index(struct arena *arena, int64_t flat, int rank, const int64_t *shape);
/* Returns an element as text, with enough digits to distinguish all values of its dtype. All digits of an integer are
 * written. */
const char *format_value(struct arena *arena, double value, enum dtype dtype);
/* Returns a size as text, such as "512 bytes" or "3.1 GiB". */
const char *format_bytes(struct arena *arena, int64_t bytes);

/* Describes how an output differs from its ground truth, for example: "output 'y': 12 of 4096 elements exceed the bound
 * 0.008 + 0.01 |ground truth|, by a factor of up to 31; the worst at [0, 17]: 1.5, ground truth 1.25". */
const char *format_miss(struct arena *arena, const struct output_verdict *output, enum dtype dtype);

#endif
