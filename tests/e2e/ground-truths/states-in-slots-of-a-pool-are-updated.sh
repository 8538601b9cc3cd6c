#!/bin/sh
# Some definitions keep states in slots of a pool. An operation on one token or on packed sequences updates the pool,
# unless the definition says otherwise. Libraries agree with a reference that updates the pool, and disagree with a
# reference that does not.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "on a GPU flash-linear-attention runs its Triton kernels"
pytest_is_here # makes pytest available together with fla
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
verify --no-workloads --ground-truth all
expect_exit 1
for name in gdn_decode_qk8_v16_d128_k_last gdn_prefill_qk2_v4_d128_k_last; do
	expect_status $name passed
	expect_status kept_$name failed numeric
	expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for case in d['$name']['cases'])"
	expect "all(w['passed_over'] is None for case in d['$name']['cases'] for w in case['witnesses'])"
	expect "all('against fla' in case['message'] for case in d['kept_$name']['cases'] if case['status'] == 'failed')"
done

# Generated tests call the libraries in the same way as `verify`.
run generate
expect_exit 0
run_pytest -k 'ground_truth and fla and not fla_chunk and small' -rA --tb=no
expect_exit 1
for class in GdnDecodeQk8V16D128KLast GdnPrefillQk2V4D128KLast; do
	expect_says "PASSED tests/references/test_gdn.py::Test$class::test_against_ground_truth[fla" \
		"FAILED tests/references/test_gdn.py::TestKept$class::test_against_ground_truth[fla"
done
