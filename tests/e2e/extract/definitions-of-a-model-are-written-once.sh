#!/bin/sh
# `extract` writes the definitions of a model. The written definitions are valid, and a second run writes nothing. If
# the dataset already has an equivalent definition, `extract` only adds the model's tag to it.
. "$(dirname "$0")/../harness.sh"
mkdir definitions

step="a model of the table"
run extract --no-verify --model llama-3.1-8b --format json
expect_exit 0
expect "len(r['written']) == 17 and r['conflicts'] == [] and r['tagged'] == []"
expect "'gqa_paged/gqa_paged_decode_h32_kv8_d128_ps64' in r['written'] and 'gemm/gemm_n28672_k4096' in r['written']"
run check --format json
expect_exit 0
"$python" -I -S - <<'END' || fail "a definition has other values"
import json
d = json.load(open("definitions/gqa_paged/gqa_paged_decode_h32_kv8_d128_ps64.json"))
assert d["tags"] == ["stage:decode", "status:unverified", "model:llama-3.1-8b",
                     "fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper", "tp:1"], d["tags"]
assert {k: v.get("value") for k, v in d["axes"].items() if v["type"] == "const"} == {
    "num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128, "page_size": 64}
d = json.load(open("definitions/rmsnorm/rmsnorm_h4096.json"))
assert "EPSILON = 1e-5\n" in d["reference"] and d["description"].endswith("Epsilon is 1e-5."), d
END

step="the second run"
cp -a definitions before
run extract --no-verify --model llama-3.1-8b --format json
expect_exit 0
expect "r['written'] == [] and r['tagged'] == [] and len(r['unchanged']) == 17"
diff -r definitions before || fail "the second run changed a file"

step="definitions that another model has, too"
run extract --no-verify --model llama-3-8b --format json
expect_exit 0
expect "r['written'] == [] and len(r['tagged']) == 17"
expect "'gemm/gemm_n6144_k4096: llama-3.1-8b, llama-3-8b' in r['shared']"
for file in before/*/*.json; do
	# a new tag changes at most two lines: its own, and the line before, which gets a comma
	[ "$(diff "$file" "definitions/${file#before/}" | grep -c '^[<>]')" -le 3 ] || fail "more than a tag of $file changed"
done
grep -Eq '^    "model:llama-3-8b",?$' definitions/gemm/gemm_n6144_k4096.json ||
	fail "the tag is not on a line of its own"

step="a definition behind a symbolic link"
mkdir "$work/elsewhere"
cp before/rmsnorm/rmsnorm_h4096.json "$work/elsewhere/norm.json"
ln -sf "$work/elsewhere/norm.json" definitions/rmsnorm/rmsnorm_h4096.json
run extract --no-verify --model llama-3-8b --op-type rmsnorm --format json
expect_exit 0
expect "r['tagged'] == ['rmsnorm/rmsnorm_h4096']"
[ -L definitions/rmsnorm/rmsnorm_h4096.json ] || fail "the link was replaced"
grep -q '"model:llama-3-8b"' "$work/elsewhere/norm.json" || fail "the file behind the link has no tag"
rm definitions/rmsnorm/rmsnorm_h4096.json
mv "$work/elsewhere/norm.json" definitions/rmsnorm/rmsnorm_h4096.json

step="the definitions pass"
verify rmsnorm_h4096 silu_and_mul_h14336 --device cpu
expect_exit 0
expect "all(one['status'] == 'passed' for one in d.values())"

step="degrees and op_types"
run extract --no-verify --model llama-3.1-8b --tp 1,4 --op-type gqa_ragged,gemm --out "$work/other" --format json
expect_exit 0
expect "sorted(n for n in r['written'] if 'gqa' in n) == ['gqa_ragged/gqa_ragged_prefill_causal_h32_kv8_d128', 'gqa_ragged/gqa_ragged_prefill_causal_h8_kv2_d128']"
grep -q '"tp:4"' "$work/other/definitions/gemm/gemm_n4096_k1024.json" || fail "a degree has no tag"
grep -q '"tp:' "$work/other/definitions/gemm/gemm_n4096_k4096.json" && fail "a degree of 1 has a tag"

step="a degree at which the blocks of one module are not full"
run extract --no-verify --model qwen3-30b-a3b --tp 4 --out "$work/blocks" --format json
expect_exit 0
expect "[t for t in r['left_out'] if t.startswith('moe.experts (moe_fp8_block_scale_renorm): at tp 4, ep 1, 192 is not a multiple of')] != []"
expect "'gqa_ragged/gqa_ragged_prefill_causal_h8_kv1_d128' in r['written']"

step="experts that are on several devices, and kernels for 4 bits"
expect "'moe/trtllm_fp4_block_scale_routed_moe_topk8_e128_h2048_i192' in r['written']"
run extract --no-verify --model qwen3-30b-a3b --ep 8 --op-type moe --out "$work/experts" --format json
expect_exit 0
expect "r['written'] == [] and len(r['left_out']) == 4"
expect "all('at ep 8, a device has only some of the experts' in t for t in r['left_out'])"

step="a configuration that is for another text, and heads that are rotated in part"
mkdir "$work/other-model"
cat >"$work/other-model/config.json" <<'END'
{"architectures": ["Qwen3MoeForCausalLM"], "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
 "moe_intermediate_size": 128, "num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 1000, "rms_norm_eps": 1e-6,
 "hidden_act": "silu", "norm_topk_prob": false, "rope_parameters": {"partial_rotary_factor": 0.75}}
END
run extract --no-verify --config "$work/other-model/config.json" --out "$work/rotated" --format json
expect_exit 0
expect "'rope/rope_with_cos_sin_cache_neox_style_d64_rd48' in r['written'] and [n for n in r['written'] if n[:4] == 'moe/'] == ['moe/trtllm_fp4_block_scale_routed_moe_topk2_e8_h256_i128']"
expect "'moe.experts (moe_fp8_block_scale_renorm): the configuration has norm_topk_prob = false, but the template is for true' in r['left_out']"
sed -i 's/"norm_topk_prob": false/"norm_topk_prob": true/; s/"silu"/"gelu"/' "$work/other-model/config.json"
run extract --no-verify --config "$work/other-model/config.json" --op-type moe --out "$work/rotated" --format json
expect_exit 0
expect "r['written'] == [] and all('hidden_act = \"gelu\", but the template is for \"silu\"' in t for t in r['left_out'])"

step="numbers that fit no routing, and a model without compressed queries"
mkdir "$work/latent"
cat >"$work/latent/config.json" <<'END'
{"architectures": ["DeepseekV3ForCausalLM"], "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 512,
 "moe_intermediate_size": 256, "n_routed_experts": 16, "n_shared_experts": 1, "num_experts_per_tok": 4, "n_group": 5, "topk_group": 2,
 "q_lora_rank": null, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 1000}
END
run extract --no-verify --config "$work/latent/config.json" --op-type moe,gemm --out "$work/latent" --format json
expect_exit 0
expect "'moe.experts (moe_fp8_block_scale_ds_routing): experts / n_group is not an integer of at least 0' in r['left_out']"
expect "'gemm/gemm_n1536_k512' in r['written'] and not [n for n in r['written'] if n[:4] == 'moe/']" # q_proj
sed -i 's/"n_group": 5/"n_group": 4/; s/"num_experts_per_tok": 4/"num_experts_per_tok": 9/' "$work/latent/config.json"
run extract --no-verify --config "$work/latent/config.json" --op-type moe --out "$work/latent" --format json
expect "r['written'] == [] and 'topk_group - num_experts_per_tok is not an integer of at least 0' in r['left_out'][0]"

step="a name that is taken"
sed -i 's/EPSILON = 1e-5/EPSILON = 1e-6/' definitions/rmsnorm/rmsnorm_h4096.json
cp definitions/rmsnorm/rmsnorm_h4096.json "$work/mine.json"
run extract --no-verify --model llama-3.1-8b --format json
expect_exit 0
expect "r['written'] == ['rmsnorm/rmsnorm_h4096_v2']"
expect "len(r['conflicts']) == 1 and {k: r['conflicts'][0][k] for k in ('name', 'existing', 'behaviour', 'why')} == {'name': 'rmsnorm/rmsnorm_h4096_v2', 'existing': 'rmsnorm/rmsnorm_h4096', 'behaviour': None, 'why': None}"
expect "[(one['field'], 'EPSILON = 1e-5' in one['ours'], 'EPSILON = 1e-6' in one['theirs']) for one in r['conflicts'][0]['differences']] == [('reference', True, True)]"
mkdir "$work/taken"
cp -a definitions "$work/taken/definitions"
rm "$work/taken/definitions/rmsnorm/rmsnorm_h4096_v2.json"
run extract --no-verify --model llama-3.1-8b --out "$work/taken"
grep -A 2 '^    the references differ from line [0-9]* on$' "$work/out" | grep -q '^      existing: EPSILON = 1e-6$' || fail "the text does not show where the references differ"
cmp -s definitions/rmsnorm/rmsnorm_h4096.json "$work/mine.json" || fail "the definition of the dataset changed"
run extract --no-verify --model llama-3.1-8b --format json
expect "r['written'] == [] and r['conflicts'] == []"
