#include "kernels/core/row_counts.h"

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
