#!/bin/sh
# 6100: PyTorch's own kernels verify gemm and attention; what is asked decides which stored verdict counts.
. "$(dirname "$0")/scene.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
pytest_is_here
given tiny_gemm tiny_norm gqa_ragged_prefill_causal_h10_kv2_d128 gqa_paged_prefill_causal_h16_kv4_d128_ps16 \
	mla_paged_decode_h128_ckv512_kpe64_ps64 mla_ragged_prefill_h16_qk192_vo128

# On a CPU the oracle, which is exact, is the best there is.
verify tiny_gemm
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'}"
expect "all(w == [] for w in all_of('tiny_gemm', 'witnesses'))"

# Asked for by name, torch decides alone, and a verdict of builtin does not count for it.
verify tiny_gemm --ground-truth torch
expect_exit 0
expect "s['cases_run'] > 0 and s['cases_cached'] == 0"
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'torch'}"
expect "all(v.split()[0] == c['torch'].split()[0] for v, c in zip(all_of('tiny_gemm', 'ground_truth_version'), d['tiny_gemm']['cases']))"
verify tiny_gemm --ground-truth torch
expect_ran 0
verify tiny_gemm
expect_ran 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'}"

# All: each against the reference and against each other. A family that torch knows nothing of is builtin's.
verify --ground-truth all
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for n in d if n != 'tiny_norm' for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"
expect "all(0 <= case['witnesses'][0]['margin'] <= 1 for n in d if n != 'tiny_norm' for case in d[n]['cases'])"
expect "set(all_of('tiny_norm', 'ground_truth')) == {'builtin'}"
expect "{o['ground_truth'] for o in c['tiny_gemm', d['tiny_gemm']['cases'][0]['id']]['outputs']} == {'torch', 'builtin'}"
verify --ground-truth all --changed
expect_ran 0

# Whether attention is causal is the family's to say: by a name that denies it, or by a tag where the name is silent.
given gqa_ragged_prefill_h16_kv16_d80
cd definitions/gqa_ragged
mv gqa_ragged_prefill_h16_kv16_d80.json gqa_ragged_noncausal.json
mv gqa_ragged_prefill_causal_h10_kv2_d128.json gqa_ragged_tagged.json
edit gqa_ragged_noncausal.json '"name": "gqa_ragged_prefill_h16_kv16_d80"' '"name": "gqa_ragged_noncausal"'
edit gqa_ragged_tagged.json '"name": "gqa_ragged_prefill_causal_h10_kv2_d128"' '"name": "gqa_ragged_tagged"'
edit gqa_ragged_tagged.json '"stage:prefill"' '"stage:prefill", "mask:causal"'
cd ../..
verify --ground-truth all gqa_ragged_noncausal gqa_ragged_tagged
expect_exit 0
expect "all([w['passed_over'] for w in case['witnesses']] == [None, None] for n in ('gqa_ragged_noncausal', 'gqa_ragged_tagged') for case in d[n]['cases'])"
run generate # and of generated tests it is the family's, too
expect_exit 0
run_pytest -k 'test_ground_truths_agree and small and Gqa'
expect_exit 0
expect_says passed

# Who only looks, and who watches, asks of the same verdicts as verify does.
rm -r .reftest definitions && given tiny_gemm
asked="--device cpu --ground-truth all"
run watch --once --json $asked --sizes small,medium
expect_exit 0
run verify --format json $asked
expect_exit 0
expect_ran 0
run status $asked
expect_exit 0
run explain $asked tiny_gemm
expect_exit 0
expect_says 'tiny_gemm is verified' 'by torch'
for command in status explain; do
	run $command --device cpu tiny_gemm
	expect_exit 3
	run $command --device cpu --ground-truth nobody tiny_gemm
	expect_exit 2
	expect_says "'nobody' is no ground truth"
done

# None is left out in silence, and none is asked twice.
run verify --device cpu --ground-truth '' tiny_gemm
expect_exit 2
expect_says 'names none'
run verify --device cpu --ground-truth torch,builtin,torch tiny_gemm
expect_exit 2
expect_says "names 'torch' twice"
run verify --device cpu --ground-truth a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q tiny_gemm
expect_exit 2
expect_says 'names more than 16 ground truths'

# The first of a list; one that has no kernel is passed over, and that is told.
run verify --device cpu --sizes small --ground-truth flashinfer,torch tiny_gemm
expect_exit 0
expect_says 'flashinfer passed over: flashinfer has nothing for gemm' 'torch on cpu'
run verify --device cpu --sizes small --ground-truth flashinfer tiny_gemm
expect_exit 3
expect_says 'no_ground_truth' 'flashinfer has nothing for gemm'
run verify --device cpu --ground-truth cublas tiny_gemm
expect_exit 2
expect_says "'cublas' is no ground truth" 'torch' 'builtin'
