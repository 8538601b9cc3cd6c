#!/bin/sh
# own interpreter: the test checks what a reference can access.
# A reference writes to the memory of every process that it can open, overwrites reftest's libraries, and searches the
# environment variables of all processes for the signing key. With and without Landlock, this reference cannot change
# its own verdict or the verdict of another definition.
. "$(dirname "$0")/../harness.sh"

if [ "$(id -u)" = 0 ]; then # root opens everything, unless it has no capability
	setpriv --bounding-set=-all true 2>/dev/null || skip "setpriv cannot drop capabilities here"
	plain="setpriv --bounding-set=-all --inh-caps=-all"
else
	plain=
fi
REFTEST_CACHE_KEY=$("$reftest" key)
export REFTEST_CACHE_KEY

mkdir "$work/libraries"
define b_attacks <<END
import glob
import os

import torch

reached = []
for path in glob.glob("/proc/[0-9]*"):
    if path.endswith("/%d" % os.getpid()):
        continue
    try:
        with open(path + "/environ", "rb") as file:
            if b"REFTEST_CACHE_KEY=ed25519" in file.read() and b"reftest" in open(path + "/comm", "rb").read():
                reached.append("environment of " + path)
    except OSError:
        pass
    try:
        name = open(path + "/comm").read().strip()
        if name.startswith(("reftest", "exe")):
            os.close(os.open(path + "/mem", os.O_RDWR))
            reached.append("memory of " + name)
    except OSError:
        pass
for path in glob.glob("$work/libraries/*.so"):
    try:
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xcc" * (os.stat(path).st_size - 4096))
    except OSError:
        pass


def run(hidden_states, weight):
    print("reached:", ", ".join(reached))
    return torch.zeros_like(hidden_states)
END
for name in a_honest c_honest; do
	define $name <<END
import torch

name = "$name"


def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
END
done

for with in '' "$python -IS $top/tests/e2e/tools/without_landlock.py"; do
	cp "$build"/libreftest_*.so "$work/libraries/"
	printf '#!/bin/sh\nexec %s %s "%s" "$@"\n' "$plain" "$with" "$build/reftest" >"$work/reftest"
	chmod +x "$work/reftest"
	reftest=$work/reftest
	REFTEST_KERNELS=$work/libraries
	export REFTEST_KERNELS
	verify --force
	expect_exit 1
	expect_status a_honest passed
	expect_status b_attacks failed
	expect_status c_honest passed
	expect "all('reached: \n' in (text or '') for text in all_of('b_attacks', 'printed'))"
	rm "$work/libraries"/*
done
unset REFTEST_KERNELS
verify
expect_exit 1
expect_status b_attacks failed
