/* attention_world - what the tests of the attention families share: problems built in a few lines, cases with all their
 * tensors, and a float32 emulation of a torch reference into which the mistakes are planted that people make.
 *
 * The emulation finds keys as a reference does, from the index tensors, and shares no code with the oracle. */
#ifndef REFTEST_TESTS_ATTENTION_WORLD_H
#define REFTEST_TESTS_ATTENTION_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention.h"
#include "kernels/attention_inputs.h"
#include "kernels/compare.h"
#include "kernels/number.h"
#include "kernels/op.h"

/* --- problems ----------------------------------------------------------------------------------------------------- */

enum { MAX_AXES = 16, MAX_INPUTS = 12, MAX_ROWS = 8 };

struct built {
	struct op_axis axes[MAX_AXES];
	struct op_arg inputs[MAX_INPUTS], outputs[2];
	const char *tags[2];
	struct op_problem problem;
};

static inline void start_problem(struct built *b, const char *name, const char *op_type)
{
	memset(b, 0, sizeof *b);
	b->problem = (struct op_problem){.name = name,
	                                 .op_type = op_type,
	                                 .description = "",
	                                 .tags = b->tags,
	                                 .axes = b->axes,
	                                 .inputs = b->inputs,
	                                 .outputs = b->outputs};
}

/* value 0: a var axis. */
static inline int add_axis(struct built *b, const char *name, int64_t value)
{
	b->axes[b->problem.axis_count] = (struct op_axis){name, value == 0, value};
	return b->problem.axis_count++;
}

/* `shape`: axis names with blanks between; NULL: a Python scalar. */
static inline struct op_arg make_arg(const struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	struct op_arg arg = {.name = name, .dtype = dtype, .rank = shape == NULL ? OP_SCALAR : 0};

	while (shape != NULL && *shape != '\0') {
		size_t length = strcspn(shape, " ");
		int axis = -1;

		for (int a = 0; a < b->problem.axis_count; a++)
			if (strlen(b->axes[a].name) == length && strncmp(b->axes[a].name, shape, length) == 0)
				axis = a;
		assert_true(axis >= 0);
		arg.axis[arg.rank++] = axis;
		shape += length + (shape[length] == ' ');
	}
	return arg;
}

static inline void add_input(struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	b->inputs[b->problem.input_count++] = make_arg(b, name, dtype, shape);
}

static inline void add_output(struct built *b, const char *name, enum dtype dtype, const char *shape)
{
	b->outputs[b->problem.output_count++] = make_arg(b, name, dtype, shape);
}

