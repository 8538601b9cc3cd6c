#!/bin/sh
# If the kernel grants fewer inotify watches than there are folders, or no watches at all, each save still gets its
# verdict, and an answer to a client takes every write before the query into account. A message reports the limit once,
# with the command that raises it.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
for how in '--max-watches 2' --poll; do
	# shellcheck disable=SC2086 # words
	watch $how
	case $how in
	--max*) expect_says 'fs.inotify.max_user_watches' 'sudo sysctl fs.inotify.max_user_watches=' ;;
	esac
	edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-6' 'EPSILON = 1e-4'
	await "e['event'] == 'verdict'"
	expect_events "e['name'] == 'tiny_norm' and e['status'] == 'failed'"
	edit definitions/rmsnorm/tiny_norm.json 'EPSILON = 1e-4' 'EPSILON = 1e-6'
	await "e['event'] == 'verdict'"
	expect_events "e['name'] == 'tiny_norm' and e['status'] == 'passed'"
	for epsilon in 1e-4 1e-5 1e-6; do # the query follows the write without a pause
		sed -i "s/EPSILON = 1e-./EPSILON = $epsilon/" definitions/rmsnorm/tiny_norm.json
		step="asked with $how"
		REFTEST_TRACE=1 timeout 60 "$reftest" verify --changed --sizes small --device "$device" >"$work/answer" 2>"$work/trace" &&
			status=0 || status=$?
		[ "$epsilon" = 1e-6 ] && expect_exit 0 || expect_exit 1
		grep -q 'the watcher reports' "$work/trace" || fail "$step: the watcher did not answer"
	done
	mkdir definitions/more
	sed 's/"op_type": "gemm"/"op_type": "more"/; s/tiny_gemm/more_gemm/' definitions/gemm/tiny_gemm.json >definitions/more/more_gemm.json
	await "e['event'] == 'verdict' and e['name'] == 'more_gemm'"
	rm -r definitions/more
	await "e['event'] == 'gone' and e['name'] == 'more/more_gemm'"
	end_watch
done
expect_nothing_to_do
