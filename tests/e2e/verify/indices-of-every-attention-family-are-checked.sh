#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Every attention family checks the offsets, page numbers, lengths, sparse rows and block tables of a workload. If a
# value is out of range, the line is invalid, and the message gives the position. Valid values are used.
. "$(dirname "$0")/../harness.sh"
given gqa_paged_prefill_causal_h16_kv4_d128_ps16 gqa_ragged_prefill_h16_kv16_d80 \
	mla_paged_decode_h128_ckv512_kpe64_ps64 mla_ragged_prefill_causal_h8_qk192_vo128 \
	dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64 dsa_topk_indexer_fp8_h64_d128_topk2048_ps64
"$python" -I -S - <<'END'
import glob
import json
import os
import struct

PAGED, RAGGED = "gqa_paged_prefill_causal_h16_kv4_d128_ps16", "gqa_ragged_prefill_h16_kv16_d80"
LATENT, UNABSORBED = "mla_paged_decode_h128_ckv512_kpe64_ps64", "mla_ragged_prefill_causal_h8_qk192_vo128"
SPARSE, INDEXER = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64", "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
OFFSETS = {"qo_indptr": [0, 3, 5], "kv_indptr": [0, 4, 9]}
NOBODY = [-1] * 2048
ROWS = [[5, -1, 0, 191] + NOBODY[4:], NOBODY]
TABLE = [[3, 1] + [0] * 30, [2] * 32]


def change(values, *places):
    """A copy; the last of `places` stands where the others lead to."""
    values = json.loads(json.dumps(values))
    row = values
    for place in places[:-2]:
        row = row[place]
    row[places[-2]] = places[-1]
    return values


RAGGED_BAD = [
    ({"kv_indptr": [0, 10, 9]}, "kv_indptr[1] is 10: it must be at least kv_indptr[0] = 0, and at most 9, the number of keys"),
    ({"kv_indptr": [0, 4, 10]}, "total_kv == kv_indptr[-1].item(): 9 == 10 is false"),
    ({"kv_indptr": [0, -4, 9]}, "kv_indptr[1] is -4"),
    ({"kv_indptr": [1, 4, 9]}, "kv_indptr[0] is 1, not 0"),
    ({"qo_indptr": [0, 7, 5]}, "qo_indptr[1] is 7: it must be at least qo_indptr[0] = 0, and at most 5, the number of queries"),
    ({"qo_indptr": [2, 3, 5]}, "qo_indptr[0] is 2, not 0"),
    ({"qo_indptr": [0, 3, 4]}, "total_q == qo_indptr[-1].item(): 5 == 4 is false"),
    ({"kv_indptr": [0, 4, 8]}, "total_kv == kv_indptr[-1].item(): 9 == 8 is false"),
]
# LINES gives for each definition the axes, the inputs of a valid workload line, and a list of invalid lines. An invalid
# line is described by the inputs that it changes and the expected message.
LINES = {
    PAGED: (
        {"total_q": 5, "num_pages": 4, "len_indptr": 3, "batch_size": 2, "num_kv_indices": 3},
        {"qo_indptr": [0, 3, 5], "kv_indptr": [0, 1, 3], "kv_indices": [3, 0, 3], "kv_last_page_len": [4, 16]},
        [
            ({"qo_indptr": [0, 6, 5]}, "qo_indptr[1] is 6"),
            ({"kv_indptr": [0, 4, 3]}, "kv_indptr[1] is 4"),
            ({"kv_indptr": [0, 1, 2]}, "num_kv_indices == kv_indptr[-1].item(): 3 == 2 is false"),
            ({"kv_indices": [3, 4, 3]}, "kv_indices has 4 at flat index 1; there are only 4 pages, numbered from 0"),
            ({"kv_indices": [3, 0, 2147483647]}, "kv_indices has 2147483647"),
            ({"kv_last_page_len": [4, 0]}, "kv_last_page_len[1] is 0: the last page of a sequence holds 1 to 16 keys"),
            ({"kv_last_page_len": [-1, 16]}, "kv_last_page_len[0] is -1"),
        ],
    ),
    RAGGED: ({"total_q": 5, "total_kv": 9, "len_indptr": 3}, OFFSETS, RAGGED_BAD),
    UNABSORBED: ({"total_q": 5, "total_kv": 9, "len_indptr": 3}, OFFSETS, RAGGED_BAD),
    LATENT: (
        {"batch_size": 2, "num_pages": 3, "len_indptr": 3, "num_kv_indices": 3},
        {"kv_indptr": [0, 1, 3], "kv_indices": [2, 0, 2], "kv_last_page_len": [64, 7]},
        [
            ({"kv_indptr": [0, 4, 3]}, "kv_indptr[1] is 4"),
            ({"kv_indices": [2, 0, 3]}, "kv_indices has 3 at flat index 2; there are only 3 pages, numbered from 0"),
            ({"kv_indices": [-1, 0, 2]}, "kv_indices has -1"),
            ({"kv_last_page_len": [65, 7]}, "kv_last_page_len[0] is 65: the last page of a sequence holds 1 to 64 keys"),
        ],
    ),
    SPARSE: (
        {"num_tokens": 2, "num_pages": 3},
        {"sparse_indices": ROWS},
        [
            ({"sparse_indices": change(ROWS, 0, 3, 192)}, "sparse_indices has 192 at flat index 3; there are only 192 key rows"),
            ({"sparse_indices": change(ROWS, 1, 2047, -2)}, "sparse_indices has -2 at flat index 4095"),
        ],
    ),
    INDEXER: (
        {"batch_size": 2, "max_num_pages": 32, "num_pages": 4},
        {"seq_lens": [100, 0], "block_table": TABLE},
        [
            ({"seq_lens": [2049, 0]}, "seq_lens[0] is 2049; a length must be from 0 to 2048, the number of keys in all pages of the table"),
            ({"seq_lens": [100, -1]}, "seq_lens[1] is -1"),
            ({"block_table": change(TABLE, 0, 1, 4)}, "block_table[0, 1] is 4, but there are only 4 pages, numbered from 0"),
            ({"block_table": change(TABLE, 0, 0, -1)}, "block_table[0, 0] is -1"),
        ],
    ),
}


