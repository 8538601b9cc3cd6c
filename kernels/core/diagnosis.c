#include "kernels/core/diagnosis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/compare.h"
#include "kernels/core/confusion.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/take.h"

/* The mistakes of one problem, in the order of their numbers. */
struct list {
	const struct op *op;
	const struct diagnosis_set *set; /* the first */
	int count;
	int own, of_outputs; /* the first mistakes are those of the family, then those of outputs, then those of inputs */
	struct op_confusion items[DIAGNOSIS_CONFUSIONS];
	char says[DIAGNOSIS_CONFUSIONS][DIAGNOSIS_TEXT];
};

static bool never(struct op_variation *v, const struct op_confusion *confusion)
{
	return (void)v, (void)confusion, false;
}

/* Appends a mistake. `format` gets the names of its tensors and its number. */
__attribute__((format(printf, 3, 4))) static void add(struct list *list, struct op_confusion confusion, const char *format, ...)
{
	va_list args;

	if (list->count == DIAGNOSIS_CONFUSIONS)
		return;
	va_start(args, format);
	vsnprintf(list->says[list->count], DIAGNOSIS_TEXT, format, args);
	va_end(args);
	confusion.says = list->says[list->count];
	list->items[list->count++] = confusion;
}

/* ---- mistakes of any operation ---- */

static void add_constants(struct list *list)
{
	static const double values[] = {0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e4, 1e5, 5e5, 1e6, 1e7};
	const struct op_case *c = list->set->c;

	for (int k = 0; k < c->constant_count; k++) {
		const struct op_constant *constant = &c->constants[k];

		/* An epsilon is small, and a base of angles is large; other constants have no usual values. */
		bool small = strncmp(constant->name, "eps", 3) == 0, large = strstr(constant->name, "theta") != NULL;

		for (size_t i = 0; i < sizeof values / sizeof *values && (small || large); i++)
			if ((values[i] < 1) == small)
				add(list,
				    (struct op_confusion){.before = before_constant, .role = constant->name, .by = values[i]},
				    "%s = %g; %g is attested by %s", constant->name, values[i], constant->value, constant->source);
	}
}

