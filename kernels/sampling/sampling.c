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
#include "kernels/sampling/input_values.h"
#include "kernels/sampling/judge_samples.h"
#include "kernels/sampling/mistakes.h"
#include "kernels/sampling/oracle.h"

enum { VOCAB_LEAST = SAMPLING_HEAVY };

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

/* The largest block size (in rows) that the medium cases test: the number of rows of one case is a multiple of it, and
 * that of another case is one more than a multiple. */
enum { BLOCK_ROWS = 256 };

/* Returns the number of rows of the first medium case, a multiple of BLOCK_ROWS. The number is small, because
 * references that loop over rows take some milliseconds per row. 256 rows are enough to detect a wrong boundary: the
 * boundary token (input_values.h) is drawn about 60 times. If most rows are peaks, both sets of values together need
 * about a thousand rows to detect a sampler with uniform noise (input_values.h). With min-p, there are more rows than
 * without a filter, because some kinds of rows are only for min-p. */
static int64_t medium_rows(const struct op_problem *problem, int variant)
{
	if ((variant & SAMPLING_RENORM) || !sampling_is_peaked(variant, sampling_is_shared(problem)))
		return BLOCK_ROWS;
	return variant == 0 ? 512 : 768;
}

static int sizes(const struct op_problem *problem, int variant, enum op_size size, int64_t *axis, int room)
{
	static const int64_t vocab[] = {1024, 32000, 128256};
	const int64_t rows[SIZE_COUNT][2] = {{1, SAMPLING_SMALL_ROWS},
	                                    {medium_rows(problem, variant), BLOCK_ROWS + 1},
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
enum { EDGE_NO_ROWS = 1, EDGE_ONE_ROW, EDGE_CERTAIN, EDGE_TIES, EDGE_OPEN_TOP_K, EDGE_LARGE_TOP_K, EDGE_OPEN_TOP_P, EDGE_OPEN_MIN_P };

static const struct op_edge edges[] = {
    {"no_rows", "if the input has no rows, the output has no samples"},
    {"one_row", "a batch of one row is filtered with the parameters of this row"},
    {"certain", "every filter keeps a token of probability 1"},
    {"ties", "tokens that are as likely as the last kept token may also be drawn"},
    {"open_top_k", "a top-k that is 0, negative, or the size of the vocabulary keeps every token"},
    {"large_top_k", "a top-k that is larger than the vocabulary keeps every token"},
    {"open_top_p", "a top-p of 0 keeps only the most likely token, and a top-p of 1 keeps all tokens"},
    {"open_min_p", "a min-p of 0 keeps all tokens, and a min-p of 1 keeps only the most likely token"},
    {NULL, NULL},
};

static bool edge_axes(const struct op_problem *problem, int variant, int edge, int64_t *axis)
{
	static const int needs[] = {[EDGE_OPEN_TOP_K] = SAMPLING_TOP_K,
	                            [EDGE_LARGE_TOP_K] = SAMPLING_TOP_K,
	                            [EDGE_OPEN_TOP_P] = SAMPLING_TOP_P,
	                            [EDGE_OPEN_MIN_P] = SAMPLING_MIN_P};
	/* If several tokens may be drawn, there are enough rows to detect a reference that never draws half of them. */
	static const int64_t edge_rows[] = {[EDGE_NO_ROWS] = 0, [EDGE_ONE_ROW] = 1, [EDGE_CERTAIN] = 8,
	                                    [EDGE_TIES] = 192, [EDGE_OPEN_TOP_K] = 192, [EDGE_LARGE_TOP_K] = 192, [EDGE_OPEN_TOP_P] = 192,
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
	const int64_t open_k[] = {0, vocab, -1, vocab};

	if (edge == EDGE_OPEN_TOP_K)
		ordinary.top_k = open_k[row % 4];
	if (edge == EDGE_LARGE_TOP_K)
		ordinary.top_k = vocab + 7;
	if (edge == EDGE_OPEN_TOP_P)
		ordinary.top_p = row % 2 == 1 || sampling_may_tie(row) ? 1 : 0;
	if (edge == EDGE_OPEN_MIN_P)
		ordinary.min_p = (double)(row % 2);
	return ordinary;
}

/* The tolerance of filtered probabilities. A filtered probability is divided by a sum, which has at most one term per
 * token of the vocabulary. In float32, the relative error of a pairwise sum of 262144 terms is up to 2^-24
 * log2(262144), and that of a sum in which a few heavy tokens dominate is a few times 2^-24. A float16 or bfloat16
 * output is rounded once more. Dropped tokens are exactly 0, and the smallest kept probability is 2^-24. Therefore atol
 * is tiny: for float16, it is the smallest subnormal number. Samples have no tolerance, because op.judge tests them. */
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
	int64_t first = row * f->vocab, like = sampling_repeated(f, row);
	int tokens = sampling_tokens(f, like);

	memset((uint8_t *)out->data + dtype_bytes(out->dtype, first), 0, (size_t)dtype_bytes(out->dtype, f->vocab));
	for (int64_t column = 0; column < f->vocab && sampling_tail(f, like, 0); column += f->stride)
		dtype_store_float(out->data, out->dtype, first + column, 0x1p-24f);
	for (int rank = 0; rank < tokens; rank++)
		dtype_store_float(out->data, out->dtype, first + sampling_place(f, like, rank),
		                  (float)sampling_weight(f, like, rank) * (float)SAMPLING_UNIT);
}

static int fill(const struct op_case *c, int input, struct tensor *out, struct err *err)
{
	struct sampling_fill f = sampling_fill_of(c);
	int filter = input == sampling_roles_of(c->problem).probs ? 0 : sampling_filter_of(&c->problem->inputs[input]);

	if (f.vocab < VOCAB_LEAST)
		return err_set(err, "a vocabulary of %lld tokens is too small; it must have at least %d",
		               (long long)f.vocab, VOCAB_LEAST);
#pragma omp parallel for if (out->elements >= SAMPLING_PARALLEL_FROM)
	for (int64_t row = 0; row < f.rows; row++) {
		int64_t like = sampling_repeated(&f, row);
		struct sampling_parameters parameters =
		    edge_parameters(c->edge, f.vocab, like, sampling_parameters_of(&f, like));

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

/* --- ranges that the default cases cover -------------------------------------------------------------------------- */

/* The range includes the smallest and largest parameters of single rows, and the parameters that all rows share. A
 * top-k of 0 or beyond the vocabulary, and a top-p of 0, occur only in cases of --edge. */
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
	return axis == probs->axis[0]   ? (struct op_reach){BLOCK_ROWS + 1, BLOCK_ROWS}
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
    .medium_runs = LAST_MEDIUM_RUNS_ONCE,
    .edges = edges,
    .edge_axes = edge_axes,
    .rule = rule,
    .scalar = scalar,
    .range = range,
    .reach = reach,
    .samples = samples,
    .fill = fill,
    .check = sampling_check,
    .oracle = sampling_oracle,
    .judge = sampling_judge,
    .judges = sampling_judges,
    .judge_both = sampling_judge_both,
};
