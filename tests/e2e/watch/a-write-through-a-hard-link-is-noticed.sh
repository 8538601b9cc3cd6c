#!/bin/sh
# A definition may have another name outside the dataset (a hard link). inotify reports no write through this name, so
# the watcher checks such files itself.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
ln definitions/rmsnorm/tiny_norm.json "$work/norm"
ln definitions/gemm/tiny_gemm.json "$work/gemm"
watch
# `asks SUMMARY ANSWER`: runs `verify --changed`, and writes its output to separate files. Expects that the output
# contains SUMMARY, and that the watcher's answer to the command is ANSWER.
asks() {
	status=0
	step="verify --changed: $1"
	REFTEST_TRACE=1 "$reftest" verify --changed --sizes small --device "$device" >"$work/answer" 2>"$work/trace" </dev/null || status=$?
	grep -qF -e "$1" "$work/answer" || fail "$step: $(cat "$work/answer")"
	grep -qF -e "ask: the watcher reports $2" "$work/trace" || fail "$step: $(cat "$work/trace")"
}
# `spoil FILE OLD NEW`: replaces OLD by NEW in FILE. Writes to the existing file, like an editor that keeps hard
# links.
spoil() { sed "s/$2/$3/" "$1" >"$work/new" && cat "$work/new" >"$1"; }

asks '2 definitions: 2 passed' '2 definitions as verified'
spoil "$work/norm" 'weight.float())' 'weight.float() * 2)'
asks '2 definitions: 1 passed, 1 failed' '1 definitions as verified'
spoil "$work/gemm" 'return ' 'return 2 * '
asks '2 definitions: 2 failed' '0 definitions as verified'
end_watch
