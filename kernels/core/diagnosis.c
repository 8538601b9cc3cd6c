#include "kernels/core/diagnosis.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/core/compare_tensors.h"
#include "kernels/core/mistakes.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/core/take.h"

enum { PASSED_BYTES = 4 << 20, FEW_DRAWS = 32 }; /* PASSED_BYTES: diagnosis_note_passed ignores larger cases */
/* TYPICAL: typical() computes a factor from at most this many elements. FEW: few_miss() compares at most this many
 * elements. */
enum { TYPICAL = 4099, FEW = 1021 };

/* The mistakes of one problem, in the order of their numbers. */
struct list {
	const struct op *op;
	const struct diagnosis_set *set; /* the first set of input values */
	int count;
	/* Mistakes 0 … own - 1 are those of the family and wrong values of its constants, mistakes own … of_outputs - 1
	 * change outputs, and all later mistakes change inputs. */
	int own, of_outputs;
	struct op_mistake items[DIAGNOSIS_MISTAKES];
	char says[DIAGNOSIS_MISTAKES][DIAGNOSIS_TEXT];
};

/* The narrow dtypes to which references round. */
static const struct {
	enum dtype dtype;
	const char *name;
} narrow[] = {{DTYPE_FLOAT8_E4M3FN, "float8_e4m3fn"}, {DTYPE_FLOAT8_E5M2, "float8_e5m2"}, {DTYPE_BFLOAT16, "bfloat16"}, {DTYPE_FLOAT16, "float16"}};

static bool never(struct op_variation *v, const struct op_mistake *mistake)
{
	return (void)v, (void)mistake, false;
}

/* Appends a mistake. `format` and the arguments after it give the text of the mistake. */
__attribute__((format(printf, 3, 4))) static void add(struct list *list, struct op_mistake mistake, const char *format, ...)
{
	va_list args;

	if (list->count == DIAGNOSIS_MISTAKES)
		return;
	va_start(args, format);
	vsnprintf(list->says[list->count], DIAGNOSIS_TEXT, format, args);
	va_end(args);
	mistake.says = list->says[list->count];
	list->items[list->count++] = mistake;
}

/* ---- mistakes of any operation ---- */

static void add_constants(struct list *list)
{
	static const double values[] = {0, 1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e4, 1e5, 5e5, 1e6, 1e7};
	const struct op_case *c = list->set->c;

	for (int k = 0; k < c->constant_count; k++) {
		const struct op_constant *constant = &c->constants[k];

		/* `values` contains usual values of an epsilon, which are below 1, and of the base of rotary angles
		 * (theta), which are above 1. Other constants have no usual values. */
		bool small = strncmp(constant->name, "eps", 3) == 0, large = strstr(constant->name, "theta") != NULL;

		for (size_t i = 0; i < sizeof values / sizeof *values && (small || large); i++)
			if ((values[i] < 1) == small)
				add(list,
				    (struct op_mistake){.before = before_constant, .role = constant->name, .by = values[i]},
				    "%s = %g; %g is attested by %s", constant->name, values[i], constant->value, constant->source);
	}
}

/* Returns the largest magnitude in the output of the reference if several elements have it, else 0. A reference that
 * clamps its output has several such elements. */
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

/* Returns true if typical() can use element i: the quotient found / truth (if `difference` is true, the difference
 * found - truth) must be finite. */
static bool is_telling(const struct tensor *found, const struct tensor *truth, int64_t i, bool difference)
{
	double a = dtype_load(found->data, found->dtype, i), b = dtype_load(truth->data, truth->dtype, i);

	return isfinite(difference ? a - b : a / b) && (difference || b != 0);
}

/* Returns the median of the quotients found / truth of some elements (if `difference` is true, of the differences found
 * - truth), rounded to `digits` digits. Returns NaN if no element is usable. */
static double typical(const struct tensor *found, const struct tensor *truth, bool difference, int digits)
{
	double *values = take(TYPICAL, sizeof *values), middle = NAN;
	int64_t count = 0, telling = 0, seen = 0, step;
	char text[32];

	for (int64_t i = 0; truth != NULL && i < found->elements; i++)
		telling += is_telling(found, truth, i, difference);
	step = telling / TYPICAL + 1;
	for (int64_t i = 0; truth != NULL && i < found->elements; i++)
		if (is_telling(found, truth, i, difference) && seen++ % step == 0) {
			double a = dtype_load(found->data, found->dtype, i), b = dtype_load(truth->data, truth->dtype, i);

			values[count++] = difference ? a - b : a / b;
		}
	qsort(values, (size_t)count, sizeof *values, by_value);
	if (count > 0)
		middle = values[count / 2];
	free(values);
	snprintf(text, sizeof text, "%.*g", digits, middle);
	return strtod(text, NULL);
}

