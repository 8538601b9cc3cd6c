/* test_mla_ragged - the dataset's mla_ragged definitions are recognised, inputs are valid and difficult, correct
 * references pass, wrong ones fail. */
#include "tests/unit/attention_family.h"

extern const struct op mla_ragged_op;

static const char causal_name[] = "mla_ragged_prefill_causal_h_qk_vo", full_name[] = "mla_ragged_prefill_h_qk_vo";

/* Builds a problem with the inputs and outputs of the dataset's mla_ragged definitions. */
static void prefill(struct built *b, const char *name, int64_t heads, int64_t qk, int64_t vo)
{
	start_problem(b, name, "mla_ragged");
	add_axis(b, "num_qo_heads", heads);
	add_axis(b, "num_kv_heads", heads);
	add_axis(b, "qk_dim", qk);
	add_axis(b, "vo_dim", vo);
	add_axis(b, "total_q", 0);
	add_axis(b, "total_kv", 0);
	add_axis(b, "len_indptr", 0);
	add_input(b, "q", DTYPE_BFLOAT16, "total_q num_qo_heads qk_dim");
	add_input(b, "k", DTYPE_BFLOAT16, "total_kv num_kv_heads qk_dim");
	add_input(b, "v", DTYPE_BFLOAT16, "total_kv num_kv_heads vo_dim");
	add_input(b, "qo_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "kv_indptr", DTYPE_INT32, "len_indptr");
	add_input(b, "sm_scale", DTYPE_FLOAT32, NULL);
	add_output(b, "output", DTYPE_BFLOAT16, "total_q num_qo_heads vo_dim");
	add_output(b, "lse", DTYPE_FLOAT32, "total_q num_qo_heads");
}

static void matches_what_the_dataset_has(void **state)
{
	struct op_case c = {0};
	struct built b;
	int64_t axis[MAX_AXES];

	(void)state;
	prefill(&b, causal_name, 16, 192, 128);
	assert_int_equal(mla_ragged_op.match(&b.problem, NULL), ATTENTION_CAUSAL);
	for (int a = 0; a < b.problem.axis_count; a++)
		axis[a] = b.axes[a].var ? 2 : b.axes[a].value;
	c.problem = &b.problem;
	c.axis = axis;
	assert_true(mla_ragged_op.scalar(&c, 5) == 1 / sqrt(192));
	prefill(&b, full_name, 8, 192, 128);
	assert_int_equal(mla_ragged_op.match(&b.problem, NULL), ATTENTION_FULL);
}

/* A value must have the length of the output, and a key the length of the query. If keys have the length of values, or
 * values have the length of keys, the shapes do not match. */
static void parts_that_do_not_fit_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 16, 192, 128);
	b.inputs[2] = make_arg(&b, "v", DTYPE_BFLOAT16, "total_kv num_kv_heads qk_dim");
	expect_refused(&mla_ragged_op, &b.problem, "input 'v' is [total_kv, num_kv_heads, qk_dim]");
	prefill(&b, causal_name, 16, 192, 128);
	b.inputs[1] = make_arg(&b, "k", DTYPE_BFLOAT16, "total_kv num_kv_heads vo_dim");
	expect_refused(&mla_ragged_op, &b.problem, "input 'k' is [total_kv, num_kv_heads, vo_dim]");
	prefill(&b, causal_name, 16, 192, 128);
	b.axes[1].value = 12;
	expect_refused(&mla_ragged_op, &b.problem, "is not a multiple of the number of key heads");
	prefill(&b, causal_name, 16, 192, 128);
	b.problem.output_count = 0;
	expect_refused(&mla_ragged_op, &b.problem, "expected an output [queries");
}

static void sequences_are_valid_and_contain_difficult_lengths(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 2, 24, 16);
	expect_sequences(&mla_ragged_op, &b.problem, true);
}

static void offsets_that_point_nowhere_are_refused(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 2, 24, 16);
	expect_ragged_offsets_refused(&mla_ragged_op, &b.problem);
}

static void a_correct_reference_passes_in_other_dtypes(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 2, 24, 16);
	expect_dtypes(&mla_ragged_op, &b, DTYPE_FLOAT16, DTYPE_FLOAT16);
	prefill(&b, full_name, 2, 24, 16);
	expect_dtypes(&mla_ragged_op, &b, DTYPE_FLOAT32, DTYPE_FLOAT32);
}

static void a_correct_reference_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 2, 24, 16);
	expect_passes(&mla_ragged_op, &b.problem, MANY_SEEDS);
	prefill(&b, full_name, 2, 24, 16);
	expect_passes(&mla_ragged_op, &b.problem, MANY_SEEDS);
}

static void mistakes_are_caught(void **state)
{
	static const enum mistake own[] = {SEQUENCE_START_IGNORED, MASK_LEFT_OUT,  MASK_ALIGNED_AT_START,
	                                   MASK_ONE_LATE,          MASK_ONE_EARLY, CHUNKS_FORGET_THEIR_START};
	struct built b;

	(void)state;
	prefill(&b, causal_name, 2, 24, 16);
	expect_general_mistakes_caught(&mla_ragged_op, &b.problem);
	expect_caught(&mla_ragged_op, &b.problem, own, sizeof own / sizeof *own);
	prefill(&b, full_name, 2, 24, 16);
	expect_general_mistakes_caught(&mla_ragged_op, &b.problem);
}

static void edges_are_as_their_conventions_say(void **state)
{
	struct built b;

	(void)state;
	prefill(&b, causal_name, 2, 24, 16);
	expect_edges(&mla_ragged_op, &b.problem, 3);
	prefill(&b, full_name, 2, 24, 16);
	expect_edges(&mla_ragged_op, &b.problem, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_what_the_dataset_has),
	    cmocka_unit_test(parts_that_do_not_fit_are_refused_with_a_sentence),
	    cmocka_unit_test(sequences_are_valid_and_contain_difficult_lengths),
	    cmocka_unit_test(offsets_that_point_nowhere_are_refused),
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(a_correct_reference_passes_in_other_dtypes),
	    cmocka_unit_test(mistakes_are_caught),
	    cmocka_unit_test(edges_are_as_their_conventions_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
