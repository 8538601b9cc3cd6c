/* test_attested_dimensions - expressions over the configuration of a model, and contradictions between the axes of a
 * definition and its name, description or models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "models/attested_dimensions.h"
#include "models/architecture.h"

static enum expression_result no_names(void *context, const char *name, int depth, int64_t *value)
{
	(void)context;
	(void)depth;
	*value = 40;
	return strcmp(name, "heads") == 0 ? EXPRESSION_VALUE : EXPRESSION_MISSING;
}

static const char *no_text(void *context, const char *name)
{
	(void)context;
	return strcmp(name, "pattern") == 0 ? "M-M*-M" : NULL;
}

static bool no_real(void *context, const char *name, double *value)
{
	(void)context;
	*value = 0.7;
	return strcmp(name, "factor") == 0;
}

static void expressions_have_exact_values(void **state)
{
	static const struct {
		const char *text;
		enum expression_result result;
		int64_t value;
	} cases[] = {
	    {"2 + 3 * 4", EXPRESSION_VALUE, 14},
	    {"(2 + 3) * 4 - 1", EXPRESSION_VALUE, 19},
	    {"heads / 8", EXPRESSION_VALUE, 5},
	    {" heads", EXPRESSION_VALUE, 40},
	    {"heads / 3", EXPRESSION_INDIVISIBLE, 0},
	    {"heads / 0", EXPRESSION_INDIVISIBLE, 0},
	    {"share(8, 4)", EXPRESSION_VALUE, 2},
	    {"share(8, 16)", EXPRESSION_VALUE, 1},
	    {"share(8, 12)", EXPRESSION_INDIVISIBLE, 0},
	    {"share(8, 0)", EXPRESSION_VALUE, 1},
	    {"pad(50257, 64)", EXPRESSION_VALUE, 50304},
	    {"ceil(2880, 128)", EXPRESSION_VALUE, 23},
	    {"scaled(heads, factor) + 1", EXPRESSION_VALUE, 29},
	    {"scaled(heads + 1, factor)", EXPRESSION_INDIVISIBLE, 0},
	    {"scaled(heads, nothing)", EXPRESSION_MISSING, 0},
	    {"scaled(heads)", EXPRESSION_INVALID, 0},
	    {"scaled(heads, 2)", EXPRESSION_INVALID, 0},
	    {"blocks(384, 128)", EXPRESSION_VALUE, 3},
	    {"blocks(192, 128)", EXPRESSION_PARTIAL_BLOCK, 0},
	    {"blocks(192, 0)", EXPRESSION_PARTIAL_BLOCK, 0},
	    {"count('M', pattern) + count('*', pattern)", EXPRESSION_VALUE, 4},
	    {"count('x', pattern)", EXPRESSION_VALUE, 0},
	    {"count('M', nothing)", EXPRESSION_MISSING, 0},
	    {"count('MM', pattern)", EXPRESSION_INVALID, 0},
	    {"count('M' pattern)", EXPRESSION_INVALID, 0},
	    {"count('", EXPRESSION_INVALID, 0},
	    {"count('M', )", EXPRESSION_INVALID, 0},
	    {"count('M', pattern", EXPRESSION_INVALID, 0},
	    {"nothing * 2", EXPRESSION_MISSING, 0},
	    {"1 - 2", EXPRESSION_INVALID, 0},
	    {"9007199254740992", EXPRESSION_INVALID, 0},
	    {"9007199254740991 * 9007199254740991", EXPRESSION_INVALID, 0},
	    {"(1", EXPRESSION_INVALID, 0},
	    {"1 1", EXPRESSION_INVALID, 0},
	    {"", EXPRESSION_INVALID, 0},
	    {"pow(2, 3)", EXPRESSION_INVALID, 0},
	    {"((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))", EXPRESSION_INVALID, 0},
	};
	const struct expression_names names = {no_names, no_text, no_real, NULL};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t value = -1;

		assert_int_equal(expression_evaluate(cases[i].text, &names, 0, &value), cases[i].result);
		if (cases[i].result == EXPRESSION_VALUE)
			assert_int_equal(value, cases[i].value);
	}
}

/* Evaluates each expression of an architecture for every model that has this architecture. Each expression must be
 * valid, and the table must have every field that the architecture requires. */