/* Returns the value that all elements have, or NaN if their values differ. */
static double constant_of(const struct tensor *found)
{
	double first = found->elements < 2 ? NAN : dtype_load(found->data, found->dtype, 0);

	for (int64_t i = 1; i < found->elements && !isnan(first); i++)
		if (dtype_load(found->data, found->dtype, i) != first)
			first = NAN;
	return first;
}

/* Adds a mistake whose parameter `by` is computed from the outputs of the reference. If `by` is not useful, adds a
 * mistake that is never tried (`never`), so that the numbers of the other mistakes are the same in all cases. */
static void add_fitted(struct list *list, const char *name, const char *format, double by, double without,
		       bool (*after)(struct op_variation *, const struct op_mistake *))
{
	bool useful = isfinite(by) && fabs(by - without) > 1e-6 && fabs(by) > 1e-6;
	struct op_mistake mistake = {.before = useful ? NULL : never, .after = after, .role = name, .by = by};
	char number[32];

	snprintf(number, sizeof number, "%g", by);
	add(list, mistake, format, name == NULL ? "" : name, number);
}

static void add_output(struct list *list, const struct op_variation *right, int at)
{
	const struct op_problem *problem = list->set->c->problem;
	const char *name = problem->outputs[at].name;
	const struct tensor *found = &list->set->found[at], *truth = right == NULL ? NULL : &right->out[at];

	if (!dtype_is_float(problem->outputs[at].dtype) || found->data == NULL)
		return;
	add(list, (struct op_mistake){.after = after_set, .role = name}, "output '%s' was 0", name);
	add_fitted(list, name, "output '%s' was multiplied by %s", typical(found, truth, false, 3), 1, after_scale);
	double factor = typical(found, truth, false, 6);

	add_fitted(list, name, "output '%s' was multiplied by %s", factor == typical(found, truth, false, 3) ? NAN : factor, 1, after_scale);
	add_fitted(list, name, "output '%s' was increased by %s", typical(found, truth, true, 3), 0, after_add);
	add_fitted(list, name, "output '%s' was clamped to magnitudes of at most %s", limit_of(found), 0, after_clamp);
	add_fitted(list, name, "every element of output '%s' was %s", constant_of(found), 0, after_set);
	for (int d = 0; d < found->rank; d++) {
		add(list, (struct op_mistake){.after = after_neighbours, .role = name, .by = d}, "elements 2 i and 2 i + 1 of output '%s' were exchanged along axis %d", name, d);
		add(list, (struct op_mistake){.after = after_flip, .role = name, .by = d}, "output '%s' was in reverse order along axis %d", name, d);
		add(list, (struct op_mistake){.after = after_next, .role = name, .by = d}, "output '%s' was shifted by one along axis %d", name, d);
		add(list, (struct op_mistake){.after = after_previous, .role = name, .by = d}, "output '%s' was shifted by one along axis %d", name, d);
		add(list, (struct op_mistake){.after = after_halves, .role = name, .by = d}, "the halves of output '%s' were swapped along axis %d", name, d);
	}
	for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
		add(list, (struct op_mistake){.after = after_round, .role = name, .by = narrow[i].dtype}, "output '%s' was rounded to %s", name, narrow[i].name);
	add(list, (struct op_mistake){.after = after_kept, .role = name}, "output '%s' was the result of an earlier "
	    "call with the same shapes", name);
	add(list, (struct op_mistake){.after = after_log, .role = name}, "the natural logarithm of output '%s' was returned", name);
	add(list, (struct op_mistake){.after = after_transpose, .role = name}, "the last two axes of output '%s' were transposed", name);
	for (int i = 0; i < problem->input_count; i++) {
		add(list, (struct op_mistake){.after = after_input, .role = name, .other = problem->inputs[i].name},
		    "output '%s' was the unchanged input '%s'", name, problem->inputs[i].name);
		add(list, (struct op_mistake){.after = after_add_input, .role = name, .other = problem->inputs[i].name},
		    "input '%s' was added to output '%s'", problem->inputs[i].name, name);
	}
	for (int i = at + 1; i < problem->output_count; i++)
		add(list, (struct op_mistake){.after = after_swap, .role = name, .other = problem->outputs[i].name},
		    "outputs '%s' and '%s' were exchanged", name, problem->outputs[i].name);
}

