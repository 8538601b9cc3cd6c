#!/bin/sh
# Makes this machine able to build and run reftest, and with --tests to run its tests. Asks nothing, says what it
# installs, installs only what is missing: a second run finds everything and does nothing.
#
#   tools/setup.sh [--tests]     install what is missing
#   tools/setup.sh --missing     only name what a build lacks (make calls it when a compilation fails); always fails
#
# Every need is probed by using it, so what was built from source, or came with another system's packages, counts; only
# then does the Debian package's name matter. torch is looked up in the interpreter's metadata, for importing it takes
# two seconds: $REFTEST_PYTHON, else .venv, else python3, which is the order in which reftest itself looks.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-}
missing=
wished=

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

# need PACKAGE COMMAND…: the package is missing unless the command succeeds
need() {
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}

# wish PACKAGE COMMAND…: the same of what is well to have: a build leaves out what needs it
wish() {
	package=$1
	shift
	"$@" >/dev/null 2>&1 || wished="$wished $package"
}

# there COMMAND: also where daemons lie
there() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }

# links HEADER FLAG…: does a C program that includes the header compile and link?
links() {
	printf '#include <%s>\nint main(void) { return 0; }\n' "$1" >"$scratch/probe.c"
	shift
	cc -std=c11 -o "$scratch/probe" "$scratch/probe.c" "$@"
}

has_torch() {
	"$1" - <<-'END' 2>/dev/null
		from importlib.metadata import version
		major, minor = version("torch").split(".")[:2]
		raise SystemExit((int(major), int(minor)) < (2, 4))
	END
}

find_missing() {
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	need gcc command -v cc
	case " $missing " in
	*" gcc "*) missing="$missing libc6-dev libcjson-dev libxxhash-dev liblmdb-dev libzstd-dev" ;;
	*)
		need libc6-dev links stdio.h
		need libcjson-dev links cjson/cJSON.h -lcjson
		need libxxhash-dev links xxhash.h -lxxhash
		need liblmdb-dev links lmdb.h -llmdb
		need libzstd-dev links zstd.h -lzstd
		need gcc links omp.h -fopenmp
		;;
	esac
	need pkg-config command -v pkg-config
	if command -v nvcc >/dev/null 2>&1; then need g++ command -v g++; fi
	[ "$mode" = --missing ] && return
	case " $missing " in
	*" libc6-dev "*) wished=" libhiredis-dev libcurl4-openssl-dev libsodium-dev" ;;
	*)
		wish libhiredis-dev links hiredis/hiredis.h -lhiredis
		wish libcurl4-openssl-dev links curl/curl.h -lcurl
		wish libsodium-dev links sodium.h -lsodium
		;;
	esac
	if [ "$mode" = --tests ]; then
		case " $missing " in
		*" libc6-dev "*) missing="$missing libcmocka-dev" ;;
		*)
			need libcmocka-dev links setjmp.h -include stddef.h -include stdarg.h -include stdint.h \
				-include setjmp.h -include cmocka.h -lcmocka
			need gcc links stdio.h -fsanitize=address,undefined
			;;
		esac
		need git command -v git
		missing="$missing$wished"
		wished=
		# Shared caches and shards are tested with the real servers, each begun and ended by its test.
		need redis-server there redis-server
		need redis-tools there redis-cli
		need apache2-bin there apache2
		need openssl there openssl
		need munge there munged
		need slurmctld there slurmctld
		need slurmd there slurmd
		need slurm-client there sbatch
		[ ! -c /dev/fuse ] || need bindfs command -v bindfs # a filesystem that inotify cannot see
		tests_ready || [ -x .venv-tests/bin/python ] || need python3-venv python3 -c 'import venv, ensurepip'
	fi
	if ! python_ready; then
		need python3 command -v python3
		[ -x .venv/bin/python ] || need python3-venv python3 -c 'import venv, ensurepip'
	fi
}

python_ready() {
	if [ -n "${REFTEST_PYTHON:-}" ]; then
		has_torch "$REFTEST_PYTHON" ||
			fail "REFTEST_PYTHON=$REFTEST_PYTHON has no torch of 2.4 or newer: install one there, or unset the variable."
	elif [ -e .venv ]; then
		has_torch .venv/bin/python
	else
		has_torch python3
	fi
}

