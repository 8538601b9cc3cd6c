/* test_gqa_paged - the dataset's gqa_paged definitions are recognised, inputs are valid and difficult, correct
 * references pass, wrong ones fail. */
#include "tests/unit/attention_family.h"

#include "kernels/common/attention/sequence_plan.h"
#include "tests/unit/seeds.h"

extern const struct op gqa_paged_op;

struct shape {
	int64_t heads, kv_heads, dim, page_size;
};
static const struct shape llama = {32, 8, 128, 1}, llama_pages = {32, 8, 128, 64};
/* With these small shapes, cases run fast, and every mistake still changes an output. The caches of `little` have 36928
 * pages. The caches of `little_pages` have fewer pages, because each page has more elements. */
static const struct shape little = {4, 2, 16, 1}, little_pages = {4, 2, 48, 16};

static void add_caches(struct built *b)
{
	add_input(b, "k_cache", DTYPE_BFLOAT16, "num_pages page_size num_kv_heads head_dim");
	add_input(b, "v_cache", DTYPE_BFLOAT16, "num_pages page_size num_kv_heads head_dim");
}

static void start(struct built *b, const char *name, struct shape shape)
{
	start_problem(b, name, "gqa_paged");
	add_axis(b, "num_qo_heads", shape.heads);
	add_axis(b, "num_kv_heads", shape.kv_heads);
	add_axis(b, "head_dim", shape.dim);
	add_axis(b, "page_size", shape.page_size);
	add_axis(b, "num_pages", 0);
	add_axis(b, "len_indptr", 0);
	add_axis(b, "num_kv_indices", 0);
}

/* Builds a problem with the inputs and outputs of the dataset's decode definitions. If a page has more than one key,
 * adds the input kv_last_page_len. */
static void decode(struct built *b, struct shape shape)
{
	start(b, "gqa_paged_decode_h_kv_d_ps", shape);
	add_axis(b, "batch_size", 0);
	add_input(b, "q", DTYPE_BFLOAT16, "batch_size num_qo_heads head_dim");
	add_caches(b);
	add_input(b, "kv_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indices", DTYPE_INT32, "num_kv_indices");
	if (shape.page_size > 1)
		add_input(b, "kv_last_page_len", DTYPE_INT32, "batch_size");
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
	add_output(b, "output", DTYPE_BFLOAT16, "batch_size num_qo_heads head_dim");
	add_output(b, "lse", DTYPE_FLOAT32, "batch_size num_qo_heads");
}

/* `last` is the axis of kv_last_page_len; NULL: the problem has no such input. */
static void prefill(struct built *b, const char *name, struct shape shape, const char *last)
{
	start(b, name, shape);
	add_axis(b, "total_q", 0);
	if (last != NULL && strcmp(last, "batch_size") == 0)
		add_axis(b, "batch_size", 0);
	add_input(b, "q", DTYPE_BFLOAT16, "total_q num_qo_heads head_dim");
	add_caches(b);
	add_input(b, "qo_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indices", DTYPE_INT32, "num_kv_indices");
	if (last != NULL)
		add_input(b, "kv_last_page_len", DTYPE_INT32, last);
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
	add_output(b, "output", DTYPE_BFLOAT16, "total_q num_qo_heads head_dim");
	add_output(b, "lse", DTYPE_FLOAT32, "total_q num_qo_heads");
}

static const char causal_name[] = "gqa_paged_prefill_causal_h_kv_d_ps";

/* --- match -------------------------------------------------------------------------------------------------------- */

static void matches_decode_and_prefill_with_any_page_length(void **state)
{
	static const char *const last[] = {NULL, "len_indptr", "batch_size"};
	struct built b;

	(void)state;
	decode(&b, llama);
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	decode(&b, llama_pages);
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	assert_int_equal(attention_roles_of(&b.problem).last_page_len, 5);
	for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
		prefill(&b, causal_name, llama_pages, last[i]);
		assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
		assert_int_equal(attention_roles_of(&b.problem).last_page_len >= 0, last[i] != NULL);
	}
}

