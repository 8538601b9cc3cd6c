# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: c55cd4ddd014c7d944b475623284627f
# fmt: off
# ruff: noqa
"""common - code for the tables of libraries, for the provider (python/provider.py), and for generated tests.

A table describes how a library computes ground truths. A table has one row per op family (a directory of kernels/). The
function of a row receives a Call, computes the definition's outputs with the library, and returns Call.outputs_of(...).
If the library cannot compute these outputs, the function raises Unavailable with the reason. The inputs are copies for
this call, so the function may write to them.

A row finds its inputs by role: call["hidden"] is the input with the hidden state, whatever its name and position in the
definition. The op families in kernels/ assign roles (op.roles) and modes (op.modes) to a definition, and each request
to the provider lists them. No table may guess a role or a mode from the name, the position or the shape of an input.

A file of tables imports its library only inside the functions of its rows, so that the file can be loaded even if the
library is not installed. The file imports common.py as `reftest_providers`, because the provider and generated tests
load common.py under this name.

MODULES lists the files of tables in order of preference. A new library needs an entry in MODULES, and the names of its
tables in GROUND_TRUTHS (cli/shared_options.h). docs/architecture.md ("A library that is new altogether") lists the tests
and pages that name all libraries."""

import contextlib
import importlib.metadata
import importlib.util
import json
import math
import os
import sys
import types
from dataclasses import dataclass, field

MODULES = ("flashinfer", "sglang", "fla", "torch", "fi_api")  # in order of preference
IMPORT_S = 600  # extra seconds to import a library, which may compile kernels or read from slow disks
COMPILE_S = 3600  # extra seconds to compile one module of kernels


def progress(doing, allow, tell=False):
    """Reports to the pool of worker processes that an import or a compilation begins. Does nothing in generated tests;
    provider.py replaces this function."""


@contextlib.contextmanager
def progress_of(doing, allow, tell=False):
    progress(doing, allow, tell)
    try:
        yield
    finally:
        progress(None, 0)


class Unavailable(Exception):
    """Raised if the library does not support this case. The message says why."""


class NotBuilt(RuntimeError):
    """Raised if a library's kernels could not be compiled. The message is the compiler's output."""


@dataclass
class Need:
    """A Python distribution that a table requires. `names`: its current name, then its former names. `module`: the
    module to import. `least`: the oldest version that is accepted."""
    names: tuple
    module: str = None
    least: tuple = ()
    # If true, the table also works without this distribution. If the distribution is installed, version_of includes its
    # version.
    optional: bool = False


@dataclass
class Row:
    call: object
    cpu: bool = False  # whether the library's function also runs on a CPU
    least: int = 80  # lowest compute capability, times ten
    most: int = None  # highest compute capability, times ten; None: any
    first_use_s: int = 900  # extra seconds for the first call, which may compile kernels
    # {output role: (atol, rtol)} if the library's arithmetic is coarser than that of the definition. A ground truth
    # with coarser arithmetic does not decide a verdict alone. Only `coarse` and Call.noise widen the bounds for a
    # library.
    coarse: dict = None
    mutates: str = ""  # roles of the inputs that the library's function writes to
    # If true, `reftest verify` skips this row by default (--ground-truth auto), and uses it only if the user names the
    # library or requests all ground truths. Generated tests use the row even if this field is true. Set this for a slow
    # row whose result adds nothing: the row only repeats the computation of the ground truth `builtin`, or the result
    # has never decided a verdict.
    on_request: bool = False


@dataclass
class Table:
    name: str
    needs: tuple
    rows: dict
    never: dict = field(default_factory=dict)  # the op families that the library does not support, and why


