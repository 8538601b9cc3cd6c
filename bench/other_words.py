"""other_words - writes a copy of a dataset with other names and orders of inputs. You can use the copy to check that no
ground truth depends on these names and orders.

    python3 bench/other_words.py ROOT OUT
    reftest --root OUT verify --ground-truth all --sizes small

Writes the definitions of ROOT/definitions to OUT/definitions. The copies have other input names, another order of
inputs, and another order of outputs if the op family allows it. The run() of a copy calls the original reference. A
ground truth that agrees with an original definition must also agree with its copy. Also writes definitions of the op
family gdn in which k has as many heads as v. In these definitions, q has fewer heads than k."""

import json
import pathlib
import re
import sys

ATTENTION = {
    "q": "asking", "k": "key", "v": "value", "k_cache": "kpool", "v_cache": "vpool", "q_nope": "wide", "q_pe": "turned",
    "ckv_cache": "latents", "kpe_cache": "rotary", "qo_indptr": "cu_seqlens_q", "kv_indptr": "Offsets",
    "kv_indices": "page_indices", "kv_last_page_len": "keys_on_last_page", "sparse_indices": "rows", "sm_scale": "softmax_scale",
    "q_index_fp8": "asking", "k_index_cache_fp8": "blocks", "weights": "shares", "seq_lens": "held", "block_table": "places"}
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
BY_ORDER = {"cascade", "page"}  # op families that distinguish similar inputs by their order
OUTPUTS_BY_ORDER = {*BY_ORDER, "rope"}
TURNED = """

forward = run


def run(%s):
    result = forward(%s)
    return result%s
"""


def in_order(definition):
    """Returns a new order of the inputs. If the op family is in BY_ORDER, the order stays the same. For attention
    and gemm, the order is reversed. For every other family, inputs with fewer dimensions come first."""
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
    other.pop("constraints", None)  # constraints use the old names, so the copy has none
    return other


def with_heads_of_k(definition):
    """Returns a copy of a gdn definition in which k has as many heads as v. Returns None for other families, and for
    definitions with "l2norm" in the name. Also returns None if the reference does not compute `sharing` as the starter
    dataset does (`sharing` is how many times q and k are repeated). The copy names no model, because no model has these
    heads."""
    axis = re.search(r"sharing = v\.shape\[(\d)\]", definition["reference"])
    if definition["op_type"] != "gdn" or axis is None or "l2norm" in definition["name"]:
        return None
    other = json.loads(json.dumps(definition))
    other["axes"]["num_k_heads"]["value"] = other["axes"]["num_v_heads"]["value"]
    own = r"\g<1>v.shape[%s] // k.shape[%s]" % (axis[1], axis[1])
    other["reference"] = re.sub(r"(key = .*repeat_interleave\()sharing", own, other["reference"])
    other["name"] += "_heads_of_k"
    other.pop("constraints", None)
    other["tags"] = [tag for tag in other.get("tags", ()) if not tag.startswith("model:")]
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
