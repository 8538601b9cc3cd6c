#!/bin/sh
# Generated files are written only when their bytes differ. Generated files are restored if they are deleted, are
# updated if their definitions change, and never replace a file that a user wrote or edited.
. "$(dirname "$0")/../harness.sh"
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
	grep -qF -e "$1" "$2" || fail "$step: $2 does not contain '$1'"
}
silent() {
	expectations=$((expectations + 1))
	! grep -qF -e "$1" "$2" || fail "$step: $2 contains '$1'"
}

run generate --check
expect_exit 1
expect_says 'test_gemm.py is missing' '3 definitions: 0 with a test that can fail (0 hand-written), 3 without, 0 stale'
[ ! -e tests ] || fail "--check wrote something"
run verify --no-workloads --device cpu --sizes small
[ ! -e tests ] || fail "verify wrote files although none had been generated"
run generate
expect_exit 0
expect_says '9 files: 9 written'
run generate --check
expect_exit 0

# An unchanged file keeps its mtime; a changed one is replaced.
touch -d '2020-01-01' "$norms" "$gemms" tests/references/conftest.py
touch definitions/gemm/tiny_gemm.json
edit definitions/rmsnorm/other.json 'import torch' '# edited\nimport torch'
run generate --check
expect_exit 1
expect_says 'test_rmsnorm.py is out of date' '3 definitions: 2 with a test that can fail (0 hand-written), 0 without, 1 stale'
define new <<'PYTHON'
def run(hidden_states, weight):
    return hidden_states
PYTHON
mv "$gemms" "$work/gemms"
run generate --check
expect_exit 1
expect_says '4 definitions: 1 with a test that can fail (0 hand-written), 2 without, 1 stale'
mv "$work/gemms" "$gemms"
rm definitions/rmsnorm/new.json
run generate
expect_exit 0
expect_says '9 files: 1 written, 0 removed, 8 current'
says '# edited' "$norms"
[ "$(date -r "$gemms" +%Y)" = 2020 ] || fail "a file that did not change was written"

# A deleted generated file is restored. When a definition is deleted, its class is removed; when the last class of a
# file is removed, the file is deleted. verify does the same.
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

# The definitions of an unreadable folder do not count as deleted.
mv definitions/gemm "$work/gemm"
ln -s gemm definitions/gemm # a link to itself cannot be read
run generate
expect_exit 2
expect_says 'definitions/gemm'
[ -e "$gemms" ] || fail "the test of a definition that cannot be read was removed"
rm definitions/gemm
mv "$work/gemm" definitions/gemm

# If a definition cannot be read, its test class stays in the generated file.
cp definitions/rmsnorm/tiny_norm.json "$work/good.json"
cp "$norms" "$work/old"
echo '{' >definitions/rmsnorm/tiny_norm.json
run generate
expect_exit 2
expect_says 'tiny_norm.json:2:1:' '1 stale'
cmp -s "$norms" "$work/old" || fail "the class of a broken definition changed"
mv "$work/good.json" definitions/rmsnorm/tiny_norm.json

# A generated file that somebody edited, and a file that somebody wrote, are left unchanged; --force replaces them.
echo '# mine' >>"$norms"
run generate
expect_exit 1
expect_says 'test_rmsnorm.py has been edited since' '--print test_rmsnorm.py | diff' '1 stale'
says '# mine' "$norms"
run generate --check
expect_exit 1
run generate --print test_rmsnorm.py
cp "$work/out" "$work/printed"
run generate --force
expect_exit 0
cmp -s "$norms" "$work/printed" || fail "--print printed another text"
echo 'def test_by_hand(): assert 1 == 1' >tests/references/test_tiny_gemm.py
run generate
expect_exit 0
expect_says '(1 hand-written)' 'test_gemm.py removed'
[ ! -e "$gemms" ] || fail "a definition with a hand-written test was generated"
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

