#!/bin/sh
# `generate --audit` lists hand-written tests that cannot fail, with file and line, and lists no other tests.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
mkdir -p tests/references
cat >tests/references/test_tiny_norm.py <<'PYTHON'
import torch


@torch.no_grad()
def run(hidden_states, weight):
    return hidden_states * 2


def compare(a, b):
    return torch.allclose(a, b)


def test_correctness():
    ok = compare(run(1, 2), 3)
    return ok


def test_shape():
    print(run(1, 2).shape)


def test_good():
    assert compare(run(1, 2), 3)
PYTHON
printf 'def test_something():\n    assert 1 + 1 == 2\n' >tests/references/test_good.py
run generate --audit
expect_exit 1
expect_says 'test_tiny_norm.py:5: run() is an edited copy of the reference of definitions/rmsnorm/tiny_norm.json' \
	'test_tiny_norm.py:15: test_correctness returns its verdict' 'test_tiny_norm.py:18: test_shape compares nothing' \
	'2 hand-written test files, 3 findings'
rm tests/references/test_tiny_norm.py
run generate --audit
expect_exit 0
run generate
expect_exit 0
run generate --audit
expect_exit 0
expect_says '1 hand-written test file, 0 findings'

# A file that Python cannot parse is a finding, and the other files are still audited.
printf 'def test_broken(:\n    assert x\n' >tests/references/test_broken.py
printf 'def test_it():\n    print(1)\n' >tests/references/test_it.py
run generate --audit
expect_exit 1
expect_says 'test_broken.py:1: the file cannot be parsed by Python 3' 'test_it.py:1: test_it compares nothing' \
	'3 hand-written test files, 2 findings'

# Without a Python interpreter, the audit reports no findings about the files.
run generate --audit --python "$work/none"
expect_exit 3
expect_says '--python names' 'name a python3'
expect_silence_about 'findings'
rm tests/references/test_*.py
run generate --audit --python "$work/none"
expect_exit 0
expect_says '0 hand-written test files, 0 findings'

# tests/vacuous_tests.py checks the findings of python/vacuous_tests.py for many source texts.
"$python" "$top/tests/vacuous_tests.py" "$python" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
expect_says ' 0 wrong'
