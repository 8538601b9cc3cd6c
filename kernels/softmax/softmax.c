/* softmax - computes y[r][c] = e^(x[r][c] / T) / sum over c of e^(x[r][c] / T). T is a temperature for all rows, one
 * temperature per row, or 1 if there is none.
 *
 * Logits are [..., V] in float32, float16 or bfloat16, and the output has the same shape. The temperature is a Python
 * scalar or [rows], and its name contains "temperature". An element of -infinity is masked, and its result is 0. If all
 * elements of a row are -infinity, the ground truth of the row is NaN. FlashInfer's sampling.softmax is this operation,
 * with op_type sampling.
 *
 * Tolerance. The exponent x / T - max is the difference of two numbers of up to 832 (input_values.h), each with a
 * relative error of 2^-24. In float32, the exponent thus has an error of 1e-4, and y has a relative error of 1e-4. A
 * reference may also round 1 / T. This rounding changes x / T and max by the same factor, and adds a relative error of
 * 2^-24 to the exponent. The magnitude of the exponent is below 104 unless y is 0 in float32, so the added error is
 * below 1e-5. Therefore rtol is 2e-4, twice the total error. The sum of positive numbers adds almost no error. Even a
 * small probability such as 1 / V must be accurate. Therefore atol is only 1e-37, just above the smallest normal
 * float32 number; for float16, atol is the smallest subnormal number. Outputs of bfloat16 and float16 are rounded once
 * more: their rtol is 2^-7 or 2^-10, plus 2e-4. */
#include "kernels/softmax/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/row_counts.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/simd.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 20 }; /* if there are fewer elements, one thread is faster than several */

static bool is_softmax(const struct op_problem *problem)
{
	return strstr(problem->op_type, "softmax") != NULL || strstr(problem->name, "softmax") != NULL;
}

static int match(const struct op_problem *problem, struct err *why)
{
	char shape[256];

	if (!is_softmax(problem))
		return err_set(why, "neither the definition's name nor its op_type contains softmax");
	if (strstr(problem->name, "log_softmax") != NULL)
		return err_set(why, "the definition's name says that it returns logarithms");
	if (problem->output_count != 1 || problem->outputs[0].rank < 1 || problem->input_count < 1 ||
	    problem->input_count > 2)
		return err_set(
		    why, "the definition has %d inputs and %d outputs; a softmax has logits, optionally a temperature, "
			 "and one output",
		    problem->input_count, problem->output_count);
	const struct op_arg *x = &problem->inputs[softmax_logits(problem)], *y = &problem->outputs[0];

	if (!match_same_shape(x, y) || !match_is_float(x) || !match_is_float(y))
		return err_set(why, "input '%s' is %s %s; it must be a float tensor of the shape of output "
				    "'%s'", x->name,
		               dtype_name(x->dtype), op_shape_text(problem, x, shape, sizeof shape), y->name);
	if (problem->input_count == 1)
		return SOFTMAX_PLAIN;
	const struct op_arg *t = &problem->inputs[softmax_temperature(problem)];
	bool by_row = y->rank == 2 && t->rank == 1 && t->axis[0] == y->axis[0];

	if (strstr(t->name, "temperature") == NULL || !dtype_is_float(t->dtype) || (t->rank != OP_SCALAR && !by_row) ||
	    (by_row && !match_is_float(t)))
		return err_set(why, "input '%s' is %s %s; it must be a temperature: a Python scalar, or one float per "
				    "row",
		               t->name, dtype_name(t->dtype), op_shape_text(problem, t, shape, sizeof shape));
	return SOFTMAX_TEMPERATURE;
}

/* The maximum number of elements in a default case with 513 or more rows. */
enum { SOFTMAX_ELEMENTS = 11 << 20 };

/* Of the var axes before the axis of columns, the last gets the number of rows (rows_of_size) as its length, and the
 * others get the length 2. */
static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t columns[] = {1000, 32000, 128256};
	const struct op_arg *y = &problem->outputs[0];
	int last = y->axis[y->rank - 1];
	int64_t width = problem->axes[last].var ? columns[size] : problem->axes[last].value, rows[ROWS_CASES];
	int count = rows_of_size(size, width, SOFTMAX_ELEMENTS, rows);

	(void)variant;
	for (int i = 0; i < count && i < room; i++) {
		int64_t *row = axis + (int64_t)i * problem->axis_count;

		rows_set(problem, y, size == SIZE_LARGE ? 1024 : rows[i], 2, row);
		row[last] = width;
	}
	return count < room ? count : room;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_ROWS = 1, EDGE_ONE_LEFT };

