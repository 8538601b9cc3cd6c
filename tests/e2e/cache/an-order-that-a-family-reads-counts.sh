#!/bin/sh
# Some op families distinguish inputs by their order, even if the inputs have different dtypes, and some search the axes
# in their order. After a reordering, all cases of the definition run again, so no verdict of the old order is reported.
. "$(dirname "$0")/../harness.sh"

# `define OP NAME AXES INPUTS`: writes a definition whose axes and inputs are in the given orders.
define() {
	mkdir -p "definitions/$1"
	"$python" -I -S - "$@" <<'P'
import json
import sys

op, name, axes_order, inputs_order = sys.argv[1:]
tensor = lambda dtype, *shape: {"shape": list(shape), "dtype": dtype}
const = lambda value: {"type": "const", "value": value}
var = {"type": "var"}

if op == "layernorm":
    axes = {"rows": var, "h": const(256)}
    inputs = {"x": tensor("bfloat16", "rows", "h"), "first": tensor("float32", "h"), "second": tensor("bfloat16", "h")}
    outputs = {"y": inputs["x"]}
    body = '''
def run(x, first, second):
    y = torch.nn.functional.layer_norm(x.float(), (256,), None, None, 1e-5)
    return (y * first.float() + second.float()).to(x.dtype)
'''
else:
    axes = {"num_tokens": var, "q_width": const(512), "k_width": const(256), "max_seq_len": var,
            "rotary_dim": const(64), "head_size": const(128), "head_dim": const(64)}
    inputs = {"q": tensor("bfloat16", "num_tokens", "q_width"), "k": tensor("bfloat16", "num_tokens", "k_width"),
              "cos_sin_cache": tensor("float32", "max_seq_len", "rotary_dim"),
              "positions": tensor("int64", "num_tokens")}
    outputs = {"q_out": inputs["q"], "k_out": inputs["k"]}
    body = '''
def rotate(x, cos, sin):
    heads = x.float().unflatten(-1, (-1, 128))
    turning, resting = heads[..., :64], heads[..., 64:]
    first, second = turning.chunk(2, dim=-1)
    out = torch.cat((first * cos - second * sin, second * cos + first * sin, resting), dim=-1)
    return out.flatten(-2).to(x.dtype)


def run(q, k, cos_sin_cache, positions):
    cos, sin = cos_sin_cache[positions].unsqueeze(1).chunk(2, dim=-1)
    return rotate(q, cos, sin), rotate(k, cos, sin)
'''
ordered = lambda members, last: {key: members[key] for key in [key for key in members if key not in last] + last}
with open(f"definitions/{op}/{name}.json", "w") as out:
    json.dump({"name": name, "op_type": op, "description": "Epsilon is 1e-5.",
               "axes": ordered(axes, axes_order.split()),
               "inputs": ordered(inputs, inputs_order.split()), "outputs": outputs,
               "reference": "import torch\n\n" + body}, out)
P
}

# The first vector is the weight, the second is the bias.
define layernorm layernorm_two "" "first second"
# The first of the two axes is the size of a head.
define rope rope_flat "head_size head_dim" ""
verify
expect_exit 0
verify
expect_ran 0

define layernorm layernorm_two "" "second first"
define rope rope_flat "head_dim head_size" ""
for change in "layernorm_two|inputs.first.role changed: weight, now bias" "rope_flat|axes changed: "; do
	"$reftest" explain "${change%%|*}" >explained || true
	grep -qF "${change#*|}" explained || fail "explain does not say '${change#*|}': $(cat explained)"
done
verify
expect_exit 1
expect_cached 0
expect_status layernorm_two failed numeric
expect_status rope_flat failed numeric

# The verdicts of the old order are still stored.
define layernorm layernorm_two "" "first second"
define rope rope_flat "head_size head_dim" ""
verify
expect_exit 0
expect_ran 0
