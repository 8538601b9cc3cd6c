#!/bin/sh
# own interpreter: the test starts interpreters with another torch or other settings.
# On a machine without a GPU, or with a CPU build of torch, --device cuda gives one message and exit status 3, in every
# command and in the generated tests. The JSON output still lists each definition.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given tiny_norm tiny_gemm
CUDA_VISIBLE_DEVICES= REFTEST_PYTHON=$python
export CUDA_VISIBLE_DEVICES REFTEST_PYTHON
for command in verify status explain watch; do
	case $command in explain) words=tiny_norm ;; watch) words=--once ;; *) words= ;; esac
	# shellcheck disable=SC2086 # no word, or one
	run $command --device cuda $words
	expect_exit 3
	expect_says 'reftest: '
	[ "$(wc -l <"$work/err")" = 1 ] && [ ! -s "$work/out" ] || fail "it prints more than one sentence"
	expect_silence_about tiny_
done
run verify --format json --device cuda
expect_exit 3
expect_status tiny_norm skipped unsupported_device
run verify --device cuda:0,1
expect_exit 3
run verify --device cuda:1,0,1
expect_exit 2
expect_says '--device names cuda:1 twice'
run verify --device cuda:0,x
expect_exit 2
expect_says "unknown device 'cuda:0,x'"
run generate
run_pytest --device cuda
expect_exit 3
expect_says '--device cuda: torch ' ' finds no CUDA GPU here'
[ "$(cat "$work/out" "$work/err" | grep -c .)" = 1 ] || fail "pytest prints more than one sentence"
