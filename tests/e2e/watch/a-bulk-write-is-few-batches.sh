#!/bin/sh
# If a thousand files are written one after the other without git's lock (cp -r, rsync, sed -i), the watcher verifies
# them in a few batches, and not in hundreds. Every verdict is for the final content of its file, and a later save has a
# batch of its own.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
rm -r workloads blob
writes() { # writes EPSILON: writes all definitions one after the other; norm_7 gets another content
	"$python" -I -S -c '
import sys
text = open("definitions/rmsnorm/tiny_norm.json").read()
assert text.count("EPSILON = 1e-6") == 1
for i in range(1000):
    one = text.replace("tiny_norm", f"norm_{i}").replace("EPSILON = 1e-6", f"EPSILON = {sys.argv[1] if i != 7 else sys.argv[2]}")
    with open(f"definitions/rmsnorm/norm_{i}.json", "w") as out:
        out.write(one)' "$@"
}
writes 1e-6 1e-6
watch
expect_events "e['passed'] == 1001"
for turn in '1.0e-6 1e-4' '1e-6 1e-3' '1.0e-6 1e-4'; do
	# shellcheck disable=SC2086 # words
	writes $turn
	await "e['event'] == 'batch' and (words := {x['name']: x['status'] for x in a if x['event'] == 'verdict'}) and len(words) == 1000 and \
		[n for n in words if words[n] != 'passed'] == ['norm_7']"
	expect_events "sum(x['event'] == 'batch' for x in a) <= 60" # at most sixty batches for a thousand files
done
for epsilon in 1e-4 1e-6; do
	sed -i "s/EPSILON = 1e-./EPSILON = $epsilon/" definitions/rmsnorm/tiny_norm.json
	await_batch
	expect_events "[x['name'] for x in a if x['event'] == 'verdict'] == ['tiny_norm']"
done
end_watch
verify
expect_exit 1
expect_ran 0
expect "s['passed'] == 1000 and s['failed'] == 1"
