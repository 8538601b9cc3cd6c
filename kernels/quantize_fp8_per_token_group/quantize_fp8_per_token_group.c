/* quantize_fp8_per_token_group - computes, for each group of consecutive channels of a token, a scale s = max(max |x|,
 * eps) / 448, and q = x / s, rounded to float8_e4m3fn (ties to even) and limited to ±448, the largest numbers of this
 * dtype.
 *
 * x is [..., H] in float32, float16 or bfloat16; q has the shape of x; s is [..., H / group] in float32. The last axes
 * of x and s are const, and the quotient of their lengths is the size of a group. A problem whose scales are rounded to
 * powers of two is refused by op.match.
 *
 * The floor `eps` is a Python scalar, or a hidden constant (kernels/core/norm_epsilon.h), such as "eps is 1e-10" in the
 * description. SGLang, vLLM and FlashInfer use the floor 1e-10, and DeepGEMM uses 1e-4. If no source states the floor,
 * reftest finds it by running the reference: the scale of a group of zeros is floor / 448. If the floor is 0, the
 * quotients of a group of zeros are not defined.
 *
 * Tolerance. Implementations compute in float32, in one of several ways. Each rounding has a relative error of at most
 * 2^-24. These are the computations and their numbers of roundings:
 *
 *   s: amax / 448 has 1 rounding, and amax * (1 / 448) has 2. A division that is only accurate to 2 units in the last
 *      place has an error of up to 2^-22.
 *   q: x / s has 2 roundings, including that of s; x * (448 / amax) has 2; x * (1 / s) has 3; x / (amax * (1 / 448))
 *      has 3. With an inaccurate division, the error is up to 2^-22 + 2 * 2^-24. The value of eps is rounded to
 *      float32, too.
 *
 * SLACK = 2^-21 exceeds the error of each of these computations, and is the rtol of s. The quotient of a correct
 * implementation is thus in the interval from 1 - SLACK to 1 + SLACK times the true quotient. The output q must be a
 * number in this interval, rounded to e4m3. No other q is accepted. Neighbouring e4m3 numbers differ by 2^-4 to 2^-3 of
 * their value, so all numbers in nearly every interval round to the same e4m3 number. If an interval contains a tie,
 * its numbers round to two neighbouring e4m3 numbers. If amax is exactly 448 times a power of two, s and 1 / s are also
 * powers of two, and each of the computations above is exact. (amax * (1 / 448) is exact because 7 * fl(1 / 7) rounds
 * to 1 in float32.) For such an amax, the interval is a single number, and ties must be rounded to even. */
#include "kernels/quantize_fp8_per_token_group/mistakes.h"
#include "kernels/quantize_fp8_per_token_group/input_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/compare_tensors.h"
#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/core/norm_epsilon.h"
#include "kernels/core/row_counts.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/take.h"

enum { PARALLEL_FROM = 1 << 18, PROBE_ROWS = 16 }; /* PARALLEL_FROM: if there are fewer elements, one thread is faster
						    * than several */

static const double LARGEST = 448, SLACK = 0x1p-21;

/* Returns true if the problem says that its scales are powers of two. Such a problem is refused by op.match, although
 * its tensors have the shapes that this family expects. */
