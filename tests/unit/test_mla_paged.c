/* test_mla_paged - the dataset's mla_paged definitions are recognised, inputs are valid and difficult, correct
 * references pass, wrong ones fail. */
#include "tests/unit/attention_family.h"

extern const struct op mla_paged_op;

struct shape {
	int64_t heads, latent, rotary, page_size;
};
static const struct shape deepseek = {16, 512, 64, 1}, deepseek_pages = {16, 512, 64, 64};
/* With these small shapes, cases run fast, and every mistake still changes an output. The caches of `little` have 36928
 * pages. The caches of `little_pages` have fewer pages, because each page has more elements. */
static const struct shape little = {3, 32, 8, 1}, little_pages = {3, 96, 8, 16};

static void start(struct built *b, const char *name, struct shape shape, const char *queries)
{
	char nope[64], pe[64];

	snprintf(nope, sizeof nope, "%s num_qo_heads head_dim_ckv", queries);
	snprintf(pe, sizeof pe, "%s num_qo_heads head_dim_kpe", queries);
	start_problem(b, name, "mla_paged");
	add_axis(b, queries, 0);
	add_axis(b, "num_qo_heads", shape.heads);
	add_axis(b, "head_dim_ckv", shape.latent);
	add_axis(b, "head_dim_kpe", shape.rotary);
	add_axis(b, "page_size", shape.page_size);
	add_axis(b, "num_pages", 0);
	add_axis(b, "len_indptr", 0);
	add_axis(b, "num_kv_indices", 0);
	add_input(b, "q_nope", DTYPE_BFLOAT16, nope);
	add_input(b, "q_pe", DTYPE_BFLOAT16, pe);
	add_input(b, "ckv_cache", DTYPE_BFLOAT16, "num_pages page_size head_dim_ckv");
	add_input(b, "kpe_cache", DTYPE_BFLOAT16, "num_pages page_size head_dim_kpe");
	add_output(b, "output", DTYPE_BFLOAT16, nope);
	add_output(b, "lse", DTYPE_FLOAT32, nope);
	b->outputs[1].rank = 2;
}

static void finish(struct built *b, struct shape shape, const char *last)
{
	add_input(b, "kv_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indices", DTYPE_INT32, "num_kv_indices");
	if (shape.page_size > 1)
		add_input(b, "kv_last_page_len", DTYPE_INT32, last);
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
}

/* Builds a problem with the inputs and outputs of the dataset's decode definitions. If a page has more than one key,
 * there is also the input kv_last_page_len. */
static void decode(struct built *b, struct shape shape)
{
	start(b, "mla_paged_decode_h_ckv_kpe_ps", shape, "batch_size");
	finish(b, shape, "batch_size");
}

static const char causal_name[] = "mla_paged_prefill_causal_h_ckv_kpe_ps",
		  full_name[] = "mla_paged_prefill_h_ckv_kpe_ps";

static void prefill(struct built *b, const char *name, struct shape shape)
{
	start(b, name, shape, "total_q");
	add_input(b, "qo_indptr", DTYPE_INT32, "len_indptr");
	add_axis(b, "batch_size", 0);
	finish(b, shape, "batch_size");
}

