#!/usr/bin/env python3
"""The tables of workers/providers/ against recorded signatures (tests/data/signatures.json, made from the real wheels by
tools/record_signatures.py): every row is called, on the CPU, on inputs of the starter definitions' shapes, with
the libraries' functions replaced by stand-ins that take what the record says and nothing else. Then signatures are changed,
one at a time, and each change must be noticed; as must be a name that nothing asks for. TAP on standard output. Needs
torch."""

import contextlib
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
OWNS = {"get_context": "RuntimeContext", "get_parallel": "ParallelContext"}  # functions that give an object of a class beside them
UNREACHED = {"flashinfer.jit.core:JitSpec.build_and_load"}  # wrapped by on_import, called by the library


HANDED = []  # what stand-ins were called with


class Reached(Exception):
    """A function whose result would matter has been called as its signature allows."""


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def stand_in(name, takes, called, role):
    """A function of a module, or with the role "method" or "__init__" one of a class."""
    signature = recorded.signature(takes)  # what **words takes is what nobody has looked at
    signature = signature.replace(parameters=[p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD])
    last = role if role == "__init__" else re.split("[.:]", name)[-1]
    itself = 0 if role == "function" else 1

    def function(*args, **given):
        signature.bind(*args[itself:], **given)  # TypeError: the table calls it otherwise
        called.add(name)
        HANDED.append((name, args[itself:], given))
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
    """The module of this name; it and those above it are made where they are not there yet."""
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
        above, _, last = name.rpartition(".")
        if above:
            setattr(module_of(above), last, sys.modules[name])
    return sys.modules[name]


def install(known, called):
    """Modules of nothing but stand-ins; whatever was there under these names goes."""
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


def variant_of(family, name):
    if family == "activation":
        return 2 if "gelu_tanh" in name else 1 if "gelu" in name else 0
    if family == "cascade":
        return 1 if "merge_states" in name else 0
    if family == "dsa_paged":
        return 1 if "indexer" in name else 0
    if family == "gdn":
        return 2 if "l2norm" in name else 0
    if family == "moe":
        method = 0 if "routed" in name else 1 if "ds_routing" in name else 2 if "renorm" in name else 3
        return method | (4 if "llama4" in name else 0)
    if family == "rope":
        return ("cos_sin_cache" in name) | 2 * ("interleaved" in name) | 4 * ("llama31" in name)
    if family == "sampling":
        return ("top_k" in name) | 2 * ("top_p" in name) | 4 * ("min_p" in name) | 8 * ("renorm" in name)
    if family in ("gla", "simple_gla", "delta_rule", "gated_delta_rule", "kda"):
        return 8 * ("v_first" in name) | 16 * ("l2norm" in name) | 32 * ("beta_sigmoid" in name)
    if family in ("gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged"):
        return int("causal" in name and "decode" not in name)
    return 0


SMALL = {"batch_size": 2, "num_seqs": 2, "len_indptr": 3, "len_cu_seqlens": 3, "seq_len": 2}
CONSTANTS = {"eps": 1e-6, "rope_theta": 1e4, "rope_scale": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "old_context_len": 8192, "top_k": 4, "n_group": 8, "topk_group": 4, "updates_state": 0.0}


def value_of(torch, name, spec, sizes):
    if spec["shape"] is None:
        return {"bool": True, "int32": 0, "int64": 0}.get(spec["dtype"], 0.5)
    shape = [sizes[axis] for axis in spec["shape"]]
    dtype = getattr(torch, spec["dtype"])
    if "indptr" in name or "cu_seqlens" in name:
        return torch.arange(0, 2 * shape[0], 2, dtype=dtype)
    if "last_page" in name:
        return torch.ones(shape, dtype=dtype)
    if "indices" in name and len(shape) == 1:
        return torch.arange(shape[0], dtype=dtype)
    if dtype.is_floating_point:
        return torch.ones(shape).to(dtype)
    return torch.zeros(shape, dtype=dtype)


