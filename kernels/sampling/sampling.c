/* sampling - draws tokens from filtered probabilities, or returns the filtered probabilities.
 *
 *   samples[r] ~ probs[r], filtered by top-k, by top-p, by both (top-k first), by min-p, or not at all
 *   renorm[r][v] = probs[r][v] / (sum of the kept probabilities of row r) if the filter keeps v, else 0
 *
 * filter.h defines which tokens each filter keeps. The shape of probs is [rows][vocabulary]. A filter's parameter has
 * one value per row (top_k int32, top_p and min_p float32) or is a Python scalar for all rows. The output is [rows] of
 * integers (samples), or has the shape of probs (filtered probabilities).
 *
 * Samples are random, so other implementations return other samples. Therefore op.judge makes two tests: each sample
 * must be a token that the filter keeps, and all samples together must follow the filtered probabilities
 * (draw_statistics.h describes the statistics and the threshold). For the rows of input_values.h, a few samples are
 * enough to show a mistake. Reports give the most likely token as the ground truth of a sample. A row that is not a
 * distribution (NaN, negative or infinite values, or all zeros) has no ground truth, and a workload with such a row is
 * invalid.
 *
 * For some inputs, implementations have different conventions. Such inputs occur only in cases of --edge. If tokens tie
 * at the boundary, some implementations keep exactly k tokens, but different implementations keep different ones.
 * Therefore, a sample may be any of the tied tokens. In this family, k <= 0 keeps all tokens, and p <= 0 or min_p > 1
 * keeps only the most likely token (for min_p = 1, all implementations agree). */
#include <math.h>
#include <stdlib.h>

#include "kernels/core/coverage.h"
#include "kernels/core/input_check.h"
#include "kernels/sampling/mistakes.h"
#include "kernels/sampling/draw_statistics.h"
#include "kernels/sampling/filter.h"
#include "kernels/sampling/input_values.h"

_Static_assert((int)DRAW_SUSPECTS <= (int)METRICS_EVIDENCE, "metrics must have room for the suspicions of draws_judge");

/* If a reference draws the same tokens with another seed, it fails, unless a correct reference would do so with a
 * probability above false_sameness. */
static const double false_sameness = 1e-10;

/* PARALLEL_FROM: if there are fewer elements, one thread is faster than several. */
enum { VOCAB_LEAST = SAMPLING_HEAVY, PARALLEL_FROM = 1 << 20 };

static bool is_probabilities(enum dtype dtype)
{
	return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64 || dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16;
}

static int match_probs(const struct op_problem *problem, struct err *why)
{
	int probs = sampling_roles_of(problem).probs;

	if (probs < 0)
		return err_set(why, "no input has the shape [rows, vocabulary] of probabilities");
	const struct op_arg *input = &problem->inputs[probs];
	const struct op_axis *vocab = &problem->axes[input->axis[1]];

	if (strstr(input->name, "logit") != NULL)
		return err_set(why, "input '%s' holds logits, but this op family filters probabilities", input->name);
	if (!is_probabilities(input->dtype))
		return err_set(why, "input '%s' is %s; it must be float32, float64, float16 or bfloat16", input->name,
		               dtype_name(input->dtype));
	if (input->axis[0] == input->axis[1])
		return err_set(why, "input '%s' has the axis '%s' twice", input->name, vocab->name);
	if (!vocab->var && vocab->value < VOCAB_LEAST)
		return err_set(why,
		               "the vocabulary (axis '%s') has %lld tokens; it must have at least %d",
		               vocab->name, (long long)vocab->value, VOCAB_LEAST);
	return probs;
}

/* Returns the set of filters, or -1 with a message in `why`. */
static int match_filters(const struct op_problem *problem, int probs, struct err *why)
{
	int filters = 0;

	for (int i = 0; i < problem->input_count; i++) {
		const struct op_arg *input = &problem->inputs[i];
		int filter = sampling_filter_of(input);

		if (i == probs)
			continue;
		if (filter == 0)
			return err_set(why, "input '%s' (%s) is not one of probabilities, top_k, top_p and min_p",
			               input->name, dtype_name(input->dtype));
		if (filters & filter)
			return err_set(why, "input '%s' and an earlier input are parameters of the same filter",
			               input->name);
		if (input->rank != OP_SCALAR && (input->rank != 1 || input->axis[0] != problem->inputs[probs].axis[0]))
			return err_set(why, "input '%s' is neither a scalar nor one value for each row of '%s'",
			               input->name, problem->inputs[probs].name);
		filters |= filter;
	}
	if ((filters & SAMPLING_MIN_P) && filters != SAMPLING_MIN_P)
		return err_set(why, "the inputs include min_p together with top_k or top_p, and no convention says "
				    "which of these filters is applied first");
	return filters;
}

