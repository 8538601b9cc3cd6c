#!/bin/sh
# 7110: on a terminal watch has a last line with the counts and the keys: enter, f, a, d and q do what it says, a failure shows
# its five worst places and an error the line inside the reference, a resize leaves one last line, and the terminal is as it
# was when watch has ended.
. "$(dirname "$0")/scene.sh"
command -v tmux >/dev/null 2>&1 || skip "there is no tmux here"
given tiny_norm tiny_gemm
. "$top/tests/scenes/terminal.sh"
has() { grep -qF -e "$1" "$work/out"; }
has_not() { ! has "$1"; }
# fresh: forgets what the terminal shows
fresh() {
	terminal send-keys -R -t scene
	terminal clear-history -t scene
}
key() { terminal send-keys -t scene "$@"; }

step='reftest watch in tmux'
terminal new-session -d -s scene -x 120 -y 40 "stty -a | tail -n +2 >$work/before; '$reftest' watch --device '$device' --sizes small --jobs 1;
	echo \"it ended with \$?\"; stty -a | tail -n +2 >$work/after; exec cat"
shows '== watching' '2 passed  | enter stale  f failures  a all  d details  q quit'

edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
shows 'FAILED   rmsnorm/tiny_norm' 'margin' '1 passed  1 failed  |'
[ "$(grep -c '  reference .*ground truth .*|difference|' "$work/out")" -ge 5 ] || fail "there are no five worst places"
fresh
key d
shows 'FAILED   rmsnorm/tiny_norm' '(remembered)' '0 cases run, 4 cached'
fresh
key f
shows 'FAILED   rmsnorm/tiny_norm' '4 cases run, 0 cached'
fresh
key Up # an arrow is no key of ours, though it ends in a letter
key a
shows '7 cases run, 0 cached'
fresh
key Enter
shows '0 cases run, 7 cached'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = nothing'
shows 'ERROR    rmsnorm/tiny_norm' "name 'nothing' is not defined" 'line 3'
mkdir definitions/more # nobody knows its truth
sed 's/"op_type": "gemm"/"op_type": "more"/; s/tiny_gemm/more_gemm/' definitions/gemm/tiny_gemm.json >definitions/more/more_gemm.json
shows '1 passed  1 skipped  1 error  |'
fresh
key f # what was skipped is no failure
shows '-- 1 definition: 1 error'
rm -r definitions/more
shows '1 passed  1 error  |'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = nothing' 'EPSILON = 1e-6'
shows '2 passed  |'

terminal resize-window -t scene -x 50 -y 20
await_terminal 'cuts the last line at its new width' has_not 'q quit' # it tells the program of the resize when it likes
fresh
key Enter
shows '0 cases run, 7 cached' '2 passed  | enter stale  f failures  a all  d'
has_not 'q quit' || fail "the last line is wider than the terminal"
[ "$(grep -c '2 passed  | enter' "$work/out")" = 1 ] || fail "the last line stands there twice"
key q
shows 'it ended with 0'
! grep -q '2 passed  | enter' "$work/out" || fail "the last line was left behind"
cmp -s "$work/before" "$work/after" || fail "the terminal is not as it was: $(diff "$work/before" "$work/after")"
terminal kill-server
expect_no_process
