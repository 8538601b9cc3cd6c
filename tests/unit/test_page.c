/* test_page - the operation that appends keys and values to paged caches: page tables are valid for every seed, correct
 * references pass, and references with a mistake fail. */
#include "tests/unit/trial_second.h"

#include "kernels/page/input_values.h"
#include "tests/unit/seeds.h"

extern const struct op page_op;

enum { SEEDS = MANY_SEEDS, NNZ = 0, H, D, PAGES, PS, B, B1, IDX, TWO, W };

#define AXES(size)                                                                                                   \
	{                                                                                                            \
		{"nnz_kv", true, 0}, {"num_kv_heads", false, 3}, {"head_dim", false, 32}, {"num_pages", true, 0},    \
		{"page_size", false, size}, {"batch_size", true, 0}, {"len_indptr", true, 0},                        \
		{"num_kv_indices", true, 0}, {"two", false, 2}, {"head_dim_kpe", false, 16}                          \
	}
static const struct op_axis axes[] = AXES(16), axes1[] = AXES(1), axes64[] = AXES(64);

#define TABLES(dtype)                                                                                                \
	{"batch_indices", dtype, 1, {NNZ}, false, NULL}, {"positions", dtype, 1, {NNZ}, false, NULL},                            \
	    {"kv_indices", dtype, 1, {IDX}, false, NULL}, {"kv_indptr", dtype, 1, {B1}, false, NULL},                            \
	    {"kv_last_page_len", dtype, 1, {B}, false, NULL}
#define APPEND(name, dtype) {name, dtype, 3, {NNZ, H, D}, false, NULL}
#define CACHE(name, dtype) {name, dtype, 4, {PAGES, PS, H, D}, false, NULL}
#define HEADS_FIRST(name, dtype) {name, dtype, 4, {PAGES, H, PS, D}, false, NULL}
static const struct op_arg kv[] = {APPEND("append_key", DTYPE_BFLOAT16), APPEND("append_value", DTYPE_BFLOAT16),
                                   CACHE("k_cache", DTYPE_BFLOAT16), CACHE("v_cache", DTYPE_BFLOAT16),
                                   TABLES(DTYPE_INT32)};
static const struct op_arg kv_out[] = {CACHE("k_cache", DTYPE_BFLOAT16), CACHE("v_cache", DTYPE_BFLOAT16)};
static const struct op_arg turned_out[] = {CACHE("v_cache", DTYPE_BFLOAT16), CACHE("k_cache", DTYPE_BFLOAT16)};
static const struct op_arg hnd[] = {APPEND("append_key", DTYPE_FLOAT16), APPEND("append_value", DTYPE_FLOAT16),
                                    HEADS_FIRST("k_cache", DTYPE_FLOAT16), HEADS_FIRST("v_cache", DTYPE_FLOAT16),
                                    TABLES(DTYPE_INT64)};
static const struct op_arg hnd_out[] = {HEADS_FIRST("k_out", DTYPE_FLOAT16), HEADS_FIRST("v_out", DTYPE_FLOAT16)};
static const struct op_arg one[] = {APPEND("append_key", DTYPE_BFLOAT16),
                                    APPEND("append_value", DTYPE_BFLOAT16),
                                    {"paged_kv_cache", DTYPE_BFLOAT16, 5, {PAGES, TWO, PS, H, D}, false, NULL},
                                    TABLES(DTYPE_INT32)};
