/* row_counts - chooses the number of rows of default cases, and writes the axes of such cases. The functions are for
 * families whose rows are independent of each other.
 *
 * Kernels process independent rows in blocks of 16 to 256 rows. Errors at the end of a block are visible if the number
 * of rows is a multiple of the block size, or one more than a multiple. The number of elements is limited, not the
 * number of rows, so a case with few columns has many rows. */
#ifndef REFTEST_KERNELS_CORE_ROW_COUNTS_H
#define REFTEST_KERNELS_CORE_ROW_COUNTS_H

#include <stdint.h>

#include "kernels/core/op.h"

/* The usual maximum number of elements in a default case, and the maximum in a small case. */
enum { ROWS_ELEMENTS = 6 << 20, ROWS_SMALL_ELEMENTS = 1 << 18 };

/* One row more than 4096, because grids and buffers often have 4096 rows. */
enum { ROWS_PAST_GRID = 4097 };

/* The maximum number of cases that a size preset has. */
enum { ROWS_CASES = 2 };

#ifdef __cplusplus
extern "C" {
#endif

/* `rows` has `count` numbers of rows in descending order. Returns the first of them for which a tensor with `columns`
 * columns has at most `elements` elements. If there is none, returns the last number of rows. */
int64_t rows_within(const int64_t *rows, int count, int64_t columns, int64_t elements);

/* Returns the largest number of rows (256, 128, 64, 32 or 16) for which a block with `columns` columns has at most
 * 20 Mi elements: 256 for up to 81920 columns, 128 for up to twice as many. If even 16 rows have more elements, returns
 * 16. */
int64_t rows_block(int64_t columns);

/* Returns 4097, or 513 if a tensor with 4097 rows would have too many elements. If even 513 rows are too many, returns
 * one more than the result of rows_block. The returned number is always one more than a multiple of the result of
 * rows_block. */
int64_t rows_past_block(int64_t columns, int64_t elements);

/* Adds `block` to the number of rows `rows` until the number is at least `least`. Returns the new number of rows. */
int64_t rows_at_least(int64_t rows, int64_t least, int64_t block);

/* Writes the number of rows of each case of a size preset, and returns the number of cases. One small case has one row,
 * and the other has the largest block with at most ROWS_SMALL_ELEMENTS elements. One medium case has rows_past_block
 * rows. If rows_block is larger than the numbers of rows of the small cases, another medium case has rows_block
 * rows. */
int rows_of_size(enum op_size size, int64_t columns, int64_t elements, int64_t rows[ROWS_CASES]);

/* Returns the axis that gives a tensor its number of rows: the last var axis before the tensor's last axis. Returns -1
 * if there is none. */
int rows_axis(const struct op_problem *problem, const struct op_arg *arg);

/* Writes the axes of a case. The axis that rows_axis returns gets the length `rows`. The other var axes of `arg`,
 * except its last axis, get the length `others`. All remaining var axes get the length 1. */
void rows_set(const struct op_problem *problem, const struct op_arg *arg, int64_t rows, int64_t others, int64_t *axis);

/* Sets the lengths of all axes of `arg` except the last one, so that their product is `rows`. Each var axis gets a
 * length of at most 4, except the axis that rows_axis returns, which gets `rows` divided by the other lengths. The last
 * axis of `arg`, and the axis `fixed` (-1: none), keep their lengths. */
void rows_divide(const struct op_problem *problem, const struct op_arg *arg, int fixed, int64_t rows, int64_t *axis);

#ifdef __cplusplus
}
#endif

#endif
