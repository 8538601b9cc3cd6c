/* attention_family - the checks that every attention family must pass. The checks use correct references, planted
 * mistakes, invalid inputs and edge cases. */
#ifndef REFTEST_TESTS_ATTENTION_FAMILY_H
#define REFTEST_TESTS_ATTENTION_FAMILY_H

#include "tests/unit/attention_reference.h"
#include "tests/unit/seeds.h"

/* Checks that a correct float32 reference passes at the small and medium sizes, with both sets of input values, and
 * with each of `seeds` seeds. A build with sanitizers uses only one seed. */
static inline void expect_passes(const struct op *op, const struct op_problem *problem, int seeds)
{
	struct attention_roles roles = attention_roles_of(problem);
	int64_t axis[MAX_ROWS * MAX_AXES];

	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int r = 0, rows = rows_of(op, problem, size, axis); r < rows; r++)
			for (int seed = 0; seed < 2 * SEEDS_OR_ONE(seeds); seed++) {
				struct world w;

				make_world_of(&w, op, problem, axis + r * problem->axis_count, (uint64_t)seed / 2,
				              (enum op_contents)(seed % 2));
				assert_true(emulate(&w, &roles, NONE));
				assert_true(passes(&w, "a correct reference"));
				free_world(&w);
			}
}

/* For each mistake that is not caught yet, emulates a reference with this mistake on the inputs of `w`. Sets caught[i]
 * to true if mistake first[i] is caught. */
static inline void try_mistakes(struct world *w, const enum mistake *first, int count, bool *caught)
{
	struct attention_roles roles = attention_roles_of(w->c.problem);

	for (int i = 0; i < count; i++)
		caught[i] = caught[i] || !emulate(w, &roles, first[i]) || !passes(w, NULL);
}

static inline bool all_caught(const bool *caught, int count)
{
	return memchr(caught, false, (size_t)count) == NULL;
}

/* Checks that each mistake is found at one of the default sizes, with one of the two sets of input values, for one
 * seed. All mistakes share the inputs and the oracle's outputs, because computing these takes longer than an
 * emulation. */
static inline void expect_caught_for(const struct op *op, const struct op_problem *problem, const enum mistake *first,
                                     int count, uint64_t seed)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	bool caught[MISTAKES] = {false};

	for (enum op_size size = SIZE_SMALL; size <= SIZE_MEDIUM; size++)
		for (int r = 0, rows = rows_of(op, problem, size, axis); r < rows; r++)
			for (int contents = 0; contents < CONTENTS_COUNT && !all_caught(caught, count); contents++) {
				struct world w;

				make_world_of(&w, op, problem, axis + r * problem->axis_count, seed,
				              (enum op_contents)contents);
				try_mistakes(&w, first, count, caught);
				free_world(&w);
			}
	for (int i = 0; i < count; i++)
		if (!caught[i])
			fail_msg("%s, seed %llu: passed", mistake_names[first[i]], (unsigned long long)seed);
}

static inline void expect_caught(const struct op *op, const struct op_problem *problem,
                                 const enum mistake *first, int count)
{
	int planted = (count + MISTAKE_STEP - 1) / MISTAKE_STEP;

	for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++)
		expect_caught_for(op, problem, first, planted, seed);
}

static inline void expect_general_mistakes_caught(const struct op *op, const struct op_problem *problem)
{
	enum mistake general[OF_ALL];
	int count = 0;

	for (enum mistake mistake = NONE + 1; mistake < OF_ALL; mistake++)
		general[count++] = mistake;
	expect_caught(op, problem, general, count);
}

/* Changes the dtype of each bfloat16 input to `caches` if the input is a cache, and to `dtype` if it is not. The first
 * output gets the dtype `dtype`. */
static inline void set_floats(struct built *b, enum dtype dtype, enum dtype caches)
{
	for (int i = 0; i < b->problem.input_count; i++)
		if (b->inputs[i].dtype == DTYPE_BFLOAT16)
			b->inputs[i].dtype = strstr(b->inputs[i].name, "cache") != NULL ? caches : dtype;
	b->outputs[0].dtype = dtype;
}

