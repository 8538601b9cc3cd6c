#!/bin/sh
# When generated tests call a library's rotary embedding, they take the number of rotated dimensions from an axis of the
# definition. If the RoPE constants of Llama 3.1 are inputs of the definition, the library gets them, whatever the
# definition's name is.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given rope_pos_ids_h32_kv8_d128 llama31_rope_pos_ids_h32_kv8_d128
cd definitions/rope
edit rope_pos_ids_h32_kv8_d128.json '"axes": {' '"axes": {"rotary_dim": {"type": "const", "value": 64},'
"$python" -I -S - <<'END'
import json

with open("llama31_rope_pos_ids_h32_kv8_d128.json", encoding="utf-8") as file:
    definition = json.load(file)
definition["name"], definition["tags"] = "given", []
for name in ("low_freq_factor", "high_freq_factor", "old_context_len", "rope_scale", "rope_theta"):
    definition["inputs"][name] = {"shape": None, "dtype": "float32"}
with open("given.json", "w", encoding="utf-8") as file:
    json.dump(definition, file)
END
rm llama31_rope_pos_ids_h32_kv8_d128.json
cd ../..
run generate
expect_exit 0
cat >"$work/ask.py" <<'END'
import sys
import types

sys.path.insert(0, "tests/references")
import test_rope
import torch

conftest, asked = test_rope.conftest, []


def record(name):
    def call(q, k, positions, **words):
        asked.append((name, words))
        return q, k

    return call


sys.modules["flashinfer"] = flashinfer = types.ModuleType("flashinfer")
flashinfer.rope = types.ModuleType("flashinfer.rope")
for name in ("apply_rope_pos_ids", "apply_llama31_rope_pos_ids"):
    setattr(flashinfer.rope, name, record(name))
conftest.device_class = lambda device: "sm_90"
conftest.lacking_version = lambda name: None
for test in (x for x in vars(test_rope).values() if hasattr(x, "NAME")):
    inputs = conftest.make_inputs(test, test.SIZES[0], torch.device("cpu"))
    conftest.ground_truth(test, test.SIZES[0], inputs, "flashinfer")
    name, words = asked.pop()
    print(test.NAME, name, sorted(words.items()))
END
step='what is asked' status=0
"$python" "$work/ask.py" >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
expect_says "rope_pos_ids_h32_kv8_d128 apply_rope_pos_ids [('interleave', False), ('rope_scale', 1.0), ('rope_theta', 1000000.0), ('rotary_dim', 64)]" \
	"given apply_llama31_rope_pos_ids [('high_freq_factor', 5.0), ('interleave', False), ('low_freq_factor', 2.0), ('old_context_len', 6000), ('rope_scale', 6.5), ('rope_theta', 30000.0)"
