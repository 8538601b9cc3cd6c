#!/bin/sh
# On a terminal, verify shows its progress: how many cases ran and failed, and how long the remaining cases will take.
# For each runner, verify shows the case that the runner runs, or the kernel that the ground truth of this case
# compiles. A failure is printed above the lines of the progress while other cases still run. Definitions that passed
# are listed only with -v, or if the command line names definitions. The lines of the progress are never wider than the
# terminal, even if it has only 40 columns or becomes narrower during the run. They are drawn at most ten times a
# second, and are erased at the end. With TERM=dumb, no line of the progress is drawn.
. "$(dirname "$0")/../harness.sh"
command -v tmux >/dev/null 2>&1 || skip "there is no tmux here"
with_gates
given tiny_norm tiny_gemm
. "$top/tests/e2e/terminal.sh"
has() { grep -qF -e "$1" "$work/out"; }
has_not() { ! has "$1"; }
define slow <<'P'
import torch


def run(hidden_states, weight):
    gate("started", "go")
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.1 * torch.matmul'

# `on_terminal WIDTH HEIGHT SHELL-TEXT ARGUMENT…`: starts reftest verify in a new terminal, with SHELL-TEXT before the
# command
on_terminal() {
	step="reftest verify on a terminal of $1 columns: $3"
	size="-x $1 -y $2" before=$3
	shift 3
	rm -f "$work/go"
	terminal kill-server 2>/dev/null || :
	# shellcheck disable=SC2086 # words
	until terminal new-session -d -s test $size "$before '$reftest' verify --device '$device' --sizes small --jobs 2 $*;
		echo \"it ended with \$?\"; exec cat" 2>/dev/null; do # the killed server may still be there
		sleep 0.05
	done
}
# `gone`: expects that no line of the progress is left at the end
gone() {
	has_not 'runner ' || fail "a line of a runner was not erased"
	has_not ' cases in ' || fail "the line with the counts was not erased"
}

on_terminal 80 24 ''
shows 'FAILED   gemm/tiny_gemm' '7 of 9 cases in ' ', 3 failed' 's  rmsnorm/slow small:batch_size=1'
has_not 'it ended' || fail "the failure is printed only at the end"
[ "$(grep -c 'runner ' "$work/out")" = 1 ] || fail "a runner is shown more than once"
: >"$work/go"
shows 'it ended with 1' '3 definitions: 2 passed, 1 failed'
gone
has_not 'passed   rmsnorm' || fail "a definition that passed is listed"

# The remaining time is estimated from the stored times of earlier runs. Definitions that passed are listed with -v, or
# if the command line names definitions.
on_terminal 80 24 '' --force -v
shows 'FAILED   gemm/tiny_gemm' 's  rmsnorm/slow small:batch_size=1' '3 failed, about ' ' left'
: >"$work/go"
shows 'it ended with 1' 'passed   rmsnorm/slow' 'passed   rmsnorm/tiny_norm'
gone
on_terminal 80 24 '' tiny_norm
shows 'it ended with 0' 'passed   rmsnorm/tiny_norm'

# The terminal has only 40 columns, and then becomes even narrower.
on_terminal 40 24 '' --force
shows 'FAILED' 'runner ' ' s  rmsnorm/slow'
has_not 'small:batch_size=1 ' || fail "a line is wider than 40 columns"
terminal capture-pane -p -S - -t test >"$work/out"
[ "$(grep -c 's  rmsnorm/slow' "$work/out")" = 1 ] || fail "a runner is shown more than once on 40 columns"
terminal resize-window -t test -x 30 -y 20
await_terminal 'cuts the line of the runner at 30 columns' has_not 'rmsnorm/slow sm'
: >"$work/go"
shows 'it ended with 1'
gone

