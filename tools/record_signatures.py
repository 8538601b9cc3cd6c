#!/usr/bin/env python3
"""Records the signatures of the library functions that workers/providers/ calls, out of wheels, without importing them:

    tools/record_signatures.py WHEEL… > tests/data/providers/signatures.json

tests/providers.py holds the tables against the record. Run it with the wheels of a new release: what differs in the record
is what changed in the API; a function that is no longer there ends it with a sentence."""

import ast
import json
import re
import sys
import zipfile

ATTENTION = ("__init__", "plan", "run")

# Distribution: (file that defines it, module that the tables import it from, names or {class: methods}).
WANTED = {
    "flashinfer-python": (
        ("flashinfer/decode.py", "flashinfer", {"BatchDecodeWithPagedKVCacheWrapper": ATTENTION}),
        ("flashinfer/prefill.py", "flashinfer", {"BatchPrefillWithPagedKVCacheWrapper": ATTENTION,
                                                 "BatchPrefillWithRaggedKVCacheWrapper": ATTENTION}),
        ("flashinfer/mla/_batch_mla/_wrapper.py", "flashinfer.mla", {"BatchMLAPagedAttentionWrapper": ATTENTION}),
        ("flashinfer/norm/__init__.py", "flashinfer.norm",
         ("rmsnorm", "fused_add_rmsnorm", "gemma_rmsnorm", "gemma_fused_add_rmsnorm", "layernorm")),
        ("flashinfer/activation.py", "flashinfer.activation", ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")),
        ("flashinfer/cascade.py", "flashinfer.cascade", ("merge_state", "merge_state_in_place", "merge_states")),
        ("flashinfer/page.py", "flashinfer.page", ("append_paged_kv_cache", "append_paged_mla_kv_cache")),
        ("flashinfer/rope.py", "flashinfer.rope",
         ("apply_rope_with_cos_sin_cache", "apply_rope_pos_ids", "apply_llama31_rope_pos_ids")),
        ("flashinfer/sampling.py", "flashinfer.sampling",
         ("sampling_from_probs", "top_k_sampling_from_probs", "top_p_sampling_from_probs", "min_p_sampling_from_probs",
          "top_k_top_p_sampling_from_probs", "top_k_renorm_probs", "top_p_renorm_probs", "softmax")),
        ("flashinfer/gdn_prefill.py", "flashinfer.gdn_prefill", ("chunk_gated_delta_rule",)),
        ("flashinfer/gdn_decode.py", "flashinfer.gdn_decode",
         ("gated_delta_rule_decode_pretranspose", "gated_delta_rule_mtp")),
        ("flashinfer/mamba/selective_state_update.py", "flashinfer.mamba", ("selective_state_update",)),
        ("flashinfer/fused_moe/core.py", "flashinfer.fused_moe", ("cutlass_fused_moe",)),
        ("flashinfer/fused_moe/fused_routing_dsv3.py", "flashinfer.fused_moe", ("fused_topk_deepseek",)),
        ("flashinfer/jit/core.py", "flashinfer.jit.core", {"JitSpec": ("build_and_load",)}),
    ),
    "fla-core": (
        ("fla/ops/gated_delta_rule/chunk.py", "fla.ops.gated_delta_rule", ("chunk_gated_delta_rule",)),
        ("fla/ops/gated_delta_rule/fused_recurrent.py", "fla.ops.gated_delta_rule", ("fused_recurrent_gated_delta_rule",)),
        ("fla/ops/gated_delta_rule/naive.py", "fla.ops.gated_delta_rule.naive", ("naive_recurrent_gated_delta_rule",)),
        ("fla/ops/gla/chunk.py", "fla.ops.gla", ("chunk_gla",)),
        ("fla/ops/gla/fused_recurrent.py", "fla.ops.gla", ("fused_recurrent_gla",)),
        ("fla/ops/gla/naive.py", "fla.ops.gla.naive", ("naive_recurrent_gla",)),
        ("fla/ops/simple_gla/chunk.py", "fla.ops.simple_gla", ("chunk_simple_gla",)),
        ("fla/ops/simple_gla/fused_recurrent.py", "fla.ops.simple_gla", ("fused_recurrent_simple_gla",)),
        ("fla/ops/simple_gla/naive.py", "fla.ops.simple_gla.naive", ("naive_recurrent_simple_gla",)),
        ("fla/ops/delta_rule/chunk.py", "fla.ops.delta_rule", ("chunk_delta_rule",)),
        ("fla/ops/delta_rule/fused_recurrent.py", "fla.ops.delta_rule", ("fused_recurrent_delta_rule",)),
        ("fla/ops/delta_rule/naive.py", "fla.ops.delta_rule.naive", ("delta_rule_recurrence",)),
        ("fla/ops/kda/chunk.py", "fla.ops.kda", ("chunk_kda",)),
        ("fla/ops/kda/fused_recurrent.py", "fla.ops.kda", ("fused_recurrent_kda",)),
        ("fla/ops/kda/naive.py", "fla.ops.kda.naive", ("naive_recurrent_kda",)),
        ("fla/ops/kda/gate.py", "fla.ops.kda.gate", ("naive_kda_gate", "naive_kda_lowerbound_gate")),
    ),
    "sglang": (
        ("sglang/srt/layers/moe/moe_runner/triton_utils/fused_moe.py",
         "sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe", ("fused_experts_impl",)),
        ("sglang/kernels/ops/attention/linear/fused_sigmoid_gating_recurrent.py",
         "sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent", ("fused_sigmoid_gating_delta_rule_update",)),
        ("sglang/kernels/ops/mamba/triton_ops/mamba_ssm.py", "sglang.kernels.ops.mamba.triton_ops.mamba_ssm",
         ("selective_state_update",)),
    ),
    "sglang-kernel": (
        ("sgl_kernel/elementwise.py", "sgl_kernel",
         ("rmsnorm", "fused_add_rmsnorm", "gemma_rmsnorm", "gemma_fused_add_rmsnorm", "silu_and_mul", "gelu_and_mul",
          "gelu_tanh_and_mul")),
        ("sgl_kernel/attention.py", "sgl_kernel", ("merge_state_v2",)),
        ("sgl_kernel/sampling.py", "sgl_kernel.sampling", ("top_k_renorm_probs", "top_p_renorm_probs")),
        ("sgl_kernel/flash_attn.py", "sgl_kernel.flash_attn", ("flash_attn_with_kvcache", "flash_attn_varlen_func")),
    ),
}


def parameters_of(function):
    """"x", "x=" with a default, "*" where keywords begin, "*rest", "**words"."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = len(plain) - len(arguments.defaults)
    out = [a.arg + ("" if i < needed else "=") for i, a in enumerate(plain)]
    if arguments.vararg:
        out.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        out.append("*")
    out += [a.arg + ("" if d is None else "=") for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return out + (["**" + arguments.kwarg.arg] if arguments.kwarg else [])


def is_overload(function):
    return any("overload" in ast.unparse(d) for d in function.decorator_list)


def definition_in(body, name):
    """The last function or class of this name at this level, which is the one that counts; overloads aside."""
    found = None
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            if isinstance(node, ast.ClassDef) or not is_overload(node):
                found = node
        elif isinstance(node, (ast.If, ast.Try)):
            found = definition_in(node.body, name) or definition_in(node.orelse, name) or found
    return found


def handed_on(wheel, module, name):
    """Does the module that tables import it from have the name?"""
    for path in (module.replace(".", "/") + ".py", module.replace(".", "/") + "/__init__.py"):
        if path not in wheel.namelist():
            continue
        source = ast.parse(wheel.read(path))
        if definition_in(source.body, name) is not None:
            return True
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) in (name, "*") for a in node.names):
                return True
    return False


def record(wheel, distribution):
    functions = {}
    for path, module, names in WANTED[distribution]:
        source = ast.parse(wheel.read(path))
        for name in names:
            found = definition_in(source.body, name)
            if found is None or not handed_on(wheel, module, name):
                sys.exit("%s: %s is not where the tables look for it, %s" % (wheel.filename, name, module))
            if isinstance(found, ast.ClassDef):
                functions[module + ":" + name] = {
                    method: parameters_of(definition_in(found.body, method)) for method in names[name]}
            else:
                functions[module + ":" + name] = parameters_of(found)
    return functions


def main():
    out = {}
    for path in sys.argv[1:]:
        with zipfile.ZipFile(path) as wheel:
            metadata = next(n for n in wheel.namelist() if re.fullmatch(r"[^/]*\.dist-info/METADATA", n))
            text = wheel.read(metadata).decode("utf-8", "replace")
            name, version = (re.search(r"^%s: (.*)$" % key, text, re.M).group(1).strip() for key in ("Name", "Version"))
            if name not in WANTED:
                sys.exit("%s: no table calls %s" % (path, name))
            out[name] = {"version": version, "functions": record(wheel, name)}
    print(json.dumps(out, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
