"""gqa_paged in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest

from kernels.attention_paged_template import (
    attention_paged_last,
    attention_paged_sequences,
)
from kernels.attention_template import (
    attention_causal,
    attention_flashinfer_heads,
    attention_given,
    attention_ordered,
    attention_outputs,
    attention_workspace,
)


def gqa_paged_flashinfer(test, inputs):
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    flashinfer = conftest.need("flashinfer", device)
    given = attention_given(definition, inputs)
    q, k, v = given["q"], given["k"], given["v"]
    attention_flashinfer_heads(q, v)
    keys = given["kv_indptr"], given["kv_indices"], attention_paged_last(given)
    heads = (q.shape[-2], k.shape[-2], q.shape[-1], k.shape[1])
    words = {
        "q_data_type": q.dtype,
        "kv_data_type": k.dtype,
        "sm_scale": given["scale"],
    }
    if "qo_indptr" in given:
        wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            attention_workspace(device), "NHD"
        )
        causal = attention_causal(test)
        wrapper.plan(given["qo_indptr"], *keys, *heads, causal=causal, **words)
    else:
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            attention_workspace(device), "NHD", use_tensor_cores=True
        )
        wrapper.plan(*keys, *heads, **words)
    return attention_outputs(definition, *wrapper.run(q, (k, v), return_lse=True))


def gqa_paged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition, causal = conftest.definition_of(test), attention_causal(test)
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    query, caches = given["q"], (given["k"], given["v"])
    output = torch.zeros_like(query)
    lse = torch.full(query.shape[:2], -torch.inf, device=query.device)
    for n, (own, count) in enumerate(zip(pages, keys, strict=True)):
        k, v = (cache[own.long()].flatten(0, 1)[:count] for cache in caches)
        rows = slice(offsets[n], offsets[n + 1])
        output[rows], lse[rows] = conftest.attend(
            query[rows], k, v, given["scale"], causal
        )
    return attention_ordered(definition, output, lse)


def gqa_paged_sglang(test, inputs):
    """FlashAttention 3; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    if len(given["q"]) == 0:
        raise NotImplementedError("it takes no empty batch")
    output, lse, *_ = attention.flash_attn_with_kvcache(
        given["q"],
        given["k"],
        given["v"],
        cache_seqlens=torch.tensor(keys, dtype=torch.int32, device=device),
        page_table=torch.nn.utils.rnn.pad_sequence(pages, batch_first=True).int(),
        cu_seqlens_q=offsets,
        max_seqlen_q=offsets.diff().max().item(),
        softmax_scale=given["scale"],
        causal=attention_causal(test),
        return_softmax_lse=True,
    )
    lse = lse.mT / torch.log(torch.tensor(2.0))
    return attention_outputs(
        definition, output, lse.masked_fill(lse.isinf(), -torch.inf)
    )
