#!/bin/sh
# `verify` reads definitions in the form that FlashInfer's tracer writes. reftest calls the function whose name ends
# with _reference, and passes only the arguments that this function has. The dtype of an input may be unknown, and an
# input need not be a tensor. If a definition has no reference, or requires an input of unknown dtype, it is skipped
# with the reason. An error in the file is reported with its position.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'END'
import json
import os

ROWS = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
HELPER = '''import torch


def _normed(x, w):
    """An example that is not called:

def run(x):
    """
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)).bfloat16() * w


@torch.no_grad()
'''
WRONG = "        raise ValueError('wrong arguments')\n"


def norm(name, reference, **changes):
    inputs = {"hidden_states": ROWS, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}}
    write("rmsnorm", {
        "name": name, "op_type": "rmsnorm", "description": "An RMS norm. Epsilon is 1e-6.",
        "tags": ["fi_api:flashinfer.norm.rmsnorm", "status:verified"],
        "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": 64}},
        "inputs": {**inputs, **changes.pop("inputs", {})}, "outputs": {"output": {**ROWS, "param": "out", "optional": True}},
        **({"reference": HELPER + reference} if reference else {}), **changes,
    })


def write(op_type, definition):
    os.makedirs(f"definitions/{op_type}", exist_ok=True)
    with open(f"definitions/{op_type}/{definition['name']}.json", "w") as out:
        json.dump(definition, out, indent=1)


NORM = "def _norm_reference(hidden_states, weight):\n    return _normed(hidden_states, weight)\n"
UNKNOWN = {"shape": ["batch_size"], "dtype": "unknown"}
norm("plain", NORM, init="def _norm_init(*, batch_size, device, seed):\n    return {}\n", check="def _norm_check():\n    pass\n")
norm("wrong", NORM.replace("weight)\n", "weight) * 2\n"))
norm("argument", "def _norm_reference(input, weight, **_):\n    return _normed(input, weight)\n",
     inputs={"hidden_states": {**ROWS, "param": "input"}})
norm("unknown_none", f"def _norm_reference(hidden_states, weight, scale, *, bias):\n    if scale is not None or bias is not None:\n{WRONG}"
     "    return _normed(hidden_states, weight)\n",
     inputs={"scale": {**UNKNOWN, "optional": True}, "offset": {**UNKNOWN, "optional": True, "param": "bias"}})
norm("option", f"def _norm_reference(hidden_states, weight, mode='sum', out=float):\n    if mode != 'sum' or out is not float:\n{WRONG}"
     "    return _normed(hidden_states, weight)\n",
     inputs={"mode": {"shape": None, "dtype": "string", "optional": True}, "out": {"shape": None, "dtype": "dtype"},
             "other": {"shape": None, "dtype": "string"}})
norm("unknown_required", NORM, inputs={"scale": UNKNOWN})
norm("no_reference", None)
norm("misspelt", None, tags=[], refrence=NORM)
norm("no_value", NORM, axes={"batch_size": {"type": "var"}, "hidden_size": {"type": "const"}})
norm("no_axis", NORM, inputs={"weight": {"shape": ["hidden_dim"], "dtype": "bfloat16"}})

# The constraint allows only one value for the axis `half`. The op family recognises the definition by this value.
GATED = {"shape": ["n", "width"], "dtype": "bfloat16"}
write("activation", {
    "name": "silu_and_mul_w64", "op_type": "activation", "description": "silu(x[:H]) * x[H:]", "tags": [],
    "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 64}, "half": {"type": "var"}},
    "constraints": ["width == 2 * half"],
    "inputs": {"input": GATED}, "outputs": {"output": {**GATED, "shape": ["n", "half"]}},
    "reference": "import torch.nn.functional as F\n\n\ndef _gated_reference(input):\n    gate, up = input.float().chunk(2, -1)\n"
                 "    return (F.silu(gate) * up).bfloat16()\n",
})