static void add_float_input(struct list *list, const char *name, int rank)
{
	static const double limits[] = {1, 2, 4, 8, 10, 16, 32, 64, 100, 128, 256, 448, 512, 1000, 1024, 2048, 4096, 10000, 65504};

	add(list, (struct op_mistake){.before = before_set, .role = name, .by = 0}, "input '%s' was left out (taken as 0)", name);
	add(list, (struct op_mistake){.before = before_set, .role = name, .by = 1}, "input '%s' was left out (taken as 1)", name);
	add(list, (struct op_mistake){.before = before_scale, .role = name, .by = -1}, "the sign of input '%s' was reversed", name);
	add(list, (struct op_mistake){.before = before_add, .role = name, .by = 1}, "1 was added to input '%s'", name);
	for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
		add(list, (struct op_mistake){.before = before_round, .role = name, .by = narrow[i].dtype}, "input '%s' was rounded to %s", name, narrow[i].name);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		add(list, (struct op_mistake){.before = before_clamp, .role = name, .by = limits[i]}, "input '%s' was "
		    "clamped to magnitudes of at most %g", name, limits[i]);
	add(list, (struct op_mistake){.before = before_flush, .role = name, .by = 0x1p-14}, "elements of input '%s' below 2^-14 (the subnormal numbers of float16) were set to 0", name);
	add(list, (struct op_mistake){.before = before_halves, .role = name, .by = -1}, "the halves of input '%s' were swapped along its last axis", name);
	add(list, (struct op_mistake){.before = before_transpose, .role = name}, "the last two axes of input '%s' were transposed", name);
	for (int d = 0; d < rank; d++) {
		add(list, (struct op_mistake){.before = before_first, .role = name, .by = d}, "every slice of input "
		    "'%s' along axis %d was replaced by the first slice", name, d);
		add(list, (struct op_mistake){.before = before_last, .role = name, .by = d}, "every slice of input "
		    "'%s' along axis %d was replaced by the last slice", name, d);
	}
}

/* Adds the mistakes that store the elements of an integer tensor in too few bits. */
static void add_integer_input(struct list *list, const char *name)
{
	add(list, (struct op_mistake){.before = before_wrap, .role = name, .by = 128, .checked = true}, "input '%s' was stored in 7 bits", name);
	add(list, (struct op_mistake){.before = before_wrap, .role = name, .by = 256, .checked = true}, "input '%s' was stored in 8 bits", name);
	add(list, (struct op_mistake){.before = before_wrap, .role = name, .by = 32768, .checked = true}, "input '%s' was stored in 15 bits", name);
	add(list, (struct op_mistake){.before = before_wrap, .role = name, .by = 65536, .checked = true}, "input '%s' was stored in 16 bits", name);
	add(list, (struct op_mistake){.before = before_most, .role = name, .by = 127, .checked = true}, "input '%s' was limited to 127", name);
	add(list, (struct op_mistake){.before = before_most, .role = name, .by = 255, .checked = true}, "input '%s' was limited to 255", name);
}

/* Adds the mistakes that clamp a Python scalar, or a tensor of a few numbers, at an upper or a lower limit. */
static void add_limits(struct list *list, const char *name)
{
	static const double most[] = {0.5, 1, 2, 2.5, 4, 5, 8, 10}, least[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.2, 0.25, 0.5, 1};

	for (size_t i = 0; i < sizeof most / sizeof *most; i++)
		add(list, (struct op_mistake){.before = before_most, .role = name, .by = most[i]}, "input '%s' was "
		    "clamped to at most %g", name, most[i]);
	for (size_t i = 0; i < sizeof least / sizeof *least; i++)
		add(list, (struct op_mistake){.before = before_least, .role = name, .by = least[i]}, "input '%s' was "
		    "clamped to at least %g", name, least[i]);
}

