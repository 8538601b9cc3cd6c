#!/usr/bin/env python3
"""providers.py - checks the provider tables of python/libraries/ against the recorded signatures of the libraries'
functions (tests/data/signatures.json, which tools/record_signatures.py makes from the released wheels).

Every row is called on the CPU, on inputs with the shapes and roles of the starter definitions. The roles are those of
reftest_roles in build/libreftest_kernels.so, or in the library that is named as the argument. The libraries' functions
are replaced by stand-ins that accept exactly the arguments of the recorded signature. The rows of torch call the real
library. Then the recorded signatures are changed, one at a time. The test must notice each change, and also a recorded
name that no table uses. Prints TAP. Needs torch.

A new provider table needs no change here if the signatures of the functions that it calls are recorded."""

import contextlib
import ctypes
import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

import recorded

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
WITHOUT_RESULT = {"fused_add_rmsnorm", "gemma_fused_add_rmsnorm", "merge_state_in_place", "append_paged_kv_cache",
                  "append_paged_mla_kv_cache", "fused_topk_deepseek", "__init__", "plan", "ServerArgs",
                  "is_config_namespace_published", "set_server_args"}
# {function that returns an object: the object's class in the same module}
OWNS = {"get_context": "RuntimeContext", "get_parallel": "ParallelContext"}
# Recorded functions that no row of a table calls. Only the library itself calls such a function; a table's on_import()
# replaces the function by a wrapper.
UNREACHED = {"flashinfer.jit.core:JitSpec.build_and_load"}


HANDED = []  # the arguments of each call of a stand-in


class Reached(Exception):
    """A stand-in cannot compute a result. If its signature accepts the arguments of a call, it raises this exception
    instead."""


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name, takes, called, role):
    """Returns a stand-in for a function of a module or, with the role "method" or "__init__", for a function of a
    class."""
    signature = recorded.signature(takes)  # the next line removes **words, which would accept unknown keywords
    signature = signature.replace(parameters=[p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD])
    last = role if role == "__init__" else re.split("[.:]", name)[-1]
    itself = 0 if role == "function" else 1

    def function(*args, **given):
        signature.bind(*args[itself:], **given)  # raises TypeError if the table calls the function with other arguments
        called.add(name)
        HANDED.append((name, args[itself:], given))
        if last == "fused_topk_deepseek":  # this function returns nothing, and fills two of its arguments
            args[6].fill_(0.5)
            args[7].zero_()
        if last in OWNS:
            return getattr(sys.modules[name.partition(":")[0]], OWNS[last])()
        if last == "override":
            return contextlib.nullcontext()
        if last not in WITHOUT_RESULT:
            if last == "top_k_renorm_probs" and args[0].shape[1] == 3:
                return args[0]
            raise Reached(name)

    return function


def module_of(name):
    """Returns the module of this name. Creates the module and its parents if they do not exist yet."""
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
        above, _, last = name.rpartition(".")
        if above:
            setattr(module_of(above), last, sys.modules[name])
    return sys.modules[name]


