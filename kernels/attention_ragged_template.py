"""What generated pytest files have of attention over ragged keys: pasted before the functions of the families that import from it."""

import torch

# isort: split
import conftest

from kernels.attention_template import (
    attention_causal,
    attention_flashinfer_heads,
    attention_offsets,
    attention_outputs,
    attention_split,
    attention_workspace,
)


def attention_ragged_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences, in which no query sees nothing."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    specs = [spec for spec in definition["inputs"].values() if spec["shape"]]
    queries, keys = (conftest.shape_of(spec, sizes)[0] for spec in specs[:2])
    indptr = next(spec for spec in specs if "int" in spec["dtype"])
    batch = conftest.shape_of(indptr, sizes)[0] - 1
    kv_lengths = attention_split(keys, batch, generator)
    q_lengths = attention_split(queries, batch, generator, most=kv_lengths)
    inputs = {}
    query, key = conftest.tensor_inputs(definition)[:2]
    for name, spec in definition["inputs"].items():
        if spec["shape"] is None:
            inputs[name] = 0.08
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        if "indptr" in name:
            values = attention_offsets(q_lengths if "q" in name else kv_lengths, dtype)
        else:
            values = conftest.noise(shape, torch.float32, "cpu", generator) * 1.7
            if name == query and shape[0] > 0:
                values[0, 0, 0] = 1296.0  # logits beyond what exp takes, all alike
            elif name == key:
                values[..., 0] = 1.0
        inputs[name] = values.to(dtype).to(device)
    return inputs


def attention_ragged_flashinfer(test, inputs):
    device = conftest.device_of(inputs)
    flashinfer = conftest.need("flashinfer", device)
    definition = conftest.definition_of(test)
    tensors = [inputs[name] for name in definition["inputs"]]
    scale = next(x for x in tensors if isinstance(x, float))
    q, k, v = [x for x in tensors if isinstance(x, torch.Tensor) and x.dim() > 2]
    attention_flashinfer_heads(q, v)
    offsets = {name: inputs[name] for name in definition["inputs"] if "indptr" in name}
    kv_indptr = next(x for name, x in offsets.items() if "kv" in name)
    qo_indptr = next((x for name, x in offsets.items() if "kv" not in name), kv_indptr)
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        attention_workspace(device), "NHD"
    )
    wrapper.plan(
        qo_indptr,
        kv_indptr,
        q.shape[1],
        k.shape[1],
        q.shape[2],
        v.shape[2],
        causal=attention_causal(test),
        sm_scale=scale,
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return attention_outputs(definition, wrapper.run(q, k, v, return_lse=True))


def attention_ragged_edges(definition, axes):
    """No sequence, and one with one query and one key."""
    found = []
    for count in (0, 1):
        edge = {}
        for name, spec in definition["inputs"].items():
            if spec["shape"]:
                edge[spec["shape"][0]] = count + ("indptr" in name)
        found.append({**axes, **{axis: edge[axis] for axis in axes if axis in edge}})
    return found


def attention_ragged_parts(test, inputs):
    """q, k, v, offsets of queries and of keys, scale, causal."""
    definition = conftest.definition_of(test)
    values = [inputs[name] for name in definition["inputs"]]
    scale = next(x for x in values if isinstance(x, float))
    floats = [x for x in values if torch.is_tensor(x) and x.dim() > 2]
    offsets = {name: x for name, x in inputs.items() if "indptr" in name}
    kv_indptr = next(x for name, x in offsets.items() if "kv" in name)
    qo_indptr = next((x for name, x in offsets.items() if "kv" not in name), kv_indptr)
    return *floats, qo_indptr, kv_indptr, scale, attention_causal(test)


def attention_ragged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    q, k, v, qo_indptr, kv_indptr, scale, causal = attention_ragged_parts(test, inputs)
    output = q.new_zeros(*q.shape[:2], v.shape[2])
    lse = torch.full(q.shape[:2], -torch.inf, device=q.device)
    for n in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[n], qo_indptr[n + 1])
        keys = slice(kv_indptr[n], kv_indptr[n + 1])
        output[rows], lse[rows] = conftest.attend(
            q[rows], k[keys], v[keys], scale, causal
        )
    return (output, lse)[: len(conftest.definition_of(test)["outputs"])]


def attention_ragged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
    device = conftest.device_of(inputs)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    q, k, v, qo_indptr, kv_indptr, scale, causal = attention_ragged_parts(test, inputs)
    if len(q) == 0:
        raise NotImplementedError("it takes no empty batch")
    output, lse, *_ = attention.flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q=qo_indptr,
        cu_seqlens_k=kv_indptr,
        max_seqlen_q=qo_indptr.diff().max().item(),
        max_seqlen_k=kv_indptr.diff().max().item(),
        softmax_scale=scale,
        causal=causal,
        return_softmax_lse=True,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    lse = lse.masked_fill(lse.isinf(), -torch.inf)
    return attention_outputs(conftest.definition_of(test), (output, lse))
