#include "kernels/sampling/judge_samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernels/core/dtype_convert.h"
#include "kernels/sampling/draw_statistics.h"
#include "kernels/sampling/draw_suspects.h"
#include "kernels/sampling/filter.h"
#include "kernels/sampling/input_values.h"
#include "kernels/sampling/oracle.h"

_Static_assert(sizeof(struct draws) <= OP_EVIDENCE * sizeof(double), "OP_EVIDENCE must have room for the draws");

/* If a reference draws the same tokens with another seed, it fails, unless a correct reference would do so with a
 * probability above false_sameness. */
static const double false_sameness = 1e-10;

struct seen {
	bool allowed, zero_allowed;
	int64_t token, kept;
	double probability; /* the probability of the drawn token */
	double likelihood;  /* log(probability / mass); -INFINITY if the token is not allowed */
	double least;       /* the smallest probability in the row that a correct filter may keep */
	double mass;        /* the sum of the kept probabilities */
	double share;       /* the largest probability with which a correct sampler draws this token; 0 if it is not allowed */
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
	struct filter_kept kept = sampling_keep(c, in, row, filter);
	int64_t token = samples->dtype == DTYPE_INT64 ? ((const int64_t *)samples->data)[row]
	                                              : ((const int32_t *)samples->data)[row];
	struct seen seen = {.token = token, .kept = kept.count, .least = kept.least, .mass = kept.mass, .likelihood = -INFINITY};

	seen.allowed = may_draw(filter, &kept, token);
	seen.zero_allowed = may_draw(filter, &kept, 0);
	if (token >= 0 && token < filter->vocab)
		seen.probability = filter->value[token];
	if (seen.allowed && kept.defined) {
		seen.likelihood = log(seen.probability / kept.mass);
		seen.share = seen.probability / (kept.mass * (1 - kept.slack));
		seen.draw = draw_of(filter, &kept, token);
	}
	return seen;
}

static int see_all(const struct op_case *c, const struct tensor *in, const struct tensor *samples, struct seen *seen)
{
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];
	int status = 0;

#pragma omp parallel if (probs->elements >= SAMPLING_PARALLEL_FROM)
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

/* Returns true if two rows have the same probabilities and keep the same tokens. */
static bool rows_are_equal(const struct tensor *probs, const struct seen *seen, int64_t a, int64_t b)
{
	int64_t bytes = dtype_bytes(probs->dtype, probs->shape[1]);
	const uint8_t *data = probs->data;

	return seen[a].kept == seen[b].kept && seen[a].mass == seen[b].mass && seen[a].least == seen[b].least &&
	       memcmp(data + a * bytes, data + b * bytes, (size_t)bytes) == 0;
}

/* Returns the last row before `row` that is equal to `row`, or -1 if none of the LOOK_BACK rows before it is. */
static int64_t earlier_row(const struct tensor *probs, const struct seen *seen, int64_t row)
{
	enum { LOOK_BACK = 64 };

	for (int64_t earlier = row - 1; earlier >= 0 && earlier >= row - LOOK_BACK; earlier--)
		if (rows_are_equal(probs, seen, earlier, row))
			return earlier;
	return -1;
}

/* Adds the suspicion that the sampler draws the same token from rows with the same probabilities. */
static void suspect_same(const struct tensor *probs, struct seen *seen, int64_t rows)
{
	for (int64_t row = 1; row < rows; row++) {
		int64_t earlier = seen[row].share > 0 && seen[row].draw.counted ? earlier_row(probs, seen, row) : -1;

		if (earlier >= 0)
			seen[row].draw.suspicion[DRAW_SAME] =
			    draw_suspect_same(seen[earlier].token == seen[row].token, seen[row].share);
	}
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

bool sampling_judges(const struct op_case *c, int output)
{
	(void)output;
	return (c->variant & SAMPLING_RENORM) == 0;
}

int sampling_judge(const struct op_case *c, int output, const struct tensor *in, const struct tensor *reference,
                 const struct tensor *truth, struct metrics *metrics, double *evidence, struct err *why)
{
	const struct tensor *samples = &reference[output];
	const struct tensor *probs = &in[sampling_roles_of(c->problem).probs];
	int64_t rows = samples->elements, vocab = probs->shape[1];

	if (!sampling_judges(c, output))
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
	suspect_same(probs, seen, rows);
	for (int64_t row = 0; row < rows; row++) {
		draws[row] = seen[row].draw;
		metrics->zeros_would_pass &= seen[row].zero_allowed;
		metrics->log_likelihood += seen[row].likelihood;
	}
	int64_t wrong = judge_tokens(seen, vocab, &truth[output], metrics, why);
	struct draws sum = draws_count(draws, rows);
	struct draws_verdict verdict = draws_judge(&sum, wrong == 0 ? why : NULL);
	bool reported = wrong > 0 || verdict.margin > 1, alone = c->contents == CONTENTS_FIRST;
	double suspected = alone ? draws_suspect(sum.suspicion, reported ? NULL : why) : 0;

	if (evidence != NULL)
		memcpy(evidence, &sum, sizeof sum);
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

int sampling_judge_both(const struct op_case *const *c, int output, const struct tensor *const *samples,
                      const double *const *evidence, struct err *why)
{
	const struct op_case *first = c[CONTENTS_FIRST];
	struct draws sum, more;

	(void)output;
	if (first->variant & SAMPLING_RENORM)
		return 0;
	memcpy(&sum, evidence[CONTENTS_FIRST], sizeof sum);
	memcpy(&more, evidence[CONTENTS_SECOND], sizeof more);
	draws_add(&sum, &more);
	if (draws_suspect(sum.suspicion, why) > 1 || draws_judge(&sum, why).margin > 1)
		return -1;
	if (first->given != 0 || first->edge != 0) /* a case of a workload or of --edge may have no rows that are the
						    * same in both sets */
		return 0;
	return judge_generator(first, samples[CONTENTS_FIRST], samples[CONTENTS_SECOND], why);
}
