/* test_gqa_ragged - the dataset's gqa_ragged definitions are recognised, inputs are valid and difficult, correct
 * references pass, wrong ones fail. */
#include "tests/unit/attention_family.h"

extern const struct op gqa_ragged_op;

static const char causal_name[] = "gqa_ragged_prefill_causal_h_kv_d", full_name[] = "gqa_ragged_prefill_h_kv_d";

/* Builds a problem with the inputs and outputs of the dataset's gqa_ragged definitions. */
static void prefill(struct built *b, const char *name, int64_t heads, int64_t kv_heads, int64_t dim)
{
	start_problem(b, name, "gqa_ragged");
	add_axis(b, "num_qo_heads", heads);
	add_axis(b, "num_kv_heads", kv_heads);
	add_axis(b, "head_dim", dim);
	add_axis(b, "len_indptr", 0);
	add_axis(b, "total_q", 0);
	add_axis(b, "total_kv", 0);
	add_input(b, "q", DTYPE_BFLOAT16, "total_q num_qo_heads head_dim");
	add_input(b, "k", DTYPE_BFLOAT16, "total_kv num_kv_heads head_dim");
	add_input(b, "v", DTYPE_BFLOAT16, "total_kv num_kv_heads head_dim");
	add_input(b, "qo_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
	add_output(b, "output", DTYPE_BFLOAT16, "total_q num_qo_heads head_dim");
	add_output(b, "lse", DTYPE_FLOAT32, "total_q num_qo_heads");
}

static void matches_causal_and_not_at_any_head_size(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 32, 8, 128);
	assert_int_equal(gqa_ragged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	prefill(&b, causal_name, 8, 1, 256);
	assert_int_equal(gqa_ragged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	prefill(&b, full_name, 32, 8, 128);
	assert_int_equal(gqa_ragged_op.match(&b.problem, NULL), ATTENTION_FULL);
	b.problem.output_count = 1; /* the definition has no output lse */
	assert_int_equal(gqa_ragged_op.match(&b.problem, NULL), ATTENTION_FULL);
	assert_int_equal(attention_roles_of(&b.problem).lse, -1);
}

static void parts_are_found_whatever_their_order(void **state)
{
	struct attention_roles roles;
	struct op_arg query;
	struct built b;

	(void)state;
	prefill(&b, causal_name, 32, 8, 128);
	query = b.inputs[0];
	b.inputs[0] = b.inputs[2];
	b.inputs[2] = query; /* the order of the inputs is now v, k, q */
	b.inputs[3] = make_arg(&b, "kv_indptr", DTYPE_INT32, "len_indptr");
	b.inputs[4] = make_arg(&b, "q_indptr", DTYPE_INT64, "len_indptr");
	assert_int_equal(gqa_ragged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	roles = attention_roles_of(&b.problem);
	assert_int_equal(roles.query[0], 2);
	assert_int_equal(roles.key[0], 1);
	assert_int_equal(roles.value, 0);
	assert_int_equal(roles.qo_indptr, 4);
	assert_int_equal(roles.kv_indptr, 3);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 32, 8, 128);
	b.inputs[1].rank = 2;
	expect_refused(&gqa_ragged_op, &b.problem, "input 'k' is [total_kv, num_kv_heads] of bfloat16");
	prefill(&b, causal_name, 32, 8, 128);
	b.problem.inputs = b.inputs + 1;
	b.problem.input_count--;
	expect_refused(&gqa_ragged_op, &b.problem, "the inputs must include a query, keys and values");
	prefill(&b, causal_name, 32, 8, 128);
	add_input(&b, "kv_indices", DTYPE_INT32, "total_kv");
	expect_refused(&gqa_ragged_op, &b.problem, "expected no page indices");
	prefill(&b, causal_name, 32, 8, 128);
	b.inputs[3].axis[0] = 4;
	expect_refused(&gqa_ragged_op, &b.problem, "'qo_indptr'");
	prefill(&b, causal_name, 32, 8, 128);
	add_input(&b, "sinks", DTYPE_FLOAT32, "num_qo_heads");
	expect_refused(&gqa_ragged_op, &b.problem, "'sinks'");
	prefill(&b, causal_name, 32, 8, 128);
	b.inputs[3] = b.inputs[5]; /* one index vector gives the offsets of queries and keys, as in self-attention */
	b.problem.input_count = 5;
	expect_refused(&gqa_ragged_op, &b.problem, "lack the index vector qo_indptr");
}

static void sequences_are_valid_and_contain_difficult_lengths(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 4, 2, 16);
	expect_sequences(&gqa_ragged_op, &b.problem, true);
}

static void offsets_that_point_nowhere_are_refused(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 4, 2, 16);
	expect_ragged_offsets_refused(&gqa_ragged_op, &b.problem);
}

