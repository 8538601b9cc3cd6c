#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# If an attention family does not support the shapes of its definition, the definition has no ground truth and is only
# checked. If a check fails, for example because no output depends on an added input, the definition is skipped. The
# message names the unsupported part. Checks that need no ground truth are still made: dtype, shape, determinism.
. "$(dirname "$0")/../harness.sh"
given gqa_paged_decode_h40_kv8_d128_ps16 gqa_ragged_prefill_h16_kv16_d80 mla_paged_decode_h128_ckv512_kpe64_ps64 \
	mla_ragged_prefill_causal_h8_qk192_vo128 dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64 \
	dsa_topk_indexer_fp8_h64_d128_topk2048_ps64
rm -r workloads
"$python" -I -S - <<'END'
import glob
import json
import os
import re

PAGED, RAGGED = "gqa_paged_decode_h40_kv8_d128_ps16", "gqa_ragged_prefill_h16_kv16_d80"
LATENT, UNABSORBED = "mla_paged_decode_h128_ckv512_kpe64_ps64", "mla_ragged_prefill_causal_h8_qk192_vo128"
SPARSE, INDEXER = "dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64", "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"


def extra(definition, name, spec):
    """One input more, of which the family knows nothing."""
    definition["inputs"][name] = spec
    definition["reference"] = definition["reference"].replace("def run(", f"def run({name}, ")


def slopes(definition):
    extra(definition, "alibi_slopes", {"shape": ["num_qo_heads"], "dtype": "float32"})


def soft_cap(definition):
    extra(definition, "logits_soft_cap", {"shape": None, "dtype": "float32"})


def uneven(definition):
    definition["axes"]["num_kv_heads"]["value"] = 6


def natural(definition):
    """A log-sum-exp that is half as precise as the schema of the family has it, and a reference that returns another."""
    definition["outputs"]["lse"]["dtype"] = "float16"


def no_scales(definition):
    definition["axes"]["head_dim_with_scale"]["value"] = 128


# Each entry has a base definition, an edit of it, and the expected message.
CHANGES = [
    (PAGED, "slopes", slopes, "(gqa_paged: input 'alibi_slopes' is [num_qo_heads] of float32; the operation has no such input"),
    (PAGED, "cap", soft_cap, "(gqa_paged: input 'logits_soft_cap' is a Python scalar of float32; expected only one scalar:"),
    (PAGED, "uneven", uneven, "(gqa_paged: the number of query heads, 40, is not a multiple of the number of key"),
    (RAGGED, "slopes", slopes, "(gqa_ragged: input 'alibi_slopes' is [num_qo_heads] of float32; the operation has no such input"),
    (LATENT, "cap", soft_cap, "(mla_paged: input 'logits_soft_cap'"),
    (UNABSORBED, "slopes", slopes, "(mla_ragged: input 'alibi_slopes' is"),
    (SPARSE, "cap", soft_cap, "(dsa_paged: input 'logits_soft_cap'"),
    (INDEXER, "scales", no_scales, "(dsa_paged: input 'k_index_cache_fp8' is"),
]
expected = []
for name, tag, change, sentence in [*CHANGES, (PAGED, "wrong", natural, None)]:
    path = glob.glob(f"definitions/*/{name}.json")[0]
    definition = json.load(open(path))
    change(definition)
    # The model tags, and the numbers in the name, would contradict the changed axes, so the test removes them.
    definition["name"] = re.sub("[0-9]", "", name) + "_" + tag
    definition["tags"] = [one for one in definition.get("tags", []) if not one.startswith("model:")]
    if tag == "scales":  # the indexer has no scores for such a cache
        definition["constraints"] = []
        definition["reference"] = (
            "import torch\n\n\ndef run(q_index_fp8, k_index_cache_fp8, weights, seq_lens, block_table):\n"
            "    return (torch.zeros(len(seq_lens), 2048, dtype=torch.int32, device=weights.device),)\n"
        )
    json.dump(definition, open(os.path.join(os.path.dirname(path), definition["name"] + ".json"), "w"))
    expected.append([definition["name"], "failed" if sentence is None else "checked", sentence])
for name in {name for name, *_ in CHANGES}:
    os.remove(glob.glob(f"definitions/*/{name}.json")[0])
json.dump(expected, open("../expected", "w"))
END
verify
expect_exit 1
expect "len(json.load(open('../expected'))) == len(d) == 9"
expect "d['gqa_paged_decode_h_kv_d_ps_wrong']['reason'] == 'dtype'"
wrong="[(n, d[n]['status'], d[n]['reason'], d[n]['message'], text) for n, status, text in json.load(open('../expected'))
	if d[n]['status'] not in (status, {'checked': 'skipped'}.get(status)) or (status == 'checked' and (d[n]['reason'] != 'no_ground_truth'
	or not any(text in (m or '') for m in [d[n]['message'], *all_of(n, 'message')])))]"
step="these definitions: $(value "$wrong")"
expect "$wrong == []"
