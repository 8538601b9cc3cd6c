#!/bin/sh
# A definition may name and order its inputs and outputs in any way that its op family supports. The checks of generated
# tests and the results of libraries do not depend on the names and the order. The test compares definitions of the
# starter dataset with twins that have other names and another order.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given layernorm_h768 softmax_v128256 top_k_renorm_probs_v32000 silu_and_mul_h2048 gdn_mtp_qk2_v4_d128_k_last \
	gdn_prefill_qk2_v4_d128_k_last mamba_ssu_decode_gated_h16_d64_s128_ng4 gla_chunk_varlen_h2_d128 \
	simple_gla_varlen_gamma_h4_k64_v128 delta_rule_chunk_varlen_h2_k128_v64 gated_delta_rule_recurrent_h2_hv4_d64 \
	kda_chunk_varlen_gate_beta_sigmoid_h4_d64 fused_add_rmsnorm_h4096 gemma_fused_add_rmsnorm_h4608
cat >"$work/twins.py" <<'END'
import json
import re
import sys

NAMES = {"bias": "shift", "logits": "logits_of_temperature", "probs": "top_k_probs", "q": "query", "k": "key", "v": "value",
         "A_log": "a_log_of_decay", "scale": "Scale", "cu_seqlens": "qo_indptr", "state_batch_indices": "slots",
         "pad_slot_id": "padding", "g_gamma": "Gamma", "use_beta_sigmoid_in_kernel": "beta_sigmoid"}
STATES = {"gdn": {}, "mamba_ssu": {"state": "pool"}}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        definition = json.load(file)
    words = NAMES | STATES.get(definition["op_type"], {"initial_state": "h0"})
    names = {name: words.get(name, name) for name in definition["inputs"]}
    # The twin of a definition lists each vector before the matrix that it belongs to. If a weight and a bias cannot be
    # told apart by their names, the family takes the second vector as the bias.
    order = sorted(names, key=lambda name: len(definition["inputs"][name]["shape"] or ()))
    definition["inputs"] = {names[name]: definition["inputs"][name] for name in order}
    definition["outputs"] = dict(reversed(definition["outputs"].items()))
    definition["tags"] = [*definition.get("tags", []), "model:geglu-7b"]
    definition["reference"] = "def run(%s):\n    raise NotImplementedError\n" % ", ".join(definition["inputs"])
    definition["name"] += "_twin"
    axes = [one for one in definition.get("constraints", []) if not set(re.findall(r"\w+", one)) & names.keys()]
    definition["constraints"] = axes  # the others name inputs
    definition["twin"] = names
    with open(path.replace(".json", "_twin.json"), "w", encoding="utf-8") as file:
        json.dump(definition, file)
END
"$python" "$work/twins.py" definitions/*/*.json
run generate
expect_exit 0
step='what is said and computed' status=0
REFTEST_KERNELS=$top/build "$python" "$top/tests/generated_tests/twins.py" _twin >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
for name in layernorm_h768 softmax_v128256 silu_and_mul_h2048 fused_add_rmsnorm_h4096 gemma_fused_add_rmsnorm_h4608; do
	expect_says "same torch $name" "same builtin $name"
done
for name in gla_chunk_varlen_h2_d128 simple_gla_varlen_gamma_h4_k64_v128 delta_rule_chunk_varlen_h2_k128_v64 \
	gated_delta_rule_recurrent_h2_hv4_d64 kda_chunk_varlen_gate_beta_sigmoid_h4_d64 gdn_mtp_qk2_v4_d128_k_last \
	gdn_prefill_qk2_v4_d128_k_last; do
	expect_says "same fla $name" "same builtin $name"
done
expect_says 'same builtin mamba_ssu_decode_gated_h16_d64_s128_ng4' 'same builtin top_k_renorm_probs_v32000' \
	'passed over flashinfer mamba_ssu_decode_gated_h16_d64_s128_ng4' 'passed over flashinfer top_k_renorm_probs_v32000'
