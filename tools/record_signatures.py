#!/usr/bin/env python3
"""Records how the libraries that reftest calls are to be called, out of their wheels, nothing of which is run:

    pip download --no-deps -d DIR flashinfer-python fla-core sglang sglang-kernel sgl-kernel
    tools/record_signatures.py DIR/*.whl

into tests/data/signatures.json: of each library its version, and of the functions and classes named below the parameters
and who asks for them: "generated", the templates of generated tests (held by tests/generated/signatures.py), or
"providers", the tables in workers/providers/ (held by tests/providers.py). What was recorded of a library before is
replaced; other libraries stay. What differs in the record then is what changed in the API. A name that a library lacks is
told and left out where generated tests alone ask for it, which ask whether it is there; a table's ends the recording.
Parameters that stand behind a name here are taken on trust, for the source does not show them (**words, a class that its
module puts together as it is imported); that there is such a name is looked up.
"""

import ast
import json
import pathlib
import sys
import zipfile

RECORD = pathlib.Path(__file__).resolve().parents[1] / "tests/data/signatures.json"
NAMES = """
    fla.modules.norm.layernorm:rms_norm  generated
    fla.ops.delta_rule.naive:delta_rule_recurrence  providers
    fla.ops.delta_rule:chunk_delta_rule  generated providers
    fla.ops.delta_rule:fused_recurrent_delta_rule  generated providers
    fla.ops.gated_delta_rule.naive:naive_recurrent_gated_delta_rule  providers
    fla.ops.gated_delta_rule:chunk_gated_delta_rule  generated providers
    fla.ops.gated_delta_rule:fused_recurrent_gated_delta_rule  generated providers
    fla.ops.gla.naive:naive_recurrent_gla  providers
    fla.ops.gla:chunk_gla  generated providers
    fla.ops.gla:fused_recurrent_gla  generated providers
    fla.ops.kda.gate:naive_kda_gate  providers
    fla.ops.kda.gate:naive_kda_lowerbound_gate  providers
    fla.ops.kda.naive:naive_recurrent_kda  providers
    fla.ops.kda:chunk_kda  generated providers
    fla.ops.kda:fused_recurrent_kda  generated providers
    fla.ops.simple_gla.naive:naive_recurrent_simple_gla  providers
    fla.ops.simple_gla:chunk_simple_gla  generated providers
    fla.ops.simple_gla:fused_recurrent_simple_gla  generated providers
    flashinfer.activation:gelu_and_mul  generated providers
    flashinfer.activation:gelu_tanh_and_mul  generated providers
    flashinfer.activation:silu_and_mul  generated providers
    flashinfer.cascade:merge_state  generated providers
    flashinfer.cascade:merge_state_in_place  generated providers
    flashinfer.cascade:merge_states  generated providers
    flashinfer.fused_moe:cutlass_fused_moe  generated providers
    flashinfer.fused_moe:fused_topk_deepseek  providers
    flashinfer.fused_moe:trtllm_fp8_block_scale_moe  generated
    flashinfer.gdn_decode:gated_delta_rule_decode_pretranspose  generated providers
    flashinfer.gdn_decode:gated_delta_rule_mtp  generated providers
    flashinfer.gdn_prefill:chunk_gated_delta_rule  generated providers
    flashinfer.jit.core:JitSpec.build_and_load  providers
    flashinfer.mamba:selective_state_update  generated providers
    flashinfer.mla:BatchMLAPagedAttentionWrapper  generated providers
    flashinfer.norm:fused_add_rmsnorm  generated providers
    flashinfer.norm:gemma_fused_add_rmsnorm  generated providers
    flashinfer.norm:gemma_rmsnorm  generated providers
    flashinfer.norm:layernorm  generated providers
    flashinfer.norm:rmsnorm  generated providers
    flashinfer.page:append_paged_kv_cache  generated providers
    flashinfer.page:append_paged_mla_kv_cache  generated providers
    flashinfer.rope:apply_llama31_rope_pos_ids  generated providers
    flashinfer.rope:apply_rope_pos_ids  generated providers
    flashinfer.rope:apply_rope_with_cos_sin_cache  providers
    flashinfer.rope:apply_rope_with_cos_sin_cache_inplace  generated
    flashinfer.sampling:min_p_sampling_from_probs  generated providers
    flashinfer.sampling:sampling_from_probs  generated providers
    flashinfer.sampling:softmax  generated providers
    flashinfer.sampling:top_k_mask_logits  providers
    flashinfer.sampling:top_k_renorm_probs  generated providers
    flashinfer.sampling:top_k_sampling_from_probs  generated providers
    flashinfer.sampling:top_k_top_p_sampling_from_probs  generated providers
    flashinfer.sampling:top_p_renorm_probs  generated providers
    flashinfer.sampling:top_p_sampling_from_probs  generated providers
    flashinfer:BatchDecodeWithPagedKVCacheWrapper  generated providers
    flashinfer:BatchPrefillWithPagedKVCacheWrapper  generated providers
    flashinfer:BatchPrefillWithRaggedKVCacheWrapper  generated providers
    sgl_kernel.flash_attn:flash_attn_varlen_func  generated providers
    sgl_kernel.flash_attn:flash_attn_with_kvcache  generated providers
    sgl_kernel.flash_mla:flash_mla_sparse_fwd  generated
    sgl_kernel.sampling:top_k_renorm_probs  providers
    sgl_kernel.sampling:top_p_renorm_probs  providers
    sgl_kernel:apply_rope_with_cos_sin_cache_inplace  generated
    sgl_kernel:fused_add_rmsnorm  generated providers
    sgl_kernel:gelu_and_mul  generated providers
    sgl_kernel:gelu_tanh_and_mul  generated providers
    sgl_kernel:gemma_fused_add_rmsnorm  generated providers
    sgl_kernel:gemma_rmsnorm  generated providers
    sgl_kernel:merge_state  generated
    sgl_kernel:merge_state_v2  generated providers
    sgl_kernel:min_p_sampling_from_probs  generated
    sgl_kernel:rmsnorm  generated providers
    sgl_kernel:silu_and_mul  generated providers
    sgl_kernel:top_k_renorm_prob  generated
    sgl_kernel:top_k_top_p_sampling_from_probs  generated
    sgl_kernel:top_p_renorm_prob  generated
    sgl_kernel:top_p_sampling_from_probs  generated
    sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent:fused_sigmoid_gating_delta_rule_update  generated providers
    sglang.kernels.ops.mamba.triton_ops.mamba_ssm:selective_state_update  generated providers
    sglang.srt.layers.moe.moe_runner.base:MoeRunnerConfig  generated
    sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe:fused_experts  generated
    sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe:fused_experts_impl  providers
    sglang.srt.layers.moe.topk:StandardTopKOutput  generated
    sglang.srt.runtime_context:ParallelContext.override(*,tp_group)  generated providers
    sglang.srt.runtime_context:RuntimeContext.is_config_namespace_published  generated providers
    sglang.srt.runtime_context:RuntimeContext.set_server_args  generated providers
    sglang.srt.runtime_context:get_context  generated providers
    sglang.srt.runtime_context:get_parallel  generated providers
    sglang.srt.server_args:ServerArgs(*,model_path)  generated providers
""".strip()


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path)
        self.files = set(self.zip.namelist())
        self.name, self.version = pathlib.Path(path).name.split("-")[:2]
        self.trees = {}

    def source(self, module):
        """Syntax tree of a module and whether it is a package; None: the wheel has none of that name."""
        if module not in self.trees:
            stem = module.replace(".", "/")
            found = [path for path in (f"{stem}/__init__.py", f"{stem}.py") if path in self.files]
            tree = ast.parse(self.zip.read(found[0])) if found else None
            self.trees[module] = (tree, bool(found) and found[0].endswith("__init__.py"))
        return self.trees[module]

    def find(self, module, name, seen=()):
        """The definition of a name of a module, through what it imports; the last one wins, as in Python."""
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
    """Those that a module runs, however deep in its conditions."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers"):
            if isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                yield from statements(getattr(node, part, []))


def parameters(function, method):
    """Names and kinds as Python writes them; every default is "None"."""
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
    if "_plan_impl" in methods:  # what takes the keywords that a plan(…, **kwargs) hands on
        methods["plan"] = methods["_plan_impl"]
    return methods


def signatures(name, node):
    """Of a function; of a class and its plan and run; of a tuple or dataclass by its fields."""
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
    """{module:name: who asks for it}; a class stands for its plan and run, too."""
    return {name.partition("(")[0]: askers for name, *askers in map(str.split, NAMES.splitlines())}


def trusted():
    """{module:name: parameters} of those that the source does not show."""
    names = (line.split()[0] for line in NAMES.splitlines() if "(" in line)
    return {name: ", ".join(words.rstrip(")").split(",")) for name, _, words in (one.partition("(") for one in names)}


def look_up(wheel, name):
    """{module:name: parameters} of a function, of a class or of one method of a class; empty: the wheel has it not."""
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
        if not here and "providers" in askers:
            sys.exit(f"{wheel.name} {wheel.version}: {name} is not there, and a table in workers/providers calls it")
        if not here:
            lacks.append(name)
        found |= {key: {"takes": f"({text})", "asked_by": askers} for key, text in here.items()}
    if not found:
        sys.exit(f"{wheel.name} {wheel.version}: it has nothing that is asked for")
    print(f"{wheel.name} {wheel.version}: {len(found)} signatures", *(f"; {name} is not there" for name in lacks), sep="")
    return {"version": wheel.version, "signatures": found}


def main():
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    for path in sys.argv[1:]:
        wheel = Wheel(path)
        record[wheel.name] = record_of(wheel)
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
