#!/bin/sh
# With verify --backward, the starter references of linear attention pass. Then the test plants common mistakes that
# change gradients but leave every output unchanged. For each mistake, exactly the gradients that it changes must fail.
. "$(dirname "$0")/../harness.sh"
given tiny_norm gla_recurrent_h4_k64_v128 delta_rule_recurrent_qk_l2norm_h4_d64 gated_delta_rule_recurrent_h2_hv4_d64 \
	kda_chunk_varlen_gate_beta_sigmoid_h4_d64 kda_recurrent_lower_bound_h2_k64_v32 simple_gla_varlen_gamma_h4_k64_v128
"$python" -I -S - >"$work/planted" <<'END'
import json

GLA, DELTA = "gla/gla_recurrent_h4_k64_v128", "delta_rule/delta_rule_recurrent_qk_l2norm_h4_d64"
GATED, CHUNKS = "gated_delta_rule/gated_delta_rule_recurrent_h2_hv4_d64", "kda/kda_chunk_varlen_gate_beta_sigmoid_h4_d64"
BOUND, GAMMA = "kda/kda_recurrent_lower_bound_h2_k64_v32", "simple_gla/simple_gla_varlen_gamma_h4_k64_v128"
RUN = "@torch.no_grad()\ndef run("


def function(name, value, gradient):
    """An autograd.Function of x whose answer is right, and whose gradient is this."""
    return (f"class {name}(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n"
            f"        return {value}\n\n    @staticmethod\n    def backward(ctx, gradient):\n        x, = ctx.saved_tensors\n"
            f"        return gradient * ({gradient})\n\n\n")


# Each entry has a name, a definition, inputs, and the edits (old, new)… The edits must change the gradients of these
# inputs. They may also change other gradients.
MISTAKES = [
    ("gate_detached", GLA, "g", ("torch.exp(g)", "torch.exp(g.detach())")),
    ("state_detached", GLA, "k v initial_state", ("* state\n", "* state.detach()\n")),
    ("first_state_detached", GLA, "initial_state", ("state = initial_state\n", "state = initial_state.detach()\n")),
    ("no_scale_in_dq", GLA, "q", ("scale * torch", "torch"),
     ("q.float(), k", "q.float() - q.float().detach() + scale * q.float().detach(), k")),
    ("last_token_dropped", GLA, "q", ("    return output", "    output[:, -1] = output[:, -1].detach()\n    return output")),
    ("nan_behind_zero", GLA, "q", ("= q.float()", "= q.float() + 0 * torch.sqrt(0 * q.float())")),
    ("norm_detached", DELTA, "q k", ("F.normalize(q.float(), dim=-1)", "q.float() / q.float().norm(dim=-1, keepdim=True).detach()"),
     ("F.normalize(k.float(), dim=-1)", "k.float() / k.float().norm(dim=-1, keepdim=True).detach()")),
    ("beta_lost", DELTA, "beta", ("beta.float()", "beta.detach().float()")),
    ("recall_detached", DELTA, "k", ("value[:, t] - held", "value[:, t] - held.detach()")),
    ("wrong_sigmoid", GATED, "beta", (RUN, function("Sigmoid", "torch.sigmoid(x)", "torch.sigmoid(x)") + RUN),
     ("torch.sigmoid(strength)", "Sigmoid.apply(strength)")),
    ("second_head_of_a_group_dropped", GATED, "k",
     ("key.repeat_interleave(sharing, dim=2)", "torch.stack([key, key.detach()], 3).flatten(2, 3)")),
    ("gate_rounded", GATED, "g", ("torch.exp(g)", "torch.exp(g * 1.05 - (g * 0.05).detach())")),
    ("wrong_softplus", CHUNKS, "g", ("F.softplus(", "Softplus.apply("),
     (RUN, function("Softplus", "F.softplus(x)", "1") + RUN)),
    ("rate_detached", CHUNKS, "A_log", ("torch.exp(A_log)", "torch.exp(A_log.detach())")),
    ("bias_detached", CHUNKS, "dt_bias", ("dt_bias.view", "dt_bias.detach().view")),
    ("rate_twice", BOUND, "A_log", ("torch.exp(A_log)", "torch.exp(2 * A_log - A_log.detach())")),
    ("gate_of_the_first_token_alone", GAMMA, "g_gamma",
     ("state = decay * state", "state = (decay if t == first else decay.detach()) * state")),
]
for name, file, wrong, *edits in MISTAKES:
    with open(f"definitions/{file}.json") as source:
        definition = json.load(source)
    for old, new in edits:
        if definition["reference"].count(old) != 1:
            raise SystemExit(f"{name}: {old!r} occurs {definition['reference'].count(old)} times in {file}")
        definition["reference"] = definition["reference"].replace(old, new)
    definition["name"] += "_" + name  # the part of the name that selects the variant is kept
    with open(f"definitions/{definition['op_type']}/{definition['name']}.json", "w") as out:
        json.dump(definition, out)
    print(definition["name"], wrong)
END
right="gla_recurrent_h4_k64_v128 delta_rule_recurrent_qk_l2norm_h4_d64 gated_delta_rule_recurrent_h2_hv4_d64
	kda_chunk_varlen_gate_beta_sigmoid_h4_d64 kda_recurrent_lower_bound_h2_k64_v32 simple_gla_varlen_gamma_h4_k64_v128"
dense="small:batch_size=2,seq_len=81" packed="small:total_seq_len=130,num_seqs=2,len_cu_seqlens=3"

