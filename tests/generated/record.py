"""Records how the kernel libraries that generated tests call are to be called: python3 tests/generated/record.py WHEEL…

From the Python sources in each wheel, nothing of which is run, to tests/data/generated/signatures.json: for each library
and version the parameters of the functions and classes named below. A name that a version has not is left out. The check
that holds the templates' calls against them is tests/generated/signatures.py.
"""

import ast
import json
import pathlib
import sys
import zipfile

RECORD = pathlib.Path(__file__).resolve().parents[2] / "tests/data/generated/signatures.json"
NAMES = """
    flashinfer.BatchDecodeWithPagedKVCacheWrapper
    flashinfer.BatchPrefillWithPagedKVCacheWrapper
    flashinfer.BatchPrefillWithRaggedKVCacheWrapper
    flashinfer.activation.gelu_and_mul
    flashinfer.activation.gelu_tanh_and_mul
    flashinfer.activation.silu_and_mul
    flashinfer.cascade.merge_state
    flashinfer.cascade.merge_state_in_place
    flashinfer.cascade.merge_states
    flashinfer.fused_moe.cutlass_fused_moe
    flashinfer.fused_moe.trtllm_fp8_block_scale_moe
    flashinfer.gdn_decode.gated_delta_rule_decode_pretranspose
    flashinfer.gdn_decode.gated_delta_rule_mtp
    flashinfer.gdn_prefill.chunk_gated_delta_rule
    flashinfer.mamba.selective_state_update
    flashinfer.mla.BatchMLAPagedAttentionWrapper
    flashinfer.norm.fused_add_rmsnorm
    flashinfer.norm.gemma_fused_add_rmsnorm
    flashinfer.norm.gemma_rmsnorm
    flashinfer.norm.layernorm
    flashinfer.norm.rmsnorm
    flashinfer.page.append_paged_kv_cache
    flashinfer.page.append_paged_mla_kv_cache
    flashinfer.rope.apply_llama31_rope_pos_ids
    flashinfer.rope.apply_rope_pos_ids
    flashinfer.rope.apply_rope_with_cos_sin_cache_inplace
    flashinfer.sampling.min_p_sampling_from_probs
    flashinfer.sampling.sampling_from_probs
    flashinfer.sampling.softmax
    flashinfer.sampling.top_k_renorm_probs
    flashinfer.sampling.top_k_sampling_from_probs
    flashinfer.sampling.top_k_top_p_sampling_from_probs
    flashinfer.sampling.top_p_renorm_probs
    flashinfer.sampling.top_p_sampling_from_probs
    fla.modules.norm.layernorm.rms_norm
    fla.ops.delta_rule.chunk_delta_rule
    fla.ops.delta_rule.fused_recurrent_delta_rule
    fla.ops.gated_delta_rule.chunk_gated_delta_rule
    fla.ops.gated_delta_rule.fused_recurrent_gated_delta_rule
    fla.ops.gla.chunk_gla
    fla.ops.gla.fused_recurrent_gla
    fla.ops.kda.chunk_kda
    fla.ops.kda.fused_recurrent_kda
    fla.ops.simple_gla.chunk_simple_gla
    fla.ops.simple_gla.fused_recurrent_simple_gla
    sgl_kernel.apply_rope_with_cos_sin_cache_inplace
    sgl_kernel.flash_attn.flash_attn_varlen_func
    sgl_kernel.flash_attn.flash_attn_with_kvcache
    sgl_kernel.flash_mla.flash_mla_sparse_fwd
    sgl_kernel.fused_add_rmsnorm
    sgl_kernel.gelu_and_mul
    sgl_kernel.gelu_tanh_and_mul
    sgl_kernel.gemma_fused_add_rmsnorm
    sgl_kernel.gemma_rmsnorm
    sgl_kernel.merge_state
    sgl_kernel.merge_state_v2
    sgl_kernel.min_p_sampling_from_probs
    sgl_kernel.rmsnorm
    sgl_kernel.silu_and_mul
    sgl_kernel.top_k_renorm_prob
    sgl_kernel.top_k_top_p_sampling_from_probs
    sgl_kernel.top_p_renorm_prob
    sgl_kernel.top_p_sampling_from_probs
    sglang.kernels.ops.attention.linear.fused_sigmoid_gating_recurrent.fused_sigmoid_gating_delta_rule_update
    sglang.kernels.ops.mamba.triton_ops.mamba_ssm.selective_state_update
    sglang.srt.layers.moe.moe_runner.base.MoeRunnerConfig
    sglang.srt.layers.moe.moe_runner.triton_utils.fused_moe.fused_experts
    sglang.srt.layers.moe.topk.StandardTopKOutput
""".split()


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


def signatures(name, node):
    """Of a function; of a class and its plan and run; of a tuple or dataclass by its fields."""
    if isinstance(node, ast.FunctionDef):
        return {name: parameters(node, 0)}
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    if "_plan_impl" in methods:  # what takes the keywords that a plan(…, **kwargs) hands on
        methods["plan"] = methods["_plan_impl"]
    found = {f"{name}.{key}": parameters(methods[key], 1) for key in ("plan", "run") if key in methods}
    if "__init__" in methods:
        return {name: parameters(methods["__init__"], 1), **found}
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    words = [field.target.id + ("=None" if field.value is not None else "") for field in fields]
    return {name: ", ".join(words), **found}


def main():
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {}
    for path in sys.argv[1:]:
        wheel, found = Wheel(path), {}
        for name in NAMES:
            module, _, attribute = name.rpartition(".")
            node = wheel.find(module, attribute)
            if node is not None:
                found |= {key: f"({text})" for key, text in signatures(name, node).items()}
        record[f"{wheel.name} {wheel.version}"] = found
        print(f"{wheel.name} {wheel.version}: {len(found)} signatures")
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


main()
