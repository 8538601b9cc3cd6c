#!/bin/sh
# A definition may have its inputs and outputs in any order, and offsets under any name that its op family accepts.
# With any names and any order, other libraries get the right arguments and agree with the reference.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
pytest_is_here
given gemm_n1024_k4096 gqa_ragged_prefill_causal_h10_kv2_d128 gqa_paged_prefill_causal_h16_kv4_d128_ps16 \
	mla_paged_decode_h128_ckv512_kpe64_ps64 fused_add_rmsnorm_h4096 layernorm_h768 append_paged_kv_cache_kv8_d128_ps16
"$python" - definitions/*/*.json <<'END'
import json
import re
import sys

NAMES = {"qo_indptr": "cu_seqlens_q", "kv_indices": "page_indices"}
CAPITALS = {"qo_indptr": "Q_indptr", "kv_indptr": "K_indptr"}
TURNED = """
forward = run


def run(**inputs):
    result = forward(**inputs)
    return result[::-1] if isinstance(result, tuple) else result
"""
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for name, other in (CAPITALS if "ragged" in path else NAMES).items():
        text = re.sub(r"\b%s\b" % name, other, text)
    definition = json.loads(text)
    for part in ("inputs", "outputs"):
        definition[part] = dict(reversed(definition[part].items()))
    definition["reference"] += TURNED
    with open(path, "w", encoding="utf-8") as file:
        json.dump(definition, file)
END
verify --no-workloads --ground-truth all
expect_exit 0
expect "len(d) == 7 and all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for n in d for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"

run generate
expect_exit 0
run_pytest -k 'TestGemm and small and (numerical or torch)'
expect_exit 0
