# terminal - shell functions for tests of a program on a terminal. Each test starts its own tmux server with one
# session, "test".
terminal() { tmux -S "$work/tmux" -f /dev/null "$@"; }
trap 'terminal kill-server 2>/dev/null; exit 130' INT TERM

# `await_terminal SENTENCE COMMAND…`: repeats two steps until COMMAND succeeds: it copies the terminal's content,
# including its history, to $work/out, and runs COMMAND. If COMMAND never succeeds, the test fails with the message "the
# terminal never SENTENCE".
await_terminal() {
	sentence=$1
	shift
	expectations=$((expectations + 1))
	turns=0
	until terminal capture-pane -p -J -S - -t test >"$work/out" && "$@"; do
		turns=$((turns + 1))
		if [ $turns -gt 1200 ]; then
			terminal kill-server
			fail "the terminal never $sentence"
		fi
		sleep 0.05
	done
}
# `shows TEXT…`: waits until the terminal shows each text. The test must define has(), which looks for a text in
# $work/out.
shows() {
	for text in "$@"; do await_terminal "shows '$text'" has "$text"; done
}
