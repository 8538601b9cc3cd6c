#!/bin/sh
# Runs reftest with arguments that lead to each documented exit status. The report of a failure contains a command that
# runs the failed case again.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
run
expect_exit 2
run --help
expect_exit 0
expect_says verify status explain doctor
run verfy
expect_exit 2
expect_says "'verify'"
run verify --chnged
expect_exit 2
expect_says '--changed'
run verify tiny_nrom
expect_exit 2
expect_says 'tiny_norm'
run verify --sizes tiny
expect_exit 2
run --root /nowhere/at/all verify
expect_exit 2
rm -rf .reftest
verify --dry-run
expect_exit 3
expect_ran 0
expect "s['cases_cached'] == 0"
[ ! -e .reftest ] || fail "a dry run left a file behind"
verify --cached-only
expect_exit 3
expect_ran 0
verify --op-type no_such_type
expect_exit 2
run status --device cpu
expect_exit 3
expect_says 'unknown  rmsnorm/tiny_norm' '2 definitions: 2 unknown'
run verify --dry-run --device cpu
expect_exit 3
expect_says 'unknown  rmsnorm/tiny_norm' '2 definitions: 2 unknown'
run explain --device cpu tiny_norm
expect_exit 3
expect_says 'rmsnorm/tiny_norm is unknown' 'small:batch_size=1: unknown: ' 'the case has never been verified'

verify --sizes small,medium
expect_exit 0
verify --cached-only
expect_exit 0
verify --dry-run
expect_exit 0
run status --device cpu
expect_exit 0
expect_silence_about stale
run explain --device cpu tiny_norm
expect_exit 0
expect_says 'tiny_norm is verified'

edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.1 * torch.matmul'
run status --device cpu
expect_exit 3
expect_says 'stale    gemm/tiny_gemm' '2 definitions: 1 passed, 1 stale'
run verify --dry-run --device cpu
expect_exit 3
expect_says 'stale    gemm/tiny_gemm' '2 definitions: 1 passed, 1 stale'
run explain --device cpu tiny_gemm
expect_exit 3
expect_says 'gemm/tiny_gemm is stale' 'small:M=1: stale: ' 'reference changed'
run verify --device cpu --sizes small --jobs 1
expect_exit 1
expect_says 'gemm/tiny_gemm' 'numeric'
again=$(grep -o 'reftest verify .*--case .*' "$work/out" | head -n 1)
[ -n "$again" ] || fail "no line of a failure is a command"
step=$again
PATH="$build:$PATH" sh -c "$again --device cpu --force" >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 1
expect_says '1 case run, 0 cached'

rm -r definitions
mkdir definitions
verify
expect_exit 3
expect "s['definitions'] == 0"
