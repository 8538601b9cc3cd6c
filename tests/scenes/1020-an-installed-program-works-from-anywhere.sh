#!/bin/sh
# 1020: `make install PREFIX=…` puts program, libraries and runner where they work without the checkout, and `make
# uninstall` takes them away again.
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
mv "$work/elsewhere" "$work/stage/opt/reftest"
make -s -C "$top" uninstall DESTDIR="$work/stage" PREFIX=/opt/reftest
[ -z "$(find "$work/stage" -type f)" ] || fail "make uninstall left $(find "$work/stage" -type f)"