static const struct op_edge edges[] = {
    {"no_rows", "if the input has no rows, the output has no rows"},
    {"one_left", "the only unmasked element of a row becomes 1, and the masked elements become exactly 0"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	return op_edge_rows(sizes, problem, variant, edge == EDGE_NO_ROWS ? 0 : 9, axis);
}

static struct rule rule(const struct op_case *c, int output)
{
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_FLOAT16:
		return (struct rule){0x1p-24, 0x1p-10 + 2e-4, 1};
	case DTYPE_BFLOAT16:
		return (struct rule){1e-37, 0x1p-7 + 2e-4, 1};
	default:
		return (struct rule){1e-37, 2e-4, 1};
	}
}

/* Returns the temperature of all rows. The temperature is below 1 in one set of values and above 1 in the other. With
 * many rows, however, the temperature is exactly 1 in the second set, because a reference may treat a temperature of 1
 * as an absent temperature. Cases of one row, of few rows and of many rows have different temperatures. An absent
 * temperature means 1. */
static double scalar(const struct op_case *c, int input)
{
	static const double values[3][CONTENTS_COUNT] = {{0.3, 2.5}, {4, 0.04}, {0.15, 1}};
	const struct op_arg *y = &c->problem->outputs[0];
	int64_t rows = 1;

	if (c->absent >> input & 1)
		return 1;
	for (int d = 0; d + 1 < y->rank; d++)
		rows = c->axis[y->axis[d]] > rows ? c->axis[y->axis[d]] : rows;
	return values[rows == 1 ? 0 : rows % 2 == 0 ? 1 : 2][c->contents];
}

/* Returns the range of an input. For temperatures, the range goes from nearly greedy to nearly uniform sampling. For
 * logits, the range does not include the masks. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	bool shared = problem->inputs[input].rank == OP_SCALAR;

	(void)variant;
	*out = input == softmax_temperature(problem) ? (struct op_range){shared ? 0.041 : 0x1p-8, 4} : (struct op_range){-36864, 207};
	return true;
}

/* For the axis of rows, returns the number of rows of the first medium case as `most`: 257 or more, or 129 if a row has
 * more than 81920 columns. */
static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *y = &problem->outputs[0];
	const struct op_axis *last = &problem->axes[y->axis[y->rank - 1]];
	int64_t columns = last->var ? 32000 : last->value;

	(void)variant;
	if (axis == y->axis[y->rank - 1])
		return (struct op_reach){32000, 0};
	if (axis != rows_axis(problem, y))
		return (struct op_reach){1, 0};
	return (struct op_reach){rows_past_block(columns, SOFTMAX_ELEMENTS), rows_block(columns)};
}

WIDE static void make_row(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                          float *values)
{
	const struct softmax_fill *f = recipe;
	int64_t chosen = softmax_chosen(f, row) - column;

	for (int64_t i = 0; i < count; i++)
		values[i] = softmax_at(f, row, 0, random[i]);
	if (chosen >= 0 && chosen < count)
		values[chosen] = softmax_at(f, row, 1, random[chosen]);
}

static void make_one_left(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                          float *values)
{
	const struct softmax_fill *f = recipe;
	int64_t chosen = softmax_chosen(f, row);

	for (int64_t i = 0; i < count; i++)
		values[i] = column + i != chosen ? -INFINITY : softmax_at(f, row, 1, random[i]);
}

struct temperature_recipe {
	struct softmax_fill fill;
	bool exact; /* whether bfloat16 must represent the temperatures exactly; true unless their dtype is float32 */
};

