/* test_sampling - sampling: a correct sampler passes for every seed, and 320 draws show the mistakes that people
 * make. */
#include "tests/unit/trial_second.h"

#include "kernels/sampling/draw_statistics.h"
#include "kernels/sampling/filter.h"
#include "kernels/sampling/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op sampling_op;

enum { VOCAB = 500, SEEDS = MANY_SEEDS };

static const struct op_axis axes[] = {{"batch_size", true, 0}, {"vocab_size", false, VOCAB}};
static const struct op_axis real_axes[] = {{"batch_size", true, 0}, {"vocab_size", false, 128256}};
static const struct op_arg samples[] = {{"samples", DTYPE_INT64, 1, {0}, false, NULL}};
static const struct op_arg filtered[] = {{"renorm_probs", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}};

#define PROBS {"probs", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}
#define TOP_K {"top_k", DTYPE_INT32, 1, {0}, false, NULL}
#define TOP_P {"top_p", DTYPE_FLOAT32, 1, {0}, false, NULL}
#define MIN_P {"min_p", DTYPE_FLOAT32, 1, {0}, false, NULL}
static const struct op_arg plain[] = {PROBS};
static const struct op_arg by_k[] = {PROBS, TOP_K};
static const struct op_arg by_p[] = {PROBS, TOP_P};
static const struct op_arg by_k_p[] = {PROBS, TOP_K, TOP_P};
static const struct op_arg by_min[] = {PROBS, MIN_P};
static const struct op_arg by_scalars[] = {
    PROBS, {"top_k", DTYPE_INT32, OP_SCALAR, {0}, false, NULL}, {"top_p", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
static const struct op_arg by_scalar_p[] = {PROBS, {"top_p", DTYPE_FLOAT32, OP_SCALAR, {0}, false, NULL}};
static const struct op_arg by_scalar_k[] = {PROBS, {"top_k", DTYPE_INT32, OP_SCALAR, {0}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("sampling_from_probs", "sampling", axes, plain, samples),
    PROBLEM("top_k_sampling_from_probs", "sampling", axes, by_k, samples),
    PROBLEM("top_p_sampling_from_probs", "sampling", axes, by_p, samples),
    PROBLEM("top_k_top_p_sampling_from_probs", "sampling", axes, by_k_p, samples),
    PROBLEM("min_p_sampling_from_probs", "sampling", axes, by_min, samples),
    PROBLEM("top_k_top_p_sampling_scalar", "sampling", axes, by_scalars, samples),
    PROBLEM("top_p_sampling_scalar", "sampling", axes, by_scalar_p, samples),
    PROBLEM("top_k_sampling_scalar", "sampling", axes, by_scalar_k, samples),
    PROBLEM("top_k_renorm_probs", "sampling", axes, by_k, filtered),
    PROBLEM("top_p_renorm_probs", "sampling", axes, by_p, filtered),
    PROBLEM("top_k_top_p_renorm_probs", "sampling", axes, by_k_p, filtered),
};
enum { PLAIN, BY_K, BY_P, BY_K_P, BY_MIN, SCALARS, SCALAR_P, SCALAR_K, RENORM_K, RENORM_P, RENORM_K_P };

enum mistake {
	NONE,
	GREEDY,
	LEAST_LIKELY,
	EVENLY,
	NOT_FILTERED,
	ONE_K_LESS,
	ONE_K_MORE,
	CROSSING_DROPPED,
	ONE_PAST_CROSSING,
	P_DOUBLED,
	P_AGAINST,
	P_IGNORED,
	K_IGNORED,
	NOT_RENORMALISED,
	P_FIRST,
	FIRST_ROW_FOR_ALL,
	NOT_SORTED,
	RANK_FOR_TOKEN,
	TOKEN_OFF_BY_ONE,
	ONE_NUMBER_FOR_ALL,
	ABSOLUTE_MIN_P,
	MIN_P_OF_SUM,
	SQUARED_MIN_P,
	VALUES_NOT_RENORMALISED,
	TWO_PERCENT_MORE,
	MASK_RETURNED,
	NO_K_FOR_ONE,
	NO_P_FOR_ALL,
	RATIO_NOT_REACHED,
	LARGE_K_FOR_ONE,
	ALL_ZERO,
	UNIFORM_RACE,
	P_FOR_SUM,
	TWELVE_BITS,
	OWN_GENERATOR,
	LIKELY_HALF,
	FIRST_HALF,
	SECOND_HALF,
	NO_FIRST_PLACE,
	NO_LAST_PLACE,
	NO_LAST_OF_MANY,
	LOWER_TOKENS,
	UPPER_TOKENS,
};

struct token {
	int64_t place;
	float value;
};

static int by_value(const void *a, const void *b)
{
	const struct token *x = a, *y = b;

	return x->value != y->value ? (x->value < y->value ? 1 : -1) : (x->place > y->place) - (x->place < y->place);
}

/* Sorts tokens, which are in the order of the vocabulary, from the most to the least likely. The tokens with the
 * smallest probability of the row stay in the order of the vocabulary, so only the other tokens need to be sorted. */
static void sort_by_value(struct token *tokens, int64_t count)
{
	struct token *tail = malloc((size_t)(count + 1) * sizeof *tail);
	int64_t heavy = 0, light = 0;
	float least = INFINITY;

	for (int64_t i = 0; i < count; i++)
		least = fminf(least, tokens[i].value);
	for (int64_t i = 0; i < count; i++)
		if (tokens[i].value > least)
			tokens[heavy++] = tokens[i];
		else
			tail[light++] = tokens[i];
	memcpy(tokens + heavy, tail, (size_t)light * sizeof *tail);
	free(tail);
	qsort(tokens, (size_t)heavy, sizeof *tokens, by_value);
}

static double parameter(const struct trial *t, int input, int64_t row, enum mistake mistake)
{
	if (input < 0)
		return 0;
	if (t->in[input].rank == OP_SCALAR)
		return t->c.scalar[input];
	return dtype_load(t->in[input].data, t->in[input].dtype, mistake == FIRST_ROW_FOR_ALL ? 0 : row);
}

static int64_t keep_k(struct token *tokens, int64_t count, int64_t k, int64_t vocab, bool renormalise)
{
	float sum = 0;

	if (k <= 0 || k >= vocab)
		return count;
	count = k < count ? k : count;
	for (int64_t i = 0; i < count; i++)
		sum += tokens[i].value;
	for (int64_t i = 0; i < count && renormalise; i++)
		tokens[i].value /= sum;
	return count;
}

static int64_t keep_p(const struct token *tokens, int64_t count, float p, enum mistake mistake)
{
	float sum = 0;
	int64_t kept = 0;

	if (p >= 1)
		return count;
	while (kept < count && sum <= p)
		sum += tokens[kept++].value;
	if (mistake == CROSSING_DROPPED && kept > 1)
		kept--;
	return mistake == ONE_PAST_CROSSING && kept < count ? kept + 1 : kept;
}

static int64_t keep_min(const struct token *tokens, int64_t count, float ratio, enum mistake mistake)
{
	float sum = 0;
	int64_t kept = 0;

	for (int64_t i = 0; i < count; i++)
		sum += tokens[i].value;
	float limit = mistake == ABSOLUTE_MIN_P  ? ratio
	              : mistake == MIN_P_OF_SUM  ? ratio * sum
	              : mistake == SQUARED_MIN_P ? ratio * ratio * tokens[0].value
	                                         : ratio * tokens[0].value;

	while (kept < count &&
	       (mistake == RATIO_NOT_REACHED ? tokens[kept].value > limit : tokens[kept].value >= limit))
		kept++;
	return kept;
}

/* Finds the tokens of a row that a reference in float32 keeps. The result is sorted from the most to the least likely
 * token. Its probabilities are not yet renormalised after top-p. */
static int64_t reference_keeps(const struct trial *t, int64_t row, enum mistake mistake, struct token *tokens)
{
	struct sampling_roles roles = sampling_roles_of(t->problem);
	int64_t vocab = t->in[0].shape[1], count = 0;
	int64_t k = (int64_t)parameter(t, roles.top_k, row, mistake);
	float p = (float)parameter(t, roles.top_p, row, mistake);

	const float *probs = (const float *)t->in[0].data + row * vocab;

	for (int64_t v = 0; v < vocab; v++)
		if (probs[v] > 0)
			tokens[count++] = (struct token){v, probs[v]};
	if (mistake == NOT_FILTERED)
		return count;
	k = mistake == NO_K_FOR_ONE && k <= 0 ? 1 : mistake == LARGE_K_FOR_ONE && k >= VOCAB ? 1 : k;
	p = mistake == NO_P_FOR_ALL && p <= 0 ? 1 : p;
	if (mistake != NOT_SORTED)
		sort_by_value(tokens, count);
	k += mistake == ONE_K_MORE ? 1 : mistake == ONE_K_LESS && k > 1 ? -1 : 0;
	p = mistake == P_DOUBLED ? 2 * p : mistake == P_AGAINST && p < 1 ? 1 - p : p;
	if (mistake == P_FIRST && roles.top_p >= 0)
		count = keep_p(tokens, count, p, mistake);
	if (roles.top_k >= 0 && mistake != K_IGNORED)
		count = keep_k(tokens, count, k, vocab, mistake != NOT_RENORMALISED);
	if (roles.top_p >= 0 && mistake != P_IGNORED && mistake != P_FIRST)
		count = keep_p(tokens, count, p, mistake);
	if (roles.min_p >= 0)
		count = keep_min(tokens, count, (float)parameter(t, roles.min_p, row, mistake), mistake);
	return count;
}

/* Sorts tokens in the order of the vocabulary. Each token must have a probability above 0. */
static void sort_by_place(struct token *tokens, int64_t count, int64_t vocab)
{
	float *value = calloc((size_t)vocab, sizeof *value);
	int64_t left = 0;

	for (int64_t i = 0; i < count; i++)
		value[tokens[i].place] = tokens[i].value;
	for (int64_t place = 0; left < count; place++)
		if (value[place] > 0)
			tokens[left++] = (struct token){place, value[place]};
	free(value);
}

/* Leaves out the tokens that the mistaken sampler never draws. Returns the first token that is left, and sets `count`
 * to the number of tokens left. */
static struct token *leave_out(struct token *tokens, int64_t *count, int64_t vocab, enum mistake mistake)
{
	int64_t all = *count, lower = 0, skip = 0, left = all;

	while (lower < all && tokens[lower].place < vocab / 2)
		lower++;
	if (mistake == FIRST_HALF && all > 4)
		left = (all + 1) / 2;
	if (mistake == SECOND_HALF && all > 4)
		skip = all / 2;
	if (all > 1 && (mistake == NO_FIRST_PLACE || mistake == NO_LAST_PLACE))
		mistake == NO_FIRST_PLACE ? skip++ : left--;
	if (lower > 0 && lower < all && (mistake == LOWER_TOKENS || mistake == UPPER_TOKENS))
		*(mistake == LOWER_TOKENS ? &left : &skip) = lower;
	*count = left - skip;
	return tokens + skip;
}

static int64_t draw_token(struct token *tokens, int64_t count, int64_t vocab, double u, enum mistake mistake)
{
	double sum = 0, at = 0;
	int64_t i = 0;

	if (count == 0)
		return 0; /* no token is left: argmax returns 0 */
	if (mistake == GREEDY || mistake == RANK_FOR_TOKEN)
		return mistake == GREEDY ? tokens[0].place : (int64_t)(u * (double)count);
	if (mistake == LEAST_LIKELY)
		return tokens[count - 1].place;
	if (mistake == LIKELY_HALF && count > 4)
		count = (count + 1) / 2;
	if (mistake == NO_LAST_OF_MANY && count > 2)
		count--;
	sort_by_place(tokens, count, vocab);
	tokens = leave_out(tokens, &count, vocab, mistake);
	for (int64_t j = 0; j < count; j++)
		sum += mistake == EVENLY ? 1 : (double)tokens[j].value;
	do
		at += mistake == EVENLY ? 1 : (double)tokens[i].value;
	while (at <= u * sum && ++i < count - 1);
	return tokens[i].place + (mistake == TOKEN_OFF_BY_ONE);
}

/* A wrong sampler. It divides each probability by uniform noise, and returns the token with the largest quotient. With
 * exponential noise, the sampler would be correct. */
static int64_t race(const struct token *tokens, int64_t count, uint64_t key, int64_t row)
{
	int64_t best = 0;
	double most = -1;

	for (int64_t i = 0; i < count; i++) {
		double noise = ((double)philox_bits(key, row * 65536 + i) + 0.5) * 0x1p-32;

		if ((double)tokens[i].value / noise > most) {
			most = (double)tokens[i].value / noise;
			best = tokens[i].place;
		}
	}
	return best;
}

/* Draws a token. The tokens are sorted from the most to the least likely. For a correct sampler, `target` is a random
 * number times the sum of the kept probabilities. For a sampler with the mistake P_FOR_SUM, `target` is the random
 * number times top_p. */
static int64_t draw_below(const struct token *tokens, int64_t count, double target)
{
	int64_t i = 0;

	for (double at = (double)tokens[0].value; at <= target && i < count - 1; at += (double)tokens[i].value)
		i++;
	return tokens[i].place;
}

static int64_t draw_wrongly(const struct trial *t, int64_t row, struct token *tokens, int64_t count, double u,
                            uint64_t key, enum mistake mistake)
{
	double p = parameter(t, sampling_roles_of(t->problem).top_p, row, NONE);

	if (mistake == ALL_ZERO)
		return 0;
	if (mistake == UNIFORM_RACE)
		return race(tokens, count, key, row);
	if (mistake == P_FOR_SUM)
		return draw_below(tokens, count, u * fmin(p, 1));
	return draw_token(tokens, count, t->in[0].shape[1], mistake == TWELVE_BITS ? floor(4096 * u) / 4096 : u,
	                  mistake);
}

static void write_renorm(struct trial *t, int64_t row, const struct token *tokens, int64_t count, enum mistake mistake)
{
	int64_t vocab = t->in[0].shape[1];
	float sum = 0;

	memset((float *)t->out[0].data + row * vocab, 0, (size_t)vocab * sizeof(float));
	for (int64_t i = 0; i < count; i++)
		sum += tokens[i].value;
	for (int64_t i = 0; i < count; i++) {
		float value = tokens[i].value / sum;

		value = mistake == TWO_PERCENT_MORE ? 1.02f * value : mistake == MASK_RETURNED ? 1 : value;
		if (mistake == VALUES_NOT_RENORMALISED)
			value = get(&t->in[0], row * vocab + tokens[i].place);
		set(&t->out[0], row * vocab + tokens[i].place, mistake == ALL_ZERO ? 0 : value);
	}
}

/* Emulates the sampler with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	int64_t rows = t->in[0].shape[0];
	struct token *tokens = malloc((size_t)t->in[0].shape[1] * sizeof *tokens);

	for (int64_t row = 0; row < rows; row++) {
		int64_t count = reference_keeps(t, row, mistake, tokens);
		int64_t number = mistake == ONE_NUMBER_FOR_ALL ? 0 : row;
		uint64_t key = mistake == OWN_GENERATOR ? 1 : 0x5eed + t->c.seed;
		double u = (double)philox_bits(key, number) * 0x1p-32;

		if (t->c.variant & SAMPLING_RENORM)
			write_renorm(t, row, tokens, count, mistake);
		else
			((int64_t *)t->out[0].data)[row] =
			    draw_wrongly(t, row, tokens, count, u, key, (enum mistake)mistake);
	}
	free(tokens);
}

static void a_correct_sampler_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&sampling_op, &problems[p], SEEDS, run, ways);
}

/* The mistakes, and for each one the problems in which it is a mistake. */
static const struct {
	enum mistake mistake;
	const char *name;
	int problems[8]; /* the problems in which this is a mistake; -1: the end */
} mistakes[] = {
    {GREEDY, "greedy for random", {PLAIN, BY_K, BY_P, BY_K_P, BY_MIN, SCALARS, SCALAR_P, -1}},
    {LEAST_LIKELY, "the boundary token, always", {PLAIN, BY_K, BY_P, BY_K_P, BY_MIN, SCALARS, SCALAR_P, -1}},
    {EVENLY, "drawn evenly from what is kept", {PLAIN, BY_K, BY_P, BY_K_P, BY_MIN, SCALAR_K, -1}},
    {NOT_FILTERED, "not filtered", {BY_K, BY_P, BY_K_P, BY_MIN, SCALARS, RENORM_K, RENORM_P, -1}},
    {ONE_K_LESS, "boundary token dropped by top-k", {BY_K, BY_K_P, SCALAR_K, RENORM_K, -1}},
    {ONE_K_MORE, "one token too many by top-k", {BY_K, BY_K_P, SCALARS, SCALAR_K, RENORM_K, -1}},
    {CROSSING_DROPPED, "crossing token dropped by top-p", {BY_P, BY_K_P, SCALARS, SCALAR_P, RENORM_P, -1}},
    {ONE_PAST_CROSSING, "one token too many by top-p", {BY_P, BY_K_P, SCALAR_P, RENORM_P, -1}},
    {P_DOUBLED, "p doubled", {BY_P, BY_K_P, SCALAR_P, RENORM_P, -1}},
    {P_AGAINST, "1 - p", {BY_P, BY_K_P, SCALAR_P, RENORM_P, -1}},
    {P_IGNORED, "p ignored", {BY_P, BY_K_P, SCALARS, SCALAR_P, RENORM_P, -1}},
    {K_IGNORED, "k ignored", {BY_K, BY_K_P, SCALARS, SCALAR_K, RENORM_K, -1}},
    {NOT_RENORMALISED, "p applied without renormalising after k", {BY_K_P, SCALARS, RENORM_K_P, -1}},
    {P_FIRST, "p applied before k", {BY_K_P, RENORM_K_P, -1}},
    {FIRST_ROW_FOR_ALL, "the first row's parameters for all", {BY_K, BY_P, BY_K_P, BY_MIN, RENORM_K, RENORM_P, -1}},
    {NOT_SORTED, "summed in the order of the vocabulary", {BY_P, BY_K_P, SCALAR_P, RENORM_P, -1}},
    {RANK_FOR_TOKEN, "the rank for the token", {PLAIN, BY_K, BY_P, BY_MIN, -1}},
    {TOKEN_OFF_BY_ONE, "the token after", {PLAIN, BY_K, BY_P, BY_MIN, -1}},
    {ONE_NUMBER_FOR_ALL, "one random number for all rows", {PLAIN, BY_K, BY_P, BY_K_P, BY_MIN, -1}},
    {ABSOLUTE_MIN_P, "min_p as an absolute probability", {BY_MIN, -1}},
    {SQUARED_MIN_P, "min_p squared", {BY_MIN, -1}},
    {MIN_P_OF_SUM, "min_p of the sum", {BY_MIN, -1}},
    {VALUES_NOT_RENORMALISED, "kept, not renormalised", {RENORM_K, RENORM_P, RENORM_K_P, -1}},
    {TWO_PERCENT_MORE, "2 % too large", {RENORM_K, RENORM_P, RENORM_K_P, -1}},
    {MASK_RETURNED, "a mask", {RENORM_K, RENORM_P, RENORM_K_P, -1}},
    {ALL_ZERO, "zeros", {PLAIN, BY_K, BY_P, BY_K_P, BY_MIN, RENORM_K, RENORM_P, -1}},
};

/* Opens the medium case with both sets of input values. */
static void open_both(struct trial first[CONTENTS_COUNT], const struct op_problem *problem, uint64_t seed)
{
	for (int i = 0; i < CONTENTS_COUNT; i++)
		assert_true(trial_open_size(&first[i], &sampling_op, problem, SIZE_MEDIUM, 0, seed));
	trial_take_second(&first[CONTENTS_SECOND]);
}

static void close_both(struct trial trials[CONTENTS_COUNT])
{
	for (int i = 0; i < CONTENTS_COUNT; i++)
		trial_close(&trials[i]);
}

/* Runs the sampler with `mistake` on both sets of input values of the case `first`, and judges its draws. Returns NULL
 * if the draws pass, else the message. */
static const char *fail_again_on_both(const struct trial first[CONTENTS_COUNT], enum mistake mistake, struct err *why)
{
	struct trial t[CONTENTS_COUNT];
	struct metrics metrics;
	const struct op_case *const cases[] = {&t[0].c, &t[1].c};
	double evidence[CONTENTS_COUNT][OP_EVIDENCE];
	const double *const both[] = {evidence[0], evidence[1]};
	bool passed = true;

	for (int i = 0; i < CONTENTS_COUNT; i++) {
		trial_open_again(&t[i], &first[i]);
		run(&t[i], (int)mistake);
		passed = passed && trial_judge_for_both(&t[i], 0, &metrics, evidence[i], why);
	}
	const struct tensor *const outputs[] = {t[0].out, t[1].out};

	passed = passed && sampling_op.judge_both(cases, 0, outputs, both, why) == 0;
	close_both(t);
	return passed ? NULL : why->text;
}

static const char *fail_on_both(const struct op_problem *problem, uint64_t seed, enum mistake mistake, struct err *why)
{
	struct trial first[CONTENTS_COUNT];

	open_both(first, problem, seed);
	const char *said = fail_again_on_both(first, mistake, why);

	close_both(first);
	return said;
}

/* Each of two sets of draws deviates less than a correct sampler may, but both together deviate more. */
static void a_deviation_that_only_both_sets_show_fails(void **state)
{
	struct draws draws = {.tallies = {{.rows = 100, .observed = {80, 20}, .expected = {50, 50}}}};
	double evidence[CONTENTS_COUNT][OP_EVIDENCE] = {{0}};
	const double *const both[] = {evidence[0], evidence[1]};
	struct trial trials[CONTENTS_COUNT];
	const struct op_case *const cases[] = {&trials[0].c, &trials[1].c};
	struct err why = {""};

	(void)state;
	open_both(trials, &problems[BY_K], 1);
	trials[0].c.given = 1; /* as if a workload provided input 0; then the samples themselves are not compared */
	const struct tensor *const outputs[] = {trials[0].out, trials[1].out};

	assert_true(draws_judge(&draws, NULL).margin < 1);
	memcpy(evidence[0], &draws, sizeof draws);
	assert_int_equal(sampling_op.judge_both(cases, 0, outputs, both, &why), 0);
	memcpy(evidence[1], &draws, sizeof draws);
	assert_int_equal(sampling_op.judge_both(cases, 0, outputs, both, &why), -1);
	assert_non_null(strstr(why.text, "of 200 rows"));
	close_both(trials);
}

static bool is_mistake_in(int m, int problem)
{
	for (const int *p = mistakes[m].problems; *p >= 0; p++)
		if (*p == problem)
			return true;
	return false;
}

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		for (uint64_t seed = 1; seed <= SEEDS_OR_ONE(3); seed++) {
			struct trial first[CONTENTS_COUNT];

			open_both(first, &problems[p], seed);
			for (int m = 0; m < COUNT(mistakes); m += MISTAKE_STEP) {
				struct err why = {""};

				if (is_mistake_in(m, p) && fail_again_on_both(first, mistakes[m].mistake, &why) == NULL)
					fail_msg("%s: '%s' passes with seed %llu", problems[p].name, mistakes[m].name,
					         (unsigned long long)seed);
			}
			close_both(first);
		}
}

static const struct op_axis wide_axes[] = {{"batch_size", true, 0}, {"vocab_size", false, 32000}};
static const struct op_problem wide_plain = PROBLEM("sampling_from_probs_wide", "sampling", wide_axes, plain, samples);

static void what_one_set_of_draws_cannot_tell_both_contents_do(void **state)
{
	static const struct {
		enum mistake mistake;
		const struct op_problem *problem;
		const char *parts[2]; /* the message contains one of them; the second may be NULL */
	} wrong[] = {
	    {UNIFORM_RACE, &problems[BY_MIN], {"uniform noise"}},
	    {P_FOR_SUM, &problems[BY_P], {"the rest of top_p"}},
	    {TWELVE_BITS, &wide_plain, {"random numbers have too few bits", "random numbers of only 12 bits"}},
	    {LIKELY_HALF, &problems[BY_K], {"only from the more likely half"}},
	    {LIKELY_HALF, &problems[BY_P], {"only from the more likely half"}},
	    {LIKELY_HALF, &problems[BY_MIN], {"only from the more likely half"}},
	    {FIRST_HALF, &problems[BY_K], {"only from the half of the kept tokens with the smaller indices"}},
	    {SECOND_HALF, &problems[BY_K], {"only from the half of the kept tokens with the larger indices"}},
	    {NO_LAST_OF_MANY, &problems[BY_K], {"the least likely kept token when three or more"}},
	    {NO_LAST_OF_MANY, &problems[BY_P], {"the least likely kept token when three or more"}},
	    {RATIO_NOT_REACHED, &problems[BY_MIN], {"several tokens share the lowest kept probability"}},
	    {OWN_GENERATOR, &problems[PLAIN], {"the same with a different seed"}},
	    {OWN_GENERATOR, &problems[BY_K], {"the same with a different seed"}},
	    {OWN_GENERATOR, &problems[BY_P], {"the same with a different seed"}},
	    {OWN_GENERATOR, &problems[BY_K_P], {"the same with a different seed"}},
	    {OWN_GENERATOR, &problems[BY_MIN], {"the same with a different seed"}},
	};

	(void)state;
	for (int i = 0; i < COUNT(wrong); i++)
		for (uint64_t seed = 1; seed <= SEEDS_OR_ONE(3); seed++) {
			struct err why = {""};
			const char *said = fail_on_both(wrong[i].problem, seed, wrong[i].mistake, &why);

			const char *const *parts = wrong[i].parts;
			bool named = said != NULL && (strstr(said, parts[0]) != NULL ||
						      (parts[1] != NULL && strstr(said, parts[1]) != NULL));

			if (!named)
				fail_msg("%s, '%s', seed %llu: %s", wrong[i].problem->name, parts[0],
				         (unsigned long long)seed, said == NULL ? "it passes" : said);
		}
}

/* Each of these wrong samplers never draws some of the kept tokens. The draws on both sets of input values together
 * must reveal the sampler. */
static void a_part_of_what_is_kept_that_is_never_drawn_shows(void **state)
{
	(void)state;
	for (int p = BY_K; p <= BY_MIN; p++)
		for (uint64_t seed = 1; seed <= SEEDS_OR_ONE(3); seed++) {
			struct trial first[CONTENTS_COUNT];

			open_both(first, &problems[p], seed);
			for (int mistake = LIKELY_HALF; mistake <= UPPER_TOKENS; mistake += MISTAKE_STEP) {
				struct err why = {""};

				if (mistake != NO_LAST_OF_MANY &&
				    fail_again_on_both(first, (enum mistake)mistake, &why) == NULL)
					fail_msg("%s: mistake %d passes with seed %llu", problems[p].name, mistake,
					         (unsigned long long)seed);
			}
			close_both(first);
		}
}

static void a_wrong_sample_is_reported_with_its_row_token_and_probability(void **state)
{
	struct metrics metrics;
	struct trial t;
	struct err why;

	(void)state;
	assert_true(trial_open_size(&t, &sampling_op, &problems[BY_K], SIZE_MEDIUM, 0, 3));
	run(&t, NONE);
	((int64_t *)t.out[0].data)[41] = VOCAB;
	assert_false(trial_judge(&t, 0, &metrics, &why));
	assert_non_null(strstr(why.text, "row 41 drew token 500, which is not in the vocabulary of 500"));
	assert_int_equal(metrics.hits, 255);
	assert_int_equal(metrics.worst[0].index, 41);
	((int64_t *)t.out[0].data)[41] = INT64_MIN;
	assert_false(trial_judge(&t, 0, &metrics, &why));
	run(&t, ONE_K_MORE);
	assert_false(trial_judge(&t, 0, &metrics, &why));
	assert_non_null(strstr(why.text, "but the filter keeps only"));
	run(&t, GREEDY);
	assert_false(trial_judge(&t, 0, &metrics, &why));
	assert_non_null(strstr(why.text, "drew the most likely token"));
	trial_close(&t);
}

static struct filter_bounds bounds_of(const struct trial *t, int64_t row)
{
	struct sampling_roles roles = sampling_roles_of(t->problem);

	return (struct filter_bounds){roles.top_k >= 0,
	                              roles.top_p >= 0,
	                              roles.min_p >= 0,
	                              (int64_t)parameter(t, roles.top_k, row, NONE),
	                              parameter(t, roles.top_p, row, NONE),
	                              parameter(t, roles.min_p, row, NONE)};
}

static void look_at_rows(const struct op_problem *problem, int64_t vocab, enum op_contents contents)
{
	struct sampling_roles roles = sampling_roles_of(problem);
	struct filter filter;
	struct trial t;
	int wide = 0, broad = 0, tied = 0;

	assert_true(trial_open_size(&t, &sampling_op, problem, SIZE_MEDIUM, 0, 11));
	op_case_set_contents(&t.c, 11, contents);
	for (int i = 0; i < problem->input_count; i++)
		if (t.in[i].rank == OP_SCALAR)
			t.c.scalar[i] = sampling_op.scalar(&t.c, i);
		else
			assert_int_equal(sampling_op.fill(&t.c, i, &t.in[i], NULL), 0);
	assert_int_equal(filter_open(&filter, vocab, NULL), 0);
	for (int64_t row = 0; row < t.in[0].shape[0]; row++) {
		struct filter_bounds bounds = bounds_of(&t, row);
		double sum = 0;

		if (row % 64 == 63 && t.in[problem->input_count - 1].rank != OP_SCALAR)
			assert_memory_equal((float *)t.in[0].data + row * vocab, (float *)t.in[0].data + (row - 16) * vocab,
			                    (size_t)vocab * sizeof(float));
		dtype_load_run(t.in[0].data, DTYPE_FLOAT32, row * vocab, vocab, filter.value);
		for (int64_t v = 0; v < vocab; v++)
			sum += filter.value[v];
		/* the probabilities of a row sum to 1, because the few tokens of this vocabulary share the probability
		 * that the rare tokens of a real vocabulary would have */
		assert_true(fabs(sum - 1) < 4e-6);
		struct filter_kept kept = filter_row(&filter, &bounds);

		assert_true(kept.defined);
		assert_int_equal(filter_most_likely(&filter), filter.order[0]);
		broad += kept.count > FILTER_DEEP && kept.count < SAMPLING_EVENLY;
		if (kept.count > FILTER_DEEP && kept.slack > 0) { /* a broad row */
			assert_true(kept.slack < 1e-3 && roles.top_p >= 0);
			continue;
		}
		if (kept.slack != 0)
			fail_msg("%s, vocabulary of %lld, contents %d, row %lld: slack %g", problem->name, (long long)vocab, contents,
			         (long long)row, kept.slack);
		assert_true(kept.least == kept.threshold);
		wide += kept.count > FILTER_ORDERED && kept.count < SAMPLING_WIDER;
		tied += filter.ordered > 1 && filter.value[filter.order[0]] > 1.0 / SAMPLING_EVENLY &&
			filter.value[filter.order[0]] == filter.value[filter.order[1]];
	}
	if (vocab < SAMPLING_EVENLY || t.c.variant != 0) /* with a large vocabulary and no filter, no row is flat in the
							  * blocks in which tokens of flat rows tie */
		assert_true(contents == CONTENTS_FIRST ? tied == 0 : tied > 0);
	if (vocab >= 2 * SAMPLING_WIDTH && t.in[problem->input_count - 1].rank != OP_SCALAR && t.c.variant != 0)
		assert_true(wide >= (vocab < SAMPLING_EVENLY ? 18 : 9));
	if (vocab >= SAMPLING_EVENLY && t.in[problem->input_count - 1].rank != OP_SCALAR &&
	    (t.c.variant & (SAMPLING_TOP_K | SAMPLING_TOP_P)))
		assert_true(broad >= 12);
	filter_close(&filter);
	trial_close(&t);
}

static void rows_are_distributions_and_parameters_lie_away_from_every_boundary(void **state)
{
	static const struct op_axis larger[][2] = {{{"batch_size", true, 0}, {"vocab_size", false, 8192}},
	                                           {{"batch_size", true, 0}, {"vocab_size", false, 16384}}};

	(void)state;
	for (int p = 0; p < RENORM_K; p++)
		for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
			struct op_problem problem = problems[p];

			look_at_rows(&problem, VOCAB, (enum op_contents)contents);
			for (int i = 0; i < 2; i++) {
				problem.axes = larger[i];
				look_at_rows(&problem, larger[i][1].value, (enum op_contents)contents);
			}
		}
}

static struct filter_kept keeps(const double *values, int count, struct filter_bounds bounds)
{
	struct filter filter;

	assert_int_equal(filter_open(&filter, count, NULL), 0);
	memcpy(filter.value, values, (size_t)count * sizeof *values);
	struct filter_kept kept = filter_row(&filter, &bounds);

	filter_close(&filter);
	return kept;
}

/* Checks the functions that examine a row without sorting it. Also tries row lengths that are no multiple of the length
 * of a SIMD vector. */
static void rows_are_seen_without_sorting_as_they_are_sorted(void **state)
{
	enum { COUNT = 37 };
	static const double odd[] = {NAN, INFINITY, -0.5};
	double values[COUNT];
	struct filter filter = {.vocab = COUNT, .value = values};

	(void)state;
	for (int at = 0; at < COUNT; at++) {
		for (int v = 0; v < COUNT; v++)
			values[v] = v == at || v == COUNT - 1 ? 0.4 : v % 3 == 0 ? 0 : 0.1;
		assert_int_equal(filter_most_likely(&filter), at);
		for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
			values[at] = odd[i];
			assert_false(keeps(values, COUNT, (struct filter_bounds){.has_top_k = false}).defined);
			assert_int_equal(filter_most_likely(&filter), 0);
		}
	}
	memset(values, 0, sizeof values);
	assert_false(keeps(values, COUNT, (struct filter_bounds){.has_top_k = false}).defined);
	assert_int_equal(filter_most_likely(&filter), 0);
}

