"""A dataset in other words: python3 bench/other_words.py ROOT OUT

Writes to OUT/definitions what ROOT/definitions has, each definition with other names for its inputs, these in another order, and
its outputs in another: as far as its op family takes that. The reference is the same, asked by its own names. Every ground truth
has to agree with these as it does with those:

    reftest --root OUT verify --ground-truth all --sizes small

Besides, of gdn definitions: one whose k has as many heads as v, for q and k may have numbers of their own."""

import json
import pathlib
import re
import sys

ATTENTION = {
    "q": "asking", "k": "key", "v": "value", "k_cache": "kpool", "v_cache": "vpool", "q_nope": "wide", "q_pe": "turned",
    "ckv_cache": "latents", "kpe_cache": "rotary", "qo_indptr": "cu_seqlens_q", "kv_indptr": "Offsets",
    "kv_indices": "page_indices", "kv_last_page_len": "keys_on_last_page", "sparse_indices": "rows", "sm_scale": "softmax_scale",
    "q_index_fp8": "asking", "k_index_cache_fp8": "octets", "weights": "shares", "seq_lens": "held", "block_table": "places"}
LINEAR = {"q": "query", "k": "key", "v": "value", "scale": "Scale", "g_gamma": "Gamma", "initial_state": "h0",
          "use_beta_sigmoid_in_kernel": "beta_sigmoid"}
NAMES = {
    **dict.fromkeys(("gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged", "dsa_paged"), ATTENTION),
    **dict.fromkeys(("kda", "gla", "simple_gla", "delta_rule", "gated_delta_rule"), LINEAR),
    "gdn": {"q": "query", "k": "key", "v": "value", "A_log": "a_log_of_decay", "scale": "Scale"},
    "layernorm": {"bias": "shift"},
    "mamba_ssu": {"state": "pool", "state_batch_indices": "slots", "pad_slot_id": "padding"},
    "sampling": {"probs": "top_k_probs"},
    "softmax": {"logits": "logits_of_temperature"},
}
BY_ORDER = {"cascade", "page"}  # families that tell inputs which look alike by their order
OUTPUTS_BY_ORDER = {*BY_ORDER, "rope"}
TURNED = """

forward = run


def run(%s):
    result = forward(%s)
    return result%s
"""


def in_order(definition):
    """Names of inputs: backwards where shapes tell all of them apart, vectors first where names have to."""
    family, inputs = definition["op_type"], definition["inputs"]
    if family in BY_ORDER:
        return list(inputs)
    if NAMES.get(family) is ATTENTION or family == "gemm":
        return list(inputs)[::-1]
    return sorted(inputs, key=lambda name: len(inputs[name]["shape"] or ()))


def in_other_words(definition):
    words = NAMES.get(definition["op_type"], {})
    names = {name: words.get(name, name) for name in definition["inputs"]}
    turned = len(definition["outputs"]) > 1 and definition["op_type"] not in OUTPUTS_BY_ORDER
    inputs = {names[name]: definition["inputs"][name] for name in in_order(definition)}
    given = ", ".join("%s=%s" % pair for pair in names.items())
    other = {**definition, "name": definition["name"] + "_in_other_words", "inputs": inputs,
             "reference": definition["reference"] + TURNED % (", ".join(inputs), given, "[::-1]" if turned else "")}
    if turned:
        other["outputs"] = dict(reversed(definition["outputs"].items()))
    other.pop("constraints", None)  # they speak of names
    return other


def with_heads_of_k(definition):
    """None: not a gdn whose reference shares q and k among the heads of v in the starter dataset's words."""
    axis = re.search(r"sharing = v\.shape\[(\d)\]", definition["reference"])
    if definition["op_type"] != "gdn" or axis is None or "l2norm" in definition["name"]:
        return None
    other = json.loads(json.dumps(definition))
    other["axes"]["num_k_heads"]["value"] = other["axes"]["num_v_heads"]["value"]
    own = r"\g<1>v.shape[%s] // k.shape[%s]" % (axis[1], axis[1])
    other["reference"] = re.sub(r"(key = .*repeat_interleave\()sharing", own, other["reference"])
    other["name"] += "_heads_of_k"
    other.pop("constraints", None)
    return other


def main(root, out):
    for path in sorted(pathlib.Path(root, "definitions").glob("*/*.json")):
        definition = json.loads(path.read_text(encoding="utf-8"))
        for other in (in_other_words(definition), with_heads_of_k(definition)):
            if other is not None:
                to = pathlib.Path(out, "definitions", path.parent.name, other["name"] + ".json")
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_text(json.dumps(other), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
