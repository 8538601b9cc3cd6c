# terminal - verbs for scenes that watch a program on a terminal: a tmux of their own, its one session called scene.
terminal() { tmux -S "$work/tmux" -f /dev/null "$@"; }
trap 'terminal kill-server 2>/dev/null; exit 130' INT TERM

# await_terminal SENTENCE COMMAND…: waits until the command is true of what the terminal, its history included, shows
await_terminal() {
	sentence=$1
	shift
	expectations=$((expectations + 1))
	turns=0
	until terminal capture-pane -p -J -S - -t scene >"$work/out" && "$@"; do
		turns=$((turns + 1))
		if [ $turns -gt 1200 ]; then
			terminal kill-server
			fail "the terminal never $sentence"
		fi
		sleep 0.05
	done
}
# shows TEXT…: waits until the terminal has each of them, as the scene's own has() reads it
shows() {
	for text in "$@"; do await_terminal "shows '$text'" has "$text"; done
}