static void make_temperatures(const void *recipe, int64_t row, int64_t column, int64_t count, const uint32_t *random,
                              float *values)
{
	const struct temperature_recipe *t = recipe;

	(void)row;
	for (int64_t i = 0; i < count; i++)
		values[i] = softmax_temperature_of(&t->fill, t->exact, column + i, random[i]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct softmax_fill f = softmax_fill_of(c, input);

	const struct temperature_recipe t = {f, out->dtype != DTYPE_FLOAT32};

	(void)err;
	if (input == softmax_temperature(c->problem))
		input_fill(out, f.key, out->elements, make_temperatures, &t);
	else
		input_fill(out, f.key, f.columns, c->edge == EDGE_ONE_LEFT ? make_one_left : make_row, &f);
	return 0;
}

/* The mistakes that the oracle simulates. With OVER_ROWS and COMMON_MAXIMUM, rows are not normalised separately. */
enum mistake {
	NO_MISTAKE, LOGARITHM, BASE_2, NOT_DIVIDED, MEAN, SIGMOID, MULTIPLIED, NO_TEMPERATURE, OF_THE_OUTPUT, ROUNDED_LOGITS,
	ROUNDED_EXPONENTIALS, ROUNDED_SUM, SATURATED_SUM, EPSILON, NO_MAXIMUM, LAST_LEFT_OUT, FINITE_MASK,
	GREEDY, OVER_ROWS, COMMON_MAXIMUM
};

static const struct op_mistake mistakes[] = {
    {.says = "the logarithm of the softmax was returned", .in_oracle = LOGARITHM},
    {.says = "powers of 2 were used instead of powers of e", .in_oracle = BASE_2},
    {.says = "the exponentials were not divided by their sum", .in_oracle = NOT_DIVIDED},
    {.says = "the exponentials were divided by their mean", .in_oracle = MEAN},
    {.says = "sigmoid was applied to each logit", .in_oracle = SIGMOID},
    {.says = "logits were multiplied by the temperature", .in_oracle = MULTIPLIED},
    {.says = "the temperature was left out", .in_oracle = NO_TEMPERATURE},
    {.says = "the probabilities, not the logits, were divided by the temperature", .in_oracle = OF_THE_OUTPUT},
    {.says = "logits were rounded to bfloat16 after the division by the temperature", .in_oracle = ROUNDED_LOGITS},
    {.says = "the exponentials were rounded to bfloat16", .in_oracle = ROUNDED_EXPONENTIALS},
    {.says = "the sum of the exponentials was rounded to bfloat16", .in_oracle = ROUNDED_SUM},
    {.says = "the sum of the exponentials was rounded to float16", .in_oracle = SATURATED_SUM},
    {.says = "an epsilon of 1e-2 was added to the sum of the exponentials", .in_oracle = EPSILON, .by = 1e-2},
    {.says = "an epsilon of 1e-3 was added to the sum of the exponentials", .in_oracle = EPSILON, .by = 1e-3},
    {.says = "the largest logit was not subtracted before the exponentials, which overflow", .in_oracle = NO_MAXIMUM},
    {.says = "the largest logit of all rows was subtracted, not that of each row", .in_oracle = COMMON_MAXIMUM},
    {.says = "the last logit of each row was left out", .in_oracle = LAST_LEFT_OUT},
    {.says = "temperatures below 0.3 were greedy", .in_oracle = GREEDY, .by = 0.3},
    {.says = "temperatures below 0.1 were greedy", .in_oracle = GREEDY, .by = 0.1},
    {.says = "columns, not rows, were normalised", .in_oracle = OVER_ROWS},
    {.says = "masked logits (-infinity) were -20", .in_oracle = FINITE_MASK, .by = -20},
    {.says = NULL},
};

static double rounded(double x, enum dtype dtype)
{
	unsigned char bytes[8];

	dtype_store(bytes, dtype, 0, x);
	return dtype_load(bytes, dtype, 0);
}

/* Returns the exponential of a scaled logit, or what a reference with the mistake computes instead. */
static double exponential(enum mistake mistake, double scaled, double most)
{
	if (mistake == NO_MAXIMUM)
		return (double)expf((float)scaled);
	if (mistake == ROUNDED_EXPONENTIALS)
		return rounded(exp(scaled - most), DTYPE_BFLOAT16);
	return exp(scaled - most);
}

/* Returns the sum by which exponentials are divided, as a reference with the mistake computes it. */
static double mistaken_sum(enum mistake mistake, double by, double sum)
{
	switch (mistake) {
	case NO_MAXIMUM:
		return (double)(float)sum;
	case ROUNDED_SUM:
		return rounded(sum, DTYPE_BFLOAT16);
	case SATURATED_SUM:
		return rounded(sum, DTYPE_FLOAT16);
	case EPSILON:
		return sum + by;
	default:
		return sum;
	}
}

/* Sets the first of the largest elements to 1, and all other elements to 0. */
static void choose(double *row, int64_t columns)
{
	int64_t first = 0;

	for (int64_t i = 1; i < columns; i++)
		first = row[i] > row[first] ? i : first;
	for (int64_t i = 0; i < columns; i++)
		row[i] = i == first ? 1 : 0;
}

/* Normalises a row as a reference with the mistake does. */
static void mistake_row(enum mistake mistake, double by, double *row, int64_t columns, double temperature)
{
	bool plain = mistake == NO_TEMPERATURE || mistake == OF_THE_OUTPUT;
	double most = -INFINITY, sum = 0, factor = mistake == MULTIPLIED ? temperature : plain ? 1 : 1 / temperature;

	if (mistake == GREEDY && temperature < by) {
		choose(row, columns);
		return;
	}
	if (mistake == LAST_LEFT_OUT)
		row[columns - 1] = -INFINITY;
	factor *= mistake == BASE_2 ? log(2) : 1;
	for (int64_t i = 0; i < columns; i++) {
		row[i] *= factor;
		if (mistake == FINITE_MASK && isinf(row[i]))
			row[i] = by;
		if (mistake == ROUNDED_LOGITS)
			row[i] = rounded(row[i], DTYPE_BFLOAT16);
		most = fmax(most, row[i]);
	}
	for (int64_t i = 0; i < columns; i++)
		sum += exponential(mistake, row[i], most);
	sum = mistaken_sum(mistake, by, sum);
	for (int64_t i = 0; i < columns; i++) {
		double share = exponential(mistake, row[i], most);

		row[i] = mistake == SIGMOID	? 1 / (1 + exp(-row[i]))
			 : mistake == LOGARITHM	? row[i] - most - log(sum)
			 : mistake == NOT_DIVIDED ? share
			 : mistake == MEAN	? share * (double)columns / sum
			 : mistake == OF_THE_OUTPUT ? share / sum / temperature
						: share / sum;
	}
}

static void normalise(double *row, int64_t columns, double temperature)
{
	double most = -INFINITY, sum = 0;

	for (int64_t i = 0; i < columns; i++)
		most = fmax(most, row[i] /= temperature);
	for (int64_t i = 0; i < columns; i++)
		sum += row[i] = exp(row[i] - most);
	for (int64_t i = 0; i < columns; i++)
		row[i] /= sum;
}

/* Rejects a row that has no softmax, because it has NaN or infinity, or because all its elements are masked. */
static int check_logits(const struct op_case *c, const struct tensor *in, int input, struct err *err)
{
	const struct tensor *x = &in[input];
	int64_t columns = softmax_fill_of(c, input).columns, left = 0;

	if (!check_brought(c, in, input))
		return 0;
	for (int64_t i = 0; i < x->elements; i++) {
		double value = dtype_load(x->data, x->dtype, i);
		char place[160];

		if (isnan(value) || (isinf(value) && value > 0))
			return err_set(err, "input '%s' holds %s at %s; a row with this element has no softmax",
			               c->problem->inputs[input].name, isnan(value) ? "NaN" : "infinity",
			               check_place(x, i, place, sizeof place));
		left += isfinite(value);
		if (i % columns == columns - 1 && left == 0)
			return err_set(err, "input '%s' is -infinity in all of row %lld; such a row has no softmax",
			               c->problem->inputs[input].name, (long long)(i / columns));
		left = i % columns == columns - 1 ? 0 : left;
	}
	return 0;
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	int t = softmax_temperature(c->problem);

	if (check_logits(c, in, softmax_logits(c->problem), err) != 0 ||
	    check_numbers(c, in, t, true, "a temperature must be a finite number", err) != 0)
		return -1;
	if (check_is_number(c, t) && c->scalar[t] == 0)
		return err_set(err, "input '%s' is 0; logits cannot be divided by this temperature",
		               c->problem->inputs[t].name);
	for (int64_t r = 0; check_brought(c, in, t) && r < in[t].elements; r++)
		if (dtype_load(in[t].data, in[t].dtype, r) == 0)
			return err_set(err, "input '%s' holds 0 at [%lld]; logits cannot be divided by this "
					    "temperature",
			               c->problem->inputs[t].name, (long long)r);
	return 0;
}

/* The logits and temperatures of a case. */
struct work {
	const struct op_case *c;
	struct tensor logits, temperatures;
	int64_t columns, rows;
	double shared; /* if `temperatures` is empty, the temperature of all rows */
	struct tensor *out;
};

static double temperature_of(const struct work *w, int64_t row)
{
	return w->temperatures.data == NULL ? w->shared : dtype_load(w->temperatures.data, w->temperatures.dtype, row);
}

static double scaled(const struct work *w, int64_t row, int64_t column)
{
	return dtype_load(w->logits.data, w->logits.dtype, row * w->columns + column) / temperature_of(w, row);
}

/* Normalises each column instead of each row. */
static void normalise_columns(const struct work *w)
{
	double *column = take(w->rows, sizeof *column);

	for (int64_t i = 0; i < w->columns; i++) {
		for (int64_t r = 0; r < w->rows; r++)
			column[r] = scaled(w, r, i);
		normalise(column, w->rows, 1);
		for (int64_t r = 0; r < w->rows; r++)
			dtype_store(w->out->data, w->out->dtype, r * w->columns + i, column[r]);
	}
	free(column);
}

/* Normalises the rows in float32, after subtracting the largest scaled logit of all rows. */
static void normalise_together(const struct work *w)
{
	double most = -INFINITY;

	for (int64_t i = 0; i < w->rows * w->columns; i++)
		most = fmax(most, scaled(w, i / w->columns, i % w->columns));
	for (int64_t r = 0; r < w->rows; r++) {
		float sum = 0;

		for (int64_t i = 0; i < w->columns; i++)
			sum += expf((float)(scaled(w, r, i) - most));
		for (int64_t i = 0; i < w->columns; i++)
			dtype_store(w->out->data, w->out->dtype, r * w->columns + i,
				    (double)(expf((float)(scaled(w, r, i) - most)) / sum));
	}
}

static void normalise_row(const struct work *w, int64_t r, double *row)
{
	dtype_load_run(w->logits.data, w->logits.dtype, r * w->columns, w->columns, row);
	if (w->c->mistake == NO_MISTAKE)
		normalise(row, w->columns, temperature_of(w, r));
	else
		mistake_row((enum mistake)w->c->mistake, w->c->mistake_by, row, w->columns, temperature_of(w, r));
	dtype_store_run(w->out->data, w->out->dtype, r * w->columns, w->columns, row);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	int t = softmax_temperature(c->problem);
	struct work w = {.c = c, .logits = in[softmax_logits(c->problem)], .columns = softmax_fill_of(c, 0).columns, .out = &out[0],
			 .shared = t >= 0 && in[t].rank == OP_SCALAR ? c->scalar[t] : 1};

	w.rows = w.columns > 0 ? w.logits.elements / w.columns : 0;
	w.temperatures = op_tensor(in, t);
	if (c->mistake == OVER_ROWS)
		normalise_columns(&w);
	if (c->mistake == COMMON_MAXIMUM)
		normalise_together(&w);
	if (c->mistake >= OVER_ROWS)
		return 0;
	(void)err;
#pragma omp parallel if (w.logits.elements >= PARALLEL_FROM)
	{
		double *row = take(w.columns, sizeof *row);

#pragma omp for
		for (int64_t r = 0; r < w.rows; r++)
			normalise_row(&w, r, row);
		free(row);
	}
	return 0;
}

static const char *const op_types[] = {"softmax", "sampling", NULL};
static const char *const op_words[] = {"softmax", NULL};

struct roles {
	int logits, temperature, output;
};

static const struct op_role roles[] = {
    OP_ROLE("logits", struct roles, logits),
    OP_ROLE("temperature", struct roles, temperature),
    OP_ROLE_OUTPUT("output", struct roles, output),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct roles *)out = (struct roles){softmax_logits(problem), softmax_temperature(problem), 0};
}

static const struct op_coverage coverage[] = {
    COVERAGE_OPTION("temperature", "temperature", "given", "has a temperature", "none", "has no temperature"),
    COVERAGE_DTYPES_WIDE("logits"),
    COVERAGE_ROWS("logits"),
    {.name = NULL},
};

const struct op softmax_op = {
    .name = "softmax",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = mistakes,
    .coverage = coverage,
    .sizes = sizes,
    .medium_runs = LAST_MEDIUM_RUNS_ONCE,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
};
