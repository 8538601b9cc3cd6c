#!/bin/sh
# `warm` lets libraries compile the kernels that a dataset needs. `warm` reports each compilation and its duration, and
# compiles each kernel only once. An interrupt leaves no process behind, and the next run continues. Without libraries,
# `warm` reports that there is nothing to do. A failed compilation changes the exit status, but an unsupported operation
# does not.
. "$(dirname "$0")/../harness.sh"
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
    # The kernel for the first of two cases is compiled, even if the kernel for the second case cannot be compiled.
    if os.environ.get("PLANTED") and call.axes["M"] > 1:
        raise ENDS[os.environ["PLANTED"]]
    built = "$work/built"  # a compiler writes its whole output at the end
    if not os.path.exists(built):
        with progress_of("planted compiles m", 3600, tell=True):
            open("$work/started", "w").close()
            while not os.path.exists("$work/go"):
                time.sleep(0.05)
            open(built, "w").close()
    a, b = (call[role].double() for role in "ab")
    return call.outputs_of(output=a @ b.T)


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
expect_says 'rmsnorm/tiny_norm' "no installed library has kernels for these definitions, so there is nothing to prepare"

# `ends DEED CODE SENTENCE`: runs `warm` with a planted provider that does DEED. Expects the exit status CODE, and a
# message that contains SENTENCE.
ends() {
	PLANTED=$1 run warm --device "$device" --jobs 1
	expect_exit "$2"
	expect_says "$3"
}
ends rejected 3 'NotBuilt: planted: error: static assertion failed'
ends no_compiler 3 'NotBuilt: planted: Could not find nvcc'
ends declines 0 's prepared'
ends raises 0 's prepared'

# If a reference raises an exception, no library is called for its definition. `warm` reports an unreadable definition
# as verify does.
cp definitions/gemm/tiny_gemm.json definitions/gemm/raising.json
edit definitions/gemm/raising.json '"name": "tiny_gemm"' '"name": "raising"'
edit definitions/gemm/raising.json 'def run(A, B):' 'def run(A, B):\n    raise ValueError(A.shape)'
run warm --device "$device" --jobs 1 raising
expect_exit 3
expect_says 'no library was used: the reference raised ValueError'
echo '{ "name": "broken"' >definitions/gemm/broken.json
run warm --device "$device" --jobs 1
expect_exit 2
expect_says 'invalid: definitions/gemm/broken.json:2:1' 's prepared'
