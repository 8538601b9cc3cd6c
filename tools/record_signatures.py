#!/usr/bin/env python3
"""record_signatures - records the signatures of the library functions that the tables in python/libraries/ call. The
script reads the signatures from the wheels of the libraries, runs none of their code, and writes the signatures to
tests/data/signatures.json:

    pip download --no-deps -d DIR flashinfer-python fla-core sglang sglang-kernel sgl-kernel
    tools/record_signatures.py DIR/*.whl

tests/data/signatures.json has the version of each library, and the parameters and callers of each function and class in
NAMES. The caller "providers" means the tables in python/libraries/, which tests/providers.py compares with this record.
If the wheel of a library is given, the record of this library is replaced; other records stay. A changed record means
that the library's API has changed. If a wheel lacks a name in NAMES, the script fails. If the missing name is marked
"optional", the script only reports it, because the table itself checks whether the library has the name. Some
parameters cannot be read from the source: those that a function collects in **kwargs, and those of a class that is
created when its module is imported. NAMES then has the parameters in parentheses after the name of the function or
class; the script records these parameters, and only checks that the function or class exists.

If a table calls a new function, add the function to NAMES.
"""

import ast
import json
import pathlib
import sys
import zipfile

RECORD = pathlib.Path(__file__).resolve().parents[1] / "tests/data/signatures.json"
NAMES = """
    fla.modules.norm.layernorm:rms_norm  providers
    fla.ops.delta_rule.naive:delta_rule_recurrence  providers
    fla.ops.delta_rule:chunk_delta_rule  providers
    fla.ops.delta_rule:fused_recurrent_delta_rule  providers
    fla.ops.gated_delta_rule.naive:naive_recurrent_gated_delta_rule  providers
    fla.ops.gated_delta_rule:chunk_gated_delta_rule  providers
    fla.ops.gated_delta_rule:fused_recurrent_gated_delta_rule  providers
    fla.ops.gla.naive:naive_recurrent_gla  providers
    fla.ops.gla:chunk_gla  providers
    fla.ops.gla:fused_recurrent_gla  providers
    fla.ops.kda.gate:naive_kda_gate  providers
    fla.ops.kda.gate:naive_kda_lowerbound_gate  providers
    fla.ops.kda.naive:naive_recurrent_kda  providers
    fla.ops.kda:chunk_kda  providers
    fla.ops.kda:fused_recurrent_kda  providers
    fla.ops.simple_gla.naive:naive_recurrent_simple_gla  providers
    fla.ops.simple_gla:chunk_simple_gla  providers
    fla.ops.simple_gla:fused_recurrent_simple_gla  providers
    flashinfer.activation:gelu_and_mul  providers
    flashinfer.activation:gelu_tanh_and_mul  providers
    flashinfer.activation:silu_and_mul  providers
    flashinfer.cascade:merge_state  providers
    flashinfer.cascade:merge_state_in_place  providers
    flashinfer.cascade:merge_states  providers
    flashinfer.fused_moe:cutlass_fused_moe  providers
    flashinfer.fused_moe:fused_topk_deepseek  providers
    flashinfer.fused_moe:trtllm_fp8_block_scale_moe  providers
    flashinfer.gdn_decode:gated_delta_rule_decode_pretranspose  providers
    flashinfer.gdn_decode:gated_delta_rule_mtp  providers
    flashinfer.gdn_prefill:chunk_gated_delta_rule  providers
    flashinfer.jit.core:JitSpec.build_and_load  providers
    flashinfer.mamba:selective_state_update  providers
    flashinfer.mla:BatchMLAPagedAttentionWrapper  providers
    flashinfer.norm:fused_add_rmsnorm  providers
    flashinfer.norm:gemma_fused_add_rmsnorm  providers
    flashinfer.norm:gemma_rmsnorm  providers
    flashinfer.norm:layernorm  providers
    flashinfer.norm:rmsnorm  providers
    flashinfer.page:append_paged_kv_cache  providers
    flashinfer.page:append_paged_mla_kv_cache  providers
    flashinfer.quantization:per_token_group_quant_8bit  providers
    flashinfer.rope:apply_llama31_rope_pos_ids  providers
    flashinfer.rope:apply_rope_pos_ids  providers
    flashinfer.rope:apply_rope_with_cos_sin_cache  providers
    flashinfer.sampling:min_p_sampling_from_probs  providers
    flashinfer.sampling:sampling_from_probs  providers
    flashinfer.sampling:softmax  providers
    flashinfer.sampling:top_k_mask_logits  providers
    flashinfer.sampling:top_k_renorm_probs  providers
    flashinfer.sampling:top_k_sampling_from_probs  providers
    flashinfer.sampling:top_k_top_p_sampling_from_probs  providers
    flashinfer.sampling:top_p_renorm_probs  providers
    flashinfer.sampling:top_p_sampling_from_probs  providers
    flashinfer:BatchDecodeWithPagedKVCacheWrapper  providers
    flashinfer:BatchPrefillWithPagedKVCacheWrapper  providers
    flashinfer:BatchPrefillWithRaggedKVCacheWrapper  providers
    sgl_kernel.flash_attn:flash_attn_varlen_func  providers
    sgl_kernel.flash_attn:flash_attn_with_kvcache  providers
    sgl_kernel.flash_mla:flash_mla_sparse_fwd  providers
    sgl_kernel.sampling:top_k_renorm_probs  providers
    sgl_kernel.sampling:top_p_renorm_probs  providers
    sgl_kernel:apply_rope_with_cos_sin_cache_inplace  providers optional
    sgl_kernel:fused_add_rmsnorm  providers
    sgl_kernel:gelu_and_mul  providers
    sgl_kernel:gelu_tanh_and_mul  providers
    sgl_kernel:gemma_fused_add_rmsnorm  providers
    sgl_kernel:gemma_rmsnorm  providers
    sgl_kernel:merge_state_v2  providers
    sgl_kernel:rmsnorm  providers
    sgl_kernel:silu_and_mul  providers
    sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent:fused_sigmoid_gating_delta_rule_update  providers
    sglang.kernels.ops.mamba.triton_ops.mamba_ssm:selective_state_update  providers
    sglang.kernels.ops.quantization.fp8_kernel:sglang_per_token_group_quant_fp8  providers
    sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe:fused_experts_impl  providers
    sglang.srt.runtime_context:ParallelContext.override(*,tp_group)  providers
    sglang.srt.runtime_context:RuntimeContext.is_config_namespace_published  providers
    sglang.srt.runtime_context:RuntimeContext.set_server_args  providers
    sglang.srt.runtime_context:get_context  providers
    sglang.srt.runtime_context:get_parallel  providers
    sglang.srt.server_args:ServerArgs(*,model_path)  providers
""".strip()


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.files = set(self.zip.namelist())
        self.name, self.version = pathlib.Path(path).name.split("-")[:2]
        self.trees = {}

    def source(self, module):
        """Returns the syntax tree of a module, and whether the module is a package. Returns (None, False) if the wheel
        has no such module."""
        if module not in self.trees:
            stem = module.replace(".", "/")
            found = [path for path in (f"{stem}/__init__.py", f"{stem}.py") if path in self.files]
            tree = ast.parse(self.zip.read(found[0])) if found else None
            self.trees[module] = (tree, bool(found) and found[0].endswith("__init__.py"))
        return self.trees[module]

    def find(self, module, name, seen=()):
        """Finds the definition of a name in a module or, through imports, in other modules. If the name is defined
        several times, returns the last definition, as Python does."""
        tree, package = self.source(module)
        if tree is None or (module, name) in seen:
            return None
        found = None
        for node in statements(tree.body):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                found = node
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                if any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
                    found = self.find(module, node.value.id, (*seen, (module, name)))
            elif isinstance(node, ast.ImportFrom):
                found = self.follow(node, module, package, name, (*seen, (module, name))) or found
        return found

    def follow(self, node, module, package, name, seen):
        parts = module.split(".")
        above = parts[: len(parts) - node.level + package] if node.level else []
        source = ".".join([*above, node.module] if node.module else above)
        for alias in node.names:
            if alias.name == "*" or (alias.asname or alias.name) == name:
                found = self.find(source, name if alias.name == "*" else alias.name, seen)
                if found is not None:
                    return found
        return None