/* Changes the dtypes of the problem with set_floats. A correct reference must then pass, and each mistake of `hidden`
 * must be found. These mistakes could pass if the tolerances were those of a coarser dtype. */
static inline void expect_dtypes(const struct op *op, struct built *b, enum dtype dtype, enum dtype caches)
{
	static const enum mistake hidden[] = {SCALE_TWO_PERCENT, OUTPUT_TWO_PERCENT, NATURAL_LSE, LAST_KEY_LEFT_OUT,
	                                      VALUES_OF_NEXT_KEY};

	set_floats(b, dtype, caches);
	expect_passes(op, &b->problem, 5);
	expect_caught(op, &b->problem, hidden, sizeof hidden / sizeof *hidden);
}

/* Checks that op.match rejects the problem, with a message that contains `word`. */
static inline void expect_refused(const struct op *op, const struct op_problem *problem, const char *word)
{
	struct err why = {""};

	assert_int_equal(op->match(problem, &why), -1);
	if (strstr(why.text, word) == NULL)
		fail_msg("the sentence \"%s\" does not say \"%s\"", why.text, word);
}

/* Sets element `index` of input `input` to `value`. op.check and op.oracle must reject the inputs, with a message that
 * contains `word`. */
static inline void expect_invalid(struct world *w, const char *input, int64_t index, double value, const char *word)
{
	struct tensor *tensor = &w->in[input_named(w->c.problem, input)];
	double before = dtype_load(tensor->data, tensor->dtype, index);
	struct err why = {""};

	dtype_store(tensor->data, tensor->dtype, index, value);
	assert_int_equal(w->op->check(&w->c, w->in, &why), -1);
	if (strstr(why.text, word) == NULL)
		fail_msg("the sentence \"%s\" does not say \"%s\"", why.text, word);
	why.text[0] = '\0';
	assert_int_equal(w->op->oracle(&w->c, w->in, w->truth, &why), -1);
	assert_true(why.text[0] != '\0');
	dtype_store(tensor->data, tensor->dtype, index, before);
	assert_int_equal(w->op->check(&w->c, w->in, &why), 0);
}

/* Checks lengths of axes before the inputs have data: op.check must accept the axes of `w`. If axis `name` has the
 * length `value`, op.check must reject the axes with a message that contains `word`. */
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

/* Builds the edge case `name` in `w`; the caller frees `w`. Returns false if the problem has no case of this name. */
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

/* Checks that queries 0 to blind - 1, and no others, have output 0 and lse -infinity. */
static inline void expect_blind(const struct world *w, int64_t blind)
{
	const struct tensor *output = &w->truth[0], *lse = &w->truth[1];
	int64_t heads = lse->shape[1], size = output->shape[2];

	assert_true(lse->shape[0] > 0 && blind > 0 && blind <= lse->shape[0]);
	for (int64_t i = 0; i < lse->elements; i++) {
		double value = dtype_load(lse->data, lse->dtype, i);

		assert_true(i < blind * heads ? value == -(double)INFINITY : isfinite(value));
		for (int64_t d = 0; d < size && i < blind * heads; d++)
			assert_true(dtype_load(output->data, output->dtype, i * size + d) == 0);
	}
}

/* Checks that the oracle's output of each edge case follows the documented convention. If there are more queries than
 * keys, a causal mask hides all keys from the first `blind` queries. Without a causal mask, `blind` is 0. */
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

/* Sets all offsets after offset `from` to the value of offset `from`, so that the queries from this value on belong to
 * no sequence. Checks that the output of these queries is 0 and that their lse is -infinity. */
