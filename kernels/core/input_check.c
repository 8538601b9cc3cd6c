#include "kernels/core/input_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/core/dtype_convert.h"

bool check_brought(const struct op_case *c, const struct tensor *in, int input)
{
	return input >= 0 && (c->given >> input & 1) != 0 && in[input].data != NULL;
}

const char *check_place(const struct tensor *tensor, int64_t index, char *out, size_t size)
{
	int64_t at[OP_RANK] = {0};
	size_t length = 0;

	for (int d = tensor->rank - 1; d >= 0; d--) {
		at[d] = tensor->shape[d] > 0 ? index % tensor->shape[d] : 0;
		index = tensor->shape[d] > 0 ? index / tensor->shape[d] : 0;
	}
	snprintf(out, size, "[");
	for (int d = 0; d < tensor->rank; d++) {
		length = strlen(out);
		snprintf(out + length, size - length, "%s%lld", d > 0 ? ", " : "", (long long)at[d]);
	}
	length = strlen(out);
	snprintf(out + length, size - length, "]");
	return out;
}

int64_t check_integer(const struct tensor *tensor, int64_t index)
{
	return tensor->dtype == DTYPE_INT64 ? ((const int64_t *)tensor->data)[index]
	                                    : ((const int32_t *)tensor->data)[index];
}

int check_numbers_of_rows(const struct op_case *c, const struct tensor *in, int input, const uint8_t *rows, bool finite,
                          const char *why, struct err *err)
{
	char place[160];

	if (!check_brought(c, in, input) || !dtype_is_float(in[input].dtype))
		return 0;

	int64_t row = rows == NULL || in[input].shape[0] == 0 ? 1 : in[input].elements / in[input].shape[0];

	for (int64_t i = 0; i < in[input].elements; i++) {
		double value = dtype_load(in[input].data, in[input].dtype, i);

		if (rows != NULL && rows[i / row] == 0)
			continue;
		if (isnan(value) || (finite && isinf(value)))
			return err_set(err, "input '%s' holds %s at %s; %s", c->problem->inputs[input].name,
			               isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity",
			               check_place(&in[input], i, place, sizeof place), why);
	}
	return 0;
}

int check_numbers(const struct op_case *c, const struct tensor *in, int input, bool finite, const char *why,
                  struct err *err)
{
	return check_numbers_of_rows(c, in, input, NULL, finite, why, err);
}

int check_all_finite(const struct op_case *c, const struct tensor *in, struct err *err)
{
	for (int i = 0; i < c->problem->input_count; i++)
		if (check_numbers(c, in, i, true, "the result would be NaN, which equals no value", err) != 0)
			return -1;
	return 0;
}

int check_integers(const struct op_case *c, const struct tensor *in, int input, int64_t least, int64_t most,
                   const char *what, struct err *err)
{
	char place[160];

	if (!check_brought(c, in, input))
		return 0;
	for (int64_t i = 0; i < in[input].elements; i++) {
		int64_t value = check_integer(&in[input], i);

		if (value < least || value > most)
			return err_set(err, "input '%s' holds %lld at %s; %s", c->problem->inputs[input].name,
			               (long long)value, check_place(&in[input], i, place, sizeof place), what);
	}
	return 0;
}

bool check_is_number(const struct op_case *c, int input)
{
	return input >= 0 && c->problem->inputs[input].rank == OP_SCALAR && (c->given >> input & 1) != 0;
}

int check_scalar(const struct op_case *c, int input, double least, double most, const char *what, struct err *err)
{
	if (!check_is_number(c, input) || (c->scalar[input] >= least && c->scalar[input] <= most))
		return 0;
	return err_set(err, "input '%s' is %.17g; %s", c->problem->inputs[input].name, c->scalar[input], what);
}

int check_epsilon(const struct op_case *c, int input, struct err *err)
{
	return check_scalar(c, input, 0x1p-1074, 1e300,
	                    "the epsilon must be above 0, because a row of zeros cannot be normalised without it", err);
}