static void a_correct_reference_passes_in_other_dtypes(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 4, 2, 16);
	expect_dtypes(&gqa_ragged_op, &b, DTYPE_FLOAT16, DTYPE_FLOAT16);
	prefill(&b, full_name, 4, 2, 16);
	expect_dtypes(&gqa_ragged_op, &b, DTYPE_FLOAT32, DTYPE_FLOAT32);
}

static void a_correct_reference_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 4, 2, 16);
	expect_passes(&gqa_ragged_op, &b.problem, MANY_SEEDS);
	prefill(&b, full_name, 3, 1, 16);
	expect_passes(&gqa_ragged_op, &b.problem, MANY_SEEDS);
}

static void mistakes_are_caught(void **state)
{
	static const enum mistake own[] = {HEADS_TILED, KEYS_FOR_VALUES, SEQUENCE_START_IGNORED};
	static const enum mistake of_masks[] = {MASK_LEFT_OUT, MASK_ALIGNED_AT_START, MASK_ONE_LATE, MASK_ONE_EARLY,
	                                        CHUNKS_FORGET_THEIR_START};
	struct built b;

	(void)state;
	prefill(&b, causal_name, 4, 2, 16);
	expect_general_mistakes_caught(&gqa_ragged_op, &b.problem);
	expect_caught(&gqa_ragged_op, &b.problem, own, sizeof own / sizeof *own);
	expect_caught(&gqa_ragged_op, &b.problem, of_masks, sizeof of_masks / sizeof *of_masks);
	prefill(&b, full_name, 4, 2, 16);
	expect_general_mistakes_caught(&gqa_ragged_op, &b.problem);
	expect_caught(&gqa_ragged_op, &b.problem, own, sizeof own / sizeof *own);
	prefill(&b, causal_name, 8, 1, 256);
	expect_general_mistakes_caught(&gqa_ragged_op, &b.problem);
}

/* It is a mistake to use a full mask in place of a causal mask, or a causal mask in place of a full one. */
static void a_mask_that_does_not_belong_is_caught(void **state)
{
	int64_t axis[MAX_ROWS * MAX_AXES];
	struct attention_roles roles;
	struct built b;

	(void)state;
	prefill(&b, full_name, 4, 2, 16);
	roles = attention_roles_of(&b.problem);
	rows_of(&gqa_ragged_op, &b.problem, SIZE_SMALL, axis);
	for (uint64_t seed = 0; seed < SEEDS_OR_ONE(3); seed++) {
		struct world w;

		make_world(&w, &gqa_ragged_op, &b.problem, axis, seed);
		b.problem.name = causal_name;
		assert_true(emulate(&w, &roles, NONE));
		b.problem.name = full_name;
		assert_false(passes(&w, NULL));
		free_world(&w);
	}
}

static void edges_are_as_their_conventions_say(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 4, 2, 16);
	expect_edges(&gqa_ragged_op, &b.problem, 3);
	prefill(&b, full_name, 3, 1, 16);
	expect_edges(&gqa_ragged_op, &b.problem, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_causal_and_not_at_any_head_size),
	    cmocka_unit_test(parts_are_found_whatever_their_order),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(sequences_are_valid_and_contain_difficult_lengths),
	    cmocka_unit_test(offsets_that_point_nowhere_are_refused),
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_reference_passes_in_other_dtypes),
	    cmocka_unit_test(mistakes_are_caught),
	    cmocka_unit_test(a_mask_that_does_not_belong_is_caught),
	    cmocka_unit_test(edges_are_as_their_conventions_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