static int match(const struct op_problem *problem, struct err *why)
{
	int probs = match_probs(problem, why);
	int filters = probs < 0 ? -1 : match_filters(problem, probs, why);

	if (filters < 0)
		return -1;
	if (problem->output_count != 1)
		return err_set(why, "the definition has %d outputs; it must have one: samples or filtered "
				    "probabilities",
		               problem->output_count);
	const struct op_arg *input = &problem->inputs[probs], *output = &problem->outputs[0];

	if (output->rank == 1 && output->axis[0] == input->axis[0] &&
	    (output->dtype == DTYPE_INT64 || output->dtype == DTYPE_INT32))
		return filters;
	if (output->rank == 2 && output->axis[0] == input->axis[0] && output->axis[1] == input->axis[1] &&
	    is_probabilities(output->dtype) && filters != 0)
		return filters | SAMPLING_RENORM;
	return err_set(why, "output '%s' is neither samples ([%s] of int32 or int64) nor the filtered probabilities of "
			    "'%s'",
	               output->name, problem->axes[input->axis[0]].name, input->name);
}

/* Returns true if a reference takes so long for each row that there are fewer rows. */
static bool has_large_vocabulary(const struct op_problem *problem)
{
	const struct op_axis *vocab = &problem->axes[problem->inputs[sampling_roles_of(problem).probs].axis[1]];

	return !vocab->var && vocab->value > 65536;
}

/* Returns the largest block size for which one medium case has a multiple of it as number of rows, and another case one
 * more than a multiple. */
static int64_t block_rows(const struct op_problem *problem)
{
	return has_large_vocabulary(problem) ? 128 : 256;
}

/* Returns the number of rows of the first medium case, a multiple of block_rows. A reference loops over rows and takes
 * some milliseconds per row. In 256 rows, the boundary token is drawn about 60 times. If most rows are peaks, both sets
 * of values together need about a thousand rows to detect a sampler with uniform noise (input_values.h). With min-p,
 * there are more rows than without a filter, because some kinds of rows are only for min-p. */
static int64_t medium_rows(const struct op_problem *problem, int variant)
{
	if ((variant & SAMPLING_RENORM) || has_large_vocabulary(problem) ||
	    !sampling_is_peaked(variant, sampling_is_shared(problem)))
		return block_rows(problem);
	return variant == 0 ? 512 : 768;
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t vocab[] = {1024, 32000, 128256};
	const int64_t rows[SIZE_COUNT][2] = {{1, SAMPLING_SMALL_ROWS},
	                                    {medium_rows(problem, variant), block_rows(problem) + 1},
	                                    {1024, 0}};
	const struct op_arg *probs = &problem->inputs[sampling_roles_of(problem).probs];
	bool fixed = !problem->axes[probs->axis[0]].var;
	int count = 0;

	for (int i = 0; i < 2 && count < room && rows[size][i] > 0 && !(fixed && i > 0); i++) {
		int64_t *row = axis + (int64_t)count++ * problem->axis_count;

		op_start_axes(problem, 1, row);
		if (!fixed)
			row[probs->axis[0]] = rows[size][i];
		if (problem->axes[probs->axis[1]].var)
			row[probs->axis[1]] = vocab[size];
	}
	return count;
}

/* The values of op_case.edge, in the order of the table `edges`. */
enum { EDGE_NO_ROWS = 1, EDGE_ONE_ROW, EDGE_CERTAIN, EDGE_TIES, EDGE_OPEN_TOP_K, EDGE_OPEN_TOP_P, EDGE_OPEN_MIN_P };