static void the_name_tells_causal_or_not_then_a_tag_then_the_description(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, "gqa_paged_prefill_h32_kv8", llama, NULL);
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	b.problem.description = "A causal mask is applied.";
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	b.tags[0] = "mask:non-causal";
	b.problem.tag_count = 1;
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	b.problem.name = "gqa_paged_prefill_causal_h32_kv8_v2";
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	b.problem.name = "gqa_paged_prefill_noncausal_h32_kv8";
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	decode(&b, llama);
	b.problem.name = "gqa_paged_decode_causal"; /* the only query of a sequence sees all keys, so a causal mask
						     * changes nothing, and the definition is recognised */
	assert_int_equal(gqa_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
}

static void caches_are_distinguished_by_order_and_by_name(void **state)
{
	struct built b;

	(void)state;
	decode(&b, llama);
	assert_int_equal(attention_roles_of(&b.problem).key[0], 1);
	b.inputs[1].name = "v_cache";
	b.inputs[2].name = "k_cache";
	assert_int_equal(attention_roles_of(&b.problem).key[0], 2);
	assert_int_equal(attention_roles_of(&b.problem).value, 1);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	decode(&b, llama);
	b.axes[1].value = 7;
	expect_refused(&gqa_paged_op, &b.problem,
	               "the number of query heads, 32, is not a multiple of the number of key heads, 7");
	decode(&b, llama);
	b.inputs[2].rank = 3;
	expect_refused(&gqa_paged_op, &b.problem,
	               "input 'v_cache' is [num_pages, page_size, num_kv_heads] of bfloat16");
	decode(&b, llama);
	b.inputs[2].dtype = DTYPE_FLOAT16;
	expect_refused(&gqa_paged_op, &b.problem, "one float dtype in all caches");
	decode(&b, llama);
	b.inputs[3].name = "whatever";
	expect_refused(&gqa_paged_op, &b.problem, "'whatever'");
	decode(&b, llama);
	b.problem.input_count--;
	expect_refused(&gqa_paged_op, &b.problem, "softmax scale");
	decode(&b, llama);
	b.outputs[1].dtype = DTYPE_BFLOAT16;
	expect_refused(&gqa_paged_op, &b.problem, "log-sum-exp");
	decode(&b, llama);
	b.axes[2].var = true;
	expect_refused(&gqa_paged_op, &b.problem, "const");
	decode(&b, llama);
	b.inputs[4].optional = true;
	expect_refused(&gqa_paged_op, &b.problem, "expected an input without \"optional\": true");
	decode(&b, llama);
	add_input(&b, "alibi_slopes", DTYPE_FLOAT32, "num_qo_heads");
	expect_refused(&gqa_paged_op, &b.problem, "'alibi_slopes'");
	decode(&b, llama);
	add_input(&b, "window_left", DTYPE_INT32, NULL);
	expect_refused(&gqa_paged_op, &b.problem, "'window_left'");
	decode(&b, llama);
	b.inputs[5].name = "logits_soft_cap";
	expect_refused(&gqa_paged_op, &b.problem, "'logits_soft_cap'");
	decode(&b, llama);
	b.axes[3].value = 65537;
	expect_refused(&gqa_paged_op, &b.problem, "pages of at most 65536 keys");
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static void sequences_and_pages_are_valid_and_contain_difficult_values(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little);
	expect_large_cache(&gqa_paged_op, &b.problem);
	expect_sequences(&gqa_paged_op, &b.problem, false);
	decode(&b, little_pages);
	expect_sequences(&gqa_paged_op, &b.problem, false);
	prefill(&b, causal_name, little, NULL);
	expect_sequences(&gqa_paged_op, &b.problem, true);
	prefill(&b, causal_name, little_pages, "len_indptr");
	expect_sequences(&gqa_paged_op, &b.problem, true);
	prefill(&b, causal_name, little_pages, "batch_size");
	expect_sequences(&gqa_paged_op, &b.problem, true);
}

/* Pages are out of order, and two sequences share some pages. Some last pages are full and some are not. */
static void pages_are_out_of_order_shared_and_partly_filled(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;

	(void)state;
	decode(&b, little_pages);
	rows_of(&gqa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		int64_t falls = 0, twice = 0, partly = 0, full = 0;
		struct tensor *indices, *last;
		struct world w;

		make_inputs(&w, &gqa_paged_op, &b.problem, axis, seed, 0, 0);
		indices = &w.in[input_named(&b.problem, "kv_indices")];
		last = &w.in[input_named(&b.problem, "kv_last_page_len")];
		for (int64_t i = 1; i < indices->elements; i++) {
			falls += attention_integer(indices, i) < attention_integer(indices, i - 1);
			for (int64_t j = 0; j < i; j++)
				twice += attention_integer(indices, i) == attention_integer(indices, j);
		}
		for (int64_t i = 0; i < last->elements; i++) {
			partly += attention_integer(last, i) > 0 && attention_integer(last, i) < 16;
			full += attention_integer(last, i) == 16;
		}
		assert_true(falls > indices->elements / 4 && twice > 0 && partly > 3 && full > 0);
		free_world(&w);
	}
}

