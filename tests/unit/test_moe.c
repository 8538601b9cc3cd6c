/* test_moe - moe: the dataset's definitions are recognised with their routing methods, no choice of experts is a
 * near-tie, correct references pass, and wrong ones fail. */
#include "tests/unit/moe_world.h"
#include "tests/unit/seeds.h"

/* --- match -------------------------------------------------------------------------------------------------------- */

static int variant_of(const struct built *b)
{
	struct err why = {""};
	int variant = moe_op.match(&b->problem, &why);

	assert_string_equal(why.text, "");
	return variant;
}

static void matches_every_form_of_the_dataset(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	assert_int_equal(variant_of(&b), MOE_DEEPSEEK | MOE_BLOCKS_FIRST);
	deepseek(&b, flat_name);
	assert_int_equal(variant_of(&b), MOE_DEEPSEEK | MOE_BLOCKS_FIRST);
	renormalised(&b);
	assert_int_equal(variant_of(&b), MOE_RENORMALISE | MOE_BLOCKS_FIRST);
	per_tensor(&b, renorm_text, 2, false);
	assert_int_equal(variant_of(&b), MOE_RENORMALISE);
	per_tensor(&b, llama_text, 1, true);
	assert_int_equal(variant_of(&b), MOE_LLAMA4 | MOE_WEIGHT_ON_INPUT);
	floats(&b);
	assert_int_equal(variant_of(&b), MOE_RENORMALISE);
	routed(&b, renorm_text, DTYPE_INT32, false);
	assert_int_equal(variant_of(&b), MOE_GIVEN);
	routed(&b, llama_text, DTYPE_INT32, false);
	assert_int_equal(variant_of(&b), MOE_GIVEN | MOE_WEIGHT_ON_INPUT);
	routed(&b, "", DTYPE_INT64, true);
	assert_int_equal(variant_of(&b), MOE_GIVEN);
}

static void parts_are_found_by_axes_whatever_their_order(void **state)
{
	struct moe_roles roles;
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	roles = moe_roles_of(&b.problem);
	assert_int_equal(roles.scale1, input_named(&b.problem, "gemm1_weights_scale"));
	assert_int_equal(roles.scale2, input_named(&b.problem, "gemm2_weights_scale"));
	for (int i = 0; i < b.problem.input_count / 2; i++) {
		struct op_arg kept = b.inputs[i];

		b.inputs[i] = b.inputs[b.problem.input_count - 1 - i];
		b.inputs[b.problem.input_count - 1 - i] = kept;
	}
	assert_int_equal(variant_of(&b), MOE_DEEPSEEK | MOE_BLOCKS_FIRST);
	roles = moe_roles_of(&b.problem);
	assert_int_equal(roles.scale1, input_named(&b.problem, "gemm1_weights_scale"));
	assert_int_equal(roles.weights1, input_named(&b.problem, "gemm1_weights"));
	assert_int_equal(roles.weights2, input_named(&b.problem, "gemm2_weights"));
	assert_int_equal(roles.bias, input_named(&b.problem, "routing_bias"));
	assert_int_equal(roles.logits, input_named(&b.problem, "routing_logits"));
	assert_int_equal(roles.hidden_scale, input_named(&b.problem, "hidden_states_scale"));
}

static void expect_refused(const struct built *b, const char *sentence)
{
	struct err why = {""};

	assert_int_equal(moe_op.match(&b->problem, &why), -1);
	if (strstr(why.text, sentence) == NULL)
		fail_msg("'%s' does not say '%s'", why.text, sentence);
}

