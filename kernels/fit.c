#include "kernels/fit.h"

#include <ctype.h>
#include <string.h>

bool fit_is_float(const struct op_arg *arg)
{
	return arg->rank != OP_SCALAR &&
	       (arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_BFLOAT16 || arg->dtype == DTYPE_FLOAT16);
}

bool fit_is_index(const struct op_arg *arg)
{
	return arg->rank == 1 && (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64);
}

bool fit_same_axis(const struct op_problem *problem, int a, int b)
{
	const struct op_axis *x = &problem->axes[a], *y = &problem->axes[b];

	return a == b || (!x->var && !y->var && x->value == y->value);
}

bool fit_same_axes(const struct op_problem *problem, const struct op_arg *a, int from, const struct op_arg *b,
                   int b_from, int count)
{
	if (a->rank < from + count || b->rank < b_from + count)
		return false;
	for (int d = 0; d < count; d++)
		if (!fit_same_axis(problem, a->axis[from + d], b->axis[b_from + d]))
			return false;
	return true;
}

int64_t fit_fixed(const struct op_problem *problem, const struct op_arg *arg, int dimension)
{
	const struct op_axis *axis = &problem->axes[arg->axis[dimension]];

	return axis->var ? 0 : axis->value;
}

static int folded(char c)
{
	return c == '-' ? '_' : tolower((unsigned char)c);
}

bool fit_holds(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (; text != NULL && *text != '\0'; text++) {
		size_t i = 0;

		while (i < length && text[i] != '\0' && folded(text[i]) == folded(word[i]))
			i++;
		if (i == length)
			return true;
	}
	return false;
}

bool fit_said(const struct op_problem *problem, const char *word)
{
	for (int i = 0; i < problem->tag_count; i++)
		if (fit_holds(problem->tags[i], word))
			return true;
	return fit_holds(problem->name, word);
}

int fit_refuse(const char *family, const struct op_problem *problem, const struct op_arg *arg, const char *expected,
               struct err *why)
{
	char shape[512];

	return err_set(why, "%s: '%s' is %s of %s; expected %s", family, arg->name,
	               op_shape_text(problem, arg, shape, sizeof shape), dtype_name(arg->dtype), expected);
}
