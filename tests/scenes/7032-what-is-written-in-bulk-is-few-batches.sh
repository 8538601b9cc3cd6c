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
last() { # last EXPRESSION: waits until the last word on each definition is as it says; how many batches that took is $batches
	expectations=$((expectations + 1))
	batches=$("$python" -I -S -c '
import json, os, sys, time
work, program, expression = sys.argv[1:]
seen, end = int(open(work + "/heard").read()), time.monotonic() + 120
words, batches = {}, 0
with open(work + "/out") as out:
    out.seek(seen)
    line = ""
    while True:
        line += out.readline()
        if not line.endswith("\n"):
            if time.monotonic() > end or not os.path.exists("/proc/" + program):
                sys.exit("it never came; there are " + str(len(words)))
            time.sleep(0.005)
            continue
        seen += len(line.encode())
        e = json.loads(line)
        line = ""
        if e["event"] == "verdict":
            words[e["name"]] = e["status"]
        batches += e["event"] == "batch"
        if e["event"] == "batch" and eval(expression):
            break
open(work + "/heard", "w").write(str(seen))
print(batches)' "$work" "$program" "$1" 2>"$work/python") || fail "$step: awaited $1: $(tail -n 1 "$work/python")"
}
writes 1e-6 1e-6
watch
heard "e['passed'] == 1001"
for turn in '1.0e-6 1e-4' '1e-6 1e-3' '1.0e-6 1e-4'; do
	# shellcheck disable=SC2086 # words
	writes $turn
	last "sorted(words) == sorted('norm_%d' % i for i in range(1000)) and [n for n in words if words[n] != 'passed'] == ['norm_7']"
	expectations=$((expectations + 1))
	[ "$batches" -le 60 ] || fail "a thousand files were $batches batches"
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
