#include "kernels/core/shape_match.h"

#include <ctype.h>
#include <string.h>

bool match_is_float(const struct op_arg *arg)
{
	return arg->rank != OP_SCALAR &&
	       (arg->dtype == DTYPE_FLOAT32 || arg->dtype == DTYPE_BFLOAT16 || arg->dtype == DTYPE_FLOAT16);
}

bool match_is_index(const struct op_arg *arg)
{
	return arg->rank == 1 && (arg->dtype == DTYPE_INT32 || arg->dtype == DTYPE_INT64);
}

bool match_same_axis(const struct op_problem *problem, int a, int b)
{
	const struct op_axis *x = &problem->axes[a], *y = &problem->axes[b];

	return a == b || (!x->var && !y->var && x->value == y->value);
}

bool match_same_axes(const struct op_problem *problem, const struct op_arg *a, int from, const struct op_arg *b,
                     int b_from, int count)
{
	if (a->rank < from + count || b->rank < b_from + count)
		return false;
	for (int d = 0; d < count; d++)
		if (!match_same_axis(problem, a->axis[from + d], b->axis[b_from + d]))
			return false;
	return true;
}

bool match_same_shape(const struct op_arg *a, const struct op_arg *b)
{
	if (a->rank != b->rank)
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->axis[d] != b->axis[d])
			return false;
	return true;
}

int64_t match_fixed_length(const struct op_problem *problem, const struct op_arg *arg, int dimension)
{
	const struct op_axis *axis = &problem->axes[arg->axis[dimension]];

	return axis->var ? 0 : axis->value;
}

static int folded(char c)
{
	return c == '-' ? '_' : tolower((unsigned char)c);
}

bool match_contains(const char *text, const char *word)
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

bool match_mentions(const struct op_problem *problem, const char *word)
{
	for (int i = 0; i < problem->tag_count; i++)
		if (match_contains(problem->tags[i], word))
			return true;
	return match_contains(problem->name, word);
}

static const char *kind_of(const struct op_problem *problem, const struct op_arg *arg)
{
	for (int i = 0; i < problem->output_count; i++)
		if (arg == &problem->outputs[i])
			return "output";
	return "input";
}

int match_refuse(const struct op_problem *problem, const struct op_arg *arg, const char *expected, struct err *why)
{
	char shape[512];

	return err_set(why, "%s '%s' is %s of %s; expected %s", kind_of(problem, arg), arg->name,
		       op_shape_text(problem, arg, shape, sizeof shape), dtype_name(arg->dtype), expected);
}

int match_refuse_unknown(const struct op_problem *problem, const struct op_arg *arg, const char *known,
			 struct err *why)
{
	const char *kind = kind_of(problem, arg);
	char shape[512];

	return err_set(why, "%s '%s' is %s of %s; the operation has no such %s, or the definition has two of them; the %ss "
			    "of the operation are: %s",
		       kind, arg->name, op_shape_text(problem, arg, shape, sizeof shape), dtype_name(arg->dtype), kind,
		       kind, known);
}
