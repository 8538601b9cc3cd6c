#!/bin/sh
# 7032: a thousand files that are written one after the other without git's lock (cp -r, rsync, sed -i, a program that rewrites
# many) are a few batches, not hundreds, and every verdict is of the last text; a save after them is acted on by itself.
. "$(dirname "$0")/scene.sh"
given tiny_norm
rm -r workloads blob
writes() { # writes EPSILON: all of them, one after the other; of norm_7 another text
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
heard "e['passed'] == 1001"
for turn in '1.0e-6 1e-4' '1e-6 1e-3' '1.0e-6 1e-4'; do
	# shellcheck disable=SC2086 # words
	writes $turn
	await "e['event'] == 'batch' and (words := {x['name']: x['status'] for x in a if x['event'] == 'verdict'}) and len(words) == 1000 and \
		[n for n in words if words[n] != 'passed'] == ['norm_7']"
	heard "sum(x['event'] == 'batch' for x in a) <= 60" # of a thousand files
done
for epsilon in 1e-4 1e-6; do
	sed -i "s/EPSILON = 1e-./EPSILON = $epsilon/" definitions/rmsnorm/tiny_norm.json
	await_batch
	heard "[x['name'] for x in a if x['event'] == 'verdict'] == ['tiny_norm']"
done
end_watch
verify
expect_exit 1
expect_ran 0
expect "s['passed'] == 1000 and s['failed'] == 1"