static void other_problems_are_refused_with_a_sentence(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	b.problem.input_count--;
	expect_refused(&b, "needs a routing bias and a scaling factor");
	deepseek(&b, "moe_topk4_ng5_kg2");
	expect_refused(&b, "32 experts into 5 groups");
	deepseek(&b, "moe_topk40_ng1_kg1");
	expect_refused(&b, "40 of 32 experts");
	deepseek(&b, "moe_topk4_ng16_kg1");
	expect_refused(&b, "each of 2 experts; a group must have at least 2 experts, and the kept groups "
			   "together must have at least the 4");
	renormalised(&b);
	b.problem.name = "moe";
	expect_refused(&b, "does not say how tokens are routed");
	renormalised(&b);
	b.axes[4].value = 97;
	b.axes[4].name = "gemm1_out";
	expect_refused(&b, "'gemm1_weights' is [num_experts, gemm1_out, hidden_size]");
	renormalised(&b);
	b.axes[5].value = 5; /* this number of blocks contradicts the hidden size */
	expect_refused(&b, "expected");
	renormalised(&b);
	b.inputs[2].dtype = DTYPE_UINT8;
	expect_refused(&b, "'gemm1_weights' is [num_experts, gemm1_out_size, hidden_size] of uint8");
	renormalised(&b);
	b.problem.input_count--;
	expect_refused(&b, "only one of the two weight tensors has block scales");
	renormalised(&b);
	add_input(&b, "residual", DTYPE_FLOAT8_E4M3FN, "seq_len hidden_size");
	expect_refused(&b, "'residual'");
	per_tensor(&b, renorm_text, 2, true);
	expect_refused(&b, "must have neither a routing bias");
	per_tensor(&b, renorm_text, 2, false);
	b.problem.input_count--;
	expect_refused(&b, "include 2 of the three factors");
	routed(&b, "", DTYPE_INT64, false);
	expect_refused(&b, "'topk_ids'");
	routed(&b, "", DTYPE_INT32, false);
	add_input(&b, "routing_logits", DTYPE_FLOAT32, "seq_len num_experts");
	expect_refused(&b, "either routing logits");
}

static void numbers_of_a_routing_are_attested(void **state)
{
	struct op_constant found[OP_CONSTANTS];
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	assert_int_equal(moe_op.constants(&b.problem, MOE_DEEPSEEK, found), 3);
	assert_true(found[0].value == 4 && found[1].value == 4 && found[2].value == 2);
	assert_string_equal(found[1].source, "name");
	b.problem.name = "moe_ds_routing";
	b.tags[0] = "model:deepseek-v3";
	b.problem.tag_count = 1;
	assert_int_equal(moe_op.constants(&b.problem, MOE_DEEPSEEK, found), 3);
	assert_true(found[0].value == 8 && found[1].value == 8 && found[2].value == 4);
	assert_string_equal(found[2].source, "model:deepseek-v3");
	b.problem.name = "moe_ds_routing_topk6";
	moe_op.constants(&b.problem, MOE_DEEPSEEK, found);
	assert_string_equal(found[0].conflict, "top_k is 6 according to name, but 8 according to model:deepseek-v3");
	b.problem.tag_count = 0;
	moe_op.constants(&b.problem, MOE_DEEPSEEK, found);
	assert_true(isnan(found[1].value));
	assert_int_equal(moe_op.match(&b.problem, NULL),
			 /* the definition does not state the number of groups; each of its cases reports this */
			 MOE_DEEPSEEK | MOE_BLOCKS_FIRST);
	per_tensor(&b, renorm_text, 2, false);
	assert_int_equal(moe_op.constants(&b.problem, MOE_RENORMALISE, found), 1);
	assert_true(found[0].value == 2);
	assert_string_equal(found[0].source, "axis:top_k");
	routed(&b, "", DTYPE_INT32, false);
	assert_int_equal(moe_op.constants(&b.problem, MOE_GIVEN, found), 0);
}

/* --- routing ------------------------------------------------------------------------------------------------------ */

static void groups_bias_and_factor_decide_as_deepseek_has_it(void **state)
{
	static const double score[8] = {0.9, 0.1, 0.6, 0.5, 0.2, 0.3, 0.8, 0.25};
	static const double bias[8] = {0, 0, 0, 0, 0, 0, -0.5, 0.5};
	const struct routing r = {.method = MOE_DEEPSEEK, .experts = 8, .picks = 2, .groups = 4, .kept = 2, .factor = 2.5};
	int64_t expert[2];
	double weight[2], margin;

	(void)state;
	/* The best two scores of a group, with their bias, sum to 1.0 in group 0, 1.1 in group 1, 0.5 in group 2 and
	 * 1.05 in group 3. Therefore groups 1 and 3 are kept, and expert 0 is not chosen, although it has the highest
	 * score. */
	margin = routing_choose(&r, score, bias, expert, weight);
	assert_int_equal(expert[0], 7);
	assert_int_equal(expert[1], 2);
	assert_true(fabs(weight[0] - 2.5 * 0.25 / 0.85) < 1e-12);
	assert_true(fabs(weight[1] - 2.5 * 0.6 / 0.85) < 1e-12);
	assert_true(fabs(margin - 0.05) < 1e-12);
}