static inline int input_named(const struct op_problem *problem, const char *name)
{
	int index = op_input_index(problem, name);

	assert_true(index >= 0);
	return index;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

struct world {
	struct op_case c;
	int64_t axis[MAX_AXES];
	struct tensor in[MAX_INPUTS], truth[2], answer[2];
	const struct op *op;
};

static inline struct tensor make_tensor(const struct op_case *c, const struct op_arg *arg)
{
	struct tensor t = {.dtype = arg->dtype, .rank = arg->rank, .elements = 1};

	for (int d = 0; d < arg->rank; d++)
		t.elements *= t.shape[d] = c->axis[arg->axis[d]];
	t.data = malloc((size_t)dtype_bytes(t.dtype, t.elements) + 1);
	assert_non_null(t.data);
	memset(t.data, 0xff, (size_t)dtype_bytes(t.dtype, t.elements));
	return t;
}

/* Inputs and room for outputs; no truth yet. */
static inline void make_inputs(struct world *w, const struct op *op, const struct op_problem *problem,
                               const int64_t *axis, uint64_t seed, uint32_t given, int edge)
{
	struct err err = {""};

	memset(w, 0, sizeof *w);
	w->op = op;
	w->c.problem = problem;
	w->c.axis = w->axis;
	w->c.seed = seed;
	w->c.given = given;
	w->c.edge = edge;
	memcpy(w->axis, axis, (size_t)problem->axis_count * sizeof *axis);
	w->c.variant = op->match(problem, &err);
	assert_string_equal(err.text, "");
	for (int i = 0; i < problem->input_count; i++)
		if (problem->inputs[i].rank == OP_SCALAR)
			w->c.scalar[i] = op->scalar(&w->c, i);
	for (int i = 0; i < problem->input_count; i++) {
		if (problem->inputs[i].rank == OP_SCALAR)
			continue;
		w->in[i] = make_tensor(&w->c, &problem->inputs[i]);
		assert_int_equal(op->fill(&w->c, i, &w->in[i], &err), 0);
	}
	for (int i = 0; i < problem->output_count; i++) {
		w->truth[i] = make_tensor(&w->c, &problem->outputs[i]);
		w->answer[i] = make_tensor(&w->c, &problem->outputs[i]);
	}
}

static inline void make_world(struct world *w, const struct op *op, const struct op_problem *problem,
                              const int64_t *axis, uint64_t seed)
{
	struct err err = {""};

	make_inputs(w, op, problem, axis, seed, 0, 0);
	assert_int_equal(op->check(&w->c, w->in, &err), 0);
	assert_int_equal(op->oracle(&w->c, w->in, w->truth, &err), 0);
}

static inline void free_world(struct world *w)
{
	for (int i = 0; i < MAX_INPUTS; i++)
		free(w->in[i].data);
	for (int i = 0; i < 2; i++) {
		free(w->truth[i].data);
		free(w->answer[i].data);
	}
}

static inline int rows_of(const struct op *op, const struct op_problem *problem, enum op_size size, int64_t *axis)
{
	struct err err = {""};
	int variant = op->match(problem, &err), rows;

	assert_string_equal(err.text, "");
	rows = op->sizes(problem, variant, size, axis, MAX_ROWS);
	assert_in_range(rows, 1, MAX_ROWS);
	return rows;
}

/* Does the answer pass? As the judge decides: by op.judge, else by the element rule, for every output. */
static inline bool passes(const struct world *w, const char *what)
{
	bool passed = true;

	for (int i = 0; i < w->c.problem->output_count; i++) {
		struct rule rule = w->op->rule(&w->c, i);
		struct metrics metrics = {0};
		struct err why = {""};
		int judged = 0;

		if (w->op->judge != NULL)
			judged = w->op->judge(&w->c, i, w->in, &w->answer[i], &w->truth[i], &metrics, &why);
		assert_true(judged >= 0);
		if (judged == 0)
			compare_host(w->answer[i].data, w->truth[i].data, w->answer[i].dtype, w->answer[i].elements,
			             rule, &metrics);
		else
			assert_true(metrics.passed == (why.text[0] == '\0'));
		if (what != NULL && !metrics.passed)
			print_message("%s: seed %llu, output %d: margin %g, worst %g for %g at %lld %s\n", what,
			              (unsigned long long)w->c.seed, i, metrics.margin, metrics.worst[0].reference,
			              metrics.worst[0].ground_truth, (long long)metrics.worst[0].index, why.text);
		assert_false(metrics.zeros_would_pass);
		passed = passed && metrics.passed;
	}
	return passed;
}

/* --- references, right and wrong ---------------------------------------------------------------------------------- */

enum mistake {
	NONE,
	SCALE_TWO_PERCENT,
	OUTPUT_TWO_PERCENT,
	NATURAL_LSE,
	LSE_OF_UNSCALED_LOGITS,
	MAXIMUM_NOT_SUBTRACTED,
	WEIGHTS_NOT_NORMALISED,
	FIRST_KEY_LEFT_OUT,
	LAST_KEY_LEFT_OUT,
	KEYS_IN_FP8,
	VALUES_IN_FP8,
	VALUES_OF_NEXT_KEY,
	ZEROS,
	NOT_A_NUMBER,
	EMPTY_HAS_LSE_ZERO,
	EMPTY_IS_NOT_A_NUMBER,
	LAST_QUERY_NOT_WRITTEN,
	OF_ALL, /* mistakes in any attention; what follows needs something */
	HEADS_TILED,
	KEYS_FOR_VALUES,
	MASK_LEFT_OUT,
	MASK_ALIGNED_AT_START,
	MASK_ONE_LATE,
	MASK_ONE_EARLY,
	CHUNKS_FORGET_THEIR_START,
	TABLE_IGNORED,
	SEQUENCE_START_IGNORED,
	PLACE_IN_PAGE_IGNORED,
	LAST_PAGE_TAKEN_AS_FULL,
	LAST_PAGE_ONE_SHORT,
	LAST_PAGE_ALONE,
	ROTARY_PART_LEFT_OUT,
	ROTARY_PART_NOT_SCALED,
	SCALE_OF_THE_LATENT,
	PADDING_IS_A_ROW,
	PADDING_ENDS_THE_ROW,
	LAST_PLACE_NOT_LOOKED_AT,
	ROWS_ARE_PAGES,
	MISTAKES
};

static const char *const mistake_names[MISTAKES] = {
    "none",
    "scale two percent off",
    "output two percent off",
    "natural lse",
    "lse of unscaled logits",
    "maximum not subtracted",
    "weights not normalised",
    "first key left out",
    "last key left out",
    "keys in fp8",
    "values in fp8",
    "values of the next key",
    "zeros",
    "not a number",
    "empty sequences have lse zero",
    "empty sequences are not a number",
    "last query not written",
    "",
    "heads tiled",
    "keys for values",
    "mask left out",
    "mask aligned at the start",
    "mask one late",
    "mask one early",
    "chunks forget their start",
    "table ignored",
    "sequence start ignored",
    "place in page ignored",
    "last page taken as full",
    "last page one short",
    "last page alone",
    "rotary part left out",
    "rotary part not scaled",
    "scale of the latent",
    "padding is a row",
    "padding ends the row",
    "last place not looked at",
    "rows are pages",
};

/* The rows of one query's keys, as the reference finds them. */
struct found {
	int64_t *row;
	int64_t count;
};

/* What a reference works with: the floats of all tensors. */
struct emulation {
	struct attention_view v;
	enum mistake mistake;
	float *query[ATTENTION_PARTS], *key[ATTENTION_PARTS], *value;
};

/* All elements as floats, from malloc; by way of e4m3 if `narrow`. */
static inline float *floats_of(const struct tensor *tensor, bool narrow)
{
	float *out = calloc((size_t)tensor->elements + 1, sizeof *out);

	assert_non_null(out);
	for (int64_t i = 0; i < tensor->elements; i++) {
		float value = (float)number_get(tensor->data, tensor->dtype, i);

		out[i] = narrow ? float_from_e4m3(e4m3_from_float(value)) : value;
	}
	return out;
}

/* A reference reads beyond its tensors only in ways that torch allows: negative indices count from the end. What torch
 * would refuse ends the emulation: the mistake is caught. */
static inline bool readable(const struct attention_view *v, int64_t *row)
{
	if (*row < 0)
		*row += v->extent.rows;
	return *row >= 0 && *row < v->extent.rows;
}

static inline int64_t emulate_length(const struct attention_view *v, int64_t b, int64_t pages, enum mistake mistake)
{
	int64_t size = v->extent.page_size, last = size;

	if (pages <= 0)
		return 0;
	if (v->last_page_len.data != NULL && mistake != LAST_PAGE_TAKEN_AS_FULL)
		last = attention_integer(&v->last_page_len, b);
	if (mistake == LAST_PAGE_ONE_SHORT)
		last--;
	return (mistake == LAST_PAGE_ALONE ? 0 : (pages - 1) * size) + last;
}

static inline int64_t emulate_row(const struct attention_view *v, int64_t b, int64_t j, enum mistake mistake)
{
	int64_t start = mistake == SEQUENCE_START_IGNORED ? 0 : attention_integer(&v->kv_indptr, b);
	int64_t size = v->extent.page_size, entry = start + j / size;
	int64_t page =
	    v->kv_indices.data == NULL || mistake == TABLE_IGNORED ? entry : attention_integer(&v->kv_indices, entry);

	return page * size + (mistake == PLACE_IN_PAGE_IGNORED ? 0 : j % size);
}

/* Keys of sequence b; false: torch would have raised. */
static inline bool find_keys(const struct attention_view *v, int64_t b, enum mistake mistake, struct found *found)
{
	int64_t pages = attention_integer(&v->kv_indptr, b + 1) - attention_integer(&v->kv_indptr, b);

	found->count = emulate_length(v, b, pages, mistake);
	found->row = calloc((size_t)found->count + 1, sizeof *found->row);
	assert_non_null(found->row);
	for (int64_t j = 0; j < found->count; j++) {
		found->row[j] = emulate_row(v, b, j, mistake);
		if (!readable(v, &found->row[j]))
			return false;
	}
	return true;
}

static inline bool find_rows(const struct attention_view *v, int64_t t, enum mistake mistake, struct found *found)
{
	int64_t most = v->extent.entries;

	found->count = 0;
	found->row = calloc((size_t)most + 1, sizeof *found->row);
	assert_non_null(found->row);
	for (int64_t j = 0; j < most - (mistake == LAST_PLACE_NOT_LOOKED_AT); j++) {
		int64_t row = attention_integer(&v->sparse, t * most + j);

		if (row == -1 && mistake == PADDING_ENDS_THE_ROW)
			break;
		if (row == -1 && mistake != PADDING_IS_A_ROW)
			continue;
		if (mistake == ROWS_ARE_PAGES)
			row *= v->extent.page_size;
		if (!readable(v, &row))
			return false;
		found->row[found->count++] = row;
	}
	return true;
}

static inline float emulate_logit(const struct emulation *m, int64_t t, int64_t h, int64_t row, float scale)
{
	const struct attention_extent *e = &m->v.extent;
	int64_t kv_head = m->mistake == HEADS_TILED ? h % e->kv_heads : h / (e->heads / e->kv_heads);
	float logit = 0;

	for (int p = 0; p < ATTENTION_PARTS; p++) {
		const float *query = m->query[p] + (t * e->heads + h) * e->dim[p];
		const float *key = m->key[p] + (row * e->kv_heads + kv_head) * e->dim[p];
		float sum = 0;

		if (p == 1 && m->mistake == ROTARY_PART_LEFT_OUT)
			break;
		for (int64_t d = 0; d < e->dim[p]; d++)
			sum += query[d] * key[d];
		logit += p == 1 && m->mistake == ROTARY_PART_NOT_SCALED ? sum : sum * scale;
	}
	return logit;
}

/* How many of the keys query i of `queries` sees. */
static inline int64_t emulate_seen(const struct attention_view *v, int64_t i, int64_t queries, int64_t count,
                                   enum mistake mistake)
{
	int64_t seen = count - queries + i + 1;

	if (!v->causal || mistake == MASK_LEFT_OUT)
		return count;
	if (mistake == MASK_ALIGNED_AT_START)
		seen = i + 1;
	if (mistake == MASK_ONE_LATE)
		seen++;
	if (mistake == MASK_ONE_EARLY)
		seen--;
	if (mistake == CHUNKS_FORGET_THEIR_START)
		seen = count - queries + i % 512 + 1;
	return seen < 0 ? 0 : seen < count ? seen : count;
}

/* weight[j] of the keys first … seen - 1; what lse comes to. */
static inline float emulate_weights(const struct emulation *m, const struct found *found, int64_t t, int64_t h,
                                    int64_t first, int64_t seen, float *weight, float *sum)
{
	const struct attention_extent *e = &m->v.extent;
	float scale = (float)m->v.scale * (m->mistake == SCALE_TWO_PERCENT ? 1.02f : 1), largest = -INFINITY, raw = 0;

	if (m->mistake == SCALE_OF_THE_LATENT)
		scale = 1 / sqrtf((float)(e->dim[0] + e->dim[1]));
	for (int64_t j = first; j < seen; j++) {
		weight[j] = emulate_logit(m, t, h, found->row[j], scale);
		largest = weight[j] > largest || isnan(weight[j]) ? weight[j] : largest;
	}
	float shift = m->mistake == MAXIMUM_NOT_SUBTRACTED ? 0 : largest;

	for (int64_t j = first; j < seen; j++) {
		raw += expf((weight[j] - largest) / scale);
		*sum += weight[j] = expf(weight[j] - shift);
	}
	if (seen <= first)
		return m->mistake == EMPTY_HAS_LSE_ZERO ? 0 : -INFINITY;
	if (m->mistake == LSE_OF_UNSCALED_LOGITS)
		return (largest / scale + logf(raw)) / logf(2);
	return (shift + logf(*sum)) / (m->mistake == NATURAL_LSE ? 1 : logf(2));
}

static inline void emulate_output(const struct emulation *m, const struct found *found, int64_t h, int64_t first,
                                  int64_t seen, const float *weight, float *out)
{
	const struct attention_extent *e = &m->v.extent;
	int64_t kv_head = m->mistake == HEADS_TILED ? h % e->kv_heads : h / (e->heads / e->kv_heads);
	const float *values = m->mistake == KEYS_FOR_VALUES ? m->key[0] : m->value;

	memset(out, 0, (size_t)e->value_dim * sizeof *out);
	for (int64_t j = first; j < seen; j++) {
		int64_t row = found->row[m->mistake == VALUES_OF_NEXT_KEY && j + 1 < found->count ? j + 1 : j];
		const float *value = values + (row * e->kv_heads + kv_head) * e->value_dim;

		for (int64_t d = 0; d < e->value_dim; d++)
			out[d] += weight[j] * value[d];
	}
}

static inline void emulate_head(const struct emulation *m, const struct found *found, int64_t t, int64_t h,
                                int64_t seen)
{
	const struct attention_view *v = &m->v;
	int64_t place = t * v->extent.heads + h, first = m->mistake == FIRST_KEY_LEFT_OUT;
	float *weight = calloc((size_t)found->count + 1, sizeof *weight), sum = 0, lse;
	float *out = calloc((size_t)v->extent.value_dim + 1, sizeof *out);

	assert_true(weight != NULL && out != NULL);
	seen -= m->mistake == LAST_KEY_LEFT_OUT;
	lse = emulate_weights(m, found, t, h, first, seen, weight, &sum);
	emulate_output(m, found, h, first, seen, weight, out);
	for (int64_t d = 0; d < v->extent.value_dim; d++) {
		float value = m->mistake == WEIGHTS_NOT_NORMALISED  ? out[d]
		              : seen > first                        ? out[d] / sum
		              : m->mistake == EMPTY_IS_NOT_A_NUMBER ? NAN
		                                                    : 0;

		value *= m->mistake == OUTPUT_TWO_PERCENT ? 1.02f : m->mistake == ZEROS ? 0 : 1;
		if (m->mistake == NOT_A_NUMBER && place == 0)
			value = NAN;
		number_set(v->output.data, v->output.dtype, place * v->extent.value_dim + d, (double)value);
	}
	if (v->lse.data != NULL)
		number_set(v->lse.data, v->lse.dtype, place, (double)lse);
	free(out);
	free(weight);
}

static inline bool emulate_sequence(const struct emulation *m, int64_t b)
{
	const struct attention_view *v = &m->v;
	bool sparse = v->sparse.data != NULL;
	int64_t first = v->qo_indptr.data != NULL ? attention_integer(&v->qo_indptr, b) : b;
	int64_t end = v->qo_indptr.data != NULL ? attention_integer(&v->qo_indptr, b + 1) : b + 1;
	struct found found;
	bool ran = sparse ? find_rows(v, b, m->mistake, &found) : find_keys(v, b, m->mistake, &found);

	for (int64_t t = first; ran && t < end; t++)
		for (int64_t h = 0; h < v->extent.heads; h++)
			if (m->mistake != LAST_QUERY_NOT_WRITTEN || t != v->extent.queries - 1)
				emulate_head(m, &found, t, h,
				             emulate_seen(v, t - first, end - first, found.count, m->mistake));
	free(found.row);
	return ran;
}

/* Fills w->answer. False: the reference raised. */
static inline bool emulate(struct world *w, const struct attention_roles *roles, enum mistake mistake)
{
	struct emulation m = {.v = attention_view_of(&w->c, roles, w->in, w->answer), .mistake = mistake};
	int64_t sequences = m.v.sparse.data != NULL ? m.v.extent.queries : m.v.extent.batch;
	bool ran = true;

	for (int i = 0; i < w->c.problem->output_count; i++)
		memset(w->answer[i].data, 0, (size_t)dtype_bytes(w->answer[i].dtype, w->answer[i].elements));
	for (int p = 0; p < ATTENTION_PARTS; p++) {
		m.query[p] = floats_of(&m.v.query[p], false);
		m.key[p] = floats_of(&m.v.key[p], mistake == KEYS_IN_FP8);
	}
	m.value = floats_of(&m.v.value, mistake == VALUES_IN_FP8);
	for (int64_t b = 0; ran && b < sequences; b++)
		ran = emulate_sequence(&m, b);
	for (int p = 0; p < ATTENTION_PARTS; p++) {
		free(m.query[p]);
		free(m.key[p]);
	}
	free(m.value);
	return ran;
}

/* --- what every family is asked ----------------------------------------------------------------------------------- */

/* The family under test: set by each test file. */
struct family {
	const struct op *op;
	struct attention_roles (*roles)(const struct op_problem *problem);
};

/* A correct float32 reference passes at small and medium, for so many seeds. */
static inline void expect_passes(const struct family *family, const struct op_problem *problem, int seeds)
{
	struct attention_roles roles = family->roles(problem);
	int64_t axis[MAX_ROWS * MAX_AXES];

	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int r = 0, rows = rows_of(family->op, problem, size, axis); r < rows; r++)
			for (int seed = 0; seed < seeds; seed++) {
				struct world w;

				make_world(&w, family->op, problem, axis + r * problem->axis_count, (uint64_t)seed);
				assert_true(emulate(&w, &roles, NONE));
				assert_true(passes(&w, "a correct reference"));
				free_world(&w);
			}
}

