#!/bin/sh
# 1020: `make install PREFIX=…` puts program, libraries, runner and the script for Slurm where they work without the checkout,
# at the paths that README names, and `make uninstall` takes them away again.
. "$(dirname "$0")/scene.sh"
name=$(basename "$build")
make -s -C "$top" install BUILD="$name" SANITIZE="$([ "$name" = build ] || echo address,undefined)" \
	DESTDIR="$work/stage" PREFIX=/opt/reftest >"$work/out" 2>&1 || fail "make install: $(tail -n 5 "$work/out")"
mv "$work/stage/opt/reftest" "$work/elsewhere"
reftest=$work/elsewhere/bin/reftest
given tiny_norm
REFTEST_PYTHON=$python
export REFTEST_PYTHON
verify
expect_exit 0
expect_status tiny_norm passed
for path in $(grep -o '/opt/reftest/[a-z_./]*' "$top/README.md" | sort -u); do
	[ -x "$work/elsewhere/${path#/opt/reftest/}" ] || fail "README names $path, which is not there"
done
mkdir "$work/exports"
asked=0 # tasks that had a case; which of them have one, digests decide
for task in 1 2; do
	step="task $task of slurm_array.sh"
	TMPDIR=$work REFTEST_ROOT=$root REFTEST=$reftest REFTEST_EXPORTS=$work/exports SLURM_ARRAY_TASK_ID=$task \
		SLURM_ARRAY_TASK_COUNT=2 "$work/elsewhere/share/reftest/slurm_array.sh" --device "$device" --sizes small \
		--cached-only >"$work/out" 2>"$work/err" && status=0 || status=$?
	if grep -q 'every case falls to another shard' "$work/out"; then
		expect_exit 0
	else
		expect_exit 3
		expect_says 'not_cached'
		asked=$((asked + 1))
	fi
done
[ $asked -gt 0 ] || fail "no task of slurm_array.sh had a case"
mv "$work/elsewhere" "$work/stage/opt/reftest"
make -s -C "$top" uninstall DESTDIR="$work/stage" PREFIX=/opt/reftest
[ -z "$(find "$work/stage" -type f)" ] || fail "make uninstall left $(find "$work/stage" -type f)"
