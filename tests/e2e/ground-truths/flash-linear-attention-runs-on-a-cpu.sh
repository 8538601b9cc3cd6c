#!/bin/sh
# Flash-linear-attention's plain PyTorch implementations agree with the oracle for all forms of the gated delta net.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "on a GPU flash-linear-attention runs its Triton kernels"
fla_is_here
given gdn_decode_qk8_v16_d128_k_last gdn_mtp_qk2_v4_d128_k_last gdn_mtp_qk_l2norm_qk2_v4_d128_k_last \
	gdn_prefill_qk2_v4_d128_k_last
verify --ground-truth all --no-workloads --timeout 300
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for n in d for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"

# If a reference updates an input, only the ground truth `builtin` (reftest's own kernels) knows the correct final value
# of this input. Therefore builtin is called in addition to FLA. If builtin is not selected, a case in which the
# reference updates an input is not verified.
rm -r definitions/gdn
given gdn_mtp_qk2_v4_d128_k_last
buffer="--case small:batch_size=1,seq_len=2,pool_size=3" # the other cases have no buffer of intermediate states
verify --ground-truth fla,builtin $buffer
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for n in d for case in d[n]['cases'])"
expect "{'intermediate_states_buffer'} == {o['name'] for n in d for case in d[n]['cases'] for o in case['outputs']} - {'output', 'final_state'}"
# The edited reference leaves wrong values in the input that it updates.
cp definitions/gdn/gdn_mtp_qk2_v4_d128_k_last.json definitions/gdn/edited.json
edit definitions/gdn/edited.json '"name": "gdn_mtp_qk2_v4_d128_k_last"' '"name": "edited"'
edit definitions/gdn/edited.json '[slots, t] = held' '[slots, t] = held * 1.5'
verify --ground-truth fla $buffer
for name in gdn_mtp_qk2_v4_d128_k_last edited; do
	expect_status $name skipped no_ground_truth
	expect "'add builtin to --ground-truth' in d['$name']['cases'][0]['message']"
done
REFTEST_KEPT_INPUTS=0 verify --ground-truth fla,builtin $buffer edited
expect_exit 1
expect_status edited failed numeric