static const struct op_edge edges[] = {
    {"no_rows", "if the input has no rows, the output has no samples"},
    {"one_row", "a batch of one row is filtered with the parameters of this row"},
    {"certain", "every filter keeps a token of probability 1"},
    {"ties", "tokens that are as likely as the last kept token may also be drawn"},
    {"open_top_k", "a top-k that is 0, negative, or at least the size of the vocabulary keeps every token"},
    {"open_top_p", "a top-p of 0 keeps only the most likely token, and a top-p of 1 keeps all tokens"},
    {"open_min_p", "a min-p of 0 keeps all tokens, and a min-p of 1 keeps only the most likely token"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	static const int needs[] = {[EDGE_OPEN_TOP_K] = SAMPLING_TOP_K,
	                            [EDGE_OPEN_TOP_P] = SAMPLING_TOP_P,
	                            [EDGE_OPEN_MIN_P] = SAMPLING_MIN_P};
	/* If several tokens may be drawn, there are enough rows to detect a reference that never draws half of them. */
	static const int64_t edge_rows[] = {[EDGE_NO_ROWS] = 0, [EDGE_ONE_ROW] = 1, [EDGE_CERTAIN] = 8,
	                                    [EDGE_TIES] = 192, [EDGE_OPEN_TOP_K] = 192, [EDGE_OPEN_TOP_P] = 192,
	                                    [EDGE_OPEN_MIN_P] = 192};
	int rows = problem->inputs[sampling_roles_of(problem).probs].axis[0];

	if (!problem->axes[rows].var || sizes(problem, variant, SIZE_SMALL, axis, 1) != 1 ||
	    (edge == EDGE_TIES && (variant & SAMPLING_RENORM)) || (variant & needs[edge]) != needs[edge])
		return false;
	axis[rows] = edge_rows[edge];
	return true;
}

/* Returns the parameters of a row's filters in a case of --edge. If the two most likely tokens tie, a top-p of 0 may
 * keep either of them. Therefore, rows in which they may tie get a top-p of 1. */
static struct sampling_parameters edge_parameters(int edge, int64_t vocab, int64_t row,
                                                  struct sampling_parameters ordinary)
{
	const int64_t open_k[] = {0, vocab + 7, -1, vocab};

	if (edge == EDGE_OPEN_TOP_K)
		ordinary.top_k = open_k[row % 4];
	if (edge == EDGE_OPEN_TOP_P)
		ordinary.top_p = row % 2 == 1 || sampling_may_tie(row) ? 1 : 0;
	if (edge == EDGE_OPEN_MIN_P)
		ordinary.min_p = (double)(row % 2);
	return ordinary;
}

/* The tolerance of filtered probabilities. A filtered probability is divided by a sum, which has at most one term per
 * token of the vocabulary. In float32, the relative error of a pairwise sum is up to 2^-24 log2(262144), and the
 * relative error of a sum with a few heavy tokens is a few times 2^-24. A float16 or bfloat16 output is rounded once
 * more. Dropped tokens are exactly 0, and the smallest kept probability is 2^-24. Therefore atol is tiny: for float16,
 * it is the smallest subnormal number. Samples have no tolerance, because op.judge tests them. */
static struct rule rule(const struct op_case *c, int output)
{
	if (!(c->variant & SAMPLING_RENORM))
		return (struct rule){0, 0, 1};
	switch (c->problem->outputs[output].dtype) {
	case DTYPE_BFLOAT16:
		return (struct rule){1e-9, 0x1p-7, 1};
	case DTYPE_FLOAT16:
		return (struct rule){0x1p-24, 0x1p-10, 1};
	default:
		return (struct rule){1e-10, 1e-5, 1};
	}
}

/* Returns the value of a parameter that is a Python scalar. If the case omits the parameter, returns the default, which
 * keeps all tokens. */
static double scalar(const struct op_case *c, int input)
{
	const struct op_arg *probs = &c->problem->inputs[sampling_roles_of(c->problem).probs];
	int64_t rows = c->axis[probs->axis[0]], vocab = c->axis[probs->axis[1]];
	struct sampling_parameters shared = sampling_shared(c->variant, c->contents == CONTENTS_SECOND, rows);
	struct sampling_parameters parameters = edge_parameters(c->edge, vocab, 0, shared);

	if ((c->absent >> input & 1) != 0)
		parameters = (struct sampling_parameters){vocab, 1, 0};
	switch (sampling_filter_of(&c->problem->inputs[input])) {
	case SAMPLING_TOP_K:
		return (double)parameters.top_k;
	case SAMPLING_TOP_P:
		return parameters.top_p;
	default:
		return parameters.min_p;
	}
}

/* Fills a row of a case of --edge. In the edge case EDGE_CERTAIN, the first heavy token has all of the weight; in the
 * other edge cases, all heavy tokens have equal weights. */
static void fill_edge_row(const struct sampling_fill *f, int edge, int64_t row, struct tensor *out)
{
	int64_t first = row * f->vocab;
	int tokens = edge == EDGE_CERTAIN ? 1 : SAMPLING_HEAVY;

	for (int64_t column = 0; column < f->vocab; column++)
		dtype_store_float(out->data, out->dtype, first + column, 0);
	for (int rank = 0; rank < tokens; rank++)
		dtype_store_float(out->data, out->dtype, first + sampling_place(f, row, rank), 1.0f / (float)tokens);
}

static void fill_row(const struct sampling_fill *f, int64_t row, struct tensor *out)
{
	int64_t first = row * f->vocab;
	int tokens = sampling_tokens(f, row);

	memset((uint8_t *)out->data + dtype_bytes(out->dtype, first), 0, (size_t)dtype_bytes(out->dtype, f->vocab));
	for (int64_t column = 0; column < f->vocab && sampling_tail(f, row, 0); column += f->stride)
		dtype_store_float(out->data, out->dtype, first + column, 0x1p-24f);
	for (int rank = 0; rank < tokens; rank++)
		dtype_store_float(out->data, out->dtype, first + sampling_place(f, row, rank),
		                  (float)sampling_weight(f, row, rank) * (float)SAMPLING_UNIT);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct sampling_fill f = sampling_fill_of(c);
	int filter = input == sampling_roles_of(c->problem).probs ? 0 : sampling_filter_of(&c->problem->inputs[input]);

	if (f.vocab < VOCAB_LEAST)
		return err_set(err, "a vocabulary of %lld tokens is too small; it must have at least %d",
		               (long long)f.vocab, VOCAB_LEAST);
#pragma omp parallel for if (out->elements >= PARALLEL_FROM)
	for (int64_t row = 0; row < f.rows; row++) {
		struct sampling_parameters parameters =
		    edge_parameters(c->edge, f.vocab, row, sampling_parameters_of(&f, row));

		if (filter == 0 && (c->edge == EDGE_CERTAIN || c->edge == EDGE_TIES))
			fill_edge_row(&f, c->edge, row, out);
		else if (filter == 0)
			fill_row(&f, row, out);
		else if (filter == SAMPLING_TOP_K)
			dtype_store(out->data, out->dtype, row, (double)parameters.top_k);
		else
			dtype_store(out->data, out->dtype, row,
			            filter == SAMPLING_TOP_P ? parameters.top_p : parameters.min_p);
	}
	return 0;
}

static double parameter(const struct op_case *c, const struct tensor *in, int input, int64_t row)
{
	if (input < 0)
		return 0;
	return in[input].rank == OP_SCALAR ? c->scalar[input] : dtype_load(in[input].data, in[input].dtype, row);
}

/* Converts the value of a top_k parameter to an integer. A k beyond the vocabulary becomes the size of the vocabulary,
 * and a k below 1 becomes 0. Both keep all tokens. */
static int64_t top_k_of(double value, int64_t vocab)
{
	return value >= (double)vocab ? vocab : value >= 1 ? (int64_t)value : 0;
}

/* Returns the parameters that a reference with the mistake uses. */
static struct filter_bounds mistaken_bounds(int mistake, const struct filter_bounds *given, const struct filter *filter)
{
	struct filter_bounds b = *given;
	bool limited = b.top_k > 0 && b.top_k < filter->vocab;
	int64_t most = mistake == SAMPLING_K_64 ? 64 : mistake == SAMPLING_K_256 ? 256 : 1024;
	double largest = 0, sum = 0;

	for (int64_t i = 0; i < filter->vocab; i++)
		largest = fmax(largest, filter->value[i]), sum += filter->value[i];
	switch (mistake) {
	case SAMPLING_K_MORE:
		b.top_k += limited;
		break;
	case SAMPLING_K_LESS:
		b.top_k -= limited && b.top_k > 1;
		break;
	case SAMPLING_K_64:
	case SAMPLING_K_256:
	case SAMPLING_K_1024:
		b.top_k = limited && b.top_k > most ? most : b.top_k;
		break;
	case SAMPLING_P_DOUBLED:
		b.top_p *= 2;
		break;
	case SAMPLING_P_REST:
		b.top_p = 1 - b.top_p;
		break;
	case SAMPLING_P_95:
		b.has_top_p = b.has_top_p && !(b.top_p > 0.95);
		break;
	case SAMPLING_MIN_P_ABSOLUTE:
		b.min_p = largest > 0 ? fmin(1, b.min_p / largest) : b.min_p;
		break;
	case SAMPLING_MIN_P_SQUARED:
		b.min_p *= b.min_p;
		break;
	case SAMPLING_MIN_P_OF_SUM:
		b.min_p = largest > 0 ? b.min_p * sum / largest : b.min_p;
		break;
	case SAMPLING_P_ONE_ALONE:
		if (!b.has_top_p || b.top_p < 1)
			break;
		/* fall through */
	case SAMPLING_GREEDY:
		b = (struct filter_bounds){.has_top_k = true, .top_k = 1};
		break;
	default:
		break;
	}
	b.has_top_k = b.has_top_k && mistake != SAMPLING_K_IGNORED;
	b.has_top_p = b.has_top_p && mistake != SAMPLING_P_IGNORED;
	b.has_min_p = b.has_min_p && mistake != SAMPLING_MIN_P_IGNORED;
	return b;
}

/* Keeps exactly the `count` most likely tokens. Does nothing if fewer than `count` tokens are sorted. */
static void keep_exactly(struct filter_kept *kept, const struct filter *filter, int64_t count)
{
	if (count < 1 || count > filter->ordered)
		return;
	kept->count = count;
	kept->threshold = kept->least = filter->value[filter->order[count - 1]];
	kept->mass = kept->limit = filter->before[count - 1] + kept->threshold;
	kept->slack = 0;
}

/* Filters a row as a reference with the mistake does. */
static struct filter_kept mistaken_row(int mistake, const struct filter_bounds *given, struct filter *filter)
{
	int64_t vocab = filter->vocab;

	for (int64_t i = vocab / 2; mistake == SAMPLING_HALF_VOCABULARY && i < vocab; i++)
		filter->value[i] = 0;
	if (mistake == SAMPLING_NO_LAST || mistake == SAMPLING_NO_FIRST)
		filter->value[mistake == SAMPLING_NO_FIRST ? 0 : vocab - 1] = 0;
	struct filter_bounds bounds = mistaken_bounds(mistake, given, filter), none = {.has_top_k = false};
	struct filter_kept kept = filter_row(filter, &bounds);

	if (!kept.defined)
		return kept;
	if ((mistake == SAMPLING_CROSSING_DROPPED || mistake == SAMPLING_CROSSING_MORE) && kept.by == FILTER_BY_TOP_P)
		keep_exactly(&kept, filter, kept.count + (mistake == SAMPLING_CROSSING_MORE ? 1 : -1));
	/* If top_p is below 1, the sum of the probabilities of the kept tokens exceeds top_p. This is true even if
	 * top-p drops no token. */
	if (mistake == SAMPLING_CROSSING_DROPPED_ALONE && bounds.has_top_p && bounds.top_p < 1) {
		kept.defined = kept.count > 1; /* if the filter keeps only one token, this reference divides 0 by 0 */
		keep_exactly(&kept, filter, kept.count - 1);
	}
	if (mistake != SAMPLING_DRAWN_EVENLY && mistake != SAMPLING_SOFTMAX)
		return kept;
	for (int64_t i = 0; i < vocab; i++)
		filter->value[i] = filter->value[i] < kept.threshold ? 0 : mistake == SAMPLING_DRAWN_EVENLY ? 1 : exp(filter->value[i]);
	return filter_row(filter, &none);
}

/* Reads row `row` of the probabilities and applies the case's filters to it. */
static struct filter_kept keep(const struct op_case *c, const struct tensor *in, int64_t row, struct filter *filter)
{
	struct sampling_roles roles = sampling_roles_of(c->problem);
	const struct tensor *probs = &in[roles.probs];
	const struct filter_bounds given = {roles.top_k >= 0,
	                               roles.top_p >= 0,
	                               roles.min_p >= 0,
	                               top_k_of(parameter(c, in, roles.top_k, row), filter->vocab),
	                               parameter(c, in, roles.top_p, row),
	                               parameter(c, in, roles.min_p, row)};

	dtype_load_run(probs->data, probs->dtype, row * filter->vocab, filter->vocab, filter->value);
	if (c->mistake == SAMPLING_NO_MISTAKE ||
	    (c->mistake >= SAMPLING_CROSSING_DROPPED_ALONE && (c->variant & SAMPLING_RENORM) == 0))
		return filter_row(filter, &given);
	return mistaken_row(c->mistake, &given, filter);
}

static int by_decreasing_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x < y) - (x > y);
}

