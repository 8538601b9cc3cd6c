/* test_module_tree - the tree of a model's modules: the count and the parent of each module, and the modules to which a
 * definition belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "kernels/core/published_models.h"
#include "models/model_config.h"
#include "tests/unit/folder.h"
#include "web/module_tree.h"

static const struct web_module *find(const struct module_tree *tree, const char *name)
{
	for (int i = 0; i < tree->model.module_count; i++)
		if (strcmp(tree->model.modules[i].name, name) == 0)
			return &tree->model.modules[i];
	return NULL;
}

static void make(const char *name, const struct definition *const *definitions, int count, struct module_tree *tree, struct arena *arena)
{
	struct model model;
	struct err err = {""};

	assert_true(model_find(name, &model, arena));
	if (module_tree_make(&model, definitions, count, tree, arena, &err) < 0)
		fail_msg("%s: %s", name, err.text);
	model_close(&model);
}

static void modules_are_counted(void **state)
{
	static const struct {
		const char *model, *module, *parent; /* parent NULL: the model has no such module */
		int64_t count;
	} rows[] = {
	    {"llama-3.1-8b", "layers", "LlamaForCausalLM", 32},
	    {"llama-3.1-8b", "norm", "LlamaForCausalLM", 1},
	    {"llama-3.1-8b", "down_proj", "mlp", 32},
	    {"llama-3.1-8b", "moe", NULL, 0},
	    {"qwen3-8b", "q_norm", "self_attn", 36},
	    {"qwen3-8b", "k_norm", "self_attn", 36},
	    {"olmo-2-7b", "post_feedforward_layernorm", "layers", 32},
	    {"olmo-2-7b", "input_layernorm", NULL, 0},
	    {"gemma-3-27b", "pre_feedforward_layernorm", "layers", 62},
	    {"gemma-3-27b", "input_layernorm", "layers", 62},
	    {"deepseek-v3", "mlp", "layers", 3},
	    {"deepseek-v3", "moe", "layers", 58},
	    {"deepseek-v3", "gate", "moe", 58},
	    {"deepseek-v3", "shared_experts", "moe", 58},
	    {"qwen3-next", "shared_expert", "moe", 48},
	    {"qwen3-next", "mlp", NULL, 0},
	    {"deepseek-v3.2", "indexer", "self_attn", 61},
	    {"deepseek-v3.2", "wq_b", "indexer", 61},
	    {"kimi-k2", "mlp", "layers", 1},
	    {"glm-4.5", "moe", "layers", 89},
	    {"qwen3-next", "linear_attn", "layers", 36},
	    {"qwen3-next", "self_attn", "layers", 12},
	    {"qwen3-next", "norm", "Qwen3NextForCausalLM", 1},
	    {"nemotron-h-8b", "mixer", "layers", 24},
	    {"nemotron-h-8b", "self_attn", "layers", 4},
	    {"nemotron-h-8b", "mlp", "layers", 24},
	    {"nemotron-h-8b", "post_attention_layernorm", NULL, 0},
	    {"llama-4-scout", "moe", "layers", 48},
	    {"llama-4-scout", "mlp", NULL, 0},
	    {"llama-4-maverick", "moe", "layers", 24},
	    {"llama-4-maverick", "mlp", "layers", 24},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct arena arena = {0};
		struct module_tree tree;

		make(rows[i].model, NULL, 0, &tree, &arena);
		const struct web_module *module = find(&tree, rows[i].module);

		if ((module != NULL) != (rows[i].parent != NULL))
			fail_msg("%s: %s", rows[i].model, rows[i].module);
		if (module != NULL) {
			assert_int_equal(module->count, rows[i].count);
			assert_string_equal(module->parent, rows[i].parent);
		}
		arena_free(&arena);
	}
}

/* Checks each model for which the table has a number of layers: the names of its modules are unique, and the parent of
 * a module is a block that is listed before the module. */
static void trees_of_all_models_are_trees(void **state)
{
	const char *row = NULL;
	size_t length;
	int made = 0;

	(void)state;
	while ((row = next_model_row(row, &length)) != NULL) {
		cJSON *json = cJSON_ParseWithLength(row, length);
		struct arena arena = {0};
		struct module_tree tree;

		if (json_text_of(json, "architecture") != NULL && json_member(json, "num_hidden_layers") != NULL) {
			make(json_text_of(json, "model"), NULL, 0, &tree, &arena);
			for (int i = 0; i < tree.model.module_count; i++) {
				const struct web_module *module = &tree.model.modules[i], *parent;

				assert_ptr_equal(find(&tree, module->name), module);
				assert_true(module->count > 0);
				parent = module->parent != NULL ? find(&tree, module->parent) : NULL;
				assert_true(i == 0 || (parent != NULL && parent < module && parent->type == WEB_BLOCK));
			}
			made++;
		}
		cJSON_Delete(json);
		arena_free(&arena);
	}
	assert_true(made >= 70);
}

