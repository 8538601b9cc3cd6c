#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A write through a shared mapping changes a file's timestamps only if the page was clean. So a program that has mapped
# a definition or tensors can change them later, and stat does not show the change. reftest notices the change anyway,
# because it does not trust stat for a file to which some process can still write. On tmpfs, stat may never show a write
# through a mapping that was made after reftest read the file, so reftest reads the files there in every run.
. "$(dirname "$0")/../harness.sh"
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/mapped" "$top/tests/e2e/tools/mapped.c" || fail "mapped.c does not compile"
offset() { # offset FILE TEXT: prints the position in the file where the text ends
	"$python" -I -S -c '
import sys
print(open(sys.argv[1], "rb").read().index(sys.argv[2].encode()) + len(sys.argv[2]))' "$@"
}
writes() { # writes N: lets the program `mapped` write its Nth byte, and waits until it has done so
	touch "$work/step$1"
	for _ in $(seq 500); do
		[ -e "$work/step$1" ] || return 0
		sleep 0.02
	done
	fail "the mapping program did not write"
}
stamps() { stat -c '%y %z %s %i' "$1"; }
# `plain`: runs `verify --changed` without --format json, so that it reads only the definitions that changed.
plain() { run verify --changed --device "$device" --sizes small --jobs 1; }

given tiny_norm
norm=definitions/rmsnorm/tiny_norm.json
tensors=$(find blob -name '*.safetensors' | head -n 1)
last=$(($(stat -c %s "$tensors") - 1))
verify
expect_exit 0
setsid "$work/mapped" $norm "$(offset $norm 'EPSILON = 1e-')" "$work/step" 6 4 6 &
mapper=$!
setsid "$work/mapped" "$tensors" $last "$work/stop" 1 2 &
other=$!
sessions="$sessions $mapper $other" # ends the programs at the end of the test
writes 1 # stores the byte that is already there: the page becomes dirty, and the file's times become current
touch "$work/stop1"
sleep 2.5 # longer than the time during which reftest trusts no stat
plain
expect_exit 0
before=$(stamps $norm)
writes 2
[ "$(stamps $norm)" = "$before" ] || skip "on this filesystem each store through a mapping changes the times of $norm"
plain
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
writes 3
plain
expect_exit 0
kill $mapper

# A change of tensors through a mapping is also noticed, with and without --changed.
touch "$work/stop2"
while [ -e "$work/stop2" ]; do sleep 0.02; done
verify
expect "s['cases_run'] > 0"
kill $other
verify
sleep 2.5
verify # no process can write to the tensors any more, so reftest trusts their stat from now on
verify --changed
expect_ran 0

# The dataset is on tmpfs. A program maps a file only after reftest has read it.
[ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && memory=$(mktemp -d /dev/shm/reftest-XXXXXX) || exit 0
trap 'code=$?; rm -rf "$memory"; test_end $code' EXIT
cp -r definitions workloads blob "$memory"
cd "$memory"
sleep 2.5
plain
expect_exit 0
before=$(stamps $norm)
setsid "$work/mapped" $norm "$(offset $norm 'EPSILON = 1e-')" "$work/step" 4 6 &
mapper=$!
sessions="$sessions $mapper"
writes 1
plain
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
[ "$(stamps $norm)" = "$before" ] || fail "the mapping changed the times of $norm, so this test tests nothing"
writes 2
plain
expect_exit 0
kill $mapper
