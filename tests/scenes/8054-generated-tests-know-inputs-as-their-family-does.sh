#!/bin/sh
# 8054: generated tests hand libraries the same, and answer the same, whatever names and order a definition has for its inputs
# and outputs, as far as its op family takes them.
. "$(dirname "$0")/scene.sh"
pytest_is_here
given layernorm_h768 softmax_v128256 top_k_renorm_probs_v32000 silu_and_mul_h2048 gdn_mtp_qk2_v4_d128_k_last \
	gdn_prefill_qk2_v4_d128_k_last mamba_ssu_decode_gated_h16_d64_s128_ng4 gla_chunk_varlen_h2_d128 \
	simple_gla_varlen_gamma_h4_k64_v128 delta_rule_chunk_varlen_h2_k128_v64 gated_delta_rule_recurrent_h2_hv4_d64 \
	kda_chunk_varlen_gate_beta_sigmoid_h4_d64 fused_add_rmsnorm_h4096 gemma_fused_add_rmsnorm_h4608
cat >"$work/twins.py" <<'END'
import json
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
    # Vectors before what they belong to; of two that no name tells apart, the bias is the second.
    order = sorted(names, key=lambda name: len(definition["inputs"][name]["shape"] or ()))
    definition["inputs"] = {names[name]: definition["inputs"][name] for name in order}
    definition["outputs"] = dict(reversed(definition["outputs"].items()))
    definition["tags"] = [*definition.get("tags", []), "model:geglu-7b"]
    definition["reference"] = "def run(%s):\n    raise NotImplementedError\n" % ", ".join(definition["inputs"])
    definition["name"] += "_twin"
    definition["constraints"], definition["twin"] = [], names
    with open(path.replace(".json", "_twin.json"), "w", encoding="utf-8") as file:
        json.dump(definition, file)
END
"$python" "$work/twins.py" definitions/*/*.json
run generate
expect_exit 0
cat >"$work/ask.py" <<'END'
import importlib
import json
import pathlib
import sys

sys.path.insert(0, "tests/references")
import conftest
import torch


class Library:
    """Any of its functions is told, and answers with tokens of 1 and states of 2, all of one shape."""

    def __init__(self, asked):
        self.asked = asked

    def __getattr__(self, name):
        def called(*values, **words):
            if name == "selective_state_update":  # of which FlashInfer takes one dtype
                steps = {x.dtype for x in (values[2], words["D"], words["dt_bias"])}
                print("another dtype" if len(steps) > 1 else "one dtype")
            self.asked.append((name, values, {word: x for word, x in words.items() if word not in ("out", "output_state")}))
            if "out" in words:
                words["out"].fill_(1)
            return torch.ones(1) if "fused_sigmoid" in name else (torch.ones(1), torch.full((1,), 2.0).view(1, 1, 1))

        return called


def ask(test, function, inputs):
    asked = []
    conftest.need = lambda *words: Library(asked)
    conftest.need_capability = lambda *words: 9
    try:
        answer = function(test, {name: x.clone() if torch.is_tensor(x) else x for name, x in inputs.items()})
    except NotImplementedError as why:
        return str(why)
    except Exception as why:  # of what the fake answered; after it was asked
        return str(asked or repr(why))
    answer = answer if isinstance(answer, (tuple, list)) else (answer,)
    by_name = dict(zip(conftest.definition_of(test)["outputs"], answer))
    return str((asked, sorted(by_name.items())))


for path in sorted(pathlib.Path("tests/references").glob("test_*.py")):
    tests = {test.NAME: test for test in vars(importlib.import_module(path.stem)).values() if hasattr(test, "NAME")}
    for name, test in tests.items():
        if name.endswith("_twin"):
            continue
        twin, case = tests[name + "_twin"], test.SIZES[0]
        names = conftest.definition_of(twin)["twin"]
        conftest.make_inputs(twin, case, torch.device("cpu"))
        inputs = conftest.make_inputs(test, case, torch.device("cpu"))
        other = {new: inputs[old] for new in conftest.definition_of(twin)["inputs"] for old in names if names[old] == new}
        for one, two in zip(test.GROUND_TRUTHS, twin.GROUND_TRUTHS):
            if conftest.truth_name(one) != "builtin":
                same = ask(test, one, inputs) == ask(twin, two, other)
                print("same" if same else "another", one.__name__, name)
END
step='what is asked' status=0
"$python" "$work/ask.py" >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
expect_silence_about 'another'
expect_says 'same gdn_flashinfer gdn_mtp' 'same gdn_fla gdn_prefill' 'same gdn_sglang gdn_prefill' 'same mamba_ssu_sglang' \
	'same mamba_ssu_flashinfer' 'one dtype' 'same layernorm_torch' 'same softmax_torch' 'same softmax_flashinfer' 'same sampling_flashinfer' \
	'same gla_fla' 'same simple_gla_fla' 'same delta_rule_fla' 'same gated_delta_rule_fla' 'same kda_fla' \
	'same activation_torch' 'same activation_flashinfer' 'same rmsnorm_torch' 'same rmsnorm_sglang' 'same gemma_rmsnorm_flashinfer'