/* Returns the sum of the kept probabilities of a row, where each probability and the sum are rounded to bfloat16. */
static double sum_of_bfloat16(const struct filter *filter, const struct filter_kept *kept)
{
	uint16_t rounded = 0;
	double sum = 0;

	for (int64_t v = 0; v < filter->vocab; v++) {
		dtype_store(&rounded, DTYPE_BFLOAT16, 0, filter->value[v] >= kept->threshold ? filter->value[v] : 0);
		sum += dtype_load(&rounded, DTYPE_BFLOAT16, 0);
	}
	dtype_store(&rounded, DTYPE_BFLOAT16, 0, sum);
	return dtype_load(&rounded, DTYPE_BFLOAT16, 0);
}

/* Returns the sum of the kept probabilities over all rows. */
static double sum_of_batch(const struct op_case *c, const struct tensor *in, struct filter *filter)
{
	const int64_t rows = in[sampling_roles_of(c->problem).probs].shape[0];
	double sum = 0;

	for (int64_t row = 0; row < rows; row++)
		sum += keep(c, in, row, filter).mass;
	return sum;
}

/* Writes one row of the output. Divides the kept probabilities by `divisor`, or by their sum if `divisor` is 0. */
static void write_row(const struct filter *filter, const struct filter_kept *kept, bool renorm, int mistake, double divisor,
		      int64_t row, struct tensor *out)
{
	const int64_t first = row * filter->vocab;
	const double mass = mistake == SAMPLING_NOT_DIVIDED ? 1
			    : mistake == SAMPLING_SUM_BFLOAT16 && kept->defined ? sum_of_bfloat16(filter, kept)
			    : divisor > 0 ? divisor : kept->mass;

	if (!renorm) {
		dtype_store(out->data, out->dtype, row, kept->defined ? (double)filter->order[0] : 0);
		return;
	}
	if (mistake == SAMPLING_IN_ORDER)
		qsort(filter->value, (size_t)filter->vocab, sizeof *filter->value, by_decreasing_value);
	for (int64_t v = 0; v < filter->vocab; v++) {
		double kept_value = filter->value[v] >= kept->threshold ? filter->value[v] / mass : 0;

		dtype_store(out->data, out->dtype, first + v, kept->defined ? kept_value : (double)NAN);
	}
}