def calls(torch, common, only):
    """(family, Call) of each starter definition, on small inputs; of these families alone, or with None of all."""
    for path in sorted(glob.glob(os.path.join(TOP, "definitions", "*", "*.json"))):
        with open(path, encoding="utf-8") as file:
            definition = json.load(file)
        family, name = definition["op_type"], definition["name"]
        if only is not None and family not in only:
            continue
        sizes = {axis: spec.get("value", SMALL.get(axis, 4)) for axis, spec in definition["axes"].items()}
        inputs = {n: value_of(torch, n, spec, sizes) for n, spec in definition["inputs"].items()}
        outputs = [{"name": n, "dtype": spec["dtype"], "shape": [sizes[axis] for axis in spec["shape"]]}
                   for n, spec in definition["outputs"].items()]
        axes_of = {n: spec["shape"] or [] for n, spec in (definition["inputs"] | definition["outputs"]).items()}
        request = {"family": family, "variant": variant_of(family, name), "name": name, "op_type": family,
                   "tags": definition.get("tags", []), "axes": sizes, "axes_of": axes_of, "constants": CONSTANTS, "outputs": outputs,
                   "inputs": [{"name": n} for n in inputs]}
        yield family, lambda: common.Call(torch, request, {n: x.clone() if hasattr(x, "clone") else x
                                                           for n, x in inputs.items()}, "cpu")


def run_all(torch, common, tables, known, only=None):
    """Functions that were called and by which families, rows that called one, and sentences on what went wrong."""
    called, by_family, reached, wrong = set(), {}, set(), []
    install(known, called)
    for family, make in calls(torch, common, only):
        for table in tables:
            row = table.rows.get(family)
            if row is None:
                continue
            called.clear()
            for device in ("cpu", "cuda") if row.cpu else ("cuda",):
                call = make()
                call.device = Device(device)
                try:
                    row.call(call)
                    reached.add((table.name, family))
                except Reached:
                    reached.add((table.name, family))
                except common.Unavailable:
                    pass
                except Exception as problem:
                    wrong.append("%s, %s: %s: %s" % (table.name, call.name, type(problem).__name__, problem))
            for name in called:
                by_family.setdefault(name, set()).add(family)
    return by_family, reached, wrong


class Device(str):
    """What a table takes for a GPU, while torch makes tensors on the CPU: compared by its own name alone."""

    def __new__(cls, name):
        device = super().__new__(cls, "cpu")
        device.name = name
        return device

    def __eq__(self, other):
        return self.name == other

    __hash__ = str.__hash__


# By keyword, so that another name is noticed like none.
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
    """{name: what it takes} of all libraries but one, as the tables ask for them: sgl_kernel was sglang_kernel's name."""
    known = {}
    present = {library: entry for library, entry in record.items() if library != absent}
    for library, names in recorded.asked_by("providers", present).items():
        assert not known.keys() & names.keys(), "%s has names that another library has, too" % library
        known |= names
    return known


def plants(record):
    """What was changed, and the function of which that is."""
    for name, parameter in PLANTED:
        yield "%s without '%s'" % (name, parameter), name, recorded.changed(record, name, parameter)
        yield "%s with '%s' renamed" % (name, parameter), name, recorded.changed(record, name, parameter, "renamed_")
        yield "no %s" % name, name, recorded.changed(record, name)


def misrecorded(record):
    """Names for which others ask than the recorder would say, or which it looks for and no library had."""
    recorder = load("record_signatures", os.path.join(TOP, "tools", "record_signatures.py"))
    recorded_names = {name for entry in record.values() for name in entry["signatures"]}
    wanted = recorder.asked()
    for name in wanted.keys() - recorded_names:
        yield "%s is in no library's record" % name
    for library, entry in record.items():
        for name, told in entry["signatures"].items():
            owner = name.rpartition(".")[0] if "." in name.partition(":")[2] else name
            if told["asked_by"] != wanted.get(name, wanted.get(owner)):
                yield "%s: %s: %s" % (library, name, told["asked_by"])


def unheeded():
    """Files of which an answer depends and whose change is not in the version that a provider goes by."""

    def version(folder):
        told = subprocess.run([sys.executable, os.path.join(folder, "provider.py"), "--matrix", "cpu"], check=True,
                              stdout=subprocess.PIPE)
        return next(one["version"] for one in json.loads(told.stdout)["providers"] if one["name"] == "torch")

    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "workers")
        shutil.copytree(os.path.join(TOP, "workers"), folder)
        before = version(folder)
        for name in ("provider.py", "runner.py", "gradients.py", "providers/common.py", "providers/parts.py",
                     "providers/torch.py"):
            with open(os.path.join(folder, name), "a", encoding="utf-8") as file:
                file.write("# changed\n")
            after = version(folder)
            if after == before:
                yield name
            before = after


def gradients_leave(torch):
    """What is different in torch after gradients were taken of a call, or of one that raises, in float64."""
    runner = load("reftest_runner", os.path.join(TOP, "workers", "runner.py"))
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