static void a_definition_belongs_to_the_modules_with_its_axes(void **state)
{
	static const char *const no_tags[] = {"x"}, *const tp[] = {"tp:8"};
	const struct axis hidden[] = {{"hidden_size", false, 4096}}, other[] = {{"hidden_size", false, 4095}},
			  dense[] = {{"N", false, 4096}, {"K", false, 1792}}, query[] = {{"N", false, 4096}, {"K", false, 4096}},
			  key[] = {{"N", false, 1024}, {"K", false, 4096}};
	const struct definition norm = {.name = "norm_a", .op_type = "rmsnorm", .description = "", .tags = no_tags, .tag_count = 1,
					.axes = hidden, .axis_count = 1},
				wrong = {.name = "norm_b", .op_type = "rmsnorm", .description = "", .axes = other, .axis_count = 1},
				down = {.name = "down", .op_type = "gemm", .description = "", .tags = tp, .tag_count = 1, .axes = dense,
					.axis_count = 2},
				out = {.name = "o", .op_type = "gemm", .description = "", .axes = query, .axis_count = 2},
				k = {.name = "k", .op_type = "gemm", .description = "", .axes = key, .axis_count = 2};
	const struct definition *const all[] = {&norm, &wrong, &down, &out, &k};
	struct arena arena = {0};
	struct module_tree tree;

	(void)state;
	make("llama-3.1-8b", all, 5, &tree, &arena);
	assert_int_equal(tree.unplaced.count, 1);
	assert_string_equal(tree.unplaced.items[0], "rmsnorm/norm_b");
	assert_string_equal(find(&tree, "input_layernorm")->definitions[0], "norm_a");
	assert_string_equal(find(&tree, "norm")->definitions[0], "norm_a");
	assert_string_equal(find(&tree, "down_proj")->definitions[0], "down");
	assert_string_equal(find(&tree, "o_proj")->definitions[0], "o");
	assert_int_equal(find(&tree, "o_proj")->definition_count, 1);
	assert_null(find(&tree, "q_proj")); /* only some implementations have this module */
	assert_string_equal(find(&tree, "k_proj")->definitions[0], "k");
	arena_free(&arena);
}

static void modules_with_the_same_last_part_have_their_whole_paths_as_names(void **state)
{
	const struct axis axes[] = {{"intermediate_size", false, 2048}};
	const struct definition silu = {.name = "silu", .op_type = "activation", .description = "", .axes = axes, .axis_count = 1};
	const struct definition *const all[] = {&silu};
	struct arena arena = {0};
	struct module_tree tree;

	(void)state;
	make("deepseek-v3", all, 1, &tree, &arena);
	assert_null(find(&tree, "act_fn"));
	assert_int_equal(find(&tree, "mlp_act_fn")->definition_count, 0);
	assert_string_equal(find(&tree, "moe_shared_experts_act_fn")->definitions[0], "silu");
	assert_string_equal(find(&tree, "moe_shared_experts_act_fn")->parent, "shared_experts");
	assert_int_equal(find(&tree, "shared_experts")->type, WEB_BLOCK);
	arena_free(&arena);
}

static void a_model_without_a_number_of_layers_is_refused(void **state)
{
	struct arena arena = {0};
	struct module_tree tree;
	struct model model;
	struct err err = {""};

	(void)state;
	put("config.json", "{\"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": 64, \"num_attention_heads\": 2}");
	assert_int_equal(model_read("config.json", "mine", &model, &arena, &err), 0);
	assert_int_equal(module_tree_make(&model, NULL, 0, &tree, &arena, &err), -1);
	assert_string_equal(err.text, "config.json: the field 'num_hidden_layers' is missing (expected an integer above 0)");
	model_close(&model);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(modules_are_counted),
	    cmocka_unit_test(trees_of_all_models_are_trees),
	    cmocka_unit_test(a_definition_belongs_to_the_modules_with_its_axes),
	    cmocka_unit_test(modules_with_the_same_last_part_have_their_whole_paths_as_names),
	    cmocka_unit_test_setup_teardown(a_model_without_a_number_of_layers_is_refused, enter_folder, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