# Every output is right, and every wrong gradient is found.
for id in $dense $packed; do
	verify --case "$id"
	expect "len(c) > 5 and all(case['status'] == 'passed' for case in c.values())"
	verify --case "$id:backward"
	expect_exit 1
	while read -r name wrong; do
		for input in $wrong; do
			expect "('$name', '$id:backward') not in c or 'd_$input' in [o['name'] for o in c[('$name', '$id:backward')]['outputs'] if o['status'] == 'failed']"
		done
	done <"$work/planted"
	for name in $right; do
		expect "('$name', '$id:backward') not in c or c[('$name', '$id:backward')]['status'] == 'passed'"
	done
	expect "len(c) == sum(id[1] == '$id:backward' for id in c) and sum(case['status'] == 'failed' for case in c.values()) == len(c) - sum(d[name]['status'] == 'passed' for name in '''$right'''.split())"
done

# The messages about one of the wrong definitions are checked. If a family has no oracle for gradients, this is
# reported, and the outputs are verified.
run verify -v --backward --sizes small --device "$device" gla_recurrent_h4_k64_v128_gate_detached tiny_norm
expect_exit 1
expect_says "autograd finds no path from the outputs to input 'g' (its gradient is None); gradient 'd_g': the error ratio" \
	"--case '$dense:backward'" "float64:batch_size=1,seq_len=3:backward" \
	"backward: there is no ground truth of gradients for op family 'rmsnorm': only its outputs are verified"
verify --backward --no-workloads gla_recurrent_h4_k64_v128 gla_recurrent_h4_k64_v128_nan_behind_zero tiny_norm
expect_status gla_recurrent_h4_k64_v128 passed
expect_status tiny_norm passed
expect "len(d['gla_recurrent_h4_k64_v128']['cases']) == 7" # two sizes, one with a scale of 0, the gradients of these three, and one case in float64
expect "c[('gla_recurrent_h4_k64_v128_nan_behind_zero', '$dense:backward')]['reason'] == 'nonfinite'"
# In the float64 case, only the gradient of q fails. The reference adds to q a term whose value is 0 and whose gradient
# is NaN.
expect "all(o['status'] == ('failed' if o['name'] == 'd_q' else 'passed') for o in c[('gla_recurrent_h4_k64_v128_nan_behind_zero', 'float64:batch_size=1,seq_len=3:backward')]['outputs'])"
verify --backward --no-workloads --cached-only gla_recurrent_h4_k64_v128
expect_exit 0
expect_ran 0

# If a reference cannot be differentiated, the result is an error with the reason. If a reference does not support
# float64, its float64 case is omitted, and its other cases run.
cp definitions/gla/gla_recurrent_h4_k64_v128.json "$work/gla.json"
odd() { # odd NAME OLD NEW: writes a definition with this edit of the reference
	sed "s/\"gla_recurrent_h4_k64_v128\"/\"$1\"/" "$work/gla.json" >"definitions/gla/$1.json"
	edit "definitions/gla/$1.json" "$2" "$3"
}
odd gla_detached 'return output.to(v.dtype), state.clone()' 'return output.to(v.dtype).detach(), state.detach()'
odd gla_written_over 'state = initial_state' 'initial_state *= 1; state = initial_state'
odd gla_strict 'scale = scale or' 'assert q.dtype == torch.bfloat16; scale = scale or'
verify --backward --no-workloads gla_detached gla_written_over gla_strict
expect_exit 1
expect "[(case['status'], case['reason']) for case in d['gla_detached']['cases']] == [('passed', None)] * 3 + [('error', 'raised')] * 3 + [('skipped', 'unsupported_dtype')]"
expect "'outputs require no gradient' in d['gla_detached']['cases'][3]['message'] and 'from output, final_state to an input' in d['gla_detached']['cases'][3]['message']"
expect_status gla_written_over error raised
expect "'in-place operation' in d['gla_written_over']['cases'][3]['message'] and 'line' in d['gla_written_over']['cases'][3]['message']"
expect_status gla_strict passed
expect "all_of('gla_strict', 'status') == ['passed'] * 6 + ['skipped'] and d['gla_strict']['cases'][6]['reason'] == 'unsupported_dtype'"
verify --case float64:batch_size=1,seq_len=3:backward gla_strict # the skipped case is selected by its id, so it decides
expect_exit 3
# This reference computes one function under autograd and another one without autograd. Therefore its gradients do not
# belong to the outputs that are compared.
odd gla_two_faces 'scale or q.shape[-1] ** -0.5' '(scale or q.shape[-1] ** -0.5) * (1 if torch.is_grad_enabled() else 1.02)'
verify --case float64:batch_size=1,seq_len=3:backward gla_two_faces
expect_status gla_two_faces failed numeric
expect "'slope_q' in [o['name'] for o in d['gla_two_faces']['cases'][0]['outputs'] if o['status'] == 'failed']"
expect "all(o['status'] == 'passed' for o in d['gla_two_faces']['cases'][0]['outputs'] if o['name'].startswith('d_'))"
# Gradients are computed with torch's deterministic algorithms, if there are any, and outputs with its default
# algorithms.
odd gla_orderly 'scale = scale or' 'assert q.dtype == torch.float64 or torch.get_deterministic_debug_mode() == q.requires_grad; scale = scale or'
verify --backward --no-workloads --sizes small gla_orderly
expect_exit 0
expect "len(c) == 7 and all_of('gla_orderly', 'status') == ['passed'] * 7"