def padding_kept(torch, common, tables):
    """Rows that leave in the output of padding what the library wrote there, or never get as far."""

    def update(state, x, *rest, out=None, **words):
        return torch.ones_like(x) if out is None else out.fill_(1)

    for name in ("flashinfer.mamba", "sglang.kernels.ops.mamba.triton_ops.mamba_ssm"):
        module_of(name).selective_state_update = update
    asked = set()
    for _, make in calls(torch, common, {"mamba_ssu"}):
        for table in tables:
            row, call = table.rows.get("mamba_ssu"), make()
            slots, pad = call.with_word("indices"), call.scalar("pad_slot")
            if row is None or slots is None:
                continue
            slots[-1] = -1 if pad is None else int(pad)
            slots[:-1] = slots[-1] + 1
            call.device = Device("cuda")
            output = row.call(call)[0]
            asked.add(table.name)
            if not bool((output[:-1] == 1).all()) or bool(output[-1].any()):
                yield "%s of %s" % (table.name, call.name)
    yield from {"flashinfer", "sglang"} - asked


def packed_needs_no_top_k(torch, common, tables):
    """Of experts whose routing comes packed, sentences of tables that want to know how many there are."""
    for _, make in calls(torch, common, {"moe"}):
        for table in tables:
            call = make()
            if table.name != "sglang" or call.variant & 3 != 0:
                continue
            call.device, call.constants = Device("cuda"), {}
            try:
                table.rows["moe"].call(call)
            except Reached:
                continue
            except common.Unavailable as why:
                yield "%s: %s" % (call.name, why)


def turned_round(call):
    """The same with its inputs and outputs the other way about, offsets called otherwise."""
    names = {"qo_indptr": "cu_seqlens_q", "kv_indptr": "cu_seqlens_k", "kv_indices": "page_indices"}
    call.inputs = {names.get(name, name): x for name, x in reversed(call.inputs.items())}
    call.outputs = dict(reversed(call.outputs.items()))
    return call


def told_by_place(torch, common, tables):
    """Rows of attention that hand a library something else when a definition has its parts in another order."""
    families = {"dsa_paged", "gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged"}
    for family, make in calls(torch, common, families):
        values = {name: torch.rand(x.shape).to(x.dtype) for name, x in make().inputs.items()
                  if isinstance(x, torch.Tensor) and x.is_floating_point()}
        for table in tables:
            handed = []
            for change in (lambda call: call, turned_round):
                call = make()
                call.inputs.update(values)
                call, row = change(call), table.rows.get(family)
                call.device = Device("cuda")
                HANDED.clear()
                try:
                    if row is not None:
                        row.call(call)
                except Exception as end:  # Reached, or what comes of a part that was not found
                    HANDED.append((type(end).__name__, (), {}))
                handed.append([(name, [x for x in args if not torch.is_tensor(x) or x.dtype != torch.uint8], given)
                               for name, args, given in HANDED])  # a workspace holds whatever was there
            if str(handed[0]) != str(handed[1]):
                yield "%s of %s" % (table.name, call.name)


def experts_misread(torch, common, tables):
    """Tables of experts that overlook what other definitions than the starters have: groups that are inputs, scales of
    hidden states by token first, tensors that are known by no name."""
    make = next(make for _, make in calls(torch, common, {"moe"}) if "ng8" in make().name)

    def numbers_given(call):
        call.constants = {}
        given = {"top_k": 6, "num_expert_group": 8, "topk_group": 4, "scaling_factor": 2.5, "expert_offset": 0}
        call.inputs = {name: x for name, x in call.inputs.items() if torch.is_tensor(x)} | given

    def tokens_first(call):
        call.inputs["hidden_states_scale"] = call["hidden_states_scale"].t().contiguous()
        call.axes_of = dict(call.axes_of, hidden_states_scale=call.axes_of["hidden_states_scale"][::-1])

    def unknown(call):
        call.inputs["gemm1_weight_scales"] = call.inputs.pop("gemm1_weights_scale")

    for table in (table for table in tables if table.name in ("flashinfer", "sglang")):
        handed = []
        for change in (lambda call: None, numbers_given, tokens_first, unknown):
            call = make()
            call.device, call.constants = Device("cuda"), {"top_k": 6, "n_group": 8, "topk_group": 4}
            call.inputs.update(routed_scaling_factor=2.5, local_expert_offset=0)
            call["hidden_states_scale"].copy_(torch.arange(call["hidden_states_scale"].numel()).view(4, -1))
            bias = torch.zeros(len(call["routing_bias"]))
            bias[0], bias[32::4] = 3, 2  # the best is in none of the best groups
            call["routing_bias"].copy_(bias)
            change(call)
            HANDED.clear()
            try:
                table.rows["moe"].call(call)
            except Reached:
                pass
            except Exception as end:
                HANDED[:] = [(type(end).__name__, (), {})]
            # Not what fused_topk_deepseek, which is none, left of empty tensors.
            handed.append(str([(name, args[:1] if "fused_moe:cutlass" in name else args[:6]) for name, args, _ in HANDED
                               if "fused_topk" in name or "fused_moe" in name or name == "Unavailable"]))
        if handed[1:3] != handed[:1] * 2 or "Unavailable" not in handed[3]:
            yield "%s: %s" % (table.name, [one == handed[0] for one in handed])