static void matches_decode_and_prefill_with_any_page_size(void **state)
{
	struct attention_roles roles;
	struct built b;

	(void)state;
	decode(&b, deepseek);
	assert_int_equal(mla_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	decode(&b, deepseek_pages);
	assert_int_equal(mla_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	prefill(&b, causal_name, deepseek);
	assert_int_equal(mla_paged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	prefill(&b, causal_name, deepseek_pages);
	assert_int_equal(mla_paged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	prefill(&b, full_name, deepseek_pages);
	assert_int_equal(mla_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	roles = attention_roles_of(&b.problem);
	assert_int_equal(roles.value, roles.key[0]);
}

static void parts_are_found_by_shape_whatever_their_names_and_order(void **state)
{
	struct attention_roles roles;
	struct op_arg first;
	struct built b;

	(void)state;
	decode(&b, deepseek);
	first = b.inputs[0];
	b.inputs[0] = b.inputs[3];
	b.inputs[3] = first;
	b.inputs[0].name = b.inputs[1].name = b.inputs[2].name = b.inputs[3].name = "x";
	assert_int_equal(mla_paged_op.match(&b.problem, NULL), ATTENTION_FULL);
	roles = attention_roles_of(&b.problem);
	assert_int_equal(roles.query[0], 3);
	assert_int_equal(roles.query[1], 1);
	assert_int_equal(roles.key[0], 2);
	assert_int_equal(roles.key[1], 0);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	decode(&b, deepseek);
	b.inputs[1].axis[2] = 4; /* the last axis is the page size instead of the head dimension */
	expect_refused(&mla_paged_op, &b.problem, "'kpe_cache'");
	decode(&b, deepseek);
	b.problem.inputs = b.inputs + 1;
	b.problem.input_count--;
	expect_refused(&mla_paged_op, &b.problem, "the latent and the rotary part");
	decode(&b, deepseek);
	b.inputs[3].dtype = DTYPE_FLOAT16;
	expect_refused(&mla_paged_op, &b.problem, "one float dtype in all caches");
	decode(&b, deepseek);
	add_input(&b, "bias", DTYPE_FLOAT32, "num_qo_heads head_dim_ckv");
	expect_refused(&mla_paged_op, &b.problem, "'bias'");
}

static void sequences_and_pages_are_valid_and_contain_difficult_values(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little);
	expect_large_cache(&mla_paged_op, &b.problem);
	expect_sequences(&mla_paged_op, &b.problem, false);
	decode(&b, little_pages);
	expect_sequences(&mla_paged_op, &b.problem, false);
	prefill(&b, causal_name, little_pages);
	expect_sequences(&mla_paged_op, &b.problem, true);
}

static void indices_that_point_nowhere_are_refused(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;
	struct world w;

	(void)state;
	decode(&b, little_pages);
	rows_of(&mla_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_world(&w, &mla_paged_op, &b.problem, axis, 0);
	expect_invalid(&w, "kv_indices", 0, (double)w.in[2].shape[0], "kv_indices has");
	expect_invalid(&w, "kv_indptr", 9, 1e6, "page numbers");
	expect_invalid(&w, "kv_indptr", 0, -1, "kv_indptr[0] is -1, not 0");
	expect_invalid(&w, "kv_indptr", 5, 0, "kv_indptr[5] is 0");
	expect_invalid(&w, "kv_last_page_len", 3, 17, "the last page of a sequence holds 1 to 16 keys");
	expect_invalid(&w, "kv_last_page_len", 3, 0, "kv_last_page_len[3] is 0");
	expect_axes_invalid(&w, "num_pages", 0, "but the caches have no page");
	free_world(&w);
	prefill(&b, causal_name, little_pages);
	rows_of(&mla_paged_op, &b.problem, SIZE_MEDIUM, axis);
	make_world(&w, &mla_paged_op, &b.problem, axis, 0);
	expect_invalid(&w, "qo_indptr", 513, 770, "at most 769, the number of queries");
	expect_nobodys(&w, "qo_indptr", 3);
	free_world(&w);
}

static void a_correct_reference_passes_in_other_dtypes(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little_pages);
	expect_dtypes(&mla_paged_op, &b, DTYPE_FLOAT16, DTYPE_FLOAT16);
	prefill(&b, causal_name, little);
	expect_dtypes(&mla_paged_op, &b, DTYPE_FLOAT32, DTYPE_FLOAT32);
	decode(&b, little);
	expect_dtypes(&mla_paged_op, &b, DTYPE_BFLOAT16, DTYPE_FLOAT8_E4M3FN);
}

/* The scale is 1 / sqrt(d), where d is the head dimension before a projection was absorbed, not the latent
 * dimension. */
static void the_scale_is_that_of_unabsorbed_heads(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct built b;
	struct op_case c = {.problem = &b.problem, .axis = axis};

	(void)state;
	decode(&b, deepseek);
	rows_of(&mla_paged_op, &b.problem, SIZE_SMALL, axis);
	assert_true(mla_paged_op.scalar(&c, 6) == 1 / sqrt(192));
	c.contents = CONTENTS_SECOND;
	assert_true(mla_paged_op.scalar(&c, 6) != 1 / sqrt(192));
}

static void a_correct_reference_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little);
	expect_passes(&mla_paged_op, &b.problem, MANY_SEEDS);
	decode(&b, little_pages);
	expect_passes(&mla_paged_op, &b.problem, MANY_SEEDS);
	prefill(&b, causal_name, little);
	expect_passes(&mla_paged_op, &b.problem, MANY_SEEDS);
	prefill(&b, causal_name, little_pages);
	expect_passes(&mla_paged_op, &b.problem, MANY_SEEDS);
	decode(&b, deepseek_pages);
	expect_passes(&mla_paged_op, &b.problem, 2);
}

static void mistakes_are_caught(void **state)
{
	static const enum mistake own[] = {TABLE_IGNORED, SEQUENCE_START_IGNORED, ROTARY_PART_LEFT_OUT,
	                                   ROTARY_PART_NOT_SCALED, SCALE_OF_THE_LATENT};
	static const enum mistake of_pages[] = {PLACE_IN_PAGE_IGNORED, LAST_PAGE_TAKEN_AS_FULL, LAST_PAGE_ONE_SHORT,
	                                        LAST_PAGE_ALONE};
	static const enum mistake of_masks[] = {MASK_LEFT_OUT, MASK_ALIGNED_AT_START, MASK_ONE_LATE, MASK_ONE_EARLY};
	struct built b;

	(void)state;
	decode(&b, little);
	expect_general_mistakes_caught(&mla_paged_op, &b.problem);
	expect_caught(&mla_paged_op, &b.problem, own, sizeof own / sizeof *own);
	decode(&b, little_pages);
	expect_general_mistakes_caught(&mla_paged_op, &b.problem);
	expect_caught(&mla_paged_op, &b.problem, own, sizeof own / sizeof *own);
	expect_caught(&mla_paged_op, &b.problem, of_pages, sizeof of_pages / sizeof *of_pages);
	prefill(&b, causal_name, little_pages);
	expect_general_mistakes_caught(&mla_paged_op, &b.problem);
	expect_caught(&mla_paged_op, &b.problem, own, sizeof own / sizeof *own);
	expect_caught(&mla_paged_op, &b.problem, of_pages, sizeof of_pages / sizeof *of_pages);
	expect_caught(&mla_paged_op, &b.problem, of_masks, sizeof of_masks / sizeof *of_masks);
	prefill(&b, full_name, little);
	expect_general_mistakes_caught(&mla_paged_op, &b.problem);
}

static void edges_are_as_their_conventions_say(void **state)
{
	struct built b;

	(void)state;
	decode(&b, little);
	expect_edges(&mla_paged_op, &b.problem, 0);
	prefill(&b, causal_name, little);
	expect_edges(&mla_paged_op, &b.problem, 3);
	prefill(&b, causal_name, little_pages);
	expect_edges(&mla_paged_op, &b.problem, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_decode_and_prefill_with_any_page_size),
	    cmocka_unit_test(parts_are_found_by_shape_whatever_their_names_and_order),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(sequences_and_pages_are_valid_and_contain_difficult_values),
	    cmocka_unit_test(indices_that_point_nowhere_are_refused),
	    cmocka_unit_test(the_scale_is_that_of_unabsorbed_heads),
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_reference_passes_in_other_dtypes),
	    cmocka_unit_test(mistakes_are_caught),
	    cmocka_unit_test(edges_are_as_their_conventions_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