/* Is the mistake found in one of the default sizes? */
static inline bool is_caught(const struct family *family, const struct op_problem *problem, enum mistake mistake,
                             uint64_t seed)
{
	struct attention_roles roles = family->roles(problem);
	int64_t axis[MAX_ROWS * MAX_AXES];
	bool caught = false;

	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM && !caught; size++)
		for (int r = 0, rows = rows_of(family->op, problem, size, axis); r < rows && !caught; r++) {
			struct world w;

			make_world(&w, family->op, problem, axis + r * problem->axis_count, seed);
			caught = !emulate(&w, &roles, mistake) || !passes(&w, NULL);
			free_world(&w);
		}
	return caught;
}

static inline void expect_caught(const struct family *family, const struct op_problem *problem,
                                 const enum mistake *first, int count)
{
	for (int i = 0; i < count; i++)
		for (uint64_t seed = 0; seed < 3; seed++)
			if (!is_caught(family, problem, first[i], seed))
				fail_msg("%s, seed %llu: passed", mistake_names[first[i]], (unsigned long long)seed);
}

static inline void expect_general_mistakes_caught(const struct family *family, const struct op_problem *problem)
{
	for (enum mistake mistake = NONE + 1; mistake < OF_ALL; mistake++)
		expect_caught(family, problem, &mistake, 1);
}

