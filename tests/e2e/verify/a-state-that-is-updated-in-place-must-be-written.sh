#!/bin/sh
# A definition has no output for the new states, and the description of the input `state` says that it is updated in
# place. A reference that updates only a copy fails, and a reference that updates the state itself passes.
. "$(dirname "$0")/../harness.sh"
name=mamba_ssu_decode_gated_h16_d64_s128_ng4
given $name
"$python" -I -S - definitions/mamba_ssu/$name.json <<'PY'
import json
import sys

with open(sys.argv[1]) as source:
    definition = json.load(source)
del definition["outputs"]["new_state"]
definition["reference"] = definition["reference"].replace("return output, state", "return output")
with open(sys.argv[1], "w") as out:
    json.dump(definition, out)
PY
verify --no-workloads $name
expect_exit 0
edit definitions/mamba_ssu/$name.json '    heads, groups = ' '    state = state.clone()\n    heads, groups = '
verify --no-workloads $name
expect_exit 1
expect "all('left its input \'state\' unchanged' in c['message'] for c in d['$name']['cases'])"
