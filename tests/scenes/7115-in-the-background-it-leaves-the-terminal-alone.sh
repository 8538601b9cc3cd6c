#!/bin/sh
# 7115: watch is stopped by Ctrl-Z and goes on in the background of a shell: it does not read what is typed there, draws no
# last line over it, still answers saves, and ends by SIGTERM without touching the terminal; brought back by `fg`, its keys
# work again, and while it is busy the last line says how far it is.
. "$(dirname "$0")/scene.sh"
command -v tmux >/dev/null 2>&1 || skip "there is no tmux here"
command -v bash >/dev/null 2>&1 || skip "there is no bash here"
given tiny_norm tiny_gemm
. "$top/tests/scenes/terminal.sh"
has() { grep -qE -e "$1" "$work/out"; }
fresh() {
	terminal send-keys -R -t scene
	terminal clear-history -t scene
}
types() { terminal send-keys -t scene "$1" Enter; }

step='reftest watch in a shell in tmux'
terminal new-session -d -s scene -x 120 -y 40 "PS1='prompt> ' exec bash --norc --noprofile"
shows 'prompt>'
types "'$reftest' watch --device '$device' --sizes small --jobs 1"
shows '== watching' '2 passed  \| enter stale'
terminal send-keys -t scene C-z
shows 'Stopped'
types bg
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
shows 'FAILED   rmsnorm/tiny_norm' '^-- 1 definition: 1 failed'
fresh
types 'echo typed $((20 + 22)); jobs'
shows '^typed 42' 'Running.*watch'
! has 'enter stale' || fail "it draws over what somebody types"
edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
shows '^(prompt> )?verified rmsnorm/tiny_norm|^-- 1 definition: 1 passed'
fresh
types fg
shows '2 passed  \| enter stale'
terminal send-keys -t scene a # a key without an enter behind it
shows '7 cases run, 0 cached'
define slow <<PYTHON
import os
import time


def run(hidden_states, weight):
    while not os.path.exists("$work/go"):
        time.sleep(0.01)
    return hidden_states
PYTHON
shows '\| 0 of 1: slow  '
: >"$work/go"
shows 'FAILED   rmsnorm/slow'
fresh
terminal send-keys -t scene C-z
shows 'Stopped'
types bg
types 'kill -TERM %1; wait %1; echo "it ended with $?"; stty -a | grep -o -e "-*icanon"'
shows 'it ended with 130' '^icanon'
[ "$(grep -c Stopped "$work/out")" = 1 ] || fail "it was stopped by the terminal"
terminal kill-server
expect_no_process
