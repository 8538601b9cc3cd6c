#!/bin/sh
# A reference runs three times in small cases, and twice in medium cases. To count the runs, the reference raises an
# exception at the third call with the same shapes.
. "$(dirname "$0")/../harness.sh"
loops=delta_rule_recurrent_qk_l2norm_h4_d64
given $loops softmax_e256

for name in delta_rule/$loops softmax/softmax_e256; do
	edit definitions/$name.json '@torch.no_grad()\ndef run(' 'calls = {}\n\n\n@torch.no_grad()\ndef run('
done
raises='    calls[shape] = calls.get(shape, 0) + 1\n    if calls[shape] == 3:\n        raise ValueError(\"third call\")\n'
edit definitions/delta_rule/$loops.json '    scale = scale or' '    shape = q.shape\n'"$raises    scale = scale or"
edit definitions/softmax/softmax_e256.json 'run(logits):\n' 'run(logits):\n    shape = logits.shape\n'"$raises"
verify --no-workloads --sizes small,medium $loops softmax_e256
expect_exit 1
for name in $loops softmax_e256; do
	expect "{c['reason'] for c in d['$name']['cases'] if c['id'].startswith('small') and c['id'].count(':') == 1} == {'raised'}"
	expect "{c['status'] for c in d['$name']['cases'] if c['id'].startswith('medium')} == {'passed'}"
done
