/* test_op - the table of op families: the right family is found for each problem, and there is a message for a problem
 * that no family accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "kernels/core/family_candidates.h"
#include "kernels/core/op.h"
#include "kernels/core/shape_match.h"
#include "kernels/core/default_tolerance.h"

static const struct op_axis axes[] = {{"M", true, 0}, {"N", false, 8}, {"K", false, 16}};
static const struct op_arg inputs[] = {{.name = "A", .dtype = DTYPE_FLOAT16, .rank = 2, .axis = {0, 2}},
                                       {.name = "B", .dtype = DTYPE_FLOAT16, .rank = 2, .axis = {1, 2}}};
static const struct op_arg output = {.name = "C", .dtype = DTYPE_FLOAT16, .rank = 2, .axis = {0, 1}};

static struct op_problem gemm_problem(void)
{
	return (struct op_problem){.name = "gemm_n8_k16",
				   .op_type = "gemm",
				   .axes = axes,
				   .axis_count = 3,
				   .inputs = inputs,
				   .input_count = 2,
				   .outputs = &output,
				   .output_count = 1};
}

static void a_family_is_found_by_op_type_and_shapes(void **state)
{
	struct op_problem problem = gemm_problem();
	struct err why = {""};
	int variant = -1;
	const struct op_entry *entry = op_find(&problem, &variant, &why);

	(void)state;
	assert_non_null(entry);
	assert_string_equal(entry->op->name, "gemm");
	assert_int_equal(variant, 0);
	assert_ptr_equal(op_by_name("gemm"), entry);
	assert_null(op_by_name("no such family"));
}

static void an_unknown_op_type_is_named(void **state)
{
	struct op_problem problem = gemm_problem();
	struct err why = {""};
	int variant;

	(void)state;
	problem.op_type = "x";
	assert_null(op_find(&problem, &variant, &why));
	assert_string_equal(why.text, "no op family knows op_type 'x'");
	problem.op_type = "";
	assert_null(op_find(&problem, &variant, &why));
	assert_string_equal(why.text, "the definition has no op_type");
}

static void a_known_op_type_that_does_not_fit_says_what_does_not(void **state)
{
	struct op_problem problem = gemm_problem();
	struct err why = {""};
	int variant;

	(void)state;
	problem.input_count = 1;
	assert_null(op_find(&problem, &variant, &why));
	assert_string_equal(why.text,
			    "no op family can compute the ground truth of this definition (gemm: the definition has 1 inputs and 1 "
			    "outputs; a matrix product has two inputs and one output)");
}

static void an_op_type_that_fits_is_the_only_candidate(void **state)
{
	struct op_problem problem = gemm_problem();
	struct op_candidate list[CANDIDATES_MAX];

	(void)state;
	assert_int_equal(op_candidates(&problem, list, NULL), 1);
	assert_string_equal(list[0].entry->op->name, "gemm");
	assert_string_equal(list[0].op_type, "gemm");
	assert_int_equal(list[0].matched, MATCHED_BY_TYPE);
}

/* Each row is a definition with the shapes of a matrix product and an unknown op_type. */
static void words_of_a_definition_name_its_family(void **state)
{
	static const char *const api[] = {"model:x", "fi_api:flashinfer.gemm.mm"};
	static const struct {
		const char *name, *description;
		int tag_count;
		enum op_matched matched;
	} rows[] = {
	    {"odd_n8", NULL, 0, MATCHED_BY_SHAPES},
	    {"gemm_n8", NULL, 0, MATCHED_BY_WORDS},
	    {"GEMM-n8", NULL, 0, MATCHED_BY_WORDS},
	    {"odd", "A matrix multiplication in float16.", 0, MATCHED_BY_WORDS},
	    {"odd", NULL, 2, MATCHED_BY_WORDS},
	    {"gemms_n8", NULL, 0, MATCHED_BY_SHAPES},            /* "gemm" is not a whole word of the name */
	    {"gemm_relu_n8", NULL, 0, MATCHED_BY_SHAPES},        /* "relu" is a word for another operation */
	    {"odd", "A GEMM followed by a tanh.", 0, MATCHED_BY_SHAPES},
	    {"gemm_softmax", NULL, 0, MATCHED_BY_SHAPES},        /* the name has words of two families */
	    {"gemm_n8", "RMSNorm.", 0, MATCHED_BY_SHAPES},       /* the name has a word of one family, the description a
								  * word of another */
	    {"rmsnorm_n8", NULL, 0, MATCHED_BY_SHAPES},          /* the family rmsnorm needs other shapes */
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct op_problem problem = gemm_problem();
		struct op_candidate list[CANDIDATES_MAX];

		problem.op_type = "";
		problem.name = rows[i].name;
		problem.description = rows[i].description;
		problem.tags = api;
		problem.tag_count = rows[i].tag_count;
		assert_int_equal(op_candidates(&problem, list, NULL), 1);
		assert_string_equal(list[0].entry->op->name, "gemm");
		assert_string_equal(list[0].op_type, "gemm");
		assert_int_equal(list[0].matched, rows[i].matched);
	}
}

