#!/bin/sh
# On a GPU with FlashInfer, the tag `fi_api:` of a definition names a ground truth. A correct reference passes, and a
# wrong one fails. The kernels are compiled at their first use, which takes minutes.
#
#   sh tests/gpu/fi-api-is-a-ground-truth.sh
. "$(dirname "$0")/../e2e/harness.sh"
"$python" -c "import flashinfer" 2>/dev/null || skip "FlashInfer is not installed"
mkdir -p definitions/fi_norm
for name in right wrong; do
	"$python" -I -S - $name <<'P'
import json
import sys

name = sys.argv[1]
scale = "weight" if name == "right" else "(1 + weight)"
with open(f"definitions/fi_norm/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "fi_norm", "description": "Epsilon is 1e-6.", "tags": ["fi_api:flashinfer.norm.rmsnorm"],
        "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 1024}},
        "inputs": {"x": {"shape": ["rows", "hidden"], "dtype": "bfloat16", "param": "input"},
                   "weight": {"shape": ["hidden"], "dtype": "bfloat16"}},
        "outputs": {"y": {"shape": ["rows", "hidden"], "dtype": "bfloat16"}},
        "tolerance": {"atol": 1e-2, "rtol": 2e-2},
        "reference": "import torch\n\n\ndef run(x, weight):\n    eps = 1e-6\n    wide = x.float()\n"
                     "    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)\n"
                     f"    return (normed * {scale}.float()).to(x.dtype)\n".replace("(1 + weight).float()", "(1 + weight.float())"),
    }, out)
P
done
run verify --format json --device cuda --sizes small --ground-truth fi_api --timeout 300
expect_exit 1
expect_status right passed
expect_status wrong failed numeric
expect "set(all_of('right', 'ground_truth')) == {'fi_api'}"