static bool has_other_scales(const struct op_problem *problem)
{
	static const char *const words[] = {"ue8m0", "e8m0", "mxfp8", "power of two", "powers of two", "pow2"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (match_mentions(problem, words[i]) || match_contains(problem->description, words[i]))
			return true;
	return false;
}

static int match_inputs(const struct op_problem *problem, const struct quantize_roles *roles, struct err *why)
{
	const struct op_arg *eps = roles->eps < 0 ? NULL : &problem->inputs[roles->eps];

	if (roles->x < 0 || (roles->x >= 0) + (roles->eps >= 0) != problem->input_count)
		return err_set(why, "the definition has %d inputs; it needs one tensor and may have an epsilon",
		               problem->input_count);
	if (eps != NULL && strncmp(eps->name, "eps", 3) != 0)
		return err_set(why, "input '%s' is a Python scalar; only an epsilon may be a scalar", eps->name);
	if (!match_is_float(&problem->inputs[roles->x]))
		return err_set(why, "input '%s' is %s; it must be float32, float16 or bfloat16",
		               problem->inputs[roles->x].name, dtype_name(problem->inputs[roles->x].dtype));
	return 0;
}

static int match_outputs(const struct op_problem *problem, const struct quantize_roles *roles, struct err *why)
{
	const struct op_arg *x = &problem->inputs[roles->x], *q, *s;
	char found[256], expected[256];
	int64_t columns, groups;

	if (problem->output_count != 2 || roles->quantized < 0 || roles->scale < 0)
		return err_set(why,
		               "the definition has %d outputs; it must have two, the quantised tensor (float8_e4m3fn) "
		               "and the scales",
		               problem->output_count);
	q = &problem->outputs[roles->quantized];
	s = &problem->outputs[roles->scale];
	if (s->dtype != DTYPE_FLOAT32)
		return err_set(why, "output '%s' is %s; scales must be float32", s->name, dtype_name(s->dtype));
	if (x->rank < 2 || q->rank != x->rank || !match_same_axes(problem, q, 0, x, 0, x->rank))
		return err_set(why, "output '%s' has shape %s; expected the shape %s of input '%s'", q->name,
		               op_shape_text(problem, q, found, sizeof found),
		               op_shape_text(problem, x, expected, sizeof expected), x->name);
	if (s->rank != x->rank || !match_same_axes(problem, s, 0, x, 0, x->rank - 1))
		return err_set(why, "output '%s' has shape %s; expected the shape %s of input '%s', but with the "
			"number of groups as the last axis",
		               s->name, op_shape_text(problem, s, found, sizeof found),
		               op_shape_text(problem, x, expected, sizeof expected), x->name);
	columns = match_fixed_length(problem, x, x->rank - 1);
	groups = match_fixed_length(problem, s, s->rank - 1);
	if (columns <= 0 || groups <= 0 || columns % groups != 0)
		return err_set(why,
		               "the size of a group is unknown: the last axis of '%s' must be a multiple of the last "
		               "axis of '%s', and both must be const",
		               x->name, s->name);
	return 0;
}

static int match(const struct op_problem *problem, struct err *why)
{
	struct quantize_roles roles = quantize_roles_of(problem);

	if (match_inputs(problem, &roles, why) != 0 || match_outputs(problem, &roles, why) != 0)
		return -1;
	if (has_other_scales(problem))
		return err_set(why, "the definition's name, a tag or the description says that scales are powers of "
				    "two; this op family does not compute such scales");
	return 0;
}

static void set_axes(const struct op_problem *problem, int64_t rows, int64_t *axis)
{
	rows_set(problem, &problem->inputs[quantize_roles_of(problem).x], rows, 2, axis);
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	int64_t rows[ROWS_CASES];
	int count = rows_of_size(size, quantize_extent_of(problem).columns, ROWS_ELEMENTS, rows);

	(void)variant;
	for (int i = 0; i < count && i < room; i++)
		set_axes(problem, rows[i], axis + (int64_t)i * problem->axis_count);
	return count < room ? count : room;
}

/* Returns the value of the input `eps`, which references are unlikely to hard-code. */
static double scalar(const struct op_case *c, int input)
{
	if (c->absent >> input & 1)
		return (double)NAN;
	return c->contents == CONTENTS_FIRST ? 3e-10 : 2e-8;
}

static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	(void)variant;
	if (problem->inputs[input].rank == OP_SCALAR)
		*out = (struct op_range){3e-10, 2e-8};
	else if (problem->inputs[input].dtype == DTYPE_FLOAT16)
		*out = (struct op_range){-65504, 65504};
	else
		*out = (struct op_range){-9e29, 9e29};
	return true;
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	int64_t columns = quantize_extent_of(problem).columns;

	(void)variant;
	if (axis != rows_axis(problem, &problem->inputs[quantize_roles_of(problem).x]))
		return (struct op_reach){1, 0};
	return (struct op_reach){rows_past_block(columns, ROWS_ELEMENTS), rows_block(columns)};
}

static int constants(const struct op_problem *problem, int variant, struct op_constant *out)
{
	(void)variant;
	return epsilon_constants(problem, quantize_roles_of(problem).eps, "", out);
}

static struct rule rule(const struct op_case *c, int output)
{
	if (output == quantize_roles_of(c->problem).scale)
		return (struct rule){0, SLACK, 1};
	return (struct rule){0, 0x1p-3, 1}; /* the rule for q is not used, because op.judge judges q */
}

static void make_group(const void *recipe, int64_t number, int64_t column, int64_t count, const uint32_t *random,
                       float *values)
{
	const struct quantize_fill *f = recipe;
	struct quantize_group g = quantize_group_of(f, number);

	for (int64_t i = 0; i < count; i++)
		values[i] = quantize_at(f, number, &g, column + i, random[i]);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct quantize_fill f = quantize_fill_of(c);

	(void)input;
	(void)err;
	input_fill(out, f.key, f.group, make_group, &f);
	return 0;
}

