#include "kernels/sampling/oracle.h"

#include <math.h>
#include <stdlib.h>

#include "kernels/core/dtype_convert.h"
#include "kernels/core/input_check.h"
#include "kernels/sampling/input_values.h"
#include "kernels/sampling/mistakes.h"

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

/* Returns the sum of the probabilities that top-k keeps. */
static double mass_of_top_k(struct filter *filter, int64_t top_k)
{
	struct filter_kept kept = filter_row(filter, &(struct filter_bounds){.has_top_k = true, .top_k = top_k});

	return kept.defined ? kept.mass : 1;
}

/* Returns the parameters that a reference with the mistake uses. */
static struct filter_bounds mistaken_bounds(int mistake, const struct filter_bounds *given, struct filter *filter)
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
	case SAMPLING_P_OF_WHOLE:
		b.top_p = b.has_top_k && b.has_top_p && b.top_p < 1 ? b.top_p / mass_of_top_k(filter, b.top_k) : b.top_p;
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

/* Returns the weight that a reference with the mistake gives a kept token of this probability. "Equal" weights differ a
 * little, because the statistics of samples use the order of the weights. */
static double mistaken_weight(int mistake, double probability)
{
	switch (mistake) {
	case SAMPLING_ROOTS:
		return sqrt(probability);
	case SAMPLING_SQUARES:
		return probability * probability;
	case SAMPLING_DRAWN_EVENLY:
		return 1 + 1e-7 * probability;
	default:
		return exp(probability);
	}
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
	/* If top_p is below 1, the kept probabilities add up to more than top_p, even if top-p drops no token. A
	 * reference that drops the token at which the sum exceeds top_p thus always drops the last kept token. */
	if (mistake == SAMPLING_CROSSING_DROPPED_ALONE && bounds.has_top_p && bounds.top_p < 1) {
		kept.defined = kept.count > 1; /* if the filter keeps only one token, this reference divides 0 by 0 */
		keep_exactly(&kept, filter, kept.count - 1);
	}
	if (mistake < SAMPLING_ROOTS || mistake > SAMPLING_SOFTMAX)
		return kept;
	for (int64_t i = 0; i < vocab; i++)
		filter->value[i] = filter->value[i] < kept.threshold ? 0 : mistaken_weight(mistake, filter->value[i]);
	return filter_row(filter, &none);
}

struct filter_kept sampling_keep(const struct op_case *c, const struct tensor *in, int64_t row, struct filter *filter)
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
		sum += sampling_keep(c, in, row, filter).mass;
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

int sampling_check(const struct op_case *c, const struct tensor *in, struct err *err)
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
	struct filter_kept kept = sampling_keep(c, in, row, filter);

	write_row(filter, &kept, renorm, c->mistake, divisor, row, out);
}

int sampling_oracle(const struct op_case *c, const struct tensor *in, struct tensor *out, struct err *err)
{
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];
	int status = 0;

#pragma omp parallel if (probs->elements >= SAMPLING_PARALLEL_FROM)
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
