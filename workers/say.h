/* say - figures as sentences tell them: places, values, sizes, and how an output missed its ground truth. */
#ifndef REFTEST_WORKERS_SAY_H
#define REFTEST_WORKERS_SAY_H

#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "dataset/verdict.h"

/* "[0, 17]"; "[]" for rank 0. */
const char *say_index(struct arena *arena, int64_t flat, int rank, const int64_t *shape);
/* "(8, 4096) bfloat16", as torch prints shapes: "(8,)", "()". */
const char *say_tensor(struct arena *arena, int rank, const int64_t *shape, const char *dtype);
/* An element with as many digits as tell its dtype's values apart; integers whole. */
const char *say_value(struct arena *arena, double value, enum dtype dtype);
/* "512 bytes", "3.1 GiB". */
const char *say_bytes(struct arena *arena, int64_t bytes);

/* "output 'y': 12 of 4096 elements are beyond the bound 0.008 + 0.01 |ground truth|, up to 31 times; the worst at
 * [0, 17]: 1.5, ground truth 1.25". */
const char *say_miss(struct arena *arena, const struct output_verdict *output, enum dtype dtype);

#endif
