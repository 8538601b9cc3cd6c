#!/bin/sh
# 3070: an interpreter behind a launcher (as pyenv, mise, conda run and environment modules have it) may be another one the next
# time, while the launcher stays as it is: no verdict of the other torch counts, whatever stat says. A verdict is stored under
# the torch that ran, even where that is not the one that was said to be there. For an interpreter that is none, nothing is
# asked anew.
. "$(dirname "$0")/scene.sh"
program=$build/tests/faults/interpreter # answers as python and torch do, and is said to have the torch of $REFTEST_FAKE_TORCH
[ -x "$program" ] || fail "there is no $program: make unit-tests builds it"
for torch in 9.9.9 8.8.8; do
	mkdir "$work/$torch"
	printf "__version__ = '%s'\ncuda = None\n" $torch >"$work/$torch/version.py"
done
cat >"$work/python3" <<E
#!/bin/sh
export REFTEST_FAKE_TORCH="$work/\$(cat "$work/chosen")"
exec "$program" "\$@"
E
chmod +x "$work/python3"
ln -s "$program" "$work/itself"
mkdir -p definitions/gemm
cat >definitions/gemm/product.json <<'E'
{"name": "product", "op_type": "gemm", "description": "C = A B^T.",
 "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}, "K": {"type": "const", "value": 8}},
 "inputs": {"A": {"shape": ["M", "K"], "dtype": "float32"}, "B": {"shape": ["N", "K"], "dtype": "float32"}},
 "outputs": {"C": {"shape": ["M", "N"], "dtype": "float32"}},
 "reference": "import torch\n\n\ndef run(A, B):\n    return 'PRODUCT'\n"}
E

echo 9.9.9 >"$work/chosen"
verify --python "$work/python3"
expect_exit 0
expect "s['cases_run'] > 0"
verify --python "$work/python3"
expect_exit 0
expect_ran 0
echo 8.8.8 >"$work/chosen"
verify --python "$work/python3"
expect "s['cases_run'] > 0"

# It is what the template says (of this program 9.9.9, always) that a verdict is stored under; who was wrong says so.
expect "set(all_of('product', 'torch')) == {'9.9.9'}"
expect_says "not with the 8.8.8 that it was said to have"
verify --python "$work/python3" --changed
expect "s['cases_run'] > 0"
echo 9.9.9 >"$work/chosen"
verify --python "$work/python3" --changed
expect_exit 0
expect_ran 0

# The program itself is asked once: then what it said is remembered, and it could not say anything else.
export REFTEST_FAKE_TORCH="$work/9.9.9"
verify --python "$work/itself"
expect_exit 0
export REFTEST_FAKE_TORCH="$work/8.8.8"
verify --python "$work/itself"
expect_exit 0
expect_ran 0