def statements(body):
    """Yields the statements at the top level of a module, including those inside conditions."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers"):
            if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                yield from statements(getattr(node, part, []))


def parameters(function, method):
    """Returns the parameters of a function in Python's syntax. Each default value is written as "None"."""
    a = function.args
    plain = [*a.posonlyargs, *a.args]
    defaults = [False] * (len(plain) - len(a.defaults)) + [True] * len(a.defaults)
    words = [arg.arg + ("=None" if has else "") for arg, has in zip(plain, defaults)][method:]
    if a.posonlyargs:
        words.insert(len(a.posonlyargs) - method, "/")
    if a.vararg or a.kwonlyargs:
        words.append(f"*{a.vararg.arg if a.vararg else ''}")
    words += [arg.arg + ("=None" if d is not None else "") for arg, d in zip(a.kwonlyargs, a.kw_defaults)]
    return ", ".join(words + ([f"**{a.kwarg.arg}"] if a.kwarg else []))


def methods_of(node):
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    if "_plan_impl" in methods:  # plan(…, **kwargs) has the parameters of _plan_impl, which it calls
        methods["plan"] = methods["_plan_impl"]
    return methods


def signatures(name, node):
    """Returns the signatures of a function, of a class with its methods plan and run, or of a tuple or dataclass (from
    its fields)."""
    if isinstance(node, ast.FunctionDef):
        return {name: parameters(node, 0)}
    methods = methods_of(node)
    found = {f"{name}.{key}": parameters(methods[key], 1) for key in ("plan", "run") if key in methods}
    if "__init__" in methods:
        return {name: parameters(methods["__init__"], 1), **found}
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    words = [field.target.id + ("=None" if field.value is not None else "") for field in fields]
    return {name: ", ".join(words), **found}