static void filters_keep_what_their_head_says(void **state)
{
	static const double row[] = {0.1, 0.4, 0, 0.3, 0.2}, ties[] = {0.2, 0.3, 0.2, 0.2, 0.1};

	(void)state;
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_k = true, .top_k = 2}).count, 2);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_k = true, .top_k = 0}).count, 4);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_k = true, .top_k = 9}).count, 4);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_p = true, .top_p = 0.5}).count, 2);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_p = true, .top_p = 0.75}).count, 3);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_p = true, .top_p = 0}).count, 1);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_top_p = true, .top_p = 1}).count, 4);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){true, true, false, 2, 0.5, 0}).count, 1);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){true, true, false, 2, 0.6, 0}).count, 2);
	assert_int_equal(keeps(row, 5, (struct filter_bounds){.has_min_p = true, .min_p = 0.6}).count, 2);
	/* Three tokens with the same probability compete for the last two places of the top 3. All three are kept, and
	 * `slack` bounds the error that this causes. */
	struct filter_kept kept = keeps(ties, 5, (struct filter_bounds){.has_top_k = true, .top_k = 3});

	assert_int_equal(kept.count, 4);
	assert_true(kept.least == 0.2);
	assert_true(fabs(kept.slack - (1 - 0.3 / 0.9)) < 1e-12);
	/* p nearly equals a sum of probabilities, so a correct sampler may keep or drop the next token. */
	kept = keeps(row, 5, (struct filter_bounds){.has_top_p = true, .top_p = 0.39999});
	assert_int_equal(kept.count, 1);
	assert_true(kept.least == 0.3);
	assert_true(fabs(kept.slack - 0.3 / 0.7) < 1e-12);
}

