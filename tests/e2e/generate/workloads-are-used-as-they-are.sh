#!/bin/sh
# Generated tests use the input values of a workload unchanged, and generate the remaining inputs to match them. For
# example, if a workload gives the slot number that marks padding, the generated slot indices mark padding with this
# number.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given mamba_ssu_decode_gated_h16_d64_s128_ng4
run generate
expect_exit 0
run_pytest -k "numerical and workload"
expect_exit 0
expectations=$((expectations + 1))
grep -q '^2 passed' "$work/out" || fail "one of the two workloads was not compared"