static void add_input(struct list *list, int at)
{
	const struct op_problem *problem = list->set->c->problem;
	const char *name = problem->inputs[at].name;
	int rank = problem->inputs[at].rank;
	bool checked = !dtype_is_float(problem->inputs[at].dtype); /* integers may be indices, which must stay in
								    * range */

	add(list, (struct op_mistake){.before = before_kept, .role = name, .checked = checked}, "input '%s' kept its "
	    "value from an earlier call with the same shapes", name);
	if (rank == OP_SCALAR) {
		if (dtype_is_float(problem->inputs[at].dtype)) {
			add(list, (struct op_mistake){.before = before_set, .role = name, .by = 1}, "'%s' was left out (taken as 1)", name);
			add_limits(list, name);
		}
		return;
	}
	if (dtype_is_float(problem->inputs[at].dtype))
		add_float_input(list, name, rank);
	else
		add_integer_input(list, name);
	if (dtype_is_float(problem->inputs[at].dtype) && rank == 1)
		add_limits(list, name);
	for (int d = 0; d < rank; d++) {
		add(list, (struct op_mistake){.before = before_flip, .role = name, .by = d, .checked = checked}, "input '%s' was read in reverse order along axis %d", name, d);
		add(list, (struct op_mistake){.before = before_next, .role = name, .by = d, .checked = checked}, "input '%s' was read one element too far along axis %d", name, d);
		add(list, (struct op_mistake){.before = before_previous, .role = name, .by = d, .checked = checked}, "input '%s' was read one element too early along axis %d", name, d);
	}
	for (int i = 0; i < problem->input_count; i++) {
		if (i == at || problem->inputs[i].rank != rank || dtype_is_float(problem->inputs[i].dtype) != dtype_is_float(problem->inputs[at].dtype))
			continue;
		add(list, (struct op_mistake){.before = before_copy, .role = name, .other = problem->inputs[i].name, .checked = checked}, "input '%s' was used in place of '%s'", problem->inputs[i].name, name);
		if (i > at)
			add(list, (struct op_mistake){.before = before_swap, .role = name, .other = problem->inputs[i].name, .checked = checked}, "inputs '%s' and '%s' were exchanged", name, problem->inputs[i].name);
	}
}

/* ---- trying ---- */

/* Returns true if at least half of a tensor is NaN. Mistakes that make most outputs NaN cannot be told apart. */
static bool mostly_nan(const struct tensor *tensor)
{
	int64_t count = 0;

	for (int64_t i = 0; i < tensor->elements && dtype_is_float(tensor->dtype); i++)
		count += isnan(dtype_load(tensor->data, tensor->dtype, i));
	return count > 0 && 2 * count >= tensor->elements;
}

/* Copies `tensor` and converts it to `dtype`. An element that is NaN in both `tensor` and `other` becomes 0. */
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

/* Returns the relative distance between neighbouring numbers of a dtype. */
static double step_of(enum dtype dtype)
{
	return dtype == DTYPE_BFLOAT16 ? 0x1p-7 : dtype == DTYPE_FLOAT16 ? 0x1p-10 : 0x1p-20;
}

/* Returns true if any of a few elements misses its bound. This fast test refutes most mistakes. */
static bool few_miss(const struct tensor *found, const struct tensor *wanted, struct rule rule)
{
	for (int64_t i = 0; i < found->elements; i += found->elements / FEW + 1) {
		double a = dtype_load(found->data, found->dtype, i), b = dtype_load(wanted->data, wanted->dtype, i);
		double step = rule.atol + (rule.rtol + step_of(found->dtype)) * fabs(b); /* `wanted` is not rounded */

		if (isfinite(a) && isfinite(b) && fabs(b) < 1e4 && fabs(b) > 0x1p-14 && fabs(a - b) > step)
			return true;
	}
	return false;
}

/* The largest margin with which samples agree with a mistake. If a sampler really contains the mistake, the margin of
 * its samples is rarely larger. A verdict allows a margin of 1, because it must almost never call a correct reference
 * wrong. A diagnosis may be stricter, because it may fail to name a mistake more often. */
static const double likely_margin = 0.4;

/* Returns true if output `at` of the reference agrees with the output that a reference with the mistake computes. If the
 * output consists of samples, its margin must be at most `sample_margin`. */
static bool output_agrees(const struct op_variation *v, const struct diagnosis_set *set, int at, double sample_margin)
{
	struct tensor found = set->found[at], wanted = v->out[at];
	bool floats = dtype_is_float(found.dtype), samples = v->op->samples != NULL && v->op->samples(&v->c);
	struct metrics metrics = {0};
	struct err why = {""};
	int judged = 0;

	if (wanted.elements != found.elements || wanted.data == NULL || mostly_nan(&found))
		return false;
	if (floats && v->op->judge == NULL && v->op->weigh == NULL && set->rules[at].hit_ratio >= 1 &&
	    dtype_bits(found.dtype) >= 16 && few_miss(&found, &wanted, set->rules[at]))
		return false;
	if (floats) {
		wanted.dtype = found.dtype;
		wanted.data = without_common_nan(&v->out[at], found.dtype, &set->found[at]);
		found.data = without_common_nan(&set->found[at], found.dtype, &v->out[at]);
	}
	if (v->op->judge != NULL)
		judged = v->op->judge(&v->c, at, v->in, &found, &wanted, &metrics, NULL, &why);
	if (judged == 0 && v->op->weigh != NULL)
		v->op->weigh(set->c, at, set->rules[at], &found, &wanted, &metrics, &why);
	else if (judged == 0)
		compare_host(found.data, wanted.data, found.dtype, found.elements, set->rules[at], &metrics);
	if (floats) {
		free(wanted.data);
		free(found.data);
	}
	return judged >= 0 && metrics.passed && (!samples || metrics.margin <= sample_margin);
}

