#!/bin/sh
# PyTorch's own kernels are a ground truth for gemm and attention, and on request for norms, activations, softmax and
# page tables. A stored verdict is accepted only if --ground-truth allows its ground truth.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "a GPU has its own choice of ground truths"
pytest_is_here
given tiny_gemm tiny_norm rope_pos_ids_h32_kv8_d128 gqa_ragged_prefill_causal_h10_kv2_d128 gqa_paged_prefill_causal_h16_kv4_d128_ps16 \
	mla_paged_decode_h128_ckv512_kpe64_ps64 mla_ragged_prefill_h16_qk192_vo128

# On a CPU the oracle is exact, so it is the default ground truth.
verify tiny_gemm
expect_exit 0
expect "set(all_of('tiny_gemm', 'ground_truth')) == {'builtin'}"
expect "all(w == [] for w in all_of('tiny_gemm', 'witnesses'))"

# If torch is selected by name, it is the only ground truth, and a stored verdict of builtin is not accepted.
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

# With `--ground-truth all`, every ground truth, including those that `auto` does not use, is compared with the
# reference and with every other ground truth. If torch does not support a family, builtin is used.
for name in fused_add_rmsnorm_h4096 gemma_fused_add_rmsnorm_h4608 layernorm_h768 silu_and_mul_h2048 gelu_and_mul_h5120 \
	gelu_tanh_and_mul_h21504 softmax_e256 softmax_v128256 append_paged_kv_cache_kv8_d128_ps1 \
	append_paged_kv_cache_kv8_d128_ps16 append_paged_mla_kv_cache_ckv512_kpe64_ps64; do
	given $name
done
verify --ground-truth all
expect_exit 0
expect "all([w['name'] for w in case['witnesses']] == ['torch', 'builtin'] for n in d if d[n]['op_type'] != 'rope' for case in d[n]['cases'])"
expect "all(w['passed_over'] is None for n in d for case in d[n]['cases'] for w in case['witnesses'])"
expect "all(0 <= case['witnesses'][0]['margin'] <= 1 for n in d if d[n]['op_type'] != 'rope' for case in d[n]['cases'])"
expect "len(d) == 18 and set(all_of('rope_pos_ids_h32_kv8_d128', 'ground_truth')) == {'builtin'}"
expect "{o['ground_truth'] for o in c['tiny_gemm', d['tiny_gemm']['cases'][0]['id']]['outputs']} == {'torch', 'builtin'}"
verify --ground-truth all --changed
expect_ran 0

# Whether attention is causal follows from the definition's name, or from a tag if the name does not say it.
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
run generate # the same holds for generated tests
expect_exit 0
run_pytest -k 'test_ground_truths_agree and small and Gqa'
expect_exit 0
expect_says passed

# status, explain and watch accept the same stored verdicts as verify.
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
	expect_says "unknown ground truth 'nobody'"
done

# An empty list of ground truths, a list with a name twice, and a list of more than 16 names are errors.
run verify --device cpu --ground-truth '' tiny_gemm
expect_exit 2
expect_says 'names no ground truth'
run verify --device cpu --ground-truth torch,builtin,torch tiny_gemm
expect_exit 2
expect_says "names 'torch' twice"
run verify --device cpu --ground-truth a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q tiny_gemm
expect_exit 2
expect_says 'names more than 16 ground truths'

# The reference is compared with the first ground truth of the list that has a kernel for the case. The ground truths
# before it are skipped, and the reason is reported.
run verify --device cpu --sizes small --ground-truth flashinfer,torch tiny_gemm
expect_exit 0
expect_says 'ground truth flashinfer was skipped: flashinfer does not support gemm' 'torch on cpu'
run verify --device cpu --sizes small --ground-truth flashinfer tiny_gemm
expect_exit 3
expect_says 'no_ground_truth' 'flashinfer does not support gemm'
run verify --device cpu --ground-truth cublas tiny_gemm
expect_exit 2
expect_says "unknown ground truth 'cublas'" 'torch' 'builtin'

# If only the reference has changed, `explain` must not report a changed ground truth, even after `cache gc` has removed
# the old verdict.
rm -r .reftest
run verify --device cpu --sizes small --ground-truth flashinfer,torch tiny_gemm
expect_exit 0
edit definitions/gemm/tiny_gemm.json 'torch.matmul(A.float()' 'torch.matmul(1 * A.float()'
run explain --device cpu --ground-truth flashinfer,torch tiny_gemm
expect_exit 3
expect_says 'small:M=1: stale' 'reference changed'
unchanged_truths() { ! grep -q 'ground_truth' "$work/out" || fail "$step: explain lists a ground truth that did not change"; }
unchanged_truths
sleep 1 # the dates of verdicts have a resolution of one second
given tiny_norm
verify tiny_norm # stores the newest verdict; gc removes the older one, which no definition needs any more
run cache gc --days 0
expect_exit 0
run explain --device cpu --ground-truth flashinfer,torch tiny_gemm
expect_says 'small:M=1: stale' 'reference changed'
unchanged_truths

# If the reference fails, no further ground truth is called. The verdict says that the remaining ground truths were not
# called, and not that they failed.
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'raise ValueError; return torch.matmul'
verify --ground-truth all
expect_exit 1
expect "all(w.get('not_asked') for case in d['tiny_gemm']['cases'] for w in case['witnesses'] if w['passed_over'])"
expect "any(w.get('not_asked') for case in d['tiny_gemm']['cases'] for w in case['witnesses'])"
run verify --device cpu --sizes small --ground-truth all tiny_gemm
! grep -q 'was skipped' "$work/out" || fail "a ground truth that was not called is reported as skipped"