/* Reads group `number` of x. Returns the larger of two numbers: the largest magnitude of the group, and the floor. */
static double read_group(const struct tensor *x, int64_t number, int64_t group, double eps, double *values)
{
	double most = eps;

	dtype_load_run(x->data, x->dtype, number * group, group, values);
	for (int64_t i = 0; i < group; i++)
		most = fmax(most, fabs(values[i]));
	return most;
}

static double as(double x, enum dtype dtype)
{
	unsigned char bytes[8];

	dtype_store(bytes, dtype, 0, x);
	return dtype_load(bytes, dtype, 0);
}

/* Returns the largest magnitude of a group, without the floor, or what a reference with the mistake uses instead. */
static double magnitude(const struct tensor *x, int64_t number, int64_t group, int mistake)
{
	int64_t first = number * group + (mistake == QUANTIZE_FIRST_LEFT_OUT || mistake == QUANTIZE_ONE_CHANNEL_LATER);
	int64_t count = mistake == QUANTIZE_FIRST_HALF ? group / 2 : group - (mistake == QUANTIZE_FIRST_LEFT_OUT || mistake == QUANTIZE_LAST_LEFT_OUT);
	double most = 0;

	for (int64_t i = 0; i < count; i++) {
		int64_t columns = x->shape[x->rank - 1], at = first + i, row = number * group / columns * columns;
		double value = dtype_load(x->data, x->dtype, at < row + columns ? at : row);

		value = mistake == QUANTIZE_LARGEST_NUMBER ? value : mistake == QUANTIZE_SMALLEST_NUMBER ? -value : fabs(value);
		most = fmax(most, value);
	}
	return most;
}

/* Sets each of most[first], most[first + step], … (indices below `end`) to the largest of them. */
static void share(double *most, int64_t first, int64_t end, int64_t step)
{
	double all = 0;

	for (int64_t g = first; g < end; g += step)
		all = fmax(all, most[g]);
	for (int64_t g = first; g < end; g += step)
		most[g] = all;
}

/* Returns an array with one number per group: the group's largest magnitude, or the floor if the floor is larger. The
 * caller frees the array. */
static double *magnitudes(const struct op_case *c, const struct tensor *x)
{
	struct quantize_extent e = quantize_extent_of(c->problem);
	int64_t groups = x->elements / e.group, across = e.columns / e.group;
	double *most = take(groups, sizeof *most), eps = quantize_eps(c);

#pragma omp parallel if (x->elements >= PARALLEL_FROM)
	{
		double *values = take(e.group, sizeof *values);

#pragma omp for
		for (int64_t g = 0; g < groups; g++)
			most[g] = c->mistake == QUANTIZE_NO_MISTAKE ? read_group(x, g, e.group, 0, values)
								    : magnitude(x, g, e.group, c->mistake);
		free(values);
	}
	for (int64_t g = 0; c->mistake == QUANTIZE_MOST_OF_ROW && g < groups; g += across)
		share(most, g, g + across, 1);
	for (int64_t g = 0; c->mistake == QUANTIZE_MOST_OF_TOKENS && g < across && g < groups; g++)
		share(most, g, groups, across);
	for (int64_t g = 0; c->mistake == QUANTIZE_DOUBLE_GROUP && across % 2 == 0 && g < groups; g += 2)
		share(most, g, g + 2, 1);
	if (c->mistake == QUANTIZE_MOST_OF_TENSOR)
		share(most, 0, groups, 1);
	for (int64_t g = 0; g < groups; g++)
		most[g] = c->mistake == QUANTIZE_FLOOR_ADDED	 ? most[g] + eps
			  : c->mistake == QUANTIZE_FLOOR_OF_SCALE ? fmax(most[g], eps * LARGEST)
							 : fmax(most[g], eps);
	return most;
}

/* Returns the scale for a group whose largest magnitude is `most`, or what a reference with the mistake computes
 * instead. */
static double scale_of(int mistake, double most)
{
	double scale = most / (mistake == QUANTIZE_FOR_240 ? 240 : LARGEST);

	switch (mistake) {
	case QUANTIZE_SCALE_BFLOAT16:
		return as(scale, DTYPE_BFLOAT16);
	case QUANTIZE_SCALE_FLOAT16:
		return as(scale, DTYPE_FLOAT16);
	case QUANTIZE_SCALE_POWER:
		return exp2(ceil(log2(scale)));
	default:
		return scale;
	}
}