static void decisions_are_clear_and_tokens_go_where_it_tells(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	cases_of(&b.problem, axis);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		struct moe_roles roles = moe_roles_of(&b.problem);
		struct routing r;
		struct world w;
		int visits[8] = {0}, most = 0, negative = 0, company = 0;

		make_world(&w, &moe_op, &b.problem, axis + 2 * b.problem.axis_count, seed);
		assert_int_equal(routing_of(&w.c, &roles, &r, NULL), 0);
		for (int64_t t = 0; t < w.truth[0].shape[0]; t++) {
			double score[32], bias[32], weight[4];
			int64_t expert[4];
			int here = 0;

			for (int e = 0; e < 32; e++) {
				score[e] =
				    1 / (1 + exp(-dtype_load(w.in[roles.logits].data, DTYPE_FLOAT32, t * 32 + e)));
				bias[e] = dtype_load(w.in[roles.bias].data, DTYPE_BFLOAT16, e);
			}
			assert_true(routing_choose(&r, score, bias, expert, weight) > 1e-4);
			for (int k = 0; k < 4; k++)
				if (expert[k] >= 16 && expert[k] < 24) {
					here++;
					visits[expert[k] - 16]++;
				}
			negative += here > 0 && score[expert[3]] + bias[expert[3]] < 0;
			company += here > 0;
			if (t % 8 == 3 || (t >= 16 && t % 2 != 0))
				assert_int_equal(here, 0);
		}
		assert_in_range(company, 250, 264); /* 14 of the first 16 tokens, and about half of the other tokens,
						     * should have a local expert */
		assert_true(negative > 0);
		for (int l = 0; l < 8; l++)
			most = visits[l] > most ? visits[l] : most;
		assert_true(most >= 10); /* one of the local experts gets many tokens */
		free_world(&w);
	}
}

/* One token in 16 lists an expert twice. */
static void chosen_experts_are_valid_and_mostly_different(void **state)
{
	enum { PICKS = 3 };
	int64_t axis[MAX_CASES * MAX_AXES];
	struct built b;

	(void)state;
	routed(&b, "", DTYPE_INT32, false);
	cases_of(&b.problem, axis);
	for (uint64_t seed = 0; seed < MANY_SEEDS; seed++) {
		const int32_t *ids;
		bool negative = false;
		int64_t same = 0;
		struct world w;

		make_world(&w, &moe_op, &b.problem, axis + 2 * b.problem.axis_count, seed);
		ids = w.in[0].data;
		for (int64_t i = 0; i < w.in[0].elements; i++) {
			float weight = float_from_bf16((uint16_t)(ids[i] & 0xffff));

			assert_true(ids[i] >> 16 >= 0 && ids[i] >> 16 < 16 && fabsf(weight) > 0 && fabsf(weight) <= 1);
			negative |= weight < 0;
			for (int64_t j = i / PICKS * PICKS; j < i; j++)
				same += ids[i] >> 16 == ids[j] >> 16;
		}
		assert_true(negative);
		assert_int_equal(same, (w.in[0].elements / PICKS + 6) / 16);
		free_world(&w);
	}
}

/* --- inputs that a workload provides ------------------------------------------------------------------------------ */

static void expect_invalid(struct world *w, int input, int64_t index, double value, const char *sentence)
{
	double kept = dtype_load(w->in[input].data, w->in[input].dtype, index);
	struct err err = {""};

	dtype_store(w->in[input].data, w->in[input].dtype, index, value);
	assert_int_equal(moe_op.check(&w->c, w->in, &err), -1);
	if (strstr(err.text, sentence) == NULL)
		fail_msg("'%s' does not say '%s'", err.text, sentence);
	dtype_store(w->in[input].data, w->in[input].dtype, index, kept);
	assert_int_equal(moe_op.check(&w->c, w->in, &err), 0);
}

