"""gqa_paged in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest

from kernels.attention_paged_template import (
    attention_paged_named,
    attention_paged_sequences,
)
from kernels.attention_template import (
    attention_causal,
    attention_flashinfer_heads,
    attention_outputs,
    attention_workspace,
)


def gqa_paged_flashinfer(test, inputs):
    device = conftest.device_of(inputs)
    flashinfer = conftest.need("flashinfer", device)
    definition = conftest.definition_of(test)
    given = {name: inputs[name] for name in definition["inputs"]}
    q, k, v = [x for x in given.values() if isinstance(x, torch.Tensor) and x.dim() > 2]
    attention_flashinfer_heads(q, v)
    scale = next(x for x in given.values() if isinstance(x, float))
    page = k.shape[1]
    kv_indptr, indices = (
        inputs[attention_paged_named(definition, w)]
        for w in ("kv_indptr", "kv_indices")
    )
    last_name = attention_paged_named(definition, "last_page")
    full = torch.full((len(kv_indptr) - 1,), page, dtype=torch.int32, device=device)
    last = inputs[last_name] if last_name else full
    heads = (q.shape[-2], k.shape[-2], q.shape[-1])
    words = {"q_data_type": q.dtype, "kv_data_type": k.dtype, "sm_scale": scale}
    qo_name = attention_paged_named(definition, "qo_indptr")
    if qo_name is None:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            attention_workspace(device), "NHD", use_tensor_cores=True
        )
        wrapper.plan(kv_indptr, indices, last, *heads, page, **words)
    else:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            attention_workspace(device), "NHD"
        )
        causal = attention_causal(test)
        wrapper.plan(
            inputs[qo_name],
            kv_indptr,
            indices,
            last,
            *heads,
            page,
            causal=causal,
            **words,
        )
    return attention_outputs(definition, wrapper.run(q, (k, v), return_lse=True))


def gqa_paged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition = conftest.definition_of(test)
    offsets, pages, keys = attention_paged_sequences(definition, inputs)
    values = [inputs[name] for name in definition["inputs"]]
    floats = [x for x in values if torch.is_tensor(x) and x.dim() > 2]
    scale = next(x for x in values if isinstance(x, float))
    causal = attention_causal(test)
    query, *caches = floats
    output = torch.zeros_like(query)
    lse = torch.full(query.shape[:2], -torch.inf, device=query.device)
    for n, (own, count) in enumerate(zip(pages, keys, strict=True)):
        k, v = (cache[own.long()].flatten(0, 1)[:count] for cache in caches)
        rows = slice(offsets[n], offsets[n + 1])
        output[rows], lse[rows] = conftest.attend(query[rows], k, v, scale, causal)
    return (output, lse)[: len(definition["outputs"])]


def gqa_paged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
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
    query, *caches = floats
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
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    return attention_outputs(
        definition, (output, lse.masked_fill(lse.isinf(), -torch.inf))
    )
