#!/bin/sh
# Generated tests of attention support inputs and outputs in any order, offsets of 32 and 64 bits, and all names that
# the family accepts. The generated tests contain the same classes as for the usual names, pass for correct references
# and fail for wrong ones.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
given gqa_paged_decode_h40_kv8_d128_ps16 gqa_paged_prefill_causal_h16_kv4_d128_ps16 gqa_ragged_prefill_causal_h10_kv2_d128 \
	mla_paged_decode_h128_ckv512_kpe64_ps64 mla_paged_prefill_causal_h32_ckv512_kpe64_ps1 \
	mla_ragged_prefill_causal_h8_qk192_vo128 dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64 \
	dsa_topk_indexer_fp8_h64_d128_topk2048_ps64
rm -r workloads
cat >"$work/turn.py" <<'END'
import json
import pathlib

NAMES = {"q": "asking", "k": "key", "v": "value", "k_cache": "kpool", "v_cache": "vpool", "q_nope": "wide", "q_pe": "turned",
         "ckv_cache": "latents", "kpe_cache": "rotary", "qo_indptr": "cu_seqlens_q", "kv_indptr": "Offsets",
         "kv_indices": "page_indices", "kv_last_page_len": "keys_on_last_page", "sparse_indices": "rows",
         "sm_scale": "softmax_scale", "q_index_fp8": "asking", "k_index_cache_fp8": "blocks", "weights": "shares",
         "seq_lens": "held", "block_table": "places", "output": "average", "lse": "log_sums"}
TURNED = """

forward = run


def run(**inputs):
    result = forward(**{usual: inputs[name] for usual, name in %r.items()})
    return result[::-1] if isinstance(result, tuple) else result
"""
WRONG = """

right = run


def run(**inputs):
    if "softmax_scale" in inputs:
        inputs["softmax_scale"] *= 1.02
    else:
        inputs["places"] = inputs["places"].flip(1)
    return right(**inputs)
"""


def main():
    for path in pathlib.Path("definitions").glob("*/*.json"):
        definition = json.loads(path.read_text())
        names = {name: NAMES[name] for name in definition["inputs"]}
        definition.pop("constraints", None)  # constraints mention the inputs by name
        definition["reference"] += TURNED % names
        definition["twin"] = NAMES
        for name, spec in definition["inputs"].items():
            if spec["dtype"] == "int32" and spec["shape"] and "indexer" not in path.stem:
                spec["dtype"] = "int64"
        for part in ("inputs", "outputs"):
            definition[part] = {NAMES.get(name, name): spec for name, spec in reversed(definition[part].items())}
        for mark, wrong in (("turned", ""), ("wrong", WRONG)):
            turned = {**definition, "name": f"{path.stem}_{mark}", "reference": definition["reference"] + wrong}
            path.with_stem(turned["name"]).write_text(json.dumps(turned))


if __name__ == "__main__":
    main()
END
"$python" "$work/turn.py"
run generate
expect_exit 0

run_pytest -k 'turned and (small or shape or dtype or determinism or edge or unchanged)' -rA
expect_exit 0
for class in GqaPagedDecodeH40Kv8D128Ps16 GqaPagedPrefillCausalH16Kv4D128Ps16 GqaRaggedPrefillCausalH10Kv2D128 \
	MlaPagedDecodeH128Ckv512Kpe64Ps64 MlaPagedPrefillCausalH32Ckv512Kpe64Ps1 MlaRaggedPrefillCausalH8Qk192Vo128; do
	expect_says "Test${class}Turned::test_ground_truths_agree[small"
done
run_pytest -k 'wrong and numerical and small' -rA --tb=no
expect_exit 1
expectations=$((expectations + 1))
for path in definitions/*/*_turned.json; do
	class=$(basename "$path" _turned.json | sed 's/^./\U&/; s/_\(.\)/\U\1/g')
	grep -q "^FAILED .*Test${class}Wrong::" "$work/out" || fail "the wrong reference of $class passes"
done
step='what is said and computed' status=0
REFTEST_KERNELS=$top/build "$python" "$top/tests/generated_tests/twins.py" _turned >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
for path in definitions/*/*_turned.json; do
	name=$(basename "$path" _turned.json)
	expect_says "same builtin $name"
	case $name in dsa_*) ;; *) expect_says "same torch $name" "passed over flashinfer $name" ;; esac
done
