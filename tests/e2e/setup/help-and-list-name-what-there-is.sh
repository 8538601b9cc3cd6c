#!/bin/sh
# Tests `reftest help COMMAND`, -V, `reftest list`, and the message for a NAME that is an op_type.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
run --version
expect_exit 0
cp "$work/out" "$work/version"
run -V
expect_exit 0
cmp -s "$work/out" "$work/version" || fail "-V is not --version"
for command in verify list help; do
	run "$command" --help
	cp "$work/out" "$work/help"
	run "$command" -h
	cmp -s "$work/out" "$work/help" || fail "-h is not --help"
	run help "$command"
	expect_exit 0
	cmp -s "$work/out" "$work/help" || fail "help $command is not $command --help"
done
run --help
cp "$work/out" "$work/help"
run help
expect_exit 0
cmp -s "$work/out" "$work/help" || fail "help is not --help"
run help verfy
expect_exit 2
expect_says "there is no command 'verfy'; did you mean 'verify'?"

run list
expect_exit 0
[ "$(tr '\n' ' ' <"$work/out")" = 'gemm/tiny_gemm rmsnorm/tiny_norm ' ] || fail "list does not print the two names"
run list --op-type gemm
[ "$(cat "$work/out")" = gemm/tiny_gemm ] || fail "list --op-type does not select"
run list --format json 'tiny_n*'
expect_exit 0
expect "[one['path'] for one in r['definitions']] == ['definitions/rmsnorm/tiny_norm.json'] and r['schema'] == 1"
run list tiny_nrom
expect_exit 2
expect_says "did you mean 'tiny_norm'?"
[ ! -e .reftest ] || fail "list wrote to the dataset"

for command in verify status list; do
	run "$command" rmsnorm
	expect_exit 2
	expect_says "has no definition 'rmsnorm'; \`--op-type rmsnorm\` selects the definitions of this op_type"
done
