/* axis_length - reads the length of an axis from JSON. */
#ifndef REFTEST_DATASET_AXIS_LENGTH_H
#define REFTEST_DATASET_AXIS_LENGTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"

/* Reads an integer from 0 to 2^53 - 1. Also reads what flashinfer-bench converts to an integer: true (1), false (0) or
 * a string such as "128". Returns false for any other value. */
bool axis_length_read(const cJSON *json, int64_t *out);

#endif
