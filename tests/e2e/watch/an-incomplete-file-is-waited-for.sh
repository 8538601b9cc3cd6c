#!/bin/sh
# If a file is empty, truncated or absent only for a moment, nothing is reported. If a file stays empty or truncated, it
# is reported with the position of the error, and the save that repairs it is verified.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
watch
file=definitions/rmsnorm/tiny_norm.json
cp $file "$work/good"
for i in 1 2 3 4 5; do # writes half of the file, and then all of it
	"$python" -I -S -c '
import sys
path, text = sys.argv[1], open(sys.argv[2]).read().replace("An RMS norm", "An RMS norm " + sys.argv[3])
for part in (text[:len(text) // 2], text):
    with open(path, "w") as out:
        out.write(part)' $file "$work/good" "$i"
	await "e['event'] == 'verdict' and e['status'] == 'passed'"
	# On a very busy machine, the writer may be delayed between its two writes. In this case the incomplete file is
	# reported, but only after the waiting time.
	expect_events "all(x['seconds'] >= 0.09 for x in a if x['event'] == 'verdict' and x['status'] != 'passed')"
	await_batch
done
put() { # put: replaces the file in one step, because a writer that is delayed after truncating would cause two reports
	cp "$1" "$2.new"
	mv "$2.new" "$2"
}
head -c 200 "$work/good" >"$work/half"
put "$work/good" $file
await_batch
put "$work/half" $file
await_batch
expect_events "[x['status'] for x in a if x['event'] == 'verdict'] == ['invalid']"
expect_events "any(x['event'] == 'verdict' and x['message'].startswith('definitions/rmsnorm/tiny_norm.json:') for x in a)"
put "$work/good" $file
await_batch
expect_events "[x['status'] for x in a if x['event'] == 'verdict'] == ['passed'] and e['cases_run'] == 0"
: >$file
await_batch
expect_events "[x['status'] for x in a if x['event'] == 'verdict'] == ['invalid']"
rm $file
await "e['event'] == 'gone'"
await_batch
put "$work/good" $file
await_batch
expect_events "[x['status'] for x in a if x['event'] == 'verdict'] == ['passed']"

mkdir -p workloads/rmsnorm
printf '{"definition": "tiny_norm", "workload": {"uuid": "1", "axes": {"batch_size": 2}, "inputs": {"hidden' >"$work/half"
put "$work/half" workloads/rmsnorm/tiny_norm.jsonl
await_batch
expect_events "[x['status'] for x in a if x['event'] == 'verdict'] == ['invalid']"
rm workloads/rmsnorm/tiny_norm.jsonl
await_batch
expect_events "[x['status'] for x in a if x['event'] == 'verdict'] == ['passed'] and e['cases_run'] == 0"
end_watch
