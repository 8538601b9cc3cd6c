#!/bin/sh
# 8020: files are written only when their bytes differ, come back when deleted, follow their definitions, and are never
# taken from somebody who wrote or edited one.
. "$(dirname "$0")/scene.sh"
given tiny_norm tiny_gemm
define other <<'PYTHON'
import torch


def run(hidden_states, weight):
    rows = hidden_states.float()
    return (rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
PYTHON
norms=tests/references/test_rmsnorm.py gemms=tests/references/test_gemm.py
says() { # NEEDLE FILE
	expectations=$((expectations + 1))
	grep -qF -e "$1" "$2" || fail "$step: $2 does not hold '$1'"
}
silent() {
	expectations=$((expectations + 1))
	! grep -qF -e "$1" "$2" || fail "$step: $2 holds '$1'"
}

run generate --check
expect_exit 1
expect_says 'test_gemm.py is missing' '3 definitions: 0 with a test (0 hand-written), 3 without, 0 stale'
[ ! -e tests ] || fail "--check wrote something"
run verify --no-workloads --device cpu --sizes small
[ ! -e tests ] || fail "verify made files where none were generated"
run generate
expect_exit 0
expect_says '3 files: 3 written'
run generate --check
expect_exit 0

# What has not changed keeps its mtime; what has is replaced.
touch -d '2020-01-01' "$norms" "$gemms" tests/references/conftest.py
touch definitions/gemm/tiny_gemm.json
edit definitions/rmsnorm/other.json 'import torch' '# edited\nimport torch'
run generate --check
expect_exit 1
expect_says 'test_rmsnorm.py is out of date' '3 definitions: 2 with a test (0 hand-written), 0 without, 1 stale'
define new <<'PYTHON'
def run(hidden_states, weight):
    return hidden_states
PYTHON
mv "$gemms" "$work/gemms"
run generate --check
expect_exit 1
expect_says '4 definitions: 1 with a test (0 hand-written), 2 without, 1 stale'
mv "$work/gemms" "$gemms"
rm definitions/rmsnorm/new.json
run generate
expect_exit 0
expect_says '3 files: 1 written, 0 removed, 2 current'
says '# edited' "$norms"
[ "$(date -r "$gemms" +%Y)" = 2020 ] || fail "a file that did not change was written"

# Deleted things: an artifact comes back, a definition's class goes, and with the last one the file. By verify, too.
rm "$gemms"
rm definitions/rmsnorm/other.json
run verify tiny_norm --no-workloads --device cpu --sizes small
expect_exit 0
says 'class TestTinyGemm' "$gemms"
silent 'class TestOther' "$norms"
mv definitions/gemm/tiny_gemm.json "$work/"
run generate
expect_says 'test_gemm.py removed'
mv "$work/tiny_gemm.json" definitions/gemm/
run generate --op-type gemm
expect_says '1 definition: 1 with a test'

# Nor is a definition gone because its folder cannot be read.
mv definitions/gemm "$work/gemm"
ln -s gemm definitions/gemm # a link to itself
run generate
expect_exit 2
expect_says 'definitions/gemm'
[ -e "$gemms" ] || fail "the test of a definition that cannot be read was removed"
rm definitions/gemm
mv "$work/gemm" definitions/gemm

# A definition that cannot be read keeps its old class.
cp definitions/rmsnorm/tiny_norm.json "$work/good.json"
cp "$norms" "$work/old"
echo '{' >definitions/rmsnorm/tiny_norm.json
run generate
expect_exit 2
expect_says 'tiny_norm.json:2:1:' '1 stale'
cmp -s "$norms" "$work/old" || fail "the class of a broken definition changed"
mv "$work/good.json" definitions/rmsnorm/tiny_norm.json

# An edited file, and one that somebody wrote, stay; --force replaces them.
echo '# mine' >>"$norms"
run generate
expect_exit 1
expect_says 'test_rmsnorm.py was edited since' '--print test_rmsnorm.py | diff' '1 stale'
says '# mine' "$norms"
run generate --check
expect_exit 1
run generate --print test_rmsnorm.py
cp "$work/out" "$work/printed"
run generate --force
expect_exit 0
cmp -s "$norms" "$work/printed" || fail "--print showed something else"
echo 'def test_by_hand(): assert 1 == 1' >tests/references/test_tiny_gemm.py
run generate
expect_exit 0
expect_says '(1 hand-written)' 'test_gemm.py removed'
[ ! -e "$gemms" ] || fail "a definition with a hand-written test was generated all the same"
run generate --force
says 'class TestTinyGemm' "$gemms"
says 'test_by_hand' tests/references/test_tiny_gemm.py
rm "$gemms"
echo 'def test_by_hand(): assert 1 == 1' >"$gemms"
rm tests/references/test_tiny_gemm.py
run generate
expect_exit 0
expect_says 'test_gemm.py was written by hand' '(1 hand-written)'
says 'test_by_hand' "$gemms"
rm "$gemms"

# What cannot be read, and a link, wherever it leads, are left alone and cost no other file.
mkdir "$gemms"
edit definitions/rmsnorm/tiny_norm.json 'import torch' '# beside it\\n\nimport torch'
run generate
expect_exit 1
expect_says 'test_gemm.py: expected a file, found a folder' '1 without' 'test_rmsnorm.py written'
run generate --audit
expect_exit 1
expect_says 'test_gemm.py: expected a file, found a folder'
rmdir "$gemms"
ln -s "$work/nowhere" "$gemms"
run generate
expect_says 'test_gemm.py was written by hand' '1 without'
run generate --force
[ -f "$gemms" ] && [ ! -L "$gemms" ] && [ ! -e "$work/nowhere" ] || fail "--force did not put a file in the link's place"
mv "$gemms" "$work/behind"
ln -s "$work/behind" "$gemms"
cp "$work/behind" "$work/before"
edit definitions/gemm/tiny_gemm.json 'import torch' '# behind it\\n\nimport torch'
run generate
[ -L "$gemms" ] && cmp -s "$work/behind" "$work/before" || fail "a link, or what is behind it, was replaced"
rm "$gemms"

# A disk that is full leaves what was there, and nothing half written.
cp "$norms" "$work/before"
edit definitions/rmsnorm/tiny_norm.json '# beside it' '# no room for it'
step="reftest generate on a full disk"
(
	trap '' XFSZ
	ulimit -f 1
	exec "$reftest" generate
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 4
expect_says 'cannot write'
cmp -s "$norms" "$work/before" || fail "a file that could not be written changed"
[ -z "$(find tests -name '.*' -type f)" ] || fail "a temporary file is left"

# Two at once: what comes of it is whole.
for i in 1 2 3; do
	rm -r .reftest tests/references
	begin generate
	other=$program
	step="two at once"
	"$reftest" generate >"$work/second" 2>&1 || fail "the second of two failed: $(cat "$work/second")"
	wait "$other" || fail "the first of two failed"
	run generate --check
	expect_exit 0
	[ -z "$(find tests -name '.*' -type f)" ] || fail "a temporary file is left"
done

# A clone, which has the files and no notes of them, is kept true as well, in its layout.
for layout in definition op-type; do
	run generate --layout $layout
	rm -r .reftest
	sed -i "s/\"reference\": \"/&# $layout\\\\n/" definitions/rmsnorm/tiny_norm.json
	run verify tiny_norm --no-workloads --device cpu --sizes small
	expect_exit 0
	[ $layout = op-type ] && file=$norms || file=tests/references/test_tiny_norm.py
	says "# $layout" $file
done

# Two definitions of one name would be one file: neither is, and the others are.
run generate --layout definition
mkdir definitions/other
sed 's/"op_type": "rmsnorm"/"op_type": "other"/' definitions/rmsnorm/tiny_norm.json >definitions/other/tiny_norm.json
sed -i 's/"reference": "/&# a third\\n/' definitions/gemm/tiny_gemm.json
cp tests/references/test_tiny_norm.py "$work/before"
run generate
expect_exit 1
expect_says 'definitions/other/tiny_norm.json: another definition of this name' 'definitions/rmsnorm/tiny_norm.json: another' \
	'test_tiny_gemm.py written' '2 without'
cmp -s tests/references/test_tiny_norm.py "$work/before" || fail "the file that two would have changed"
rm -r definitions/other
run generate --layout op-type
expect_exit 0

# A dataset does not say where else on this machine files are written.
mv tests/references "$work/elsewhere"
ln -s "$work/elsewhere" tests/references
run generate
expect_exit 4
expect_says 'no folder of the dataset'
