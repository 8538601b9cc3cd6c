"""What generated pytest files have of attention over ragged keys: pasted before the functions of the families that import from it."""

import torch

# isort: split
import conftest

from kernels.attention_template import (
    attention_causal,
    attention_excite,
    attention_flashinfer_heads,
    attention_given,
    attention_named,
    attention_noise,
    attention_offsets,
    attention_ordered,
    attention_outputs,
    attention_parts,
    attention_shapes,
    attention_split,
    attention_workspace,
)


def attention_ragged_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences, in which no query sees nothing."""
    parts = attention_parts(definition)
    shapes = attention_shapes(definition, parts, axes)
    generator = conftest.generator_of(seed)
    batch = shapes["kv_indptr"][0] - 1
    keys = attention_split(shapes["k"][0], batch, generator)
    queries = attention_split(shapes["q"][0], batch, generator, most=keys)
    given = attention_noise(shapes, generator)
    attention_excite(given)
    given |= {
        "qo_indptr": attention_offsets(queries),
        "kv_indptr": attention_offsets(keys),
        "scale": 0.08,
    }
    return attention_named(definition, parts, given, device)


def attention_ragged_given(definition, inputs):
    """q, k, v, offsets of queries and of keys, scale."""
    given = attention_given(definition, inputs)
    return [given[x] for x in ("q", "k", "v", "qo_indptr", "kv_indptr", "scale")]


def attention_ragged_flashinfer(test, inputs):
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    flashinfer = conftest.need("flashinfer", device)
    q, k, v, qo_indptr, kv_indptr, scale = attention_ragged_given(definition, inputs)
    attention_flashinfer_heads(q, v)
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
    return attention_outputs(definition, *wrapper.run(q, k, v, return_lse=True))


def attention_ragged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition, causal = conftest.definition_of(test), attention_causal(test)
    q, k, v, qo_indptr, kv_indptr, scale = attention_ragged_given(definition, inputs)
    output = q.new_zeros(*q.shape[:2], v.shape[2])
    lse = torch.full(q.shape[:2], -torch.inf, device=q.device)
    for n in range(len(qo_indptr) - 1):
        rows = slice(qo_indptr[n], qo_indptr[n + 1])
        keys = slice(kv_indptr[n], kv_indptr[n + 1])
        output[rows], lse[rows] = conftest.attend(
            q[rows], k[keys], v[keys], scale, causal
        )
    return attention_ordered(definition, output, lse)


def attention_ragged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    q, k, v, qo_indptr, kv_indptr, scale = attention_ragged_given(definition, inputs)
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
        causal=attention_causal(test),
        return_softmax_lse=True,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    return attention_outputs(
        definition, output, lse.masked_fill(lse.isinf(), -torch.inf)
    )