static void every_model_of_the_table_fits_its_architecture(void **state)
{
	static const char *const models[] = {"llama-3.1-8b",  "mistral-7b-v0.1", "qwen2.5-7b",	"qwen3-8b",	 "phi-4",	 "olmo-2-7b",
					     "gemma-7b",      "gemma-2-9b",	 "gemma-3-1b",	"gemma-3-27b",	 "mixtral-8x7b", "qwen3-30b-a3b",
					     "glm-4.5",	      "minimax-m2",	 "gpt-oss-20b", "llama-4-scout", "qwen3-next",	 "deepseek-v2",
					     "deepseek-v3",   "deepseek-v3.2",	 "kimi-k2",	"nemotron-h-8b"};

	(void)state;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct arena arena = {0};
		struct model model;
		struct architectures all = {0};
		struct architecture architecture;
		struct err err = {""};
		const cJSON *item;

		assert_true(model_find(models[i], &model, &arena));
		assert_int_equal(architecture_find(&all, &model, &architecture, &arena, &err), 0);
		cJSON_ArrayForEach(item, json_member(architecture.own, "required"))
		{
			int64_t value;
			const char *source;

			assert_true(model_integer(&model, item->valuestring, &value, &source));
		}
		assert_true(architecture.rule_count > 0);
		for (int r = 0; r < architecture.rule_count; r++)
			cJSON_ArrayForEach(item, architecture.rules[r].axes)
			{
				struct degrees degrees = {.model = &model, .architecture = &architecture, .tp = 1, .ep = 1, .page_size = 1};
				int64_t value;

				assert_int_not_equal(degrees_evaluate(&degrees, item->valuestring, &value), EXPRESSION_INVALID);
			}
		architectures_free(&all);
		model_close(&model);
		arena_free(&arena);
	}
}

static const char *attest(const char *name, const char *op_type, const char *description, const char *const *tags, int tag_count,
			  const struct axis *axes, int axis_count, struct arena *arena)
{
	const struct definition d = {.name = name, .op_type = op_type, .description = description, .tags = tags, .tag_count = tag_count,
				     .axes = axes, .axis_count = axis_count};

	struct architectures all = {0};
	const char *found = attest_definition(&d, &all, arena);

	architectures_free(&all);
	return found;
}

static void expect(const char *found, const char *part)
{
	if (part == NULL) {
		if (found != NULL)
			fail_msg("false alarm: %s", found);
		return;
	}
	assert_non_null(found);
	if (strstr(found, part) == NULL)
		fail_msg("'%s' does not contain '%s'", found, part);
}

static void names_and_descriptions_are_held_against_axes(void **state)
{
	const struct axis axes[] = {{"num_qo_heads", false, 32}, {"num_kv_heads", false, 8}, {"head_dim", false, 128}, {"rows", true, 0}};
	const struct axis words = {"vocab_size", false, 128256}, values = {"value_size", false, 32};
	struct arena arena = {0};

	(void)state;
	expect(attest("x_h32_kv8_d128", "x", "head_dim=128", NULL, 0, axes, 4, &arena), NULL);
	expect(attest("x_v128256_v2", "x", "", NULL, 0, &words, 1, &arena), NULL);
	expect(attest("x_v99", "x", "", NULL, 0, &words, 1, &arena), NULL);
	expect(attest("x_v2_v128256", "x", "", NULL, 0, &words, 1, &arena), "the definition's name says v2, but "
									    "axis 'vocab_size' is 128256");
	expect(attest("x_v100", "x", "", NULL, 0, &words, 1, &arena), "the definition's name says v100");
	expect(attest("x_v64", "x", "", NULL, 0, &values, 1, &arena), "the definition's name says v64, but axis "
								      "'value_size' is 32");
	expect(attest("x_v32_v2", "x", "", NULL, 0, &values, 1, &arena), NULL);
	expect(attest("x_v1", "x", "", NULL, 0, &words, 1, &arena), "the definition's name says v1,");
	expect(attest("x_h32_kv4_d128", "x", "", NULL, 0, axes, 4, &arena), "the definition's name says kv4, but "
									    "axis 'num_kv_heads' is 8");
	expect(attest("x_h32_kv8_d64", "x", "", NULL, 0, axes, 4, &arena), "the definition's name says d64, but "
									   "axis 'head_dim' is 128");
	/* if "nh" is the number of heads, "h" may be the head dimension */
	expect(attest("x_nh32_h128", "x", "", NULL, 0, axes, 4, &arena), NULL);
	expect(attest("x_nh32_h64", "x", "", NULL, 0, axes, 4, &arena), "the definition's name says h64, but axis "
									"'num_qo_heads' is 32");
	expect(attest("x_h64", "x", "", NULL, 0, axes + 2, 1, &arena), NULL);
	/* A part of the name such as "topk8" is ignored if its letters are not the abbreviation of an axis of the
	 * definition. A part such as "h32x" is also ignored, because letters follow its number. */
	expect(attest("x_topk8_v2_h32x_fp8_z9", "x", "", NULL, 0, axes, 4, &arena), NULL);
	expect(attest("x", "x", "with head_dim = 64 and more", NULL, 0, axes, 4, &arena), "the description says head_dim = 64");
	expect(attest("x", "x", "q: num_qo_heads * head_dim = 4096; qo/head_dim=4; my_head_dim=3; head_dim = 256/2", NULL, 0, axes, 4, &arena), NULL);
	arena_free(&arena);
}

