/* packed - chooses the lengths of packed sequences (stored one after the other), the sizes of state pools, and the
 * scale of keys. The family gdn and the families of kernels/common/linear_attention/recurrence.h use these functions.
 * Host only. */
#ifndef REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_PACKED_H
#define REFTEST_KERNELS_COMMON_LINEAR_ATTENTION_PACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/core/op.h"

/* Computes the scale s of keys: the elements of k are uniform on [-s, s). s is eighths / 8 * 2^exponent, which is
 * sqrt(3 / k_dim) rounded to three bits. The standard deviation of an element is thus about 1 / sqrt(k_dim). */
void recurrence_size_keys(int64_t k_dim, int *eighths, int *exponent);

/* Writes the offsets of packed sequences to `out`. Each length is 1, or within 2 tokens of a multiple of 16, 64 or
 * 1024. The lengths of the two sets of input values differ. If there are too few tokens for these lengths, the lengths
 * are reduced in proportion, but each sequence keeps at least one token. If there are more tokens than these lengths
 * need, the last sequence gets the remaining tokens. */
void recurrence_fill_offsets(const struct op_case *c, int64_t sequences, int64_t total, struct tensor *out);

/* Some cases have as many sequences as kernels usually process in one block. Returns this number. A state has
 * `elements` elements. The number is 256 if 257 states have at most 17 Mi elements in total, 128 if 129 states have at
 * most 136 Mi elements in total, otherwise 64. */
int64_t recurrence_block(int64_t elements);

/* Returns the number of sequences for another case with many sequences: 513 if states are small, otherwise one more
 * than recurrence_block. With such a number, a kernel that processes only whole blocks of sequences omits the last
 * sequence. */
int64_t recurrence_past_block(int64_t elements);

/* Returns the number of slots in a pool of states. The case uses `used` slots of `elements` elements each, and the pool
 * has a few slots more. If slots are small, the pool has more than 256 slots, and slot numbers need more than 8
 * bits. */
int64_t recurrence_pool(int64_t used, int64_t elements);

/* Writes the slots 0 … `slots` - 1 to `order` in random order. The first `used` elements of `order` include slot 0 if
 * `used` is at least 2, and the last slot if `used` is 1 or at least 4. If there are enough slots, they also include some of
 * the slots 127, 128, 255 and 256, where 7-bit and 8-bit numbers overflow. If `used` is larger than `slots`, only the
 * order is random. */
void recurrence_shuffle_slots(uint64_t key, int64_t slots, int64_t used, int64_t *order);

/* Checks that the offsets start with 0, never decrease, and end with `total`. Returns 0, or -1 with a message in `err`,
 * which contains `name`. */
int recurrence_check_offsets(const char *name, int64_t total, const struct tensor *offsets, struct err *err);

#endif