class Call:
    """One case, in the form that the functions of the tables expect. `request` is the judge's {"provide"} message
    (written by trial_stage.c). `inputs` maps the definition's input names to values; the value of an omitted optional
    input is None."""

    def __init__(self, torch, request, inputs, device):
        self.torch, self.device, self.inputs = torch, device, inputs
        self.family, self.name = request["family"], request["name"]
        self.device_class = request["class"]
        self.axes, self.constants = request["axes"], request["constants"]
        self.roles, self.output_roles = request["roles"], request["output_roles"]
        self.modes = frozenset(request["modes"])
        self.outputs = request["outputs"]
        self.api = request.get("api")  # the function that the tag `fi_api:` names, or None
        self.arguments = request.get("arguments", {})  # {input: the argument of this function that gets it}
        self.noise = 0.0  # the quantisation error of intermediate values, as a fraction of an output's root mean square

    def __getitem__(self, role):
        """Returns the input with this role. Raises Unavailable if no input of the definition has this role."""
        value = self.get(role)
        if value is None:
            raise Unavailable("the definition has no input '%s'" % role)
        return value

    def get(self, role, default=None):
        value = self.inputs.get(self.roles.get(role))
        return default if value is None else value

    def has(self, role):
        return self.get(role) is not None

    def is_(self, mode):
        return mode in self.modes

    def one_of(self, *modes):
        """Returns the first of `modes` that applies to the case. Raises Unavailable if none of them applies."""
        for mode in modes:
            if mode in self.modes:
                return mode
        raise Unavailable("it supports only %s" % ", ".join(modes))

    def constant(self, role, name=None, default=None):
        """Returns the Python scalar with this role. If no scalar has this role, returns the reference's constant `name`
        (by default the role's name), or `default`."""
        value = self.get(role, self.constants.get(name or role, default))
        if value is None:
            raise Unavailable("no value for '%s'" % (name or role))
        return value

    def output_shape(self, role):
        """Returns the shape of the output with this role. A row uses this shape for sizes that cannot be read from an
        input."""
        (shape,) = (spec["shape"] for spec in self.outputs if spec["name"] == self.output_roles[role])
        return shape

    def outputs_of(self, **results):
        """Returns a tuple of the tensors in `results`, in the order and the dtypes of the definition's outputs. The
        keyword of each tensor is the role of its output."""
        by_name = {name: results.get(role) for role, name in self.output_roles.items()}
        missing = [spec["name"] for spec in self.outputs if by_name.get(spec["name"]) is None]
        if missing:
            raise Unavailable("it does not compute the output '%s'" % missing[0])
        return tuple(by_name[spec["name"]].to(getattr(self.torch, spec["dtype"])) for spec in self.outputs)


def coarse_of(row, call, results):
    """Returns a list with the tolerances {"atol", "rtol"} of each output, or None if the results are as precise as the
    definition. Adds five standard deviations of the quantisation noise to atol."""
    if row.coarse is None:
        return None
    roles, rules = {name: role for role, name in call.output_roles.items()}, []
    for spec, result in zip(call.outputs, results):
        atol, rtol = row.coarse[roles[spec["name"]]]
        size = root_mean_square(result) if call.noise > 0 else 0.0
        allowed = 5 * call.noise * size
        # If a result contains NaN, nothing is added for quantisation noise.
        rules.append({"atol": atol + (allowed if math.isfinite(allowed) else 0.0), "rtol": rtol})
    return rules


def root_mean_square(x):
    return float(x.double().square().mean().sqrt()) if x.numel() > 0 else 0.0


# ---- available libraries ----


