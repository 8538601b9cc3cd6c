"""fla.py - compares the oracles of linear attention with flash-linear-attention's own plain PyTorch implementations, on
the CPU.

    python3 tests/fla_plain_forms/fla.py LIBRARY FOLDER [--plant]

LIBRARY is libreftest_kernels.so. FOLDER has the package `fla` of fla-core. The package is not imported, because an
import needs Triton. Instead, the files fla/ops/*/naive.py and the functions naive_… of the files */gate.py are executed
directly. For every starter definition of an op type in FAMILIES, LIBRARY generates inputs and computes the ground
truth: once with an initial state, and, if the state is optional, once without. Each of FLA's implementations computes
outputs from the same inputs. These outputs must be within the definition's bounds. With --plant, FLA gets gates and
betas that are wrong by 2 %, and every definition must fail. Prints TAP, one test for each definition.
"""

import ast
import ctypes
import glob
import importlib.util
import json
import math
import os
import sys
import types

import torch

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAMILIES = ("gla", "simple_gla", "delta_rule", "gated_delta_rule", "kda")
DTYPES = {name: getattr(torch, name) for name in ("float32", "float16", "bfloat16", "int32", "int64")}


class Place(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, text, *words):
        why = ctypes.create_string_buffer(4096)
        status = getattr(self.library, name)(text, *words, why, ctypes.c_size_t(len(why)))
        if status != 0:
            sys.exit(f"{name}: {status}: {why.value.decode()}")

    def fill(self, text, index, tensor):
        self.call("reftest_fill", text, index, place(tensor))

    def scalar(self, text, index):
        value = ctypes.c_double()
        self.call("reftest_scalar", text, index, ctypes.byref(value))
        return value.value

    def rule(self, text, index):
        rule = (ctypes.c_double * 3)()
        self.call("reftest_rule", text, index, rule)
        return list(rule)

    def truth(self, text, inputs, outputs):
        places = [(Place * len(some))(*map(place, some)) for some in (inputs, outputs)]
        self.call("reftest_truth", text, *places)


def place(tensor):
    return Place(None, 0) if tensor is None else Place(tensor.data_ptr(), tensor.numel() * tensor.element_size())


# ---- FLA ------------------------------------------------------------------------------------------------------------


def forms_of(folder, family):
    """Returns a module with the functions of fla/ops/{family}/naive.py and the plain functions of gate.py."""
    path = os.path.join(folder, "fla", "ops", family, "naive.py")
    spec = importlib.util.spec_from_file_location(f"fla_{family}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = os.path.join(os.path.dirname(path), "gate.py")
    if os.path.exists(path):
        with open(path) as file:
            tree = ast.parse(file.read())
        tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("naive_")]
        scope = types.ModuleType("gate").__dict__
        scope.update(torch=torch, F=torch.nn.functional)
        exec(compile(tree, path, "exec"), scope)
        for node in tree.body:
            setattr(module, node.name, scope[node.name])
    return module


def heads_first(*tensors):
    return [x.transpose(1, 2) for x in tensors]


def gla(fla, x):
    yield "recurrent", fla.naive_recurrent_gla(x.q, x.k, x.v, x.g, x.state, True)


def simple_gla(fla, x):
    yield "recurrent", fla.naive_recurrent_simple_gla(x.q, x.k, x.v, x.g, x.scale, x.state, True)
    yield "chunk", fla.naive_chunk_simple_gla(x.q, x.k, x.v, x.g, x.state, True, 64, x.scale)
    if x.state is None:
        yield "parallel", (fla.naive_parallel_simple_gla(x.q, x.k, x.v, x.g, x.scale)[0], None)


def delta_rule(fla, x):
    output, state = fla.delta_rule_recurrence(*heads_first(x.q, x.k, x.v, x.beta), x.state)
    yield "recurrent", (output.transpose(1, 2), state)
    if x.state is None:
        output, state = fla.delta_rule_chunkwise(*heads_first(x.q, x.k, x.v, x.beta), chunk_size=x.q.shape[1])
        yield "chunk", (output.transpose(1, 2), state)


