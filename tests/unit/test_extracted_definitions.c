/* test_extracted_definitions - `extract` plans the definitions of every model of the table. Each definition's text is
 * complete, each template is used by a rule, and the report names the parts of an architecture that no op family
 * covers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <string.h>

#include "base/json.h"
#include "extract/extract.h"
#include "extract/templates.h"
#include "kernels/core/published_models.h"
#include "models/architecture.h"

/* Plans the definitions of a model for tensor parallel degree 1 and page sizes 1 and 64, for an empty dataset. */
static void plan(const char *name, struct extract_result *result, struct arena *arena)
{
	struct model model;
	struct err err = {""};

	assert_true(model_find(name, &model, arena));
	const struct extract_request request = {
	    .model = &model, .tp = {{1}, 1}, .ep = {{1}, 1}, .page_sizes = {{1, 64}, 2}, .root = "build/no-such-dataset"};

	if (extract_plan(&request, result, arena, &err) < 0)
		fail_msg("%s: %s", name, err.text);
	model_close(&model);
}

/* Returns true if a text still contains a placeholder @NAME@. */
static bool has_placeholder(const char *text)
{
	for (const char *at = strchr(text, '@'); at != NULL; at = strchr(at + 1, '@')) {
		size_t length = 1;

		while (isalnum((unsigned char)at[length]) || at[length] == '_')
			length++;
		if (length > 1 && at[length] == '@')
			return true;
	}
	return false;
}

static void every_text_is_complete(void **state)
{
	const char *row = NULL;
	size_t length;
	int models = 0;

	(void)state;
	while ((row = next_model_row(row, &length)) != NULL) {
		struct arena arena = {0};
		struct extract_result result;
		cJSON *entry = cJSON_ParseWithLength(row, length);

		if (json_text_of(entry, "architecture") != NULL) {
			plan(json_text_of(entry, "model"), &result, &arena);
			assert_true(result.file_count > 0 && result.conflict_count == 0);
			for (int i = 0; i < result.file_count; i++)
				if (has_placeholder(result.files[i].text))
					fail_msg("%s has a placeholder", result.files[i].below);
			models++;
		}
		cJSON_Delete(entry);
		arena_free(&arena);
	}
	assert_true(models > 60);
}

static bool plans(const struct extract_result *result, const char *name)
{
	for (int i = 0; i < result->file_count; i++)
		if (strcmp(result->files[i].name, name) == 0)
			return true;
	return false;
}

static bool lists(const struct string_list *list, const char *part)
{
	for (int i = 0; i < list->count; i++)
		if (strstr(list->items[i], part) != NULL)
			return true;
	return false;
}

static void shared_experts_and_routings_have_definitions(void **state)
{
	static const struct {
		const char *model, *name;
	} rows[] = {
	    {"deepseek-v3", "gemm_n4096_k7168"}, /* the gate_up_proj of the shared expert */
	    {"deepseek-v3", "gemm_n7168_k2048"},
	    {"deepseek-v3", "silu_and_mul_h2048"},
	    {"deepseek-v3", "rope_with_cos_sin_cache_interleaved_d64_rd64"},
	    {"deepseek-v2", "silu_and_mul_h3072"}, /* the width of two shared experts together */
	    {"deepseek-v2", "trtllm_fp4_block_scale_routed_moe_topk6_e160_h5120_i1536"},
	    {"glm-4.5", "silu_and_mul_h1536"},
	    {"qwen3-next", "gemm_n1_k2048"}, /* the gate of the shared expert */
	    {"qwen3-next", "silu_and_mul_h512"},
	    {"llama-4-scout", "silu_and_mul_h8192"},
	    {"llama-4-scout", "trtllm_fp8_per_tensor_scale_moe_llama4_topk1_e16_h5120_i8192"},
	    {"minimax-m2", "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e256_h3072_i1536"},
	    {"qwen1.5-moe-a2.7b", "trtllm_fp4_block_scale_routed_moe_topk4_e60_h2048_i1408"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena = {0};
		struct extract_result result;

		plan(rows[i].model, &result, &arena);
		if (!plans(&result, rows[i].name))
			fail_msg("%s has no %s", rows[i].model, rows[i].name);
		arena_free(&arena);
	}
}

static void routings_without_an_op_family_are_named(void **state)
{
	static const char *const models[] = {"deepseek-v2", "qwen1.5-moe-a2.7b"};

	(void)state;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		struct arena arena = {0};
		struct extract_result result;

		plan(models[i], &result, &arena);
		assert_true(lists(&result.not_covered, "the routing of moe.experts, which weighs experts"));
		arena_free(&arena);
	}
}

/* Returns true if a rule of `blocks` uses the template `name`. */
static bool has_rule(const cJSON *blocks, const char *name)
{
	const cJSON *block, *rule;

	cJSON_ArrayForEach(block, blocks)
		cJSON_ArrayForEach(rule, block)
			if (json_text_of(rule, "template") != NULL && strcmp(json_text_of(rule, "template"), name) == 0)
				return true;
	return false;
}

static void every_template_belongs_to_a_rule(void **state)
{
	struct arena arena = {0};
	struct model model;
	struct architectures all = {0};
	struct architecture architecture;
	struct err err = {""};
	struct template_text text;
	int i = 0;

	(void)state;
	assert_true(model_find("llama-3.1-8b", &model, &arena));
	assert_int_equal(architecture_find(&all, &model, &architecture, &arena, &err), 0);
	for (; template_at(i, &text); i++)
		if (!has_rule(json_member(architecture.root, "blocks"), text.name))
			fail_msg("no rule has the template %s", text.name);
	assert_true(i > 20);
	architectures_free(&all);
	model_close(&model);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_text_is_complete),
	    cmocka_unit_test(shared_experts_and_routings_have_definitions),
	    cmocka_unit_test(routings_without_an_op_family_are_named),
	    cmocka_unit_test(every_template_belongs_to_a_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
