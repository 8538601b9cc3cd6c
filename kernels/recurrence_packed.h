/* recurrence_packed - sequences that lie one after the other, and how large keys are: what gdn does like the families of
 * kernels/recurrence.h. Host only. */
#ifndef REFTEST_KERNELS_RECURRENCE_PACKED_H
#define REFTEST_KERNELS_RECURRENCE_PACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/op.h"

/* k's element has standard deviation 1 / sqrt(k_dim): uniform on eighths / 8 * 2^exponent, which is sqrt(3 / k_dim) to
 * three bits. */
void recurrence_size_keys(int64_t k_dim, int *eighths, int *exponent);

/* `out` gets the offsets of sequences that end on a multiple of 16, 32, 64 and 128 tokens, one off it, or after one
 * token; other ones for each of the contents. If there are not so many tokens, in proportion, and one each at the least;
 * if there are more, the last has the rest. */
void recurrence_fill_offsets(const struct op_case *c, int64_t sequences, int64_t total, struct tensor *out);

/* The batch that a case of many sequences has: 320, or of 129, 65 and 33 what keeps its states, of `elements` each, near
 * 2^21 at the most. On both sides of the blocks that kernels launch, and beyond. */
int64_t recurrence_many(int64_t elements);

/* 0, or -1 with a sentence that names the input: offsets that do not begin with 0, fall, or end elsewhere than with
 * `total`. */
int recurrence_check_offsets(const char *name, int64_t total, const struct tensor *offsets, struct err *err);

#endif
