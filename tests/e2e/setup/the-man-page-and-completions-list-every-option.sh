#!/bin/sh
# make writes the manual page and the completions from the tables of options. Each option in a command's --help is in
# that command's section of the manual page, and among the words that `reftest complete` lists for the shells. The
# written files have no syntax errors. bash and fish offer the words that are possible at each place.
. "$(dirname "$0")/../harness.sh"
page=$build/reftest.1 bash_script=$build/completions/reftest.bash
zsh_script=$build/completions/_reftest fish_script=$build/completions/reftest.fish
given tiny_norm tiny_gemm
step="what make wrote"
for kind in man:"$page" bash:"$bash_script" zsh:"$zsh_script" fish:"$fish_script"; do
	"$reftest" document "${kind%%:*}" | cmp -s - "${kind#*:}" || fail "${kind#*:} is not what reftest document ${kind%%:*} prints"
done

# $work/page is the manual page without changes of the font. `section COMMAND` prints the section about this command.
sed 's/\\f[BIR]//g; s/\\-/-/g' "$page" >"$work/page"
section() { awk -v name="$1" '/^\.S[HS] /{ inside = $0 == ".SS " name } inside' "$work/page"; }
# `offered WORD LINE…`: expects WORD among the words that complete the line.
offered() {
	wanted=$1
	shift
	"$reftest" complete "$@" | cut -f1 | grep -qxF -e "$wanted" || fail "no completion of '$*' offers $wanted"
}

# `options_of_help`: prints the long names of the options in the help text that was printed last
options_of_help() { sed -nE 's/^  (-[a-zA-Z], )?(--[a-z-]+).*/\2/p' "$work/out"; }

# `listed COMMAND OPTION`: expects the option in the manual page and in the completions.
listed() {
	expectations=$((expectations + 2))
	section "$1" | grep -qE "^(-[a-zA-Z], )?$2( |\$)" || fail "the manual page has no $2 of $1"
	offered "$2" "$1" -
}

