#!/bin/sh
# `generate --replace-vacuous` replaces hand-written files in which no test can fail, and names each file with the
# reason. A file is kept if git has no commit with its content, or if one of its tests can fail. --check changes
# nothing.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL="$work/gitconfig" GIT_CONFIG_SYSTEM=/dev/null REFTEST_PYTHON="$python"
git config --file "$GIT_CONFIG_GLOBAL" user.name test
git config --file "$GIT_CONFIG_GLOBAL" user.email test@localhost
do_git() { git "$@" >"$work/git" 2>&1 || fail "git $*: $(cat "$work/git")"; }
given tiny_norm tiny_gemm
tests=tests/references
mkdir -p $tests
write() {
	printf 'import torch\n\n\ndef test_shape():\n    print(1)\n\n\ndef test_values():\n    return torch.equal(1, 2)\n' >$tests/test_tiny_norm.py
}
write
cat >$tests/test_tiny_gemm.py <<'PYTHON'
def test_one():
    print(1)


def test_two():
    assert 1 + 1 == 2
PYTHON

# The hand-written file is kept, because it is not committed to git.
run generate --replace-vacuous
expect_exit 1
expect_says 'tests/references/test_tiny_norm.py:4: test_shape compares nothing' 'left unchanged, because git has no commit with this content'
grep -q test_values $tests/test_tiny_norm.py || fail "a file that git does not have is gone"
! grep -q 'class TestTinyNorm' $tests/test_rmsnorm.py 2>/dev/null || fail "the definition has two tests"
do_git init -q -b main .
run generate --replace-vacuous
expect_exit 1
expect_silence_about fatal
do_git check-ignore -q .reftest/artifacts
do_git add .
do_git commit -qm 'all of it'
echo '# edited' >>$tests/test_tiny_norm.py
run generate --replace-vacuous
expect_exit 1
expect_says 'left unchanged, because git has no commit'
grep -q edited $tests/test_tiny_norm.py || fail "an edit that git does not have is gone"
do_git checkout -q $tests

run generate --replace-vacuous --check
expect_exit 1
expect_says 'test_tiny_norm.py:4: test_shape compares nothing, so the test passes whatever the reference computes; would be replaced'
expect_says '2 definitions: 1 with a test that can fail (1 hand-written), 1 without, 0 stale'
expect_silence_about 'test_tiny_norm.py was written by hand'
[ -e $tests/test_tiny_norm.py ] || fail "--check removed a file"
# If the only test of a definition is hand-written and cannot fail, the definition counts as a definition without a
# test, even while the file with this test exists.
run generate --check
expect_says '2 definitions: 1 with a test that can fail (1 hand-written), 1 without, 0 stale'
expect_says 'note: 1 hand-written file without a test that checks a definition' '`reftest generate --replace-vacuous` replaces it'
run generate --replace-vacuous
expect_exit 0
expect_silence_about 'without a test that checks a definition'
expect_says 'test_tiny_norm.py:4: test_shape compares nothing, so the test passes whatever the reference computes; replaced'
expect_says '2 definitions: 2 with a test that can fail (1 hand-written), 0 without, 0 stale'
expect_silence_about 'test_tiny_gemm.py:'
[ ! -e $tests/test_tiny_norm.py ] || fail "the file is still there"
grep -q 'class TestTinyNorm' $tests/test_rmsnorm.py || fail "there is no generated test in its place"
grep -q test_two $tests/test_tiny_gemm.py || fail "a file with a test that can fail was replaced"
! grep -q 'class TestTinyGemm' $tests/test_gemm.py 2>/dev/null || fail "the hand-written test no longer counts"
run generate --replace-vacuous
expect_exit 0
expect_silence_about 'replaced'

# A test that runs an edited copy of the reference does not test the definition.
write
printf 'def run(hidden_states, weight):\n    return hidden_states\n\n\ndef test_it():\n    assert run(1, 2) == 1\n' >$tests/test_tiny_norm.py
do_git add .
do_git commit -qm copy
run generate --replace-vacuous
expect_exit 0
expect_says 'test_tiny_norm.py:1: run() is an edited copy of the reference' '; replaced'
# This file is kept, because the audit cannot see the tests that a file imports.
printf 'from other import *\n\n\ndef test_it():\n    print(1)\n' >$tests/test_tiny_norm.py
do_git add .
do_git commit -qm imports
run generate --replace-vacuous
[ -e $tests/test_tiny_norm.py ] || fail "a file that may import tests was replaced"
for words in '--audit' 'tiny_norm' '--op-type gemm'; do
	# shellcheck disable=SC2086 # words
	run generate --replace-vacuous $words
	expect_exit 2
done

# A hand-written file in which no test can fail is also replaced if it has the name of an op_type's generated file, such
# as test_gemm.py.
rm -rf tests/references
mkdir -p $tests
printf 'def test_all():\n    assert True\n' >$tests/test_gemm.py
do_git add -A
do_git commit -qm 'one file'
run generate --replace-vacuous --check
expect_exit 1
expect_says 'tests/references/test_gemm.py is missing' 'test_gemm.py:2: test_all asserts something that is always true, whatever the reference computes; would be replaced'
expect_silence_about 'was written by hand'
run generate --replace-vacuous
expect_exit 0
expect_says '2 definitions: 2 with a test that can fail (0 hand-written), 0 without, 0 stale'

# pytest cannot collect a file that imports a module that is not installed. pytest can collect a file that imports a
# module beside the file, or that handles the failure of an import.
expect_silence_about 'cannot collect'
echo 'import json, helper_of_tests, pytest' >$tests/test_beside.py
printf 'try:\n    import no_such_module\nexcept ImportError:\n    pass\n' >$tests/test_careful.py
: >$tests/helper_of_tests.py
run generate --check
expect_silence_about 'cannot collect'
echo 'from no_such_module.inner import f' >>$tests/test_beside.py
run generate --check
expect_says 'note: pytest cannot collect 1 hand-written file, because' 'lacks modules that they import, such as no_such_module' \
	'`pytest tests/references --continue-on-collection-errors` runs all other tests'
echo 'import json, other_missing' >$tests/test_careful.py
run generate --check
expect_says 'note: pytest cannot collect 2 hand-written files, because'
