#!/bin/sh
# own interpreter: the test checks what a reference can access.
# While a reference runs, the key and the address of the remote cache are not in /proc/PID/environ of any process of the
# run.
. "$(dirname "$0")/../harness.sh"
. "$top/tests/e2e/remotes.sh"

redis_begins
REFTEST_CACHE_KEY=$("$reftest" key)
export REFTEST_CACHE_KEY REFTEST_REMOTE
with_gates
define waits <<END
import torch


def run(hidden_states, weight):
    gate("$work/started", "$work/go")
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
END
begin verify --format json --device "$device" --sizes small --jobs 1
started
secret=${REFTEST_CACHE_KEY#*:} address=$REFTEST_REMOTE
for process in $(processes); do
	[ -r "/proc/$process/environ" ] || continue
	expectations=$((expectations + 1))
	tr '\0' '\n' <"/proc/$process/environ" >"$work/environ" 2>/dev/null || continue
	for text in "$secret" "$address"; do
		! grep -qF -e "$text" "$work/environ" ||
			fail "the environment of $(cat "/proc/$process/comm") contains $(grep -F -e "$text" "$work/environ" | cut -d = -f 1)"
	done
done
[ "$expectations" -ge 3 ] || fail "only $expectations processes were examined"
: >"$work/go"
ended
expect_exit 0
expect_status waits passed
expect_silence_about "$secret"

# Although the key and the address were hidden, reftest has used both: the verdicts are in the remote cache, signed with
# the key.
rm -rf .reftest
verify --cached-only
expect_exit 0
expect_ran 0
REFTEST_CACHE_KEY=$("$reftest" key)
rm -rf .reftest
verify --cached-only
expect_exit 3
expect_says 'signature was not made with REFTEST_CACHE_KEY'
