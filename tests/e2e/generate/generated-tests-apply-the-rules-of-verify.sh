#!/bin/sh
# Generated tests apply the same bounds as verify, including a definition's own tolerance, with and without reftest's
# kernels. A generated test passes if and only if verify passes.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
NORM='import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    return (normed * %s).to(hidden_states.dtype)
'
# `tolerates NAME MEMBER JSON`: sets "tolerance" to JSON in the member MEMBER of the definition NAME, or at the
# definition's top level if MEMBER is "".
tolerates() {
	"$python" -I -S - "$@" <<'END_OF_PYTHON'
import json
import sys

name, member, tolerance = sys.argv[1:]
path = f"definitions/rmsnorm/{name}.json"
definition = json.load(open(path))
(definition["outputs"][member] if member else definition)["tolerance"] = json.loads(tolerance)
json.dump(definition, open(path, "w"))
END_OF_PYTHON
}
# shellcheck disable=SC2059 # the format is ours
{
	printf "$NORM" 1.05 | define wide
	printf "$NORM" 1.05 | define wide_output
	printf "$NORM" 1.05 | define narrowed_output
	printf "$NORM" 1.003 | define narrow
}
tolerates wide '' '{"atol": 0.01, "rtol": 0.1}'
tolerates wide_output output '{"rtol": 0.1}'
tolerates narrowed_output '' '{"rtol": 0.1}'
tolerates narrowed_output output '{"rtol": 0.01}'
tolerates narrow '' '{"atol": 0, "rtol": 0.0005, "hit_ratio": 0.999}'
verify --sizes small,medium --ground-truth builtin
expect_exit 1
expect_status wide passed
expect_status wide_output passed
expect_status narrowed_output failed numeric
expect_status narrow failed numeric
run generate
expect_exit 0
expect_failures() { # expect_failures CLASS FAILED: expects this result of the numerical tests of the class
	expectations=$((expectations + 1))
	! grep -q '^ERROR' "$work/out" || fail "$step: an error"
	grep -q "^FAILED .*::Test$1::test_numerical" "$work/out" && found=1 || found=0
	[ "$found" = "$2" ] || fail "$step: $1 has another result"
}
for kernels in "$top/build" "$work/nowhere"; do
	step="pytest with the kernels of $kernels"
	REFTEST_KERNELS=$kernels "$python" $pytest -q -rfE -p no:cacheprovider --device "$device" tests/references \
		-k 'numerical or against or determinism or independent' >"$work/out" 2>"$work/err" && status=0 || status=$?
	expect_exit 1
	expect_failures Wide 0
	expect_failures WideOutput 0
	expect_failures NarrowedOutput 1
	expect_failures Narrow 1
	expect_silence_about 'FAILED tests/references/test_rmsnorm.py::TestWide'
done

# For each family, three sources give the same tolerance rules for each size: the generated class, verify's report, and
# the kernels library.
rm -r definitions tests
given rmsnorm_h128 gemm_n1024_k4096 gqa_paged_decode_h40_kv8_d128_ps16 gdn_mtp_qk2_v4_d128_k_last silu_and_mul_h2048 \
	softmax_v128256 layernorm_h768 rope_pos_ids_h32_kv8_d128 gdn_mtp_qk_l2norm_qk2_v4_d128_k_last
rm -rf workloads
run generate
expect_exit 0
verify --ground-truth builtin
expect_exit 0
step='rules' status=0
REFTEST_KERNELS=$top/build "$python" - "$work/out" >"$work/rules" 2>"$work/err" <<'END' || status=$?
import importlib
import json
import pathlib
import sys

sys.path.insert(0, "tests/references")
import conftest
import torch

verified = {one["name"]: one for one in json.load(open(sys.argv[1]))["definitions"]}
for path in sorted(pathlib.Path("tests/references").glob("test_*.py")):
    for test in vars(importlib.import_module(path.stem)).values():
        if not hasattr(test, "NAME"):
            continue
        found = {case["id"]: case for case in verified[test.NAME]["cases"]}
        for place, case in enumerate(test.SIZES):
            if case.label != "small" or repr(case) not in found:
                continue
            for index, (rows, output) in enumerate(zip(test.RULES, found[repr(case)]["outputs"])):
                reported = tuple(output[key] for key in ("atol", "rtol", "hit_ratio_needed"))
                row = rows[place if len(rows) > 1 else 0]
                print("same" if row == reported else f"{test.NAME} {case} has {row}, verify {reported}")
                inputs = conftest.scalars_of(test, case)
                kernels = conftest.kernels().rule(conftest.kernels_case(test, case, inputs), index)
                print("alike" if kernels == reported else f"{test.NAME} {case}: kernels have {kernels}, verify {reported}")
END
cp "$work/rules" "$work/out"
expect_exit 0
expect_says same alike
expect_silence_about has have
