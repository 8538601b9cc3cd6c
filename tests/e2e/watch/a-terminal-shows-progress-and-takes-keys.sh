#!/bin/sh
# On a terminal, watch has a status line with the counts and the keys. The keys Enter, f, a, d and q do what the status
# line says. For a failure, watch prints the five worst positions, and for an error, the line in the reference. After a
# resize, there is still a single status line. At the end, the terminal's modes are restored.
. "$(dirname "$0")/../harness.sh"
command -v tmux >/dev/null 2>&1 || skip "there is no tmux here"
given tiny_norm tiny_gemm
. "$top/tests/e2e/terminal.sh"
has() { grep -qF -e "$1" "$work/out"; }
has_not() { ! has "$1"; }
# `fresh`: clears the terminal
fresh() {
	terminal send-keys -R -t test
	terminal clear-history -t test
}
key() { terminal send-keys -t test "$@"; }

step='reftest watch in tmux'
terminal new-session -d -s test -x 120 -y 40 "stty -a | tail -n +2 >$work/before; '$reftest' watch --device '$device' --sizes small --jobs 1;
	echo \"it ended with \$?\"; stty -a | tail -n +2 >$work/after; exec cat"
shows '== watching' '2 passed  | enter stale  f failures  a all  d details  q quit'

edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
shows 'FAILED   rmsnorm/tiny_norm' 'margin' '1 passed  1 failed  |'
[ "$(grep -c '  reference .*ground truth .*|difference|' "$work/out")" -ge 5 ] || fail "the five worst positions are not shown"
fresh
key d
shows 'FAILED   rmsnorm/tiny_norm' '(remembered)' '0 cases run, 4 cached'
fresh
key f
shows 'FAILED   rmsnorm/tiny_norm' '4 cases run, 0 cached'
fresh
key Up # an arrow key is ignored, although its escape sequence ends in a letter
key a
shows '7 cases run, 0 cached'
fresh
key Enter
shows '0 cases run, 7 cached'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = nothing'
shows 'ERROR    rmsnorm/tiny_norm' "name 'nothing' is not defined" 'line 3'
mkdir definitions/more # the new definition has no ground truth, because no family supports float64
sed 's/"op_type": "gemm"/"op_type": "more"/; s/tiny_gemm/more_gemm/; s/"float16"/"float64"/' definitions/gemm/tiny_gemm.json >definitions/more/more_gemm.json
shows '1 passed  1 error  1 checked  |'
fresh
key f # a checked definition is not a failure
shows '-- 1 definition: 1 error'
rm -r definitions/more
shows '1 passed  1 error  |'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = nothing' 'EPSILON = 1e-6'
shows '2 passed  |'

terminal resize-window -t test -x 50 -y 20
# The program learns of a resize with a delay.
await_terminal 'cuts the last line at its new width' has_not 'q quit'
fresh
key Enter
shows '0 cases run, 7 cached' '2 passed  | enter stale  f failures  a all  d'
has_not 'q quit' || fail "the status line is wider than the terminal"
[ "$(grep -c '2 passed  | enter' "$work/out")" = 1 ] || fail "the status line is shown twice"
# A line that is wider than the terminal is folded between words.
terminal resize-window -t test -x 30 -y 20
await_terminal 'cuts the last line at its new width' has_not 'f failures'
fresh
key Enter
shows '-- 2 definitions: 2 passed; 0' '  cases run, 7 cached;'
key q
shows 'it ended with 0'
! grep -q '2 passed  | enter' "$work/out" || fail "the status line was not erased"
cmp -s "$work/before" "$work/after" || fail "the terminal's modes were not restored: $(diff "$work/before" "$work/after")"
terminal kill-server
expect_no_process
