#!/bin/sh
# 7040: a file that is empty, cut short or absent for a moment is not told of; one that stays so is, with its place; and the
# save that mends it is answered.
. "$(dirname "$0")/scene.sh"
given tiny_norm
watch
file=definitions/rmsnorm/tiny_norm.json
cp $file "$work/good"
for i in 1 2 3 4 5; do # half of it, and then all of it
	"$python" -I -S -c '
import sys
path, text = sys.argv[1], open(sys.argv[2]).read().replace("An RMS norm", "An RMS norm " + sys.argv[3])
for part in (text[:len(text) // 2], text):
    with open(path, "w") as out:
        out.write(part)' $file "$work/good" "$i"
	await "e['event'] == 'verdict' and e['status'] == 'passed'"
	# on a machine so busy that the writer was held up that long between the two, the half is told, after the wait
	heard "all(x['seconds'] >= 0.09 for x in a if x['event'] == 'verdict' and x['status'] != 'passed')"
	await_batch
done
put() { # in one step: a writer that is held up between truncating and writing would be told of twice
	cp "$1" "$2.new"
	mv "$2.new" "$2"
}
head -c 200 "$work/good" >"$work/half"
put "$work/good" $file
await_batch
put "$work/half" $file
await_batch
heard "[x['status'] for x in a if x['event'] == 'verdict'] == ['invalid']"
heard "any(x['event'] == 'verdict' and x['message'].startswith('definitions/rmsnorm/tiny_norm.json:') for x in a)"
put "$work/good" $file
await_batch
heard "[x['status'] for x in a if x['event'] == 'verdict'] == ['passed'] and e['cases_run'] == 0"
: >$file
await_batch
heard "[x['status'] for x in a if x['event'] == 'verdict'] == ['invalid']"
rm $file
await "e['event'] == 'gone'"
await_batch
put "$work/good" $file
await_batch
heard "[x['status'] for x in a if x['event'] == 'verdict'] == ['passed']"

mkdir -p workloads/rmsnorm
printf '{"definition": "tiny_norm", "workload": {"uuid": "1", "axes": {"batch_size": 2}, "inputs": {"hidden' >"$work/half"
put "$work/half" workloads/rmsnorm/tiny_norm.jsonl
await_batch
heard "[x['status'] for x in a if x['event'] == 'verdict'] == ['invalid']"
rm workloads/rmsnorm/tiny_norm.jsonl
await_batch
heard "[x['status'] for x in a if x['event'] == 'verdict'] == ['passed'] and e['cases_run'] == 0"
end_watch
