"""mla_paged in the generated pytest files: what follows the imports is pasted into each of them."""

import torch

# isort: split
import conftest

from kernels.attention_paged_template import (
    attention_paged_keys,
    attention_paged_queries,
    attention_paged_sequences,
)
from kernels.attention_template import (
    attention_causal,
    attention_given,
    attention_ordered,
    attention_outputs,
    attention_workspace,
)


def mla_paged_flashinfer(test, inputs):
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    mla = conftest.need("flashinfer.mla", device)
    given = attention_given(definition, inputs)
    q_nope, q_pe, ckv, kpe = (given[part] for part in ("q", "q_pe", "k", "k_pe"))
    wrapper = mla.BatchMLAPagedAttentionWrapper(
        attention_workspace(device), backend="fa2"
    )
    wrapper.plan(
        attention_paged_queries(given),
        given["kv_indptr"],
        given["kv_indices"],
        attention_paged_keys(given),
        q_nope.shape[1],
        q_nope.shape[2],
        q_pe.shape[2],
        ckv.shape[1],
        attention_causal(test),
        given["scale"],
        q_nope.dtype,
        ckv.dtype,
    )
    result = wrapper.run(q_nope, q_pe, ckv, kpe, return_lse=True)
    return attention_outputs(definition, *result)


def mla_paged_torch(test, inputs):
    """scaled_dot_product_attention for one sequence after the other."""
    definition, causal = conftest.definition_of(test), attention_causal(test)
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    query, key = (torch.cat([given[x], given[x + "_pe"]], -1) for x in "qk")
    caches = key.unsqueeze(2), given["k"].unsqueeze(2)
    output = torch.zeros_like(given["q"])
    lse = torch.full(query.shape[:2], -torch.inf, device=query.device)
    for n, (own, count) in enumerate(zip(pages, keys, strict=True)):
        k, v = (cache[own.long()].flatten(0, 1)[:count] for cache in caches)
        rows = slice(offsets[n], offsets[n + 1])
        output[rows], lse[rows] = conftest.attend(
            query[rows], k, v, given["scale"], causal
        )
    return attention_ordered(definition, output, lse)


def mla_paged_sglang(test, inputs):
    """FlashAttention 3, which takes the compressed keys as values, and the queries for them beside the rest; its lse is a natural logarithm."""
    device, definition = conftest.device_of(inputs), conftest.definition_of(test)
    attention = conftest.need("sgl_kernel.flash_attn", device)
    if conftest.need_capability(device, 9) != 9:
        raise NotImplementedError("FlashAttention 3 is for compute capability 9.0")
    given = attention_given(definition, inputs)
    offsets, pages, keys = attention_paged_sequences(given)
    if len(given["q"]) == 0:
        raise NotImplementedError("it takes no empty batch")
    output, lse, *_ = attention.flash_attn_with_kvcache(
        given["q_pe"],
        given["k_pe"].unsqueeze(2),
        given["k"].unsqueeze(2),
        qv=given["q"],
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
