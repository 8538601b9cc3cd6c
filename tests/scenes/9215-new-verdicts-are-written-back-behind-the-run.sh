#!/bin/sh
# 9215: what is new goes to the remote behind the run's back: while a remote holds every PUT open the next references run and
# their verdicts are told and kept, and at the end all of it is there. One that takes long for all of it, but not for any one
# thing, is not given up. One that never takes anything, or never stops answering, is told of once, and what was found is kept
# here.
. "$(dirname "$0")/scene.sh"
with_gates
. "$top/tests/scenes/remotes.sh"
given tiny_gemm tiny_norm
define waits <<END
import torch

def run(hidden_states, weight):
    gate("$work/running", "$work/go")
    x = hidden_states.to(torch.float32)
    x = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
    return (x * weight.to(torch.float32)).to(torch.bfloat16)
END
http_begins
release=$work/http.log.release
REFTEST_REMOTE=$http/held?timeout=300
export REFTEST_REMOTE
REFTEST_CACHE_KEY=$("$reftest" key)
export REFTEST_CACHE_KEY

begin verify --device "$device" --sizes small --jobs 1 --timeout 300
told() { grep -q "$1" "$work/out"; }
held() { grep -q '^HELD ' "$work/http.log"; }
kept() { # DEFINITION: its verdicts are in the cache of this dataset
	REFTEST_REMOTE= "$reftest" verify --device "$device" --sizes small --jobs 1 --cached-only "$1" >/dev/null 2>&1
}
until_true test -e "$work/running" # the second definition's reference waits for its signal
until_true held                    # and the first one's verdicts are on their way, before the run has come to its end
courier=
for child in $(cat "/proc/$program/task/$program/children"); do
	! grep -qs courier "/proc/$child/cmdline" || courier=$child
done
grep -qz '^REFTEST_REMOTE=' "/proc/$courier/environ" || fail "that is no courier: $courier"
! grep -qz '^REFTEST_CACHE_KEY=' "/proc/$courier/environ" || fail "who speaks with the remote was given the key"
until_true told 'passed *gemm/tiny_gemm'
until_true kept tiny_gemm
touch "$work/go"
until_true told 'passed *rmsnorm/waits'
until_true kept waits
kill -0 "$program" 2>/dev/null || fail "the run ended before its verdicts were taken"
! grep -q '^PUT ' "$work/http.log" || fail "the remote answered before it was to"
touch "$release"
ended
expect_exit 0
[ ! -s "$work/err" ] || fail "$step: it had something to say: $(cat "$work/err")"
grep '^PUT ' "$work/http.log" | grep -v ' 200$' && fail "a verdict was not taken"
forget
REFTEST_REMOTE=$http/true
verify --cached-only # all of it is there
expect_exit 0
all=$(value "s['cases_cached']")

# Each verdict takes it longer than a run waits for its remote; nobody waits.
before=$(value "len(d['tiny_gemm']['cases'])") # that come before it
: >"$work/http.log"
rm "$work/go" "$work/running"
REFTEST_REMOTE=$http/unhurried?timeout=5
begin verify --device "$device" --sizes small --jobs 1 --timeout 300 --force tiny_gemm waits
taken() { [ "$(grep -c '^PUT /unhurried/ac/.* 200$' "$work/http.log")" = $((2 * before)) ]; }
until_true taken
kill -INT "$program"
ended
expect_exit 130
touch "$work/go"

# It never takes anything.
rm "$release"
forget
: >"$work/http.log"
REFTEST_REMOTE=$http/held?timeout=1
verify --force
expect_exit 0
expect_ran "$all"
expect_told_once 'did not answer within 1 s'
verify --cached-only
expect_exit 0
expect_cached "$all"
touch "$release"
REFTEST_REMOTE=$http/talkative
verify --force tiny_gemm
expect_exit 0
expect_told_once 'answers more than anybody asked for'
end_servers
