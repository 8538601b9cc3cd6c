#!/bin/sh
# 6155: one token, or packed sequences, over slots of a pool of states update it where nothing says otherwise: libraries agree
# with a reference that does, and not with one that leaves it as it was.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "on a GPU its Triton kernels run"
pytest_is_here # and fla beside it
given gdn_decode_qk8_v16_d128_k_last gdn_prefill_qk2_v4_d128_k_last
"$python" - definitions/gdn/*.json <<'END'
import json
import sys

POOLED = """
forward = run


def run(state, state_indices, **inputs):
    output, new = forward(state=state[state_indices.long()], **inputs)
    pool = state.clone()
    pool[state_indices.long()] = new
    return output, pool
"""
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        definition = json.load(file)
    inputs, outputs = definition["inputs"], definition["outputs"]
    sequences = inputs["state"]["shape"][0]
    inputs["state_indices"] = {"shape": [sequences], "dtype": "int32"}
    inputs["state"]["shape"][0] = outputs["new_state"]["shape"][0] = "pool_size"
    inputs["state"].pop("optional", None)
    definition["axes"]["pool_size"] = {"type": "var"}
    definition["constraints"].append("pool_size >= " + sequences)
    definition["reference"] += POOLED
    kept = dict(definition, name="kept_" + definition["name"])
    kept["reference"] = kept["reference"].replace("pool[state_indices.long()] = new", "")
    for one, name in ((definition, path), (kept, path.replace("gdn_", "kept_gdn_"))):
        with open(name, "w", encoding="utf-8") as file:
            json.dump(one, file)
END
verify --no-workloads --ground-truth fla
expect_exit 1
for name in gdn_decode_qk8_v16_d128_k_last gdn_prefill_qk2_v4_d128_k_last; do
	expect_status $name passed
	expect_status kept_$name failed numeric
	expect "set(all_of('$name', 'ground_truth')) == {'fla'}"
done
verify --no-workloads --ground-truth all gdn_decode_qk8_v16_d128_k_last gdn_prefill_qk2_v4_d128_k_last
expect_exit 0

# So do generated tests ask of them.
rm definitions/gdn/kept_*
run generate
expect_exit 0
cat >"$work/ask.py" <<'END'
import sys

sys.path.insert(0, "tests/references")
import test_gdn

for test in (x for x in vars(test_gdn).values() if hasattr(x, "NAME")):
    assert test_gdn.gdn_updates(test, {}) is True, test.NAME
    inputs = test_gdn.gdn_inputs(test_gdn.conftest.definition_of(test), test.SIZES[0].axes)
    try:
        test_gdn.gdn_flashinfer(test, inputs)
    except NotImplementedError as why:
        print(test.NAME, why)
    except test_gdn.conftest.Unavailable:  # here; where there is a GPU it is asked
        print(test.NAME, "unavailable")
END
step='generated tests' status=0
"$python" "$work/ask.py" >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
expect_says 'gdn_prefill_qk2_v4_d128_k_last packed, it takes a state of each sequence' 'gdn_decode_qk8_v16_d128_k_last unavailable'
