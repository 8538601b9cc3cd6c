/* row_counts - chooses the number of rows of default cases, and writes the axes of such cases. The functions are for
 * families whose rows are independent of each other.
 *
 * Kernels process such rows in blocks of 16 to 256. Errors at the end of a block are visible if the number of rows is a
 * multiple of the block size, or one more than a multiple. The number of elements is limited, not the number of rows,
 * so a case with few columns has many rows. */
#ifndef REFTEST_KERNELS_CORE_ROW_COUNTS_H
#define REFTEST_KERNELS_CORE_ROW_COUNTS_H

#include <stdint.h>

#include "kernels/core/op.h"

/* `rows` has `count` numbers in descending order. Returns the first number with which a tensor of `columns` columns has
 * at most `elements` elements. If there is none, returns the last number. */
static inline int64_t rows_within(const int64_t *rows, int count, int64_t columns, int64_t elements)
{
	for (int i = 0; i + 1 < count; i++)
		if (rows[i] <= elements / (columns > 0 ? columns : 1))
			return rows[i];
	return rows[count - 1];
}

/* Returns a number of rows that is a multiple of usual block sizes: 256, 128, 64, 32 or 16. */
static inline int64_t rows_of_blocks(int64_t columns, int64_t elements)
{
	static const int64_t rows[] = {256, 128, 64, 32, 16};

	return rows_within(rows, 5, columns, elements);
}

/* One row more than 4096, because grids and buffers often have 4096 rows. */
enum { ROWS_PAST_GRID = 4097 };

/* Returns a number of rows that is one more than a multiple of a block size: 4097 or 513 if a tensor with so many rows
 * has at most `elements` / 2 elements, otherwise 321, 129, 65 or 33. */
static inline int64_t rows_past_blocks(int64_t columns, int64_t elements)
{
	static const int64_t rows[] = {321, 129, 65, 33}, more[] = {ROWS_PAST_GRID, 513, 0};
	int64_t most = rows_within(more, 3, columns, elements / 2);

	return most > 0 ? most : rows_within(rows, 4, columns, elements);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the axis that gives a tensor its number of rows: the last var axis before the tensor's last axis. Returns -1
 * if there is none. */
int rows_axis(const struct op_problem *problem, const struct op_arg *arg);

/* Writes the axes of a case. rows_axis becomes `rows`, and the other var axes of `arg` before its last axis become
 * `others`. Every var axis that `arg` lacks becomes 1. */
void rows_set(const struct op_problem *problem, const struct op_arg *arg, int64_t rows, int64_t others, int64_t *axis);

/* Sets the lengths of the axes of `arg` before its last axis, so that their product is `rows`. Each var axis gets at
 * most 4, and rows_axis gets the remaining factor. The last axis of `arg`, and the axis `fixed` (-1: none), keep their
 * lengths. */
void rows_divide(const struct op_problem *problem, const struct op_arg *arg, int fixed, int64_t rows, int64_t *axis);

#ifdef __cplusplus
}
#endif

#endif
