#!/bin/sh
# tests/references contains exactly the files that `make references` writes from the starter dataset, and ruff accepts
# them. There is one generated file for each op_type, and not for each definition.
. "$(dirname "$0")/../harness.sh"
ruff_is_here
mkdir tests
cp -r "$top/definitions" .
cp -r "$top/tests/references" tests/
step="tests/references is not current: make references"
run generate --check
expect_exit 0
expect_says ' 0 without, 0 stale' ' 0 out of date, 0 removed'
expectations=$((expectations + 1))
"$ruff" format --isolated --no-cache --check tests/references >"$work/out" 2>"$work/err" || fail "ruff format would change something"
"$ruff" check --isolated --no-cache tests/references >"$work/out" 2>"$work/err" || fail "ruff check finds something"
# No generated test may pass only because it returns early or is skipped. To ensure this, each class must have only the
# tests of conftest.py. None of these tests may return a value, and each must call a check.
expectations=$((expectations + 1))
"$python" -I -S -c '
import ast, glob
for path in glob.glob("tests/references/test_*.py"):
    assert "generic_inputs" not in open(path).read(), f"{path}: a family brings no inputs"
    for node in ast.parse(open(path).read()).body:
        if isinstance(node, ast.ClassDef):
            assert [ast.unparse(base) for base in node.bases] == ["conftest.DefinitionTests"], f"{path}:{node.lineno} has no tests"
            assert all(isinstance(part, ast.Assign) for part in node.body), f"{path}:{node.lineno} has tests of its own"
conftest = ast.parse(open("tests/references/conftest.py").read())
tests = [node for node in ast.walk(conftest) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
assert len(tests) == 10, len(tests)
for node in tests:
    assert not any(isinstance(part, ast.Return) for part in ast.walk(node)), f"{node.name} returns"
    assert "check_" in ast.unparse(node.body), f"{node.name} checks nothing"' 2>"$work/err" ||
	fail "a test function returns or checks nothing"
edit definitions/gemm/gemm_n1024_k4096.json 'import torch' 'import torch as torch'
run generate --check
expect_exit 1
expect_says 'test_gemm.py is out of date'
