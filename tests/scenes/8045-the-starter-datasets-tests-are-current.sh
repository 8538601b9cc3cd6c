#!/bin/sh
# 8045: tests/references holds what `make references` writes from the starter dataset, and ruff has nothing to say of it.
# By op_type, not by definition: a family's functions stand once there, which is half the size.
. "$(dirname "$0")/scene.sh"
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
# Nothing passes by returning or by not running: no test function has a value, each of them calls a check, and every
# family makes its own inputs.
expectations=$((expectations + 1))
"$python" -I -S -c '
import ast, glob
for path in glob.glob("tests/references/test_*.py"):
    assert "generic_inputs" not in open(path).read(), f"{path}: a family brings no inputs"
    for node in ast.walk(ast.parse(open(path).read())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            assert not any(isinstance(part, ast.Return) for part in ast.walk(node)), f"{path}:{node.lineno} returns"
            assert "conftest.check_" in ast.unparse(node), f"{path}:{node.lineno} checks nothing"' 2>"$work/err" ||
	fail "a test function returns or checks nothing"
edit definitions/gemm/gemm_n1024_k4096.json 'import torch' 'import torch as torch'
run generate --check
expect_exit 1
expect_says 'test_gemm.py is out of date'
