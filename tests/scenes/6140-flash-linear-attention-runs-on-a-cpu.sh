#!/bin/sh
# 6140: flash-linear-attention's plain PyTorch forms agree with the oracle in all forms of the gated delta net.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "on a GPU its Triton kernels run"
fla_is_here
given gdn_decode_qk8_v16_d128_k_last gdn_mtp_qk2_v4_d128_k_last gdn_mtp_qk_l2norm_qk2_v4_d128_k_last \
	gdn_prefill_qk2_v4_d128_k_last
verify --ground-truth all --timeout 300
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for n in d for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"

# What a reference leaves in an input that only builtin tells of: builtin is asked too, and without it nothing is verified.
rm -r definitions/gdn
given gdn_mtp_qk2_v4_d128_k_last
buffer="--case small:batch_size=1,seq_len=2,pool_size=3" # another case has no buffer
verify --ground-truth fla,builtin $buffer
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['fla', 'builtin'] for n in d for case in d[n]['cases'])"
expect "{'intermediate_states_buffer'} == {o['name'] for n in d for case in d[n]['cases'] for o in case['outputs']} - {'output', 'final_state'}"
cp definitions/gdn/gdn_mtp_qk2_v4_d128_k_last.json definitions/gdn/edited.json # and of one that leaves something else in it
edit definitions/gdn/edited.json '"name": "gdn_mtp_qk2_v4_d128_k_last"' '"name": "edited"'
edit definitions/gdn/edited.json '[slots, t] = held' '[slots, t] = held * 1.5'
verify --ground-truth fla $buffer
for name in gdn_mtp_qk2_v4_d128_k_last edited; do
	expect_status $name skipped no_ground_truth
	expect "'name it too' in d['$name']['cases'][0]['message']"
done
REFTEST_KEPT_INPUTS=0 verify --ground-truth fla,builtin $buffer edited
expect_exit 1
expect_status edited failed numeric
