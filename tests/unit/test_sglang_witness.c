/* test_sglang_witness - searches a model file of SGLang for the layers that reftest's mapping lists, under the names
 * that reftest and SGLang use. Also searches for layers that the mapping does not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/file.h"
#include "extract/sglang_witness.h"
#include "models/architecture.h"
#include "models/model_config.h"
#include "tests/unit/folder.h"

static void write_source(const char *path, const char *text)
{
	struct arena arena = {0};
	struct err err = {""};

	if (file_replace(arena_printf(&arena, "python/sglang/srt/%s", path), text, strlen(text), &err) < 0)
		fail_msg("%s", err.text);
	arena_free(&arena);
}

static void ask(const char *name, struct sglang_witness *out, struct arena *arena)
{
	struct model model;
	struct architectures all = {0};
	struct architecture architecture;
	struct err err = {""};

	assert_true(model_find(name, &model, arena));
	assert_int_equal(architecture_find(&all, &model, &architecture, arena, &err), 0);
	sglang_witness_ask(".", &model, &architecture, out, arena);
	assert_non_null(out->file);
	architectures_free(&all);
	model_close(&model);
}

/* Returns true if one of the reported disagreements begins with `words`. */
static bool says(const struct sglang_witness *witness, const char *words)
{
	for (int i = 0; i < witness->disagreements.count; i++)
		if (strncmp(witness->disagreements.items[i], words, strlen(words)) == 0)
			return true;
	return false;
}

static void layers_have_other_names_in_some_files(void **state)
{
	struct arena arena = {0};
	struct sglang_witness witness;

	(void)state;
	write_source("models/gpt_oss.py", "class GptOssForCausalLM(nn.Module):\n    self.router = TinyGemmLinear(1)\n    self.head_norm = RMSNorm(1)\n");
	ask("gpt-oss-20b", &witness, &arena);
	assert_false(says(&witness, "the model file has no gate,"));
	assert_false(says(&witness, "the model file has router "));
	assert_true(says(&witness, "the model file has no o_proj,"));
	assert_true(says(&witness, "the model file has head_norm (RMSNorm)"));
	arena_free(&arena);
}

/* gate_up_proj is not the module gate, although its name begins with "gate". */
static void a_longer_name_of_another_module_is_no_layer(void **state)
{
	struct arena arena = {0};
	struct sglang_witness witness;

	(void)state;
	write_source("models/qwen3_moe.py", "class Qwen3MoeForCausalLM:\n    self.gate_up_proj = MergedColumnParallelLinear(1)\n    self.attn_mqa = X()\n");
	ask("qwen3-30b-a3b", &witness, &arena);
	assert_true(says(&witness, "the model file has no gate,"));
	assert_false(says(&witness, "the model file has no attn,"));
	arena_free(&arena);
}

/* The configuration of deepseek-v3 has q_lora_rank, so this model has no q_proj. Other models of the architecture have
 * a q_proj, so the report does not call q_proj unknown. */
static void modules_of_other_models_and_parts_without_a_family_are_known(void **state)
{
	struct arena arena = {0};
	struct sglang_witness witness;

	(void)state;
	write_source("models/deepseek_v2.py", "class DeepseekV3ForCausalLM:\n    self.q_proj = ColumnParallelLinear(1)\n");
	ask("deepseek-v3", &witness, &arena);
	assert_false(says(&witness, "the model file has q_proj"));
	write_source("models/qwen3_next.py", "class Qwen3NextForCausalLM:\n    self.conv1d = ColumnParallelLinear(1)\n");
	ask("qwen3-next", &witness, &arena);
	assert_false(says(&witness, "the model file has conv1d"));
	arena_free(&arena);
}

static void classes_in_other_files_are_read(void **state)
{
	struct arena arena = {0};
	struct sglang_witness witness;

	(void)state;
	write_source("models/deepseek_v2.py", "from sglang.srt.layers.dsa import (\n    Other,\n    Indexer,\n)\nclass DeepseekV32ForCausalLM:\n    self.indexer = Indexer()\n");
	write_source("layers/dsa/__init__.py", "from sglang.srt.layers.dsa.dsa_indexer import Indexer\n");
	write_source("layers/dsa/dsa_indexer.py", "class Indexer:\n    self.wq_b = ReplicatedLinear(index_n_heads)\n");
	ask("deepseek-v3.2", &witness, &arena);
	assert_false(says(&witness, "the model file has no wq_b,"));
	assert_true(says(&witness, "the model file has no wk,"));
	assert_false(says(&witness, "the model file does not read index_n_heads"));
	assert_true(says(&witness, "the model file does not read index_head_dim"));
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(layers_have_other_names_in_some_files, enter_folder, leave_folder),
	    cmocka_unit_test_setup_teardown(a_longer_name_of_another_module_is_no_layer, enter_folder, leave_folder),
	    cmocka_unit_test_setup_teardown(modules_of_other_models_and_parts_without_a_family_are_known, enter_folder, leave_folder),
	    cmocka_unit_test_setup_teardown(classes_in_other_files_are_read, enter_folder, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