static void experts_that_are_not_there_and_values_that_are_none_are_refused(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct err err = {""};
	struct built b;
	struct world w;

	(void)state;
	routed(&b, "", DTYPE_INT32, false);
	cases_of(&b.problem, axis);
	make_world(&w, &moe_op, &b.problem, axis, 0);
	expect_invalid(&w, 0, 1, 16 << 16 | 0x3f80, "topk_ids lists expert 16 at flat index 1");
	expect_invalid(&w, 0, 1, -65536 + 0x3f80, "lists expert -1");
	expect_invalid(&w, 0, 2, 1 << 16 | 0x7fc0, "a routing weight that is NaN");
	expect_invalid(&w, 1, 5, NAN, "hidden_states has a value that is NaN");
	expect_invalid(&w, 2, 5, INFINITY, "gemm1_weights has a value");
	free_world(&w);
	deepseek(&b, grouped_name);
	cases_of(&b.problem, axis);
	make_world(&w, &moe_op, &b.problem, axis, 0);
	expect_invalid(&w, input_named(&b.problem, "routing_logits"), 3, NAN, "routing_logits has a value");
	expect_invalid(&w, input_named(&b.problem, "gemm2_weights"), 3, NAN, "gemm2_weights has a value");
	w.c.scalar[input_named(&b.problem, "local_expert_offset")] = 25;
	assert_int_equal(moe_op.check(&w.c, w.in, &err), -1);
	assert_non_null(strstr(err.text, "8 experts from number 25 on, but there are only 32 experts"));
	assert_int_equal(moe_op.oracle(&w.c, w.in, &w.truth[0], &err), 0); /* the oracle reads only experts that
									    * exist */
	w.c.scalar[input_named(&b.problem, "local_expert_offset")] = 1e300;
	assert_int_equal(moe_op.oracle(&w.c, w.in, &w.truth[0], &err), 0);
	free_world(&w);
}

static void bounds_know_which_inputs_a_workload_provides(void **state)
{
	int64_t axis[MAX_AXES];
	struct op_case c = {.axis = axis};
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	c.problem = &b.problem;
	moe_op.sizes(&b.problem, 0, SIZE_LARGE, axis, 1);
	c.scalar[input_named(&b.problem, "routed_scaling_factor")] = 2.5;
	assert_true(moe_op.rule(&c, 0).hit_ratio == 1 && moe_op.rule(&c, 0).atol == 2.5 * 0x1p-14);
	c.given = 1u << input_named(&b.problem, "routing_logits");
	assert_true(moe_op.rule(&c, 0).hit_ratio == 1 - 4.0 / 1024);
	c.given = 1u << input_named(&b.problem, "gemm1_weights");
	assert_true(moe_op.rule(&c, 0).hit_ratio == 0.999);
	moe_op.sizes(&b.problem, 0, SIZE_SMALL, axis, 1);
	c.given = 1u << input_named(&b.problem, "routing_logits");
	assert_true(moe_op.rule(&c, 0).hit_ratio == 1);
}