static void each_variant_that_matches_by_shapes_is_a_candidate(void **state)
{
	static const struct op_axis wide[] = {{"M", true, 0}, {"W", false, 16}, {"N", false, 8}};
	static const struct op_arg in = {.name = "x", .dtype = DTYPE_FLOAT16, .rank = 2, .axis = {0, 1}};
	static const struct op_arg out = {.name = "y", .dtype = DTYPE_FLOAT16, .rank = 2, .axis = {0, 2}};
	const struct op_problem problem = {.name = "odd", .op_type = "", .axes = wide, .axis_count = 3,
	                                   .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
	struct op_candidate list[CANDIDATES_MAX];
	static const char *const op_types[] = {"silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul"};

	(void)state;
	assert_int_equal(op_candidates(&problem, list, NULL), 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(list[i].entry->op->name, "activation");
		assert_string_equal(list[i].op_type, op_types[i]);
	}
}

static void no_candidate_gives_the_reason(void **state)
{
	struct op_problem problem = gemm_problem();
	struct op_candidate list[CANDIDATES_MAX];
	struct op_axis empty[3];
	struct err why = {""};

	(void)state;
	problem.op_type = "odd";
	problem.output_count = 0;
	assert_int_equal(op_candidates(&problem, list, &why), 0);
	assert_non_null(strstr(why.text, "op_type 'odd'"));
	problem = gemm_problem();
	memcpy(empty, axes, sizeof empty);
	empty[1].value = 0;
	problem.axes = empty;
	assert_int_equal(op_candidates(&problem, list, &why), 0);
	assert_non_null(strstr(why.text, "length 0"));
}

static void the_table_is_in_name_order_with_digests(void **state)
{
	(void)state;
	assert_true(op_count >= 2);
	for (int i = 0; i < op_count; i++) {
		assert_int_equal(strlen(op_table[i].truth_digest), 32);
		assert_int_equal(strlen(op_table[i].inputs_digest), 32);
		if (i > 0)
			assert_true(strcmp(op_table[i - 1].op->name, op_table[i].op->name) < 0);
	}
}

static void default_rules_are_those_of_the_design(void **state)
{
	struct rule half = rule_default(DTYPE_FLOAT16), brain = rule_default(DTYPE_BFLOAT16);
	struct rule eight = rule_default(DTYPE_FLOAT8_E4M3FN), whole = rule_default(DTYPE_INT32);

	(void)state;
	assert_true(half.atol == 1e-3 && half.rtol == 1e-3 && half.hit_ratio == 1);
	assert_true(brain.atol == 8e-3 && brain.rtol == 1e-2 && brain.hit_ratio == 1);
	assert_true(eight.atol == 0.1 && eight.rtol == 0.2 && eight.hit_ratio == 0.85);
	assert_true(whole.atol == 0 && whole.rtol == 0 && whole.hit_ratio == 1);
	assert_true(rule_default(DTYPE_FLOAT32).atol == 1e-5 && rule_default(DTYPE_BOOL).hit_ratio == 1);
}

static void names_are_looked_up_and_shapes_are_reported(void **state)
{
	struct op_problem problem = gemm_problem();
	struct op_arg scalar = {.name = "s", .rank = OP_SCALAR}, zero = {.name = "z", .rank = 0};
	char text[64], small[6];

	(void)state;
	assert_int_equal(op_axis_index(&problem, "K"), 2);
	assert_int_equal(op_axis_index(&problem, "k"), -1);
	assert_int_equal(op_input_index(&problem, "B"), 1);
	assert_int_equal(op_input_index(&problem, ""), -1);
	assert_string_equal(op_shape_text(&problem, &inputs[0], text, sizeof text), "[M, K]");
	assert_string_equal(op_shape_text(&problem, &scalar, text, sizeof text), "a Python scalar");
	assert_string_equal(op_shape_text(&problem, &zero, text, sizeof text), "[]");
	assert_string_equal(op_shape_text(&problem, &inputs[0], small, sizeof small), "[M, K");
}

/* Two const axes with the same length are equal. A var axis is equal only to itself. */
static void axes_are_compared_by_name_or_by_a_value_that_stays(void **state)
{
	static const struct op_axis several[] = {{"M", true, 0}, {"N", false, 8}, {"O", false, 8}, {"P", true, 0}};
	static const struct op_arg a = {.name = "a", .rank = 3, .axis = {0, 1, 2}}, b = {.name = "b", .rank = 2, .axis = {2, 1}};
	struct op_problem problem = {.axes = several, .axis_count = 4};

	(void)state;
	assert_true(match_same_axis(&problem, 0, 0) && match_same_axis(&problem, 1, 2));
	assert_false(match_same_axis(&problem, 0, 3) || match_same_axis(&problem, 0, 1));
	assert_true(match_same_axes(&problem, &a, 1, &b, 0, 2));
	assert_false(match_same_axes(&problem, &a, 0, &b, 0, 2));
	/* tensor a has three axes, so there are no two axes from axis 2 on */
	assert_false(match_same_axes(&problem, &a, 2, &b, 0, 2));
	assert_int_equal(match_fixed_length(&problem, &a, 0), 0);
	assert_int_equal(match_fixed_length(&problem, &a, 1), 8);
}

static void words_are_found_in_any_case_and_with_hyphens(void **state)
{
	static const char *const tags[] = {"stage:decode", "layout:K-Major"};
	struct op_problem problem = {.name = "gdn-decode_V-Last", .tags = tags, .tag_count = 2};

	(void)state;
	assert_true(match_contains("States are K-major.", "k_major") && match_contains("non_causal", "non-causal"));
	assert_false(match_contains("k major", "k_major") || match_contains("k_majo", "k_major") || match_contains(NULL, "k"));
	assert_true(match_mentions(&problem, "v_last") && match_mentions(&problem, "k_major"));
	assert_false(match_mentions(&problem, "l2norm"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_family_is_found_by_op_type_and_shapes),
	    cmocka_unit_test(an_unknown_op_type_is_named),
	    cmocka_unit_test(a_known_op_type_that_does_not_fit_says_what_does_not),
	    cmocka_unit_test(an_op_type_that_fits_is_the_only_candidate),
	    cmocka_unit_test(words_of_a_definition_name_its_family),
	    cmocka_unit_test(each_variant_that_matches_by_shapes_is_a_candidate),
	    cmocka_unit_test(no_candidate_gives_the_reason),
	    cmocka_unit_test(the_table_is_in_name_order_with_digests),
	    cmocka_unit_test(default_rules_are_those_of_the_design),
	    cmocka_unit_test(names_are_looked_up_and_shapes_are_reported),
	    cmocka_unit_test(axes_are_compared_by_name_or_by_a_value_that_stays),
	    cmocka_unit_test(words_are_found_in_any_case_and_with_hyphens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