# No op family knows this definition. If a reference raises an exception on generic inputs, this is reported but decides
# nothing.
SCALED = {
    "op_type": "scaled", "axes": {"n": {"type": "var"}}, "tags": ["fi_api:flashinfer.scaled"],
    "inputs": {"x": {"shape": ["n"], "dtype": "float32"}, "factor": {"shape": None, "dtype": "float32", "optional": True},
               "bias": {"shape": ["n"], "dtype": "float32", "optional": True},
               "twice": {"shape": None, "dtype": "int32", "optional": True}},
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
}
FUNCTION = "def _scaled_reference(x, bias, factor=2.0):\n    if not ({}):\n" + WRONG + "    return x * factor\n"
os.makedirs("workloads/scaled")
for name, condition in ("defaults", "factor == 2.0 and bias is None"), ("others", "factor != 2.0 and bias is None"):
    write("scaled", {**SCALED, "name": name, "reference": FUNCTION.format(condition)})
    inputs = {"x": {"type": "random"}, "factor": None, "bias": None, "twice": {"type": "scalar", "value": 1}}
    with open(f"workloads/scaled/{name}.jsonl", "w") as out:
        line = {"definition": name, "workload": {"uuid": name, "axes": {"n": 4}, "inputs": inputs}}
        out.write(json.dumps(line) + "\n")

# If exactly one argument has no input with its name, and exactly one input has no argument, the argument gets this
# input. In all other cases, arguments that do not match the inputs are an error.
norm("unnamed", "def _norm_reference(input, weight, **_):\n    return _normed(input, weight)\n")
norm("silu", "def _norm_reference(hidden_states, weight):\n    return torch.nn.functional.silu(_normed(hidden_states, weight))\n")
ARGUMENTS = {**SCALED, "inputs": {"x": SCALED["inputs"]["x"]}}
for name, function in [("surplus", "def _scaled_reference(x, workspace)"), ("renamed", "def run(y)")]:
    write("scaled", {**ARGUMENTS, "name": name, "reference": function + ":\n    return 2 * x\n"})
write("scaled", {**ARGUMENTS, "name": "inside", "reference": "def f():\n    pass\n\n\ndef run(x):\n    f(x)\n    return x\n"})
# A function that writes its output to an input of the same name may return None.
write("scaled", {**ARGUMENTS, "name": "buffer", "inputs": {**ARGUMENTS["inputs"], "y": SCALED["inputs"]["x"]},
                 "reference": "def _scaled_reference(x, y):\n    y.copy_(2 * x)\n"})

# If there is an `init`, the lengths of axes come from the shapes of the inputs that `init` makes. The right length of a
# var axis that occurs only in outputs is then unknown, so no length of this axis makes the definition fail. Without an
# `init`, or if the axis is const, an output with a wrong length makes the definition fail. An output with a wrong dtype
# always makes it fail.
MADE = {
    "op_type": "made", "axes": {"n": {"type": "var"}, "more": {"type": "var"}, "width": {"type": "const", "value": 8}},
    "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["more", "width"], "dtype": "float32"}},
}
MAKES = "import torch\n\n\ndef _a_init(n, width, more=0):\n    return {'x': torch.ones(n, width)}\n"
for name, init, result in [("made_longer", MAKES, "torch.cat([x, x])"),
                           ("made_alone", None, "torch.cat([x, x])"),
                           ("made_wider", MAKES, "torch.cat([x, x], 1)"),
                           ("made_double", MAKES, "torch.cat([x, x]).double()")]:
    write("made", {**MADE, "name": name, "init": init,
                   "reference": f"import torch\n\n\ndef _made_reference(x):\n    return {result}\n"})
# The length of an axis that no input has may depend on the value of an integer input.
write("made", {**MADE, "name": "made_counted", "inputs": {**MADE["inputs"], "size": {"shape": None, "dtype": "int32"}},
               "reference": "import torch\n\n\ndef _made_reference(x, size):\n    return x[:1].expand(size + 1, -1) * 1\n"})
END

