#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A dataset is copied to another path together with its cache, and every mtime changes. No case runs then, because
# reftest looks up verdicts by digests of the files' contents, and not by paths or times.
. "$(dirname "$0")/../harness.sh"
given tiny_norm tiny_gemm
verify --sizes small,medium
expect_exit 0
all=$(value "s['cases_run']")
mkdir "$work/else where"
cp -r "$root" "$work/else where/moved"
mv "$root" "$work/gone"
cd "$work/else where/moved"
find . -path ./.reftest -prune -o -type f -exec touch -d '2001-02-03 04:05:06' {} +
verify --sizes small,medium
expect_exit 0
expect_ran 0
expect_cached "$all"
run status --device cpu
expect_exit 0
expect_says 'rmsnorm/tiny_norm' 'gemm/tiny_gemm'
