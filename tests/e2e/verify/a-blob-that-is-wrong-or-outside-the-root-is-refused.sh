#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A wrong safetensors header, a path that leaves the root, and a tensor that does not match its input are reported.
# Other cases are not affected.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
cp blob/workloads/rmsnorm/tiny_norm/rows.safetensors "$work/outside.safetensors"
ln -s "$work/outside.safetensors" blob/link.safetensors
ln -s "$work" blob/folder
"$python" -I -S - "$work" <<'END'
import json
import struct
import sys

whole = open("blob/workloads/rmsnorm/tiny_norm/rows.safetensors", "rb").read()
length = struct.unpack("<Q", whole[:8])[0]
header, data = json.loads(whole[8 : 8 + length]), whole[8 + length :]


def blob(name, header, data=data, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    length = len(text) if length is None else length
    open(f"blob/{name}.safetensors", "wb").write(struct.pack("<Q", length) + text + data)


def with_weight(**changes):
    return {**header, "weight": {**header["weight"], **changes}}


begin, end = header["weight"]["data_offsets"]
blob("past_the_end", with_weight(data_offsets=[begin, end + 2], shape=[65]))
blob("backwards", with_weight(data_offsets=[end, begin]))
blob("negative", with_weight(data_offsets=[-128, 0]))
blob("overlapping", with_weight(data_offsets=[begin - 64, end - 64]))
blob("wrong_shape", with_weight(shape=[32]))
blob("product_overflows", with_weight(shape=[2**32, 2**32, 64]))
blob("header_too_long", header, length=2**62)
blob("no_json", b"{" * 4000)
blob("short", b"", data=b"", length=8)
blob("other_dtype", with_weight(dtype="F16"))
blob("other_rows", {**header, "hidden_states": {**header["hidden_states"], "shape": [2, 128]}})
paths = ["./blob/%s.safetensors" % name for name in (
    "past_the_end", "backwards", "negative", "overlapping", "wrong_shape", "product_overflows", "header_too_long",
    "no_json", "short", "other_dtype", "other_rows", "link", "folder/outside")]
paths += ["../outside.safetensors", "blob/../../outside.safetensors", sys.argv[1] + "/outside.safetensors"]
lines = []
for number, path in enumerate(paths + ["./blob/workloads/rmsnorm/tiny_norm/rows.safetensors"] * 2):
    tensor = lambda key: {"type": "safetensors", "path": path, "tensor_key": key}
    inputs = {"hidden_states": tensor("hidden_states"), "weight": tensor("absent" if number == len(paths) else "weight")}
    workload = {"uuid": f"44444444-0000-4000-8000-{number:012}", "axes": {"batch_size": 4}, "inputs": inputs}
    lines.append(json.dumps({"definition": "tiny_norm", "workload": workload, "solution": None, "evaluation": None}))
open("workloads/rmsnorm/tiny_norm.jsonl", "w").write("\n".join(lines) + "\n")
END
verify
expect_exit 2
expect_status tiny_gemm passed
bad="[case for id, case in sorted(c.items()) if id[0] == 'tiny_norm' and id[1].startswith('workload:')]"
expect "len($bad) == 18"
expect "[case['status'] for case in $bad[:17]] == ['invalid'] * 17"
expect "all(case['message'] for case in $bad[:17])"
expect "$bad[17]['status'] == 'passed'"
expect "all(case['status'] == 'passed' for id, case in c.items() if id[1].startswith('small:'))"
