#!/bin/sh
# No command breaks a word on a narrow terminal: a line is wider than the terminal only if it is one word. JSON is not folded,
# because a line end inside a string would break it, and neither is what a pipe gets.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
edit definitions/gemm/tiny_gemm.json '"op_type"' '"op_typ"'
cat >"$work/narrow.py" <<'P'
import sys
lines = sys.stdin.read().split("\n")
print("\n".join(lines))
sys.exit(any(len(line) > 40 and len(line.split()) > 1 and not line.lstrip().startswith("`") for line in lines))
P
# `narrow ARGUMENT…`: runs reftest on 40 columns, and fails if a line is too wide
narrow() {
	NO_COLOR=1 "$python" -I -S "$top/tests/e2e/pseudo_terminal.py" 40 "$reftest" "$@" >"$work/terminal"
	"$python" -I -S "$work/narrow.py" <"$work/terminal" >"$work/out"
}
for words in status check 'explain tiny_norm' 'tolerance tiny_norm' 'cache stats' 'generate --check' doctor 'help verify' 'verify --help' help; do
	step="reftest $words on 40 columns"
	expectations=$((expectations + 1))
	# shellcheck disable=SC2086 # words
	narrow $words || fail "a line is too wide"
	[ "$(wc -l <"$work/out")" -gt 1 ] || fail "nothing is printed"
done
step='JSON on a terminal'
narrow status --format json && fail "JSON is folded"
expect "s['definitions'] == 2"
run tolerance tiny_norm
grep -q 'hit ratio 1$' "$work/out" || fail "a line in a pipe is folded"