/* All tensors that are bfloat16 become `dtype`; the caches, if any, `caches`. */
static inline void set_floats(struct built *b, enum dtype dtype, enum dtype caches)
{
	for (int i = 0; i < b->problem.input_count; i++)
		if (b->inputs[i].dtype == DTYPE_BFLOAT16)
			b->inputs[i].dtype = strstr(b->inputs[i].name, "cache") != NULL ? caches : dtype;
	b->outputs[0].dtype = dtype;
}

/* A correct reference passes in these dtypes, and what they could hide is found. */
static inline void expect_dtypes(const struct family *family, struct built *b, enum dtype dtype, enum dtype caches)
{
	static const enum mistake hidden[] = {SCALE_TWO_PERCENT, OUTPUT_TWO_PERCENT, NATURAL_LSE, LAST_KEY_LEFT_OUT,
	                                      VALUES_OF_NEXT_KEY};

	set_floats(b, dtype, caches);
	expect_passes(family, &b->problem, 5);
	expect_caught(family, &b->problem, hidden, sizeof hidden / sizeof *hidden);
}

/* op.match refuses, and says `word`. */
static inline void expect_refused(const struct op *op, const struct op_problem *problem, const char *word)
{
	struct err why = {""};

	assert_int_equal(op->match(problem, &why), -1);
	if (strstr(why.text, word) == NULL)
		fail_msg("the sentence \"%s\" does not say \"%s\"", why.text, word);
}

