#!/bin/sh
# own interpreter: the test checks what a reference can access.
# If a dataset is below a folder that references may read, the dataset is hidden from references, with and without a
# mount namespace. The home directory is also hidden if HOME is missing or names another directory.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the test is about files only"
[ "$(id -u)" = 0 ] || skip "only root can write below /usr"
${CC:-cc} -O1 -D_GNU_SOURCE -o "$work/restrict" "$top/tests/e2e/tools/restrict.c" || fail "restrict.c does not compile"
place=$(mktemp -d /usr/local/share/reftest-test-XXXXXX)
trap 'code=$?; rm -rf "$place"; test_end $code' EXIT
home=$(getent passwd "$(id -u)" | cut -d : -f 6)
mkdir "$place/beside" "$place/dataset"
echo beside >"$place/beside/file"
cd "$place/dataset"
root=$place/dataset
marker=$(mktemp "$home/.reftest-test-XXXXXX")
trap 'code=$?; rm -rf "$place" "$marker"; test_end $code' EXIT
define looks <<P
import os

import torch


def seen(path):
    try:
        open(path).close()
        return True
    except OSError:
        return False


def entries(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def run(hidden_states, weight):
    paths = ["$place/beside/file", "$place/dataset/definitions/rmsnorm/looks.json", "$marker", torch.__file__]
    listed = any(map(entries, ["$place/dataset", "$place/dataset/definitions"]))
    raise AssertionError("%s %s." % (listed, [seen(path) for path in paths]))
P
looks() { # looks RESTRICTION…: runs the reference with these restrictions
	step="a dataset below /usr, restricted by $*"
	status=0
	"$work/restrict" "$@" "$reftest" verify --alone --force --format json --device cpu --sizes small --jobs 1 \
		>"$work/out" 2>"$work/err" || status=$?
	expect "'False [True, False, False, True].' in c['looks', 'small:batch_size=1']['message']"
	expect "'files' not in s['containment']"
}

looks
looks --no-namespaces
looks --no-landlock

# References cannot see the home directory even if LD_LIBRARY_PATH names it, whatever the value of HOME is.
[ "$home" != / ] || skip "the home directory is the root"
export LD_LIBRARY_PATH="$home"
HOME=/nowhere
export HOME
looks
unset HOME
looks
