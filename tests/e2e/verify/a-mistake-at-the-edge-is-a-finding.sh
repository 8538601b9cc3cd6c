#!/bin/sh
# Some references are wrong only for empty inputs, or only where libraries follow different conventions. Such references
# pass by default. With --edge, their mistakes are reported as findings, and with --strict, findings count as failures.
# Correct references have no findings.
. "$(dirname "$0")/../harness.sh"
names="merge_state_h32_d128 append_paged_kv_cache_kv8_d128_ps16 top_k_sampling_from_probs_v32000 softmax_e256 \
	rope_with_cos_sin_cache_neox_style_d128_rd64 silu_and_mul_h2048 gemma_rmsnorm_h5376 layernorm_h768 gemm_n1024_k4096"
given $names
# If the definition's description specifies the behaviour in an edge case, the default cases test this behaviour. In
# this test, only the cases of --edge should test padding. Therefore the test removes the sentence about padding from
# the description.
edit definitions/page/append_paged_kv_cache_kv8_d128_ps16.json ' A token whose batch index is -1 is padding: it is not written.' ''
define tiny_rmsnorm <<END
import torch


def run(hidden_states, weight):
    rows = hidden_states.float().view(-1, 64)
    output = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    return output.to(hidden_states.dtype)
END
verify --no-workloads --edge --strict
expect_exit 0
expect "sum(id[1] == 'edge:no_rows' for id in c) == 7 and sum(id[1] == 'edge:no_tokens' for id in c) == 3"
expect "all(case['status'] == 'passed' and case['findings'] == [] for case in c.values())"