static bool outputs_agree(const struct op_variation *v, const struct diagnosis_set *set, double sample_margin)
{
	bool agrees = true;

	for (int i = 0; agrees && i < set->c->problem->output_count; i++)
		agrees = output_agrees(v, set, i, sample_margin);
	return agrees;
}

bool diagnosis_agrees(const struct op_variation *v, const struct diagnosis_set *set)
{
	return outputs_agree(v, set, likely_margin);
}

/* A set of input values, and the oracle's outputs for it. */
struct prepared {
	struct diagnosis_set set;
	const struct prepared *first; /* the first set of the case, or NULL if this is the first set */
	struct op_variation right;
	bool known;
	bool passes; /* whether the outputs of the reference agree with the correct outputs */
	struct rule rules[OP_ARGS]; /* the wider bounds that widen() computes, to which set.rules may point */
};

static void prepare(struct prepared *p, const struct op *op, const struct diagnosis_set *set, const struct prepared *first)
{
	p->set = *set;
	p->first = first;
	p->right = variation_open(op, set->c, set->in);
	p->known = variation_run(&p->right, &(struct op_mistake){.says = ""}, NULL);
}

/* Widens each bound that is smaller than one step of the dtype to one step. Some families have bounds of zero: with
 * such a bound, a reference that contains a mistake, but rounds differently from the oracle, would seem not to contain
 * it. The wider bounds are used only if the reference misses the truth with these bounds, too. */
static void widen(struct prepared *p)
{
	const struct op_problem *problem = p->set.c->problem;
	struct diagnosis_set wide = p->set;

	for (int i = 0; i < problem->output_count; i++) {
		p->rules[i] = p->set.rules[i];
		if (dtype_is_float(problem->outputs[i].dtype) && p->rules[i].rtol < step_of(problem->outputs[i].dtype))
			p->rules[i].rtol = step_of(problem->outputs[i].dtype);
	}
	wide.rules = p->rules;
	p->passes = p->known && outputs_agree(&p->right, &p->set, 1);
	if (p->known && !outputs_agree(&p->right, &wide, 1))
		p->set = wide;
}

static struct op_variation open_variation(const struct op *op, const struct prepared *p)
{
	struct op_variation v = variation_open(op, p->set.c, p->set.in);

	if (p->first != NULL) {
		v.first_case = p->first->set.c;
		v.first_in = p->first->set.in;
		v.first_out = p->first->known ? p->first->right.out : NULL;
	}
	return v;
}

/* What the outputs for a set of input values show about a mistake. If the reference's outputs for the set are correct,
 * they can refute a mistake (REFUTES), but never confirm one (AGREES). */
enum evidence { REFUTES, TELLS_NOTHING, AGREES };

/* Returns the logarithm of the probability of the reference's samples if they are drawn as in the variation `v`.
 * Returns 0 if the operation does not sample. */
static double likelihood_of(const struct op *op, const struct op_variation *v, const struct diagnosis_set *set)
{
	struct metrics metrics = {0};
	struct err why = {""};

	if (op->samples == NULL || !op->samples(&v->c) || op->judge == NULL ||
	    op->judge(&v->c, 0, v->in, &set->found[0], &v->out[0], &metrics, NULL, &why) < 1)
		return 0;
	return metrics.log_likelihood;
}

/* Tests a mistake on one set of input values. Samples agree with a mistake only if they are more probable with the
 * mistake than without it. The logarithm of the quotient of these two probabilities is added to `gain`. */
static enum evidence explains(const struct op *op, const struct op_mistake *mistake, const struct prepared *p, double *gain)
{
	struct op_variation v = open_variation(op, p);
	bool agrees = variation_run(&v, mistake, p->known ? p->right.out : NULL) && diagnosis_agrees(&v, &p->set);
	bool vague = v.vague;

	if (agrees && p->known && !p->passes && op->samples != NULL && op->samples(p->set.c)) {
		double with = likelihood_of(op, &v, &p->set), without = likelihood_of(op, &p->right, &p->set);

		agrees = with > without;
		*gain += isinf(without) ? with : with - without;
	}
	variation_close(&v);
	return !agrees ? REFUTES : vague || p->passes ? TELLS_NOTHING : AGREES;
}

/* ---- cases that passed ---- */

static int64_t bytes_of(const struct op_case *c, const struct op_arg *args, int count)
{
	int64_t bytes = 0;

	for (int i = 0; i < count && bytes <= PASSED_BYTES; i++) {
		int64_t elements = 1;

		for (int d = 0; d < args[i].rank && elements <= PASSED_BYTES; d++)
			elements *= c->axis[args[i].axis[d]];
		bytes += args[i].rank < 0 ? 0 : dtype_bytes(args[i].dtype, elements);
	}
	return bytes;
}

