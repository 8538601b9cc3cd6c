#!/bin/sh
# A role says what an input or output is in the operation, and a mode names a variant of the operation. In each
# definition of the starter dataset, all roles and modes stay the same if the inputs are renamed and reordered, and the
# outputs are reordered. EXPECTED and MODES are hand-written lists of the right roles and modes. These lists are
# necessary, because a mistake in one of reftest's C tables, such as two swapped roles, has the same effect under every
# name and in every order. Therefore the mistake would not show if the test only compared results of the C tables with
# each other.
#
# A new family, or a new name of an input or output in the starter dataset, needs new entries in EXPECTED and MODES
# below.
. "$(dirname "$0")/../harness.sh"
case $build in *-asan) skip "Python does not load a sanitized library" ;; esac
"$python" - "$top" "$build/libreftest_kernels.so" <<'END' || fail "roles differ"
import ctypes
import json
import pathlib
import sys

sys.path.insert(0, sys.argv[1] + "/bench")
from other_words import NAMES, in_other_words

# The role of each name in the starter dataset, by family: "name=role", or only the name if the role has the same name.
ATTENTION = ("q k v k_cache=k v_cache=v qo_indptr kv_indptr kv_indices kv_last_page_len=last_page_len sm_scale=scale"
             " output lse")
LATENT = "q_nope=q q_pe ckv_cache=k kpe_cache=k_pe qo_indptr kv_indptr kv_indices kv_last_page_len=last_page_len sm_scale=scale"
LINEAR = ("q k v g=gate g_gamma=gamma A_log=a_log dt_bias beta initial_state=state cu_seqlens scale lower_bound"
          " use_qk_l2norm_in_kernel=l2norm use_beta_sigmoid_in_kernel=sigmoid allow_neg_eigval=doubled"
          " output final_state=new_state")
NORM = "hidden_states=hidden residual weight bias eps output residual_out=updated"
EXPECTED = {
    **dict.fromkeys(("gqa_paged", "gqa_ragged", "mla_ragged"), ATTENTION),
    **dict.fromkeys(("delta_rule", "gated_delta_rule", "gla", "kda", "simple_gla"), LINEAR),
    **dict.fromkeys(("rmsnorm", "gemma_rmsnorm", "layernorm"), NORM),
    "activation": "input=hidden output",
    "cascade": "v_a=v s_a=s v_b=v_other s_b=s_other v s v_other s_other mask v_merged s_merged",
    "dsa_paged": LATENT + " sparse_indices=sparse q_index_fp8=query k_index_cache_fp8=cache weights seq_lens=lengths"
                 " block_table=table output lse topk_indices=indices",
    "gdn": "q k v state initial_state=state A_log=a_log a dt_bias b cu_seqlens initial_state_indices=indices"
           " intermediate_states_buffer=buffer scale use_qk_l2norm=l2norm disable_state_update=frozen"
           " output new_state final_state=new_state",
    "gemm": "A=a B=b C=output",
    "mamba_ssu": "state x z dt A=a B=b C=c D=d dt_bias state_batch_indices=indices dt_softplus=softplus pad_slot_id=pad"
                 " output new_state",
    "mla_paged": LATENT + " output lse",
    "moe": "routing_logits=logits routing_bias=bias topk_ids=ids hidden_states=hidden hidden_states_scale=hidden_scale"
           " gemm1_weights=weights1 gemm1_weights_scale=scale1 gemm2_weights=weights2 gemm2_weights_scale=scale2"
           " output1_scales_scalar=factor_up output1_scales_gate_scalar=factor_gate output2_scales_scalar=factor_down"
           " local_expert_offset=offset routed_scaling_factor=scaling output",
    "page": "append_key=append append_value=append_other append_ckv=append append_kpe=append_other batch_indices positions"
            " k_cache=cache v_cache=cache_other ckv_cache=cache kpe_cache=cache_other kv_indices=indices kv_indptr=indptr"
            " kv_last_page_len=last_page_len",
    "quantize_fp8_per_token_group": "x=hidden eps q=quantized s=scale",
    "rope": "q q_pe=q k k_pe=k pos_ids=positions positions cos_sin_cache rotary_dim interleave rope_scale=scale"
            " rope_theta=theta q_rope=q_out k_rope=k_out q_out k_out q_pe_out=q_out k_pe_out=k_out",
    "sampling": "probs top_k top_p min_p samples=output renormalised=output",
    "softmax": "logits temperature probs=output",
}
# The roles of those outputs whose name is also the name of an input with another role.
OUTPUTS = {"page": "k_cache=output v_cache=output_other ckv_cache=output kpe_cache=output_other k_cache_out=output"
                   " v_cache_out=output_other",
           "cascade": "v=v_merged s=s_merged v_merged s_merged"}
# For each family, the modes that follow from the name of a definition. An entry "part=mode" means that a definition has
# the mode `mode` if its name contains `part`.
MODES = {
    "activation": "gelu_and=gelu gelu_tanh=gelu_tanh silu=silu", "cascade": "merge_states=many", "dsa_paged": "indexer=indexer",
    **dict.fromkeys(("gqa_paged", "gqa_ragged", "mla_paged", "mla_ragged"), "causal=causal"),
    **dict.fromkeys(("delta_rule", "gated_delta_rule", "gla", "kda", "simple_gla", "gdn"),
                    "v_first=v_first l2norm=l2norm beta_sigmoid=sigmoid"),
    "gemm": "gemm=transposed_b",
    "moe": "renorm=renormalise routed=given ds_routing=deepseek llama4=llama4 llama4=weights_on_input"
           " fp8_block=blocks_first",
    "page": "append=padded mla=latent", "rope": "llama31=llama31 with_cos_sin_cache_interleaved=interleaved",
    "sampling": "top_k=top_k top_p=top_p min_p=min_p renorm=renormalise",
}


def roles_by_name(text, names):
    pairs = (word.partition("=") for word in text.split())
    return {role or name: name for name, _, role in pairs if name in names}


def expected(definition):
    family, name = definition["op_type"], definition["name"]
    modes = (word.partition("=") for word in MODES.get(family, "").split())
    return {"roles": roles_by_name(EXPECTED[family], definition["inputs"]),
            "output_roles": roles_by_name(OUTPUTS.get(family, EXPECTED[family]), definition["outputs"]),
            "modes": sorted(mode for part, _, mode in modes if part in name)}


library = ctypes.CDLL(sys.argv[2])
library.reftest_roles.argtypes = ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t


def roles(definition):
    out = ctypes.create_string_buffer(4096)
    code = library.reftest_roles(json.dumps(definition).encode(), out, len(out))
    return json.loads(out.value) if code == 0 else sys.exit("%s: %s" % (definition["name"], out.value.decode()))


paths = sorted(pathlib.Path(sys.argv[1], "definitions").glob("*/*.json"))
for path in paths:
    definition = json.loads(path.read_text(encoding="utf-8"))
    found, words = roles(definition), NAMES.get(definition["op_type"], {})
    if {**found, "modes": sorted(found["modes"])} != expected(definition):
        sys.exit("%s: %s\nexpected: %s" % (path, found, expected(definition)))
    assert set(found["roles"].values()) == set(definition["inputs"]), path
    assert set(found["output_roles"].values()) == set(definition["outputs"]), path
    found["roles"] = {role: words.get(name, name) for role, name in found["roles"].items()}
    other = roles(in_other_words(definition))
    if other != found:
        sys.exit("%s: %s\nin other words: %s" % (path, found, other))
assert len(paths) > 80
END
