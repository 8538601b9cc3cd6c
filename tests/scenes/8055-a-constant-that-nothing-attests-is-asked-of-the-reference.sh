#!/bin/sh
# 8055: where no tag, name or description tells an epsilon or a theta, generated tests recover it from the reference's
# answers, say so where the constant stands, and compare with the ground truth that needs it; a reference that is wrong in
# another way still fails.
. "$(dirname "$0")/scene.sh"
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
for line in 'EPS = None  # unattested: rmsnorm_probe asks' 'ROPE_THETA = None  # unattested: rope_probe asks' \
	'UPDATES_STATE = None  # unattested: gdn_probe asks' 'PROBE = staticmethod(layernorm_probe)'; do
	expectations=$((expectations + 1))
	grep -qF "$line" tests/references/test_*.py || fail "no generated file has '$line'"
done
run_pytest -rs -k "small and (numerical or builtin)"
expect_exit 0
expectations=$((expectations + 1))
! grep -q 'attests' "$work/out" || fail "a ground truth was skipped for want of a constant"
[ "$build" = "$top/build" ] || exit 0 # only what generates differs in another build
edit definitions/rmsnorm/rmsnorm_h128.json 'normed * weight.float()' 'normed * (weight.float() + 0.02)'
run generate
run_pytest -k "TestRmsnorm and small and (numerical or builtin)"
expect_exit 1
for figures in 'hit ratio 0\.[0-9]*, needed 1' 'max abs [^ ]*, mean abs [^ ]*, max rel ' ' mean rel [^ ]*, cosine [^ ]*, mse '; do
	expectations=$((expectations + 1))
	grep -qE "$figures" "$work/out" || fail "a failure does not tell '$figures'"
done
worst=$(grep -cE '^E +\[[0-9]+, [0-9]+\]  actual .*  expected .*  \|difference\| ' "$work/out")
[ "$worst" -ge 5 ] || fail "a failure does not name five places"
# It is told where its test stands, in lines that fit a terminal.
expectations=$((expectations + 2))
! grep -q 'conftest.py:[0-9]' "$work/out" || fail "a failure leads through conftest.py"
! grep '^E ' "$work/out" | grep -qE '.{101}' || fail "a failure has lines of more than 100 columns"