def install(known, called):
    """Replaces the libraries' modules by modules that have only stand-ins."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("flashinfer", "fla", "sglang", "sgl_kernel")]:
        del sys.modules[name]
    owners = {name.rpartition(".")[0] for name in known if "." in name.partition(":")[2]}
    for owner in owners:
        module, _, name = owner.partition(":")
        setattr(module_of(module), name, type(name, (), {}))
    for place, takes in known.items():
        module, _, name = place.partition(":")
        owner, _, method = name.partition(".")
        if place in owners:
            setattr(getattr(module_of(module), name), "__init__", stand_in(place, takes, called, "__init__"))
        elif method:
            setattr(getattr(module_of(module), owner), method, stand_in(place, takes, called, "method"))
        else:
            setattr(module_of(module), name, stand_in(place, takes, called, "function"))


# ---- cases ----


SMALL = {"batch_size": 2, "num_seqs": 2, "len_indptr": 3, "len_cu_seqlens": 3, "seq_len": 2}
CONSTANTS = {"eps": 1e-6, "rope_theta": 1e4, "rope_scale": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "old_context_len": 8192, "top_k": 4, "n_group": 8, "topk_group": 4, "updates_state": 0.0}


def kernels():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(TOP, "build", "libreftest_kernels.so")
    return ctypes.CDLL(os.path.abspath(path))


def roles_of(definition):
    """Returns "roles", "output_roles" and "modes" of a definition, as the judge writes them into a request."""
    room = ctypes.create_string_buffer(1 << 16)
    text = json.dumps(definition).encode()
    if kernels().reftest_roles(text, room, ctypes.c_size_t(len(room))) != 0:
        raise ValueError("%s: %s" % (definition["name"], room.value.decode()))
    return json.loads(room.value)


def value_of(torch, name, spec, sizes):
    if spec["shape"] is None:
        return {"bool": True, "int32": 0, "int64": 0}.get(spec["dtype"], 0.5)
    shape = [sizes[axis] for axis in spec["shape"]]
    dtype = getattr(torch, spec["dtype"])
    if "indptr" in name or "cu_seqlens" in name:
        return torch.arange(0, 2 * shape[0], 2, dtype=dtype)
    if "last_page" in name:
        return torch.ones(shape, dtype=dtype)
    if "batch" in name:
        return torch.zeros(shape, dtype=dtype)
    if "indices" in name and len(shape) == 1:
        return torch.arange(shape[0], dtype=dtype)
    if dtype.is_floating_point:
        return torch.ones(shape).to(dtype)
    return torch.zeros(shape, dtype=dtype)


class Starter:
    """A starter definition on small inputs."""

    def __init__(self, torch, common, definition):
        self.torch, self.common, self.family = torch, common, definition["op_type"]
        sizes = {axis: spec.get("value", SMALL.get(axis, 4)) for axis, spec in definition["axes"].items()}
        self.axes_of = {n: spec["shape"] or [None] for n, spec in definition["inputs"].items()}
        self.inputs = {n: value_of(torch, n, spec, sizes) for n, spec in definition["inputs"].items()}
        outputs = [{"name": n, "dtype": spec["dtype"], "shape": [sizes[axis] for axis in spec["shape"]]}
                   for n, spec in definition["outputs"].items()]
        self.request = {"family": self.family, "name": definition["name"], "class": "sm_90", "axes": sizes,
                        "constants": CONSTANTS, "outputs": outputs, **roles_of(definition)}

    def call(self, change=None, device="cuda"):
        """Builds a call. `change` is None, or a function that first changes the request and the inputs."""
        request = json.loads(json.dumps(self.request))
        inputs = {n: x.clone() if self.torch.is_tensor(x) else x for n, x in self.inputs.items()}
        if change is not None:
            inputs = change(request, inputs) or inputs
        return self.common.Call(self.torch, request, inputs, Device(device))


STARTERS = []


def starters(torch, common, only=None, part=""):
    """Returns the starter definitions of the families `only` (None: of all families) whose names contain `part`."""
    if not STARTERS:
        for path in sorted(glob.glob(os.path.join(TOP, "definitions", "*", "*.json"))):
            with open(path, encoding="utf-8") as file:
                STARTERS.append(Starter(torch, common, json.load(file)))
    return [one for one in STARTERS if (only is None or one.family in only) and part in one.request["name"]]


def rows_for(tables, starter, only=None):
    """Returns [(table, row)] for each table (with one of these names) that has a row for the starter definition."""
    return [(table, table.rows[starter.family]) for table in tables
            if starter.family in table.rows and (only is None or table.name in only)]


def run_all(torch, common, tables, known, only=None):
    """Returns three results: {called function: families that called it}, the set of all (table, family) whose row
    called a function, and the messages about errors."""
    called, by_family, reached, wrong = set(), {}, set(), []
    install(known, called)
    for starter in starters(torch, common, only):
        for table, row in rows_for(tables, starter):
            called.clear()
            for device in ("cpu", "cuda") if row.cpu else ("cuda",):
                call = starter.call(device=device)
                try:
                    row.call(call)
                    reached.add((table.name, starter.family))
                except Reached:
                    reached.add((table.name, starter.family))
                except common.Unavailable:
                    pass
                except Exception as problem:
                    wrong.append("%s, %s: %s: %s" % (table.name, call.name, type(problem).__name__, problem))
            for name in called:
                by_family.setdefault(name, set()).add(starter.family)
    return by_family, reached, wrong


class Device(str):
    """A device that provider tables treat as a GPU, but on which torch creates tensors in the CPU's memory. torch reads
    the string itself, which is always "cpu". A comparison with a string uses `name`, for example "cuda"."""

    def __new__(cls, name):
        device = super().__new__(cls, "cpu")
        device.name = name
        return device

    def __eq__(self, other):
        return self.name == other

    __hash__ = str.__hash__


# Pairs of a function and one of its parameters. The test must notice if the function or the parameter is missing from
# the record, or if the parameter has another name there. Rows pass each of these parameters by keyword.
PLANTED = (
    ("flashinfer:BatchDecodeWithPagedKVCacheWrapper.plan", "sm_scale"),
    ("flashinfer:BatchPrefillWithPagedKVCacheWrapper.plan", "sm_scale"),
    ("flashinfer.mla:BatchMLAPagedAttentionWrapper.run", "return_lse"),
    ("flashinfer.norm:rmsnorm", "eps"),
    ("flashinfer.sampling:top_k_mask_logits", "top_k"),
    ("flashinfer.gdn_decode:gated_delta_rule_mtp", "disable_state_update"),
    ("flashinfer.fused_moe:cutlass_fused_moe", "use_deepseek_fp8_block_scale"),
    ("fla.ops.gated_delta_rule:chunk_gated_delta_rule", "state_v_first"),
    ("sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe:fused_experts_impl", "filter_expert"),
    ("sglang.srt.server_args:ServerArgs", "model_path"),
    ("sgl_kernel.flash_attn:flash_attn_with_kvcache", "page_table"),
)
NOBODYS = "flashinfer.norm:nobodys_norm"


def known_of(record, absent="sgl_kernel"):
    """Returns {name: recorded parameters} for all libraries except `absent`. sgl_kernel is left out, because it is the
    earlier name of sglang_kernel."""
    known = {}
    present = {library: entry for library, entry in record.items() if library != absent}
    for library, names in recorded.asked_by("providers", present).items():
        assert not known.keys() & names.keys(), "%s has names that another library has, too" % library
        known |= names
    return known


def plants(record):
    """Yields a description of each change of a signature, and the function that it concerns."""
    for name, parameter in PLANTED:
        yield "%s without '%s'" % (name, parameter), name, recorded.changed(record, name, parameter)
        yield "%s with '%s' renamed" % (name, parameter), name, recorded.changed(record, name, parameter, "renamed_")
        yield "no %s" % name, name, recorded.changed(record, name)


def misrecorded(record):
    """Yields names that a table or test needs but the record lacks, and recorded names whose "asked_by" is wrong."""
    recorder = load("record_signatures", os.path.join(TOP, "tools", "record_signatures.py"))
    recorded_names = {name for entry in record.values() for name in entry["signatures"]}
    wanted = recorder.asked()
    for name in wanted.keys() - recorded_names:
        yield "%s is not in the record of any library" % name
    for library, entry in record.items():
        for name, function in entry["signatures"].items():
            owner = name.rpartition(".")[0] if "." in name.partition(":")[2] else name
            if function["asked_by"] != wanted.get(name, wanted.get(owner)):
                yield "%s: %s: %s" % (library, name, function["asked_by"])


def unheeded():
    """Yields files that can change the provider's outputs without a change of the provider's version."""

    def version(folder):
        matrix = subprocess.run([sys.executable, os.path.join(folder, "provider.py"), "--matrix", "cpu"], check=True,
                              stdout=subprocess.PIPE)
        return next(one["version"] for one in json.loads(matrix.stdout)["providers"] if one["name"] == "torch")

    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "python")
        shutil.copytree(os.path.join(TOP, "python"), folder)
        before = version(folder)
        for name in ("provider.py", "runner.py", "gradients.py", "arena.py", "tensors.py", "failures.py", "libraries/common.py",
                     "libraries/torch.py"):
            with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
                file.write("# changed\n")
            after = version(folder)
            if after == before:
                yield name
            before = after


def gradients_leave(torch):
    """Computes gradients in float64 of two functions: one returns, and one raises an exception. Yields wrong gradients,
    and the settings of torch that the computation changed."""
    runner = load("reftest_runner", os.path.join(TOP, "python", "runner.py"))
    runner.import_torch("cpu")
    case = {"inputs": [{"name": name, "scalar": False} for name in ("x", "grad:y", "step:x")],
            "outputs": [{"name": "d_x", "dtype": "float64"}, {"name": "slope_x", "dtype": "float64"}]}

    def state():
        return (torch.get_deterministic_debug_mode(), torch.get_default_dtype(), torch.is_grad_enabled(),
                torch.ones(1).float().dtype, torch.are_deterministic_algorithms_enabled())

    def square(x):
        return x.float() ** 2

    def fail(x):
        raise ValueError("planted")

    before = state()
    for run in (square, fail):
        inputs = {"x": torch.tensor([3.0], dtype=torch.float64), "grad:y": torch.tensor([1.0], dtype=torch.float64),
                  "step:x": torch.tensor([2**-16], dtype=torch.float64)}
        try:
            gradient, slope = runner.gradients.differentiate(runner, run, case, inputs)
            if abs(float(gradient) - 6) > 1e-12 or abs(float(slope) - 6 * 2**-16) > 1e-12:
                yield "%s: gradient %s, slope %s" % (run.__name__, gradient, slope)
        except ValueError:
            pass
        if state() != before:
            yield "%s: %s, then %s" % (run.__name__, before, state())
        torch.set_deterministic_debug_mode(before[0])
        torch.set_default_dtype(before[1])


def loads_alone():
    """Loads common.py and the tables in a Python without site-packages, and therefore without torch and libraries.
    Returns the errors."""
    process = subprocess.run([sys.executable, "-I", "-S", "-c", """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("reftest_providers", sys.argv[1] + "/common.py")
