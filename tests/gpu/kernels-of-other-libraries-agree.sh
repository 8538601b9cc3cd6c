#!/bin/sh
# On a GPU, the references of the starter dataset agree with the kernels of FLA (flash-linear-attention), FlashInfer and
# SGLang. A library that is not installed is skipped. Generated tests call the kernels. The test files run in parallel,
# because the kernels are compiled at their first use, which takes minutes. The output of each file is written to the
# folder $OUT.
#
#   sh tests/gpu/kernels-of-other-libraries-agree.sh [SELECTION]     SELECTION: for pytest's -k; default: small, and not
#   moe
. "$(dirname "$0")/../e2e/harness.sh"
pytest_is_here
for library in flashinfer fla sglang; do
	"$python" -c "import $library" 2>/dev/null && break
	[ $library != sglang ] || skip "neither FlashInfer nor SGLang nor FLA is installed"
done
selection=${1:-small and not Moe}
logs=${OUT:-$work/logs}
mkdir -p "$logs"
cp -r "$top/definitions" .
run generate
expect_exit 0
for file in tests/references/test_*.py; do
	name=$(basename "$file" .py)
	(
		REFTEST_KERNELS=$top/build timeout 540 "$python" -m pytest -v -rs --tb=short -p no:cacheprovider --device cuda "$file" \
			-k "against and not builtin and ($selection)" >"$logs/$name.txt" 2>&1 && code=0 || code=$?
		echo "pytest of $name ended with $code" >>"$logs/$name.txt"
	) &
done
wait
grep -hE ' FAILED| ERROR|^E  |passed|failed|ended with' "$logs"/*.txt >"$work/out" || true
sed 's/^/# /' "$work/out"
step="pytest"
! grep -qE ' FAILED| ERROR|ended with 1$' "$work/out" || fail "a ground truth disagrees"
# pytest's exit status 5 means that no test of the file is selected. A test file whose run crashed or timed out counts
# as failed.
! grep 'ended with' "$work/out" | grep -vqE 'ended with (0|5)$' || fail "the tests of a file did not run to their end"
expectations=$((expectations + 2))
grep -q ' PASSED' "$logs"/*.txt || fail "no ground truth was compared"
expectations=$((expectations + 1))
