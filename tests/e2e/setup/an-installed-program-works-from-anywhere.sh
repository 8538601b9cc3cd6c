#!/bin/sh
# own interpreter: the test checks which script an interpreter runs.
# `make install PREFIX=…` installs the program, the libraries, the runner and the Slurm script at the paths in
# docs/ci.md, so that they work without the checkout. `make install` puts the manual page and the completions where man
# and the shells look for them. `make uninstall` removes all installed files.
. "$(dirname "$0")/../harness.sh"
name=$(basename "$build")
# Other tests run the program of this build at the same time, so make must not link it again. A new CUDA library would
# make this necessary, because the program contains the digests of the libraries. Therefore make builds without CUDA
# (NVCC=) unless the build already contains the CUDA library.
[ -f "$build/libreftest_kernels_cuda.so" ] && without_cuda= || without_cuda=NVCC=
# shellcheck disable=SC2086 # a word or none
make -s -C "$top" install BUILD="$name" SANITIZE="$([ "$name" = build ] || echo address,undefined)" $without_cuda \
	DESTDIR="$work/stage" PREFIX=/opt/reftest >"$work/out" 2>&1 || fail "make install: $(tail -n 5 "$work/out")"
mv "$work/stage/opt/reftest" "$work/elsewhere"
reftest=$work/elsewhere/bin/reftest
given tiny_norm
REFTEST_PYTHON=$python
export REFTEST_PYTHON
verify
expect_exit 0
expect_status tiny_norm passed
for path in $(grep -o '/opt/reftest/[a-z_./]*' "$top/docs/ci.md" | sort -u); do
	[ -x "$work/elsewhere/${path#/opt/reftest/}" ] || fail "docs/ci.md names $path, which does not exist"
done
for kind in man:man/man1/reftest.1 bash:bash-completion/completions/reftest zsh:zsh/site-functions/_reftest \
	fish:fish/vendor_completions.d/reftest.fish; do
	"$reftest" document "${kind%%:*}" | cmp - "$work/elsewhere/share/${kind#*:}" || fail "share/${kind#*:} differs"
done
mkdir "$work/exports"
asked=0 # the number of tasks that have a definition; it depends on digests
for task in 1 2; do
	step="task $task of slurm_array.sh"
	TMPDIR=$work REFTEST_ROOT=$root REFTEST=$reftest REFTEST_EXPORTS=$work/exports SLURM_ARRAY_TASK_ID=$task \
		SLURM_ARRAY_TASK_COUNT=2 "$work/elsewhere/share/reftest/slurm_array.sh" --device "$device" --sizes small \
		--cached-only >"$work/out" 2>"$work/err" && status=0 || status=$?
	if grep -q 'all definitions belong to other shards' "$work/out"; then
		expect_exit 0
	else
		expect_exit 3
		expect_says 'not_cached'
		asked=$((asked + 1))
	fi
done
[ $asked -gt 0 ] || fail "no task of slurm_array.sh had a definition"
mv "$work/elsewhere" "$work/stage/opt/reftest"
make -s -C "$top" uninstall DESTDIR="$work/stage" PREFIX=/opt/reftest
[ -z "$(find "$work/stage" -type f)" ] || fail "make uninstall left $(find "$work/stage" -type f)"
