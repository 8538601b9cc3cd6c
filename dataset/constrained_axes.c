#include "dataset/constrained_axes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataset/axis_expressions.h"
#include "dataset/constraint.h"

/* TRIES: the maximum number of assignments that one search tries. VALUES: the maximum number of values that a search
 * tries for one axis. A search tries all values up to SMALLEST, and all values that differ by at most NEAR from the
 * value in the caller's row. */
enum { TRIES = 20000, VALUES = 256, NEAR = 64, SMALLEST = 16, SMALL_BYTES = 64 << 20 };

struct search {
	const struct definition *definition;
	const int64_t *wished; /* the caller's row */
	int64_t bytes;         /* the limit for the size of all tensors together */
	int tries;             /* the number of assignments that may still be tried */
	int order[DEFINITION_AXES], count; /* the axes that may change, in the order in which they get values */
};

static bool has_expression(const struct definition *d, int axis)
{
	return d->axis_expressions != NULL && d->axis_expressions[axis] != NULL;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (unsigned char)c >= 128;
}

/* Returns whether a text contains `name` as a whole word. */
static bool names(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = strstr(text, name); at != NULL; at = strstr(at + 1, name))
		if ((at == text || !is_word(at[-1])) && !is_word(at[length]))
			return true;
	return false;
}

/* Returns false if a constraint is false or cannot be evaluated. A constraint that needs an unknown axis does not count
 * as false. */
static bool breaks_nothing(const struct definition *d, const int64_t *axis)
{
	for (int i = 0; i < d->constraint_count; i++) {
		enum constraint_answer answer = constraint_evaluate(d, d->constraints[i], axis, NULL, NULL);

		if (answer == CONSTRAINT_BROKEN || answer == CONSTRAINT_ERROR)
			return false;
	}
	return true;
}

/* Returns the size of all tensors together. If the size overflows, returns a number above every limit. */
static int64_t bytes_of(const struct definition *d, const int64_t *axis)
{
	int64_t sum = 0;

	for (int i = 0; i < d->input_count + d->output_count; i++) {
		int64_t bytes = definition_bytes(i < d->input_count ? &d->inputs[i] : &d->outputs[i - d->input_count], axis);

		if (bytes < 0)
			return INT64_MAX;
		sum += bytes;
	}
	return sum;
}

/* --- the values to try ------------------------------------------------------------------------------------------ */

struct values {
	int64_t list[VALUES];
	int count;
	int64_t wished;
};

static void add_value(struct values *values, int64_t value)
{
	if (value < 1 || value > (INT64_C(1) << 40) || values->count == VALUES)
		return;
	for (int i = 0; i < values->count; i++)
		if (values->list[i] == value)
			return;
	values->list[values->count++] = value;
}

static void add_around(struct values *values, int64_t value)
{
	for (int64_t d = -1; d <= 1; d++)
		add_value(values, value + d);
	add_value(values, value * 2);
	add_value(values, value / 2);
}

/* For each number n in the text of a constraint, adds n - 1, n, n + 1, 2 n and n / 2 to the values to try. */
static void add_numbers(struct values *values, const char *text)
{
	for (const char *at = text; *at != '\0'; at++) {
		char *end;

		if (*at < '0' || *at > '9' || (at > text && is_word(at[-1])))
			continue;
		long long number = strtoll(at, &end, 10);

		if (number < (1LL << 40))
			add_around(values, number);
		at = end - 1;
	}
}

/* Returns the distance between two values: the absolute logarithm of their ratio. */
static double distance(int64_t value, int64_t from)
{
	return fabs(log((double)value) - log((double)(from > 0 ? from : 1)));
}

static void sort_by_distance(struct values *values)
{
	for (int i = 1; i < values->count; i++)
		for (int k = i; k > 0 && distance(values->list[k], values->wished) < distance(values->list[k - 1], values->wished); k--) {
			int64_t value = values->list[k];

			values->list[k] = values->list[k - 1];
			values->list[k - 1] = value;
		}
}

/* Returns the values to try for an axis: its value in the row `wished`, values near that value, that value rounded up
 * to multiples of 8, 16, …, 1024, small values, and values derived from numbers in the constraints or from the values
 * of other axes. */
static struct values values_for(const struct search *s, int axis, const int64_t *row)
{
	const struct definition *d = s->definition;
	struct values values = {.wished = s->wished[axis]};

	add_value(&values, values.wished);
	for (int i = 0; i < d->constraint_count; i++)
		if (names(d->constraints[i], d->axes[axis].name))
			add_numbers(&values, d->constraints[i]);
	for (int i = 0; i < d->axis_count; i++)
		if (row[i] > 0)
			add_around(&values, row[i]);
	for (int64_t k = 1; k <= NEAR; k++) {
		add_value(&values, values.wished + k);
		add_value(&values, values.wished - k);
	}
	for (int64_t k = 1; k <= SMALLEST; k++)
		add_value(&values, k);
	for (int64_t k = 8; k <= 1024; k *= 2)
		add_value(&values, (values.wished + k - 1) / k * k);
	sort_by_distance(&values);
	return values;
}

