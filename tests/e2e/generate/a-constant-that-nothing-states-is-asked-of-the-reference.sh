#!/bin/sh
# If no tag, name or description of a definition gives the epsilon or the RoPE theta, generated tests find the value
# from the reference's outputs. A comment beside the constant in the generated file says where the value comes from. The
# generated test then compares the reference with a ground truth that uses this value. A reference that is wrong in
# anything other than this value still fails.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given rmsnorm_h128 gemma_rmsnorm_h5376 layernorm_h768 rope_pos_ids_h32_kv8_d128 gdn_mtp_qk2_v4_d128_k_last
"$python" -I -S -c '
import glob, json
for path in glob.glob("definitions/*/*.json"):
    d = json.load(open(path))
    d["tags"], d["description"] = [], "What it takes is in its name."
    json.dump(d, open(path, "w"))'
run generate
expect_exit 0
for line in 'EPS = None  # unattested: PROBE asks' 'ROPE_THETA = None  # unattested: PROBE asks' \
	'UPDATES_STATE = None  # unattested: PROBE asks' 'PROBE = conftest.probe("probe", batch_size='; do
	expectations=$((expectations + 1))
	grep -qF "$line" tests/references/test_*.py || fail "no generated file has '$line'"
done
run_pytest -rs -k "small and (numerical or builtin)"
expect_exit 0
expectations=$((expectations + 1))
! grep -q 'attests' "$work/out" || fail "a ground truth was skipped because a constant is unknown"
[ "$build" = "$top/build" ] || exit 0 # another build differs only in the program that generates the tests
cp definitions/rmsnorm/rmsnorm_h128.json "$work/right.json"
edit definitions/rmsnorm/rmsnorm_h128.json 'normed * weight.float()' 'normed * (weight.float() + 0.02)'
run generate
run_pytest -k "TestRmsnorm and small and (numerical or builtin)"
expect_exit 1
expect_says "no value of a constant explains the reference's outputs: "
cp "$work/right.json" definitions/rmsnorm/rmsnorm_h128.json
edit definitions/rmsnorm/rmsnorm_h128.json 'normed * weight.float()' 'normed.clamp(-1.5, 1.5) * weight.float()'
run generate
run_pytest -k "TestRmsnorm and small and (numerical or builtin)"
expect_exit 1
for figures in 'hit ratio 0\.[0-9]*, needed 1' 'max abs [^ ]*, mean abs [^ ]*, max rel ' ' mean rel [^ ]*, cosine [^ ]*, mse '; do
	expectations=$((expectations + 1))
	grep -qE "$figures" "$work/out" || fail "a failure does not show '$figures'"
done
worst=$(grep -cE '^E +\[[0-9]+, [0-9]+\]  actual .*  expected .*  \|difference\| ' "$work/out")
[ "$worst" -ge 5 ] || fail "a failure does not name five places"
# The report of a failure names only one line of conftest.py, and none of the report's lines is longer than 100 columns.
expectations=$((expectations + 2))
[ "$(grep -c 'conftest.py:[0-9]' "$work/out")" = "$(grep -c '^FAILED ' "$work/out")" ] ||
	fail "a failure shows more of conftest.py than the line of the test"
! grep '^E ' "$work/out" | grep -qE '.{101}' || fail "a failure has lines of more than 100 columns"
