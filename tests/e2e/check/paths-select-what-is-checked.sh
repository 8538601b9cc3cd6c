#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# `reftest check` accepts roots, folders and files, inside and outside a dataset. The command needs no Python, writes
# nothing, lists errors before notes, and prints the same bytes in every run.
. "$(dirname "$0")/../harness.sh"
given tiny_gemm tiny_norm
sed -i 's/"bfloat16"/"bfloat17"/' definitions/rmsnorm/tiny_norm.json
mkdir "$work/empty" "$work/alone" "$work/alone/folder" "$work/none"
mkdir "$work/none/definitions"
cp definitions/gemm/tiny_gemm.json "$work/alone/folder/any_name.json"
cp definitions/rmsnorm/tiny_norm.json "$work/alone/bad.json"
cp workloads/gemm/tiny_gemm.jsonl "$work/alone/lines.jsonl"
find . | sort >"$work/before"

# `check` runs without Python and with an empty PATH
PATH=$work/empty REFTEST_PYTHON=$work/no_python "$reftest" check >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 2
expect_says "error  definitions/rmsnorm/tiny_norm.json:" "note   definitions/gemm/tiny_gemm.json: without a description" \
	"note   workloads/rmsnorm/tiny_norm.jsonl: not checked, because definitions/rmsnorm/tiny_norm.json is invalid" \
	"2 definitions, 2 workload files with " ": 1 error, 2 notes"
[ "$(head -c 5 "$work/out")" = error ] || fail "errors are not first"
cp "$work/out" "$work/first"
run check
cmp -s "$work/out" "$work/first" || fail "the second run reports something else"
find . | sort | cmp -s - "$work/before" || fail "a file was written"

# `check` gets a folder and a file of the dataset, and runs outside the dataset and inside it
run check definitions/gemm
expect_exit 0
expect_silence_about tiny_norm
run check definitions/gemm/tiny_gemm.json definitions/rmsnorm/tiny_norm.json
expect_exit 2
expect_silence_about workloads/rmsnorm
cd "$work"
run check dataset
expect_exit 2
expect_says "error  dataset/definitions/rmsnorm/tiny_norm.json:"
run check dataset/workloads/gemm/tiny_gemm.jsonl
expect_exit 0
run --root dataset check --format json
expect_exit 2
expect "[f['path'] for f in r['findings'] if f['severity'] == 'error'] == ['definitions/rmsnorm/tiny_norm.json']"
expect "s == {**s, 'definitions': 2, 'workload_files': 2, 'errors': 1, 'notes': 2, 'exit': 2}"

# `check` gets files outside any dataset, with any name
run check alone/folder/any_name.json
expect_exit 0
run check alone
expect_exit 2
expect_says "error  alone/bad.json:" "note   alone/lines.jsonl: only the syntax was checked" "2 definitions"
printf '{"a": 1\n' >>alone/lines.jsonl
run check alone/lines.jsonl
expect_exit 2
expect_says "error  alone/lines.jsonl:"

# a problem without workloads
mkdir -p problems/one
cp alone/folder/any_name.json problems/one/definition.json
run check problems
expect_exit 0
expect_says "problems/one/definition.json: there is no workload file workload.jsonl in the same folder"

# symbolic links in circles
mkdir dataset/solutions
for name in a b c d e f g h; do ln -s . "dataset/solutions/$name"; done
run check dataset
expect_exit 2
expect_says "there are more than 20000 folders; the folders beyond this limit are not checked"
rm -r dataset/solutions

# what cannot be checked
run check absent.json
expect_exit 2
expect_says "absent.json: cannot check it"
run check empty
expect_exit 2
expect_says "no file that ends in .json or .jsonl"
run check first
expect_exit 2
expect_says "expected a folder, or a file that ends in .json or .jsonl"
cd "$work/none"
run check
expect_exit 3
cd "$work/empty"
run check
expect_exit 2
expect_says "no dataset found"

# if more than three definitions lack descriptions, one line counts them, and -v lists them
cd "$root"
for number in 1 2 3; do
	cp definitions/gemm/tiny_gemm.json "definitions/gemm/gemm_$number.json"
	edit "definitions/gemm/gemm_$number.json" '"tiny_gemm"' "\"gemm_$number\""
done
run check definitions/gemm
expect_exit 0
expect_says 'note   4 definitions lack descriptions of axes, inputs or outputs (-v lists them)' ': 0 errors, '
expect_silence_about 'without a description'
run check -v definitions/gemm
expect_exit 0
expect_says 'note   definitions/gemm/gemm_3.json: without a description: axis '
expect_silence_about 'lack descriptions'