# pytest and ruff, with which generated pytest files are tested; pre-commit for the hooks; fla, of which importing all would
# take a GPU's packages.
tests_ready() {
	[ -x .venv-tests/bin/ruff ] && [ -x .venv-tests/bin/pre-commit ] &&
		.venv-tests/bin/python -c 'import pytest, einops, fla, importlib.util as u
assert u.find_spec("triton")' 2>/dev/null
}

install_test_tools() {
	say "installing into .venv-tests with pip: $(grep -v '^#' requirements-tests.txt | tr '\n' ' ')"
	.venv-tests/bin/python -c '' 2>/dev/null || python3 -m venv --clear .venv-tests ||
		fail "python3 could not make a virtual environment in .venv-tests; its words are above."
	.venv-tests/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-tests.txt ||
		fail "pip could not install what requirements-tests.txt names; its words are above."
}

# Can packages be installed without a question?
may_install() { command -v apt-get && { [ "$(id -u)" = 0 ] || sudo -n true; }; }

install_packages() {
	command -v apt-get >/dev/null 2>&1 ||
		fail "there is no apt-get here. Please install what Debian calls$missing, then run this again."
	if [ "$(id -u)" = 0 ]; then
		as_root=env
	elif sudo -n true 2>/dev/null; then
		as_root='sudo -n env'
	else
		fail "these packages are missing, and installing them needs root. Please run: sudo apt-get install$missing"
	fi
	say "installing with apt-get (a minute or two):$missing"
	# shellcheck disable=SC2086 # a list of words
	{
		$as_root DEBIAN_FRONTEND=noninteractive apt-get update -q || true # the lists at hand may do
		$as_root DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
			-o DPkg::Lock::Timeout=300 $missing
	} </dev/null >"$scratch/apt.log" 2>&1 || {
		tail -n 30 "$scratch/apt.log" >&2
		fail "apt-get could not install$missing; the end of what it said is above."
	}
}

# Without an NVIDIA driver torch's CPU build does, a tenth of the download, if the place that has it can be reached;
# whoever told pip where to look is obeyed.
cpu_index() {
	[ ! -e /proc/driver/nvidia/version ] && [ -z "${PIP_INDEX_URL:-}${PIP_EXTRA_INDEX_URL:-}${PIP_FIND_LINKS:-}" ] ||
		return 0
	index=https://download.pytorch.org/whl/cpu
	.venv/bin/python -c "import urllib.request as r; r.urlopen('$index/torch/', timeout=10)" 2>/dev/null || return 0
	echo "--extra-index-url $index"
}

install_torch() {
	say "installing into .venv with pip: $(grep -v '^#' requirements.txt | tr '\n' ' ')"
	.venv/bin/python -c '' 2>/dev/null || python3 -m venv --clear .venv ||
		fail "python3 could not make a virtual environment in .venv; its words are above."
	# shellcheck disable=SC2046 # an option and its value
	.venv/bin/python -m pip install --quiet --disable-pip-version-check $(cpu_index) -r requirements.txt ||
		fail "pip could not install what requirements.txt names; its words are above. Any python3 with torch 2.4 or" \
			"newer does as well: put it first on PATH, or name it in REFTEST_PYTHON."
	has_torch .venv/bin/python || fail ".venv has no usable torch after all: remove .venv and run this again."
}

find_missing
if [ "$mode" = --missing ]; then
	[ -z "$missing" ] || say "a build needs what Debian calls$missing; \`make verify\` installs it." >&2
	exit 1
fi
if [ -n "$missing" ] || { [ -n "$wished" ] && may_install; } >/dev/null 2>&1; then
	missing="$missing$wished"
	install_packages
elif [ -n "$wished" ]; then
	say "left out, and with it shared caches and signed records: what Debian calls$wished"
fi
case " $missing " in
*" redis-server "* | *" munge "*)
	say "where systemd is at work, a redis and a munge have begun with their packages; the tests do not need them:" \
		"sudo systemctl disable --now redis-server munge"
	;;
esac
python_ready || install_torch
[ "$mode" != --tests ] || tests_ready || install_test_tools