/* op.check and op.oracle refuse the inputs once element `index` of the input is `value`, and say `word`. */
static inline void expect_invalid(struct world *w, const char *input, int64_t index, double value, const char *word)
{
	struct tensor *tensor = &w->in[input_named(w->c.problem, input)];
	double before = number_get(tensor->data, tensor->dtype, index);
	struct err why = {""};

	number_set(tensor->data, tensor->dtype, index, value);
	assert_int_equal(w->op->check(&w->c, w->in, &why), -1);
	if (strstr(why.text, word) == NULL)
		fail_msg("the sentence \"%s\" does not say \"%s\"", why.text, word);
	why.text[0] = '\0';
	assert_int_equal(w->op->oracle(&w->c, w->in, w->truth, &why), -1);
	assert_true(why.text[0] != '\0');
	number_set(tensor->data, tensor->dtype, index, before);
	assert_int_equal(w->op->check(&w->c, w->in, &why), 0);
}

/* The same without the inputs: the axes alone are refused, once axis `name` is `value`. */
static inline void expect_axes_invalid(const struct world *w, const char *name, int64_t value, const char *word)
{
	struct tensor nothing[MAX_INPUTS];
	struct world changed = *w;
	struct err why = {""};

	memcpy(nothing, w->in, sizeof nothing);
	for (int i = 0; i < MAX_INPUTS; i++)
		nothing[i].data = NULL;
	changed.c.axis = changed.axis;
	assert_int_equal(w->op->check(&changed.c, nothing, &why), 0);
	changed.axis[op_axis_index(w->c.problem, name)] = value;
	assert_int_equal(w->op->check(&changed.c, nothing, &why), -1);
	if (strstr(why.text, word) == NULL)
		fail_msg("the sentence \"%s\" does not say \"%s\"", why.text, word);
}