verify
expect_exit 2
for name in made_longer made_counted; do expect_status "$name" skipped no_ground_truth; done
expect "'On generic sizes, which may be invalid' in d['made_longer']['cases'][0]['message']"
for name in made_alone made_wider made_double; do expect_status "$name" failed shape; done
for name in plain argument unknown_none option silu_and_mul_w64 unnamed; do expect_status "$name" passed; done
expect_status silu checked no_ground_truth
for name in surplus renamed; do expect_status "$name" error raised; done
expect "\"missing 1 required positional argument: 'workspace'\" in d['surplus']['cases'][0]['message']"
expect_status inside skipped no_ground_truth
expect_status buffer checked no_ground_truth
checks="{c['name']: c['result'] for c in d['buffer']['cases'][0]['checks'] if c['result'] != 'holds' and c['name'] != 'devices'}"
expect "$checks == {'inputs_kept': 'property', 'not_constant': 'property'}"
expect_status wrong failed numeric
expect_status unknown_required skipped unknown_dtype
expect "'unknown_required.json:36:13: no case can run, because the dtype is \"unknown\"' in d['unknown_required']['cases'][0]['message']"
expect_status no_reference skipped no_reference
expect "'no case can run, because the definition has no \"reference\"' in d['no_reference']['cases'][0]['message']"
expect_status misspelt invalid
expect "'expected a field \"reference\"' in d['misspelt']['message']"
expect_status no_value invalid
expect "'no_value.json:13:18: expected a field \"value\"' in d['no_value']['message']"
expect_status no_axis invalid
expect "'no_axis.json:28:5: expected the name of an axis, found \"hidden_dim\"' in d['no_axis']['message']"
raised="['wrong arguments' in case['message'] for case in d[name]['cases'] if case['id'].startswith('workload')]"
expect "[$raised for name in ('defaults', 'others')] == [[False], [True]]"
left="[note for note in d['unknown_none']['notes'] if 'this input is omitted in every case' in note]"
expect "len($left) == 2"
expect "not any('unknown to the schema' in note for one in d.values() for note in one.get('notes', []) if one['name'] != 'misspelt')"
expect "d['plain']['fi_api'] == 'flashinfer.norm.rmsnorm' and d['silu_and_mul_w64']['fi_api'] is None"
run explain plain --device "$device"
expect_says 'fi_api = flashinfer.norm.rmsnorm'

# The stored verdict of `plain` is still valid. (It would not be valid if the name of the function had changed, because
# reftest would then call another function.)
verify plain
expect_exit 0
expect_cached "len(d['plain']['cases'])"
# Other programs that read the dataset call `run` if it exists. Therefore a reference must not create a function `run`
# while its code is executed. This is an error even if its function …_reference is correct.
edit definitions/rmsnorm/argument.json '_normed(input, weight)\n' '_normed(input, weight)\n\n\nglobals().update(run=None)\n'
verify argument
expect_status argument error raised
expect "'defines the function run() dynamically' in d['argument']['cases'][0]['message']"
edit definitions/rmsnorm/no_reference.json '"tags"' '"reference": null, "tags"'
verify no_reference
expect_status no_reference skipped no_reference
edit definitions/rmsnorm/plain.json 'def _norm_reference' 'def _other_reference'
verify plain
expect_cached 0

# Generated tests call the same function as `verify`, with the same arguments. Definitions without cases have no test.
rm -r definitions/made
rm definitions/rmsnorm/misspelt.json definitions/rmsnorm/no_value.json definitions/rmsnorm/no_axis.json
rm definitions/scaled/surplus.json definitions/scaled/renamed.json definitions/scaled/inside.json
pytest_is_here
run generate
expect_exit 0
expect_says 'unknown_required.json:36:13: no case can run' 'no_reference.json:1:1: no case can run'
step='pytest' status=0
"$python" $pytest -q -p no:cacheprovider tests/references >"$work/out" 2>"$work/err" || status=$?
expect_exit 1
expect_says 'FAILED tests/references/test_rmsnorm.py::TestWrong::test_numerical_correctness' ' passed, '
expect_says 'FAILED tests/references/test_rmsnorm.py::TestArgument::test_numerical_correctness'
expect_says 'FAILED tests/references/test_scaled.py::TestOthers::test_numerical_correctness[workload:others]'
! grep '^FAILED' "$work/out" | grep -vq '::TestWrong::\|::TestArgument::\|::TestOthers::' || fail "a test of a right reference fails"

