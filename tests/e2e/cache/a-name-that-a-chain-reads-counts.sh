#!/bin/sh
# A step of a chain may find its variant in the name of the definition. A definition with another name then runs again,
# and two definitions of one run do not share a verdict. A new name that changes no step runs nothing.
. "$(dirname "$0")/../harness.sh"

# `define NAME…`: writes definitions of a gated unit (SiLU) and a projection, which are equal except for their names.
define() {
	rm -rf definitions/mlp_half
	mkdir -p definitions/mlp_half
	"$python" -I -S - "$@" <<'P'
import json
import sys

reference = '''import torch


def run(x, down):
    half = x.shape[-1] // 2
    gate, up = x[..., :half], x[..., half:]
    return (gate * torch.sigmoid(gate) * up) @ down.T
'''
tensor = lambda *shape: {"shape": list(shape), "dtype": "float32"}
const = lambda value: {"type": "const", "value": value}
for name in sys.argv[1:]:
    with open(f"definitions/mlp_half/{name}.json", "w") as out:
        json.dump({
            "name": name, "op_type": "mlp_half", "description": "A gated unit and a projection.",
            "axes": {"rows": {"type": "var"}, "both": const(64), "half": const(32), "n": const(16)},
            "inputs": {"x": tensor("rows", "both"), "down": tensor("n", "half")}, "outputs": {"y": tensor("rows", "n")},
            "ground_truth": [
                {"op": "activation", "inputs": ["x"],
                 "outputs": [{"name": "act", "shape": ["rows", "half"], "dtype": "float32"}]},
                {"op": "gemm", "inputs": ["act", "down"], "outputs": ["y"]}],
            "reference": reference}, out)
P
}

define mlp_silu
verify
expect_exit 0
expect_ran 1
define mlp_silu_renamed
verify
expect_exit 0
expect_ran 0
define mlp_gelu
verify
expect_exit 1
expect_cached 0
expect_status mlp_gelu failed numeric

rm -rf .reftest
define mlp_a_silu mlp_b_gelu
verify
expect_exit 1
expect_status mlp_a_silu passed
expect_status mlp_b_gelu failed numeric
