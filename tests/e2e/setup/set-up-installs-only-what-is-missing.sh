#!/bin/sh
# If everything is installed, tools/setup.sh does nothing and prints nothing. If a package is missing and there is no
# apt-get, or no permission to use it, a message names the package.
. "$(dirname "$0")/../harness.sh"
setup() {
	step="tools/setup.sh $*"
	status=0
	"$top/tools/setup.sh" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}
setup --tests
expect_exit 0
[ ! -s "$work/out" ] || fail "$step: unexpected output"
setup --tests deb
expect_exit 1
expect_says "there is no part 'deb'"

# PATH contains only the commands below, so there is neither a compiler nor apt-get.
mkdir "$work/bin"
for command in sh dirname mktemp rm cat env id grep tr printf python3 git pkg-config tail; do
	ln -s "$(command -v $command)" "$work/bin/$command"
done
all=$PATH
PATH=$work/bin
setup
PATH=$all
expect_exit 1
expect_says 'apt-get is missing' 'gcc' 'libcjson-dev' 'libxxhash-dev' 'liblmdb-dev' 'libzstd-dev' 'g++' 'libtomlplusplus-dev'
# `make test` installs these three parts separately. Only the part `debian` includes the compiler.
for part in debian torch tools; do
	PATH=$work/bin
	setup --tests $part
	PATH=$all
	if [ $part = debian ]; then
		expect_exit 1
		expect_says 'apt-get is missing' 'gcc' 'libcmocka-dev'
	else
		expect_exit 0
	fi
done
PATH=$work/bin
setup --missing
PATH=$all
expect_exit 1
expect_says 'libcjson-dev' 'make verify'

# apt-get exists, but the user is not root and there is no sudo.
printf '#!/bin/sh\nexit 0\n' >"$work/bin/apt-get"
rm "$work/bin/id"
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
chmod +x "$work/bin/apt-get" "$work/bin/id"
PATH=$work/bin
setup
PATH=$all
expect_exit 1
expect_says 'sudo apt-get install' 'libcjson-dev'

# requirements.txt, from which tools/setup.sh installs, names the same packages as the extra [torch] of the wheel.
step='requirements.txt'
expectations=$((expectations + 1))
extra=$(sed -n 's/^torch = \[\(.*\)\]$/\1/p' "$top/pyproject.toml" | tr -d ' "' | tr ',' '\n' | sed 's/[<>=].*//' | sort)
pinned=$(grep -v '^#' "$top/requirements.txt" | sed 's/==.*//' | sort)
{ [ -n "$extra" ] && [ "$extra" = "$pinned" ]; } || fail "it has '$pinned', and the wheel's extra has '$extra'"