static void a_row_that_is_no_distribution_accepts_any_token_of_the_vocabulary(void **state)
{
	static const float wrong[] = {(float)NAN, -0.5f, (float)INFINITY};
	struct trial t;

	(void)state;
	for (int i = 0; i < COUNT(wrong); i++) {
		assert_true(trial_open_size(&t, &sampling_op, &problems[BY_K_P], SIZE_SMALL, 0, 5));
		((float *)t.in[0].data)[17] = wrong[i];
		((int64_t *)t.out[0].data)[0] = VOCAB - 1;
		assert_true(trial_passes(&t));
		((int64_t *)t.out[0].data)[0] = -1;
		assert_false(trial_passes(&t));
		assert_int_equal(sampling_op.oracle(&t.c, t.in, t.truth, NULL), 0);
		trial_close(&t);
	}
}

/* Over many cases, a correct sampler's margin (its statistic divided by the threshold of draw_statistics.h) stays well
 * below 1. */
static void the_margin_of_a_correct_sampler_stays_below_one_over_many_seeds(void **state)
{
	double largest = 0;

	(void)state;
	for (uint64_t seed = 100; seed < 200; seed++) {
		struct metrics metrics;
		struct trial t;
		struct err why;
		const int64_t axis[] = {320, 128};
		static const struct op_axis small_axes[] = {{"batch_size", true, 0}, {"vocab_size", true, 0}};
		static const struct op_problem problem = PROBLEM("top_k", "sampling", small_axes, by_k, samples);

		trial_open(&t, &sampling_op, &problem, axis, seed);
		run(&t, NONE);
		assert_true(trial_judge(&t, 0, &metrics, &why));
		largest = fmax(largest, metrics.margin);
		trial_close(&t);
	}
	assert_true(largest > 0.15); /* a margin near 0 would mean that the check finds nothing */
	assert_true(largest < 0.8);
}