def load(name, path):
    """Loads a module from its path, because a file of tables has the name of its library, and an import would load the
    library. Compiles the source text each time, because Python's cached byte code may be out of date: if a file is
    edited twice within a second and its size does not change, Python does not notice the second edit."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = path
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), module.__dict__)
    return module


def load_tables(folder, broken=None):
    """Loads the tables in a folder and returns {name of the ground truth: table}. If a file cannot be loaded, stores
    the exception in `broken`, unless `broken` is None."""
    tables = {}
    for name in MODULES:
        path = os.path.join(folder, name + ".py")
        if os.path.exists(path):
            try:
                module = load("reftest_provider_" + name, path)
            except Exception as problem:
                if broken is not None:
                    broken[name] = problem
                continue
            for table in module.TABLES:
                table.module, table.file = module, path
                tables[table.name] = table
    return tables


def checkouts():
    """Returns the checkouts that can replace installed libraries: {module: {"folder", "commit", "why", "preferred"}}.
    engine/library_checkouts.h describes these members. Only the provider uses checkouts; generated tests do not."""
    return json.loads(os.environ.get("REFTEST_CHECKOUTS", "{}"))


def checkout_of(wanted):
    """Returns the checkout that is used for the Need `wanted`, or None if an installed distribution is used."""
    found = checkouts().get(wanted.module.split(".")[0]) if wanted.module is not None else None
    return found if found is not None and (found["preferred"] or installed(wanted.names)[0] is None) else None


def add_checkouts(tables):
    """Lets Python import the checkouts that the tables use. Python must not write byte code into a checkout, because
    the checkout must stay equal to its commit."""
    for wanted in {wanted.module: wanted for table in tables.values() for wanted in table.needs}.values():
        found = checkout_of(wanted)
        if found is not None and found["why"] is None and found["folder"] not in sys.path:
            sys.dont_write_bytecode = True
            sys.path.insert(0 if found["preferred"] else len(sys.path), found["folder"])


def installed(names):
    """Returns the name and version of the first distribution in `names` that is installed, or (None, None)."""
    for name in names:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            version = importlib.metadata.version(name)
            if version:
                return name, version
    return None, None


def numbers(version):
    parts = []
    for part in version.split("+")[0].split("."):
        digits = "".join(c for c in part if c.isdigit()) if part[:1].isdigit() else ""
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)


def version_of(table):
    """Returns (text, None) with the versions of the table's libraries, or (None, reason) if the table cannot be used.
    Imports no library."""
    words = []
    for wanted in table.needs:
        found = checkout_of(wanted)
        if found is not None:
            if found["why"] is not None:
                return None, found["why"]
            if importlib.util.find_spec(wanted.module.split(".")[0]) is None:
                return None, "%s does not contain the module %s" % (found["folder"], wanted.module)
            words.append("commit %s" % found["commit"])
            continue
        name, version = installed(wanted.names)
        if name is None and wanted.optional:
            continue
        if name is None:
            return None, "%s is not installed (pip install %s)" % (wanted.names[0], wanted.names[0])
        if numbers(version) < wanted.least:
            least = ".".join(map(str, wanted.least))
            return None, "%s %s is installed, but %s or newer is required" % (name, version, least)
        if wanted.module is not None and importlib.util.find_spec(wanted.module) is None:
            return None, "%s %s is installed, but does not contain the module %s" % (name, version, wanted.module)
        words.append(version if not words else "%s %s" % (name, version))
    return ", ".join(words), None


def capability(device_class):
    """Returns the compute capability of a device class times ten: 90 for "sm_90"."""
    return int("".join(filter(str.isdigit, device_class)))


def lacking(row, device_class):
    """Returns the reason why the row's function cannot run on a device of this class, or None if it can."""
    if device_class == "cpu":
        return None if row.cpu else "it requires an NVIDIA GPU"
    if not device_class.startswith("sm_"):
        return "the device is unknown"
    number = capability(device_class)
    if row.least is not None and number < row.least:
        return "it requires compute capability %d.%d, but this is %s" % (*divmod(row.least, 10), device_class)
    if row.most is not None and number > row.most:
        return "it has no kernel above compute capability %d.%d, but this is %s" % (*divmod(row.most, 10), device_class)
    return None


# ---- what several libraries require ----


def require_16_bits(*tensors):
    if any(str(x.dtype) not in ("torch.bfloat16", "torch.float16") for x in tensors):
        raise Unavailable("it requires float16 or bfloat16")


def require_elements(*tensors):
    """Raises Unavailable if a tensor is empty, because some kernels cannot be launched with an empty grid."""
    if any(x.numel() == 0 for x in tensors):
        raise Unavailable("it requires at least one token")


def int32(x):
    import torch

    return x.to(torch.int32)


def rows_of(x):
    """Flattens all axes of a tensor except the last, and returns a contiguous matrix."""
    return x.contiguous().view(-1, x.shape[-1])


