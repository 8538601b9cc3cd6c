#!/bin/sh
# Without reftest's kernels, generated tests use simple inputs that are valid for the operation, and compare the outputs
# with those of PyTorch and other installed libraries. Checks that need reftest's kernels are skipped with a reason. If
# reftest's kernels are installed, a wrong result for empty tensors fails the test. In other edge cases the expected
# result is only a convention, and a mismatch gives a warning.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "on a GPU other libraries are used"
pytest_is_here
given gqa_paged_prefill_causal_h16_kv4_d128_ps16 gqa_ragged_prefill_causal_h10_kv2_d128 \
	mla_paged_decode_h128_ckv512_kpe64_ps64 dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64 \
	append_paged_kv_cache_kv8_d128_ps16 rope_pos_ids_h32_kv8_d128 top_k_renorm_probs_v32000 gdn_mtp_qk_l2norm_qk2_v4_d128_k_last \
	kda_chunk_varlen_gate_beta_sigmoid_h4_d64 softmax_v128256 top_k_sampling_from_probs_v32000 \
	mamba_ssu_decode_gated_h16_d64_s128_ng4 dsa_topk_indexer_fp8_h64_d128_topk2048_ps64
rm -rf workloads
run generate
expect_exit 0
without() { # without WORD…: runs pytest without reftest's kernels
	step="pytest $*"
	REFTEST_KERNELS=$work/nowhere "$python" -m pytest -q -p no:cacheprovider --device cpu tests/references "$@" \
		>"$work/out" 2>"$work/err" && status=0 || status=$?
}
without -rA --tb=short -k 'small or shape or kept or independent or edge'
expect_exit 0
for class in GqaPagedPrefillCausalH16Kv4D128Ps16 GqaRaggedPrefillCausalH10Kv2D128 MlaPagedDecodeH128Ckv512Kpe64Ps64 \
	AppendPagedKvCacheKv8D128Ps16 GdnMtpQkL2normQk2V4D128KLast KdaChunkVarlenGateBetaSigmoidH4D64 SoftmaxV128256; do
	for method in test_numerical_correctness.small test_calls_are_independent; do
		expectations=$((expectations + 1))
		grep -q "^PASSED .*::Test${class}::$method" "$work/out" || fail "$class: $method compares with nothing"
	done
done
for class in DsaSparseAttentionH16Ckv512Kpe64Topk2048Ps64 RopePosIdsH32Kv8D128 TopKRenormProbsV32000 \
	TopKSamplingFromProbsV32000 MambaSsuDecodeGatedH16D64S128Ng4; do
	expectations=$((expectations + 1))
	grep -q "^PASSED .*::Test${class}::test_output_shape" "$work/out" || fail "$class has no plain inputs"
done
expect_says "inputs: only reftest can generate valid values of 'k_index_cache_fp8'; install reftest (reftest's kernels are not available" \
	"inputs: reftest's kernels are not available" "builtin: reftest's kernels are not available"

given rmsnorm_h128
edit definitions/softmax/softmax_v128256.json 'torch.softmax(scaled, dim=-1)' 'torch.softmax(scaled * scaled / scaled, dim=-1)'
edit definitions/rmsnorm/rmsnorm_h128.json 'def run(hidden_states, weight):' 'def run(hidden_states, weight):\n    assert len(hidden_states) > 0'
run generate
run_pytest -k 'edge and (Softmax or Rmsnorm)' -rA
expect_exit 1
expect_says 'departs from the convention of the edge case one_left:batch_size=' \
	'FAILED tests/references/test_rmsnorm.py::TestRmsnormH128::test_edge_cases[no_rows:batch_size=0]' \
	'FAILED tests/references/test_rmsnorm.py::TestRmsnormH128::test_edge_cases[edge:batch_size=0]' \
	'PASSED tests/references/test_rmsnorm.py::TestRmsnormH128::test_edge_cases[edge:batch_size=1]'
expect_silence_about 'FAILED tests/references/test_softmax.py'
