#!/bin/sh
# New verdicts are sent to the remote in the background. While a remote delays its answer to every PUT, the next
# references run, and their verdicts are reported and stored locally. At the end all verdicts are on the remote. If a
# remote answers each request in time but is slow in total, the run uses it until the end. A remote that never accepts
# anything, or never finishes an answer, is reported once, and the verdicts are stored locally.
. "$(dirname "$0")/../harness.sh"
with_gates
. "$top/tests/e2e/remotes.sh"
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
printed() { grep -q "$1" "$work/out"; }
held() { grep -q '^HELD ' "$work/http.log"; }
kept() { # kept DEFINITION: expects that the verdicts of the definition are in the local cache
	REFTEST_REMOTE= "$reftest" verify --device "$device" --sizes small --jobs 1 --cached-only "$1" >/dev/null 2>&1
}
until_true test -s "$work/starts" # the second definition's reference waits for its signal
until_true held # the first definition's verdicts are being sent before the run has ended
helper=
for child in $(cat "/proc/$program/task/$program/children"); do
	! grep -qsx reftest-remote "/proc/$child/comm" || helper=$child
done
[ -n "$helper" ] || fail "no process talks to the remote"
! grep -qz '^REFTEST_REMOTE=.' "/proc/$helper/environ" || fail "the remote's address is in the environment of a process"
! grep -qz '^REFTEST_CACHE_KEY=.' "/proc/$helper/environ" || fail "the process that talks to the remote has the key"
holds_key() { # holds_key PROCESS: exit status 0 if the key is in the memory of the process, as text or as bytes; 2: unreadable
	"$python" -IS - "$1" "${REFTEST_CACHE_KEY#*:}" <<'P'
import sys

pid, text = sys.argv[1:]
try:
    memory = open("/proc/%s/mem" % pid, "rb", 0)
except OSError:
    sys.exit(2)
wanted = (text.encode(), bytes.fromhex(text))
with open("/proc/%s/maps" % pid) as maps:
    ranges = [[int(x, 16) for x in line.split()[0].split("-")] for line in maps if " rw" in line]
for begin, end in ranges:
    try:
        memory.seek(begin)
        data = memory.read(end - begin)
    except (OSError, OverflowError):
        continue
    if any(value in data for value in wanted):
        sys.exit(0)
sys.exit(1)
P
}
if holds_key "$program"; then # this user may read the memory of processes, so the search can be relied on
	! holds_key "$helper" || fail "the process that talks to the remote has the key in its memory"
	expectations=$((expectations + 1))
fi
until_true printed 'passed *gemm/tiny_gemm'
until_true kept tiny_gemm
touch "$work/go"
until_true printed 'passed *rmsnorm/waits'
until_true kept waits
kill -0 "$program" 2>/dev/null || fail "the run ended before the remote accepted its verdicts"
! grep -q '^PUT ' "$work/http.log" || fail "the remote answered too early"
touch "$release"
ended
expect_exit 0
[ ! -s "$work/err" ] || fail "$step: unexpected message: $(cat "$work/err")"
grep '^PUT ' "$work/http.log" | grep -v ' 200$' && fail "the remote rejected a verdict"
forget
REFTEST_REMOTE=$http/true
verify --cached-only # all verdicts are on the remote
expect_exit 0
all=$(value "s['cases_cached']")

# To store a single verdict, this remote needs more time than a run waits for a remote after its last case. Nevertheless
# the remote must not delay the run. With --fail-fast, the definitions keep their order, so the definition `waits` runs
# last.
before=$(value "len(d['tiny_gemm']['cases'])") # the number of cases that run first
: >"$work/http.log"
rm "$work/go" "$work/starts"
REFTEST_REMOTE=$http/unhurried?timeout=5
begin verify --device "$device" --sizes small --jobs 1 --timeout 300 --force --fail-fast tiny_gemm waits
taken() { [ "$(grep -c '^PUT /unhurried/ac/.* 200$' "$work/http.log")" = $((2 * before)) ]; }
until_true taken
kill -INT "$program"
ended
expect_exit 130
touch "$work/go"

# The remote never accepts anything.
rm "$release"
forget
: >"$work/http.log"
REFTEST_REMOTE=$http/held?timeout=1
verify --force
expect_exit 0
expect_ran "$all"
expect_reported_once 'did not answer within 1 s'
verify --cached-only
expect_exit 0
expect_cached "$all"
touch "$release"
REFTEST_REMOTE=$http/talkative
verify --force tiny_gemm
expect_exit 0
expect_reported_once 'sent more data than was requested'
end_servers