/* Checks that rows are distributions (but not that their sum is 1) and that parameters are not NaN. */
static int check(const struct op_case *c, const struct tensor *in, struct err *err)
{
	struct sampling_roles roles = sampling_roles_of(c->problem);
	const struct tensor *probs = &in[roles.probs];
	int64_t vocab = probs->shape[1];
	bool drawable = false;
	char place[160];

	if (check_numbers(c, in, roles.probs, true, "a row with this element is not a distribution", err) != 0 ||
	    check_numbers(c, in, roles.top_p, false, "a top-p must be a number", err) != 0 ||
	    check_numbers(c, in, roles.min_p, false, "a min-p must be a number", err) != 0)
		return -1;
	for (int64_t i = 0; check_brought(c, in, roles.probs) && i < probs->elements; i++) {
		double value = dtype_load(probs->data, probs->dtype, i);

		if (value < 0)
			return err_set(
			    err, "input '%s' holds the negative probability %g at %s; a row with this element is not a "
				 "distribution",
			    c->problem->inputs[roles.probs].name, value, check_place(probs, i, place, sizeof place));
		drawable |= value > 0;
		if (i % vocab == vocab - 1 && !drawable)
			return err_set(err, "input '%s' is 0 in all of row %lld; no token can be drawn",
			               c->problem->inputs[roles.probs].name, (long long)(i / vocab));
		drawable = drawable && i % vocab != vocab - 1;
	}
	return 0;
}

