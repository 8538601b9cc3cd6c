#!/bin/sh
# 6170: warm has libraries prepare what a dataset takes, says what is being prepared and how long it took, and does it once; an
# interrupt leaves nothing behind, and the next run begins where there is something left. Without libraries it says so. What
# did not compile is told by the exit code as well; what a library has no call for is no trouble.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
given tiny_gemm tiny_norm
mkdir "$work/tables"
cat >"$work/tables/torch.py" <<END
import os
import time

from reftest_providers import Need, NotBuilt, Row, Table, Unavailable, progress_of

ENDS = {"declines": Unavailable("planted: no kernel for this"), "rejected": NotBuilt("planted: error: static assertion failed"),
        "no_compiler": NotBuilt("planted: Could not find nvcc"), "raises": ValueError("planted: heads of 7")}


def call(call):
    # The first of two cases is answered whatever it is that keeps the second.
    if os.environ.get("PLANTED") and call.axes["M"] > 1:
        raise ENDS[os.environ["PLANTED"]]
    built = "$work/built"  # as a compiler leaves it: whole, and at the end
    if not os.path.exists(built):
        with progress_of("planted compiles m", 3600, tell=True):
            open("$work/started", "w").close()
            while not os.path.exists("$work/go"):
                time.sleep(0.05)
            open(built, "w").close()
    a, b = (x.double() for x in call.tensors(least_rank=2))
    return call.cut(a @ b.T)


TABLES = (Table("torch", (Need(("torch",), "torch"),), {"gemm": Row(call, cpu=True, least=None)}),)
END
REFTEST_PROVIDERS=$work/tables
export REFTEST_PROVIDERS

begin warm --device "$device" --jobs 1
started
kill -INT $program
ended
expect_exit 130
expect_says 'reftest: planted compiles m'
expect_no_process

touch "$work/go"
run warm --device "$device" --jobs 1
expect_exit 0
expect_says 'gemm/tiny_gemm' 'reftest: planted compiles m' 's prepared'
[ -e "$work/built" ] || fail "$step: nothing was built"
run warm --device "$device" --jobs 1
expect_exit 0
expect_says 's prepared'
expect_silence_about 'planted compiles' 'nothing to prepare'
run warm --device "$device" --jobs 1 tiny_norm
expect_exit 0
expect_says 'rmsnorm/tiny_norm' "no library's kernels are asked here, so there is nothing to prepare"

# ends DEED CODE SENTENCE
ends() {
	PLANTED=$1 run warm --device "$device" --jobs 1
	expect_exit "$2"
	expect_says "$3"
}
ends rejected 3 'NotBuilt: planted: error: static assertion failed'
ends no_compiler 3 'NotBuilt: planted: Could not find nvcc'
ends declines 0 's prepared'
ends raises 0 's prepared'

# A reference that raises keeps its library from being asked; a definition that cannot be read is told as by verify.
cp definitions/gemm/tiny_gemm.json definitions/gemm/raising.json
edit definitions/gemm/raising.json '"name": "tiny_gemm"' '"name": "raising"'
edit definitions/gemm/raising.json 'def run(A, B):' 'def run(A, B):\n    raise ValueError(A.shape)'
run warm --device "$device" --jobs 1 raising
expect_exit 3
expect_says 'no library was asked: the reference raised ValueError'
echo '{ "name": "broken"' >definitions/gemm/broken.json
run warm --device "$device" --jobs 1
expect_exit 2
expect_says 'invalid: definitions/gemm/broken.json:2:1' 's prepared'
