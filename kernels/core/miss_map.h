/* miss_map - makes a small map that shows where an output of a reference differs from the ground truth, and by how
 * much.
 *
 * Each error has a level, on a scale of powers of two. Level 0 means no error. Errors at levels below MISS_BOUND are
 * within the bound. Errors at levels MISS_BOUND, MISS_BOUND + 1, MISS_BOUND + 2, … are at least 1, 2, 4, … times the
 * bound. The rows and columns of the map are the two axes along which the fraction of misses varies most. Each cell of
 * the map shows the largest level of its elements. Long axes are divided into MISS_SIDE parts. */
#ifndef REFTEST_KERNELS_CORE_MISS_MAP_H
#define REFTEST_KERNELS_CORE_MISS_MAP_H

#include "kernels/core/op.h"

enum { MISS_SIDE = 32, MISS_LEVELS = 32, MISS_BOUND = 17 };

struct miss_map {
	int row_axis, column_axis; /* dimensions of the output; -1: the output has too few dimensions */
	int rows, columns;	   /* 1 … MISS_SIDE */
	unsigned char level[MISS_SIDE][MISS_SIDE];
	int64_t histogram[MISS_LEVELS]; /* the number of elements of each level */
};

/* Returns the level of an error that is `ratio` times the bound. NaN has the highest level. */
int miss_level(double ratio);

/* Makes the map of an output. Both tensors are on the host and have the same shape. Returns false if the output has no
 * elements. */
bool miss_map_make(const struct tensor *found, const struct tensor *truth, struct rule rule, struct miss_map *map);

#endif
