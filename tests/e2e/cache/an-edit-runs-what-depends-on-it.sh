#!/bin/sh
# After an edit, only the cases that depend on the edited part run again, and `explain` names the edited field. The
# edits: one line of a reference, one axis, one dtype, a tolerance, a workload line, the bytes of a safetensors file, a
# description that says "in place", the order of inputs.
# After the edit is undone, no case runs, because the old verdicts are still stored.
. "$(dirname "$0")/../harness.sh"

norm=definitions/rmsnorm/tiny_norm.json gemm=definitions/gemm/tiny_gemm.json
lines=workloads/rmsnorm/tiny_norm.jsonl rows=blob/workloads/rmsnorm/tiny_norm/rows.safetensors
given tiny_norm tiny_gemm
verify
expect_exit 0
norms=$(value "len(d['tiny_norm']['cases'])") gemms=$(value "len(d['tiny_gemm']['cases'])")
cp -r definitions workloads blob "$work/"

# `reverted`: restores the original files, and expects that no case runs.
reverted() {
	cp -r "$work/definitions" "$work/workloads" "$work/blob" .
	expect_nothing_to_do
	verify --cached-only
	expect_cached $((norms + gemms))
}

edit $norm 'return (normed * weight.float())' 'return (weight.float() * normed)'
verify
expect_exit 0
expect_ran "$norms"
expect_cached "$gemms"
reverted

edit $norm 'return (normed * weight.float())' 'return (normed * weight.float() * 2)'
expect_why tiny_norm 'reference'
verify
expect_exit 1
expect_ran "$norms"
expect_status tiny_norm failed numeric
verify
expect_ran 0 # a failed verdict is stored, too
expect_exit 1
reverted

edit $gemm '"value": 16' '"value": 24'
expect_why tiny_gemm 'axes.N'
verify
expect_exit 0
expect_ran "$gemms"
reverted

sed -i 's/"dtype": "float16"/"dtype": "bfloat16"/' $gemm
verify
expect_exit 0
expect_ran "$gemms"
expect_cached "$norms"
reverted

verify --atol 0.5 tiny_gemm
expect_exit 0
expect_ran "$gemms"
verify --atol 0.5 tiny_gemm
expect_ran 0

edit $lines '"batch_size": 7' '"batch_size": 9'
verify
expect_exit 0
expect_ran 1
expect_cached $((norms + gemms - 1))
reverted
sed 1q $lines | sed 's/000000000001/000000000003/; s/"batch_size": 7/"batch_size": 3/' >>$lines
verify
expect_exit 0
expect_ran 1
expect "c['tiny_norm', 'workload:11111111-0000-4000-8000-000000000003']['cached'] is False"
expect_cached $((norms + gemms))
reverted

# The last bytes of the safetensors file belong to the tensor `weight`, and only one workload line reads this tensor.
printf '\100\077' | dd of=$rows bs=1 seek=$(($(wc -c <$rows) - 2)) conv=notrunc 2>/dev/null
verify
expect_exit 0
expect_ran 1
expect "c['tiny_norm', 'workload:11111111-0000-4000-8000-000000000002']['cached'] is False"
reverted

# If an edited description says something else about whether the operation works in place, the cases run again.
page=definitions/page/append_paged_kv_cache_kv8_d128_ps1.json
given append_paged_kv_cache_kv8_d128_ps1
verify append_paged_kv_cache_kv8_d128_ps1
expect_exit 0
edit $page '"description": "Appends' '"description": "Works in place. Appends'
expect_why append_paged_kv_cache_kv8_d128_ps1 'inputs.k_cache.in_place'
verify append_paged_kv_cache_kv8_d128_ps1
expect_exit 1
expect_status append_paged_kv_cache_kv8_d128_ps1 failed mutated_input

# If an input is passed by position, the cases run again after the order of the inputs has changed.
mkdir -p definitions/gemm
cat >definitions/gemm/by_place.json <<'J'
{"name": "by_place", "op_type": "gemm", "description": "C = A B^T.",
 "axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 4}, "K": {"type": "const", "value": 8}},
 "inputs": {"a-A": {"shape": ["M", "K"], "dtype": "float32"}, "b-B": {"shape": ["N", "K"], "dtype": "float32"}},
 "outputs": {"C": {"shape": ["M", "N"], "dtype": "float32"}},
 "reference": "def run(x, y):\n    return x @ y.T\n"}
J
verify by_place
expect_exit 0
verify by_place
expect_ran 0
edit definitions/gemm/by_place.json '"a-A": {"shape": ["M", "K"], "dtype": "float32"}, "b-B": {"shape": ["N", "K"], "dtype": "float32"}' \
	'"b-B": {"shape": ["N", "K"], "dtype": "float32"}, "a-A": {"shape": ["M", "K"], "dtype": "float32"}'
expect_why by_place 'inputs changed: a-A, b-B, now b-B, a-A'
verify by_place
expect_exit 1
expect_status by_place failed shape
