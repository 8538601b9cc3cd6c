/* rows - how many rows default cases have, for families whose rows are independent of each other: kernels take them by
 * blocks of 16 to 256, and what goes wrong where a block ends shows at an exact multiple and one past it. A case is as
 * large as its elements, so few columns have many rows. */
#ifndef REFTEST_KERNELS_ROWS_H
#define REFTEST_KERNELS_ROWS_H

#include <stdint.h>

/* The largest of `count` descending row counts that takes no more than `elements`; else the last. */
static inline int64_t rows_within(const int64_t *rows, int count, int64_t columns, int64_t elements)
{
	for (int i = 0; i + 1 < count; i++)
		if (rows[i] <= elements / (columns > 0 ? columns : 1))
			return rows[i];
	return rows[count - 1];
}

/* Whole blocks: 256 rows, or 128, 64, 32, 16. */
static inline int64_t rows_of_blocks(int64_t columns, int64_t elements)
{
	static const int64_t rows[] = {256, 128, 64, 32, 16};

	return rows_within(rows, 5, columns, elements);
}

/* One row past whole blocks: of 256 (513 rows, where that takes half of `elements` at most), of 64 and beyond 300 (321),
 * of 128, 64, 32. */
static inline int64_t rows_past_blocks(int64_t columns, int64_t elements)
{
	static const int64_t rows[] = {321, 129, 65, 33};

	return columns <= elements / 2 / 513 ? 513 : rows_within(rows, 4, columns, elements);
}

#endif