/* Returns the factor by which the elements of group g are multiplied. */
static double factor_of(const struct op_case *c, const double *most, int64_t g)
{
	int64_t across = quantize_extent_of(c->problem).columns / quantize_extent_of(c->problem).group, row = g / across * across;
	int64_t other = c->mistake == QUANTIZE_PREVIOUS_GROUP ? row + (g - row + across - 1) % across : row + (g - row + 1) % across;
	double scale = scale_of(c->mistake, most[g]);

	switch (c->mistake) {
	case QUANTIZE_NO_MISTAKE:
		return LARGEST / most[g];
	case QUANTIZE_PREVIOUS_GROUP:
	case QUANTIZE_NEXT_GROUP:
		return LARGEST / most[other];
	case QUANTIZE_FACTOR_BFLOAT16:
		return 1 / as(scale, DTYPE_BFLOAT16);
	case QUANTIZE_SQUARED:
		return 1 / (scale * scale);
	case QUANTIZE_FOR_480:
		return 480 / most[g];
	default:
		return 1 / scale;
	}
}

/* Rounds a quotient to an e4m3 number: to the nearest number with ties away from zero if `away` is true, else towards
 * zero. */
static double in_steps(double quotient, bool away)
{
	double step = exp2(floor(log2(fmax(fabs(quotient), 0x1p-6))) - 3);

	return copysign((away ? floor(fabs(quotient) / step + 0.5) : floor(fabs(quotient) / step)) * step, quotient);
}

/* Returns the e4m3 number to which a quotient is rounded, or what a reference with the mistake rounds it to. */
static double rounded(int mistake, double quotient)
{
	double limit = mistake == QUANTIZE_LIMIT_416 ? 416 : mistake == QUANTIZE_FOR_240 ? 240 : LARGEST;

	quotient = isnan(quotient) ? quotient : fmax(-limit, fmin(limit, quotient));
	switch (mistake) {
	case QUANTIZE_TO_E5M2:
		quotient = as(quotient, DTYPE_FLOAT8_E5M2);
		break;
	case QUANTIZE_TRUNCATED:
	case QUANTIZE_AWAY:
		quotient = in_steps(quotient, mistake == QUANTIZE_AWAY);
		break;
	case QUANTIZE_QUOTIENT_BFLOAT16:
		quotient = as(quotient, DTYPE_BFLOAT16);
		break;
	case QUANTIZE_QUOTIENT_FLOAT16:
		quotient = as(quotient, DTYPE_FLOAT16);
		break;
	case QUANTIZE_NO_SUBNORMALS:
		quotient = fabs(quotient) < 0x1p-6 ? 0 : quotient;
		break;
	case QUANTIZE_NO_SIGN:
		quotient = fabs(quotient);
		break;
	default:
		break;
	}
	return isnan(quotient) ? (double)NAN : as(fmax(-LARGEST, fmin(LARGEST, quotient)), DTYPE_FLOAT8_E4M3FN);
}

static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct quantize_roles roles = quantize_roles_of(c->problem);
	int64_t group = quantize_extent_of(c->problem).group;

	if (check_scalar(c, roles.eps, 0x1p-1074, 1e300,
			 "the floor must be above 0, because otherwise a group of zeros has the scale 0",
	                 err) != 0 ||
	    check_all_finite(c, in, err) != 0)
		return -1;
	if (!check_brought(c, in, roles.x) || quantize_eps(c) != 0)
		return 0;
	double *values = take(group, sizeof *values);
	int rc = 0;

	for (int64_t g = 0; rc == 0 && g < in[roles.x].elements / group; g++)
		if (read_group(&in[roles.x], g, group, 0, values) == 0) {
			char place[160];

			rc = err_set(err, "input '%s' has a group of zeros at %s; the scale of this group would be 0, because there is no "
					  "floor",
			             c->problem->inputs[roles.x].name,
			             check_place(&in[roles.x], g * group, place, sizeof place));
		}
	free(values);
	return rc;
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	struct quantize_roles roles = quantize_roles_of(c->problem);
	const struct tensor *x = &in[roles.x], *q = &out[roles.quantized], *s = &out[roles.scale];
	int64_t group = quantize_extent_of(c->problem).group;
	double *most = magnitudes(c, x);

	(void)err;