# The tables of libraries are kept current like the other generated files. A deleted table is restored, an outdated
# table is replaced unless somebody edited it, and a table that this version of reftest lacks is removed. Files in the
# same folder that are not tables of reftest are left unchanged.
tables=tests/references/reftest_libraries
run generate
for file in "$top"/python/libraries/*.py; do
	expectations=$((expectations + 1))
	[ -f "$tables/${file##*/}" ] || fail "there is no $tables/${file##*/}"
done
rm $tables/torch.py
run generate --check
expect_exit 1
expect_says "$tables/torch.py is missing"
run verify tiny_norm --no-workloads --device cpu --sizes small
[ -f $tables/torch.py ] || fail "verify did not restore a table"
cp "$top/tests/data/generated/older_table.py" $tables/old.py
cp $tables/old.py $tables/torch.py
cp $tables/old.py "$work/old.py"
echo 'TABLES = ()' >$tables/mine.py
run generate --check
expect_exit 1
expect_says "$tables/torch.py is out of date" "$tables/old.py must be removed: this version of reftest has no such file"
run generate
expect_exit 0
says 'def gemm(call' $tables/torch.py
[ ! -e $tables/old.py ] && [ -f $tables/mine.py ] || fail "another file than the old table was removed"
echo '# mine' >>"$work/old.py"
cp "$work/old.py" $tables/old.py
echo '# mine' >>$tables/torch.py
run generate
expect_exit 1
expect_says "$tables/torch.py has been edited since"
says '# mine' $tables/torch.py
[ -f $tables/old.py ] || fail "an edited table was removed"
run generate --print reftest_libraries/torch.py
expect_exit 0
says 'def gemm(call' "$work/out"
run generate --force
expect_exit 0
silent '# mine' $tables/torch.py
rm -r $tables
ln -s "$work" $tables
run generate
expect_exit 4
expect_says "$tables is a link or a file, not a folder"
[ ! -e "$work/common.py" ] || fail "a file was written behind a link"
rm $tables
run generate
expect_exit 0

# A file that an older version generated is replaced if nobody edited it. A file that somebody edited is left unchanged,
# and a message says what to do. A file that an older version generated is also left unchanged if one of its definitions
# cannot be read, because a file cannot mix classes that two versions of reftest generated.
old_file() { cp "$top/tests/data/generated/older_version.py" "$norms"; }
old_file
run generate
expect_exit 0
silent 'GROUND_TRUTHS' "$norms"
says 'FAMILY = "rmsnorm"' "$norms"
old_file
echo '# mine' >>"$norms"
cp "$norms" "$work/edited"
run generate
expect_exit 1
expect_says 'test_rmsnorm.py has been edited since an older reftest wrote it, and is left unchanged; its tests do not run with' \
	'move your tests to another file'
cmp -s "$norms" "$work/edited" || fail "an edited file of an older version changed"
old_file
cp definitions/rmsnorm/tiny_norm.json "$work/good.json"
cp "$norms" "$work/old"
echo '{' >definitions/rmsnorm/tiny_norm.json
sed 's/"tiny_norm"/"other"/' "$work/good.json" >definitions/rmsnorm/other.json
run generate
expect_exit 1
expect_says 'test_rmsnorm.py is out of date and left unchanged: the class of tiny_norm is from an older reftest'
cmp -s "$norms" "$work/old" || fail "a file of the old version was changed although one of its classes is old"
rm definitions/rmsnorm/other.json
mv "$work/good.json" definitions/rmsnorm/tiny_norm.json
run generate
expect_exit 0
rm "$gemms"

# A generated file that cannot be read, or that is a symbolic link, is left unchanged. The other generated files are
# still updated.
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
[ -f "$gemms" ] && [ ! -L "$gemms" ] && [ ! -e "$work/nowhere" ] || fail "--force did not replace the link by a file"
mv "$gemms" "$work/behind"
ln -s "$work/behind" "$gemms"
cp "$work/behind" "$work/before"
edit definitions/gemm/tiny_gemm.json 'import torch' '# behind it\\n\nimport torch'
run generate
[ -L "$gemms" ] && cmp -s "$work/behind" "$work/before" || fail "a link, or what is behind it, was replaced"
rm "$gemms"

# If the disk is full, the old file is left unchanged, and no file is half written.
cp "$norms" "$work/before"
edit definitions/rmsnorm/tiny_norm.json '# beside it' '# no room for it'
step="reftest generate on a full disk"
(
	trap '' XFSZ
	ulimit -S -f 1
	exec "$reftest" generate
) >"$work/out" 2>"$work/err" && status=0 || status=$?
expect_exit 4
expect_says 'cannot write'
cmp -s "$norms" "$work/before" || fail "a file that could not be written changed"
[ -z "$(find tests -name '.*' -type f)" ] || fail "a temporary file is left"

# Two runs at once: the resulting files are complete.
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

# A clone has the generated files, but not the records in .reftest that describe them. The generated files of a clone
# are updated as well, and keep their layout.
for layout in definition op-type; do
	run generate --layout $layout
	rm -r .reftest
	sed -i "s/\"reference\": \"/&# $layout\\\\n/" definitions/rmsnorm/tiny_norm.json
	run verify tiny_norm --no-workloads --device cpu --sizes small
	expect_exit 0
	[ $layout = op-type ] && file=$norms || file=tests/references/test_tiny_norm.py
	says "# $layout" $file
done

# Two definitions with the same name would share a file, so no tests are generated for either of them; tests for all
# others are generated.
run generate --layout definition
mkdir definitions/other
sed 's/"op_type": "rmsnorm"/"op_type": "other"/' definitions/rmsnorm/tiny_norm.json >definitions/other/tiny_norm.json
sed -i 's/"reference": "/&# a third\\n/' definitions/gemm/tiny_gemm.json
cp tests/references/test_tiny_norm.py "$work/before"
run generate
expect_exit 1
expect_says 'definitions/other/tiny_norm.json: another definition has the same name' 'definitions/rmsnorm/tiny_norm.json: another definition' \
	'test_tiny_gemm.py written' '2 without'
cmp -s tests/references/test_tiny_norm.py "$work/before" || fail "the file that two definitions would share changed"
rm -r definitions/other
run generate --layout op-type
expect_exit 0

# A dataset cannot make reftest write outside the dataset's folder.
mv tests/references "$work/elsewhere"
ln -s "$work/elsewhere" tests/references
run generate
expect_exit 4
expect_says 'is a link or a file, not a folder'
