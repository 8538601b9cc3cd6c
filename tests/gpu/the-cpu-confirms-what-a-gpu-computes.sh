#!/bin/sh
# On a GPU, a case without ground truth runs on the CPU as well (the check `devices`). The check fails if the reference
# computes other outputs on the CPU than on the GPU. The check is omitted if the reference cannot run on the CPU, or if
# the operation draws random samples.
. "$(dirname "$0")/../e2e/harness.sh"
"$python" -I -S - <<'EOF'
import json
import os

BODIES = {"same": "return torch.softmax(x, -1) * 3",
          "other": "return x * (3 if x.is_cuda else 2)",
          "only_here": "assert x.is_cuda\n    return x * 3",
          "unstable": "y = x + 3000\n    return (y * y).mean(-1, keepdim=True) - y.mean(-1, keepdim=True) ** 2 + 0 * x",
          "draws": "return x + torch.randn_like(x)"}
os.makedirs("definitions/novel")
for name, body in BODIES.items():
    x = {"shape": ["n", "w"], "dtype": "float32"}
    with open(f"definitions/novel/{name}.json", "w") as out:
        json.dump({"name": name, "op_type": "novel", "description": "Adds random samples." if name == "draws" else "",
                   "axes": {"n": {"type": "var"}, "w": {"type": "const", "value": 1000}}, "inputs": {"x": x}, "outputs": {"y": x},
                   "reference": f"import torch\n\n\ndef run(x):\n    {body}\n"}, out)
EOF
verify
check() { # check NAME: result and evidence of the check devices
	printf "[(c['result'], c['evidence']) for c in d['%s']['cases'][0]['checks'] if c['name'] == 'devices'][0]" "$1"
}
expect "$(check same)[0] == 'holds' and d['same']['status'] == 'checked'"
expect "$(check other)[0] == 'fails' and d['other']['status'] == 'skipped'"
expect "'from the output of the same reference on the CPU' in $(check other)[1]"
expect "$(check only_here)[0] == 'not_run' and 'AssertionError' in $(check only_here)[1] and d['only_here']['status'] == 'checked'"
expect "$(check draws) == ('not_run', 'the operation draws random numbers, and devices have different random number generators')"
expect "$(check unstable)[0] in ('holds', 'property')"
