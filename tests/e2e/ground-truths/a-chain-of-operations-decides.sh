#!/bin/sh
# The member "ground_truth" of a definition names a chain of operations. reftest computes the chain with the oracles of
# the op families. A correct fused reference passes, a wrong one fails, and an invalid chain is reported with its
# position.
. "$(dirname "$0")/../harness.sh"

# `fuse NAME BODY [CHAIN]`: defines a norm followed by a matrix product, with the correct chain or with CHAIN.
fuse() {
	mkdir -p definitions/fused
	"$python" -I -S - "$@" <<'P'
import json
import sys

name, body, *chain = sys.argv[1:]
right = [
    {"op": "rmsnorm", "inputs": {"hidden_states": "x", "weight": "scale"},
     "outputs": {"output": {"name": "normed", "shape": ["rows", "hidden"], "dtype": "float32"}}, "constants": {"eps": 1e-5}},
    {"op": "gemm", "inputs": {"A": "normed", "B": "projection"}, "outputs": {"C": "y"}},
]
with open(f"definitions/fused/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "fused", "description": "",
        "axes": {"rows": {"type": "var"}, "hidden": {"type": "const", "value": 64}, "out": {"type": "const", "value": 32}},
        "inputs": {"x": {"shape": ["rows", "hidden"], "dtype": "float32"},
                   "scale": {"shape": ["hidden"], "dtype": "float32"},
                   "projection": {"shape": ["out", "hidden"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["rows", "out"], "dtype": "float32"}},
        "reference": f"import torch\n\n\ndef run(x, scale, projection):\n    eps = 1e-5\n    {body}\n",
        "ground_truth": eval(chain[0], {"right": right}) if chain else right,
    }, out, indent=1)
P
}
right='return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * scale) @ projection.T'
fuse right "$right"
fuse epsilon 'return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-2) * scale) @ projection.T'
fuse scale 'return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * (1 + scale)) @ projection.T'
verify
expect_exit 1
expect_status right passed
expect_status epsilon failed numeric
expect_status scale failed numeric
expect "c['right', 'small:rows=4']['ground_truth'] == 'chain' and len(c['right', 'small:rows=4']['ground_truth_version']) == 32"
expect "all(all_of('right', 'kept'))"
verify
expect_ran 0
# The chain is part of the ground truth's version, so the cases run again if a constant of the chain changes.
fuse right "$right" "[dict(right[0], constants={'eps': 1e-2}), right[1]]"
verify right
expect_exit 1
expect_status right failed numeric
fuse right "$right"
# A constant of the chain may also come from the definition's name. Under another name, the cases run again.
fuse fused_eps1e-5 "$right" "[dict(right[0], constants={}), right[1]]"
verify fused_eps1e-5
expect_exit 0
rm definitions/fused/fused_eps1e-5.json
fuse fused_eps1e-2 "$right" "[dict(right[0], constants={}), right[1]]"
verify fused_eps1e-2
expect_exit 1
expect_status fused_eps1e-2 failed numeric
rm definitions/fused/fused_eps1e-2.json
rm definitions/fused/epsilon.json definitions/fused/scale.json

# If the op families cannot compute a chain, the chain is skipped, and a message says why.
for bad in \
	"no_eps|[dict(right[0], constants={}), right[1]]|ground_truth/0 (rmsnorm): nothing states the value of eps; add \"constants\": {\"eps\"" \
	"other|[dict(right[0], constants={'eps': 1e-5, 'epsilon': 1}), right[1]]|ground_truth/0 (rmsnorm): the operation has no constant \"epsilon\"" \
	"no_fit|[right[0], dict(right[1], inputs={'A': 'normed', 'B': 'x'})]|ground_truth/1 (gemm): " \
	"no_op|[dict(right[0], op='nonesuch'), right[1]]|ground_truth/0 (nonesuch): "; do
	name=${bad%%|*} rest=${bad#*|}
	fuse "$name" "$right" "${rest%%|*}"
	verify "$name"
	expect_exit 3
	expect_status "$name" checked no_ground_truth
	expect "'''${rest#*|}''' in c['$name', 'small:rows=4']['message']"
	rm "definitions/fused/$name.json"
done

# If a chain names something that does not exist, the definition is invalid, and the message gives the line and column.
for bad in \
	"missing|[right[0], dict(right[1], inputs={'A': 'nonesuch', 'B': 'projection'})]|no input of the definition and no output of an earlier step has the name \"nonesuch\"" \
	"circular|[dict(right[0], inputs={'hidden_states': 'y', 'weight': 'scale'}), right[1]]|the chain is circular: step 1 needs \"y\", which only this or a later step produces" \
	"itself|[dict(right[0], inputs={'hidden_states': 'normed', 'weight': 'scale'}), right[1]]|the chain is circular: step 1 needs \"normed\"" \
	"lost|[right[0]]|no step produces the output \"y\" of the definition" \
	"twice|[right[0], right[1], right[1]]|step 2 already produces this output" \
	"axis|[dict(right[0], outputs={'output': {'name': 'n', 'shape': ['rows', 'wide'], 'dtype': 'float32'}}), right[1]]|expected the name of an axis of the definition, found \"wide\"" \
	"taken|[dict(right[0], outputs={'output': {'name': 'x', 'shape': ['rows'], 'dtype': 'float32'}}), right[1]]|the name \"x\" is already used" \
	"field|[dict(right[0], input={}), right[1]]|a step has no field \"input\"" \
	"empty|[]|expected a list of steps" \
	"number|[dict(right[0], constants={'eps': 'small'}), right[1]]|expected a number, found \"small\""; do
	name=${bad%%|*} rest=${bad#*|}
	fuse "$name" "$right" "${rest%%|*}"
	run check "definitions/fused/$name.json"
	expect_exit 2
	expect_says "${rest#*|}" "definitions/fused/$name.json:"
	rm "definitions/fused/$name.json"
done

# --ground-truth selects the chain; if there is no chain, a message says so.
verify right --ground-truth chain
expect_exit 0
given tiny_norm
verify tiny_norm --ground-truth chain
expect_exit 3
expect "'the definition has no member \"ground_truth\"' in all_of('tiny_norm', 'message')[0]"
