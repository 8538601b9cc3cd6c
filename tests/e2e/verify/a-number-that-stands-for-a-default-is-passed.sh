#!/bin/sh
# The description of a Python scalar may say that the value 0 stands for a default. Then one of the cases gives the
# scalar the value 0. A reference that computes with the number 0 fails, and a reference that uses the default instead
# passes. If the description does not mention the value 0, no generated case gives this value. If a workload gives the
# value 0, a reference that uses the default passes this case, too. If the words of the description about the value 0
# change, the definition is verified again.
. "$(dirname "$0")/../harness.sh"
name=gqa_ragged_prefill_causal_h10_kv2_d128
definition_file=definitions/gqa_ragged/$name.json
given $name
silent='"Factor on the logits, usually 1/sqrt(head_dim)."'
said='"Factor on the logits. If 0, the default 1/sqrt(head_dim) is used."'

verify --no-workloads $name
expect_exit 0
expect "all('sm_scale' not in c['id'] for c in d['$name']['cases'])"
edit $definition_file "$silent" "$said"
verify --no-workloads --dry-run $name
expect_why $name 'inputs.sm_scale.default'
verify --no-workloads $name
expect_exit 1
expect "[c['id'][-11:] for c in d['$name']['cases'] if c['status'] == 'failed'] == [':sm_scale=0']"
edit $definition_file '* sm_scale\n' '* (sm_scale or head_dim**-0.5)\n'
verify --no-workloads $name
expect_exit 0
expect "[c['id'] for c in d['$name']['cases'] if c['id'].endswith(':sm_scale=0')]"

"$python" -I -S - <<'PY'
import json

axes = {"total_q": 3, "total_kv": 3, "len_indptr": 2}
line = {"uuid": "zero", "axes": axes, "inputs": {"sm_scale": {"type": "scalar", "value": 0}}}
path = "workloads/gqa_ragged/gqa_ragged_prefill_causal_h10_kv2_d128.jsonl"
inputs = {**{name: {"type": "random"} for name in ("q", "k", "v", "qo_indptr", "kv_indptr")}, **line["inputs"]}
with open(path, "w") as out:
    print(json.dumps({"definition": "gqa_ragged_prefill_causal_h10_kv2_d128", "workload": {**line, "inputs": inputs}}), file=out)
PY
verify $name
expect_exit 0
expect "[c['status'] for c in d['$name']['cases'] if c['id'] == 'workload:zero'] == ['passed']"