# The test uses terminals with colours and terminals without colours.
on_terminal 80 24 '' --force
shows 'FAILED   gemm/tiny_gemm' 'runner '
terminal capture-pane -p -e -S - -t test >"$work/coloured"
[ "$(grep -c "$(printf '\033\\[3')" "$work/coloured")" -ge 2 ] || fail "the failure and its count have no colour"
: >"$work/go"
shows 'it ended with 1'
on_terminal 80 24 'NO_COLOR=1' --force
shows 'FAILED   gemm/tiny_gemm' 'runner '
terminal capture-pane -p -e -S - -t test >"$work/plain"
! grep -q "$(printf '\033')" "$work/plain" || fail "there is a colour in spite of NO_COLOR"
: >"$work/go"
shows 'it ended with 1'
terminal kill-server
step='TERM=dumb'
expectations=$((expectations + 1))
TERMINAL=dumb "$python" -I -S "$top/tests/e2e/pseudo_terminal.py" 80 "$reftest" verify --device "$device" --sizes small --jobs 1 --force >"$work/out"
has 'FAILED   gemm/tiny_gemm' && has_not 'runner ' && has_not ' cases in ' && has_not "$(printf '\033')" ||
	fail "the terminal 'dumb' shows progress or colours"
step='CLICOLOR_FORCE'
CLICOLOR_FORCE=1 "$reftest" status --device "$device" >"$work/out" || :
has "$(printf '\033')[31mfailed  $(printf '\033')[0m gemm/" || fail "CLICOLOR_FORCE gives status no colours"
"$reftest" status --device "$device" >"$work/out" || :
has_not "$(printf '\033')" || fail "status has colours in a pipe"
expectations=$((expectations + 2))
CLICOLOR_FORCE=1 "$reftest" verify --device "$device" --sizes small --jobs 1 >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 1
expect_says "$(printf '\033[31mFAILED')"
step='CLICOLOR_FORCE=0'
CLICOLOR_FORCE=0 "$reftest" verify --device "$device" --sizes small --jobs 1 >"$work/out" 2>"$work/err" || :
expect_silence_about "$(printf '\033')"

# A kernel that a ground truth compiles is shown on the line of its runner, and in a message above the progress.
mkdir "$work/tables"
cat >"$work/tables/torch.py" <<END
import os
import time

from reftest_providers import Need, Row, Table, progress_of


def call(call):
    with progress_of("planted compiles m", 3600, tell=True):
        while not os.path.exists("$work/go"):
            time.sleep(0.05)
    a, b = (call[role].double() for role in "ab")
    return call.outputs_of(output=a @ b.T)


TABLES = (Table("torch", (Need(("torch",), "torch"),), {"gemm": Row(call, cpu=True, least=None)}),)
END
on_terminal 80 24 "REFTEST_PROVIDERS=$work/tables" --force --ground-truth torch,builtin tiny_gemm
shows 'reftest: planted compiles m' 's  planted compiles m: gemm/tiny_gemm small:'
terminal capture-pane -p -S - -t test >"$work/out"
[ "$(grep -n 'reftest: planted compiles m' "$work/out" | cut -d: -f1)" -lt "$(grep -n ' cases in ' "$work/out" | cut -d: -f1)" ] ||
	fail "the message is not above the progress"
[ "$(grep -c ' cases in ' "$work/out")" = 1 ] || fail "the message left a copy of the progress"
: >"$work/go"
shows 'it ended with 1'
gone
terminal kill-server

# Each drawing of the progress contains " cases in " once, so the test can count the drawings in the output.
step='the number of drawings'
expectations=$((expectations + 1))
begun=$(date +%s%N)
"$python" -I -S "$top/tests/e2e/pseudo_terminal.py" 80 "$reftest" verify --device "$device" --sizes small --jobs 1 --force >"$work/out"
drawn=$(grep -o ' cases in ' "$work/out" | wc -l)
took=$((($(date +%s%N) - begun) / 1000000))
{ [ "$drawn" -ge 1 ] && [ "$drawn" -le $((took / 100 + 1)) ]; } || fail "the progress is drawn $drawn times in $took ms"

# Text is folded between words to the width of the terminal. The last lines repeat each failure with its cause. If the
# cause does not fit beside the name, it is on the next line.
step='folded text'
expectations=$((expectations + 2))
NO_COLOR=1 "$python" -I -S "$top/tests/e2e/pseudo_terminal.py" --no-errors 62 \
	"$reftest" verify --device "$device" --sizes small --cached-only >"$work/out"
! grep -E '.{63}' "$work/out" || fail "a line is too wide"
grep -A2 '^FAILED   gemm/tiny_gemm$' "$work/out" >"$work/last"
{ [ "$(wc -l <"$work/last")" = 3 ] && sed -n 2p "$work/last" | grep -q '^  *behaves as if ' &&
	tail -1 "$work/last" | grep -q '^3 definitions: 2 passed, 1 failed'; } ||
	fail "the failure is not repeated before the totals"
