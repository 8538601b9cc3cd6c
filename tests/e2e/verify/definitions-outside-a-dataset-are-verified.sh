#!/bin/sh
# `verify` accepts arguments that are in no dataset: files, folders of files, problems (folders with definition.json and
# workload.jsonl) and folders of problems. reftest makes links to the files in the user's cache folder, and writes
# nothing into the folders of the files. If an argument is a file of another dataset, reftest uses that dataset.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
export XDG_CACHE_HOME="$work/cache"
cd "$work"
mkdir -p files problems/1 problems/2 problems/empty none
grep -v '"op_type"' dataset/definitions/rmsnorm/tiny_norm.json >problems/1/definition.json
echo '{"uuid": "first", "axes": {"batch_size": 7}, "inputs": {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}}' >problems/1/workload.jsonl
cp dataset/definitions/gemm/tiny_gemm.json problems/2/definition.json
sed 's/tiny_norm/lone_norm/' dataset/definitions/rmsnorm/tiny_norm.json >files/any_name.json
echo '{"no": "definition"}' >files/package.json
find files problems dataset | sort >before

# `verify` gets a file, and uses the op_type and the name in the file
verify files/any_name.json
expect_exit 0
expect_status lone_norm passed
expect "d['lone_norm']['op_type'] == 'rmsnorm'"
grep -q "1 definition is in no dataset; the verdicts are stored below $work/cache/reftest/linked/" err || fail "no note"
ran=$(value "s['cases_run']")
verify files/any_name.json
expect_ran 0
expect_cached "$ran"
run status files/any_name.json
expect_says "rmsnorm/lone_norm  2 of 3 cases passed"

# the next run notices that the file was edited in place, or replaced by a rename
sed 's/EPSILON = 1e-6/EPSILON = 1e-2/' files/any_name.json >changed
cp files/any_name.json right
cp changed files/any_name.json
verify files/any_name.json
expect_exit 1
cp right files/.new && mv files/.new files/any_name.json
verify files/any_name.json
expect_exit 0
expect_ran 0

# if a folder is named, the definitions in it are verified
verify files
expect_exit 0
expect "set(d) == {'lone_norm'}"

# a problem is a folder with definition.json and workload.jsonl; `verify` gets one problem, and then a folder of
# problems, first as an argument and then as the root
verify problems/1
expect_exit 0
expect "d['tiny_norm']['op_type'] == 'problems' and ('tiny_norm', 'workload:first') in c"
verify problems
expect_exit 0
expect "set(d) == {'tiny_norm', 'tiny_gemm'}"
run --root problems verify --device "$device" --sizes small --format json
expect_exit 0
expect_ran 0
run check problems
expect_exit 0
expect_says "2 definitions, 1 workload file with 1 line,"
sed -i 's/batch_size": 7/batch_sise": 7/' problems/1/workload.jsonl
run check problems
expect_exit 2
expect_says "error  $work/problems/1/workload.jsonl:1:"
run check problems/1/workload.jsonl
expect_exit 2
expect_says "error  $work/problems/1/workload.jsonl:1:" "1 definition, 1 workload file with 1 line,"
mkdir problems/3 && cp problems/2/definition.json problems/3/
run verify problems
expect_exit 2
grep -q "problems/2/definition.json and .*problems/3/definition.json have the same op_type and name" err || fail "no message"
rm -r problems/3
verify problems/2
expect "set(d) == {'tiny_gemm'}"

# if the argument is a definition of another dataset, reftest uses that dataset and its cache
run verify dataset/definitions/gemm/tiny_gemm.json --format json --device "$device" --sizes small
expect_exit 0
expect "r['root'] == '$work/dataset' and set(d) == {'tiny_gemm'}"

run verify dataset/definitions/gemm/tiny_gemm.json files
expect_exit 2
grep -q "files of a dataset and files outside a dataset cannot be combined" err || fail "no message"
run verify none
expect_exit 2
grep -q "none: the folder is not a dataset" err || fail "no message"
run --root none verify
expect_exit 2
env -u XDG_CACHE_HOME -u HOME "$reftest" verify files >out 2>err && status=0 || status=$?
expect_exit 2
grep -q "neither .XDG_CACHE_HOME nor .HOME" err || fail "no message"
rm -r dataset/.reftest problems/workload.jsonl 2>/dev/null || true
rmdir problems/3 2>/dev/null || true
find files problems dataset | sort | cmp -s - before || fail "a file was written"

# truth.py beside definition.json is the ground truth of a problem; the next run notices if it is edited or removed
mkdir -p truths/energy
cat >truths/energy/definition.json <<'END'
{"name": "energy", "axes": {"n": {"type": "var"}, "w": {"type": "const", "value": 8}},
 "inputs": {"x": {"shape": ["n", "w"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
 "reference": "import torch\n\n\ndef run(x):\n    return (x * x).sum(-1)\n"}
END
printf 'import torch\n\n\ndef run(x):\n    return x.square().sum(dim=1)\n' >truths/energy/truth.py
verify truths
expect_exit 0
expect_status energy passed
expect "c['energy', 'small:n=4']['ground_truth'] == 'truth'"
sed -i 's/dim=1/dim=1) * (1 + 1e-3/' truths/energy/truth.py
verify truths/energy
expect_exit 1
expect_status energy failed numeric
sed -i 's/def run/def walk/' truths/energy/truth.py
run check truths/energy
expect_exit 2
expect_says "error  $work/truths/energy/truth.py"
rm truths/energy/truth.py
verify truths
expect_exit 3
expect_status energy checked no_ground_truth
