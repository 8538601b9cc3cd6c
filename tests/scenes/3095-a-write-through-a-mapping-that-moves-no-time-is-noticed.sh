#!/bin/sh
# 3095: a store through a shared mapping moves a file's times only where its page was clean: a program that keeps a definition or
# tensors mapped changes them later without a trace in their stat. It is noticed all the same, for while anybody can write to
# a file its stat proves nothing; once nobody can, it does again.
. "$(dirname "$0")/scene.sh"
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/mapped" "$top/tests/scenes/tools/mapped.c" || fail "mapped.c does not compile"
offset() { # offset FILE TEXT: where in the file the text ends
	"$python" -I -S -c '
import sys
print(open(sys.argv[1], "rb").read().index(sys.argv[2].encode()) + len(sys.argv[2]))' "$@"
}
writes() { # writes N: it has written its Nth byte
	touch "$work/step$1"
	for _ in $(seq 500); do
		[ -e "$work/step$1" ] || return 0
		sleep 0.02
	done
	fail "nothing is written"
}
stamps() { stat -c '%y %z %s %i' "$1"; }
plain() { run verify --changed --device "$device" --sizes small --jobs 1; } # for JSON every definition is read

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
sessions="$sessions $mapper $other" # ended with the scene
writes 1 # a store of what stood there: the page is dirty now, and the times are of now
touch "$work/stop1"
sleep 2.5 # beyond the time within which a stat is not believed anyway
plain
expect_exit 0
before=$(stamps $norm)
writes 2
[ "$(stamps $norm)" = "$before" ] || skip "here a store through a mapping moves the times of $norm each time"
plain
expect_exit 1
expect_says 'FAILED   rmsnorm/tiny_norm'
writes 3
plain
expect_exit 0
kill $mapper

# Tensors alike, even where not --changed is asked
touch "$work/stop2"
while [ -e "$work/stop2" ]; do sleep 0.02; done
verify
expect "s['cases_run'] > 0"
kill $other
verify
sleep 2.5
verify # nobody can write to them any more: from now on their stat is believed
verify --changed
expect_ran 0