#pragma omp parallel if (x->elements >= PARALLEL_FROM)
	{
		double *values = take(group, sizeof *values);

#pragma omp for
		for (int64_t g = 0; g < s->elements; g++) {
			double factor = factor_of(c, most, g);

			dtype_load_run(x->data, x->dtype, g * group, group, values);
			for (int64_t i = 0; i < group; i++)
				values[i] = rounded(c->mistake, c->mistake == QUANTIZE_NO_MISTAKE ? values[i] * LARGEST / most[g] : values[i] * factor);
			dtype_store_run(q->data, q->dtype, g * group, group, values);
			dtype_store(s->data, s->dtype, g, scale_of(c->mistake, most[g]));
		}
		free(values);
	}
	free(most);
	return 0;
}

/* Writes the correct e4m3 numbers of a group to `expected`. If two numbers are correct for an element and the reference
 * has one of them, writes that one. */
static void expect_group(const struct op_case *c, const struct tensor *x, const double *most, const struct tensor *reference,
			 int64_t number, double *values, double *expected)
{
	int64_t group = quantize_extent_of(c->problem).group;
	int exponent;
	bool plain = c->mistake == QUANTIZE_NO_MISTAKE || c->mistake >= QUANTIZE_TO_E5M2; /* true if the mistake does
											   * not change the scale */
	double slack = frexp(most[number] / LARGEST, &exponent) == 0.5 && plain ? 0 : SLACK;
	double factor = factor_of(c, most, number);

	dtype_load_run(x->data, x->dtype, number * group, group, values);
	dtype_load_run(reference->data, reference->dtype, number * group, group, expected);
	for (int64_t i = 0; i < group; i++) {
		double quotient = c->mistake == QUANTIZE_NO_MISTAKE ? values[i] * LARGEST / most[number] : values[i] * factor;
		double nearest = rounded(c->mistake, quotient);

		if (expected[i] != nearest && expected[i] != rounded(c->mistake, quotient * (1 - slack)) &&
		    expected[i] != rounded(c->mistake, quotient * (1 + slack)))
			expected[i] = nearest;
	}
}

/* Writes the sentence about the first wrong element to `why`. */
static void tell_miss(const struct op_case *c, const struct tensor *x, const struct tensor *reference,
                      const struct tensor *expected, const struct metrics *metrics, struct err *why)
{
	int64_t group = quantize_extent_of(c->problem).group, at = 0;
	double *values = take(group, sizeof *values), most;
	char place[160];

	while (dtype_load(reference->data, reference->dtype, at) == dtype_load(expected->data, expected->dtype, at))
		at++;
	most = read_group(x, at / group, group, quantize_eps(c), values);
	err_set(why, "%lld of %lld elements are not x / scale, rounded to the nearest float8_e4m3fn; the first is at %s: "
		     "%.9g divided by the scale (%.9g / 448) is %.9g, so the element must be %g, but it is %g in "
		     "the reference",
	        (long long)(metrics->elements - metrics->hits), (long long)metrics->elements,
	        check_place(reference, at, place, sizeof place), values[at % group], most,
	        values[at % group] * LARGEST / most, dtype_load(expected->data, expected->dtype, at),
	        dtype_load(reference->data, reference->dtype, at));
	free(values);
}

static bool judges(const struct op_case *c, int output)
{
	return output == quantize_roles_of(c->problem).quantized;
}

/* Judges the output q. The output s is compared by the elementwise rule. */
static int judge(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
                 const struct tensor *truth, struct metrics *metrics, double *evidence, struct err *why)
{
	(void)evidence;
	struct quantize_roles roles = quantize_roles_of(c->problem);
	const struct tensor *x = &in[roles.x];
	int64_t group = quantize_extent_of(c->problem).group;
	struct tensor expected = *truth;

	if (output != roles.quantized)
		return 0;
	double *most = magnitudes(c, x);

	expected.data = take(dtype_bytes(truth->dtype, truth->elements), 1);
#pragma omp parallel if (x->elements >= PARALLEL_FROM)
	{
		double *values = take(2 * group, sizeof *values);

#pragma omp for
		for (int64_t g = 0; g < truth->elements / group; g++) {
			expect_group(c, x, most, reference, g, values, values + group);
			dtype_store_run(expected.data, expected.dtype, g * group, group, values + group);
		}
		free(values);
	}
	compare_host(reference->data, expected.data, expected.dtype, expected.elements, (struct rule){0, 0, 1}, metrics);
	if (!metrics->passed)
		tell_miss(c, x, reference, &expected, metrics, why);
	free(expected.data);
	free(most);
	return 1;
}

