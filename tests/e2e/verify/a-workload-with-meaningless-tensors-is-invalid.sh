#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Invalid probabilities, indices out of range, decreasing offsets, and last pages that are empty or contain too many
# tokens make a case invalid. The message gives the input, the value and the position. Cases with unusual but valid
# inputs are verified.
. "$(dirname "$0")/../harness.sh"
given top_k_top_p_sampling_from_probs_v128256 append_paged_kv_cache_kv8_d128_ps16 \
	rope_with_cos_sin_cache_neox_style_d128_rd128 merge_state_h32_d128 softmax_e256 silu_and_mul_h2048
mkdir -p blob/bad
"$python" -I -S - <<'END'
import json
import os
import struct

NAN, INF = float("nan"), float("inf")
CODES = {"F32": "f", "I32": "i", "I64": "q"}


def write_blob(path, tensors):
    """{name: (dtype, shape, flat values)} as safetensors."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        packed = struct.pack(f"<{len(values)}{CODES[dtype]}", *values)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def lines_of(op_type, name, axes, good, cases):
    """A line for each case, which is what it changes of the `good` tensors: {tensor: {index: value}}."""
    lines = []
    definition = json.load(open(f"definitions/{op_type}/{name}.json"))
    for word, changes in cases.items():
        tensors = {key: (dtype, shape, list(values)) for key, (dtype, shape, values) in good.items()}
        for key, values in changes.items():
            for index, value in values.items():
                tensors[key][2][index] = value
        path = f"blob/bad/{op_type}_{word}.safetensors"
        write_blob(path, tensors)
        inputs = {key: {"type": "safetensors", "path": "./" + path, "tensor_key": key} if key in tensors
                  else {"type": "random"} for key in definition["inputs"]}
        lines.append(json.dumps({"definition": name, "workload": {"uuid": word, "axes": axes, "inputs": inputs},
                                 "solution": None, "evaluation": None}))
    open(f"workloads/{op_type}/{name}.jsonl", "w").write("\n".join(lines) + "\n")


vocab = 128256
row = [0.0] * vocab
row[7], row[8], row[vocab - 1] = 0.5, 0.25, 0.25
lines_of("sampling", "top_k_top_p_sampling_from_probs_v128256", {"batch_size": 2},
         {"probs": ("F32", [2, vocab], row + row), "top_k": ("I32", [2], [2, 2]), "top_p": ("F32", [2], [0.9, 0.9])},
         {"good": {}, "nan": {"probs": {vocab + 3: NAN}}, "negative": {"probs": {5: -0.25}}, "infinite": {"probs": {5: INF}},
          "zeros": {"probs": {vocab + 7: 0.0, vocab + 8: 0.0, 2 * vocab - 1: 0.0}}, "nan_p": {"top_p": {1: NAN}},
          "no_k": {"top_k": {0: 0}}, "large_k": {"top_k": {1: vocab + 1}}, "negative_k": {"top_k": {1: -2147483648}},
          "no_p": {"top_p": {0: 0.0}}, "large_p": {"top_p": {0: 7.0}}})
lines_of("page", "append_paged_kv_cache_kv8_d128_ps16",
         {"nnz_kv": 4, "num_pages": 6, "batch_size": 2, "len_indptr": 3, "num_kv_indices": 4},
         {"batch_indices": ("I32", [4], [0, 0, 1, 1]), "positions": ("I32", [4], [15, 16, 0, 31]),
          "kv_indices": ("I32", [4], [5, 0, 3, 1]), "kv_indptr": ("I32", [3], [0, 2, 4]),
          "kv_last_page_len": ("I32", [2], [1, 16])},
         {"good": {}, "page_outside": {"kv_indices": {2: 6}}, "page_negative": {"kv_indices": {0: -1}},
          "indptr_falls": {"kv_indptr": {0: 3}}, "indptr_outside": {"kv_indptr": {1: 2147483647}},
          "last_page_empty": {"kv_last_page_len": {1: 0}}, "last_page_overfull": {"kv_last_page_len": {0: 17}},
          "sequence_outside": {"batch_indices": {3: 2}}, "position_outside": {"positions": {1: 17}},
          "position_negative": {"positions": {0: -2147483648}}, "one_place": {"positions": {3: 0}},
          "padding": {"batch_indices": {2: -1}, "positions": {2: -1}}})
lines_of("rope", "rope_with_cos_sin_cache_neox_style_d128_rd128", {"num_tokens": 2, "max_seq_len": 8},
         {"positions": ("I64", [2], [7, 0])},
         {"good": {}, "outside": {"positions": {0: 8}}, "negative": {"positions": {1: -1}}, "huge": {"positions": {1: 2**62}}})
lines_of("cascade", "merge_state_h32_d128", {"seq_len": 1}, {"s_a": ("F32", [1, 32], [1.0] * 32)},
         {"good": {}, "nan": {"s_a": {31: NAN}}, "infinite": {"s_a": {0: INF}}, "empty": {"s_a": {0: -INF}}})
lines_of("softmax", "softmax_e256", {"num_tokens": 1}, {"logits": ("F32", [1, 256], [1.0] * 255 + [2.0])},
         {"good": {}, "nan": {"logits": {0: NAN}}, "masked": {"logits": {i: -INF for i in range(256)}},
          "one_left": {"logits": {i: -INF for i in range(255)}}})
END
verify
expect_exit 2
expect "all(case['status'] == 'passed' for id, case in c.items() if id[1].startswith('small:'))"

# `of DEFINITION ID TEXT`: expects that this case is invalid, with TEXT in the message.
of() {
	expect "c['$1', 'workload:$2']['status'] == 'invalid' and '''$3''' in c['$1', 'workload:$2']['message']"
}
fine() {
	name=$1
	shift
	for id in "$@"; do expect "c['$name', 'workload:$id']['status'] == 'passed'"; done
}
sampler=top_k_top_p_sampling_from_probs_v128256
of $sampler nan "input 'probs' holds NaN at [1, 3]; a row with this element is not a distribution"
of $sampler negative "input 'probs' holds the negative probability -0.25 at [0, 5]"
of $sampler infinite "input 'probs' holds infinity at [0, 5]"
of $sampler zeros "input 'probs' is 0 in all of row 1"
of $sampler nan_p "input 'top_p' holds NaN at [1]"
fine $sampler good no_k large_k negative_k no_p large_p
page=append_paged_kv_cache_kv8_d128_ps16
of $page page_outside "input 'kv_indices' holds 6 at [2], but the caches have only pages 0 to 5"
of $page page_negative "input 'kv_indices' holds -1 at [0]"
of $page indptr_falls "input 'kv_indptr' holds 2 at [1]; expected a value from 3 to 4"
of $page indptr_outside "input 'kv_indptr' holds 2147483647 at [1]"
of $page last_page_empty "input 'kv_last_page_len' holds 0 at [1], but a last page holds at least 1 and at most 16 tokens"
of $page last_page_overfull "input 'kv_last_page_len' holds 17 at [0]"
of $page sequence_outside "input 'batch_indices' holds 2 at [3], which is neither -1 (padding) nor the number of one of the 2 sequences"
of $page position_outside "input 'positions' holds 17 at [1], but the pages of sequence 0 have room for 17 tokens (2 pages)"
of $page position_negative "input 'positions' holds -2147483648 at [0]"
of $page one_place "tokens 2 and 3 are both assigned to slot 0 of page 3"
fine $page good padding
rope=rope_with_cos_sin_cache_neox_style_d128_rd128
of $rope outside "input 'positions' holds 8 at [0]; a position must be the index of a row of the cache, which has 8 rows"
of $rope negative "input 'positions' holds -1 at [1]"
of $rope huge "a position must be the index of a row of the cache"
fine $rope good
of merge_state_h32_d128 nan "input 's_a' holds NaN at [0, 31]"
of merge_state_h32_d128 infinite "input 's_a' holds infinity at [0, 0]"
fine merge_state_h32_d128 good empty
of softmax_e256 nan "input 'logits' holds NaN at [0, 0]"
of softmax_e256 masked "input 'logits' is -infinity in all of row 0"
fine softmax_e256 good one_left
expect_status silu_and_mul_h2048 passed
