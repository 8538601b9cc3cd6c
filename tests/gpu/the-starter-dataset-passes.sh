#!/bin/sh
# Every definition of the starter dataset passes on a GPU at every size, with tensors passed through CUDA IPC and
# through the host. The verdict of a CPU is not accepted for a GPU, and the verdict of a GPU is not accepted if the CPU
# was requested.
. "$(dirname "$0")/../e2e/harness.sh"
cp -r "$top/definitions" "$top/workloads" "$top/blob" .
run verify --format json --device cuda:0 --sizes small,medium,large
expect_exit 0
expect "s['definitions'] == s['passed'] == len(d) and s['definitions'] >= 10"
expect "all(case['device_class'].startswith('sm_') for case in c.values())"
run verify --format json --device cuda:0 --sizes small,medium,large
expect_exit 0
expect_ran 0
run verify --format json --device cuda:0 --sizes small --no-workloads --staged-arena --force
expect_exit 0
expect "s['passed'] == len(d) and s['cases_run'] >= len(d)"
run verify --format json --device cpu --cached-only --sizes small
expect_exit 3
expect_cached 0

given tiny_norm
run verify --format json --device cpu --sizes small tiny_norm
expect_exit 0
run verify --format json --device cuda:0 --sizes small --cached-only tiny_norm
expect_exit 3
expect_cached 0
