#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# If the cache is read-only or its disk is full, the run still prints the verdict, and reports that the verdict could
# not be stored. Stored verdicts are not lost.
. "$(dirname "$0")/../harness.sh"
isolated=$([ "$(id -u)" = 0 ] && echo 'unshare -m' || echo 'unshare -rm')
$isolated true 2>/dev/null || skip "this machine has no mount namespaces, which are needed to fill a disk"
given tiny_gemm
verify
expect_exit 0
all=$(value "s['cases_run']")

# `inside MOUNT ARGUMENT…`: runs the shell command MOUNT and then `reftest ARGUMENT…` in a new mount namespace.
inside() {
	mount_it=$1
	shift
	step="reftest $* (after $mount_it)"
	status=0
	$isolated sh -c "$mount_it && shift && exec \"\$@\"" sh x "$reftest" "$@" >"$work/out" 2>"$work/err" </dev/null ||
		status=$?
}
arguments='verify --format json --device cpu --sizes small --jobs 1'

# shellcheck disable=SC2086 # words
inside 'mount --bind .reftest .reftest && mount -o remount,bind,ro .reftest' $arguments --force
expect_exit 0
expect_ran "$all"
expect "s['not_kept'] is not None"
expect_says 'Read-only'
# shellcheck disable=SC2086
inside 'mount --bind .reftest .reftest && mount -o remount,bind,ro .reftest' $arguments
expect_exit 0
expect_cached "$all"

mkdir "$work/kept"
cp -r .reftest/. "$work/kept"
full="mount -t tmpfs -o size=300k none .reftest && cp -r '$work/kept/.' .reftest && head -c 1M /dev/zero >.reftest/fill"
# shellcheck disable=SC2086
inside "{ $full || true; }" $arguments --seed 1
expect_exit 0
expect_ran "$all"
expect "s['not_kept'] is not None"
verify
expect_exit 0
expect_cached "$all"