static void presets_are_valid_at_every_size_of_the_dataset(void **state)
{
	static const struct shape shapes[] = {{32, 8, 128, 1}, {20, 4, 128, 64}, {5, 1, 128, 1}, {16, 1, 128, 64}};
	int64_t axis[MAX_ROWS * MAX_AXES];

	(void)state;
	for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++)
		for (enum op_size size = SIZE_SMALL; size < SIZE_COUNT; size++) {
			struct shape shape = shapes[i / 2];
			struct built b;

			if (i % 2 == 0)
				decode(&b, shape);
			else
				prefill(&b, causal_name, shape, shape.page_size > 1 ? "len_indptr" : NULL);
			struct attention_roles roles = attention_roles_of(&b.problem);

			for (int r = 0, rows = rows_of(&gqa_paged_op, &b.problem, size, axis); r < rows; r++) {
				struct op_case c = {.problem = &b.problem,
				                    .axis = axis + (size_t)r * (size_t)b.problem.axis_count};
				struct attention_plan plan = attention_plan_of(&c, &roles);

				for (int64_t s = 0; s < plan.batch; s++) {
					int64_t queries = plan.queries[s + 1] - plan.queries[s];
					int64_t pages = plan.entries[s + 1] - plan.entries[s];
					int64_t keys = pages > 0 ? (pages - 1) * shape.page_size + plan.last[s] : 0;

					assert_true(i % 2 == 0 || keys == 0 || keys >= queries);
				}
				assert_true(plan.longest > 1);
				attention_plan_free(&plan);
			}
		}
}

/* If a workload provides the indices, they may refer to any row, so no row is NaN. No length is 0. */
static void provided_indices_meet_no_poison(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;
	struct world w;

	(void)state;
	decode(&b, little_pages);
	rows_of(&gqa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_inputs(&w, &gqa_paged_op, &b.problem, axis, 0, 1u << input_named(&b.problem, "kv_indices"), 0);
	for (int i = 1; i <= 2; i++)
		for (int64_t row = 0; row < w.in[i].elements / 96; row++)
			assert_false(is_nan_row(&w.in[i], row, 96));
	for (int64_t s = 0; s < w.in[5].elements; s++)
		assert_in_range(attention_integer(&w.in[5], s), 1, 16);
	free_world(&w);
}

/* Sets the length of each var axis to the next value of `var`, as a workload may do. Const axes such as heads keep
 * their lengths. */
static void set_axes(const struct built *b, int64_t *axis, const int64_t *var)
{
	for (int a = 0, v = 0; a < b->problem.axis_count; a++)
		axis[a] = b->axes[a].var ? var[v++] : b->axes[a].value;
}

static void odd_axes_give_valid_inputs_or_a_sentence(void **state)
{
	static const int64_t cases[][4] = {
	    {5, 4, 9, 3},   /* fewer pages than indices */
	    {40, 4, 9, 30}, /* more queries than keys */
	    {40, 9, 3, 2},  /* fewer queries, keys and pages than sequences */
	    {3, 1, 0, 0},   /* no sequence */
	    {1, 2, 1, 1},
	};
	int64_t axis[MAX_AXES];
	struct built b;
	struct world w;

	(void)state;
	prefill(&b, causal_name, little, NULL);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct err err = {""};

		set_axes(&b, axis, cases[i]);
		make_inputs(&w, &gqa_paged_op, &b.problem, axis, i, 0, 0);
		assert_int_equal(gqa_paged_op.check(&w.c, w.in, &err), 0);
		assert_int_equal(gqa_paged_op.oracle(&w.c, w.in, w.truth, &err), 0);
		free_world(&w);
	}
	const int64_t no_pages[] = {0, 2, 1, 1};
	struct tensor out;
	struct err err = {""};

	set_axes(&b, axis, no_pages);
	w.c = (struct op_case){.problem = &b.problem, .axis = axis};
	out = make_tensor(&w.c, &b.inputs[5]);
	assert_int_equal(gqa_paged_op.fill(&w.c, 5, &out, &err), -1);
	assert_non_null(strstr(err.text, "the caches have no page"));
	free(out.data);
}