void diagnosis_note_passed(struct diagnosis *diagnosis, const struct op_case *const *sets, int count)
{
	const struct op_problem *problem = sets[0]->problem;
	struct diagnosis_passed *passed = &diagnosis->passed[diagnosis->passed_count];

	if (diagnosis->passed_count == DIAGNOSIS_PASSED || problem->axis_count > DIAGNOSIS_AXES || sets[0]->given != 0 ||
	    bytes_of(sets[0], problem->inputs, problem->input_count) +
		    bytes_of(sets[0], problem->outputs, problem->output_count) > PASSED_BYTES)
		return;
	memcpy(passed->axis, sets[0]->axis, (size_t)problem->axis_count * sizeof *passed->axis);
	for (int i = 0; i < count; i++)
		passed->sets[i] = *sets[i];
	passed->set_count = count;
	diagnosis->passed_count++;
}

/* The sets of input values of the cases that the reference passed, with their inputs and truth. */
struct passed_sets {
	struct op_case c[DIAGNOSIS_PASSED * CONTENTS_COUNT];
	struct tensor in[DIAGNOSIS_PASSED * CONTENTS_COUNT][OP_ARGS];
	struct rule rules[DIAGNOSIS_PASSED * CONTENTS_COUNT][OP_ARGS];
	struct prepared items[DIAGNOSIS_PASSED * CONTENTS_COUNT];
	int count;
};

static bool fill_inputs(const struct op *op, const struct op_case *c, struct tensor *in)
{
	struct err err = {""};

	for (int i = 0; i < c->problem->input_count; i++) {
		const struct op_arg *arg = &c->problem->inputs[i];

		in[i] = (struct tensor){.dtype = arg->dtype, .rank = arg->rank, .elements = 1};
		for (int d = 0; d < arg->rank; d++)
			in[i].elements *= in[i].shape[d] = c->axis[arg->axis[d]];
		if (arg->rank == OP_SCALAR || (c->absent >> i & 1) != 0)
			continue;
		in[i].data = take(dtype_bytes(arg->dtype, in[i].elements), 1);
		if (op->fill(c, i, &in[i], &err) != 0)
			return false;
	}
	return true;
}

static void free_inputs(const struct op_problem *problem, struct tensor *in)
{
	for (int i = 0; i < problem->input_count; i++)
		free(in[i].data);
}

/* Prepares a set of a case that the reference passed. The reference's outputs are not stored, but they were within the
 * bounds of the truth. If the reference contains a mistake, the outputs that are computed here with this mistake are
 * near the reference's outputs, so twice the bounds are applied to them. */
static void prepare_passed(struct passed_sets *all, const struct op *op, const struct op_case *c,
			   const struct prepared *first)
{
	int at = all->count;
	struct tensor *in = all->in[at];

	all->c[at] = *c;
	if (!fill_inputs(op, &all->c[at], in)) {
		free_inputs(c->problem, in);
		return;
	}
	for (int i = 0; i < c->problem->output_count; i++) {
		struct rule rule = op->rule(&all->c[at], i);

		all->rules[at][i] = (struct rule){2 * rule.atol, 2 * rule.rtol, rule.hit_ratio};
	}
	prepare(&all->items[at], op, &(struct diagnosis_set){&all->c[at], in, NULL, all->rules[at]}, first);
	all->items[at].set.found = all->items[at].right.out;
	all->count++;
}

static struct passed_sets *open_passed(const struct diagnosis *diagnosis, const struct op *op,
				       const struct op_problem *problem)
{
	struct passed_sets *all = take(1, sizeof *all);

	for (int i = 0; i < diagnosis->passed_count; i++) {
		const struct prepared *first = NULL;

		for (int s = 0; s < diagnosis->passed[i].set_count; s++) {
			struct op_case c = diagnosis->passed[i].sets[s];

			c.problem = problem;
			c.axis = diagnosis->passed[i].axis;
			prepare_passed(all, op, &c, first);
			first = s == 0 && all->count > 0 ? &all->items[all->count - 1] : first;
		}
	}
	return all;
}

static void close_passed(struct passed_sets *all, const struct op_problem *problem)
{
	for (int i = 0; all != NULL && i < all->count; i++) {
		variation_close(&all->items[i].right);
		free_inputs(problem, all->in[i]);
	}
	free(all);
}