static inline void expect_nobodys(struct world *w, const char *offsets, int64_t from)
{
	struct tensor *tensor = &w->in[input_named(w->c.problem, offsets)];
	int64_t end = attention_integer(tensor, from), heads = w->truth[1].shape[1], size = w->truth[0].shape[2];
	struct err err = {""};

	for (int64_t i = from; i < tensor->elements; i++)
		dtype_store(tensor->data, tensor->dtype, i, (double)end);
	assert_int_equal(w->op->check(&w->c, w->in, &err), 0);
	assert_int_equal(w->op->oracle(&w->c, w->in, w->truth, &err), 0);
	assert_true(end < w->truth[1].shape[0]);
	for (int64_t i = end * heads; i < w->truth[1].elements; i++)
		assert_true(dtype_load(w->truth[1].data, w->truth[1].dtype, i) == -(double)INFINITY);
	for (int64_t i = end * heads * size; i < w->truth[0].elements; i++)
		assert_true(dtype_load(w->truth[0].data, w->truth[0].dtype, i) == 0);
}

/* Checks that the caches of medium cases have so many pages that a page number needs 16 bits. */
static inline void expect_large_cache(const struct op *op, const struct op_problem *problem)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	int pages = op_axis_index(problem, "num_pages"), rows = rows_of(op, problem, SIZE_MEDIUM, axis);
	int64_t most = 0;

	for (int r = 0; r < rows; r++)
		most = axis[r * problem->axis_count + pages] > most ? axis[r * problem->axis_count + pages] : most;
	assert_true(most > 1 << 15);
}

static inline bool is_nan_row(const struct tensor *tensor, int64_t row, int64_t size)
{
	int64_t nans = 0;

	for (int64_t i = 0; i < size; i++)
		nans += isnan(dtype_load(tensor->data, tensor->dtype, row * size + i)) != 0;
	assert_true(nans == 0 || nans == size);
	return nans == size;
}

/* Checks that a row of keys or values is NaN if no index refers to the row, and has no NaN otherwise. */
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

/* The number of sequences of each kind in a case. */
struct kinds {
	/* `before` counts sequences with at least two queries and more keys than queries */
	int empty, one_key, square, no_query, one_query, before;
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

/* Checks the sequences of medium cases for MANY_SEEDS seeds: they are valid, and every difficult kind occurs. Keys that
 * belong to no sequence must be NaN. */
static inline void expect_sequences(const struct op *op, const struct op_problem *problem, bool of_prefill)
{
	struct attention_roles roles = attention_roles_of(problem);
	int64_t axis[MAX_ROWS * MAX_AXES];

	rows_of(op, problem, SIZE_MEDIUM, axis);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		struct world w;
		struct kinds kinds;

		make_inputs(&w, op, problem, axis, seed, 0, 0);
		kinds = expect_valid_sequences(&w, &roles);
		assert_true(kinds.empty > 0 && kinds.one_key > 0 && kinds.one_query > 0);
		assert_true(!of_prefill || (kinds.square > 0 && kinds.no_query > 0 && kinds.before > 0));
		expect_poison_where_unused(&w, &roles);
		free_world(&w);
	}
}

/* Checks that invalid offsets into the 3063 keys of 513 sequences are rejected. Queries that belong to no sequence must
 * have output 0 and lse -infinity. */
static inline void expect_ragged_offsets_refused(const struct op *op, const struct op_problem *problem)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct world w;

	rows_of(op, problem, SIZE_MEDIUM, axis);
	make_world(&w, op, problem, axis, 0);
	expect_invalid(&w, "kv_indptr", 513, 4088, "at most 4097, the number of keys");
	expect_invalid(&w, "kv_indptr", 12, 2, "kv_indptr[12] is 2");
	expect_invalid(&w, "kv_indptr", 0, 3, "kv_indptr[0] is 3, not 0");
	expect_invalid(&w, "qo_indptr", 1, -1, "qo_indptr[1] is -1");
	expect_invalid(&w, "qo_indptr", 5, 0, "qo_indptr[5] is 0");
	expect_invalid(&w, "qo_indptr", 0, 1, "qo_indptr[0] is 1, not 0");
	expect_axes_invalid(&w, "len_indptr", 0, "kv_indptr is empty");
	expect_nobodys(&w, "qo_indptr", 3);
	free_world(&w);
}

#endif
