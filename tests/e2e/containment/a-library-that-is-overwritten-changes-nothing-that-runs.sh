#!/bin/sh
# own interpreter: the test checks what a reference can access.
# A process overwrites the kernels library in place during a run. The main process and its judges (the processes that
# compare outputs) still use the library with which the run began. This includes judges that start after the change. A
# later run does not load the changed library, even if only one byte of it differs. Otherwise, a changed library could
# compute verdicts that still count after the library is restored.
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
	# The first page stays unchanged, so that the file still looks like a library.
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

refused() { # refused: expects that reftest does not use the changed library
	run verify --device "$device" --sizes small --jobs 1 --force
	expect_exit 4
	expect_says 'the library was not built with this program'
}
refused
library=$work/libraries/libreftest_kernels.so
cp "$build"/libreftest_*.so "$work/libraries/"
verify --force
expect_exit 0
sleep 2.1 # so that the cache may remember the file
verify --force
expect_exit 0
# One byte of the library's machine code is changed through a mapping, and then the old modification time is restored.
"$python" -IS - "$library" "$(nm "$library" | awk '$3 == "compare_finish" { print $1 }')" <<'END'
import mmap, os, sys
path, place = sys.argv[1], int(sys.argv[2], 16)
st = os.stat(path)
with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as bytes:
    bytes[place] ^= 0xFF
os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
END
refused
