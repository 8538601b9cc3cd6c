#!/bin/sh
# examples/ is a dataset of operations that no op family knows. The ground truths of these operations are a file in
# truths/, a solution, a chain of operations, and a function of FlashInfer. Each definition passes, and fails once a
# mistake is planted. A module named flashinfer replaces the library, and the provider's table allows calls on a CPU.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the library's place is taken on a CPU"
cp -r "$top/examples/." .
rm -rf .reftest
mkdir providers
export REFTEST_PROVIDERS="$PWD/providers"
cat >providers/fi_api.py <<P
import sys
import types

import reftest_providers
from reftest_providers import Need, Row, Table

real = reftest_providers.load("real_fi_api", "$top/python/libraries/fi_api.py")
flashinfer = sys.modules["flashinfer"] = types.ModuleType("flashinfer")
flashinfer.sampling = sys.modules["flashinfer.sampling"] = types.ModuleType("flashinfer.sampling")
exec("""
def top_k_mask_logits(logits, top_k):
    order = logits.sort(descending=True).values
    return logits.where(logits >= order[:, top_k - 1, None], float("-inf"))
""", flashinfer.sampling.__dict__)
TABLES = (Table("fi_api", (Need(("torch",), "torch"),), {"*": Row(real.fi_api, cpu=True, first_use_s=0)}),)
P

verify
expect_exit 3
expect "[(n, d[n]['cases'][0]['ground_truth']) for n in sorted(d) if d[n]['status'] == 'passed'] == [('gated_norm_h256', 'truth'),
	('huber_h128', 'solution:torch_huber'), ('norm_projection_h128', 'chain')]"
expect_status top_k_mask_v512 checked no_ground_truth # on a CPU auto calls no library
verify --ground-truth fi_api top_k_mask_v512
expect_exit 0
expect "d['top_k_mask_v512']['cases'][0]['ground_truth'] == 'fi_api'"
run check
expect_exit 0
expect_says '4 definitions, 0 workload files with 0 lines, 1 solution, 0 traces: 0 errors'

# The planted mistakes: a wrong epsilon, which shows only in rows with small values; a missing term; 1 + weight instead
# of the weight; <= instead of <.
edit definitions/gated_norm/gated_norm_h256.json 'EPSILON = 1e-6' 'EPSILON = 1e-5'
edit definitions/huber/huber_h128.json 'distance - 0.5)' 'distance)'
edit definitions/norm_projection/norm_projection_h128.json 'scale * weight)' 'scale * (1 + weight))'
edit definitions/top_k_mask/top_k_mask_v512.json 'logits < least' 'logits <= least'
verify
expect_exit 1
for name in gated_norm_h256 huber_h128 norm_projection_h128; do expect_status "$name" failed numeric; done
expect_status top_k_mask_v512 checked no_ground_truth
verify --ground-truth fi_api top_k_mask_v512
expect_exit 1
expect "d['top_k_mask_v512']['status'] == 'failed'"