# ---- paged attention ----


def query_offsets(call):
    """Returns the input qo_indptr, which gives the offsets of each sequence's queries. If the definition has no input
    qo_indptr, each sequence has one query, and the offsets are 0, 1, 2 and so on."""
    if call.has("qo_indptr"):
        return call["qo_indptr"]
    return call.torch.arange(len(call["kv_indptr"]), device=call["kv_indptr"].device)


def page_counts(call):
    """Returns the number of pages of each sequence."""
    return call["kv_indptr"][1:] - call["kv_indptr"][:-1]


def last_page_len(call):
    """Returns the number of keys in each sequence's last page, which is 0 for a sequence without pages. If the
    definition has no input "last_page_len", all pages are full. The input "last_page_len" may have more elements than
    there are sequences."""
    pages = page_counts(call)
    lengths = call["last_page_len"][: len(pages)] if call.has("last_page_len") else call["k"].shape[1]
    return call.torch.where(pages > 0, lengths, 0)


def key_counts(call):
    """Returns the number of keys of each sequence."""
    pages = page_counts(call)
    return call.torch.where(pages > 0, (pages - 1) * call["k"].shape[1] + last_page_len(call), 0)


# ---- rope ----


def interleaved(call):
    """Does RoPE rotate the pairs (2i, 2i + 1) of elements, instead of the pairs (i, i + dim / 2)?"""
    if call.has("is_neox"):
        return not call["is_neox"]
    return bool(call.get("interleave", call.is_("interleaved")))


# ---- sampling ----


def filters_of(call):
    """Returns the roles of the definition's sampling filters in the order in which the filters apply."""
    return [role for role in ("top_k", "top_p", "min_p") if call.has(role)]


def kept_by_top_k(call):
    """Returns top_k as an int32 tensor, or as an int if the input is an int. A value below 1 or above the vocabulary
    size filters nothing, so the vocabulary size replaces it."""
    torch, top_k, vocabulary = call.torch, call["top_k"], call["probs"].shape[1]
    if not isinstance(top_k, torch.Tensor):
        return int(top_k) if 0 < top_k < vocabulary else vocabulary
    return torch.where((top_k > 0) & (top_k < vocabulary), top_k, vocabulary).to(torch.int32)


# ---- gated delta net ----


