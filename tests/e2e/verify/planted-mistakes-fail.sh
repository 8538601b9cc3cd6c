#!/bin/sh
# Common mistakes in a norm and in a matrix product are planted in correct references. Each wrong reference fails at
# every size, and the correct references pass.
. "$(dirname "$0")/../harness.sh"

norm() { # norm NAME EXPRESSIONS: writes a norm that computes its result with these expressions of `rows` and `weight`
	define "$1" <<END
import torch


def run(hidden_states, weight):
    rows, weight = hidden_states.float(), weight.float()
    $2
    return output.to(hidden_states.dtype)
END
}
norm right 'output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight'
norm epsilon_of_another_model 'output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-5) * weight'
norm no_epsilon 'output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True)) * weight'
norm variance 'output = rows * torch.rsqrt(rows.var(-1, keepdim=True, unbiased=False) + 1e-6) * weight'
norm one_plus_weight 'output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * (1 + weight)'
norm a_column_left_out 'output = rows * torch.rsqrt(rows[:, 1:].square().mean(-1, keepdim=True) + 1e-6) * weight'
norm one_percent 'output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight * 1.01'
norm rounded_to_fp8 'rows = rows.to(torch.float8_e4m3fn).float(); output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight'
norm nonsense 'output = rows * 0 + 7'

product() { # NAME EXPRESSION
	given tiny_gemm
	mv definitions/gemm/tiny_gemm.json "definitions/gemm/$1.json"
	rm workloads/gemm/tiny_gemm.jsonl
	edit "definitions/gemm/$1.json" '"tiny_gemm"' "\"$1\""
	edit "definitions/gemm/$1.json" 'torch.matmul(A.float(), B.float().T).to(A.dtype)' "($2).to(A.dtype)"
}
product right_product 'A.float() @ B.float().T'
product product_a_column_left_out 'A.float()[:, 1:] @ B.float()[:, 1:].T'
product product_one_percent '(A.float() @ B.float().T) * 1.01'
product product_rounded_to_fp8 'A.to(torch.float8_e4m3fn).float() @ B.to(torch.float8_e4m3fn).float().T'
product product_nonsense '(A.float() @ B.float().T) * 0 + 7'

verify --sizes small,medium
expect_exit 1
expect_status right passed
expect_status right_product passed
for name in epsilon_of_another_model no_epsilon variance one_plus_weight a_column_left_out one_percent rounded_to_fp8 \
	nonsense product_a_column_left_out product_one_percent product_rounded_to_fp8 product_nonsense; do
	expect "d['$name']['status'] == 'failed'"
	expect "any(case['status'] == 'failed' for id, case in c.items() if id[0] == '$name' and id[1].startswith('small:'))"
	expect "any(case['status'] == 'failed' for id, case in c.items() if id[0] == '$name' and id[1].startswith('medium:'))"
done
