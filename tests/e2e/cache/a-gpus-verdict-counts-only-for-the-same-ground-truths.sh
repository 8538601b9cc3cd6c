#!/bin/sh
# A machine without a GPU accepts a verdict from a GPU only if the verdict is by the ground truths for which this run
# asks. If a truth or a solution is added to the dataset afterwards, the verdict counts only for runs that do not use the
# new file. This machine may have no GPU, so the test copies verdicts of the CPU and labels the copies as verdicts of a
# GPU.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
export CUDA_VISIBLE_DEVICES=
make_relabel
relabel() { "$work/relabel" . sm_90 "$1" >"$work/out" 2>&1 || fail "relabel: $(cat "$work/out")"; }
# `from_gpu EXIT ARGUMENT…`: expects this exit status of a run that accepts only verdicts from a GPU, and of a run that
# accepts any verdict but runs nothing.
from_gpu() {
	code=$1
	shift
	verify --cached-only --device-class sm_90 "$@"
	expect_exit "$code"
	[ "$code" != 0 ] || expect "s['accepted_from_elsewhere'] and s['cases_cached'] > 0"
	verify --cached-only --device auto "$@"
	expect_exit "$code"
	[ "$code" != 0 ] || expect "all(case['device_class'] == 'sm_90' for case in c.values())"
}

# The verdict of the GPU is by all ground truths, which are torch and builtin.
given tiny_gemm
verify --ground-truth all
expect_exit 0
relabel gemm/tiny_gemm
from_gpu 0
from_gpu 0 --ground-truth all
from_gpu 0 --ground-truth torch,builtin
from_gpu 3 --ground-truth builtin,chain # the verdict is also by torch, for which this run does not ask

# A truth is added that disagrees.
mkdir -p truths/gemm
cat >truths/gemm/tiny_gemm.py <<'P'
import torch


def run(A, B):
    return (torch.einsum("mk,nk->mn", A.float(), B.float()) * 1.5).half()
P
from_gpu 0 # auto does not use the truth, because the definition has an op family
from_gpu 3 --ground-truth all
from_gpu 3 --ground-truth truth
run verify --cached-only --dry-run --sizes small --device-class sm_90 --ground-truth all
expect_says 'this run would use all of torch, builtin and truth; it lacks truth'
verify --device auto --ground-truth all
expect_exit 1
expect_status tiny_gemm failed ground_truths_disagree

# The verdict of the GPU is by a solution. Then a solution is added that runs before this one and disagrees.
rm -r definitions workloads truths
mkdir -p definitions/affine
cat >definitions/affine/twice.json <<'P'
{"name": "twice", "op_type": "affine", "description": "",
 "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 8}},
 "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}},
 "outputs": {"y": {"shape": ["n", "width"], "dtype": "float32"}},
 "reference": "def run(x):\n    return x * 2 + 1\n"}
P
solve() { # solve AUTHOR EXPRESSION
	mkdir -p "solutions/$1/affine/twice"
	cat >"solutions/$1/affine/twice/by_$1.json" <<P
{"name": "by_$1", "definition": "twice", "author": "$1", "description": "",
 "spec": {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run",
          "destination_passing_style": false},
 "sources": [{"path": "main.py", "content": "def run(x):\n    return $2\n"}]}
P
}
solve bob 'x + x + 1'
verify --ground-truth auto,solution
expect_exit 0
relabel affine/twice
from_gpu 0 --ground-truth auto,solution
solve alice 'x + x + 1.5'
from_gpu 0 --ground-truth auto,solution:bob
from_gpu 3 --ground-truth auto,solution
verify --device auto --ground-truth auto,solution
expect_exit 1
expect_status twice failed numeric
