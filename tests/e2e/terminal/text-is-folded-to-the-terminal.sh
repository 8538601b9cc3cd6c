#!/bin/sh
# No command breaks a word on a narrow terminal. A line is wider than the terminal only if it is a single word. JSON is
# not folded, because a line end inside a string would break it. Output to a pipe or to the terminal "dumb" is not
# folded either. On a terminal, the output has colours unless NO_COLOR is set or the terminal is "dumb".
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
edit definitions/gemm/tiny_gemm.json '"op_type"' '"op_typ"'
git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm first
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
for words in status check 'explain tiny_norm' 'tolerance tiny_norm' 'cache stats' 'generate --check' doctor 'help verify' \
	'verify --help' help 'hook install' 'clone --only sglang --mirror nowhere' coverage 'cache gc' 'diff HEAD' 'affected definitions/gemm/tiny_gemm.json' verfy; do
	step="reftest $words on 40 columns"
	expectations=$((expectations + 1))
	# shellcheck disable=SC2086 # words
	narrow $words || fail "a line is too wide"
	[ "$(wc -l <"$work/out")" -gt 1 ] || fail "nothing is printed"
done
step='bench on 40 columns'
expectations=$((expectations + 1))
narrow bench tiny_norm --device cpu --sizes small --no-workloads || fail "a line is too wide"
grep -q 'median\|warm' "$work/out" || fail "no latency is printed"

step='a table on 40 columns'
narrow status || fail "a line is too wide"
printf 'unknown  gemm/tiny_gemm\n         0 of 12 cases passed\n' >"$work/expected"
grep -A1 gemm/tiny_gemm "$work/out" | cmp - "$work/expected" || fail "a continuation line is not below its column"

echo '{}' >definitions/gemm/empty.json # an invalid definition is red
# `coloured TERM VARIABLE=VALUE…`: succeeds if `reftest status` prints colours on a terminal of the kind TERM
coloured() {
	step="colours: TERM=$*"
	expectations=$((expectations + 1))
	kind=$1
	shift
	env TERMINAL="$kind" "$@" "$python" -I -S "$top/tests/e2e/pseudo_terminal.py" 40 "$reftest" status >"$work/out"
	grep -q gemm/empty "$work/out" || fail "nothing is printed"
	grep -q "$(printf '\033\\[31m')" "$work/out"
}
coloured xterm || fail "there is none"
coloured xterm NO_COLOR= || fail "there is none, although NO_COLOR is empty"
! coloured xterm NO_COLOR=1 || fail "there is one"
! coloured xterm NO_COLOR=1 CLICOLOR_FORCE=1 || fail "there is one"
! coloured '' || fail "there is one"
coloured dumb CLICOLOR_FORCE=1 || fail "there is none"
! coloured dumb || fail "there is one"
grep -q 'rmsnorm/tiny_norm  0 of 5 cases passed$' "$work/out" || fail "a line is folded"

step='JSON on a terminal'
narrow status --format json && fail "JSON is folded"
expect "s['definitions'] == 3"
run tolerance tiny_norm
grep -q 'hit ratio 1$' "$work/out" || fail "a line in a pipe is folded"