wrong() { # wrong DEFINITION OLD NEW: replaces OLD, which the reference contains exactly once
	edit "definitions"/*/"$1.json" "$2" "$3"
}
wrong merge_state_h32_d128 '.clamp(min=-1e30)' ''
wrong append_paged_kv_cache_kv8_d128_ps16 'batch_indices >= 0' 'batch_indices >= -1'
wrong top_k_sampling_from_probs_v32000 'k <= 0 or k > vocab_size' 'k > vocab_size'
wrong softmax_e256 'return torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True))' \
	'alone = torch.isfinite(logits).sum(dim=-1, keepdim=True) == 1\n    return torch.where(alone, 1 / 256, torch.exp(logits - torch.logsumexp(logits, dim=-1, keepdim=True)))'
wrong rope_with_cos_sin_cache_neox_style_d128_rd64 'return rotate(q, cos, sin), rotate(k, cos, sin)' \
	'q = q.view(len(positions), -1, 128)\n    return rotate(q, cos, sin), rotate(k, cos, sin)'
wrong tiny_rmsnorm 'rows = hidden_states.float().view(-1, 64)' 'rows = torch.stack(list(hidden_states.float()))'
verify --no-workloads
expect_exit 0
expect "s['passed'] == 10 and not any(id[1].startswith('edge:') for id in c)"

verify --no-workloads --edge
expect_exit 0
expect "s['passed'] == 10 and s['failed'] == 0"
at() { # at DEFINITION EDGE STATUS TEXT: expects a finding in this edge case and in no other
	expect "c['$1', 'edge:$2']['status'] == '$3' and '$4' in c['$1', 'edge:$2']['findings'][-1]"
	expect "[id[1] for id, case in c.items() if id[0] == '$1' and case['findings']] == ['edge:$2']"
}
at merge_state_h32_d128 all_empty failed 'where every state is empty'
at append_paged_kv_cache_kv8_d128_ps16 padding error 'is padding and is not written'
at top_k_sampling_from_probs_v32000 open_top_k error 'keeps every token'
at softmax_e256 one_left failed 'becomes 1'
at rope_with_cos_sin_cache_neox_style_d128_rd64 no_tokens error 'the output has no tokens'
at tiny_rmsnorm no_rows error 'the output has no rows'
for name in silu_and_mul_h2048 gemma_rmsnorm_h5376 layernorm_h768 gemm_n1024_k4096; do
	expect "all(case['findings'] == [] for id, case in c.items() if id[0] == '$name')"
done

# When the verdict comes from the cache, the finding is still reported.
verify --no-workloads --edge --strict
expect_exit 1
expect_ran 0
run verify --no-workloads --sizes small --device "$device" --changed --edge --strict
expect_exit 1
expect_says "edge:all_empty  finding: nonfinite" "6 findings, which --strict counts as failures" \
	"expected by convention: where every state is empty (-infinity), v is 0"
# If --case selects an edge case, a mistake in this case is a failure and not a finding.
verify --case edge:no_rows tiny_rmsnorm --force
expect_exit 1
expect_ran 1
expect_status tiny_rmsnorm error raised

# With --edge, reftest adds a small case and a medium case. In these cases it makes the checks that otherwise only
# definitions without ground truth get. If one of these checks fails although the outputs are right, this is a finding.
# If a reference ends its process in one of the added cases, its other cases are still compared.
norm() { # norm NAME STATEMENT
	define "$1" <<END
import torch


def run(hidden_states, weight):
    x = hidden_states
    $2
    x = x.float()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
END
}
norm kept 'pass'
norm strides 'x = torch.as_strided(x, x.shape, (64, 1))'
norm ends 'import os; x.is_contiguous() or os._exit(3)'
verify --no-workloads --edge kept strides ends
expect_exit 0
expect "s['passed'] == 3 and all(case['status'] == 'passed' for case in c.values())"
expect "all(case['checks'] == [] for id, case in c.items() if not id[1].startswith('checks:'))"
checks() { printf "[[(k['name'], k['result']) for k in case['checks']] for id, case in c.items() if id == ('%s', 'checks:batch_size=256')]" "$1"; }
step="checks: $(value "[$(checks kept), $(checks strides), $(checks ends)]")"
expect "$(checks kept) == [[('strided', 'holds'), ('rows', 'holds'), ('numerics', 'holds')]]"
expect "$(checks strides) == [[('strided', 'fails'), ('rows', 'holds'), ('numerics', 'holds')]]"
expect "$(checks ends) == [[('strided', 'not_run'), ('rows', 'not_run'), ('numerics', 'not_run')]]"
expect "{id[0]: case['findings'] for id, case in c.items() if case['findings']} == {'strides': [\"strided: output 'output' has other values if the inputs are not contiguous\"]}"
expect "len(c['ends', 'checks:batch_size=256']['outputs']) == 1"
verify --no-workloads --edge --strict strides
expect_exit 1
verify --no-workloads strides
expect_exit 0
expect_ran 0

# With --edge, a case with three rows runs, too. A wrong result in this case is a failure.
norm few 'x = x[:1].expand_as(x) if 1 < len(x) < 9 else x'
verify --no-workloads few
expect_exit 0
verify --no-workloads --edge few kept
expect_exit 1
expect "{id for id, case in c.items() if case['status'] == 'failed'} == {('few', 'few:batch_size=3')}"
expect "c['kept', 'few:batch_size=3']['status'] == 'passed'"
given gqa_paged_decode_h40_kv8_d128_ps16
wrong gqa_paged_decode_h40_kv8_d128_ps16 'for i in range(batch_size):' 'for i in range(1 if 1 < batch_size < 4 else batch_size):'
verify --no-workloads gqa_paged_decode_h40_kv8_d128_ps16
expect_exit 0
verify --no-workloads --edge gqa_paged_decode_h40_kv8_d128_ps16
expect_exit 1
expect "[id[1][:17] for id, case in c.items() if case['status'] == 'failed'] == ['few:batch_size=3,']"

# If each row of the outputs depends only on the same row of the inputs in the small case, this must also hold in the
# medium case. Otherwise the check `rows` reports a finding. The tolerance of this definition allows a few wrong rows,
# so the case itself passes.
norm mixes 'pass'
edit definitions/rmsnorm/mixes.json 'x = x.float()' 'x = x.float()\n    if len(x) > 256:\n        x = torch.cat([x[:1] + x[-1:], x[1:]])'
edit definitions/rmsnorm/mixes.json '"inputs"' '"tolerance": {"hit_ratio": 0.9}, "inputs"'
run verify --format json --device "$device" --sizes small,medium --no-workloads --edge mixes kept
expect_exit 0
expect "[(id[0], id[1][:7], case['status'], [f[:5] for f in case['findings']]) for id, case in c.items() if case['findings']] == [('mixes', 'checks:', 'passed', ['rows:'])]"
expect "[f for case in c.values() for f in case['findings'] if \"rows along 'batch_size' are independent of each other in case checks:batch_size=256\" in f]"