/* Returns the only value of the reference whose magnitude is the largest, if the reference reaches it in several places: a limit. */
static double limit_of(const struct tensor *found)
{
	double most = 0;
	int64_t count = 0;

	for (int64_t i = 0; i < found->elements; i++) {
		double x = fabs(dtype_load(found->data, found->dtype, i));

		if (x > most)
			most = x, count = 0;
		count += x == most;
	}
	return count > 1 && isfinite(most) ? most : 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Returns the median of found / truth, or of found - truth if `difference`, to three digits; NaN if there is none. */
static double typical(const struct tensor *found, const struct tensor *truth, bool difference)
{
	double *values = take(found->elements, sizeof *values), middle = NAN;
	int64_t count = 0;
	char text[32];

	for (int64_t i = 0; truth != NULL && i < found->elements; i++) {
		double a = dtype_load(found->data, found->dtype, i), b = dtype_load(truth->data, truth->dtype, i);
		double x = difference ? a - b : a / b;

		if (isfinite(x) && (difference || b != 0))
			values[count++] = x;
	}
	qsort(values, (size_t)count, sizeof *values, by_value);
	if (count > 0)
		middle = values[count / 2];
	free(values);
	snprintf(text, sizeof text, "%.3g", middle);
	return strtod(text, NULL);
}

/* Adds a mistake with a number that the outputs of the reference show, or one that never agrees, so that the numbers of
 * mistakes stay. */
static void add_fitted(struct list *list, const char *name, const char *format, double by, double without,
		       bool (*after)(struct op_variation *, const struct op_confusion *))
{
	bool useful = isfinite(by) && fabs(by - without) > 1e-6 && fabs(by) > 1e-6;
	struct op_confusion confusion = {.before = useful ? NULL : never, .after = after, .role = name, .by = by};
	char number[32];

	snprintf(number, sizeof number, "%g", by);
	add(list, confusion, format, name == NULL ? "" : name, number);
}

static void add_output(struct list *list, const struct op_variation *right, int at)
{
	const struct op_problem *problem = list->set->c->problem;
	const char *name = problem->outputs[at].name;
	const struct tensor *found = &list->set->found[at], *truth = right == NULL ? NULL : &right->out[at];

	if (!dtype_is_float(problem->outputs[at].dtype) || found->data == NULL)
		return;
	add(list, (struct op_confusion){.after = after_set, .role = name}, "output '%s' were 0", name);
	add_fitted(list, name, "output '%s' were multiplied by %s", typical(found, truth, false), 1, after_scale);
	add_fitted(list, name, "output '%s' were increased by %s", typical(found, truth, true), 0, after_add);
	add_fitted(list, name, "output '%s' were limited to magnitudes of %s", limit_of(found), 0, after_clamp);
	for (int d = 0; d < found->rank; d++) {
		add(list, (struct op_confusion){.after = after_flip, .role = name, .by = d}, "output '%s' were in reverse order along axis %d", name, d);
		add(list, (struct op_confusion){.after = after_next, .role = name, .by = d}, "output '%s' were shifted by one along axis %d", name, d);
		add(list, (struct op_confusion){.after = after_previous, .role = name, .by = d}, "output '%s' were shifted by one along axis %d", name, d);
		add(list, (struct op_confusion){.after = after_halves, .role = name, .by = d}, "the halves of output '%s' were swapped along axis %d", name, d);
	}
	add(list, (struct op_confusion){.after = after_transpose, .role = name}, "the last two axes of output '%s' were transposed", name);
	for (int i = 0; i < problem->input_count; i++) {
		add(list, (struct op_confusion){.after = after_input, .role = name, .other = problem->inputs[i].name},
		    "output '%s' were the unchanged input '%s'", name, problem->inputs[i].name);
		add(list, (struct op_confusion){.after = after_add_input, .role = name, .other = problem->inputs[i].name},
		    "input '%s' were added to output '%s'", problem->inputs[i].name, name);
	}
	for (int i = at + 1; i < problem->output_count; i++)
		add(list, (struct op_confusion){.after = after_swap, .role = name, .other = problem->outputs[i].name},
		    "outputs '%s' and '%s' were exchanged", name, problem->outputs[i].name);
}

/* Adds changes of a float tensor that is an input. */
static void add_float_input(struct list *list, const char *name, int rank)
{
	static const struct {
		enum dtype dtype;
		const char *name;
	} narrow[] = {{DTYPE_FLOAT8_E4M3FN, "float8_e4m3fn"}, {DTYPE_BFLOAT16, "bfloat16"}, {DTYPE_FLOAT16, "float16"}};
	static const double limits[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 448, 512, 1024, 2048, 4096};

	add(list, (struct op_confusion){.before = before_set, .role = name, .by = 0}, "input '%s' were left out (taken as 0)", name);
	add(list, (struct op_confusion){.before = before_set, .role = name, .by = 1}, "input '%s' were left out (taken as 1)", name);
	add(list, (struct op_confusion){.before = before_scale, .role = name, .by = -1}, "the sign of input '%s' were reversed", name);
	add(list, (struct op_confusion){.before = before_add, .role = name, .by = 1}, "1 were added to input '%s'", name);
	for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
		add(list, (struct op_confusion){.before = before_round, .role = name, .by = narrow[i].dtype}, "input '%s' were rounded to %s", name, narrow[i].name);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		add(list, (struct op_confusion){.before = before_clamp, .role = name, .by = limits[i]}, "input '%s' were limited to magnitudes of %g", name, limits[i]);
	add(list, (struct op_confusion){.before = before_halves, .role = name, .by = -1}, "the halves of input '%s' were swapped along its last axis", name);
	add(list, (struct op_confusion){.before = before_transpose, .role = name}, "the last two axes of input '%s' were transposed", name);
	(void)rank;
}

static void add_input(struct list *list, int at)
{
	const struct op_problem *problem = list->set->c->problem;
	const char *name = problem->inputs[at].name;
	int rank = problem->inputs[at].rank;

	if (rank == OP_SCALAR) {
		if (dtype_is_float(problem->inputs[at].dtype))
			add(list, (struct op_confusion){.before = before_set, .role = name, .by = 1}, "'%s' were left out (taken as 1)", name);
		return;
	}
	if (dtype_is_float(problem->inputs[at].dtype))
		add_float_input(list, name, rank);
	for (int d = 0; d < rank; d++) {
		add(list, (struct op_confusion){.before = before_flip, .role = name, .by = d}, "input '%s' were read in reverse order along axis %d", name, d);
		add(list, (struct op_confusion){.before = before_next, .role = name, .by = d}, "input '%s' were read one element too far along axis %d", name, d);
		add(list, (struct op_confusion){.before = before_previous, .role = name, .by = d}, "input '%s' were read one element too early along axis %d", name, d);
	}
	for (int i = 0; i < problem->input_count; i++) {
		if (i == at || problem->inputs[i].rank != rank || dtype_is_float(problem->inputs[i].dtype) != dtype_is_float(problem->inputs[at].dtype))
			continue;
		add(list, (struct op_confusion){.before = before_copy, .role = name, .other = problem->inputs[i].name}, "input '%s' were used in place of '%s'", problem->inputs[i].name, name);
		if (i > at)
			add(list, (struct op_confusion){.before = before_swap, .role = name, .other = problem->inputs[i].name}, "inputs '%s' and '%s' were exchanged", name, problem->inputs[i].name);
	}
}

/* ---- trying ---- */

/* Is at least half of a tensor NaN? What makes most outputs NaN cannot be told from other mistakes that do. */
static bool mostly_nan(const struct tensor *tensor)
{
	int64_t count = 0;

	for (int64_t i = 0; i < tensor->elements && dtype_is_float(tensor->dtype); i++)
		count += isnan(dtype_load(tensor->data, tensor->dtype, i));
	return count > 0 && 2 * count >= tensor->elements;
}

/* Copies a tensor as `dtype`; a NaN that `other` has in the same place, too, becomes 0 in both. */
static void *without_common_nan(const struct tensor *tensor, enum dtype dtype, const struct tensor *other)
{
	void *copy = take(dtype_bytes(dtype, tensor->elements), 1);

	for (int64_t i = 0; i < tensor->elements; i++) {
		double value = dtype_load(tensor->data, tensor->dtype, i);

		if (isnan(value) && isnan(dtype_load(other->data, other->dtype, i)))
			value = 0;
		dtype_store(copy, dtype, i, value);
	}
	return copy;
}

/* Does output `at` of the reference agree with the variation? */
static bool output_agrees(const struct op_variation *v, const struct diagnosis_set *set, int at)
{
	struct tensor found = set->found[at], wanted = v->out[at];
	bool floats = dtype_is_float(found.dtype);
	struct metrics metrics = {0};
	struct err why = {""};
	int judged = 0;

	if (wanted.elements != found.elements || wanted.data == NULL || mostly_nan(&found))
		return false;
	if (floats) {
		wanted.dtype = found.dtype;
		wanted.data = without_common_nan(&v->out[at], found.dtype, &set->found[at]);
		found.data = without_common_nan(&set->found[at], found.dtype, &v->out[at]);
	}
	if (v->op->judge != NULL)
		judged = v->op->judge(&v->c, at, v->in, &found, &wanted, &metrics, &why);
	if (judged == 0 && v->op->weigh != NULL)
		v->op->weigh(set->c, at, set->rules[at], &found, &wanted, &metrics, &why);
	else if (judged == 0)
		compare_host(found.data, wanted.data, found.dtype, found.elements, set->rules[at], &metrics);
	if (floats) {
		free(wanted.data);
		free(found.data);
	}
	return judged >= 0 && metrics.passed;
}

bool diagnosis_explains(const struct op *op, const struct op_confusion *confusion, const struct diagnosis_set *set)
{
	struct op_variation v = variation_open(op, set->c, set->in);
	bool agrees = variation_run(&v, confusion);

	for (int i = 0; agrees && i < set->c->problem->output_count; i++)
		agrees = output_agrees(&v, set, i);
	variation_close(&v);
	return agrees;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time); /* not of other programs */
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void make_list(struct list *list)
{
	const struct op_problem *problem = list->set->c->problem;
	struct op_variation right = variation_open(list->op, list->set->c, list->set->in);

	for (const struct op_confusion *row = list->op->confusions; row != NULL && row->says != NULL; row++)
		add(list, *row, "%s", row->says);
	add_constants(list);
	list->own = list->count;
	bool ran = variation_run(&right, &(struct op_confusion){.says = ""});

	add(list, (struct op_confusion){.after = after_set}, "every output were 0");
	if (problem->output_count > 1)
		add_fitted(list, NULL, "every output%s were multiplied by %s",
			   ran ? typical(&list->set->found[0], &right.out[0], false) : NAN, 1, after_scale);

	for (int i = 0; i < problem->output_count; i++)
		add_output(list, ran ? &right : NULL, i);
	list->of_outputs = list->count;
	for (int i = 0; i < problem->input_count; i++)
		add_input(list, i);
	variation_close(&right);
}

static int group_of(const struct list *list, int i)
{
	return i < list->own ? 0 : i < list->of_outputs ? 1 : 2;
}

void diagnose(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
	      struct diagnosis *diagnosis)
{
	struct list *list = take(1, sizeof *list);
	double end = now() + seconds;
	int group = 0;

	list->op = op;
	list->set = sets;
	make_list(list);
	diagnosis->complete = true;
	diagnosis->count = 0;
	for (int i = 0; i < list->count; i++) {
		unsigned char *refuted = &diagnosis->refuted[i / 8], bit = (unsigned char)(1 << i % 8);
		bool agrees = true;

		if ((*refuted & bit) != 0)
			continue;
		diagnosis->complete = diagnosis->complete && now() < end;
		if (!diagnosis->complete)
			break;
		for (int s = 0; s < count && agrees; s++)
			agrees = diagnosis_explains(op, &list->items[i], &sets[s]);
		if (!agrees)
			*refuted |= bit;
		/* What the family knows says more than what may happen in any operation. */
		else if (diagnosis->count > 0 && group_of(list, i) != group)
			continue;
		else if (diagnosis->count < DIAGNOSIS_MOST)
			group = group_of(list, i), memcpy(diagnosis->says[diagnosis->count++], list->says[i], DIAGNOSIS_TEXT);
	}
	free(list);
}
