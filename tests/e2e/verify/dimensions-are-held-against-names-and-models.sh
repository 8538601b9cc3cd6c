#!/bin/sh
# If the name, the description or the configuration of the model contradicts the axes of a definition, the definition
# fails. The reference does not run at all, so the definition fails even if its reference is correct.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'END'
import json
import os

REFERENCE = """import torch


@torch.no_grad()
def run(hidden_states, weight):
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-5)
    return (normed * weight.float()).to(hidden_states.dtype)
"""
os.makedirs("definitions/rmsnorm")
ROWS = {"shape": ["rows", "hidden_size"], "dtype": "bfloat16"}


def write(name, width, tags=(), description="Epsilon is 1e-5."):
    definition = {"name": name, "op_type": "rmsnorm", "description": description, "tags": list(tags),
                  "axes": {"rows": {"type": "var"}, "hidden_size": {"type": "const", "value": width}},
                  "inputs": {"hidden_states": ROWS, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
                  "outputs": {"output": ROWS}, "reference": REFERENCE}
    with open(f"definitions/rmsnorm/{name}.json", "w") as file:
        json.dump(definition, file)


write("right_h4096", 4096, ["model:llama-3.1-8b"])
write("unknown_model", 5000, ["model:nobody-8b"])
write("model", 5000, ["model:llama-3.1-8b"])
write("alias", 5000, ["model:Meta-Llama-3.1-8B-Instruct"])
write("name_h4096", 5000)
write("words", 5000, description="Norm with hidden_size=4096. Epsilon is 1e-5.")
END
verify --device cpu
expect_exit 1
expect "{n: one['status'] for n, one in d.items()} == {'right_h4096': 'passed', 'unknown_model': 'passed', 'model': 'failed', 'alias': 'failed', 'name_h4096': 'failed', 'words': 'failed'}"
expect "all(one['reason'] == 'constants' for one in d.values() if one['status'] == 'failed')"
message() { value "d['$1']['cases'][0]['message']"; }
for part in "axis 'hidden_size' is 5000" "no module of llama-3.1-8b" "hidden_size = 4096" "litgpt/config.py"; do
	message model | grep -qF "$part" || fail "the message of the model lacks '$part'"
done
[ "$(message name_h4096)" = "the definition's name says h4096, but axis 'hidden_size' is 5000" ] ||
	fail "the message of the name differs"
[ "$(message words)" = "the description says hidden_size = 4096, but axis 'hidden_size' is 5000" ] || fail "the message of the description differs"

step="the second run"
verify --device cpu
expect_exit 1
expect_ran 0