/* The case of --edge of this name; false: the problem has none. Free w. */
static inline bool make_edge(struct world *w, const struct op *op, const struct op_problem *problem, const char *name)
{
	int64_t axis[MAX_AXES];
	struct err err = {""};

	for (int i = 0; op->edges[i].name != NULL; i++) {
		if (strcmp(op->edges[i].name, name) != 0)
			continue;
		if (!op->edge_axes(problem, op->match(problem, NULL), i + 1, axis))
			return false;
		make_inputs(w, op, problem, axis, 3, 0, i + 1);
		assert_int_equal(op->check(&w->c, w->in, &err), 0);
		assert_int_equal(op->oracle(&w->c, w->in, w->truth, &err), 0);
		return true;
	}
	fail_msg("there is no edge '%s'", name);
	return false;
}

/* The first `blind` queries have output 0 and lse -infinity, the others have not. */
static inline void expect_blind(const struct world *w, int64_t blind)
{
	const struct tensor *output = &w->truth[0], *lse = &w->truth[1];
	int64_t heads = lse->shape[1], size = output->shape[2];

	assert_true(lse->shape[0] > 0 && blind > 0 && blind <= lse->shape[0]);
	for (int64_t i = 0; i < lse->elements; i++) {
		double value = number_get(lse->data, lse->dtype, i);

		assert_true(i < blind * heads ? value == -(double)INFINITY : isfinite(value));
		for (int64_t d = 0; d < size && i < blind * heads; d++)
			assert_true(number_get(output->data, output->dtype, i * size + d) == 0);
	}
}

