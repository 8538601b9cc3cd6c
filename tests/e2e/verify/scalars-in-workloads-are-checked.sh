#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Python scalars in a workload are checked in the same way as its tensors. With an epsilon below 0, a temperature of 0,
# or an expert out of range, the case is invalid and has a message, even if the workload line gives no tensors. A top-k
# of 0 or above the vocabulary size is valid.
. "$(dirname "$0")/../harness.sh"
softmax=softmax_v151936 rope=rope_pos_ids_interleaved_given_d64 gqa=gqa_paged_decode_h40_kv8_d128_ps16
moe=moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128 sampling=top_k_sampling_from_probs_v32000
given $softmax $rope $gqa $moe $sampling
define norm_with_epsilon <<'END'
import torch


def run(hidden_states, weight, eps):
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + eps) * weight.float()).to(hidden_states.dtype)
END
"$python" -I -S - <<'END'
import json
import os

GOOD = {
    ("softmax", "softmax_v151936"): ({"batch_size": 2}, {"temperature": 0.5}),
    ("rope", "rope_pos_ids_interleaved_given_d64"): (
        {"nnz": 3, "num_q_heads": 2, "num_k_heads": 1},
        {"rotary_dim": 32, "interleave": True, "rope_scale": 2.0, "rope_theta": 1e4},
    ),
    ("gqa_paged", "gqa_paged_decode_h40_kv8_d128_ps16"): (
        {"batch_size": 1, "num_pages": 4, "len_indptr": 2, "num_kv_indices": 2},
        {"sm_scale": 0.1},
    ),
    ("moe", "moe_fp8_block_scale_ds_routing_topk8_ng1_kg1_e24_h256_i128"): (
        {"seq_len": 2},
        {"local_expert_offset": 0, "routed_scaling_factor": 2.5},
    ),
    ("sampling", "top_k_sampling_from_probs_v32000"): ({"batch_size": 4}, {"top_k": 3}),
    ("rmsnorm", "norm_with_epsilon"): ({"batch_size": 3}, {"eps": 1e-5}),
}
OTHER = {
    "softmax": {"zero": {"temperature": 0}},
    "rope": {"odd": {"rotary_dim": 7}, "wide": {"rotary_dim": 66}, "no_theta": {"rope_theta": 0},
             "negative": {"rope_scale": -1.0}, "flat": {"rotary_dim": 0}},
    "gqa_paged": {"flat": {"sm_scale": 0.0}},
    "moe": {"beyond": {"local_expert_offset": 25}, "negative": {"local_expert_offset": -1}},
    "sampling": {"no_k": {"top_k": 0}, "large_k": {"top_k": 32001}, "negative_k": {"top_k": -5}},
    "rmsnorm": {"no_eps": {"eps": 0.0}, "negative": {"eps": -1e-5}},
}
# Changes this definition so that its top-k is one scalar for all rows.
path = "definitions/sampling/top_k_sampling_from_probs_v32000.json"
sampler = json.load(open(path))
sampler["inputs"]["top_k"]["shape"] = None
sampler["reference"] = sampler["reference"].replace("zip(probs.float(), top_k.tolist())", "zip(probs.float(), [top_k] * len(probs))")
json.dump(sampler, open(path, "w"))
path = "definitions/rmsnorm/norm_with_epsilon.json"
norm = json.load(open(path))
norm["inputs"]["eps"] = {"shape": None, "dtype": "float32"}
json.dump(norm, open(path, "w"))
for (family, name), (axes, numbers) in GOOD.items():
    inputs = {key: {"type": "random"} for key in json.load(open(f"definitions/{family}/{name}.json"))["inputs"]}
    os.makedirs(f"workloads/{family}", exist_ok=True)
    with open(f"workloads/{family}/{name}.jsonl", "w") as lines:
        for case, change in {"good": {}, **OTHER[family]}.items():
            sources = {**inputs, **{k: {"type": "scalar", "value": v} for k, v in {**numbers, **change}.items()}}
            text = json.dumps({"definition": name, "workload": {"uuid": case, "axes": axes, "inputs": sources}})
            lines.write(text + "\n")
END
verify
expect_exit 2
invalid() { # invalid NAME CASE MESSAGE: expects that the case is invalid with this message
	expect "c['$1', 'workload:$2']['status'] == 'invalid' and '''$3''' in c['$1', 'workload:$2']['message']"
}
passed() { # NAME CASE…
	name=$1
	shift
	for case in "$@"; do expect "c['$name', 'workload:$case']['status'] == 'passed'"; done
}
invalid $softmax zero "input 'temperature' is 0; logits cannot be divided by this temperature"
invalid $rope odd "input 'rotary_dim' is 7; the rotary dimension must be even and at most the head size 64"
invalid $rope wide "input 'rotary_dim' is 66"
invalid $rope no_theta "input 'rope_theta' is 0; each parameter of the rotary frequencies must be above 0"
invalid $rope negative "input 'rope_scale' is -1"
invalid $moe beyond "this device has 24 experts from number 25 on, but there are only 48 experts"
invalid $moe negative "experts from number -1 on"
invalid norm_with_epsilon no_eps "input 'eps' is 0; the epsilon must be above 0"
invalid norm_with_epsilon negative "the epsilon must be above 0"
passed $softmax good
passed $rope good flat
passed $gqa good flat
passed $moe good
passed $sampling good no_k large_k negative_k
passed norm_with_epsilon good
for name in $softmax $rope $gqa $moe $sampling; do
	expect "all(case['status'] == 'passed' for id, case in c.items() if id[0] == '$name' and id[1].startswith('small:'))"
done