# reftest passes the inputs according to the reference's signature. The dict `fitting` says which input belongs to which
# argument. reftest sends this dict to the process that runs the reference. For generated tests, conftest.py must make
# the same dict from a definition.
step='arguments' status=0
cat >"$work/arguments.py" <<'END'
import sys

sys.path.insert(0, "tests/references")
from conftest import fitted, fitting_of


def keyword(x, *, factor=2):
    return locals()


def needed(x, factor):
    return locals()


def anything(x, **rest):
    return {"x": x, **rest}


def renamed(input, factor=2):
    return locals()


INPUTS = {"x": ("input", False), "factor": ("factor", True), "twice": ("twice", True)}
LEFT_OUT = {"mode": None, "offset": "bias"}
CALLS = [
    (keyword, {"x": 1, "factor": 3, "twice": 4}, {"x": 1, "factor": 3}),
    (keyword, {"x": 1, "factor": None, "twice": None}, {"x": 1, "factor": 2}),
    (needed, {"x": 1, "factor": None, "twice": None}, {"x": 1, "factor": None}),
    (anything, {"x": 1, "factor": 3, "twice": 4}, {"x": 1, "factor": 3, "twice": 4}),
    (anything, {"x": 1, "factor": None, "twice": None}, {"x": 1}),
    (renamed, {"x": 1, "factor": 3, "twice": None}, {"input": 1, "factor": 3}),
    (lambda x, mode, bias, factor=2: (x, mode, bias, factor), {"x": 1, "factor": 5, "twice": None}, (1, None, None, 5)),
    (lambda x, mode="a", bias=3: (x, mode, bias), {"x": 1, "factor": 5, "twice": None}, (1, "a", 3)),
]
definition = {
    "inputs": {"x": {"param": "input"}, "factor": {"optional": True}, "twice": {"param": None, "optional": True}},
    "left_out": {name: {"param": param} for name, param in LEFT_OUT.items()},
}
fitting = {"inputs": INPUTS, "left_out": ["mode", "offset", "bias"]}
assert fitting_of(definition) == fitting, fitting_of(definition)
for function, inputs, expected in CALLS:
    found = fitted(function, fitting)(**inputs)
    assert found == expected, (function, inputs, found)
assert fitted(keyword, None) is keyword

# An input whose name cannot be the name of a Python argument, such as "a-b", is passed as the next argument that
# belongs to no other input.
PLACES = {name: (name, name == "lambda") for name in ("a-b", "x", "lambda")}
for function, expected in (lambda first, x, last=7: (first, x, last), (1, 2, 3)), (lambda x, y, z: (x, y, z), (2, 1, 3)):
    found = fitted(function, {"inputs": PLACES, "left_out": []})(**{"a-b": 1, "x": 2, "lambda": 3})
    assert found == expected, (function, found)
ONE = {**fitting, "inputs": {"y": ("y", False)}}
assert fitted(keyword, ONE)(y=1) == {"x": 1, "factor": 2}
for function, one, inputs, what in (
    (lambda buffer, x: x, {**fitting, "inputs": {"x": ("x", False), "y": ("y", False)}}, {"x": 1, "y": 2}, "at another place"),
    (lambda x=1: x, ONE, {"y": 1}, "not at all, although it is required"),
):
    try:
        fitted(function, one)(**inputs)
    except TypeError as error:
        assert "unexpected keyword argument 'y'" in str(error), error
    else:
        raise AssertionError(f"an input is passed {what}")
END
"$python" "$work/arguments.py" >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