/* What the convention of each edge says is what the oracle answers. `blind`: queries that see no key where there are
 * more of them than keys; 0: the problem is not causal. */
static inline void expect_edges(const struct op *op, const struct op_problem *problem, int64_t blind)
{
	struct world w;

	assert_true(make_edge(&w, op, problem, "no_queries"));
	assert_int_equal(w.truth[0].elements, 0);
	free_world(&w);
	assert_true(make_edge(&w, op, problem, "no_keys"));
	expect_blind(&w, w.truth[1].shape[0]);
	free_world(&w);
	assert_true(make_edge(&w, op, problem, "one_of_each"));
	assert_int_equal(w.truth[1].elements, w.truth[1].shape[1]);
	free_world(&w);
	assert_int_equal(make_edge(&w, op, problem, "blind_queries"), blind > 0);
	if (blind == 0)
		return;
	expect_blind(&w, blind);
	free_world(&w);
}

/* From element `from` of the offsets on everything is what it is before: the rest of the queries belongs to nobody, and
 * has output 0 and lse -infinity. */
static inline void expect_nobodys(struct world *w, const char *offsets, int64_t from)
{
	struct tensor *tensor = &w->in[input_named(w->c.problem, offsets)];
	int64_t end = attention_integer(tensor, from), heads = w->truth[1].shape[1], size = w->truth[0].shape[2];
	struct err err = {""};

	for (int64_t i = from; i < tensor->elements; i++)
		number_set(tensor->data, tensor->dtype, i, (double)end);
	assert_int_equal(w->op->check(&w->c, w->in, &err), 0);
	assert_int_equal(w->op->oracle(&w->c, w->in, w->truth, &err), 0);
	assert_true(end < w->truth[1].shape[0]);
	for (int64_t i = end * heads; i < w->truth[1].elements; i++)
		assert_true(number_get(w->truth[1].data, w->truth[1].dtype, i) == -(double)INFINITY);
	for (int64_t i = end * heads * size; i < w->truth[0].elements; i++)
		assert_true(number_get(w->truth[0].data, w->truth[0].dtype, i) == 0);
}

static inline bool is_nan_row(const struct tensor *tensor, int64_t row, int64_t size)
{
	int64_t nans = 0;

	for (int64_t i = 0; i < size; i++)
		nans += isnan(number_get(tensor->data, tensor->dtype, row * size + i)) != 0;
	assert_true(nans == 0 || nans == size);
	return nans == size;
}

