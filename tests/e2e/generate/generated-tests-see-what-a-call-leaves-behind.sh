#!/bin/sh
# Generated tests fail for references that cache results by shape, draw random numbers where the operation does not, or
# change settings of torch. If a call has an effect that is not a mistake by itself, the test gives a warning.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
norm() { # norm NAME BEFORE AFTER: lines before the norm, and lines that change or return `y`
	{
		printf 'import random\n\nimport torch\n\nMEMORY = {}\n\n\ndef run(hidden_states, weight):\n'
		printf '%s' "$2" | sed 's/^/    /'
		printf '\n    x = hidden_states.float()\n'
		printf '    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()\n'
		printf '%s\n' "$3" | sed 's/^/    /'
	} | define "$1"
}
back='return y.to(hidden_states.dtype)'
norm right '' "$back"
norm memory '' "return MEMORY.setdefault(y.shape, y.to(hidden_states.dtype)).clone()"
norm memory_of_rows '' "scale = MEMORY.setdefault(y.shape, y / x)
return (x * scale).to(hidden_states.dtype)"
norm counts 'MEMORY["calls"] = MEMORY.get("calls", 0) + 1' "y = y * (1 + 2e-3 * (MEMORY['calls'] > 1))
$back"
norm torch_random '' "return (y * (1 + 3e-3 * torch.rand(()))).to(hidden_states.dtype)"
norm python_random '' "return (y * (1 + 3e-3 * random.random())).to(hidden_states.dtype)"
norm default_dtype 'torch.set_default_dtype(torch.float64)' "$back"
norm grad_mode 'torch.set_grad_enabled(False)' "$back"
norm deterministic 'torch.use_deterministic_algorithms(True)' "$back"
norm default_device '' "y = y.to(hidden_states.dtype)
torch.set_default_device('meta')
return y"
norm threads 'torch.set_num_threads(torch.get_num_threads() + 1)' "$back"
norm wants_grad '' "return y.to(hidden_states.dtype).requires_grad_()"
norm list_of_one '' "return [y.to(hidden_states.dtype)]"
norm put_back 'hidden_states.neg_().neg_()' "$back"
run generate
expect_exit 0
COLUMNS=400 # wide enough that the summary has one line per failure
export COLUMNS
run_pytest -rf -k 'not against and not agree'
expect_exit 1
# `fails CLASS TEST [SENTENCE]`: expects that test TEST of class CLASS fails, with a message that contains SENTENCE.
fails() {
	sentence=${3:-}
	expectations=$((expectations + 1))
	grep -E "^FAILED .*::Test$1::test_$2( |\$)" "$work/out" | grep -qF -e "$sentence" ||
		fail "$step: Test$1::test_$2 does not fail with '$sentence'"
}
fails Memory calls_are_independent
fails MemoryOfRows calls_are_independent
fails Counts calls_are_independent "output 'output' differs after a call with other input values"
fails TorchRandom determinism "output 'output' differs between two runs on the same inputs with other seeds"
fails PythonRandom determinism "output 'output' differs between two runs on the same inputs with other seeds"
fails DefaultDtype output_shape "default_dtype changes torch's default dtype, from torch.float32 to torch.float64"
fails GradMode output_shape "grad_mode changes torch's grad mode, from True to False"
fails Deterministic output_shape "deterministic changes torch's deterministic mode, from 0 to 2"
fails DefaultDevice output_shape "default_device changes torch's default device, from cpu to meta"
fails Threads output_shape "threads changes torch's number of threads"
for class in Right WantsGrad ListOfOne PutBack; do
	expect_silence_about "::Test$class::"
done
expect_says "wants_grad returns output 'output' with requires_grad set" \
	"list_of_one returns a list; expected a tuple, a dict or one tensor" \
	"put_back writes to its input 'hidden_states' and restores it"

# A reference returns outputs on another device; torch's meta device stands in for a GPU.
step='another device' status=0
"$python" - >"$work/out" 2>"$work/err" <<'END' || status=$?
import sys

sys.path.insert(0, "tests/references")
import conftest
import test_rmsnorm
import torch

inputs = {"hidden_states": torch.ones(2, 64, device="meta"), "weight": torch.ones(64, device="meta")}
conftest.checked_outputs(test_rmsnorm.TestRight, inputs, torch.ones(2, 64, device="meta"))
try:
    conftest.checked_outputs(test_rmsnorm.TestRight, inputs, torch.ones(2, 64))
except AssertionError as why:
    print(why)
END
expect_exit 0
expect_says "right returns output 'output' on cpu; its inputs are on meta"
