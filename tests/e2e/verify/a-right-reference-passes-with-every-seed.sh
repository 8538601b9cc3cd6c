#!/bin/sh
# A correct reference passes every tolerance rule at every size, with several seeds, including the largest seed that
# reftest accepts.
# The unit tests of the op families use other seeds.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
for seed in 1 2 3 4294967296 18446744073709551615; do
	verify --sizes small,medium,large --no-workloads --seed $seed
	expect_exit 0
	expect "s['cases_run'] > 0 and s['failed'] == 0"
done
run verify --seed 18446744073709551616
expect_exit 2
