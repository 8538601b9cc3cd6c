#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# The reference of a definition with an unknown op_type is compared with every family that matches the definition's
# shapes. If the reference agrees with a family on every case, the definition belongs to this family, and the report
# says so. If the reference agrees with no family, reftest assumes that it computes another operation, and does not
# report it as wrong. But if the definition's name contains a word for a family, such as `rms_norm`, a reference that
# does not agree with this family is wrong.
. "$(dirname "$0")/../harness.sh"
cat >write.py <<'END'
import json
import os

SAME = {"inputs": {"x": "rows columns"}, "outputs": {"y": "rows columns"}}
NORM = {"inputs": {"x": "rows columns", "w": "columns"}, "outputs": {"y": "rows columns"}}
PRODUCT = {"inputs": {"a": "rows columns", "b": "wide columns"}, "outputs": {"y": "rows wide"}}
RMS = "x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)"
DEFINITIONS = {
    "alpha": (NORM, f"return ({RMS} * w.float()).to(x.dtype)"),
    "beta": (NORM, f"return ({RMS} * (1 + w.float())).to(x.dtype)"),
    "gamma": (NORM, f"return ({RMS} * (2 + w.float())).to(x.dtype)"),
    "delta": (SAME, "return torch.softmax(x.float(), -1).to(x.dtype)"),
    "epsilon": (SAME, "return x.cos()"),
    "zeta": (PRODUCT, "return (a.float() @ b.float().T).to(a.dtype)"),
    # This reference is right for one row and wrong for several rows.
    "eta": (PRODUCT, "y = a.float() @ b.float().T\n    return (y if len(y) == 1 else y * 2).to(a.dtype)"),
    # The names of these definitions say what the reference should compute.
    "rms_norm_of_theta": (NORM, f"return ({RMS} * (2 + w.float())).to(x.dtype)"),
    "softmax_and_more": (SAME, "return (3 * torch.softmax(x.float(), -1)).to(x.dtype)"),
}


def tensors(shapes):
    return {name: {"shape": shape.split(), "dtype": "bfloat16"} for name, shape in shapes.items()}


os.makedirs("definitions/oddity")
for name, (shapes, body) in DEFINITIONS.items():
    with open(f"definitions/oddity/{name}.json", "w") as out:
        json.dump({
            "name": name, "op_type": "oddity", "description": "", "tags": ["model:qwen3-30b-a3b"],
            "axes": {"rows": {"type": "var"}, "columns": {"type": "const", "value": 128},
                     "wide": {"type": "const", "value": 64}},
            "inputs": tensors(shapes["inputs"]), "outputs": tensors(shapes["outputs"]),
            "reference": f"import torch\n\n\ndef run({', '.join(shapes['inputs'])}):\n    {body}\n",
        }, out)
END
"$python" -I -S write.py || exit 1

look()
{
	for one in alpha:rmsnorm beta:gemma_rmsnorm delta:softmax zeta:gemm; do
		expect "d['${one%:*}']['status'] == 'passed'"
		expect "(d['${one%:*}']['family'], d['${one%:*}']['matched_by']) == ('${one#*:}', 'shapes')"
		expect "d['${one%:*}']['notes'] == [\"matched op family ${one#*:}, because the shapes fit and the reference agrees with the family's ground truth; op_type 'oddity' is unknown\"]"
	done
	for one in gamma epsilon eta softmax_and_more; do
		expect "(d['$one']['status'], d['$one']['reason'], d['$one']['family']) == ('checked', 'no_ground_truth', None)"
		expect "'but the reference computes something else' in d['$one']['cases'][0]['message']"
	done
	expect "'the shapes of the definition also fit gemma_rmsnorm, layernorm, rmsnorm, but' in d['gamma']['cases'][0]['message']"
	expect "(d['rms_norm_of_theta']['status'], d['rms_norm_of_theta']['matched_by']) == ('failed', 'words')"
}
verify
expect_exit 1
look
# A family may be chosen only because its shapes match the definition. Then reftest runs the first case, and runs the
# other cases only if the reference agrees with the family's ground truth in this first case.
expect "d['epsilon']['cases'][0]['cached'] is False and len(d['epsilon']['cases']) == 1"
verify
expect_exit 1
look
expect "s['cases_run'] == 0"
expect_why alpha "matched op family rmsnorm, because the shapes fit and the reference agrees with the family's ground truth; op_type 'oddity' is unknown" "small:"
expect_why eta "but the reference computes something else"
# With --shard, the same shard runs all cases of a definition whose family is found by shapes.
for shard in 1/3 2/3 3/3; do
	verify --shard $shard
	value "' '.join(f'{name}:{one[\"family\"]}:{len(one[\"cases\"])}' for name, one in d.items())" >>"$work/shards"
done
for one in alpha:rmsnorm:2 beta:gemma_rmsnorm:2 gamma:None:1 eta:None:1; do
	expectations=$((expectations + 1))
	[ "$(grep -ow "$one" "$work/shards")" = "$one" ] || fail "--shard: $one is not once among $(cat "$work/shards")"
done