static void probe_axes(const struct op_problem *problem, int variant, int64_t *axis)
{
	(void)variant;
	set_axes(problem, PROBE_ROWS, axis);
}

/* Returns the floor that follows from the scales of groups of zeros, or 0 if no floor follows from them. */
static double floor_of_zeros(const struct tensor *s)
{
	double *shown = take(s->elements, sizeof *shown), middle;
	int64_t count = 0;

	for (int64_t g = 0; g < s->elements; g += 2)
		shown[count++] = dtype_load(s->data, s->dtype, g) * LARGEST;
	middle = epsilon_median(shown, count);
	free(shown);
	return isfinite(middle) && middle > 0 ? middle : 0;
}

/* Returns the number of groups whose scale agrees with the floor `eps`. If the floor is 0, any scale of a group of
 * zeros agrees. */
static int64_t groups_with_floor(const struct op_case *c, const struct tensor *x, const struct tensor *s, double eps)
{
	int64_t group = quantize_extent_of(c->problem).group, count = 0;
	double *values = take(group, sizeof *values);

	for (int64_t g = 0; g < s->elements; g++) {
		double most = read_group(x, g, group, eps, values), found = dtype_load(s->data, s->dtype, g) * LARGEST;

		count += most == 0 || fabs(found - most) <= 0.01 * most;
	}
	free(values);
	return count;
}

static int probe(const struct op_case *c, const struct tensor *in, const struct tensor *out, struct op_constant *found,
                 struct err *err)
{
	struct quantize_roles roles = quantize_roles_of(c->problem);
	const struct tensor *x = &in[roles.x], *s = &out[roles.scale];
	double shown = floor_of_zeros(s);

	if (groups_with_floor(c, x, s, shown) * 10 < s->elements * 9)
		return err_set(err, "the reference's floor cannot be determined: no single floor explains its scales "
				    "for zeros and tiny numbers");
	found[0].value = shown == 0 ? 0 : epsilon_round(shown);
	if (shown > 0 && found[0].value == 0)
		return err_set(err,
		               "the reference's floor is about %.3g, which is not a round number; state its exact "
		               "value in the description, as in \"eps is 1e-10\"",
		               shown);
	return 0;
}

static const struct op_edge edges[] = {{"no_rows", "if the input has no rows, the output has no rows"}, {NULL, NULL}};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	(void)edge;
	return op_edge_rows(sizes, problem, variant, 0, axis);
}

static const char *const op_types[] = {"quantize_fp8_per_token_group", "quantization", "quantize", NULL};
static const char *const op_words[] = {
    "quantize_fp8_per_token_group", "per_token_group_quant_fp8", "per_token_group_quantize_fp8", NULL};

static const struct op_role roles[] = {
    OP_ROLE("hidden", struct quantize_roles, x),
    OP_ROLE("eps", struct quantize_roles, eps),
    OP_ROLE_OUTPUT("quantized", struct quantize_roles, quantized),
    OP_ROLE_OUTPUT("scale", struct quantize_roles, scale),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct quantize_roles *)out = quantize_roles_of(problem);
}

static double group_size(const struct coverage_view *view, const struct op_coverage *row)
{
	(void)row;
	return (double)quantize_extent_of(view->c->problem).group;
}

static double groups_in_row(const struct coverage_view *view, const struct op_coverage *row)
{
	(void)row;
	return (double)quantize_extent_of(view->c->problem).groups;
}

static const struct op_coverage coverage[] = {
    {"group size", group_size,
     .values = {{"64", 64, 64, "has groups of 64 channels"}, {"128", 128, 128, "has groups of 128 channels"},
		{"other", 1, 0x1p62, NULL}}},
    {"groups in a row", groups_in_row,
     .values = {{"one", 1, 1, "has one group per row"}, {"several", 2, 0x1p62, "has several groups per row"}}},
    COVERAGE_OPTION("floor of scales", "eps", "input", "has the floor of scales among its inputs", "hidden",
		    "has a hidden floor of scales"),
    COVERAGE_DTYPES("hidden"),
    COVERAGE_ROWS("hidden"),
    {.name = NULL},
};

const struct op quantize_fp8_per_token_group_op = {
    .name = "quantize_fp8_per_token_group",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = quantize_mistakes,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .constants = constants,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .probe = probe,
    .probe_axes = probe_axes,
    .judge = judge,
    .judges = judges,
};
