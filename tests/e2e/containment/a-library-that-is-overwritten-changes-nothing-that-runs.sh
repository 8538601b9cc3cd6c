#!/bin/sh
# A process overwrites the kernels library in place while a run is under way. The main process, its judges and the judges
# that it starts later still use the library that the run began with.
. "$(dirname "$0")/../harness.sh"

mkdir "$work/libraries"
cp "$build"/libreftest_*.so "$work/libraries/"
REFTEST_KERNELS=$work/libraries
export REFTEST_KERNELS
with_gates
for name in a_waits b_comes_later; do
	define $name <<END
import torch

name = "$name"


def run(hidden_states, weight):
    if name == "a_waits":
        gate("$work/started", "$work/go")
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (normed * weight.float()).to(hidden_states.dtype)
END
done
begin verify --format json --device "$device" --sizes small --jobs 1
started
for library in "$work/libraries"/*.so; do
	size=$(stat -c %s "$library")
	# The first page stays, so that the file still looks like a library.
	head -c "$size" /dev/zero | tr '\0' '\314' | dd of="$library" bs=4096 seek=1 conv=notrunc iflag=fullblock 2>/dev/null
	truncate -s "$size" "$library"
done
for judge in $(processes); do # a judge that is started anew uses the same library
	case $(cat "/proc/$judge/comm") in reftest-judge) kill -9 "$judge" ;; esac
done
: >"$work/go"
ended
expect_exit 0
expect_status a_waits passed
expect_status b_comes_later passed