/* Writes the ground truth of one row. The ground truth of a sampler is the row's most likely token, which every filter
 * keeps. For `divisor`, see write_row. */
static void answer_row(const struct op_case *c, const struct tensor *in, int64_t row, struct filter *filter,
                       double divisor, struct tensor *out)
{
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];
	bool renorm = (c->variant & SAMPLING_RENORM) != 0;

	if (!renorm && c->mistake == SAMPLING_NO_MISTAKE) {
		dtype_load_run(probs->data, probs->dtype, row * filter->vocab, filter->vocab, filter->value);
		dtype_store(out->data, out->dtype, row, (double)filter_most_likely(filter));
		return;
	}
	struct filter_kept kept = keep(c, in, row, filter);

	write_row(filter, &kept, renorm, c->mistake, divisor, row, out);
}

static int oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];
	int status = 0;

#pragma omp parallel if (probs->elements >= PARALLEL_FROM)
	{
		struct filter filter;
		int opened = filter_open(&filter, probs->shape[1], NULL);
		double divisor = opened == 0 && c->mistake == SAMPLING_SUM_OF_BATCH ? sum_of_batch(c, in, &filter) : 0;

#pragma omp for
		for (int64_t row = 0; row < probs->shape[0]; row++)
			if (opened == 0)
				answer_row(c, in, row, &filter, divisor, &out[0]);
		if (opened == 0)
			filter_close(&filter);
		else
#pragma omp atomic write
			status = -1;
	}
	return status == 0 ? 0 : err_set(err, "no memory to sort %lld probabilities", (long long)probs->shape[1]);
}

struct seen {
	bool allowed, zero_allowed;
	int64_t token, kept;
	double probability; /* the probability of the drawn token */
	double least;       /* the smallest probability in the row that a correct filter may keep */
	struct draw draw;
};

static bool may_draw(const struct filter *filter, const struct filter_kept *kept, int64_t token)
{
	if (token < 0 || token >= filter->vocab)
		return false;
	return !kept->defined || (filter->value[token] > 0 && filter->value[token] >= kept->least);
}

static struct seen see(const struct op_case *c, const struct tensor *in, const struct tensor *samples, int64_t row,
                       struct filter *filter)
{
	struct filter_kept kept = keep(c, in, row, filter);
	int64_t token = samples->dtype == DTYPE_INT64 ? ((const int64_t *)samples->data)[row]
	                                              : ((const int32_t *)samples->data)[row];
	struct seen seen = {.token = token, .kept = kept.count, .least = kept.least};

	seen.allowed = may_draw(filter, &kept, token);
	seen.zero_allowed = may_draw(filter, &kept, 0);
	if (token >= 0 && token < filter->vocab)
		seen.probability = filter->value[token];
	if (seen.allowed && kept.defined)
		seen.draw = draw_of(filter, &kept, token);
	return seen;
}

static int see_all(const struct op_case *c, const struct tensor *in, const struct tensor *samples, struct seen *seen)
{
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];
	int status = 0;

#pragma omp parallel if (probs->elements >= PARALLEL_FROM)
	{
		struct filter filter;
		int opened = filter_open(&filter, probs->shape[1], NULL);

#pragma omp for
		for (int64_t row = 0; row < samples->elements; row++)
			if (opened == 0)
				seen[row] = see(c, in, samples, row, &filter);
		if (opened == 0)
			filter_close(&filter);
		else
#pragma omp atomic write
			status = -1;
	}
	return status;
}

/* Tests that the sample of every row is a token that the filter keeps. Returns the number of rows whose sample is a
 * dropped token, and writes a message about the first such row to `why`. */
static int64_t judge_tokens(const struct seen *seen, int64_t vocab, const struct tensor *truth, struct metrics *metrics,
                            struct err *why)
{
	int64_t rows = metrics->elements, wrong = 0, first = 0;

	for (int64_t row = rows; row-- > 0;)
		if (!seen[row].allowed) {
			first = row;
			wrong++;
		}
	for (int64_t row = first; wrong > 0 && row < rows && metrics->worst_count < METRICS_WORST; row++) {
		double most = dtype_load(truth->data, truth->dtype, row), token = (double)seen[row].token;

		if (!seen[row].allowed)
			metrics->worst[metrics->worst_count++] = (struct worst){row, token, most, fabs(token - most)};
	}
	if (wrong > 0 && (seen[first].token < 0 || seen[first].token >= vocab))
		err_set(why,
		        "row %lld drew token %lld, which is not in the vocabulary of %lld tokens; %lld of %lld rows "
		        "drew a token that is not allowed",
		        (long long)first, (long long)seen[first].token, (long long)vocab, (long long)wrong,
		        (long long)rows);
	else if (wrong > 0)
		err_set(
		    why,
		    "row %lld drew token %lld of probability %.6g, but the filter keeps only %lld tokens, with "
		    "probabilities of at least %.6g; %lld of %lld rows drew a token that is not allowed",
		    (long long)first, (long long)seen[first].token, seen[first].probability,
		    (long long)seen[first].kept, seen[first].least, (long long)wrong, (long long)rows);
	return wrong;
}

