#include "kernels/core/row_counts.h"

static const int64_t blocks[] = {256, 128, 64, 32, 16};
enum { BLOCKS = sizeof blocks / sizeof *blocks, BLOCK_ELEMENTS = 20 << 20 };

int64_t rows_within(const int64_t *rows, int count, int64_t columns, int64_t elements)
{
	for (int i = 0; i + 1 < count; i++)
		if (rows[i] <= elements / (columns > 0 ? columns : 1))
			return rows[i];
	return rows[count - 1];
}

int64_t rows_block(int64_t columns)
{
	return rows_within(blocks, BLOCKS, columns, BLOCK_ELEMENTS);
}

int64_t rows_past_block(int64_t columns, int64_t elements)
{
	static const int64_t grid[] = {ROWS_PAST_GRID, 0}, more[] = {513, 0};
	int64_t rows = rows_within(grid, 2, columns, elements / 5);

	if (rows == 0)
		rows = rows_within(more, 2, columns, elements / 4 * 3);
	return rows > 0 ? rows : rows_block(columns) + 1;
}

int64_t rows_at_least(int64_t rows, int64_t least, int64_t block)
{
	return rows >= least ? rows : rows + (least - rows + block - 1) / block * block;
}

int rows_of_size(enum op_size size, int64_t columns, int64_t elements, int64_t rows[ROWS_CASES])
{
	int64_t small = rows_within(blocks, BLOCKS, columns, ROWS_SMALL_ELEMENTS), block = rows_block(columns);

	rows[0] = size == SIZE_SMALL ? 1 : size == SIZE_MEDIUM ? rows_past_block(columns, elements) : 16384;
	rows[1] = size == SIZE_SMALL ? small : block;
	return size == SIZE_SMALL || (size == SIZE_MEDIUM && block > small) ? 2 : 1;
}

int rows_axis(const struct op_problem *problem, const struct op_arg *arg)
{
	for (int d = arg->rank - 2; d >= 0; d--)
		if (problem->axes[arg->axis[d]].var && arg->axis[d] != arg->axis[arg->rank - 1])
			return arg->axis[d];
	return -1;
}

void rows_set(const struct op_problem *problem, const struct op_arg *arg, int64_t rows, int64_t others, int64_t *axis)
{
	int rest = rows_axis(problem, arg);

	op_start_axes(problem, 1, axis);
	for (int d = 0; d + 1 < arg->rank; d++)
		if (arg->axis[d] != arg->axis[arg->rank - 1])
			op_set_axis(problem, arg->axis[d], arg->axis[d] == rest ? rows : others, axis);
}

void rows_divide(const struct op_problem *problem, const struct op_arg *arg, int fixed, int64_t rows, int64_t *axis)
{
	int last = arg->axis[arg->rank - 1], rest = -1;

	for (int d = 0; d + 1 < arg->rank; d++) {
		int at = arg->axis[d];

		if (at == last || at == fixed || !problem->axes[at].var) {
			rows = rows / axis[at] + (rows % axis[at] != 0);
		} else {
			if (rest >= 0 && rest != at) {
				axis[rest] = rows < 4 ? rows : 4;
				rows = rows / axis[rest] + (rows % axis[rest] != 0);
			}
			rest = at;
		}
	}
	if (rest >= 0)
		axis[rest] = rows;
}