static void models_explain_axes_at_some_degree(void **state)
{
	const char *plain[] = {"model:llama-3.1-8b"}, *by_four[] = {"model:llama-3.1-8b", "tp:4"}, *unknown[] = {"model:nobody-1b"},
		   *by_three[] = {"model:llama-3.1-8b", "tp:3"}, *other_case[] = {"model:meta-llama/Llama-3.1-8B", "tp:4"},
		   *shared[] = {"model:qwen3-30b-a3b", "model:llama-3.1-70b", "tp:4"},
		   *wrong[] = {"model:qwen3-30b-a3b", "model:llama-3.1-70b", "tp:8"}, *eight[] = {"model:deepseek-v3", "ep:8"}, *both[] = {"model:llama-3.1-8b", "model:qwen3-14b"};
	struct axis gqa[] = {{"num_qo_heads", false, 16}, {"num_kv_heads", false, 4}, {"head_dim", false, 128}};
	struct axis norm[] = {{"hidden_size", false, 5000}}, other[] = {{"width", false, 5000}};
	struct axis gemm[] = {{"M", true, 0}, {"N", false, 1536}, {"K", false, 4096}};
	struct axis moe[] = {{"num_experts", false, 256}, {"num_local_experts", false, 32}, {"hidden_size", false, 7168}};
	struct arena arena = {0};

	(void)state;
	expect(attest("x", "gqa_paged", "", plain, 1, gqa, 3, &arena), NULL);
	expect(attest("x", "gqa_paged", "", by_four, 2, gqa, 3, &arena), "degrees tried: tp 4 by its tag");
	expect(attest("x", "gqa_paged", "", by_three, 2, gqa, 3, &arena), "the modules of llama-3.1-8b cannot be "
									  "divided evenly by tp:3: in self_attn.attn");
	expect(attest("x", "gqa_paged", "", other_case, 2, gqa, 3, &arena), "degrees tried: tp 4 by its tag");
	/* the definition has 16 query heads and 2 kv heads: the heads of one device if two devices share qwen3-30b-a3b
	 * (32 and 4 heads), or if four devices share llama-3.1-70b (64 and 8 heads) */
	gqa[1].value = 2;
	expect(attest("x", "gqa_paged", "", shared, 3, gqa, 3, &arena), NULL);
	expect(attest("x", "gqa_paged", "", wrong, 3, gqa, 3, &arena), "degrees tried: tp 8 by its tag");
	gqa[1].value = 4;
	gqa[2].value = 64;
	expect(attest("x", "gqa_paged", "", plain, 1, gqa, 3, &arena), "axis 'head_dim' is 64");
	expect(attest("x", "gqa_paged", "of the vision tower", plain, 1, gqa, 3, &arena), NULL);
	expect(attest("x", "rmsnorm", "", plain, 1, norm, 1, &arena), "the length is hidden_size = 4096");
	expect(attest("x", "rmsnorm", "", plain, 1, norm, 1, &arena), "litgpt/config.py");
	expect(attest("x", "rmsnorm", "", unknown, 1, norm, 1, &arena), NULL);
	expect(attest("x", "something", "", plain, 1, norm, 1, &arena), NULL);
	expect(attest("x", "rmsnorm", "", plain, 1, other, 1, &arena), NULL);
	norm[0].value = 4096;
	expect(attest("x", "rmsnorm", "", plain, 1, norm, 1, &arena), NULL);
	expect(attest("x", "rmsnorm", "", both, 2, norm, 1, &arena), "no module of qwen3-14b");
	/* the matrix of qkv_proj at tp 4 has these sizes */
	expect(attest("x", "gemm", "", plain, 1, gemm, 3, &arena), NULL);
	gemm[1].value = 1537;
	expect(attest("x", "gemm", "", plain, 1, gemm, 3, &arena), "axis 'N' is 1537");
	expect(attest("x", "moe", "", eight, 2, moe, 3, &arena), NULL);
	moe[1].value = 64;
	expect(attest("x", "moe", "", eight, 2, moe, 3, &arena), "axis 'num_local_experts' is 64");
	expect(attest("x", "moe", "", eight, 1, moe, 3, &arena), NULL);
	arena_free(&arena);
}

/* The table's row of mistral-7b has no vocab_size, because the versions of mistral-7b have different vocabularies.
 * Therefore the output projection (lm_head) of mistral-7b may have any number of rows. */
static void fields_that_the_table_lacks_contradict_nothing(void **state)
{
	const char *tags[] = {"model:mistral-7b"};
	struct axis gemm[] = {{"N", false, 12345}, {"K", false, 4096}};
	struct arena arena = {0};

	(void)state;
	expect(attest("x", "gemm", "", tags, 1, gemm, 2, &arena), NULL);
	gemm[1].value = 5000;
	expect(attest("x", "gemm", "", tags, 1, gemm, 2, &arena), "axis 'N' is 12345");
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(expressions_have_exact_values),
	    cmocka_unit_test(every_model_of_the_table_fits_its_architecture),
	    cmocka_unit_test(names_and_descriptions_are_held_against_axes),
	    cmocka_unit_test(models_explain_axes_at_some_degree),
	    cmocka_unit_test(fields_that_the_table_lacks_contradict_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