def gated_delta_rule(fla, x):
    words = {"scale": x.scale, "initial_state": x.state, "output_final_state": True}
    yield "recurrent", fla.naive_recurrent_gated_delta_rule(x.q, x.k, x.v, x.beta, x.g, **words)
    yield "chunk", fla.naive_chunk_gated_delta_rule(x.q, x.k, x.v, x.g, x.beta, **words)


def kda(fla, x):
    yield "recurrent", fla.naive_recurrent_kda(x.q, x.k, x.v, x.g, x.beta, x.scale, x.state, True)
    yield "chunk", fla.naive_chunk_kda(x.q, x.k, x.v, x.g, x.beta, x.scale, x.state, True, x.q.shape[1])


FORMS = {
    "gla": gla,
    "simple_gla": simple_gla,
    "delta_rule": delta_rule,
    "gated_delta_rule": gated_delta_rule,
    "kda": kda,
}


# ---- a definition's inputs in FLA's form ----------------------------------------------------------------------------


def log_gate(fla, given, tokens):
    """Returns the logarithm of the decay for any form of a definition's gates, or None if there are no gates."""
    if "g_gamma" in given:
        return given["g_gamma"].expand(*tokens.shape[:2], -1)
    if "A_log" not in given:
        return given.get("g")
    bias = given.get("dt_bias")
    if "lower_bound" in given:
        return fla.naive_kda_lowerbound_gate(given["g"], given["A_log"], bias, given["lower_bound"])
    gate = getattr(fla, "naive_gdn_gate", None) or fla.naive_kda_gate
    return gate(given["g"], given["A_log"], bias)