static void the_real_vocabulary_passes_too(void **state)
{
	static const struct op_problem real = PROBLEM("top_k_top_p", "sampling", real_axes, by_k_p, samples);
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &sampling_op, &real, SIZE_SMALL, 1, 1));
	run(&t, NONE);
	trial_assert_passes(&t);
	trial_close(&t);
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg logits[] = {{"logits", DTYPE_FLOAT32, 2, {0, 1}, false, NULL}};
	static const struct op_arg indices[] = {PROBS, {"indices", DTYPE_INT32, 1, {0}, false, NULL}};
	static const struct op_arg both[] = {PROBS, MIN_P, TOP_P};
	static const struct op_arg flat[] = {TOP_K};
	static const struct op_axis few[] = {{"batch_size", true, 0}, {"vocab_size", false, 4}};
	static const struct op_arg wide[] = {{"samples", DTYPE_INT64, 2, {0, 1}, false, NULL}};
	const struct op_problem cases[] = {
	    PROBLEM("a", "sampling", axes, logits, samples), PROBLEM("b", "sampling", axes, indices, samples),
	    PROBLEM("c", "sampling", axes, both, samples),   PROBLEM("d", "sampling", axes, flat, samples),
	    PROBLEM("e", "sampling", few, plain, samples),   PROBLEM("f", "sampling", axes, plain, wide),
	    PROBLEM("g", "sampling", axes, plain, filtered),
	};
	static const char *const parts[] = {"logits",     "indices", "no convention says which of these filters is "
								     "applied first", "[rows, vocabulary]",
	                                    "must have at least", "neither", "neither"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&sampling_op, &cases[i], parts[i]);
}