run --help
expect_exit 0
commands=$(sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' "$work/out")
[ "$(echo "$commands" | wc -l)" -gt 9 ] || fail "reftest --help lists few commands: $commands"
! grep -qE '^  (document|complete|judge)' "$work/out" || fail "reftest --help lists a hidden command"
for option in $(options_of_help); do
	awk '/^\.SH /{ inside = $0 == ".SH OPTIONS" } inside' "$work/page" | grep -qE "^(-[a-zA-Z], )?$option( |\$)" || fail "the page has no $option"
	offered "$option" -
done
options=0
for command in $commands; do
	run "$command" --help
	expect_exit 0
	for option in $(options_of_help); do
		listed "$command" "$option"
		options=$((options + 1))
	done
done
[ $options -gt 60 ] || fail "the help texts have $options options"

step="the environment in the manual page"
for name in $(cd "$top" && grep -rhoE 'getenv\("(REFTEST_[A-Z_]+|NO_COLOR|FIB_[A-Z_]+)"' --include='*.c' base cache cli dataset engine extract git kernels models \
	remote report watcher workers reftest.c | sed 's/.*"\(.*\)"/\1/' | sort -u) REFTEST_ROOT FIB_DATASET_PATH REFTEST_NAMES; do
	awk '/^\.SH /{ inside = $0 == ".SH ENVIRONMENT" } inside' "$work/page" | grep -q "^$name\$" || fail "the page has no $name"
done
step="the ground truths that are offered"
for name in $(cd "$top" && grep -hA1 ' Table($' python/libraries/*.py | sed -n 's/^ *"\([a-z_0-9]*\)",/\1/p') \
	$(cd "$top" && sed -n 's/.* Table("\([a-z_0-9]*\)".*/\1/p' python/libraries/*.py) builtin auto all; do
	offered "$name" verify --ground-truth ''
done

step="the formatting of the manual page"
formatted=
for program in 'mandoc -Tlint -Wwarning' 'groff -man -Tascii -ww -z' 'man --warnings -l'; do
	command -v "${program%% *}" >/dev/null || continue
	formatted=yes
	# shellcheck disable=SC2086 # words
	MANWIDTH=80 $program "$page" >"$work/out" 2>"$work/err" || fail "$program rejects the page"
	[ ! -s "$work/err" ] || fail "$program prints a warning about the page"
	case $program in mandoc*) [ ! -s "$work/out" ] || fail "$program prints a warning about the page" ;; esac
done
[ -n "$formatted" ] || echo "# there is no mandoc, groff or man here: the page was not formatted"

# ---- the shells -----------------------------------------------------------------------------------------------------

for shell in bash:"$bash_script" zsh:"$zsh_script" fish:"$fish_script"; do
	step="${shell%%:*} -n"
	if command -v "${shell%%:*}" >/dev/null; then
		"${shell%%:*}" -n "${shell#*:}" >"$work/out" 2>&1 || fail "its completions do not parse"
	else
		echo "# there is no ${shell%%:*} here: its completions were not parsed"
	fi
done
command -v bash >/dev/null || { echo "# there is no bash here: nothing was completed"; exit 0; }
export PATH="$build:$PATH" # the scripts start the program that the line names
cat >"$work/complete" <<'B'
set -u
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_reftest
printf '%s\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"} | LC_ALL=C sort | tr '\n' ' '
B

# `completes EXPECTED WORD…`: expects that bash completes the last WORD to the words in EXPECTED.
completes() {
	wanted=$1
	shift
	expectations=$((expectations + 1))
	step="completion of '$*'"
	got=$(bash --norc "$work/complete" "$bash_script" "$@" 2>"$work/err") || fail "$step: bash exited with $?"
	[ "$got" = "$wanted " ] || fail "$step: '$got', not '$wanted'"
	[ ! -s "$work/err" ] || fail "$step: bash prints an error"
}

# `completes_in_fish EXPECTED LINE`: expects that fish completes the last word of LINE to the words in EXPECTED. In
# fish, a word may contain "=".
completes_in_fish() {
	command -v fish >/dev/null || return 0
	expectations=$((expectations + 1))
	step="completion of '$2' in fish"
	got=$(fish --no-config -c "source $fish_script; complete -C'$2'" 2>"$work/err" | cut -f1 | LC_ALL=C sort | tr '\n' ' ')
	[ "$got" = "$1 " ] || fail "$step: '$got', not '$1'"
	[ ! -s "$work/err" ] || fail "$step: fish prints an error"
}

completes 'verify' reftest ver
completes '--root' reftest --r
completes 'affected approve' reftest --root "$root" a
completes '--cached-only --case --changed' reftest verify --c
completes 'json jsonl' reftest verify --format j
completes 'github' reftest verify --format = g
completes 'github json jsonl requests text' reftest verify --format =
completes 'auto cpu cuda' reftest status --device ''
completes 'small,large small,medium small,small' reftest watch --sizes small,
completes 'builtin' reftest explain --ground-truth bu
completes 'tiny_gemm tiny_norm' reftest verify ''
completes 'tiny_norm' reftest explain --device cpu tiny_n
completes 'rmsnorm/tiny_norm' reftest verify rmsnorm/
completes 'gemm rmsnorm' reftest verify --op-type ''
completes 'check' reftest cache che
completes 'definitions' reftest cache import defi
completes '' reftest cache stats defi
completes 'install' reftest hook --strict i
completes 'definitions' reftest affected defi
completes '' reftest watch ti
completes '' reftest verify --seed ''
mkdir "$work/bare"
: >README
mv "$root/definitions" "$work/bare/"
completes '' reftest verify tiny
completes 'tiny_gemm tiny_norm' reftest --root "$work/bare" verify tiny
completes 'tiny_gemm tiny_norm' reftest --root = "$work/bare" verify tiny
export REFTEST_ROOT="$work/bare"
completes 'tiny_gemm tiny_norm' reftest verify tiny
completes_in_fish '--cached-only --case --changed' 'reftest verify --c'
completes_in_fish '--format=json --format=jsonl' 'reftest verify --format=j'
completes_in_fish 'small,medium' 'reftest watch --sizes small,m'
completes_in_fish 'tiny_gemm tiny_norm' 'reftest verify tiny'
completes_in_fish '--python=README' 'reftest verify --python=READ'