static const struct op_arg one_out[] = {{"paged_kv_cache", DTYPE_BFLOAT16, 5, {PAGES, TWO, PS, H, D}, false, NULL}};
static const struct op_arg mla[] = {{"append_ckv", DTYPE_BFLOAT16, 2, {NNZ, D}, false, NULL},
                                    {"append_kpe", DTYPE_BFLOAT16, 2, {NNZ, W}, false, NULL},
                                    {"ckv_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, D}, false, NULL},
                                    {"kpe_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, W}, false, NULL},
                                    TABLES(DTYPE_INT32)};
static const struct op_arg mla_out[] = {{"ckv_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, D}, false, NULL},
                                        {"kpe_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, W}, false, NULL}};

static const struct op_problem problems[] = {
    PROBLEM("append_paged_kv_cache_kv3_d32_ps16", "page", axes, kv, kv_out),
    PROBLEM("append_paged_kv_cache_kv3_d32_ps1", "page_append", axes1, kv, turned_out),
    PROBLEM("append_paged_kv_cache_hnd", "page", axes64, hnd, hnd_out),
    PROBLEM("append_paged_kv_cache_in_one", "page", axes, one, one_out),
    PROBLEM("append_paged_mla_kv_cache", "page", axes, mla, mla_out),
};
enum { ONE_PLACE = 1, HND, IN_ONE, MLA };

enum mistake {
	NONE,
	NOTHING_WRITTEN,
	PAGES_IN_ORDER,
	INDPTR_IGNORED,
	NEXT_PAGE_INDEX,
	NEXT_PLACE,
	PLACE_FROM_LAST_PAGE,
	POSITION_FROM_TOKEN,
	SEQUENCE_IGNORED,
	KEYS_AND_VALUES_SWAPPED,
	KEYS_ALONE,
	FIRST_HEAD_ALONE,
	LAST_TOKEN_LEFT_OUT,
	FIRST_TOKEN_LEFT_OUT,
	OTHERS_ZEROED,
	ADDED,
	HEADS_TURNED_ROUND,
	ROUNDED_TO_FP8,
	PADDING_WRITTEN,
	PADDING_ENDS_THE_BATCH,
	ALL_ZERO,
};

static int64_t integer(const struct trial *t, int input, int64_t index)
{
	return (int64_t)dtype_load(t->in[input].data, t->in[input].dtype, index);
}

static void find(const struct trial *t, int64_t token, const struct page_extent *e, enum mistake mistake, int64_t *page,
                 int64_t *place)
{
	struct page_roles roles = page_roles_of(t->problem);
	int64_t sequence = mistake == SEQUENCE_IGNORED ? 0 : integer(t, roles.batch_indices, token);
	int64_t position = mistake == POSITION_FROM_TOKEN ? token : integer(t, roles.positions, token);
	int64_t count = t->in[roles.indices].elements;

	if (sequence < 0) /* a wrong reference writes the padding token to some place */
		sequence = position = 0;
	int64_t index = (mistake == INDPTR_IGNORED ? 0 : integer(t, roles.indptr, sequence)) + position / e->page_size;

	index = (index + (mistake == NEXT_PAGE_INDEX)) % count;
	*page = mistake == PAGES_IN_ORDER ? index % e->pages : integer(t, roles.indices, index);
	*place = (position + (mistake == NEXT_PLACE)) % e->page_size;
	if (mistake == PLACE_FROM_LAST_PAGE)
		*place = integer(t, roles.last_page_len, sequence) - 1;
}

static void run_part(struct trial *t, int part, enum mistake mistake)
{
	struct page_roles roles = page_roles_of(t->problem);
	struct page_extent e = page_extent_of(&t->c, part);
	int from = mistake == KEYS_AND_VALUES_SWAPPED ? 1 - part : part, combined = (t->c.variant & PAGE_COMBINED) != 0;
	struct tensor *out = &t->out[roles.output[combined ? 0 : part]];
	int64_t tokens = t->in[roles.positions].elements, page = 0, place = 0;

	for (int64_t token = mistake == FIRST_TOKEN_LEFT_OUT; token < tokens - (mistake == LAST_TOKEN_LEFT_OUT);
	     token++) {
		if (integer(t, roles.batch_indices, token) < 0 && mistake == PADDING_ENDS_THE_BATCH)
			break;
		if (integer(t, roles.batch_indices, token) < 0 && mistake != PADDING_WRITTEN)
			continue;
		find(t, token, &e, mistake, &page, &place);
		for (int64_t head = 0; head < (mistake == FIRST_HEAD_ALONE ? 1 : e.heads); head++)
			for (int64_t d = 0; d < e.width; d++) {
				int64_t source = mistake == HEADS_TURNED_ROUND ? e.heads - 1 - head : head;
				int64_t to = page_offset(&e, page, combined ? part : 0, place, head) + d;
				float value = get(&t->in[roles.append[from]], (token * e.heads + source) * e.width + d);

				value = mistake == ROUNDED_TO_FP8 ? float_from_e4m3(e4m3_from_float(value)) : value;
				set(out, to, mistake == ADDED ? get(out, to) + value : value);
			}
	}
}

/* Emulates the reference with the planted mistake. */
static void run(struct trial *t, int mistake)
{
	struct page_roles roles = page_roles_of(t->problem);

	for (int j = 0; j < roles.caches; j++) {
		struct tensor *out = &t->out[roles.output[j]];
		size_t bytes = (size_t)dtype_bytes(out->dtype, out->elements);

		if (mistake == OTHERS_ZEROED || mistake == ALL_ZERO)
			memset(out->data, 0, bytes);
		else
			memcpy(out->data, t->in[roles.cache[j]].data, bytes);
	}
	for (int part = 0; part < (mistake == KEYS_ALONE ? 1 : roles.parts); part++)
		if (mistake != NOTHING_WRITTEN && mistake != ALL_ZERO)
			run_part(t, part, mistake);
}

static void a_correct_reference_passes_for_every_problem_size_and_seed(void **state)
{
	static const int ways[] = {NONE, TRIAL_END};

	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes(&page_op, &problems[p], SEEDS, run, ways);
	for (int p = 0; p < COUNT(problems); p++)
		assert_right_passes_second(&page_op, &problems[p], 3, run, NONE);
}

static const struct planted_mistake mistakes[] = {
    {NOTHING_WRITTEN, "nothing written", 31},
    {PAGES_IN_ORDER, "page table ignored", 31},
    {INDPTR_IGNORED, "indptr ignored", 31},
    {NEXT_PAGE_INDEX, "the next page", 31},
    {NEXT_PLACE, "the next place of the page", 31 & ~(1 << ONE_PLACE)},
    {PLACE_FROM_LAST_PAGE, "place from the last page's length", 31 & ~(1 << ONE_PLACE)},
    {POSITION_FROM_TOKEN, "place in the batch for position", 31},
    {SEQUENCE_IGNORED, "sequence ignored", 31},
    {KEYS_AND_VALUES_SWAPPED, "keys and values swapped", 31 & ~(1 << MLA)},
    {KEYS_ALONE, "keys alone", 31},
    {FIRST_HEAD_ALONE, "first head alone", 31 & ~(1 << MLA)},
    {LAST_TOKEN_LEFT_OUT, "last token left out", 31},
    {FIRST_TOKEN_LEFT_OUT, "first token left out", 31},
    {OTHERS_ZEROED, "the rest of the cache zeroed", 31},
    {ADDED, "added to what was there", 31},
    {HEADS_TURNED_ROUND, "heads in the other order", 31 & ~(1 << MLA)},
    {ROUNDED_TO_FP8, "rounded to fp8", 31},
    {ALL_ZERO, "zeros", 31},
};

static void every_planted_mistake_fails_at_the_medium_size(void **state)
{
	(void)state;
	assert_mistakes_fail(&page_op, problems, COUNT(problems), mistakes, COUNT(mistakes), SEEDS_OR_ONE(3), run);
}

static void assert_table_is_valid(const struct trial *t)
{
	struct page_roles roles = page_roles_of(t->problem);
	struct page_extent e = page_extent_of(&t->c, 0);
	int64_t sequences = t->in[roles.indptr].elements - 1, count = t->in[roles.indices].elements;
	char *used = calloc((size_t)(e.pages * (e.page_size + 1)), 1);

	assert_int_equal(integer(t, roles.indptr, 0), 0);
	assert_int_equal(integer(t, roles.indptr, sequences), count);
	for (int64_t b = 0; b < sequences; b++) {
		int64_t pages = integer(t, roles.indptr, b + 1) - integer(t, roles.indptr, b),
			last = integer(t, roles.last_page_len, b);

		assert_true(pages >= 0);
		assert_true(pages == 0 ? last == 0 : last >= 1 && last <= e.page_size);
	}
	for (int64_t i = 0; i < count; i++) {
		int64_t page = integer(t, roles.indices, i);

		assert_true(page >= 0 && page < e.pages);
		if (count > e.pages && i < count - (e.pages - e.pages / 3))
			continue; /* pages of the common prefix may be used by several sequences */
		assert_int_equal(used[page], 0);
		used[page] = 1;
	}
	for (int64_t token = 0; token < t->in[roles.positions].elements; token++) {
		int64_t b = integer(t, roles.batch_indices, token), position = integer(t, roles.positions, token), page,
			place;
		int64_t pages = integer(t, roles.indptr, b + 1) - integer(t, roles.indptr, b);

		assert_true(position >= 0 && position < (pages - 1) * e.page_size + integer(t, roles.last_page_len, b));
		find(t, token, &e, NONE, &page, &place);
		assert_int_equal(used[e.pages + page * e.page_size + place], 0);
		used[e.pages + page * e.page_size + place] = 1;
	}
	free(used);
}

static void page_tables_are_valid_and_ragged_for_every_seed(void **state)
{
	(void)state;
	for (int p = 0; p < COUNT(problems); p++)
		for (uint64_t seed = 0; seed < SEEDS; seed++)
			for (int size = SIZE_SMALL; size <= SIZE_MEDIUM; size++) {
				struct trial t;

				for (int row = 0;
				     trial_open_size(&t, &page_op, &problems[p], (enum op_size)size, row, seed);
				     row++) {
					assert_table_is_valid(&t);
					trial_take_second(&t);
					assert_table_is_valid(&t);
					trial_close(&t);
				}
			}
}

static void odd_axes_give_a_valid_table_or_a_sentence(void **state)
{
	static const int64_t rows[][4] = {{5, 9, 2, 7}, {1, 1, 1, 1}, {40, 5, 4, 4}, {3, 64, 8, 200}, {16, 1, 1, 1}, {9, 2, 50, 4}};
	static const int64_t wrong[][4] = {{17, 1, 1, 1}, {33, 1, 5, 3}, {65, 1, 4, 9}};
	struct trial t;

	(void)state;
	for (int i = 0; i < COUNT(rows); i++)
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			int64_t n = rows[i][0] < rows[i][2] ? rows[i][0] : rows[i][2];
			int64_t axis[] = {n, 3, 32, rows[i][3], 16, rows[i][1], rows[i][1] + 1, rows[i][2], 2, 16};

			trial_open(&t, &page_op, &problems[0], axis, seed);
			assert_table_is_valid(&t);
			trial_close(&t);
		}
	for (int i = 0; i < COUNT(wrong); i++) {
		int64_t axis[] = {wrong[i][0],     3,           32, wrong[i][3], 16, wrong[i][1],
		                  wrong[i][1] + 1, wrong[i][2], 2,  16};
		struct op_case c = {.problem = &problems[0], .axis = axis};
		struct tensor indptr = trial_tensor(&kv[7], axis);
		struct err err = {""};

		assert_int_equal(page_op.fill(&c, 7, &indptr, &err), -1);
		assert_true(strstr(err.text, "page: ") == err.text);
		free(indptr.data);
	}
}

static void a_place_that_does_not_exist_is_not_written(void **state)
{
	static const struct {
		int input;
		int64_t value;
	} wrong[] = {{4, -1}, {4, 257},     {4, INT32_MAX}, {5, -5},      {5, 1 << 20},  {5, INT32_MAX},
	             {6, -1}, {6, 1 << 20}, {7, -3},        {7, 1 << 20}, {7, INT32_MIN}};

	(void)state;
	for (int i = 0; i < COUNT(wrong); i++) {
		struct trial t;

		assert_true(trial_open_size(&t, &page_op, &problems[0], SIZE_MEDIUM, 0, 1));
		for (int64_t at = 0; at < t.in[wrong[i].input].elements; at++)
			dtype_store(t.in[wrong[i].input].data, DTYPE_INT32, at, (double)wrong[i].value);
		assert_int_equal(page_op.oracle(&t.c, t.in, t.truth, NULL), 0);
		run(&t, NOTHING_WRITTEN);
		trial_assert_passes(&t);
		trial_close(&t);
	}
}

static void outputs_are_found_by_the_caches_names(void **state)
{
	struct page_roles roles = page_roles_of(&problems[ONE_PLACE]);

	(void)state;
	assert_int_equal(roles.output[0], 1);
	assert_int_equal(roles.output[1], 0);
	roles = page_roles_of(&problems[HND]);
	assert_int_equal(roles.output[0], 0);
	assert_int_equal(page_op.match(&problems[HND], NULL), PAGE_HND);
	assert_int_equal(page_op.match(&problems[IN_ONE], NULL), PAGE_COMBINED);
	assert_inputs_follow_the_seed(&page_op, &problems[0], SIZE_MEDIUM);
}

static void what_the_family_does_not_know_is_refused_with_the_reason(void **state)
{
	static const struct op_arg no_tables[] = {
	    APPEND("k", DTYPE_BFLOAT16), CACHE("k_cache", DTYPE_BFLOAT16), {"positions", DTYPE_INT32, 1, {NNZ}, false, NULL}};
	static const struct op_arg quantised[] = {APPEND("k", DTYPE_BFLOAT16), APPEND("v", DTYPE_BFLOAT16),
	                                          CACHE("k_cache", DTYPE_FLOAT8_E4M3FN),
	                                          CACHE("v_cache", DTYPE_FLOAT8_E4M3FN), TABLES(DTYPE_INT32)};
	static const struct op_arg quantised_out[] = {CACHE("k_cache", DTYPE_FLOAT8_E4M3FN),
	                                              CACHE("v_cache", DTYPE_FLOAT8_E4M3FN)};
	static const struct op_arg flat[] = {APPEND("k", DTYPE_BFLOAT16),
	                                     APPEND("v", DTYPE_BFLOAT16),
	                                     {"k_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, D}, false, NULL},
	                                     {"v_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, D}, false, NULL},
	                                     TABLES(DTYPE_INT32)};
	static const struct op_arg flat_out[] = {{"k_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, D}, false, NULL},
	                                         {"v_cache", DTYPE_BFLOAT16, 3, {PAGES, PS, D}, false, NULL}};
	static const struct op_arg short_tables[] = {APPEND("append_key", DTYPE_BFLOAT16),
	                                             CACHE("k_cache", DTYPE_BFLOAT16), TABLES(DTYPE_INT16)};
	static const struct op_arg keys_out[] = {CACHE("k_cache", DTYPE_BFLOAT16)};
	const struct op_problem cases[] = {
	    PROBLEM("a", "page", axes, no_tables, keys_out), PROBLEM("b", "page", axes, quantised, quantised_out),
	    PROBLEM("c", "page", axes, flat, flat_out),      PROBLEM("d", "page", axes, short_tables, keys_out),
	    PROBLEM("e", "page", axes, kv, keys_out),        PROBLEM("f", "page", axes, kv, hnd_out),
	};
	static const char *const parts[] = {"four tables",    "only copies", "its pages cannot hold",
	                                    "int32 or int64", "2 caches",    "shape and dtype"};

	(void)state;
	for (int i = 0; i < COUNT(cases); i++)
		assert_refused(&page_op, &cases[i], parts[i]);
}

static void right(struct trial *t)
{
	run(t, NONE);
}

static void what_is_right_passes_at_every_edge(void **state)
{
	static const int edges[] = {2, 2, 2, 2, 2};

	(void)state;
	assert_int_equal(COUNT(edges), COUNT(problems));
	assert_all_edges_pass(&page_op, problems, edges, COUNT(edges), right);
}

static void what_is_wrong_only_at_the_edge_fails_there(void **state)
{
	static const struct edge_mistake wrong[] = {
	    {PADDING_WRITTEN, "padding", 0},
	    {PADDING_ENDS_THE_BATCH, "padding", IN_ONE},
	    {PADDING_WRITTEN, "padding", MLA},
	};

	(void)state;
	assert_each_wrong_there_alone(&page_op, problems, run, wrong, COUNT(wrong));
}

static void what_a_workload_must_not_provide_is_reported_with_its_place(void **state)
{
	(void)state;
	assert_brought(&page_op, &problems[0], 4, 0, 257,
		       "input 'batch_indices' holds 257 at [0], which is neither -1 (padding) nor the number of one of the 257 sequences");
	assert_brought(&page_op, &problems[0], 4, 0, -2, "holds -2 at [0]");
	assert_brought(&page_op, &problems[0], 4, 5, -1, NULL);
	assert_brought(&page_op, &problems[0], 5, 0, -1, "input 'positions' holds -1 at [0], but the pages of sequence");
	assert_brought(&page_op, &problems[0], 5, -1, 1 << 20, "have room for");
	assert_brought(&page_op, &problems[0], 6, 0, -1,
		       "input 'kv_indices' holds -1 at [0], but the caches have only pages 0");
	assert_brought(&page_op, &problems[0], 6, -1, 1 << 20, "the caches have only pages");
	assert_brought(&page_op, &problems[0], 7, 2, 1 << 20, "input 'kv_indptr' holds 1048576 at [2]; expected");
	assert_brought(&page_op, &problems[0], 7, -1, 0, "must not decrease");
	assert_brought(&page_op, &problems[0], 7, 0, -1, "holds -1 at [0]");
	assert_brought(&page_op, &problems[0], 8, 0, 0,
		       "input 'kv_last_page_len' holds 0 at [0], but a last page holds at least 1 and at most 16 "
		       "tokens");
	assert_brought(&page_op, &problems[0], 8, 0, 17, "holds 17 at [0]");
	assert_brought(&page_op, &problems[HND], 6, 2, 1 << 20, "the caches have only pages");
	assert_brought(&page_op, &problems[MLA], 4, 0, 257, "sequences");
	assert_brought(&page_op, &problems[0], 0, 7, (double)NAN, "whole caches are compared");
	assert_brought(&page_op, &problems[0], 3, -1, (double)NAN, "whole caches are compared");
	assert_brought(&page_op, &problems[0], 2, 0, (double)INFINITY, NULL);
}

static void a_number_of_last_pages_other_than_of_sequences_is_reported(void **state)
{
	struct err why = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &page_op, &problems[0], SIZE_MEDIUM, 0, 1));
	t.c.given = 1u << 8;
	t.in[8].data = realloc(t.in[8].data, 4);
	t.in[8].elements = t.in[8].shape[0] = 1;
	assert_int_equal(page_op.check(&t.c, t.in, &why), -1);
	assert_non_null(strstr(why.text, "has 1 lengths and 'kv_indptr' has 258 offsets"));
	trial_close(&t);
}

static void two_tokens_that_a_workload_sends_to_one_place_are_reported(void **state)
{
	struct err why = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &page_op, &problems[0], SIZE_MEDIUM, 0, 1));
	t.c.given = 1u << 5;
	dtype_store(t.in[4].data, DTYPE_INT32, 7, (double)integer(&t, 4, 200));
	dtype_store(t.in[5].data, DTYPE_INT32, 7, (double)integer(&t, 5, 200));
	assert_int_equal(page_op.check(&t.c, t.in, &why), -1);
	assert_non_null(strstr(why.text, "tokens 7 and 200 are both assigned to slot"));
	trial_close(&t);
}

/* Impossible lengths of axes are rejected even before any input exists. */
static void tables_that_are_not_at_hand_are_not_looked_at(void **state)
{
	struct tensor nothing[OP_ARGS];
	struct err why = {""};
	struct trial t;

	(void)state;
	assert_true(trial_open_size(&t, &page_op, &problems[0], SIZE_MEDIUM, 0, 1));
	memcpy(nothing, t.in, sizeof t.in < sizeof nothing ? sizeof t.in : sizeof nothing);
	for (int i = 0; i < problems[0].input_count; i++)
		nothing[i].data = NULL;
	assert_int_equal(page_op.check(&t.c, nothing, &why), 0);
	t.axis[problems[0].inputs[5].axis[0]] = 100000; /* more tokens than the pages have room for */
	assert_int_equal(page_op.check(&t.c, nothing, &why), -1);
	assert_non_null(strstr(why.text, "cannot hold the 100000 tokens"));
	t.c.given = 1u << 5;
	assert_int_equal(page_op.check(&t.c, nothing, &why), 0);
	trial_close(&t);
}

/* The reference may write to a cache if the output has the name of the input, or if a description says so. */
static void caches_may_be_written_if_the_definition_says_so(void **state)
{
	struct op_problem p = problems[HND];
	struct op_case same = {.problem = &problems[0]}, other = {.problem = &p};

	(void)state;
	assert_int_equal(page_op.in_place(&same, 2).place, 0);
	assert_true(page_op.in_place(&same, 2).may_keep);
	assert_int_equal(page_op.in_place(&same, 0).place, OP_KEPT);
	assert_int_equal(page_op.in_place(&other, 2).place, OP_KEPT);
	p.description = "Appends tokens in place.";
	assert_int_equal(page_op.in_place(&other, 2).place, 0);
	assert_false(page_op.in_place(&other, 2).may_keep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(caches_may_be_written_if_the_definition_says_so),
	    cmocka_unit_test(a_correct_reference_passes_for_every_problem_size_and_seed),
	    cmocka_unit_test(every_planted_mistake_fails_at_the_medium_size),
	    cmocka_unit_test(page_tables_are_valid_and_ragged_for_every_seed),
	    cmocka_unit_test(odd_axes_give_a_valid_table_or_a_sentence),
	    cmocka_unit_test(a_place_that_does_not_exist_is_not_written),
	    cmocka_unit_test(outputs_are_found_by_the_caches_names),
	    cmocka_unit_test(what_the_family_does_not_know_is_refused_with_the_reason),
	    cmocka_unit_test(what_is_right_passes_at_every_edge),
	    cmocka_unit_test(what_is_wrong_only_at_the_edge_fails_there),
	    cmocka_unit_test(what_a_workload_must_not_provide_is_reported_with_its_place),
	    cmocka_unit_test(a_number_of_last_pages_other_than_of_sequences_is_reported),
	    cmocka_unit_test(two_tokens_that_a_workload_sends_to_one_place_are_reported),
	    cmocka_unit_test(tables_that_are_not_at_hand_are_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