static void the_same_seed_gives_the_same_inputs(void **state)
{
	(void)state;
	assert_inputs_follow_the_seed(&sampling_op, &problems[BY_K_P], SIZE_MEDIUM);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {4, 6, 5, 7, 5, 7, 5, 6, 5, 4, 6};

	(void)state;
	assert_int_equal(COUNT(edges), COUNT(problems));
	assert_all_edges_pass(&sampling_op, problems, edges, COUNT(edges), right);
}

/* Returns how many tokens of the row have the largest probability. */
static int most_likely(const struct tensor *probs, int64_t row)
{
	const float *p = (const float *)probs->data + row * probs->shape[1];
	float most = 0;
	int count = 0;

	for (int64_t v = 0; v < probs->shape[1]; v++) {
		count = p[v] > most ? 1 : count + (p[v] == most);
		most = p[v] > most ? p[v] : most;
	}
	return count;
}

/* If two tokens tie for the largest probability, a top-p of 0 does not determine the kept token. Therefore rows with a
 * top-p of 0 have one most likely token. */
static void rows_with_a_top_p_of_0_have_one_most_likely_token(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++)
		for (int contents = 0; contents < CONTENTS_COUNT; contents++) {
			struct trial t;
			int rows = 0;

			assert_true(trial_open_edge(&t, &sampling_op, &problems[RENORM_P], "open_top_p", seed));
			if (contents == CONTENTS_SECOND)
				trial_take_second(&t);
			for (int64_t row = 0; row < t.in[0].shape[0]; row++)
				if (((const float *)t.in[1].data)[row] == 0) {
					assert_int_equal(most_likely(&t.in[0], row), 1);
					rows++;
				}
			assert_true(rows > 50);
			trial_close(&t);
		}
}

