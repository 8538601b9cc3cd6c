#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# `reftest work` verifies the cases that requests name, and `cache merge` stores the answers of `reftest work`. After
# both commands, `verify` has no case left to run. A bad request gets an answer that says what is wrong, and does not
# affect the other requests. An answer that lacks the right signature, or comes from another build, is not stored.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
options="--device $device --sizes small"

# `requests`: writes to $work/requests the requests for all cases that are not verified yet.
requests() {
	# shellcheck disable=SC2086 # words
	run verify --dry-run --format requests $options
	cp "$work/out" "$work/requests"
}

# `piped FILE ARGUMENT…`: runs reftest with FILE as its standard input.
piped() {
	from=$1
	shift
	step="reftest $* <$(basename "$from")"
	"$reftest" "$@" <"$from" >"$work/out" 2>"$work/err" && status=0 || status=$?
	! grep -qE 'runtime error:|Sanitizer' "$work/err" || fail "$step: a sanitizer reported an error"
}

# `lines EXPRESSION`: expects a Python expression about the JSON lines of the output to be true. In the expression, `a`
# is the list of these lines, and `m` maps each id to its line.
lines() {
	expectations=$((expectations + 1))
	"$python" -I -S -c '
import json, sys
a = [json.loads(line) for line in open(sys.argv[1])]
m = {e["id"]: e for e in a if e.get("id")}
sys.exit(not eval(sys.argv[2]))' "$work/out" "$1" 2>"$work/python" ||
		fail "$step: not true: $1 $(tail -n 1 "$work/python")"
}

requests
expect_exit 3
lines "[e['definition'] for e in a] == ['gemm/tiny_gemm', 'rmsnorm/tiny_norm'] and all(e['whole'] for e in a)"
lines "all(case['seconds'] > 0 for e in a for case in e['cases'])"

# The requests name one case of one definition and all cases of another. Among them is every kind of bad request.
"$python" -I -S - "$work" <<'P'
import json, sys
gemm, norm = [json.loads(line) for line in open(sys.argv[1] + "/requests")]
lines = [
    "no json at all",
    json.dumps({**gemm, "id": "misspelt", "hole": True}),
    json.dumps({**gemm, "id": "other files", "content": "0" * 32}),
    json.dumps({**gemm, "id": "nowhere", "definition": "gemm/nowhere"}),
    json.dumps({**norm, "id": "no case", "whole": False, "cases": [{"id": "small:batch_size=77"}]}),
    "x" * (2 << 20),
    json.dumps({**gemm, "id": "whole"}),
    json.dumps({**norm, "id": "one case", "whole": False, "cases": norm["cases"][:1]}),
]
open(sys.argv[1] + "/asked", "w").write("\n".join(lines))
P
REFTEST_CACHE_KEY=$("$reftest" key)
export REFTEST_CACHE_KEY
# shellcheck disable=SC2086 # words
piped "$work/asked" work $options
cp "$work/out" "$work/answers"
expect_exit 0
lines "a[0]['event'] == 'worker' and a[0]['device_class'] and a[0]['signature'] == 'ed25519' and len(a) == 9"
lines "sum(e['event'] == 'error' for e in a) == 6"
lines "\"unknown field 'hole'\" in m['misspelt']['message']"
lines "'the files of gemm/tiny_gemm on this machine differ' in m['other files']['message'] and '0' * 32 in m['other files']['message']"
lines "'there is no definition gemm/nowhere' in m['nowhere']['message']"
lines "\"no case 'small:batch_size=77'\" in m['no case']['message']"
lines "any('more than 1048576 bytes' in e.get('message', '') for e in a)"
lines "m['whole']['status'] == 'passed' and all(case['stored'] for case in m['whole']['cases'])"
lines "len(m['whole']['verdicts']) == len(m['whole']['cases']) > 1"
lines "len(m['one case']['verdicts']) == len(m['one case']['cases']) == 1"
[ ! -e .reftest/cache ] || run cache stats --format json
[ ! -e .reftest/cache ] || expect "r['verdicts'] == 0"

# An answer is not stored if it has no signature or a signature of another key, or if it comes from another build.
"$python" -I -S - "$work" "$("$reftest" key)" <<'P'
import json, sys
work = sys.argv[1]
answers = [json.loads(line) for line in open(work + "/answers")]
answers = [answer for answer in answers if answer["event"] == "answer"]
whole = next(answer for answer in answers if answer["id"] == "whole")
def unsigned(line):
    parts = line.split("\t")
    return "\t".join([parts[0], "-"] + parts[2:])
changed = [
    {**whole, "id": "unsigned", "verdicts": [unsigned(line) for line in whole["verdicts"]]},
    {**whole, "id": "other build", "checker": "0" * 32},
    {**whole, "id": "edited", "verdicts": [whole["verdicts"][0].replace("passed", "failed")]},
]
changed += [{**whole, "id": "half", "verdicts": [whole["verdicts"][0], whole["verdicts"][1].replace("passed", "failed")]}]
open(work + "/lies", "w").write("\n".join(map(json.dumps, changed)) + "\nno answer\n")
P
piped "$work/lies" cache merge --require-containment none
expect_exit 1
lines "[e['stored'] for e in a] == [0] * 5"
lines "'checksum' in m['unsigned']['refused'] and 'checksum' in m['edited']['refused']"
lines "'verdict 2: ' in m['half']['refused']"
lines "'another build of reftest computed the verdict' in m['other build']['refused']"
mine=$REFTEST_CACHE_KEY
REFTEST_CACHE_KEY=$("$reftest" key)
piped "$work/answers" cache merge --require-containment none
expect_exit 1
lines "'was not made with REFTEST_CACHE_KEY' in m['whole']['refused'] and m['whole']['stored'] == 0"
run cache stats --format json
expect "r['verdicts'] == 0"

# The machine that merges needs only the public half of the key.
REFTEST_CACHE_KEY=$mine
REFTEST_CACHE_KEY=$("$reftest" key public)
piped "$work/answers" cache merge --require-containment none
expect_exit 0
lines "m['whole']['stored'] > 1 and m['one case']['stored'] == 1"
unset REFTEST_CACHE_KEY
requests
expect_exit 3
lines "[e['definition'] for e in a] == ['rmsnorm/tiny_norm'] and not a[0]['whole'] and len(a[0]['cases']) > 0"
# shellcheck disable=SC2086 # words
piped "$work/requests" work $options
cp "$work/out" "$work/answers"
piped "$work/answers" cache merge
expect_exit 0
# shellcheck disable=SC2086 # words
run verify --format json --cached-only $options
expect_exit 0
expect_ran 0
requests
expect_exit 0
lines "a == []"

# A worker ends if the reader of its answers has ended, even if its standard input is still open.
mkfifo "$work/fifo"
exec 9<>"$work/fifo"
step="a worker without a reader"
# shellcheck disable=SC2086 # words
{ timeout 60 "$reftest" work $options <"$work/fifo" 2>"$work/err" || echo $? >"$work/ended"; } | head -n 1 >"$work/out"
exec 9>&-
[ "$(cat "$work/ended")" != 124 ] || fail "the worker did not end"
lines "a[0]['event'] == 'worker'"
expect_no_process

# If `reftest work` cannot use a device, it reports this at once.
piped /dev/null work --device cuda:0,0
expect_exit 2
expect_says 'twice'
piped /dev/null work --device cuda:61
expect_exit 3
expect_no_process
