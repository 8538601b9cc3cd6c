#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# The experts that a workload selects for its tokens are checked before the reference runs. An expert out of range, or a
# weight that is NaN or infinite, makes the case invalid, with a message. Valid experts and weights are used unchanged.
. "$(dirname "$0")/../harness.sh"
given moe_fp4_block_scale_routed_topk4_e16_h512_i256
"$python" -I -S - <<'END'
import json
import os
import struct

NAME = "moe_fp4_block_scale_routed_topk4_e16_h512_i256"
ONE, NAN = 0x3F80, 0x7FC0
GOOD = [expert << 16 | ONE for expert in (0, 15, 7, 3, 4, 4, 5, 6)]
CASES = {
    "good": GOOD,
    "outside": [*GOOD[:3], 16 << 16 | ONE, *GOOD[4:]],
    "negative": [-1 << 16 | ONE, *GOOD[1:]],
    "nan": [*GOOD[:7], 6 << 16 | NAN],
}

os.makedirs("blob", exist_ok=True)
with open(f"workloads/moe/{NAME}.jsonl", "a") as lines:
    for case, ids in CASES.items():
        data = struct.pack("<8i", *ids)
        text = json.dumps({"topk_ids": {"dtype": "I32", "shape": [2, 4], "data_offsets": [0, len(data)]}}).encode()
        path = f"blob/{case}.safetensors"
        open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
        inputs = {key: {"type": "random"} for key in ("hidden_states", "gemm1_weights", "gemm2_weights")}
        inputs["topk_ids"] = {"type": "safetensors", "path": path, "tensor_key": "topk_ids"}
        lines.write(json.dumps({"definition": NAME, "workload": {"uuid": case, "axes": {"seq_len": 2}, "inputs": inputs}}) + "\n")
END
name=moe_fp4_block_scale_routed_topk4_e16_h512_i256
verify
expect_exit 2
expect "c['$name', 'workload:good']['status'] == 'passed'"
for case in outside negative nan; do
	expect "c['$name', 'workload:$case']['status'] == 'invalid'"
done
expect "'topk_ids lists expert 16 at flat index 3' in c['$name', 'workload:outside']['message']"
expect "'topk_ids lists expert -1 at flat index 0' in c['$name', 'workload:negative']['message']"
expect "'a routing weight that is NaN' in c['$name', 'workload:nan']['message']"