static void what_is_wrong_only_at_the_edge_fails_there(void **state)
{
	static const struct edge_mistake wrong[] = {
	    {NO_K_FOR_ONE, "open_top_k", BY_K},
	    {NO_K_FOR_ONE, "open_top_k", SCALARS},
	    {LARGE_K_FOR_ONE, "large_top_k", BY_K_P},
	    {NO_K_FOR_ONE, "open_top_k", RENORM_K},
	    {NO_P_FOR_ALL, "open_top_p", BY_P},
	    {NO_P_FOR_ALL, "open_top_p", SCALAR_P},
	    {NO_P_FOR_ALL, "open_top_p", RENORM_P},
	};

	(void)state;
	assert_each_wrong_there_alone(&sampling_op, problems, run, wrong, COUNT(wrong));
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&sampling_op, &problems[BY_K_P], 0, 17, (double)NAN,
		       "input 'probs' holds NaN at [0, 17]; a row with this element is not a distribution");
	assert_brought(&sampling_op, &problems[BY_K_P], 0, 517, -0.5, "holds the negative probability -0.5 at [1, 17]");
	assert_brought(&sampling_op, &problems[BY_K_P], 0, -1, (double)INFINITY, "a row with this element is not a distribution");
	assert_brought(&sampling_op, &problems[BY_K_P], 1, 0, 0, NULL);
	assert_brought(&sampling_op, &problems[BY_K_P], 1, 3, -3, NULL);
	assert_brought(&sampling_op, &problems[BY_K_P], 1, 3, VOCAB + 1, NULL);
	assert_brought(&sampling_op, &problems[BY_K_P], 1, 3, INT32_MAX, NULL);
	assert_brought(&sampling_op, &problems[BY_K_P], 2, 0, (double)NAN, "a top-p must be a number");
	assert_brought(&sampling_op, &problems[BY_K_P], 2, 0, -1, NULL);
	assert_brought(&sampling_op, &problems[BY_K_P], 2, 0, (double)INFINITY, NULL);
	assert_brought(&sampling_op, &problems[BY_MIN], 1, 0, 2, NULL);
	assert_brought(&sampling_op, &problems[BY_MIN], 1, 0, -1, NULL);
	assert_brought(&sampling_op, &problems[BY_MIN], 1, 0, (double)NAN, "a min-p must be a number");
}

