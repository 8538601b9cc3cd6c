#!/bin/sh
# own interpreter: the test starts interpreters with another torch or other settings.
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A launcher (pyenv, mise, conda run, environment modules) may start another interpreter in the next run, although the
# launcher's file is unchanged. Verdicts of another version of torch must not be accepted, even if stat shows no change
# of the launcher. A verdict is stored under the version of torch that ran the reference, even if another version was
# reported before. The same holds for the version of Python. Without a launcher, the interpreter is started only once to
# find its version of torch.
. "$(dirname "$0")/../harness.sh"
program=$build/tests/faults/interpreter # a program that imitates Python, and reports the torch of $REFTEST_FAKE_TORCH
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

# The launcher was asked for the version of torch and answered 8.8.8, but the process that runs references has torch
# 9.9.9. The verdict is stored under version 9.9.9, and a message says that this is not the expected version.
expect "set(all_of('product', 'torch')) == {'9.9.9'}"
expect_says "but torch 8.8.8 was expected"
verify --python "$work/python3" --changed
expect "s['cases_run'] > 0"
echo 9.9.9 >"$work/chosen"
verify --python "$work/python3" --changed
expect_exit 0
expect_ran 0

# Verdicts of another version of Python are not accepted, either.
echo 9.9.9 >"$work/chosen"
export REFTEST_TEST_PYTHON=3.98.0+pth.0123456789ab+packages.0123456789ab # the longest form
verify --python "$work/python3"
expect "s['cases_run'] > 0"
expect "set(all_of('product', 'python')) == {'$REFTEST_TEST_PYTHON'}"
verify --python "$work/python3"
expect_ran 0
unset REFTEST_TEST_PYTHON
verify --python "$work/python3"
expect_exit 0
expect_ran 0

# If the interpreter is used without a launcher, it is started only once to find its version of torch. The version is
# stored, because it can change only if the interpreter's file changes.
export REFTEST_FAKE_TORCH="$work/9.9.9"
verify --python "$work/itself"
expect_exit 0
export REFTEST_FAKE_TORCH="$work/8.8.8"
verify --python "$work/itself"
expect_exit 0
expect_ran 0