/* Returns true if a reference with this mistake would pass the cases that this reference passed. */
static bool lets_pass(const struct op *op, const struct op_mistake *mistake, const struct passed_sets *all)
{
	for (int i = 0; i < all->count; i++) {
		const struct prepared *p = &all->items[i];
		struct op_variation v = open_variation(op, p);
		bool ran = variation_run(&v, mistake, p->known ? p->right.out : NULL), passes = true;

		for (int k = 0; p->known && ran && passes && k < p->set.c->problem->output_count; k++)
			passes = (op->judges != NULL && op->judges(p->set.c, k)) || output_agrees(&v, &p->set, k, 1);
		variation_close(&v);
		if (!passes)
			return false;
	}
	return true;
}

/* ---- all mistakes ---- */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time); /* the processor time of this process: other programs do
							 * not influence it */
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void make_list(struct list *list, const struct prepared *first)
{
	const struct op_problem *problem = list->set->c->problem;
	const struct op_variation *right = first->known ? &first->right : NULL;

	for (const struct op_mistake *row = list->op->mistakes; row != NULL && row->says != NULL; row++)
		add(list, *row, "%s", row->says);
	add_constants(list);
	list->own = list->count;
	if (problem->output_count > 1) {
		add(list, (struct op_mistake){.after = after_set}, "every output was 0");
		add_fitted(list, NULL, "every output%s was multiplied by %s",
			   right == NULL ? NAN : typical(&list->set->found[0], &right->out[0], false, 3), 1, after_scale);
	}
	for (int i = 0; i < problem->output_count; i++)
		add_output(list, right, i);
	list->of_outputs = list->count;
	/* Samples do not show a change of the tensor of probabilities from which they are drawn, so mistakes in inputs
	 * with two or more dimensions are not tried. */
	bool samples = list->op->samples != NULL && list->op->samples(list->set->c);

	for (int i = 0; i < problem->input_count; i++)
		if (!samples || problem->inputs[i].rank < 2)
			add_input(list, i);
}

static int group_of(const struct list *list, int i)
{
	return i < list->own ? 0 : i < list->of_outputs ? 1 : 2;
}

/* Tries mistake `i` on all sets. Returns REFUTES if any set refutes the mistake, else AGREES if any set agrees, else
 * TELLS_NOTHING. */
static enum evidence explains_all(const struct list *list, int i, const struct prepared *sets, int count, double *gain)
{
	enum evidence all = TELLS_NOTHING;

	for (int s = 0; s < count && all != REFUTES && list->items[i].before != never; s++) {
		enum evidence one = explains(list->op, &list->items[i], &sets[s], gain);

		all = one == TELLS_NOTHING ? all : one;
	}
	return all;
}

/* Returns true if any output of the reference differs from the correct output. If no output differs, the case failed
 * for another reason, and every mistake that has no effect on the case would seem to explain the failure. */
static bool differs(const struct prepared *sets, int count)
{
	for (int s = 0; s < count; s++)
		if (!sets[s].passes)
			return true;
	return false;
}

/* Returns true if the case has too few random draws to distinguish mistakes. */
static bool has_few_draws(const struct op *op, const struct diagnosis_set *set)
{
	return op->samples != NULL && op->samples(set->c) && set->found[0].elements < FEW_DRAWS;
}

/* The search for the mistakes that explain one case. */
struct search {
	struct list list;
	struct prepared *sets;
	int count;
	struct passed_sets *passed; /* NULL until a mistake agrees with the failed case */
	struct diagnosis *diagnosis;
	double end;
	int first; /* the number of the first mistake in diagnosis->says */
	unsigned char told[DIAGNOSIS_MISTAKES / 8]; /* bit i is set if mistake i explains the failure of the case */
	double gain; /* for samples: the logarithm of the factor by which the reported mistake makes them more probable
		      * (explains); else 0 */
	bool vague; /* whether some mistake agrees, but the values cannot distinguish it from a narrower mistake */
};

static bool has_bit(const unsigned char *bits, int i)
{
	return (bits[i / 8] >> i % 8 & 1) != 0;
}

static void set_bit(unsigned char *bits, int i)
{
	bits[i / 8] |= (unsigned char)(1 << i % 8);
}

/* Returns true if mistake i and the first reported mistake both multiply the same output by a number. As both mistakes
 * explain the case, the two numbers are the same, except that they are rounded to different numbers of digits. */
static bool is_same_factor(const struct search *search, int i)
{
	const struct op_mistake *first = &search->list.items[search->first], *this = &search->list.items[i];

	return search->diagnosis->count > 0 && first->after == after_scale && this->after == after_scale &&
	       first->role == this->role;
}