static void a_row_of_zeros_that_a_workload_provides_is_reported(void **state)
{
	struct err why = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &sampling_op, &problems[PLAIN], SIZE_MEDIUM, 0, 1));
	t.c.given = 1;
	memset((float *)t.in[0].data + 9 * VOCAB, 0, VOCAB * sizeof(float));
	assert_int_equal(sampling_op.check(&t.c, t.in, &why), -1);
	assert_non_null(strstr(why.text, "input 'probs' is 0 in all of row 9"));
	trial_close(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_correct_sampler_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(a_deviation_that_only_both_sets_show_fails),
	    cmocka_unit_test(what_one_set_of_draws_cannot_tell_both_contents_do),
	    cmocka_unit_test(a_part_of_what_is_kept_that_is_never_drawn_shows),
	    cmocka_unit_test(a_wrong_sample_is_reported_with_its_row_token_and_probability),
	    cmocka_unit_test(rows_are_distributions_and_parameters_lie_away_from_every_boundary),
	    cmocka_unit_test(filters_keep_what_their_head_says),
	    cmocka_unit_test(rows_are_seen_without_sorting_as_they_are_sorted),
	    cmocka_unit_test(a_row_that_is_no_distribution_accepts_any_token_of_the_vocabulary),
	    cmocka_unit_test(the_margin_of_a_correct_sampler_stays_below_one_over_many_seeds),
	    cmocka_unit_test(the_real_vocabulary_passes_too),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(the_same_seed_gives_the_same_inputs),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(rows_with_a_top_p_of_0_have_one_most_likely_token),
	    cmocka_unit_test(what_is_wrong_only_at_the_edge_fails_there),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	    cmocka_unit_test(a_row_of_zeros_that_a_workload_provides_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
