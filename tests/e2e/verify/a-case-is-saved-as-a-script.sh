#!/bin/sh
# `verify --case ID --save DIR` writes a script that reproduces the failure and needs only torch, and not reftest or the
# dataset. The script exits with 1 and names the same worst element as verify. If the reference in the script is
# corrected, the script exits with 0. The script can also compare an output in float8_e4m3fn. Files that reftest did not
# write are not replaced.
. "$(dirname "$0")/../harness.sh"
given tiny_norm quantize_fp8_per_token_group_h128_g128
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-3'
run verify tiny_norm --case small:batch_size=1 --device "$device" --save "$work/saved"
expect_exit 1
expect_says "python $work/saved/reproduce.py"
worst=$(grep -o 'the worst at \[[0-9, ]*\]' "$work/out" | head -n 1 | grep -o '\[.*')

# alone SCRIPT: runs a script that cannot find reftest or the dataset
alone() {
	step="the script $1"
	(cd / && env -i PATH=/usr/bin:/bin HOME="$work" "$python" "$1") >"$work/out" 2>"$work/err" && status=0 || status=$?
}
mv "$root" "$work/hidden"
alone "$work/saved/reproduce.py"
expect_exit 1
grep -qF "at $worst  reference" "$work/out" || fail "the script does not show the worst element $worst"
expect_says 'elements exceed the bound' 'reftest said: output'
edit "$work/saved/reproduce.py" 'EPSILON = 1e-3' 'EPSILON = 1e-6'
alone "$work/saved/reproduce.py"
expect_exit 0
expect_says ': 0 of '
mv "$work/hidden" "$root"

run verify quantize_fp8_per_token_group_h128_g128 --case small:num_tokens=1 --device "$device" --save "$work/saved"
expect_exit 0
alone "$work/saved/reproduce.py"
expect_exit 0
expect_says "output 'q': the same as in reftest's run"

echo 'print("mine")' >"$work/saved/reproduce.py"
run verify tiny_norm --case small:batch_size=1 --save "$work/saved"
expect_exit 2
expect_says 'that reftest did not write'
[ "$(cat "$work/saved/reproduce.py")" = 'print("mine")' ] || fail "a file of the user was replaced"
run verify tiny_norm --save "$work/other"
expect_exit 2
expect_says '--save needs --case'