def blob(path, tensors):
    header, data = {}, b""
    for key, values in tensors.items():
        shape = [len(values), len(values[0])] if isinstance(values[0], list) else [len(values)]
        flat = [number for row in values for number in row] if len(shape) == 2 else values
        packed = struct.pack(f"<{len(flat)}i", *flat)
        header[key] = {"dtype": "I32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


expected = []
os.makedirs("blob", exist_ok=True)
for path in glob.glob("definitions/*/*.json"):
    definition = json.load(open(path))
    name, op_type = definition["name"], definition["op_type"]
    axes, good, bad = LINES[name]
    with open(f"workloads/{op_type}/{name}.jsonl", "w") as lines:
        for number, (changes, sentence) in enumerate([({}, None), *bad]):
            file = f"blob/{name}.{number}.safetensors"
            blob(file, {**good, **changes})
            inputs = {key: {"type": "random"} for key in definition["inputs"]}
            inputs.update({key: {"type": "safetensors", "path": file, "tensor_key": key} for key in good})
            if "sm_scale" in inputs:
                inputs["sm_scale"] = {"type": "scalar", "value": 0.0721}
            uuid = f"{number}"
            lines.write(json.dumps({"definition": name, "workload": {"uuid": uuid, "axes": axes, "inputs": inputs}}) + "\n")
            expected.append([name, f"workload:{uuid}", sentence])
json.dump(expected, open("../expected", "w"))
END
verify
expect_exit 2
expect "len(json.load(open('../expected'))) == 39"
wrong="[(n, i, c[n, i]['status'], c[n, i]['message'], text) for n, i, text in json.load(open('../expected'))
	if c[n, i]['status'] != ('passed' if text is None else 'invalid') or (text or '') not in (c[n, i]['message'] or '')]"
step="these lines: $(value "$wrong")"
expect "$wrong == []"