static void indices_that_point_nowhere_are_refused(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;
	struct world w;

	(void)state;
	prefill(&b, causal_name, little_pages, "len_indptr");
	rows_of(&gqa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_world(&w, &gqa_paged_op, &b.problem, axis, 0);
	expect_invalid(&w, "kv_indices", 2, (double)w.in[1].shape[0], "kv_indices has");
	expect_invalid(&w, "kv_indices", 2, -1, "kv_indices has -1");
	expect_invalid(&w, "kv_indptr", 3, 0, "kv_indptr[3] is 0");
	expect_invalid(&w, "kv_indptr", 13, 1e6, "kv_indptr[13] is 1000000");
	expect_invalid(&w, "kv_indptr", 0, 1, "kv_indptr[0] is 1");
	expect_invalid(&w, "qo_indptr", 513, 1e6, "at most 1025, the number of queries");
	expect_invalid(&w, "qo_indptr", 5, 0, "qo_indptr[5] is 0");
	expect_invalid(&w, "kv_last_page_len", 0, 0, "kv_last_page_len[0] is 0");
	expect_invalid(&w, "kv_last_page_len", 0, 17, "the last page of a sequence holds 1 to 16 keys");
	expect_axes_invalid(&w, "num_pages", 0, "but the caches have no page");
	expect_axes_invalid(&w, "len_indptr", 0, "kv_indptr is empty");
	expect_nobodys(&w, "qo_indptr", 5);
	free_world(&w);
	prefill(&b, causal_name, little_pages, "batch_size");
	rows_of(&gqa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_world(&w, &gqa_paged_op, &b.problem, axis, 0);
	expect_axes_invalid(&w, "batch_size", 12, "kv_last_page_len has 12 elements, but there are 513 sequences");
	free_world(&w);
	decode(&b, little);
	rows_of(&gqa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_world(&w, &gqa_paged_op, &b.problem, axis, 0);
	expect_axes_invalid(&w, "len_indptr", 515, "kv_indptr has offsets of 514 sequences, but there are only 513 queries");
	free_world(&w);
}

/* All 64 bits of an int64 index are checked. An index that is invalid only because of its upper 32 bits is rejected,
 * too. */
static void wide_indices_are_looked_at_whole(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;
	struct world w;

	(void)state;
	decode(&b, little_pages);
	for (int i = 3; i <= 5; i++)
		b.inputs[i].dtype = DTYPE_INT64;
	rows_of(&gqa_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_world(&w, &gqa_paged_op, &b.problem, axis, 0);
	expect_invalid(&w, "kv_indices", 0, 0x1p32, "kv_indices has 4294967296");
	expect_invalid(&w, "kv_indptr", 1, 0x1p40, "kv_indptr[1] is 1099511627776");
	expect_invalid(&w, "kv_last_page_len", 0, 0x1p32 + 1, "kv_last_page_len[0] is 4294967297");
	free_world(&w);
	expect_passes(&gqa_paged_op, &b.problem, 3);
}

/* reftest computes the tolerance rule of a case before it knows whether the case fits into memory. Therefore the
 * computation of the rule must need less memory than the case. */
static void bounds_of_a_case_without_end_are_found_at_once(void **state)
{
	const int64_t endless[] = {INT64_C(1) << 40, (INT64_C(1) << 40) + 1, INT64_C(1) << 45, INT64_C(1) << 40};
	int64_t axis[MAX_AXES];
	struct built b;
	struct op_case c = {.problem = &b.problem, .axis = axis};

	(void)state;
	decode(&b, llama_pages);
	c.scalar[6] = 1 / sqrt(128);
	for (int a = 0, v = 0; a < b.problem.axis_count; a++)
		axis[a] = b.axes[a].var ? endless[v++] : b.axes[a].value;
	assert_true(gqa_paged_op.rule(&c, 0).atol > 0);
	assert_true(gqa_paged_op.rule(&c, 0).atol < 0x1p-20);
}

/* --- truth -------------------------------------------------------------------------------------------------------- */

/* The case has one head, two keys, and numbers for which the output can be computed by hand. */
static void the_oracle_is_right_where_the_answer_is_known(void **state)
{
	static const struct shape tiny = {1, 1, 2, 1};
	const int64_t var[] = {2, 2, 2, 1};
	int64_t axis[MAX_AXES];
	struct built b;
	struct world w;
	struct err err = {""};

	(void)state;
	decode(&b, tiny);
	set_axes(&b, axis, var);
	make_inputs(&w, &gqa_paged_op, &b.problem, axis, 0, 0, 0);
	const double query[] = {1, 2}, keys[] = {3, -1, 0, 1}, values[] = {1, 0, 0, 1}, indices[] = {1, 0};

	dtype_store_run(w.in[0].data, DTYPE_BFLOAT16, 0, 2, query);
	dtype_store_run(w.in[1].data, DTYPE_BFLOAT16, 0, 4, keys);
	dtype_store_run(w.in[2].data, DTYPE_BFLOAT16, 0, 4, values);
	dtype_store_run(w.in[4].data, DTYPE_INT32, 0, 2, indices);
	w.c.scalar[5] = log(2); /* the logits are ln 2 * (3 - 2) and ln 2 * 2, so the weights are 2 / 6 and 4 / 6 */
	assert_int_equal(gqa_paged_op.oracle(&w.c, w.in, w.truth, &err), 0);
	assert_float_equal(dtype_load(w.truth[0].data, DTYPE_BFLOAT16, 0), 1.0 / 3, 1e-3);
	assert_float_equal(dtype_load(w.truth[0].data, DTYPE_BFLOAT16, 1), 2.0 / 3, 2e-3);
	assert_float_equal(dtype_load(w.truth[1].data, DTYPE_FLOAT32, 0), log2(6), 1e-6);
	free_world(&w);
}

static void bounds_follow_the_longest_sequence(void **state)
{
	const int64_t few[] = {100, 2, 80, 1}, many[] = {1100000, 2, 1048576, 1};
	int64_t axis[MAX_AXES];
	struct built b;
	struct op_case c = {.problem = &b.problem, .axis = axis};

	(void)state;
	decode(&b, llama);
	c.scalar[5] = 1 / sqrt(128);
	set_axes(&b, axis, few);
	assert_float_equal(gqa_paged_op.rule(&c, 0).atol, 0x1p-12, 0);
	set_axes(&b, axis, many);
	assert_float_equal(gqa_paged_op.rule(&c, 0).atol, 0x1p-13, 0);
}

static void a_correct_reference_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little);
	expect_passes(&gqa_paged_op, &b.problem, MANY_SEEDS);
	decode(&b, little_pages);
	expect_passes(&gqa_paged_op, &b.problem, MANY_SEEDS);
	prefill(&b, causal_name, little, NULL);
	expect_passes(&gqa_paged_op, &b.problem, MANY_SEEDS);
	prefill(&b, causal_name, little_pages, "len_indptr");
	expect_passes(&gqa_paged_op, &b.problem, MANY_SEEDS);
	prefill(&b, "gqa_paged_prefill", little_pages, "batch_size");
	expect_passes(&gqa_paged_op, &b.problem, 5);
	prefill(&b, causal_name, little_pages, NULL); /* a page has several keys, and without kv_last_page_len all pages
						       * are full */
	expect_passes(&gqa_paged_op, &b.problem, 5);
}

static void a_correct_reference_passes_in_other_dtypes(void **state)
{
	static const enum dtype dtypes[] = {DTYPE_FLOAT16, DTYPE_FLOAT32};
	struct built b;

	(void)state;
	for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
		decode(&b, little_pages);
		set_floats(&b, dtypes[i], dtypes[i]);
		expect_passes(&gqa_paged_op, &b.problem, MANY_SEEDS);
		expect_general_mistakes_caught(&gqa_paged_op, &b.problem);
		prefill(&b, causal_name, little, NULL);
		expect_dtypes(&gqa_paged_op, &b, dtypes[i], dtypes[i]);
	}
	decode(&b, little_pages);
	expect_dtypes(&gqa_paged_op, &b, DTYPE_BFLOAT16, DTYPE_FLOAT8_E4M3FN);
	decode(&b, little);
	expect_dtypes(&gqa_paged_op, &b, DTYPE_FLOAT16, DTYPE_FLOAT8_E5M2);
}

static void mistakes_of_decode_are_caught(void **state)
{
	static const enum mistake own[] = {HEADS_TILED, KEYS_FOR_VALUES, TABLE_IGNORED, SEQUENCE_START_IGNORED};
	static const enum mistake of_pages[] = {PLACE_IN_PAGE_IGNORED, LAST_PAGE_TAKEN_AS_FULL, LAST_PAGE_ONE_SHORT,
	                                        LAST_PAGE_ALONE};
	struct built b;

	(void)state;
	decode(&b, little);
	expect_general_mistakes_caught(&gqa_paged_op, &b.problem);
	expect_caught(&gqa_paged_op, &b.problem, own, sizeof own / sizeof *own);
	decode(&b, little_pages);
	expect_general_mistakes_caught(&gqa_paged_op, &b.problem);
	expect_caught(&gqa_paged_op, &b.problem, own, sizeof own / sizeof *own);
	expect_caught(&gqa_paged_op, &b.problem, of_pages, sizeof of_pages / sizeof *of_pages);
}

static void mistakes_of_prefill_are_caught(void **state)
{
	static const enum mistake own[] = {HEADS_TILED,           KEYS_FOR_VALUES,
	                                   TABLE_IGNORED,         SEQUENCE_START_IGNORED,
	                                   PLACE_IN_PAGE_IGNORED, LAST_PAGE_TAKEN_AS_FULL,
	                                   LAST_PAGE_ONE_SHORT,   LAST_PAGE_ALONE};
	static const enum mistake of_masks[] = {MASK_LEFT_OUT, MASK_ALIGNED_AT_START, MASK_ONE_LATE, MASK_ONE_EARLY,
	                                        CHUNKS_FORGET_THEIR_START};
	struct built b;

	(void)state;
	prefill(&b, causal_name, little_pages, "len_indptr");
	expect_general_mistakes_caught(&gqa_paged_op, &b.problem);
	expect_caught(&gqa_paged_op, &b.problem, own, sizeof own / sizeof *own);
	expect_caught(&gqa_paged_op, &b.problem, of_masks, sizeof of_masks / sizeof *of_masks);
	prefill(&b, causal_name, little, NULL);
	expect_caught(&gqa_paged_op, &b.problem, of_masks, sizeof of_masks / sizeof *of_masks);
	prefill(&b, "gqa_paged_prefill", little_pages, "batch_size");
	expect_general_mistakes_caught(&gqa_paged_op, &b.problem);
	expect_caught(&gqa_paged_op, &b.problem, own, sizeof own / sizeof *own);
}

static void edges_are_as_their_conventions_say(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little);
	expect_edges(&gqa_paged_op, &b.problem, 0);
	decode(&b, little_pages);
	expect_edges(&gqa_paged_op, &b.problem, 0);
	prefill(&b, causal_name, little, NULL);
	expect_edges(&gqa_paged_op, &b.problem, 3);
	prefill(&b, causal_name, little_pages, "len_indptr");
	expect_edges(&gqa_paged_op, &b.problem, 4);
	prefill(&b, causal_name, little_pages, NULL);
	expect_edges(&gqa_paged_op, &b.problem, 4);
	prefill(&b, "gqa_paged_prefill", little_pages, "batch_size");
	expect_edges(&gqa_paged_op, &b.problem, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_decode_and_prefill_with_any_page_length),
	    cmocka_unit_test(the_name_tells_causal_or_not_then_a_tag_then_the_description),
	    cmocka_unit_test(caches_are_distinguished_by_order_and_by_name),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(sequences_and_pages_are_valid_and_contain_difficult_values),
	    cmocka_unit_test(pages_are_out_of_order_shared_and_partly_filled),
	    cmocka_unit_test(presets_are_valid_at_every_size_of_the_dataset),
	    cmocka_unit_test(provided_indices_meet_no_poison),
	    cmocka_unit_test(odd_axes_give_valid_inputs_or_a_sentence),
	    cmocka_unit_test(indices_that_point_nowhere_are_refused),
	    cmocka_unit_test(wide_indices_are_looked_at_whole),
	    cmocka_unit_test(the_oracle_is_right_where_the_answer_is_known),
	    cmocka_unit_test(bounds_follow_the_longest_sequence),
	    cmocka_unit_test(bounds_of_a_case_without_end_are_found_at_once),
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_reference_passes_in_other_dtypes),
	    cmocka_unit_test(mistakes_of_decode_are_caught),
	    cmocka_unit_test(mistakes_of_prefill_are_caught),
	    cmocka_unit_test(edges_are_as_their_conventions_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
