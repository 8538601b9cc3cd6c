"""mla_paged in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest

from kernels.attention_paged_template import (
    attention_paged_named,
    attention_paged_sequences,
)
from kernels.attention_template import (
    attention_causal,
    attention_outputs,
    attention_workspace,
)


def mla_paged_flashinfer(test, inputs):
    device = conftest.device_of(inputs)
    mla = conftest.need("flashinfer.mla", device)
    definition = conftest.definition_of(test)
    tensors = [inputs[name] for name in definition["inputs"]]
    scale = next(x for x in tensors if isinstance(x, float))
    q_nope, q_pe, ckv, kpe = [
        x for x in tensors if isinstance(x, torch.Tensor) and x.dim() > 2
    ]
    page = ckv.shape[1]
    kv_indptr, indices = (
        inputs[attention_paged_named(definition, w)]
        for w in ("kv_indptr", "kv_indices")
    )
    pages = kv_indptr[1:] - kv_indptr[:-1]
    last_name = attention_paged_named(definition, "last_page")
    last = inputs[last_name] if last_name else torch.full_like(pages, page)
    lengths = torch.where(pages > 0, (pages - 1) * page + last, 0).to(torch.int32)
    qo_name = attention_paged_named(definition, "qo_indptr")
    single = torch.arange(len(kv_indptr), dtype=torch.int32, device=device)
    wrapper = mla.BatchMLAPagedAttentionWrapper(
        attention_workspace(device), backend="fa2"
    )
    wrapper.plan(
        inputs[qo_name] if qo_name else single,
        kv_indptr,
        indices,
        lengths,
        q_nope.shape[1],
        q_nope.shape[2],
        q_pe.shape[2],
        page,
        attention_causal(test),
        scale,
        q_nope.dtype,
        ckv.dtype,
    )
    result = wrapper.run(q_nope, q_pe, ckv, kpe, return_lse=True)
    return attention_outputs(definition, result)


def mla_paged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition = conftest.definition_of(test)
    offsets, pages, keys = attention_paged_sequences(definition, inputs)
    values = [inputs[name] for name in definition["inputs"]]
    floats = [x for x in values if torch.is_tensor(x) and x.dim() > 2]
    scale = next(x for x in values if isinstance(x, float))
    causal = attention_causal(test)
    query = torch.cat(floats[:2], -1)
    caches = torch.cat(floats[2:], -1).unsqueeze(2), floats[2].unsqueeze(2)
    output = torch.zeros_like(floats[0])
    lse = torch.full(query.shape[:2], -torch.inf, device=query.device)
    for n, (own, count) in enumerate(zip(pages, keys, strict=True)):
        k, v = (cache[own.long()].flatten(0, 1)[:count] for cache in caches)
        rows = slice(offsets[n], offsets[n + 1])
        output[rows], lse[rows] = conftest.attend(query[rows], k, v, scale, causal)
    return (output, lse)[: len(definition["outputs"])]


def mla_paged_sglang(test, inputs):
    """FlashAttention 3, which takes the compressed keys as values, and the queries for them beside the rest; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    offsets, pages, keys = attention_paged_sequences(definition, inputs)
    values = [inputs[name] for name in definition["inputs"]]
    floats = [x for x in values if torch.is_tensor(x) and x.dim() > 2]
    if len(floats[0]) == 0:
        raise NotImplementedError("it takes no empty batch")
    table = torch.nn.utils.rnn.pad_sequence(pages, batch_first=True).int()
    q_nope, q_pe, ckv, kpe = floats
    query, caches, words = q_pe, (kpe.unsqueeze(2), ckv.unsqueeze(2)), {"qv": q_nope}
    output, lse, *_ = attention.flash_attn_with_kvcache(
        query,
        *caches,
        cache_seqlens=torch.tensor(keys, dtype=torch.int32, device=device),
        page_table=table,
        cu_seqlens_q=offsets,
        max_seqlen_q=offsets.diff().max().item(),
        softmax_scale=next(x for x in values if isinstance(x, float)),
        causal=attention_causal(test),
        return_softmax_lse=True,
        **words,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    return attention_outputs(
        definition, (output, lse.masked_fill(lse.isinf(), -torch.inf))
    )
