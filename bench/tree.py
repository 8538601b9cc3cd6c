"""tree - creates a dataset of N definitions and N workload files in the folder DIR: python3 bench/tree.py DIR N.

There are N/50 hidden sizes. Definitions are copied, as in real datasets: those with the same hidden size differ only in
name and description. All references are a plain rmsnorm.
"""
import json
import os
import sys
import uuid

REFERENCE = '''import torch


@torch.no_grad()
def run(hidden_states, weight):
    # mean square in float32, one rounding at the end
    x = hidden_states.to(torch.float32)
    inverse = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6)
    return (x * inverse * weight.to(torch.float32)).to(hidden_states.dtype)
'''


def definition(name, hidden, number):
    return {
        "name": name,
        "op_type": "rmsnorm",
        "description": f"Root mean square norm, copy {number} of hidden size {hidden}. Epsilon is fixed at 1e-6.",
        "tags": ["status:unverified"],
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": hidden}},
        "inputs": {
            "hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
            "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
        },
        "outputs": {"output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
        "reference": REFERENCE,
    }


def workload(name, number):
    inputs = {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}
    line = {"uuid": str(uuid.UUID(int=number)), "axes": {"batch_size": 1 + number % 3}, "inputs": inputs}
    return {"definition": name, "workload": line, "solution": None, "evaluation": None}


def main():
    root, count = sys.argv[1], int(sys.argv[2])
    for kind in ("definitions", "workloads"):
        os.makedirs(os.path.join(root, kind, "rmsnorm"), exist_ok=True)
    for i in range(count):
        hidden = 64 + 8 * (i % max(1, count // 50))
        name = f"rmsnorm_h{hidden}_v{i}"
        with open(os.path.join(root, "definitions", "rmsnorm", name + ".json"), "w") as out:
            json.dump(definition(name, hidden, i), out, indent=2)
        with open(os.path.join(root, "workloads", "rmsnorm", name + ".jsonl"), "w") as out:
            out.write(json.dumps(workload(name, i)) + "\n")


main()