/* A workload may give the var axes any lengths, even lengths that contradict each other. */
static void sizes_that_do_not_fit_together_are_refused(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct err err = {""};
	struct built b;
	struct world w;

	(void)state;
	renormalised(&b);
	cases_of(&b.problem, axis);
	make_world(&w, &moe_op, &b.problem, axis, 0);
	w.axis[5] = 5;
	assert_int_equal(moe_op.fill(&w.c, 0, &w.in[0], &err), -1);
	assert_non_null(strstr(err.text, "64 rows or columns cannot be divided evenly among the 5 scales"));
	assert_int_equal(moe_op.oracle(&w.c, w.in, &w.truth[0], &err), -1);
	w.axis[5] = 4;
	w.axis[4] = 95;
	assert_int_equal(moe_op.fill(&w.c, 0, &w.in[0], &err), -1);
	assert_non_null(strstr(err.text, "the weights of the first matrix product have 95 rows, and those of the "
					 "second have 48 columns"));
	free_world(&w);
	routed(&b, "", DTYPE_INT32, false);
	cases_of(&b.problem, axis);
	make_world(&w, &moe_op, &b.problem, axis, 0);
	w.axis[1] = 0;
	assert_int_equal(moe_op.fill(&w.c, 0, &w.in[0], &err), -1);
	assert_non_null(strstr(err.text, "number of experts is 0"));
	free_world(&w);
	deepseek(&b, grouped_name);
	cases_of(&b.problem, axis);
	make_world(&w, &moe_op, &b.problem, axis, 0);
	w.axis[2] = 0;
	assert_true(moe_op.scalar(&w.c, input_named(&b.problem, "local_expert_offset")) == 0);
	free_world(&w);
}

static void many_weights_make_one_small_case(void **state)
{
	int64_t axis[MAX_CASES * MAX_AXES];
	struct built b;

	(void)state;
	renormalised(&b);
	assert_int_equal(moe_op.sizes(&b.problem, 0, SIZE_SMALL, axis, MAX_CASES), 2);
	b.axes[1].value = 128;
	b.axes[2].value = 7168;
	b.axes[3].value = 2048;
	assert_int_equal(moe_op.sizes(&b.problem, 0, SIZE_SMALL, axis, MAX_CASES), 1);
}

/* --- references --------------------------------------------------------------------------------------------------- */

static void a_correct_reference_passes_for_every_seed(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	expect_passes(&b.problem);
	deepseek(&b, flat_name);
	expect_passes(&b.problem);
	renormalised(&b);
	expect_passes(&b.problem);
	per_tensor(&b, renorm_text, 2, false);
	expect_passes(&b.problem);
	per_tensor(&b, llama_text, 1, true);
	expect_passes(&b.problem);
	floats(&b);
	expect_passes(&b.problem);
	routed(&b, "", DTYPE_INT32, false);
	expect_passes(&b.problem);
	routed(&b, llama_text, DTYPE_INT64, true);
	expect_passes(&b.problem);
}

static void mistakes_are_caught(void **state)
{
	struct built b;

	(void)state;
	deepseek(&b, grouped_name);
	expect_caught(&b.problem, RIGHT, ROUTING_MISTAKES);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, GENERAL_MISTAKES, BLOCK_MISTAKES);
	renormalised(&b);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, GENERAL_MISTAKES, BLOCK_MISTAKES);
	per_tensor(&b, renorm_text, 2, false);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, BLOCK_MISTAKES, FACTOR_MISTAKES);
	per_tensor(&b, llama_text, 1, true);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	expect_caught(&b.problem, BLOCK_MISTAKES, FACTOR_MISTAKES);
	floats(&b);
	expect_caught(&b.problem, ROUTING_MISTAKES, GENERAL_MISTAKES);
	routed(&b, renorm_text, DTYPE_INT32, false);
	expect_caught(&b.problem, ONE_TOO_MANY, GENERAL_MISTAKES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(matches_every_form_of_the_dataset),
	    cmocka_unit_test(parts_are_found_by_axes_whatever_their_order),
	    cmocka_unit_test(other_problems_are_refused_with_a_sentence),
	    cmocka_unit_test(numbers_of_a_routing_are_attested),
	    cmocka_unit_test(groups_bias_and_factor_decide_as_deepseek_has_it),
	    cmocka_unit_test(decisions_are_clear_and_tokens_go_where_it_tells),
	    cmocka_unit_test(chosen_experts_are_valid_and_mostly_different),
	    cmocka_unit_test(experts_that_are_not_there_and_values_that_are_none_are_refused),
	    cmocka_unit_test(bounds_know_which_inputs_a_workload_provides),
	    cmocka_unit_test(sizes_that_do_not_fit_together_are_refused),
	    cmocka_unit_test(many_weights_make_one_small_case),
	    cmocka_unit_test(a_correct_reference_passes_for_every_seed),
	    cmocka_unit_test(mistakes_are_caught),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
