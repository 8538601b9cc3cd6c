#!/bin/sh
# own interpreter: the test starts interpreters with another library.
# A summary says that a definition passed, so that a run need not look up each case. If a verdict of one of its cases is
# replaced by a failure, the summary no longer counts: after `verify --force` of an equal definition, after an import, and
# for a watcher. To make a stored verdict wrong, the test replaces a library of LD_PRELOAD, which reftest knows only by
# its path.
. "$(dirname "$0")/../harness.sh"
library() { # library RESULT: erf() returns this number
	echo "double erf(double x) { return x * 0 + $1; }" >"$work/erf.c"
	${CC:-cc} -shared -fPIC -fno-builtin -o "$work/new.so" "$work/erf.c" || fail "erf.c does not compile"
	mv "$work/new.so" "$work/erf.so"
}
verifies() { LD_PRELOAD="$work/erf.so" run verify --sizes small --device "$device" --jobs 1 "$@"; }
reference() {
	define "$1" <<'END'
import math
import torch

EPSILON = 1e-6 + math.erf(0.0)


def run(hidden_states, weight):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight.float()).to(hidden_states.dtype)
END
}
reference first
reference twin
library 0.0
verifies -q
expect_exit 0
verifies -q
expect_exit 0

step='an equal definition fails'
library 0.01
verifies -q # documented: the library is known only by its path
expect_exit 0
verifies twin --force
expect_exit 1
verifies -q first
expect_exit 1
verifies --changed --alone
expect_exit 1

step='a failure is imported'
library 0.0
verifies -q --force
expect_exit 0
verifies -q
expect_exit 0
sleep 1.1 # the times of verdicts are whole seconds
cp -r . "$work/copy"
library 0.01
(cd "$work/copy" && LD_PRELOAD="$work/erf.so" "$reftest" verify --sizes small --device "$device" --force >/dev/null 2>&1 &&
	fail 'the reference passes with the other library'
	"$reftest" cache export "$work/verdicts" >/dev/null) || fail 'the verdicts cannot be exported'
run cache import "$work/verdicts"
expect_exit 0
verifies -q --cached-only
expect_exit 1

step='a watcher runs'
library 0.0
verifies -q --force
expect_exit 0
export LD_PRELOAD="$work/erf.so"
beside() { # does the same as `verifies` while the watcher runs
	status=0
	"$reftest" verify --sizes small --device "$device" --jobs 1 "$@" >"$work/answer" 2>&1 </dev/null || status=$?
}
watch
beside --changed
expect_exit 0
library 0.01
beside twin --force
expect_exit 1
beside --changed
expect_exit 1
# The watcher verifies one definition, and knows of the other one only what held before.
library 0.0
sed -i 's/1e-6/1e-06/' definitions/rmsnorm/first.json
await "e['event'] == 'verdict' and e['name'] == 'first'"
beside --changed
expect_exit 1
end_watch
