#!/bin/sh
# own interpreter: the test checks which script an interpreter runs.
# A Python file of reftest does not run if it has changed since the build. The test changes runner.py, gradients.py,
# provider.py and two files of python/libraries/, one at a time. The test also checks that the provider (the process
# that calls other libraries) starts before the first runner (a process that runs references).
. "$(dirname "$0")/../harness.sh"

mkdir -p "$work/tree/build"
cp "$build/reftest" "$build"/*.so "$work/tree/build/"
cp -R "$top/python" "$work/tree/"
REFTEST_PYTHON=$python
export REFTEST_PYTHON
reftest=$work/tree/build/reftest
given tiny_gemm
verify
expect_exit 0

for name in runner gradients provider libraries/common; do
	file=$work/tree/python/$name.py
	cp "$file" "$work/kept"
	echo '# one more line' >>"$file"
	verify --force
	expect_exit 3
	expect_says "$name.py has been changed since this program was built; run make"
	mv "$work/kept" "$file"
done
verify --force
expect_exit 0

export REFTEST_TRACE=1
verify --force --ground-truth torch
unset REFTEST_TRACE
expect_exit 0
expect "all(case['ground_truth'] == 'torch' for case in c.values())"
provider=$(grep -n 'provider: [0-9]* started' "$work/err" | head -n 1 | cut -d : -f 1)
runner=$(grep -n 'runners: child' "$work/err" | head -n 1 | cut -d : -f 1)
[ "${provider:-9999}" -lt "${runner:-0}" ] || fail "the provider started in line ${provider:-none}, the first runner in ${runner:-none}"
echo '# one more line' >>"$work/tree/python/libraries/torch.py"
verify --force --ground-truth torch
expect_says 'torch.py has been changed since this program was built; run make'
[ "$status" != 0 ] || fail "a changed table of a library was used"