def asked():
    """Returns {"MODULE:NAME": callers}, as listed in NAMES. A caller of a class also counts as a caller of the class's
    methods plan and run."""
    return {name.partition("(")[0]: [word for word in words if word != "optional"]
            for name, *words in map(str.split, NAMES.splitlines())}


def optional():
    """Returns the names that are marked "optional", because some releases lack them."""
    return {line.split()[0] for line in NAMES.splitlines() if line.endswith(" optional")}


def trusted():
    """Returns {"MODULE:NAME": parameters} for the lines of NAMES that have parameters in parentheses."""
    names = (line.split()[0] for line in NAMES.splitlines() if "(" in line)
    return {name: ", ".join(words.rstrip(")").split(",")) for name, _, words in (one.partition("(") for one in names)}


def look_up(wheel, name):
    """Returns {"MODULE:NAME": parameters} of a function, a class, or one method of a class. Returns {} if the wheel has
    no such name."""
    module, _, attribute = name.partition(":")
    owner, _, method = attribute.partition(".")
    node = wheel.find(module, owner)
    methods = methods_of(node) if isinstance(node, ast.ClassDef) else {}
    if node is None or method and method not in methods:
        return {}
    if name in trusted():
        return {name: trusted()[name]}
    return {name: parameters(methods[method], 1)} if method else signatures(name, node)


def record_of(wheel):
    found, lacks = {}, []
    packages = {path.split("/")[0] for path in wheel.files}
    for name, askers in asked().items():
        if name.split(":")[0].split(".")[0] not in packages:
            continue
        here = look_up(wheel, name)
        if not here and "providers" in askers and name not in optional():
            sys.exit(f"{wheel.name} {wheel.version}: {name} is missing, but a table in python/libraries calls it")
        if not here:
            lacks.append(name)
        found |= {key: {"takes": f"({text})", "asked_by": askers} for key, text in here.items()}
    if not found:
        sys.exit(f"{wheel.name} {wheel.version}: it has none of the names")
    print(f"{wheel.name} {wheel.version}: {len(found)} signatures", *(f"; {name} is missing" for name in lacks), sep="")
    return {"version": wheel.version, "signatures": found}


def main():
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    for path in sys.argv[1:]:
        wheel = Wheel(path)
        record[wheel.name] = record_of(wheel)
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