common = sys.modules["reftest_providers"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(common)
broken = {}
tables = common.load_tables(sys.argv[1], broken)
assert not broken, broken
assert len(tables) > 7 and "torch" not in sys.modules
assert all(common.version_of(table)[0] is None for table in tables.values())
""", os.path.join(TOP, "python", "libraries")], stderr=subprocess.PIPE, text=True)
    return process.stderr.splitlines()


def outcome(torch, common, row, call):
    """Returns the arguments of all library calls and the results by output role, as text for a comparison."""
    HANDED.clear()
    try:
        results = dict(zip((spec["name"] for spec in call.outputs), row.call(call)))
        named = {role: results[name] for role, name in call.output_roles.items()}
    except Reached:
        named = {}
    except Exception as end:
        named = {"raised": "%s: %s" % (type(end).__name__, end)}

    def shown(x):
        if not torch.is_tensor(x):
            return x
        # The comparison ignores the content of workspace buffers, which is arbitrary.
        values = x.double().nan_to_num(7.0).flatten() if x.dtype != torch.uint8 else torch.zeros(0)
        if len(values) > 64:
            values = torch.stack([values.sum(), (values * torch.arange(1.0, len(values) + 1)).sum()])
        return (list(x.shape), str(x.dtype), values.tolist())

    # Keyword arguments whose name contains "buffer" are left out.
    handed = [(name, [shown(x) for x in args], {word: shown(x) for word, x in given.items() if "buffer" not in word})
              for name, args, given in HANDED]
    return json.dumps([handed, {role: shown(named[role]) for role in sorted(named)}], default=str)


def numbered(torch, roles, inputs):
    """Fills each float input with a number of its own, so that the arguments of a call show which inputs were passed.
    The numbers follow the alphabetical order of the roles."""
    for number, role in enumerate(sorted(roles), 2):
        x = inputs[roles[role]]
        if torch.is_tensor(x) and x.is_floating_point():
            inputs[roles[role]] = torch.full(x.shape, float(number)).to(x.dtype)
        elif isinstance(x, float):
            inputs[roles[role]] = number / 4


def disguised(request, inputs):
    """Replaces the names of inputs and outputs by meaningless or misleading names, reverses their order, and makes an
    optional input absent."""
    names, words = list(reversed(inputs)), ["weight", "residual", "q_bias", "kv_indices", "scale", "top_k"]
    other = {name: words[at] if at < len(words) else "x%d" % at for at, name in enumerate(names)}
    turned = {"absent": None, **{other[name]: inputs[name] for name in names}}
    request["roles"] = {"unused": "absent", **{role: other[name] for role, name in request["roles"].items()}}
    outputs = {spec["name"]: "y%d" % at for at, spec in enumerate(request["outputs"])}
    request["output_roles"] = {role: outputs[name] for role, name in request["output_roles"].items()}
    request["outputs"] = [dict(spec, name=outputs[spec["name"]]) for spec in reversed(request["outputs"])]
    return turned


def guessed(torch, common, tables):
    """Yields rows whose calls or results depend on the names or the order of inputs and outputs, although the roles are
    the same."""

    def plain(request, inputs):
        numbered(torch, request["roles"], inputs)

    def turned(request, inputs):
        numbered(torch, request["roles"], inputs)
        return disguised(request, inputs)

    seen = set()
    for starter in starters(torch, common):
        for table, row in rows_for(tables, starter):
            both = [outcome(torch, common, row, starter.call(change)) for change in (plain, turned)]
            if '"raised"' not in both[0]:
                seen.add((table.name, starter.family))
            if both[0] != both[1]:
                yield "%s of %s" % (table.name, starter.request["name"])
    yield from ("%s: %s was never called" % pair for pair in sorted(
        {(t.name, f) for t in tables for f in t.rows} - seen - {("sgl_kernel", "rope"), ("flashinfer_trtllm", "moe")}))


def padding_kept(torch, common, tables):
    """Yields rows that return the library's output for padding tokens. Also yields tables if none of their rows called
    the library."""

    def update(state, x, *rest, out=None, **words):
        return torch.ones_like(x) if out is None else out.fill_(1)

    for name in ("flashinfer.mamba", "sglang.kernels.ops.mamba.triton_ops.mamba_ssm"):
        module_of(name).selective_state_update = update
    asked = set()
    for starter in starters(torch, common, {"mamba_ssu"}):
        for table, row in rows_for(tables, starter):
            call = starter.call()
            if not call.has("indices"):
                continue
            slots, pad = call["indices"], int(call.get("pad", -1))
            slots[-1], slots[:-1] = pad, pad + 1
            output = row.call(call)[0]
            asked.add(table.name)
            if not bool((output[:-1] == 1).all()) or bool(output[-1].any()):
                yield "%s of %s" % (table.name, call.name)
    yield from {"flashinfer", "sglang"} - asked


def empty_launched(torch, common, tables):
    """Yields rows that call a kernel with an empty batch, although the kernel does not support empty batches."""
    without = {"dsa_paged": "q", "gdn": "q", "gla": "q", "kda": "q", "delta_rule": "q", "simple_gla": "q",
               "gated_delta_rule": "q", "mamba_ssu": "x", "moe": "hidden", "page": "batch_indices",
               "quantize_fp8_per_token_group": "hidden"}
    for starter in starters(torch, common, set(without)):
        for table, row in rows_for(tables, starter):
            if table.name == "torch":
                continue

            def emptied(request, inputs):
                name = request["roles"].get(without[starter.family])
                for other, axes in starter.axes_of.items():
                    if name is not None and axes[0] == starter.axes_of[name][0]:
                        inputs[other] = inputs[other][:0]

            HANDED.clear()
            with contextlib.suppress(Reached, common.Unavailable, RuntimeError, IndexError):
                row.call(starter.call(emptied))
            if HANDED:
                yield "%s of %s: %s" % (table.name, starter.request["name"], HANDED[0][0])


def experts_misread(torch, common, tables):
    """Yields tables that misinterpret one of two kinds of mixtures of experts that no starter definition has. In the
    first kind, the numbers of groups are inputs. In the second kind, the first axis of the scales of hidden states is
    the token."""
    (starter,) = starters(torch, common, {"moe"}, "ng8")

    def usual(request, inputs):
        request["constants"] = {"top_k": 6, "n_group": 8, "topk_group": 4}
        roles = request["roles"]
        inputs.update({roles["scaling"]: 2.5, roles["offset"]: 0})
        scale = inputs[roles["hidden_scale"]]
        scale.copy_(torch.arange(scale.numel()).view(scale.shape))
        bias = inputs[roles["bias"]].zero_()
        bias[0], bias[32::4] = 3, 2  # the best expert is in none of the best groups

    def numbers_given(request, inputs):
        usual(request, inputs)
        request["constants"] = {}
        for number, (role, value) in enumerate({"top_k": 6, "groups": 8, "kept_groups": 4}.items()):
            request["roles"][role] = "n%d" % number
            inputs["n%d" % number] = value

    def tokens_first(request, inputs):
        usual(request, inputs)
        request["modes"].remove("blocks_first")
        name = request["roles"]["hidden_scale"]
        inputs[name] = inputs[name].t().contiguous()

    for table, row in rows_for(tables, starter):
        handed = [outcome(torch, common, row, starter.call(change)) for change in (usual, numbers_given, tokens_first)]
        if len(set(handed)) > 1 or '"raised"' in handed[0]:
            yield "%s: %s" % (table.name, [one == handed[0] for one in handed])
    ((_, row),) = rows_for(tables, starter, {"sglang"})
    experts = last_call(row, starter.call(usual))[0][4]
    if bool((experts == 0).any()):
        yield "sglang: experts %s" % experts[0].tolist()


def last_call(row, call):
    """Returns the positional arguments and the keywords of a row's last library call."""
    HANDED.clear()
    with contextlib.suppress(Reached):
        row.call(call)
    return HANDED[-1][1:]


def chosen_misread(torch, common, tables):
    """Yields tables that misinterpret an input with the ids of the chosen experts. In the first check, one chosen
    expert is on another device. In the second check, further inputs give each expert a factor for each of its weight
    matrices (up, gate and down)."""
    (given,) = starters(torch, common, {"moe"}, "routed")
    rows = dict((table.name, row) for table, row in rows_for(tables, given))

    def chosen(request, inputs):
        """Removes the constants from the request. Returns the name of the input that has the ids of the experts, a
        tensor of new ids, and a tensor of weights. The new ids of each token are 0, 2^15 - 1, and then zeros. All
        weights are 1/2."""
        request["constants"] = {}
        name = request["roles"]["ids"]
        count = inputs[name].shape[1]
        ids = torch.tensor([[0, (1 << 15) - 1] + [0] * count], dtype=torch.int32)[:, :count].expand(inputs[name].shape)
        half = torch.full(ids.shape, 0.5, dtype=torch.bfloat16)
        return name, ids, half

    def packed(request, inputs):
        name, ids, half = chosen(request, inputs)
        inputs[name] = ids << 16 | half.view(torch.int16).int()

    def apart(request, inputs):
        name, ids, half = chosen(request, inputs)
        request["roles"]["id_weights"] = "w"
        inputs.update({name: ids.contiguous(), "w": half.float()})

    for name, row in rows.items():
        if name == "flashinfer_trtllm":
            continue
        both = []
        for change in (packed, apart):
            args, words = last_call(row, given.call(change))
            both.append([x.tolist() for x in (args[1:3] if name == "flashinfer" else args[3:5])])
        first, second = (0, 1) if name == "flashinfer" else (1, 0)  # experts, weights
        elsewhere = {"flashinfer": 0, "sglang": -1}[name]
        if both[0] != both[1] or both[0][first][0][:2] != [0, elsewhere] or both[0][second][0][:2] != [0.5, 0.0]:
            yield "%s: %s" % (name, [one[:2] for one in both])

    def factors(request, inputs):
        chosen(request, inputs)
        for role, factor in (("factor_up", 2.0), ("factor_gate", 4.0), ("factor_down", 8.0)):
            inputs[role] = torch.full((len(inputs[request["roles"]["weights1"]]),), factor)
            request["roles"][role] = role
        for role in ("scale1", "scale2", "hidden_scale"):
            request["roles"].pop(role, None)
        for role in ("weights1", "weights2"):
            name = request["roles"][role]
            inputs[name] = torch.ones(inputs[name].shape).to(inputs[name].dtype)

    for name, row in rows.items():
        if name == "flashinfer_trtllm":
            continue
        args, _ = last_call(row, given.call(factors))
        w1, w2 = args[3:5] if name == "flashinfer" else args[1:3]
        half = w1.shape[1] // 2
        found = [float(x.float().mean()) for x in (w1[:, :half], w1[:, half:], w2)]
        if found != ([2, 4, 8] if name == "flashinfer" else [4, 2, 8]):  # sglang expects the gate's weights first
            yield "%s: factors %s" % (name, found)


def trtllm_misread(torch, common, tables):
    """Yields arguments that TensorRT-LLM's kernel would misinterpret: scales of hidden states with a wrong shape, a
    wrong routing method, or wrong numbers of groups."""
    (starter,) = starters(torch, common, {"moe"}, "ng8")
    ((table, row),) = rows_for(tables, starter, {"flashinfer_trtllm"})
    if not row.on_request or common.lacking(row, "sm_90") is None or common.lacking(row, "sm_100") is not None:
        yield "a library is called where it was not before"
    args, words = last_call(row, starter.call())
    if [list(x.shape) for x in args[2:4]] != [list(starter.inputs[n].shape) for n in (
            starter.request["roles"]["hidden"], starter.request["roles"]["hidden_scale"])]:
        yield "scales of hidden states: %s" % list(args[3].shape)
    if (words["routing_method_type"], words["n_group"], words["topk_group"]) != (2, 8, 4):
        yield str({word: x for word, x in words.items() if not torch.is_tensor(x)})


def heads_misread(torch, common, tables):
    """Yields rows of gdn that call the library with a wrong order of heads. In these cases q has half as many heads as
    v, and k has as many heads as v: value head h belongs to head h // 2 of q and to head h of k."""
    for starter in starters(torch, common, {"gdn"}):
        v = starter.inputs["v"]
        ones, numbers = torch.ones_like(v), torch.arange(v.shape[-2]).view(-1, 1)

        def own_heads(request, inputs):
            inputs.update(q=ones[..., ::2, :] * numbers[: v.shape[-2] // 2].to(v), k=ones * numbers.to(v))
            inputs.update({name: False for name in inputs if "l2norm" in name})

        for table, row in rows_for(tables, starter):
            args, words = last_call(row, starter.call(own_heads))
            handed = [x.flatten(0, -3) for x in (*args, *words.values())
                      if torch.is_tensor(x) and x.shape[-2:] == v.shape[-2:]][:2]
            wanted = [(ones * x).flatten(0, -3) for x in (numbers // 2, numbers)]
            if any(x.shape != y.shape or (x != y).any() for x, y in zip(handed, wanted)):
                yield "%s of %s" % (table.name, starter.request["name"])


def reversed_outputs(request, inputs):
    request["outputs"].reverse()


def outputs_mistaken(torch, common, tables):
    """Yields rows that return outputs by position, and therefore in the wrong order for a definition that lists its
    outputs in another order."""

    def answers(part, family, table, change):
        starter = starters(torch, common, {family}, part)[0]
        ((_, row),) = rows_for(tables, starter, {table})
        return [float(x.double().mean()) for x in row.call(starter.call(change))]

    def twice(role):
        def change(request, inputs):
            inputs[request["roles"][role]].mul_(2)
            reversed_outputs(request, inputs)

        return change

    for table in ("flashinfer", "sgl_kernel"):  # stand-ins do not change the inputs
        if answers("fused_add", "rmsnorm", table, twice("residual")) != [2, 1]:
            yield "%s: rmsnorm" % table
    if answers("merge_state_in_place", "cascade", "flashinfer", twice("s")) != [2, 1]:
        yield "cascade"
    if answers("kv8_d128_ps16", "page", "flashinfer", twice("cache_other")) != [2, 1]:
        yield "page"
    module_of("flashinfer.gdn_decode").gated_delta_rule_decode_pretranspose = lambda *args, **words: (
        torch.ones(2), torch.full((2,), 2.0))  # two results of the same shape
    if answers("decode", "gdn", "flashinfer", reversed_outputs) != [2, 1]:
        yield "gdn"
    call = starters(torch, common, {"gqa_ragged"}, "causal")[0].call(reversed_outputs)
    row = common.Row(None, coarse={"output": (1.0, 2.0), "lse": (3.0, 4.0)})
    results = call.outputs_of(lse=torch.full((2, 2), 3.0), output=torch.ones(2, 2, 2), more=None)
    call.noise = 1.0
    if [x.dim() for x in results] != [2, 3] or common.coarse_of(row, call, results) != [
            {"atol": 18.0, "rtol": 4.0}, {"atol": 6.0, "rtol": 2.0}]:
        yield "coarse: %s" % common.coarse_of(row, call, results)
    try:
        call.outputs_of(output=torch.ones(1))
        yield "an output that a row does not compute is not missed"
    except common.Unavailable:
        pass


def numbers_misread(torch, common, tables):
    """Yields rows that ignore a number that a definition gives, or pass the number in a form that the library
    interprets differently. For example, a row must replace a top-k of 0 by the size of the vocabulary."""

    def asked(table, family, part, change):
        starter = starters(torch, common, {family}, part)[0]
        ((_, row),) = rows_for(tables, starter, {table})
        return last_call(row, starter.call(change))

    def some_keep_all(request, inputs):
        top_k = inputs[request["roles"]["top_k"]]
        top_k[:] = torch.arange(len(top_k)) - len(top_k) + 1  # values up to 0; a top-k of 0 or less keeps all tokens

    vocabulary = starters(torch, common, {"sampling"}, "top_k_renorm")[0].inputs["probs"].shape[1]
    for table in ("flashinfer", "sgl_kernel"):
        (_, top_k), _ = asked(table, "sampling", "top_k_renorm", some_keep_all)
        if top_k.tolist() != [vocabulary] * len(top_k):
            yield "%s: top-k of %s" % (table, top_k)

    def in_more_axes(request, inputs):
        name = request["roles"]["logits"]
        inputs[name] = inputs[name].view(2, -1, 256)

    if asked("flashinfer", "softmax", "e256", in_more_axes)[0][0].dim() != 2:
        yield "softmax"

    def of_bytes(request, inputs):
        name = request["roles"]["mask"]
        inputs[name] = inputs[name].to(torch.uint8)

    (*_, mask), _ = asked("flashinfer", "cascade", "merge_state_in_place", of_bytes)
    if mask.dtype != torch.bool:
        yield "cascade: a mask of %s" % mask.dtype

    def part_of_a_head(request, inputs):
        request["axes"]["rotary_dim"], request["roles"]["scale"], inputs["n"] = 64, "n", 3.0

    def numbers_given(request, inputs):
        for number, role in enumerate(("low_freq", "high_freq", "old_context", "theta", "scale"), 2):
            request["roles"][role], inputs[role] = role, float(number)
        request["constants"], request["roles"]["is_neox"], inputs["n"] = {}, "n", False

    _, words = asked("flashinfer", "rope", "rope_pos_ids_h32", part_of_a_head)
    if (words["rotary_dim"], words["rope_scale"], words["interleave"]) != (64, 3.0, False):
        yield "rope: %s" % words
    _, words = asked("flashinfer", "rope", "llama31", numbers_given)
    if words != {"rotary_dim": None, "interleave": True, "rope_theta": 5.0, "rope_scale": 6.0, "low_freq_factor": 2.0,
                 "high_freq_factor": 3.0, "old_context_len": 4}:
        yield "rope: %s" % words
    (compiled,) = (t for t in tables if t.name == "sgl_kernel")
    if not any("flashinfer-python" in need.names for need in compiled.needs):
        yield "sgl_kernel: its version does not say whether FlashInfer is installed, although its outputs depend on that"


def second_hand(torch, common, tables):
    """Yields rows of sgl_kernel that call FlashInfer's kernels, because these rows would wrongly count as a second
    independent ground truth."""
    for name in ("sgl_kernel.elementwise", "sgl_kernel.sampling"):
        module_of(name)._has_flashinfer = True
    for starter in starters(torch, common, {"rmsnorm", "gemma_rmsnorm", "sampling"}):
        ((_, row),) = rows_for(tables, starter, {"sgl_kernel"})
        try:
            row.call(starter.call())
        except common.Unavailable:
            continue
        except Reached:
            pass
        yield "%s of %s" % (starter.family, starter.request["name"])


def unoffered(common):
    """Yields the tables whose names are missing from the help text or the completions of --ground-truth."""
    with open(os.path.join(TOP, "cli", "shared_options.h"), encoding="utf-8") as file:
        (offered,) = re.findall(r'#define GROUND_TRUTHS \\\s*"([^"]*)"', file.read())
    for name in common.load_tables(os.path.join(TOP, "python", "libraries")):
        if name not in offered.split("|"):
            yield "%s is not in GROUND_TRUTHS of cli/shared_options.h" % name


def main():
    import torch

    common = load("reftest_providers", os.path.join(TOP, "python", "libraries", "common.py"))
    # Leaves out the table fi_api, because it takes the function and the arguments from the definition, and not from
    # roles. An end-to-end test calls fi_api with a fake library.
    tables = [table for table in common.load_tables(os.path.join(TOP, "python", "libraries")).values() if table.name != "fi_api"]
    record = recorded.load()
    print("1..%d" % (20 + 3 * len(PLANTED)))
    called, reached, wrong = run_all(torch, common, tables, known_of(record))
    called_older, reached_older, wrong_older = run_all(torch, common, tables, known_of(record, "sglang_kernel"))
    number = 0

    def tell(ok, what, details=()):
        nonlocal number
        number += 1
        print("%s %d - %s" % ("ok" if ok else "not ok", number, what))
        for line in details:
            print("# " + line)
        return ok

    def uncalled(record):
        newer = known_of(record).keys() - called.keys()
        older = known_of(record, "sglang_kernel").keys() - called_older.keys()
        return sorted((newer | older) - UNREACHED)

    rows = {(t.name, f) for t in tables for f in t.rows} - reached - reached_older
    lost = recorded.unasked(record) + sorted(misrecorded(record))
    good = tell(not wrong, "every call fits the recorded signature", wrong)
    good &= tell(not wrong_older and reached <= reached_older, "and that of the older sgl_kernel", wrong_older)
    good &= tell(not uncalled(record), "every recorded function is called by a table", uncalled(record))
    good &= tell(not rows, "every row calls its library for some starter definition", ["%s %s" % r for r in sorted(rows)])
    good &= tell(not lost, "of every recorded function it is known who asks for it", lost)
    of_table, of_nobody = (recorded.one_more(record, "flashinfer_python", NOBODYS, *who) for who in (["providers"], []))
    good &= tell(uncalled(of_table) == [NOBODYS], "a function that no table calls is noticed")
    good &= tell(recorded.unasked(of_nobody) == [NOBODYS] and any(misrecorded(of_nobody)), "so is one that nobody asks for")

    def none(found, what):
        install(known_of(record), set())
        found = list(found)
        return tell(not found, what, found)

    good &= none(unoffered(common), "--ground-truth offers every table")
    good &= none(unheeded(), "a provider's version changes with each file that its answers depend on")
    good &= none(gradients_leave(torch), "taking gradients leaves torch as it was")
    good &= none(loads_alone(), "the tables can be read without torch and any library")
    good &= none(guessed(torch, common, tables), "rows take inputs and outputs by role, whatever their names and order")
    good &= none(outputs_mistaken(torch, common, tables), "results and their bounds are in the order of the definition's outputs")
    good &= none(padding_kept(torch, common, tables), "of padding the output is 0, whatever a kernel writes there")
    good &= none(empty_launched(torch, common, tables), "kernels that take no empty batch get none")
    good &= none(second_hand(torch, common, tables), "what hands on to FlashInfer is no second ground truth")
    good &= none(experts_misread(torch, common, tables), "numbers and scales of experts count wherever a definition has them")
    good &= none((*chosen_misread(torch, common, tables), *trtllm_misread(torch, common, tables)),
                 "experts that are given, of other devices or with factors are what they are to the family")
    good &= none(heads_misread(torch, common, tables), "where q and k have heads of their own, each value head has those of its group")
    good &= none(numbers_misread(torch, common, tables), "numbers are passed on as a library takes them")
    for what, name, changed in plants(record):
        _, _, noticed = run_all(torch, common, tables, known_of(changed), called.get(name, set()))
        good &= tell(bool(noticed) and not wrong, what + " is noticed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