OTHER_NAMES = {"q": "query", "k": "key", "v": "value", "cu_seqlens": "qo_indptr", "A_log": "log_decay", "scale": "Scale",
               "state_batch_indices": "slots", "pad_slot_id": "padding"}


def states_misread(torch, common, tables):
    """Rows of gdn and mamba_ssu that hand a library something else when a definition has other names and another order: what
    is optional and absent first, indices with "state" in their names before states."""

    def turned(call):
        inputs = {OTHER_NAMES.get(name, name): x for name, x in reversed(call.inputs.items())}
        if call.family == "mamba_ssu":
            inputs["pool"] = inputs.pop("state")
        call.inputs = {"intermediate_states_buffer": None} | inputs

    seen, rows = set(), {(t.name, family) for t in tables for family in ("gdn", "mamba_ssu") if family in t.rows}
    for family, make in calls(torch, common, {"gdn", "mamba_ssu"}):
        for table in (table for table in tables if (table.name, family) in rows):
            handed = []
            for change in (lambda call: None, turned):
                call = make()
                call.device = Device("cuda")
                for number, (name, x) in enumerate(call.inputs.items(), 2):
                    call.inputs[name] = x * 0 + number if getattr(x, "dtype", torch.int32).is_floating_point else x
                if "pad_slot_id" in call.inputs:
                    call.inputs["pad_slot_id"] = -3
                change(call)
                HANDED.clear()
                try:
                    table.rows[family].call(call)
                except Reached:
                    seen.add((table.name, family))
                except Exception as end:
                    HANDED.append((type(end).__name__, (), {}))
                # But for memory that holds whatever was there.
                handed.append(str([(name, args, {word: x for word, x in given.items() if "buffer" not in word})
                                   for name, args, given in HANDED]))
            if handed[0] != handed[1]:
                yield "%s of %s" % (table.name, call.name)
    yield from map(str, rows - seen)


