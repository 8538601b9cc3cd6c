#!/bin/sh
# `make wheel` makes a wheel that pip installs into an empty virtual environment of a user with an empty home. The
# installed program uses only the libraries in the wheel, and not those that tools/setup.sh installs on the machine.
# `doctor` of the installed program does not suggest make commands. The tag of the wheel names the glibc version that
# the files of the wheel need. pip can remove all files that it installed.
. "$(dirname "$0")/../harness.sh"
name=$(basename "$build")
step='make wheel'
[ "$name" = build ] || skip 'a wheel of a build with sanitizers needs their libraries'
# Other tests run the program of this build at the same time, so make must not link it again. A new CUDA library would
# make this necessary, because the program contains the digests of the libraries. Therefore make builds without CUDA
# (NVCC=) unless the build already contains the CUDA library.
[ -f "$build/libreftest_kernels_cuda.so" ] && without_cuda= || without_cuda=NVCC=
# shellcheck disable=SC2086 # a word or none
PIP_NO_BUILD_ISOLATION=0 make -s -C "$top" wheel BUILD="$name" $without_cuda PYTHON="$top/.venv-tests/bin/python" DIST="$work/dist" \
	>"$work/out" 2>"$work/err" || fail "make wheel"
wheel=$(tail -n 1 "$work/out")
newest=$(readelf -VW "$build/reftest" "$build"/*.so | grep -o 'GLIBC_2\.[0-9]*' | sort -t. -k2n | tail -n 1)
case $wheel in
*-py3-none-manylinux_2_"${newest#GLIBC_2.}"_"$(uname -m)".whl) ;;
*) fail "the tag of $wheel does not name ${newest:-a glibc}" ;;
esac

mkdir "$work/home"
export HOME="$work/home" PATH=/usr/bin:/bin
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --no-index "$wheel" >"$work/out" 2>"$work/err" || fail "pip install"
reftest=$work/env/bin/reftest
step='libraries'
LD_DEBUG=files "$reftest" doctor --python "$python" >"$work/out" 2>"$work/loaded"
for library in cjson xxhash lmdb zstd gomp sodium hiredis; do
	places=$(sed -n "s/.*calling init: \(.*lib$library\.so.*\)/\1/p" "$work/loaded" | sort -u)
	case $places in
	"$work/env/"*) [ "$(echo "$places" | wc -l)" = 1 ] || fail "lib$library is loaded from $places" ;;
	*) fail "lib$library is loaded from ${places:-nowhere}" ;;
	esac
done
for file in "$work"/env/lib/reftest/lib[!r]*; do
	[ -s "$work/env/share/doc/reftest/copyright/$(basename "$file")" ] || fail "$file has no copyright file"
done

given tiny_norm
REFTEST_PYTHON=$python
export REFTEST_PYTHON
verify
expect_exit 0
expect_status tiny_norm passed
run key
expect_exit 0
run doctor
expect_exit 0
! grep -E 'make( |$)' "$work/out" || fail "doctor names make, which has nothing to build here"

# The program uses the interpreter of its virtual environment if this interpreter has torch. Without torch, a message
# names the command that installs torch.
unset REFTEST_PYTHON
export PATH="$work/env/bin:$PATH"
run doctor
expect_exit 3
expect_says "repair it with: $work/env/bin/python3 -m pip install torch"
run verify
expect_exit 3
expect_says "has no torch; choose a Python interpreter with --python, or install torch with: $work/env/bin/python3 -m pip install torch"
export PATH=/usr/bin:/bin
mkdir "$(echo "$work"/env/lib/python3*/site-packages)/torch"
: >"$(echo "$work"/env/lib/python3*/site-packages)/torch/version.py"
run doctor --format json
expect "[x['found'] for x in r['checks'] if x['name'] == 'python'] == ['$work/env/bin/python3']"

"$work/env/bin/pip" uninstall --quiet --yes reftest >"$work/out" 2>"$work/err" || fail "pip uninstall"
left=$(find "$work/env" -name '*reftest*' ! -name '*.pyc' ! -type d)
[ -z "$left" ] || fail "pip uninstall left $left"
