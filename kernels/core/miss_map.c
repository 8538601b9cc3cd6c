#include "kernels/core/miss_map.h"

#include <math.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"

int miss_level(double ratio)
{
	int exponent;

	if (ratio == 0)
		return 0;
	if (!isfinite(ratio))
		return MISS_LEVELS - 1;
	frexp(ratio, &exponent); /* ratio is in [2^(exponent - 1), 2^exponent) */
	exponent += MISS_BOUND - 1;
	return exponent < 1 ? 1 : exponent >= MISS_LEVELS ? MISS_LEVELS - 1 : exponent;
}

/* Returns the level of an error. An error that exactly equals its bound passes, so its level is just below
 * MISS_BOUND. */
static int level_of(double found, double truth, struct rule rule)
{
	double bound = rule.atol + rule.rtol * fabs(truth), error = fabs(found - truth);

	if (found == truth)
		return 0;
	if (isinf(found) || isinf(truth) || isnan(error))
		return MISS_LEVELS - 1;
	return error <= bound && error >= bound / 2 ? MISS_BOUND - 1 : miss_level(error / bound);
}

static int part_of(int64_t at, int64_t length)
{
	return (int)(length <= MISS_SIDE ? at : at * MISS_SIDE / length);
}

static int parts_of(int64_t length)
{
	return (int)(length <= MISS_SIDE ? length : MISS_SIDE);
}

/* For each axis, the number of misses and the number of elements in each part of the axis. */
struct profile {
	int64_t misses[OP_RANK][MISS_SIDE], elements[OP_RANK][MISS_SIDE];
};

static void add_element(const struct tensor *found, int64_t flat, bool missed, struct profile *profile)
{
	for (int d = found->rank - 1; d >= 0; d--) {
		int part = part_of(flat % found->shape[d], found->shape[d]);

		profile->misses[d][part] += missed;
		profile->elements[d][part]++;
		flat /= found->shape[d];
	}
}

/* Computes the fraction of misses in each part of an axis. Returns the difference between the largest and the smallest
 * fraction. */
static double contrast(const struct tensor *found, const struct profile *profile, int d)
{
	double least = 1, most = 0;

	for (int i = 0; i < parts_of(found->shape[d]); i++) {
		double part = (double)profile->misses[d][i] / (double)profile->elements[d][i];

		least = fmin(least, part);
		most = fmax(most, part);
	}
	return most - least;
}

/* Chooses the two axes along which the fraction of misses varies most. If the fraction varies equally along several
 * axes, chooses the later axes. The earlier of the two chosen axes becomes the rows of the map. */
static void choose_axes(const struct tensor *found, const struct profile *profile, struct miss_map *map)
{
	int best = -1, second = -1;

	for (int d = 0; d < found->rank; d++) {
		if (best < 0 || contrast(found, profile, d) >= contrast(found, profile, best)) {
			second = best;
			best = d;
		} else if (second < 0 || contrast(found, profile, d) >= contrast(found, profile, second)) {
			second = d;
		}
	}
	map->row_axis = second < 0 ? -1 : second < best ? second : best;
	map->column_axis = second < 0 ? best : second < best ? best : second;
	map->rows = map->row_axis < 0 ? 1 : parts_of(found->shape[map->row_axis]);
	map->columns = map->column_axis < 0 ? 1 : parts_of(found->shape[map->column_axis]);
}

static void add_level(const struct tensor *found, int64_t flat, int level, struct miss_map *map)
{
	int row = 0, column = 0;

	for (int d = found->rank - 1; d >= 0; d--) {
		int part = part_of(flat % found->shape[d], found->shape[d]);

		row = d == map->row_axis ? part : row;
		column = d == map->column_axis ? part : column;
		flat /= found->shape[d];
	}
	if (level > map->level[row][column])
		map->level[row][column] = (unsigned char)level;
}

bool miss_map_make(const struct tensor *found, const struct tensor *truth, struct rule rule, struct miss_map *map)
{
	struct profile profile = {{{0}}, {{0}}};

	*map = (struct miss_map){.row_axis = -1};
	if (found->elements < 1)
		return false;
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < found->elements; i++) {
			int level = level_of(dtype_load(found->data, found->dtype, i), dtype_load(truth->data, truth->dtype, i), rule);

			if (pass == 0) {
				map->histogram[level]++;
				add_element(found, i, level >= MISS_BOUND, &profile);
			} else {
				add_level(found, i, level, map);
			}
		}
		if (pass == 0)
			choose_axes(found, &profile, map);
	}
	return true;
}