def arguments(fla, definition, given, plant):
    """Returns a batch of inputs in the form of FLA's functions: float32, [B, T, H, D], with states [K, V]."""
    said = definition["name"] + " ".join(definition["tags"])
    x = types.SimpleNamespace(beta=None, state=given.get("initial_state"), scale=given.get("scale") or None)
    x.q, x.k, x.v = (given[name] for name in "qkv")
    x.g = log_gate(fla, given, x.q)
    if "beta" in given:
        raw = given.get("use_beta_sigmoid_in_kernel", "beta_sigmoid" in said)
        x.beta = torch.sigmoid(given["beta"]) if raw else given["beta"]
        x.beta = x.beta * 2 if given.get("allow_neg_eigval") else x.beta
        x.beta = x.beta * (1.02 if plant else 1)
    if x.g is not None:
        x.g = x.g * (1.02 if plant else 1)
    if given.get("use_qk_l2norm_in_kernel", "l2norm" in said):
        x.q, x.k = (torch.nn.functional.normalize(some, dim=-1) for some in (x.q, x.k))
    if definition["op_type"] != "kda":
        x.q, x.k = (some.repeat_interleave(x.v.shape[2] // x.q.shape[2], dim=2) for some in (x.q, x.k))
    if "v-first" in said and x.state is not None:
        x.state = x.state.transpose(-1, -2)
    return x


def sequences(definition, given):
    """Yields the inputs of each call of an FLA function. One call computes all sequences of a dense case, or a single
    sequence of a packed case."""
    offsets = given.get("cu_seqlens")
    if offsets is None:
        yield given
        return
    by_token = {name for name, spec in definition["inputs"].items() if "total_seq_len" in (spec["shape"] or [])}
    for n, (first, end) in enumerate(zip(offsets.tolist(), offsets.tolist()[1:])):
        one = {}
        for name, value in given.items():
            if name in by_token:
                value = (value if definition["inputs"][name]["shape"][0] == "one" else value[None])[:, first:end]
            elif name == "initial_state" and value is not None:
                value = value[n : n + 1]
            one[name] = value
        yield one


def answers(fla, definition, given, plant):
    """Returns {implementation: outputs in the definition's form}. Omits an implementation that cannot compute some of
    the sequences."""
    parts = list(sequences(definition, given))
    found = {}
    for one in parts:
        for form, (output, state) in FORMS[definition["op_type"]](fla, arguments(fla, definition, one, plant)):
            found.setdefault(form, []).append((output, state))
    whole = {}
    for form, results in found.items():
        if len(results) < len(parts):
            continue
        output = torch.cat([o for o, _ in results], dim=1)
        if "cu_seqlens" in given and "one" not in definition["axes"]:
            output = output[0]
        states = [s for _, s in results]
        outputs = [output]
        if len(definition["outputs"]) > 1 and states[0] is not None:  # the parallel form of FLA returns no state
            state = torch.cat(states)
            said = definition["name"] + " ".join(definition["tags"])
            outputs.append(state.transpose(-1, -2) if "v-first" in said else state)
        whole[form] = outputs
    return whole


# ---- cases ----------------------------------------------------------------------------------------------------------


def cases(definition):
    """Yields (axis values, whether the state is present) for each case."""
    packed = {"total_seq_len": 206, "num_seqs": 5, "len_cu_seqlens": 6}
    dense = [{"batch_size": 2, "seq_len": 67}, {"batch_size": 1, "seq_len": 64}]
    optional = definition["inputs"].get("initial_state", {}).get("optional", False)
    for axes in [packed] if "cu_seqlens" in definition["inputs"] else dense:
        for present in (True, False) if optional else (True,):
            yield axes, present


def make(library, definition, axes, present):
    """Returns the case as JSON text, the list of its inputs, and a dict {name: input in float32}. In the list, None
    stands for an absent input or a Python scalar."""
    sizes = {name: axis.get("value", axes.get(name)) for name, axis in definition["axes"].items()}
    schema = {key: value for key, value in definition.items() if key != "reference"}
    fixed = {"scale": 0.0} if definition["op_type"] in ("gla", "delta_rule") and "scale" in definition["inputs"] else {}
    text = json.dumps({"definition": schema, "axes": axes, "scalars": fixed, "seed": 3}).encode()
    inputs, given = [], {}
    for index, (name, spec) in enumerate(definition["inputs"].items()):
        if spec["shape"] is None:
            given[name] = fixed.get(name, library.scalar(text, index))
            inputs.append(None)
            continue
        tensor = torch.empty([sizes[a] for a in spec["shape"]], dtype=DTYPES[spec["dtype"]])
        library.fill(text, index, tensor)
        inputs.append(tensor if present or not spec.get("optional") else None)
        given[name] = inputs[-1].float() if inputs[-1] is not None and tensor.is_floating_point() else inputs[-1]
    outputs = [
        torch.empty([sizes[a] for a in spec["shape"]], dtype=DTYPES[spec["dtype"]])
        for spec in definition["outputs"].values()
    ]
    return text, inputs, given, outputs


def worst(library, text, answer, truth):
    """Returns the largest |difference| / bound over all outputs, or infinity if a value is NaN."""
    margins = []
    for index, (got, want) in enumerate(zip(answer, truth)):
        atol, rtol, _ = library.rule(text, index)
        if got.shape != want.shape:
            return math.inf
        got, want = got.to(want.dtype).double(), want.double()
        margin = ((got - want).abs() / (atol + rtol * want.abs())).max().item()
        margins.append(margin if math.isfinite(margin) else math.inf)
    return max(margins)


def hold(library, fla, definition, plant):
    """Returns {implementation: worst margin over the cases}."""
    margins = {}
    for axes, present in cases(definition):
        text, inputs, given, truth = make(library, definition, axes, present)
        library.truth(text, inputs, truth)
        for form, answer in answers(fla, definition, given, plant).items():
            margins[form] = max(margins.get(form, 0), worst(library, text, answer, truth))
    return margins


def main(path, folder, plant):
    torch.set_num_threads(1)
    library, number, failed = Library(path), 0, 0
    for family in FAMILIES:
        fla = forms_of(folder, family)
        for file in sorted(glob.glob(os.path.join(PROJECT, "definitions", family, "*.json"))):
            with open(file) as source:
                definition = json.load(source)
            margins = hold(library, fla, definition, plant)
            good = bool(margins) and max(margins.values()) <= 1
            number, failed = number + 1, failed + (not good)
            line = ", ".join(f"{form} {margin:.3f}" for form, margin in margins.items())
            print(f"{'ok' if good else 'not ok'} {number} - {definition['name']}: worst margins of FLA's implementations: {line}")
    print(f"1..{number}")
    sys.exit(failed > 0 or number == 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "--plant" in sys.argv[3:])