def heads_misread(torch, common, tables):
    """Rows of gdn that hand a library q and k of different heads, or a value head those of another."""
    for _, make in calls(torch, common, {"gdn"}):
        for table in (table for table in tables if "gdn" in table.rows):
            call, v = make(), make()["v"]
            call.device = Device("cuda")
            if "use_qk_l2norm" in call.inputs:
                call.inputs["use_qk_l2norm"] = False
            ones, numbers = torch.ones_like(v), torch.arange(v.shape[-2]).view(-1, 1)
            call.inputs.update(q=ones[..., ::2, :] * numbers[: v.shape[-2] // 2].to(v), k=ones * numbers.to(v))
            HANDED.clear()
            with contextlib.suppress(Reached):
                table.rows["gdn"].call(call)
            handed = [x.flatten(0, -3) for x in (*HANDED[-1][1], *HANDED[-1][2].values())
                      if torch.is_tensor(x) and x.shape[-2:] == v.shape[-2:]][:2]
            wanted = [(ones * x).flatten(0, -3) for x in (numbers // 2, numbers)]
            if any(x.shape != y.shape or (x != y).any() for x, y in zip(handed, wanted)):
                yield "%s of %s" % (table.name, call.name)


def named_otherwise(torch, common, tables):
    """Rows that give a definition's outputs by their places where names tell, or pass over numbers that other names have."""

    def starter(family, part):
        return next(make for _, make in calls(torch, common, {family}) if part in make().name)()

    def renamed(call):
        """Words of one part in the name of another, or in none."""
        names = {"probs": "top_k_probs", "bias": "shift", "logits": "logits_of_temperature", "cos_sin_cache": "cos_sin"}
        call.axes_of = {names.get(name, name): axes for name, axes in call.axes_of.items()}
        call.inputs = {names.get(name, name): x for name, x in call.inputs.items()}

    def weights_first(call):
        """Vectors before what they belong to, in their order."""
        call.inputs = dict(sorted(call.inputs.items(), key=lambda item: item[1].dim()))

    def answer(table, call):
        call.device = Device("cuda")
        HANDED.clear()
        try:
            return next(t for t in tables if t.name == table).rows[call.family].call(call)
        except (Reached, StopIteration):
            return None

    for table in ("flashinfer", "sgl_kernel"):
        call = starter("rmsnorm", "fused_add")
        call.outputs = dict(reversed(call.outputs.items()))
        call.inputs["residual"] = call["residual"] * 2  # and so is what stand-ins leave there
        if [float(x.mean()) for x in answer(table, call)] != [2, 1]:
            yield "%s: rmsnorm" % table
    call = starter("cascade", "merge_state_in_place")
    call.inputs = {name: call[name] for name in sorted(call.inputs, reverse=True)}  # v_b, v_a, s_b, s_a, mask
    call.inputs["mask"] = call.inputs["mask"].to(torch.uint8)
    call.outputs = dict(reversed(call.outputs.items()))
    answer("flashinfer", call)
    handed = [(x.dim(), str(x.dtype)) for x in HANDED[-1][1]] if HANDED else []
    if handed != [(3, "torch.float16"), (2, "torch.float32")] * 2 + [(1, "torch.bool")]:
        yield "cascade: %s" % handed
    call = starter("gdn", "decode")
    call.outputs = dict(reversed(call.outputs.items()))
    module_of("flashinfer.gdn_decode").gated_delta_rule_decode_pretranspose = lambda *args, **words: (
        torch.ones(2), torch.full((2,), 2.0))  # of one shape
    if [float(x.mean()) for x in answer("flashinfer", call)] != [2, 1]:
        yield "gdn"
    call = starter("page", "kv8_d128_ps16")
    call["v_cache"].fill_(2)
    call.outputs = dict(reversed(call.outputs.items()))
    if [float(x.mean()) for x in answer("flashinfer", call)] != [2, 1]:
        yield "page"
    for table in ("flashinfer", "sgl_kernel"):
        call = starter("sampling", "top_k_renorm")
        call["top_k"][:] = torch.arange(len(call["top_k"])) - len(call["top_k"]) + 1  # down from 0, which keep all
        answer(table, call)
        if HANDED[-1][1][1].tolist() != [call["probs"].shape[1]] * len(call["top_k"]):
            yield "%s: top-k of %s" % (table, HANDED[-1][1][1])
    for family, names in (("sampling", ("flashinfer", "sgl_kernel")), ("layernorm", ("flashinfer",)), ("softmax", ("flashinfer",)),
                          ("rope", ("flashinfer",))):
        for table in names:
            handed = []
            for change in (lambda call: None, renamed, weights_first):
                call = starter(family, {"sampling": "top_k_renorm", "rope": "cos_sin", "softmax": "v128256"}.get(family, family))
                for number, (name, x) in enumerate(call.inputs.items(), 2):
                    call.inputs[name] = x * 0 + number if torch.is_tensor(x) else x
                change(call)
                with contextlib.suppress(common.Unavailable):
                    answer(table, call)
                handed.append(str(HANDED))
            if len(set(handed)) > 1 or handed[0] == "[]":
                yield "%s: %s by another name and in another place" % (table, family)
    call = starter("softmax", "e256")
    logits = next(iter(call.inputs))
    call.inputs[logits] = call[logits].view(2, -1, 256)  # FlashInfer takes rows
    answer("flashinfer", call)
    if not HANDED or HANDED[-1][1][0].dim() != 2:
        yield "softmax"
    (compiled,) = (t for t in tables if t.name == "sgl_kernel")
    if not any("flashinfer-python" in need.names for need in compiled.needs):
        yield "sgl_kernel: its version does not tell whether FlashInfer is there, on which its answers depend"
    call = starter("gqa_ragged", "causal")
    call.outputs, names = dict(reversed(call.outputs.items())), list(call.outputs)
    results = [torch.zeros(spec["shape"]) for spec in reversed(call.outputs.values())]
    if [list(x.shape) for x in call.cut(*results)] != [call.outputs[n]["shape"] for n in reversed(names)] or list(
            call.order) != [1, 0]:
        yield "cut: %s" % list(call.order)
    call = starter("rope", "rope_pos_ids_h32")
    call.axes, call.inputs["scale"] = dict(call.axes, rotary_dim=64), 3.0
    answer("flashinfer", call)
    if (HANDED[-1][2]["rotary_dim"], HANDED[-1][2]["rope_scale"]) != (64, 3.0):
        yield "rope: %s" % HANDED[-1][2]


def second_hand(torch, common, tables):
    """Rows of sgl_kernel that hand on to FlashInfer's kernels and count as a witness of their own."""
    for name in ("sgl_kernel.elementwise", "sgl_kernel.sampling"):
        module_of(name)._has_flashinfer = True
    (table,) = (table for table in tables if table.name == "sgl_kernel")
    for family, make in calls(torch, common, {"rmsnorm", "gemma_rmsnorm", "sampling"}):
        call = make()
        call.device = Device("cuda")
        try:
            table.rows[family].call(call)
        except common.Unavailable:
            continue
        except Reached:
            pass
        yield "%s of %s" % (family, call.name)


def main():
    import torch

    common = load("reftest_providers", os.path.join(TOP, "workers", "providers", "common.py"))
    load("reftest_parts", os.path.join(TOP, "workers", "providers", "parts.py")).torch = torch
    tables = []
    for name in ("flashinfer", "sglang", "fla"):
        tables += load("reftest_provider_" + name, os.path.join(TOP, "workers", "providers", name + ".py")).TABLES
    record = recorded.load()
    print("1..%d" % (17 + 3 * len(PLANTED)))
    called, reached, wrong = run_all(torch, common, tables, known_of(record))
    _, reached_older, wrong_older = run_all(torch, common, tables, known_of(record, "sglang_kernel"))
    number = 0

    def tell(ok, what, details=()):
        nonlocal number
        number += 1
        print("%s %d - %s" % ("ok" if ok else "not ok", number, what))
        for line in details:
            print("# " + line)
        return ok

    def uncalled(record):
        return sorted(known_of(record).keys() - called.keys() - UNREACHED)

    rows = {(t.name, f) for t in tables for f in t.rows} - reached
    lost = recorded.unasked(record) + sorted(misrecorded(record))
    good = tell(not wrong, "every call fits the recorded signature", wrong)
    good &= tell(not wrong_older and reached_older == reached, "and that of the older sgl_kernel", wrong_older)
    good &= tell(not uncalled(record), "every recorded function is called by a table", uncalled(record))
    good &= tell(not rows, "every row calls its library for some starter definition", ["%s %s" % r for r in sorted(rows)])
    good &= tell(not lost, "of every recorded function it is known who asks for it", lost)
    of_table, of_nobody = (recorded.one_more(record, "flashinfer_python", NOBODYS, *who) for who in (["providers"], []))
    good &= tell(uncalled(of_table) == [NOBODYS], "a function that no table calls is noticed")
    good &= tell(recorded.unasked(of_nobody) == [NOBODYS] and any(misrecorded(of_nobody)), "so is one that nobody asks for")
    same = list(unheeded())
    good &= tell(not same, "a provider's version changes with each file that its answers depend on", same)
    left = list(gradients_leave(torch))
    good &= tell(not left, "taking gradients leaves torch as it was", left)
    kept = list(padding_kept(torch, common, tables))
    good &= tell(not kept, "of padding the output is 0, whatever a kernel writes there", kept)
    install(known_of(record), set())
    counted = list(packed_needs_no_top_k(torch, common, tables))
    good &= tell(not counted, "packed routing says by itself how many experts a token has", counted)
    handed = list(second_hand(torch, common, tables))
    good &= tell(not handed, "what hands on to FlashInfer is no second witness", handed)
    by_place = list(told_by_place(torch, common, tables))
    good &= tell(not by_place, "what a library is handed of attention is not told by its place", by_place)
    misread = list(experts_misread(torch, common, tables))
    good &= tell(not misread, "of experts nothing is overlooked that a definition says otherwise", misread)
    install(known_of(record), set())
    mistaken = list(states_misread(torch, common, tables))
    good &= tell(not mistaken, "states, slots and what belongs to them are told as their families tell them", mistaken)
    mistaken = list(heads_misread(torch, common, tables))
    good &= tell(not mistaken, "where q and k have heads of their own, each value head has those of its group", mistaken)
    otherwise = list(named_otherwise(torch, common, tables))
    good &= tell(not otherwise, "outputs and numbers go by the names that their families go by", otherwise)
    for what, name, changed in plants(record):
        _, _, noticed = run_all(torch, common, tables, known_of(changed), called.get(name, set()))
        good &= tell(bool(noticed) and not wrong, what + " is noticed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