/* Returns whether a constraint says that the length of the axis is 0. */
static bool is_said_to_be_zero(const struct definition *d, int axis)
{
	const char *name = d->axes[axis].name;
	size_t length = strlen(name);

	for (int i = 0; i < d->constraint_count; i++) {
		const char *text = d->constraints[i] + strspn(d->constraints[i], " "), *rest = text + length;

		if (strncmp(text, name, length) != 0)
			continue;
		rest += strspn(rest, " ");
		if (strncmp(rest, "==", 2) != 0)
			continue;
		rest += 2 + strspn(rest + 2, " ");
		if (*rest == '0' && rest[1 + strspn(rest + 1, " ")] == '\0')
			return true;
	}
	return false;
}

/* --- the search ------------------------------------------------------------------------------------------------- */

/* Finds values for the unknown axes (-1) of a row. All unknown axes are at position `at` or later in `order`. Returns
 * false if no values are found. */
static bool complete(struct search *s, int at, int64_t *row)
{
	const struct definition *d = s->definition;
	int64_t before[DEFINITION_AXES];
	struct err why;
	int place;

	if (s->tries-- <= 0)
		return false;
	constraint_solve(d, row);
	for (int i = 0; i < d->axis_count; i++)
		if (row[i] == 0 && d->axes[i].var && !is_said_to_be_zero(d, i))
			return false;
	if (!breaks_nothing(d, row))
		return false;
	while (at < s->count && row[s->order[at]] >= 0)
		at++;
	if (at == s->count)
		return axis_expressions_compute(d, row, &place, &why) == 0 && breaks_nothing(d, row) && bytes_of(d, row) <= s->bytes;
	struct values values = values_for(s, s->order[at], row);

	memcpy(before, row, (size_t)d->axis_count * sizeof *row);
	for (int i = 0; i < values.count; i++) {
		memcpy(row, before, (size_t)d->axis_count * sizeof *row);
		row[s->order[at]] = values.list[i];
		if (complete(s, at + 1, row))
			return true;
	}
	return false;
}

/* Searches for a row in which only the first `changing` axes in `order` differ from the row `wished`. */
static bool search_with(struct search *s, int changing, int64_t *row)
{
	const struct definition *d = s->definition;
	int count = s->count;

	for (int i = 0; i < d->axis_count; i++)
		row[i] = has_expression(d, i) ? -1 : s->wished[i];
	for (int i = 0; i < changing; i++)
		row[s->order[i]] = -1;
	s->count = changing;
	s->tries = TRIES;
	bool found = complete(s, 0, row);

	s->count = count;
	return found;
}

/* Sets s->order to the axes that may change: the var axes that have no expression and are named in a constraint. The
 * more constraints name an axis, the later the axis comes in this order. */
static void order_axes(struct search *s)
{
	const struct definition *d = s->definition;
	int named[DEFINITION_AXES] = {0};

	for (int i = 0; i < d->axis_count; i++) {
		for (int k = 0; k < d->constraint_count; k++)
			named[i] += names(d->constraints[k], d->axes[i].name);
		if (!d->axes[i].var || has_expression(d, i) || named[i] == 0)
			continue;
		int at = s->count++;

		for (; at > 0 && named[s->order[at - 1]] > named[i]; at--)
			s->order[at] = s->order[at - 1];
		s->order[at] = i;
	}
}

static void reverse_order(struct search *s)
{
	for (int i = 0; i < s->count / 2; i++) {
		int axis = s->order[i];

		s->order[i] = s->order[s->count - 1 - i];
		s->order[s->count - 1 - i] = axis;
	}
}

/* Searches first for a row in which one axis changes, then two axes, and so on. */
static bool search_all(struct search *s, int64_t *row)
{
	for (int changing = 1; changing <= s->count; changing++)
		if (search_with(s, changing, row))
			return true;
	/* In the reverse order, the axis that is named in the most constraints gets its value first. This helps with
	 * constraints such as `size == m * 128`: the value of `size` follows from the value of m. */
	reverse_order(s);
	return search_with(s, s->count, row);
}

bool constrained_axes_fit(const struct definition *definition, int64_t *row)
{
	struct search search = {.definition = definition, .wished = row};
	int64_t axis[DEFINITION_AXES], wished = bytes_of(definition, row);

	if (breaks_nothing(definition, row))
		return true;
	search.bytes = wished > SMALL_BYTES ? wished : SMALL_BYTES;
	order_axes(&search);
	if (!search_all(&search, axis))
		return false;
	memcpy(row, axis, (size_t)definition->axis_count * sizeof *row);
	return true;
}
