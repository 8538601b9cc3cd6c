#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# State slots and sequence offsets of a workload are checked before the reference runs. If a value is out of range or
# ambiguous, the case is invalid, and a message says why. Valid values are used.
. "$(dirname "$0")/../harness.sh"
prefill=gdn_prefill_qk2_v4_d128_k_last mtp=gdn_mtp_qk_l2norm_qk2_v4_d128_k_last mamba=mamba_ssu_decode_h32_d64_s128_ng2
given $prefill $mtp $mamba
"$python" -I -S - <<'END'
import json
import os
import struct

CASES = {
    ("gdn", "gdn_prefill_qk2_v4_d128_k_last", "cu_seqlens", "I64", "q"): {
        "good": [0, 3, 4, 9],
        "decreasing": [0, 4, 3, 9],
        "beyond": [0, 3, 10, 9],
        "late": [1, 3, 4, 9],
        "short": [0, 3, 4, 8],
        "negative": [0, -3, 4, 9],
        "empty": [0, 3, 3, 9],
    },
    ("gdn", "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last", "initial_state_indices", "I32", "i"): {
        "good": [3, 0, 1],
        "outside": [3, 0, 4],
        "negative": [3, -1, 1],
        "twice": [3, 0, 3],
    },
    ("mamba_ssu", "mamba_ssu_decode_h32_d64_s128_ng2", "state_batch_indices", "I32", "i"): {
        "good": [3, -1, 0],
        "outside": [3, 4, 0],
        "negative": [3, -2, 0],
        "twice": [0, -1, 0],
    },
}
AXES = {
    "gdn_prefill_qk2_v4_d128_k_last": {"total_seq_len": 9, "num_seqs": 3, "len_cu_seqlens": 4},
    "gdn_mtp_qk_l2norm_qk2_v4_d128_k_last": {"batch_size": 3, "seq_len": 2, "pool_size": 4},
    "mamba_ssu_decode_h32_d64_s128_ng2": {"batch_size": 3, "state_cache_size": 4},
}
SCALARS = {"scale": 0.1, "use_qk_l2norm": True, "disable_state_update": False}

os.makedirs("blob", exist_ok=True)
for (family, name, key, kind, letter), cases in CASES.items():
    inputs = json.load(open(f"definitions/{family}/{name}.json"))["inputs"]
    with open(f"workloads/{family}/{name}.jsonl", "w") as lines:
        for case, values in cases.items():
            path = f"blob/{name}-{case}.safetensors"
            packed = struct.pack(f"<{len(values)}{letter}", *values)
            header = {key: {"dtype": kind, "shape": [len(values)], "data_offsets": [0, len(packed)]}}
            text = json.dumps(header).encode()
            open(path, "wb").write(struct.pack("<Q", len(text)) + text + packed)
            sources = {i: {"type": "random"} for i in inputs}
            sources.update({i: {"type": "scalar", "value": SCALARS[i]} for i in inputs if i in SCALARS})
            sources[key] = {"type": "safetensors", "path": path, "tensor_key": key}
            workload = {"uuid": case, "axes": AXES[name], "inputs": sources}
            lines.write(json.dumps({"definition": name, "workload": workload}) + "\n")
END
verify
expect_exit 2
invalid() { # invalid NAME CASE MESSAGE: expects that the case is invalid with this message
	expect "c['$1', 'workload:$2']['status'] == 'invalid' and '$3' in c['$1', 'workload:$2']['message']"
}
# An offset beyond the last token, or a final offset before the last token, violates the definition's constraint.
invalid $prefill decreasing 'cu_seqlens[2] is 3: it must be at least cu_seqlens[1] = 4'
invalid $prefill beyond 'cu_seqlens[2] is 10'
invalid $prefill late 'cu_seqlens does not start with 0'
invalid $prefill short total_seq_len
invalid $prefill negative 'cu_seqlens[1] is -3'
invalid $prefill empty 'gives sequence 1 no token'
invalid $mtp outside 'initial_state_indices[2] is 4, but must be at least 0 and less than 4 (the number of states)'
invalid $mtp negative 'initial_state_indices[1] is -1'
invalid $mtp twice 'initial_state_indices[2] is slot 3, which sequence 0 also updates'
invalid $mamba outside 'state_batch_indices[1] is 4, but must be at least 0 and less than 4 (the number of slots)'
invalid $mamba negative 'state_batch_indices[1] is -2'
invalid $mamba twice 'state_batch_indices[2] is slot 0, which sequence 0 also updates'
for name in $prefill $mtp $mamba; do
	expect "c['$name', 'workload:good']['status'] == 'passed'"
	expect "sorted(set(all_of('$name', 'status'))) == ['invalid', 'passed']"
done
