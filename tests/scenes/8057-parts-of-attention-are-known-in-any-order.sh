#!/bin/sh
# 8057: generated tests of attention take inputs and outputs in any order, offsets of 32 and 64 bits, and any names that the family
# knows: they make the same inputs, the same edge cases and the same calls as for the usual ones, pass for right references and
# fail for wrong ones.
. "$(dirname "$0")/scene.sh"
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
         "sm_scale": "softmax_scale", "q_index_fp8": "asking", "k_index_cache_fp8": "octets", "weights": "shares",
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
        definition.pop("constraints", None)  # they speak of names
        definition["reference"] += TURNED % names
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

# What is made and asked for a turned definition is, part by part, what is for the usual one.
cat >"$work/same.py" <<'END'
import pathlib
import sys

sys.path.insert(0, "tests/references")
import conftest
import torch
from turn import NAMES


class Asked(Exception):
    """The call that answers was made."""


class Library:
    """Notes what it is asked."""

    def __init__(self, notes, name=""):
        self.notes, self.name = notes, name

    def __getattr__(self, name):
        return Library(self.notes, name)

    def __call__(self, *args, **words):
        self.notes.append((self.name, *args, *sorted(words.items())))
        if self.name == "run" or self.name.startswith("flash_"):
            raise Asked
        return self


def plain(value):
    """Tensors by what they hold: NaN and a workspace nobody filled have none that can be compared."""
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, torch.Tensor):
        held = [] if value.numel() > 1 << 26 else conftest.bits(value).tolist()
        return value.dtype, tuple(value.shape), held
    return value


def asked(test, inputs):
    found = {}
    for function in test.GROUND_TRUTHS:
        name, notes = conftest.truth_name(function), []
        if name == "torch":
            continue
        conftest.need = lambda *words: Library(notes)
        try:
            function(test, dict(inputs))
        except (Asked, NotImplementedError) as end:
            found[name] = [*notes, repr(end)]
    return plain(sorted(found.items()))


conftest.need_capability = lambda *words: 9
for path in sorted(pathlib.Path("tests/references").glob("test_*.py")):
    tests = {x.NAME: x for x in vars(__import__(path.stem)).values() if hasattr(x, "NAME")}
    edges = [x for name, x in vars(sys.modules[path.stem]).items() if name.endswith("_edges")][-1]  # its own come last
    for name in [name for name in tests if name + "_turned" in tests]:
        pair = tests[name], tests[name + "_turned"]
        one, other = (conftest.definition_of(test) for test in pair)
        axes = pair[0].SIZES[1].axes
        assert edges(one, axes) == edges(other, axes), f"{name}: other edges"
        usual, turned = (test.generate_random_inputs(axes) for test in pair)
        assert list(turned) == list(other["inputs"]), f"{name}: out of order"
        for part, value in usual.items():
            other_value = turned[NAMES[part]]
            if isinstance(value, torch.Tensor) and not value.is_floating_point():
                other_value = other_value.to(value.dtype)
            assert conftest.same_bits(value, other_value), f"{name}: another {part}"
        if pair[0].JUDGE is None:
            rules = [[test.TOLERANCE(d, axes, i) for i in (0, 1)] for test, d in zip(pair, (one, other))]
            assert rules[0] == rules[1][::-1], f"{name}: other tolerances"
        calls = asked(pair[0], usual), asked(pair[1], turned)
        assert calls[0] == calls[1], f"{name}: another call"
        print(name, [library for library, notes in calls[0] if notes[-1] == repr(Asked())])
END
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
	grep -q "^FAILED .*Test${class}Wrong::" "$work/out" || fail "nothing is found wrong with $class"
done
step='what is made and asked' status=0
PYTHONPATH="$work:$PYTHONPATH" "$python" "$work/same.py" >"$work/out" 2>"$work/err" || status=$?
expect_exit 0
expect_says "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64 []"
for path in definitions/*/*_turned.json; do
	name=$(basename "$path" _turned.json)
	case $name in dsa_topk_indexer*) ;; *) expect_says "$name ['flashinfer', 'sglang']" ;; esac
done