static bool judges(const struct op_case *c, int output)
{
	(void)output;
	return (c->variant & SAMPLING_RENORM) == 0;
}

/* Judges samples. Metrics without a meaning for draws (relative errors, cosine) are 0. The metrics max_abs and mean_abs
 * are both the total variation distance of the draws. An output of zeros passes only if token 0 is allowed in every
 * row. */
static int judge(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
                 const struct tensor *truth, struct metrics *metrics, struct err *why)
{
	const struct tensor *samples = &reference[output];
	int64_t rows = samples->elements, vocab = in[sampling_roles_of(c->problem).probs].shape[1];

	if (!judges(c, output))
		return 0;
	struct seen *seen = calloc((size_t)rows + 1, sizeof *seen);
	struct draw *draws = calloc((size_t)rows + 1, sizeof *draws);

	*metrics = (struct metrics){.elements = rows, .zeros_would_pass = true};
	if (seen == NULL || draws == NULL || see_all(c, in, samples, seen) != 0) {
		free(seen);
		free(draws);
		return err_set(why, "no memory to check %lld samples of a vocabulary of %lld tokens", (long long)rows,
		               (long long)vocab);
	}
	for (int64_t row = 0; row < rows; row++) {
		draws[row] = seen[row].draw;
		metrics->zeros_would_pass &= seen[row].zero_allowed;
	}
	int64_t wrong = judge_tokens(seen, vocab, &truth[output], metrics, why);
	struct draws_verdict verdict = draws_judge(draws, rows, wrong == 0 ? why : NULL);
	bool reported = wrong > 0 || verdict.margin > 1, alone = c->contents == CONTENTS_FIRST;
	double suspected = alone ? draws_suspect(verdict.suspicion, reported ? NULL : why) : 0;

	memcpy(metrics->evidence, verdict.suspicion, sizeof verdict.suspicion);
	metrics->hits = rows - wrong;
	metrics->margin = wrong > 0 ? (double)INFINITY : fmax(verdict.margin, suspected);
	metrics->max_abs = metrics->mean_abs = verdict.distance;
	metrics->passed = metrics->margin <= 1;
	free(seen);
	free(draws);
	return 1;
}

/* Returns the probability that two draws of a row are the same token, for a row with this family's own values. The tail
 * of the row is left out, because it is too unlikely to matter. */
static double chance_of_same(const struct sampling_fill *f, int64_t row)
{
	int kept = sampling_kept(f, row), tokens = sampling_tokens(f, row);
	int count = f->filters != 0 && kept > 0 ? kept : tokens;
	double mass = sampling_sum(f, row, count), chance = 0;

	for (int rank = 0; rank < count; rank++)
		chance += pow(sampling_weight(f, row, rank) * SAMPLING_UNIT / mass, 2);
	return chance;
}

/* Tests that the draws come from torch's random number generators. The reference runs on the two sets of values with
 * different states of these generators. Rows that are the same in both sets therefore give the same tokens only by
 * chance. */
static int judge_generator(const struct op_case *c, const struct tensor *first, const struct tensor *second,
                           struct err *why)
{
	struct sampling_fill f = sampling_fill_of(c);
	double chance = 1;

	for (int64_t row = 0; row < f.rows; row++) {
		if (!sampling_is_twin(&f, row))
			continue;
		if (dtype_load(first->data, first->dtype, row) != dtype_load(second->data, second->dtype, row))
			return 0;
		chance *= chance_of_same(&f, row);
	}
	if (chance > false_sameness)
		return 0;
	return err_set(why,
	               "the samples are the same with a different seed, so they do not come from torch's default "
	               "generator");
}

static int judge_both(const struct op_case *const *c, int output, const struct tensor *const *samples,
                      const struct metrics *const *metrics, struct err *why)
{
	const struct op_case *first = c[CONTENTS_FIRST];
	double suspicion[DRAW_SUSPECTS];

	(void)output;
	if (first->variant & SAMPLING_RENORM)
		return 0;
	for (int s = 0; s < DRAW_SUSPECTS; s++)
		suspicion[s] = metrics[CONTENTS_FIRST]->evidence[s] + metrics[CONTENTS_SECOND]->evidence[s];
	if (draws_suspect(suspicion, why) > 1)
		return -1;
	if (first->given != 0 || first->edge != 0) /* a case of a workload or of --edge may have no rows that are the
						    * same in both sets */
		return 0;
	return judge_generator(first, samples[CONTENTS_FIRST], samples[CONTENTS_SECOND], why);
}

/* --- ranges that the default cases cover -------------------------------------------------------------------------- */