/* Returns true if one of the mistakes 0 … before - 1 explains the case and has this value of op_mistake.in_oracle. */
static bool is_told(const struct search *search, int before, int in_oracle)
{
	for (int k = 0; k < before; k++)
		if (has_bit(search->told, k) && search->list.items[k].in_oracle == in_oracle)
			return true;
	return false;
}

/* Returns true if any mistake that is narrower than mistake i explains the case (op_mistake.narrower). */
static bool is_told_by_narrower(const struct search *search, int i)
{
	const int *narrower = search->list.items[i].narrower;

	for (int k = 0; k < OP_NARROWER && narrower[k] != 0; k++)
		if (is_told(search, i, narrower[k]))
			return true;
	return false;
}

/* Adds a mistake to those that explain the case. If mistakes of several groups (group_of) explain the case, only those
 * of the first group are reported, because mistakes of the family are more specific than mistakes that are possible in
 * any operation. */
static void tell(struct search *search, int i)
{
	struct diagnosis *diagnosis = search->diagnosis;
	int group = group_of(&search->list, i), before = group_of(&search->list, search->first);

	if (diagnosis->count == 0 || group < before) {
		search->first = i;
		diagnosis->count = 0;
	} else if (group > before || is_same_factor(search, i)) {
		return;
	}
	if (diagnosis->count < DIAGNOSIS_MOST)
		memcpy(diagnosis->says[diagnosis->count], search->list.says[i], DIAGNOSIS_TEXT);
	diagnosis->count++;
}

/* Returns true if tell() would not report mistake i, because a mistake of an earlier group explains the case. */
static bool would_not_tell(const struct search *search, int i)
{
	return search->diagnosis->count > 0 && group_of(&search->list, i) > group_of(&search->list, search->first);
}

static void try_mistake(struct search *search, int i)
{
	const struct list *list = &search->list;
	struct diagnosis *diagnosis = search->diagnosis;
	double gain = 0;
	enum evidence evidence = explains_all(list, i, search->sets, search->count, &gain);

	if (evidence == TELLS_NOTHING) {
		search->vague = search->vague || list->items[i].before != never;
		return;
	}
	if (evidence == AGREES && search->passed == NULL)
		search->passed = open_passed(diagnosis, list->op, list->set->c->problem);
	if (evidence == AGREES && (is_told_by_narrower(search, i) || (diagnosis->count > 0 && gain < search->gain)))
		return;
	if (evidence == AGREES && lets_pass(list->op, &list->items[i], search->passed)) {
		set_bit(diagnosis->found, i);
		set_bit(search->told, i);
		if (gain > search->gain)
			diagnosis->count = 0;
		search->gain = gain;
		tell(search, i);
	} else {
		set_bit(diagnosis->refuted, i);
	}
}

/* Tries the mistakes that are not refuted: first those that explained an earlier case, then the others. */
static void try_all(struct search *search)
{
	struct diagnosis *diagnosis = search->diagnosis;
	unsigned char earlier[sizeof diagnosis->found];

	memcpy(earlier, diagnosis->found, sizeof earlier);
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < search->list.count; i++) {
			if (has_bit(diagnosis->refuted, i) || has_bit(earlier, i) != (pass == 0) || would_not_tell(search, i))
				continue;
			if (now() >= search->end) {
				diagnosis->complete = pass == 1 && i >= search->list.own;
				return;
			}
			try_mistake(search, i);
		}
}

void diagnose(const struct op *op, const struct diagnosis_set *sets, int count, double seconds,
	      struct diagnosis *diagnosis)
{
	struct search *search = take(1, sizeof *search);

	search->diagnosis = diagnosis;
	search->end = now() + seconds;
	search->sets = take(count, sizeof *search->sets);
	search->count = count;
	for (int i = 0; i < count; i++) {
		prepare(&search->sets[i], op, &sets[i], i == 0 ? NULL : &search->sets[0]);
		widen(&search->sets[i]);
	}
	search->list.op = op;
	search->list.set = sets;
	make_list(&search->list, &search->sets[0]);
	diagnosis->complete = !has_few_draws(op, &sets[0]);
	diagnosis->count = 0;
	if (diagnosis->complete && differs(search->sets, count))
		try_all(search);
	/* If a vague mistake or too many mistakes explain the case, the result is incomplete. If another case reports a
	 * mistake, an incomplete result of this case does not speak against that mistake. */
	if (search->vague)
		diagnosis->complete = false;
	if (diagnosis->count > DIAGNOSIS_MOST) {
		diagnosis->count = 0;
		diagnosis->complete = false;
	}
	close_passed(search->passed, sets[0].c->problem);
	for (int i = 0; i < count; i++)
		variation_close(&search->sets[i].right);
	free(search->sets);
	free(search);
}
