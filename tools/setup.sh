#!/bin/sh
# setup - installs the missing packages that are needed to build and run reftest. With --tests, it also installs the
# missing packages that the tests need. This script asks no questions, prints which packages it installs, and does
# nothing if no package is missing.
#
#   tools/setup.sh [--tests]      installs the missing packages
#   tools/setup.sh --tests PART   installs only a part of them: debian (the Debian packages, which are all that a
#                                 compilation needs), torch (.venv) or tools (.venv-tests)
#   tools/setup.sh --missing      only lists the missing packages that a compilation needs, and always fails (make calls
#                                 it when a compilation fails)
#
# For each program or library that reftest needs, the script tests whether it works; it need not come from a Debian
# package. The script uses the names of Debian packages only to install what is missing. torch is looked up in the
# interpreter's metadata, because importing torch takes two seconds. The interpreter is $REFTEST_PYTHON, else .venv,
# else python3, as in reftest itself.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-}
part=${2:-}
missing=
wished=

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

# need PACKAGE COMMAND…: adds the package to the missing packages if the command fails
need() {
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}

# wish PACKAGE COMMAND…: adds the package to the missing optional packages if the command fails
wish() {
	package=$1
	shift
	"$@" >/dev/null 2>&1 || wished="$wished $package"
}

# there COMMAND: succeeds if the command is on PATH or in one of the sbin directories
there() { PATH=$PATH:/usr/sbin:/sbin command -v "$1"; }

# links HEADER FLAG…: succeeds if a C program that includes the header compiles and links
links() {
	printf '#include <%s>\nint main(void) { return 0; }\n' "$1" >"$scratch/probe.c"
	shift
	cc -std=c11 -o "$scratch/probe" "$scratch/probe.c" "$@"
}

# compiles_toml: succeeds if a C++ program that includes toml++ compiles
compiles_toml() {
	echo '#include <toml++/toml.h>' >"$scratch/probe.cpp"
	c++ -std=c++17 -fsyntax-only "$scratch/probe.cpp"
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
	*" gcc "*) missing="$missing libc6-dev libcjson-dev libxxhash-dev liblmdb-dev libzstd-dev g++ libtomlplusplus-dev" ;;
	*)
		need libc6-dev links stdio.h
		need libcjson-dev links cjson/cJSON.h -lcjson
		need libxxhash-dev links xxhash.h -lxxhash
		need liblmdb-dev links lmdb.h -llmdb
		need libzstd-dev links zstd.h -lzstd
		need gcc links omp.h -fopenmp
		need g++ command -v c++
		case " $missing " in
		*" g++ "*) missing="$missing libtomlplusplus-dev" ;;
		*) need libtomlplusplus-dev compiles_toml ;;
		esac
		;;
	esac
	need pkg-config command -v pkg-config
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
		# The tests of shared caches and shards need servers, which they start and stop.
		need redis-server there redis-server
		need redis-tools there redis-cli
		need apache2-bin there apache2
		need openssl there openssl
		need munge there munged
		need slurmctld there slurmctld
		need slurmd there slurmd
		need slurm-client there sbatch
		# bindfs makes a filesystem on which inotify reports nothing
		[ ! -c /dev/fuse ] || need bindfs command -v bindfs
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
			fail "REFTEST_PYTHON=$REFTEST_PYTHON has no torch 2.4 or newer: install it there, or unset the variable."
	elif [ -e .venv ]; then
		has_torch .venv/bin/python
	else
		has_torch python3
	fi
}

# tests_ready: succeeds if .venv-tests has all packages. The tests need pytest and ruff for the generated pytest files,
# pre-commit for the hooks, mcp for `reftest serve`, hatchling for the wheel, and fla as a ground truth. `import fla`
# does not load the parts of fla that need packages for GPUs.
tests_ready() {
	[ -x .venv-tests/bin/ruff ] && [ -x .venv-tests/bin/pre-commit ] &&
		.venv-tests/bin/python -c 'import pytest, einops, fla, importlib.util as u
assert u.find_spec("triton") and u.find_spec("mcp") and u.find_spec("hatchling")' 2>/dev/null
}

install_test_tools() {
	say "installing into .venv-tests with pip: $(grep -v '^#' requirements-tests.txt | tr '\n' ' ')"
	.venv-tests/bin/python -c '' 2>/dev/null || python3 -m venv --clear .venv-tests ||
		fail "python3 could not create a virtual environment in .venv-tests; its messages are above."
	.venv-tests/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-tests.txt ||
		fail "pip could not install the packages in requirements-tests.txt; its messages are above."
}

# may_install: succeeds if packages can be installed without a password prompt
may_install() { command -v apt-get && { [ "$(id -u)" = 0 ] || sudo -n true; }; }

install_packages() {
	command -v apt-get >/dev/null 2>&1 ||
		fail "apt-get is missing. Please install the equivalents of these Debian packages, then run this again:$missing"
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
		# if the update fails, the package lists of an earlier update may be good enough
		$as_root DEBIAN_FRONTEND=noninteractive apt-get update -q || true
		$as_root DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
			-o DPkg::Lock::Timeout=300 $missing
	} </dev/null >"$scratch/apt.log" 2>&1 || {
		tail -n 30 "$scratch/apt.log" >&2
		fail "apt-get could not install$missing; the end of its output is above."
	}
}

# cpu_index: prints the option with which pip installs the CPU build of torch, which is a tenth as large as the CUDA
# build. Prints nothing if there is an NVIDIA driver, if the package index of the CPU build cannot be reached, or if the
# user has pip settings, which take precedence.
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
		fail "python3 could not create a virtual environment in .venv; its messages are above."
	# shellcheck disable=SC2046 # an option and its value
	.venv/bin/python -m pip install --quiet --disable-pip-version-check $(cpu_index) -r requirements.txt ||
		fail "pip could not install the packages in requirements.txt; its messages are above. Any python3 with torch 2.4 or" \
			"newer does as well: put it first on PATH, or name it in REFTEST_PYTHON."
	has_torch .venv/bin/python || fail ".venv still has no usable torch: remove .venv and run this again."
}

install_debian() {
	find_missing
	if [ "$mode" = --missing ]; then
		[ -z "$missing" ] || say "a build needs these Debian packages:$missing; \`make verify\` installs them." >&2
		exit 1
	fi
	if [ -n "$missing" ] || { [ -n "$wished" ] && may_install; } >/dev/null 2>&1; then
		missing="$missing$wished"
		install_packages
	elif [ -n "$wished" ]; then
		say "not installed, so shared caches and signed records are left out:$wished"
	fi
	case " $missing " in
	*" redis-server "* | *" munge "*)
		say "with systemd, the packages have started redis and munge services, which the tests do not need:" \
			"sudo systemctl disable --now redis-server munge"
		;;
	esac
}

case $part in
'' | debian | torch | tools) ;;
*) fail "there is no part '$part': the parts are debian, torch and tools." ;;
esac
case $part in '' | debian) install_debian ;; esac
case $part in '' | torch) python_ready || install_torch ;; esac
case $mode$part in --tests | --teststools) tests_ready || install_test_tools ;; esac
