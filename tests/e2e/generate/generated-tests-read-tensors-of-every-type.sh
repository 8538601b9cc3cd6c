#!/bin/sh
# A generated test reads a workload's tensors from safetensors files. For every element type, the test gets the bytes
# and the shape that were written to the file.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given rmsnorm_h128
run generate
expect_exit 0
cat >"$work/read_types.py" <<'END'
import json, struct, sys
import torch
sys.path.insert(0, "tests/references")
import conftest
bits = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "I64": 64, "I32": 32,
        "I16": 16, "I8": 8, "U32": 32, "U8": 8, "BOOL": 8}
for name, width in bits.items():
    data = bytes(i % 2 for i in range(2 * 4 * width // 8))
    header = json.dumps({"t": {"dtype": name, "shape": [2, 4], "data_offsets": [0, len(data)]}}).encode()
    with open("t.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)
    tensor = conftest.read_safetensors("t.safetensors", "t")
    shape = [2, 2] if name == "F4" else [2, 4]
    assert list(tensor.shape) == shape, (name, tensor.shape)
    assert bytes(tensor.contiguous().view(torch.uint8).flatten().tolist()) == data, name
assert set(bits) == set(conftest.SAFETENSORS_DTYPES)
print("read", len(bits), "types")
END
"$python" "$work/read_types.py" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 0
expect_says "read 15 types"
types=$(sed -n 's/.*"a dtype (\(.*\))".*/\1/p' "$top/dataset/safetensors.c" | tr -d ,)
for type in $types; do
	expectations=$((expectations + 1))
	grep -q "\"$type\": " tests/references/conftest.py || fail "generated tests cannot read $type"
done
[ "$(printf '%s\n' $types | wc -l)" = 15 ] || fail "reftest reads other types than this test knows: $types"