/* The key rows that are NaN are exactly those that no index leads to. */
static inline void expect_poison_where_unused(const struct world *w, const struct attention_roles *roles)
{
	struct attention_view v = attention_view_of(&w->c, roles, w->in, w->truth);
	int64_t sequences = v.sparse.data != NULL ? v.extent.queries : v.extent.batch;
	uint8_t *used = calloc((size_t)v.extent.rows + 1, 1);

	assert_non_null(used);
	for (int64_t b = 0; b < sequences; b++) {
		struct found found;

		assert_true(v.sparse.data != NULL ? find_rows(&v, b, NONE, &found) : find_keys(&v, b, NONE, &found));
		for (int64_t j = 0; j < found.count; j++)
			used[found.row[j]] = 1;
		free(found.row);
	}
	for (int64_t row = 0; row < v.extent.rows; row++) {
		assert_int_equal(is_nan_row(&v.value, row, v.extent.kv_heads * v.extent.value_dim), !used[row]);
		for (int p = 0; p < ATTENTION_PARTS && v.extent.dim[p] > 0; p++)
			assert_int_equal(is_nan_row(&v.key[p], row, v.extent.kv_heads * v.extent.dim[p]), !used[row]);
	}
	free(used);
}

/* The sequences of a case: what op.check asks, that masks are never all there is, and how often each kind occurs. */
struct kinds {
	int empty, one_key, square, no_query, one_query, before; /* before: more keys than queries, of each several */
};

static inline struct kinds expect_valid_sequences(const struct world *w, const struct attention_roles *roles)
{
	struct attention_view v = attention_view_of(&w->c, roles, w->in, w->truth);
	struct kinds kinds = {0};
	struct err err = {""};

	assert_int_equal(w->op->check(&w->c, w->in, &err), 0);
	assert_int_equal(attention_integer(&v.kv_indptr, v.extent.batch), v.extent.entries);
	if (v.qo_indptr.data != NULL)
		assert_int_equal(attention_integer(&v.qo_indptr, v.extent.batch), v.extent.queries);
	for (int64_t b = 0; b < v.extent.batch; b++) {
		struct attention_span span = attention_span_of(&v, b);

		assert_true(span.keys == 0 || span.keys >= span.queries);
		kinds.empty += span.keys == 0 && span.queries > 0;
		kinds.one_key += span.keys == 1;
		kinds.square += span.keys == span.queries && span.keys > 1;
		kinds.no_query += span.queries == 0;
		kinds.one_query += span.queries == 1 && span.keys > 1;
		kinds.before += span.keys > span.queries && span.queries > 1;
	}
	return kinds;
}

/* Medium sequences of keys without pages are valid, for twenty seeds, and contain what hurts. */
static inline void expect_ragged_sequences(const struct family *family, const struct op_problem *problem)
{
	struct attention_roles roles = family->roles(problem);
	int64_t axis[MAX_ROWS * MAX_AXES];

	rows_of(family->op, problem, SIZE_MEDIUM, axis);
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct world w;
		struct kinds kinds;

		make_inputs(&w, family->op, problem, axis, seed, 0, 0);
		kinds = expect_valid_sequences(&w, &roles);
		assert_true(kinds.empty > 0 && kinds.one_key > 0 && kinds.one_query > 0 && kinds.square > 0 &&
		            kinds.no_query > 0 && kinds.before > 0);
		free_world(&w);
	}
}

/* Offsets into 640 keys of 8 sequences that point nowhere are refused, and no query that is nobody's is answered. */
static inline void expect_ragged_offsets_refused(const struct family *family, const struct op_problem *problem)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct world w;

	rows_of(family->op, problem, SIZE_MEDIUM, axis);
	make_world(&w, family->op, problem, axis, 0);
	expect_invalid(&w, "kv_indptr", 8, 641, "nor above the 640 keys");
	expect_invalid(&w, "kv_indptr", 7, 2, "kv_indptr[7] is 2");
	expect_invalid(&w, "kv_indptr", 0, 3, "kv_indptr[0] is 3, not 0");
	expect_invalid(&w, "qo_indptr", 1, -1, "qo_indptr[1] is -1");
	expect_invalid(&w, "qo_indptr", 5, 0, "qo_indptr[5] is 0");
	expect_invalid(&w, "qo_indptr", 0, 1, "qo_indptr[0] is 1, not 0");
	expect_axes_invalid(&w, "len_indptr", 0, "kv_indptr is empty");
	expect_nobodys(&w, "qo_indptr", 3);
	free_world(&w);
}

#endif
