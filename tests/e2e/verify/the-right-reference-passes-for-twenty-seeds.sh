#!/bin/sh
# A correct reference passes every tolerance rule, with twenty seeds at every size.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
for seed in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
	verify --sizes small,medium,large --no-workloads --seed $seed
	expect_exit 0
	expect "s['cases_run'] > 0 and s['failed'] == 0"
done