class GatedDelta:
    """A case of the op family gdn (gated delta net). `state`, `cu_seqlens` and `indices` may be None. `updates` is true
    if the operation writes new states to the state pool. `updates` is true by default; the input "frozen" or the
    constant "updates_state" can make it false."""

    def __init__(self, call):
        self.call = call
        self.q, self.k, self.v, self.a, self.b, self.a_log, self.dt_bias = (
            call[role] for role in ("q", "k", "v", "a", "b", "a_log", "dt_bias"))
        if self.q.shape != self.k.shape:  # libraries expect q and k to have the same shape
            self.q, self.k = (x.repeat_interleave(self.v.shape[-2] // x.shape[-2], dim=-2) for x in (self.q, self.k))
        self.state, self.cu_seqlens, self.indices = (call.get(role) for role in ("state", "cu_seqlens", "indices"))
        if self.indices is not None and self.state is None:
            raise Unavailable("the pool of states to which the indices refer is absent")
        self.scale = float(call.get("scale", 0)) or self.q.shape[-1] ** -0.5
        self.v_last = call.is_("v_last")  # if true, a state has the shape [K, V], else [V, K]
        self.l2norm = bool(call.get("l2norm", call.is_("l2norm")))
        self.updates = not call["frozen"] if call.has("frozen") else call.constants.get("updates_state") != 0

    def zero_state(self):
        """Returns a zero tensor of initial states, with the shape [sequences, heads, V, K]."""
        count = len(self.q) if self.cu_seqlens is None else len(self.cu_seqlens) - 1
        return self.call.torch.zeros(count, self.v.shape[-2], self.v.shape[-1], self.q.shape[-1], device=self.q.device)




# ---- mixture of experts ----


def has_block_scales(call):
    """Returns true if the case has the scales that 8-bit kernels require: scales for the hidden states, and one scale
    per block of 128 x 128 for the weights."""
    if not (call.has("hidden_scale") and call.has("scale1")):
        return False
    pairs = [(call["weights" + which], call["scale" + which]) for which in "12"]
    return all(list(w.shape[1:]) == [128 * blocks for blocks in s.shape[1:]] for w, s in pairs)


def spread(scale, shape):
    """Expands block scales to the shape `shape`, so that each element has its own scale."""
    for axis, (count, size) in enumerate(zip(scale.shape, shape)):
        scale = scale.repeat_interleave(size // max(count, 1), dim=axis)
    return scale


def tokens_first(call):
    """Returns the scales of the hidden states as [tokens, blocks]."""
    return call["hidden_scale"].t() if call.is_("blocks_first") else call["hidden_scale"]


def hidden_values(call):
    """Returns the hidden states in float32, multiplied by their scales."""
    hidden = call["hidden"].float()
    return hidden * spread(tokens_first(call).float(), hidden.shape) if call.has("hidden_scale") else hidden


def expert_values(call):
    """Returns the weights of both matrix products in float32, multiplied by their scales and by the factors of each
    expert. The first weight is [L, 2I, H]: the linear half, then the gate's half. The second weight is [L, H, I]."""
    torch, weights = call.torch, []
    for which in "12":
        w, scale = call["weights" + which].float(), call.get("scale" + which)
        weights.append(w if scale is None else w * spread(scale.float(), w.shape))
    if call.has("factor_up"):
        up, gate, down = (call["factor_" + part].float().view(-1, 1, 1) for part in ("up", "gate", "down"))
        half = weights[0].shape[1] // 2
        weights = [torch.cat([weights[0][:, :half] * up, weights[0][:, half:] * gate], dim=1), weights[1] * down]
    return weights


def choose_as_deepseek(call, logits, count):
    """Chooses experts for logits [T, E] as DeepSeek does, and returns (weights [T, count], experts [T, count]). From
    the best groups of experts, chooses the experts with the highest score plus bias. The weights are the scores without
    the bias, scaled so that their sum equals the scaling factor."""
    torch = call.torch
    scores = torch.sigmoid(logits.float())
    chosen = scores + call["bias"].float()
    groups, kept = expert_groups(call)
    if groups > 1:
        by_group = chosen.view(len(chosen), groups, -1)
        best = by_group.topk(2, dim=-1).values.sum(-1).topk(kept, dim=-1).indices
        mask = torch.zeros_like(by_group[..., 0]).scatter_(1, best, 1.0).bool()
        chosen = by_group.masked_fill(~mask.unsqueeze(-1), float("-inf")).flatten(1)
    experts = chosen.topk(count, dim=-1).indices
    weights = scores.gather(1, experts)
    return weights / (weights.sum(-1, keepdim=True) + 1e-20) * float(call.get("scaling", 1.0)), experts


def expert_groups(call):
    """Returns (number of expert groups, number of groups from which experts are chosen)."""
    return int(call.constant("groups", "n_group", 1)), int(call.constant("kept_groups", "topk_group", 1))


def choose_experts(call):
    """Chooses the experts as the definition does and returns (weights [T, K] in float32, experts [T, K]). A ground
    truth that calls this function does not check which experts the definition chooses, but only what the chosen experts
    compute."""
    torch = call.torch
    method = call.one_of("given", "deepseek", "renormalise", "llama4")
    if method == "given":
        if call.has("id_weights"):
            return call["id_weights"].float(), call["ids"]
        packed = call["ids"]
        return (packed & 0xFFFF).to(torch.int16).view(torch.bfloat16).float(), packed >> 16
    count, logits = int(call.constant("top_k")), call["logits"].float()
    if method == "renormalise":
        values, experts = torch.topk(logits, count, dim=-1)
        return torch.softmax(values, -1), experts
    if method == "llama4":
        return torch.topk(torch.sigmoid(logits), count, dim=-1)
    return choose_as_deepseek(call, logits, count)
