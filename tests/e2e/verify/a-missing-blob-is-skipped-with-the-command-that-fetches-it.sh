#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# If a blob is absent or only a Git LFS pointer, its case is skipped, the message contains the command that fetches the
# blob, and the run exits with 3. After the blob is fetched, only its case runs.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
rows=blob/workloads/rmsnorm/tiny_norm/rows.safetensors
mv $rows "$work/rows"
id="'tiny_norm', 'workload:11111111-0000-4000-8000-000000000002'"
verify
expect_exit 3
expect "c[$id]['status'] == 'skipped' and c[$id]['reason'] == 'missing_blob'"
expect "'git lfs pull --include' in c[$id]['message'] and '$rows' in c[$id]['message']"
others=$(value "s['cases_run']")
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 784\n' 7 >$rows
verify
expect_exit 3
expect_ran 0
expect_cached "$others"
expect "c[$id]['reason'] == 'missing_blob'"
cp "$work/rows" $rows
verify
expect_exit 0
expect_ran 1
expect "c[$id]['status'] == 'passed'"
