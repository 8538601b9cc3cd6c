#!/bin/sh
# watch is stopped by Ctrl-Z and continues in the background of a shell. In the background watch reads no keys and draws
# no status line, but still verifies saves. SIGTERM ends watch without changing the terminal. After `fg`, the keys work
# again, and the status line shows the progress of a run.
. "$(dirname "$0")/../harness.sh"
command -v tmux >/dev/null 2>&1 || skip "there is no tmux here"
command -v bash >/dev/null 2>&1 || skip "there is no bash here"
with_gates
given tiny_norm tiny_gemm
. "$top/tests/e2e/terminal.sh"
has() { grep -qE -e "$1" "$work/out"; }
fresh() {
	terminal send-keys -R -t test
	terminal clear-history -t test
}
types() { terminal send-keys -t test "$1" Enter; }

step='reftest watch in a shell in tmux'
terminal new-session -d -s test -x 120 -y 40 "PS1='prompt> ' exec bash --norc --noprofile"
shows 'prompt>'
types "'$reftest' watch --device '$device' --sizes small --jobs 1"
shows '== watching' '2 passed  \| enter stale'
terminal send-keys -t test C-z
shows 'Stopped'
# When watch continues in the background, text for the shell already waits in the terminal. If watch tried to read this
# text, the kernel would stop watch again.
terminal send-keys -t test bg Enter 'echo typed $((6 * 7))' Enter
shows '^typed 42'
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
shows 'FAILED   rmsnorm/tiny_norm' '^-- 1 definition: 1 failed'
fresh
types 'echo typed $((20 + 22)); jobs'
shows '^typed 42' 'Running.*watch'
! has 'enter stale' || fail "watch draws over the user's input"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
shows '^(prompt> )?verified rmsnorm/tiny_norm|^-- 1 definition: 1 passed'
fresh
types fg
shows '2 passed  \| enter stale'
terminal send-keys -t test a # a key, without Enter after it
shows '7 cases run, 0 cached'
define slow <<PYTHON
def run(hidden_states, weight):
    gate("$work/started", "$work/go")
    return hidden_states
PYTHON
shows '\| 0 of 1: slow  '
: >"$work/go"
shows 'FAILED   rmsnorm/slow'
fresh
terminal send-keys -t test C-z
shows 'Stopped'
types bg
types 'kill -TERM %1; wait %1; echo "it ended with $?"; stty -a | grep -o -e "-*icanon"'
shows 'it ended with 130' '^icanon'
[ "$(grep -c Stopped "$work/out")" = 1 ] || fail "the terminal stopped watch"
terminal kill-server
expect_no_process
