#!/bin/sh
# 8030: `generate --audit` names hand-written tests that cannot fail, by file and line, and nothing else.
. "$(dirname "$0")/scene.sh"
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
expect_says 'test_tiny_norm.py:5: run is a pasted copy that differs from the reference of definitions/rmsnorm/tiny_norm.json' \
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
