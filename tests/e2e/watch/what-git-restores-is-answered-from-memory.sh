#!/bin/sh
# If git restores many definitions at once, the watcher reports the results that it remembers for their contents,
# without parsing the files. The watcher checks every case of these files later. After that check, an export contains
# the verdicts of the current contents. `explain` compares an edit with the current contents, not with the contents
# that git removed. A remembered result is not used if the content of the definition or of its workload file differs.
. "$(dirname "$0")/../harness.sh"
command -v git >/dev/null 2>&1 || skip "there is no git here"
given tiny_norm
rm -r workloads
for i in $(seq 10 30); do
	sed "s/tiny_norm/norm_$i/" definitions/rmsnorm/tiny_norm.json >definitions/rmsnorm/norm_$i.json
done
rm definitions/rmsnorm/tiny_norm.json
do_git() { git -c user.name=test -c user.email=test@localhost "$@" >/dev/null 2>&1 || fail "git $*"; }
do_git init -b good
do_git add definitions
do_git commit -m good
do_git checkout -b other
sed -i 's/EPSILON = 1e-6/EPSILON = 2e-6 \/ 2/; s/"value": 64/"value": 128/' definitions/rmsnorm/norm_*.json
do_git commit -a -m other

watch
for branch in good other; do
	do_git checkout $branch
	await "e['event'] == 'batch' and e['passed'] == 21"
done
expect_events "e['cases_run'] == 0"
# The watcher answers a query only after it has checked all definitions.
REFTEST_TRACE=1 timeout 60 "$reftest" verify --changed --sizes small --device "$device" >"$work/answer" 2>"$work/trace" && status=0 || status=$?
expect_exit 0
grep -q 'the watcher reports 21 definitions as verified' "$work/trace" || fail "the watcher did not answer: $(cat "$work/trace")"
end_watch
edit definitions/rmsnorm/norm_15.json 'EPSILON = 2e-6' 'EPSILON = 3e-6'
run explain --device "$device" norm_15
expect_says 'small:batch_size=1: stale' 'reference changed'
expect_silence_about hidden_size
edit definitions/rmsnorm/norm_15.json 'EPSILON = 3e-6' 'EPSILON = 2e-6'

watch
for branch in good other good; do
	do_git checkout $branch
	await "e['event'] == 'batch' and e['passed'] == 21"
	[ $branch = good ] || expect_events "e['cases_run'] == 0"
done
expect_events "e['cases_run'] == 0 and e['batch'] == 4"

# An export that is made after the check, and imported at another root, has the verdicts for the current contents.
exported() {
	"$reftest" cache export "$work/now" >"$work/said" 2>&1 && rm -rf "$work/elsewhere" && mkdir "$work/elsewhere" &&
		cp -r definitions "$work/elsewhere" &&
		"$reftest" --root "$work/elsewhere" cache import "$work/now" >"$work/said" 2>&1 &&
		"$reftest" --root "$work/elsewhere" verify --cached-only --device "$device" --sizes small >"$work/said" 2>&1
}
for try in $(seq 50); do
	! exported || break
	sleep 0.1
done
exported || fail "the remembered definitions were not checked again: $(tail -n 3 "$work/said")"

# No remembered result is used for norm_20, whose definition changes, or for norm_21, which gets a workload file.
sed -i 's/EPSILON = 2e-6 . 2/EPSILON = 1e-4/; s/EPSILON = 1e-6/EPSILON = 1e-4/' definitions/rmsnorm/norm_20.json
await "e['event'] == 'batch' and e['failed'] == 1"
do_git commit -a -m wrong
mkdir -p workloads/rmsnorm
printf '%s\n' '{"definition":"norm_21","workload":{"uuid":"1","axes":{"batch_size":3},"inputs":{"hidden_states":{"type":"random"},"weight":{"type":"random"}}},"solution":null,"evaluation":null}' >workloads/rmsnorm/norm_21.jsonl
await "e['event'] == 'verdict' and e['name'] == 'norm_21'"
expect_events "e['cases_run'] == 1 and e['status'] == 'passed'"
do_git checkout other
await "e['event'] == 'batch' and e['passed'] == 21"
expect_events "any(v['event'] == 'verdict' and v['name'] == 'norm_21' and v['cases_run'] + v['cases_cached'] == 3 for v in a)"
do_git checkout good
await "e['event'] == 'batch' and e['passed'] == 20 and e['failed'] == 1"
end_watch
verify
expect_exit 1
expect_ran 0
