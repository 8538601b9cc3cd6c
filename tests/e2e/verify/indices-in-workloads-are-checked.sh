#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Page numbers, offsets and lengths of a workload are checked before the reference runs. Values out of range make the
# case invalid, with a message. Valid values are used unchanged, and the pages to which they refer contain no NaN. The
# tolerance rule uses the scale that the workload provides.
. "$(dirname "$0")/../harness.sh"
given gqa_paged_decode_h40_kv8_d128_ps16
"$python" -I -S - <<'END'
import json
import os
import struct

NAME = "gqa_paged_decode_h40_kv8_d128_ps16"
GOOD = {"kv_indptr": [0, 3, 3, 5], "kv_indices": [6, 1, 4, 6, 0], "kv_last_page_len": [8, 0, 1]}
BAD = {
    "outside": {"kv_indices": [6, 1, 8, 6, 0]},
    "negative": {"kv_indices": [6, 1, -1, 6, 0]},
    "decreasing": {"kv_indptr": [0, 3, 2, 5]},
    "empty-page": {"kv_last_page_len": [0, 0, 1]},
    "long-page": {"kv_last_page_len": [17, 0, 1]},
}


def blob(path, tensors):
    header, data = {}, b""
    for key, values in tensors.items():
        packed = struct.pack(f"<{len(values)}i", *values)
        header[key] = {"dtype": "I32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


os.makedirs("blob", exist_ok=True)
with open(f"workloads/gqa_paged/{NAME}.jsonl", "a") as lines:
    for case, change in BAD.items():
        path = f"blob/{case}.safetensors"
        blob(path, {**GOOD, **change})
        inputs = {key: {"type": "safetensors", "path": path, "tensor_key": key} for key in GOOD}
        inputs.update({key: {"type": "random"} for key in ("q", "k_cache", "v_cache")})
        inputs["sm_scale"] = {"type": "scalar", "value": 0.0884}
        axes = {"batch_size": 3, "num_pages": 8, "len_indptr": 4, "num_kv_indices": 5}
        lines.write(json.dumps({"definition": NAME, "workload": {"uuid": case, "axes": axes, "inputs": inputs}}) + "\n")
END
name=gqa_paged_decode_h40_kv8_d128_ps16
verify
expect_exit 2
for case in outside negative decreasing empty-page long-page; do
	expect "c['$name', 'workload:$case']['status'] == 'invalid'"
done
expect "'kv_indices has 8 at flat index 2' in c['$name', 'workload:outside']['message']"
expect "'kv_indices has -1' in c['$name', 'workload:negative']['message']"
expect "'kv_indptr[2] is 2' in c['$name', 'workload:decreasing']['message']"
expect "'kv_last_page_len[0] is 0' in c['$name', 'workload:empty-page']['message']"
expect "'the last page of a sequence holds 1 to 16 keys' in c['$name', 'workload:long-page']['message']"
expect "sorted(set(all_of('$name', 'status'))) == ['invalid', 'passed'] and all_of('$name', 'status').count('invalid') == 5"
expect "any(case['axes']['num_pages'] == 8 and case['status'] == 'passed' for case in d['$name']['cases'])"
expect "all(case['outputs'][0]['atol'] == 2**-12 for case in d['$name']['cases'] if case['status'] == 'passed')"
