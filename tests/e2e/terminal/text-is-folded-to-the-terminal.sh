#!/bin/sh
# No command breaks a word on a narrow terminal: a line is wider than the terminal only if it is one word. JSON is not folded,
# because a line end inside a string would break it, and neither is what a pipe gets.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
edit definitions/gemm/tiny_gemm.json '"op_type"' '"op_typ"'
cat >"$work/narrow.py" <<'P'
import fcntl, os, pty, struct, sys, termios
os.environ.update(TERM="xterm", NO_COLOR="1")
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
text = b""
try:
    while piece := os.read(terminal, 65536):
        text += piece
except OSError:  # the program has closed the terminal
    pass
os.waitpid(child, 0)
lines = text.decode().replace("\r", "").split("\n")
print("\n".join(lines))
sys.exit(any(len(line) > 40 and len(line.split()) > 1 and not line.lstrip().startswith("`") for line in lines))
P
for words in status check 'explain tiny_norm' 'tolerance tiny_norm' 'cache stats' 'generate --check' doctor 'help verify' 'verify --help' help; do
	step="reftest $words on 40 columns"
	expectations=$((expectations + 1))
	# shellcheck disable=SC2086 # words
	"$python" -I -S "$work/narrow.py" "$reftest" $words >"$work/out" || fail "a line is too wide"
	[ "$(wc -l <"$work/out")" -gt 1 ] || fail "nothing is printed"
done
step='JSON on a terminal'
"$python" -I -S "$work/narrow.py" "$reftest" status --format json >"$work/out" && fail "JSON is folded"
expect "s['definitions'] == 2"
run tolerance tiny_norm
grep -q 'hit ratio 1$' "$work/out" || fail "a line in a pipe is folded"