/* The range includes the smallest and largest parameters of single rows, and the parameters that all rows share. A
 * top-k of 0 or beyond the vocabulary, and a top-p of 0, are cases of --edge. */
static bool range(const struct op_problem *problem, int variant, int input, struct op_range *out)
{
	const struct op_arg *arg = &problem->inputs[input];
	const struct op_axis *vocab = &problem->axes[problem->inputs[sampling_roles_of(problem).probs].axis[1]];
	bool both = (variant & SAMPLING_TOP_K) && (variant & SAMPLING_TOP_P), shared = arg->rank == OP_SCALAR;

	switch (input == sampling_roles_of(problem).probs ? 0 : sampling_filter_of(arg)) {
	case SAMPLING_TOP_K:
		*out = shared ? (struct op_range){both ? 4 : 2, both ? 5 : 3}
		              : (struct op_range){1, vocab->var ? 32000 : (double)vocab->value};
		return true;
	case SAMPLING_TOP_P:
		*out = (struct op_range){shared ? both ? 0.6 : 0.43 : 0x1p-16, 1};
		return true;
	case SAMPLING_MIN_P:
		*out = (struct op_range){0, shared ? 0.504 : 1};
		return true;
	default:
		*out = (struct op_range){0, 1};
		return true;
	}
}

static struct op_reach reach(const struct op_problem *problem, int variant, int axis)
{
	const struct op_arg *probs = &problem->inputs[sampling_roles_of(problem).probs];

	(void)variant;
	return axis == probs->axis[0]   ? (struct op_reach){block_rows(problem) + 1, block_rows(problem)}
	       : axis == probs->axis[1] ? (struct op_reach){32000, 0}
	                                : (struct op_reach){0, 0};
}

/* Returns true if the definition draws tokens, and false if it returns filtered probabilities. */
static bool samples(const struct op_case *c)
{
	return (c->variant & SAMPLING_RENORM) == 0;
}

static const char *const op_types[] = {"sampling", NULL};
static const char *const op_words[] = {
    "sampling_from_probs", "sampling_from_logits", "top_k_sampling", "top_p_sampling", "min_p_sampling",
    "top_k_top_p_sampling", "top_k_renorm", "top_p_renorm", "top_k_renorm_probs", "top_p_renorm_probs",
    "top_k_mask_logits", NULL};

static const struct op_role roles[] = {
    OP_ROLE("probs", struct sampling_roles, probs),
    OP_ROLE("top_k", struct sampling_roles, top_k),
    OP_ROLE("top_p", struct sampling_roles, top_p),
    OP_ROLE("min_p", struct sampling_roles, min_p),
    OP_ROLE_OUTPUT("output", struct sampling_roles, output),
    {NULL, 0, false},
};

static void bind(const struct op_problem *problem, int variant, void *out)
{
	(void)variant;
	*(struct sampling_roles *)out = sampling_roles_of(problem);
}

static const struct op_mode modes[] = {
    {"top_k", SAMPLING_TOP_K, SAMPLING_TOP_K},
    {"top_p", SAMPLING_TOP_P, SAMPLING_TOP_P},
    {"min_p", SAMPLING_MIN_P, SAMPLING_MIN_P},
    {"renormalise", SAMPLING_RENORM, SAMPLING_RENORM},
    {NULL, 0, 0},
};

/* Returns 1 if all rows share the parameters, 0 if each row has its own, and NaN if the problem has no parameters. */
static double parameters(const struct coverage_view *view, const struct op_coverage *row)
{
	(void)row;
	return view->c->problem->input_count > 1 ? sampling_is_shared(view->c->problem) : (double)NAN;
}

static const struct op_coverage coverage[] = {
    {"top-k", coverage_switch, .other = "top_k",
     .values = {{"applied", 1, 1, "filters by top-k"}, {"none", 0, 0, "does without top-k"}}},
    {"top-p", coverage_switch, .other = "top_p",
     .values = {{"applied", 1, 1, "filters by top-p"}, {"none", 0, 0, "does without top-p"}}},
    {"min-p", coverage_switch, .other = "min_p",
     .values = {{"applied", 1, 1, "filters by min-p"}, {"none", 0, 0, "does without min-p"}}},
    {"result", coverage_switch, .other = "renormalise",
     .values = {{"probabilities", 1, 1, "returns probabilities"}, {"tokens", 0, 0, "returns tokens"}}},
    {"parameters", parameters,
     .values = {{"of each row", 0, 0, "has a parameter for each row"}, {"shared", 1, 1, "has a scalar parameter"}}},
    COVERAGE_DTYPES_WIDE("probs"),
    COVERAGE_ROWS("probs"),
    {.name = NULL},
};

const struct op sampling_op = {
    .name = "sampling",
    .op_types = op_types,
    .words = op_words,
    .match = match,
    .roles = roles,
    .bind = bind,
    .mistakes = sampling_mistakes,
    .modes = modes,
    .coverage = coverage,
    .sizes = sizes,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .samples = samples,
    .fill = fill,
    .check = check,
    .oracle = oracle,
    .judge = judge,
    .judges = judges,
    .judge_both = judge_both,
};
