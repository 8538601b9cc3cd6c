#!/bin/sh
# verify -x stops at the first definition that fails, and the remaining definitions stay unknown. --last-failed verifies
# the definitions that failed or were invalid in their last run; if there are none, it verifies all definitions. -q
# lists only failures, and -v lists everything.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm rmsnorm_h128
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.1 * torch.matmul'

verify -x
expect_exit 1
expect_status tiny_gemm failed
expect "s['stopped'] and not s['interrupted'] and s['unknown'] == 2 and s['failed'] == 1 and s['passed'] == 0"
run verify --device "$device" --sizes small --jobs 1 -x
expect_exit 1
expect_says 'the run stopped at the first failure (--fail-fast)' '1 failed, 2 unknown'
expect_silence_about 'interrupted'

# The failure of a definition is remembered, even if the definition has no earlier verdicts. If the definition passes
# later, the failure is forgotten.
verify
expect_exit 1
expect "not s['stopped']"
verify --last-failed
expect_exit 1
expect "list(d) == ['tiny_gemm']"
echo nonsense >definitions/rmsnorm/tiny_norm.json
verify
expect_exit 2
verify --last-failed
expect "sorted(d) == ['tiny_gemm', 'tiny_norm']"
given tiny_norm
edit definitions/gemm/tiny_gemm.json 'return 1.1 * torch.matmul' 'return torch.matmul'
verify --last-failed
expect_exit 0
expect "sorted(d) == ['tiny_gemm', 'tiny_norm']"
run verify --device "$device" --sizes small --jobs 1 --last-failed
expect_exit 0
expect_says 'no definition failed in its last run, so reftest verifies all of them' '3 definitions: 3 passed'

# A run of a single case does not make the definition count as passed, so --last-failed still selects the definition.
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return (1.1 if A.shape[0] > 1 else 1) * torch.matmul'
verify tiny_gemm
expect_exit 1
verify tiny_gemm --case small:M=1
expect_exit 0
verify --last-failed
expect "list(d) == ['tiny_gemm']"

run verify --device "$device" --sizes small --jobs 1 -q
expect_says 'FAILED   gemm/tiny_gemm' '3 definitions'
expect_silence_about 'passed   '
run verify --device "$device" --sizes small --jobs 1 -v
expect_says 'FAILED   gemm/tiny_gemm' 'passed   rmsnorm/tiny_norm'
run verify -q -v
expect_exit 2
run verify --last-failed --staged
expect_exit 2
