#!/bin/sh
# 8058: generated tests take what a workload gives as it is, and make the other inputs to suit it: a number that stands for
# padding is found among the slots.
. "$(dirname "$0")/scene.sh"
pytest_is_here
given mamba_ssu_decode_gated_h16_d64_s128_ng4
run generate
expect_exit 0
run_pytest -k "numerical and workload"
expect_exit 0
expectations=$((expectations + 1))
grep -q '^2 passed' "$work/out" || fail "not both workloads were compared"
