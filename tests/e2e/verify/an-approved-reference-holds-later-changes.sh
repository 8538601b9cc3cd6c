#!/bin/sh
# `reftest approve` records the reference of a definition that has no ground truth. If the code of a reference changes,
# `verify` compares the reference with the approved one. The changed reference fails if the two differ, and gets at most
# the verdict "checked" if they agree. An approval has no effect if it is damaged, if the definition now has another
# schema, or if git's index has an approval of other code. A message says why.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
given tiny_norm
"$python" -I -S - <<'P'
import json
import os

os.makedirs("definitions/oddity")
for name in "kept faster wrong raises schema torn edited once".split():
    body = "raise ValueError('planted')" if name == "once" else "return data / (other.abs() + 1e-3)"
    rows = {"shape": ["n", "h"], "dtype": "float32"}
    with open(f"definitions/oddity/{name}.json", "w") as out:
        json.dump({"name": name, "op_type": "oddity", "axes": {"n": {"type": "var"}, "h": {"type": "const", "value": 8}},
                   "inputs": {"data": rows, "other": rows}, "outputs": {"out": rows},
                   "reference": f"import torch\n\ndef run(data, other):\n    {body}\n"}, out, indent=1)
P
approve() { run approve --device "$device" --sizes small "$@"; }
accept() { verify --accept approved "$@"; }

# Only a definition with the status "checked" can be approved. A definition that passed, or whose reference raises an
# exception, cannot be approved.
approve --format json tiny_norm 'oddity/*' --note 'tried by hand'
expect_exit 3
expect "{n: o['outcome'] for n, o in d.items()} == {**dict.fromkeys('kept faster wrong raises schema torn edited'.split(), 'approved'), 'once': 'refused', 'tiny_norm': 'decided'}"
expect "'planted' in d['once']['message'] or 'no op family' in d['once']['message']"
[ ! -e approved/oddity/once.json ] && [ ! -e approved/rmsnorm ] || fail "it approved what it refused"
cp approved/oddity/kept.json "$work/before"
approve kept
expect_exit 0
expect_says 'unchanged oddity/kept: it was approved on 2'
cmp -s approved/oddity/kept.json "$work/before" || fail "a file that said it all was written again"
run approve
expect_exit 2
expect_says 'approve needs the name of a definition'
cp definitions/oddity/kept.json "$work/alone.json"
XDG_CACHE_HOME="$work/cache" run approve "$work/alone.json"
expect_exit 2
expect_says 'these definitions are in no dataset'
run check
expect_exit 0
accept 'oddity/*'
expect_exit 3
expect_ran 0
expect "all(o['approval']['state'] == 'same' and o['approval']['note'] == 'tried by hand' for n, o in d.items() if n != 'once')"
expect "d['once']['approval'] is None and d['once']['status'] == 'skipped'"
rm definitions/oddity/once.json
verify 'oddity/*'
expect_exit 3
accept 'oddity/*'
expect_exit 0

do_git init -q -b main .
echo '.reftest/' >.git/info/exclude
do_git add .
do_git commit -q -m first
edit definitions/oddity/kept.json 'return data' '# the same\n    return data'
edit definitions/oddity/faster.json 'data / (other.abs() + 1e-3)' '1 / (other.abs() + 1e-3) * data'
edit definitions/oddity/wrong.json '1e-3' '1e-2'
edit definitions/oddity/raises.json 'return data' 'assert False, \"planted\"\n    return data'
edit definitions/oddity/schema.json '"value": 8' '"value": 16'
edit approved/oddity/edited.json 'tried by hand' 'tried by foot'
head -c 300 approved/oddity/torn.json >approved/oddity/torn && mv approved/oddity/torn approved/oddity/torn.json
accept 'oddity/*'
expect_exit 1
expect "{n: (o['status'], o['reason'], o['approval']['state']) for n, o in d.items()} == {
	'kept': ('checked', 'no_ground_truth', 'same'), 'faster': ('checked', 'no_ground_truth', 'agrees'),
	'wrong': ('failed', 'numeric', 'differs'), 'raises': ('error', 'raised', 'not_compared'),
	'schema': ('checked', 'no_ground_truth', 'other_schema'), 'torn': ('checked', 'no_ground_truth', 'unreadable'),
	'edited': ('checked', 'no_ground_truth', 'unreadable')}"
expect "all_of('faster', 'ground_truth') == ['approved'] and 'no ground truth shows' in d['faster']['cases'][0]['message']"
expect "'differs from the approved reference: 1 of 1 cases' in d['wrong']['approval']['message']"
expect "'was changed after' in d['edited']['approval']['message']"
expect "'approved/oddity/torn.json:' in d['torn']['approval']['message']"
for name in kept faster; do
	accept "$name"
	expect_exit 0
	expect_ran 0
done
for turn in 1 2; do # also without the list of cases
	run verify --device "$device" --sizes small --quiet --accept approved kept faster
	expect_exit 0
done
for name in schema torn edited; do
	accept "$name"
	expect_exit 3
done
run explain --device "$device" --accept approved faster
expect_exit 0
expect_says 'all cases agree, within the bounds, with the reference that was approved on'
run verify --device "$device" --sizes small wrong
expect_exit 1
expect_says 'differs from the approved reference: 1 of 1 cases differ' 'run `reftest approve oddity/wrong`'
run watch --json --once --accept approved --device "$device" --sizes small
expect_exit 1
"$python" -I -S -c '
import json, sys
for line in open(sys.argv[1]):
    event = json.loads(line)
    if event["event"] == "verdict" and event["approval"]:
        print(event["name"], event["approval"]["state"])' "$work/out" | sort >"$work/states"
[ "$(tr '\n' ' ' <"$work/states")" = 'edited unreadable faster agrees kept same raises not_compared schema other_schema torn unreadable wrong differs ' ] ||
	fail "watch does not tell the approvals: $(cat "$work/states")"
run check
expect_exit 2
expect_says 'approved/oddity/kept.json: the reference has changed since its approval' 'approved/oddity/edited.json: the file was changed after'

# `reftest diff` says whether the old or the new reference is the approved one. After `reftest approve`, it is the new
# one.
run diff --device "$device" --sizes small --format json HEAD faster wrong
expect_exit 1
"$python" -I -S -c '
import json, sys
for one in json.load(open(sys.argv[1]))["definitions"]:
    print(one["name"], one["behaviour"], one["approved"])' "$work/out" >"$work/sides"
[ "$(cat "$work/sides")" = "$(printf 'oddity/wrong changed before\noddity/faster rounding before')" ] || fail "$step: $(cat "$work/sides")"
run diff --device "$device" --sizes small HEAD wrong
expect_says 'differs from the approved reference: the reference in the commit is the one that was approved on'
approve --note 'the new bound' wrong raises schema
expect_exit 3
accept wrong schema
expect_exit 0
expect "d['wrong']['approval']['state'] == 'same' and d['wrong']['approval']['note'] == 'the new bound'"
run diff --device "$device" --sizes small HEAD wrong
expect_says 'the reference is the one that was approved on'

# verify --staged uses the approval in git's index. Until `git add` adds the new approval, the index contains the old
# one.
do_git add definitions/oddity/wrong.json
accept --staged wrong
expect_exit 1
expect "d['wrong']['approval']['state'] == 'differs'"
do_git add approved/oddity/wrong.json
accept --staged wrong
expect_exit 0

# `reftest check` reports an approval whose definition was deleted.
rm definitions/oddity/kept.json
run check
expect_exit 2
expect_says 'approved/oddity/kept.json: there is no definition definitions/oddity/kept.json; if you removed the definition, remove this file, too'
