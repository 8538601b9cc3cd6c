#!/bin/sh
# The tag `fi_api:` of a definition names a function of FlashInfer. On a GPU this function is a ground truth. In this
# test, a module named flashinfer replaces the library, and the provider's table allows calls on a CPU. Everything else
# runs as on a GPU.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "tests/gpu/fi-api-is-a-ground-truth.sh uses the library itself"
mkdir -p providers definitions/blend
export REFTEST_PROVIDERS="$PWD/providers"
cat >providers/fi_api.py <<P
import sys
import types

import reftest_providers
from reftest_providers import Need, Row, Table

real = reftest_providers.load("real_fi_api", "$top/python/libraries/fi_api.py")
flashinfer = sys.modules["flashinfer"] = types.ModuleType("flashinfer")
blend = sys.modules["flashinfer.blend"] = types.ModuleType("flashinfer.blend")
flashinfer.blend = blend
exec('''
import os


def right(a, b, alpha=1.0):
    return a + alpha * b


def raises(a, b):
    raise ValueError("no kernel for this")


def needs_more(a, b, workspace):
    return a + b


def in_place(a, b):
    a.add_(b)


def shape(a, b):
    return (a + b).unsqueeze(0)


class Wrapper:
    def run(self, a, b):
        return a + b
''', blend.__dict__)
TABLES = (Table("fi_api", (Need(("torch",), "torch"),), {"*": Row(real.fi_api, cpu=True, first_use_s=0)}),)
P

# `define NAME API [BODY]`: defines an operation without a family. The inputs of the operation and the arguments of the
# function API have different names.
define() {
	"$python" -I -S - "$@" <<'P'
import json
import sys

name, api, *body = sys.argv[1:]
body = body[0] if body else "return left + right"
with open(f"definitions/blend/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "blend", "description": "", "tags": ["fi_api:" + api],
        "axes": {"n": {"type": "var"}},
        "inputs": {"left": {"shape": ["n"], "dtype": "float32", "param": "a"},
                   "right": {"shape": ["n"], "dtype": "float32", "param": "b"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": f"import torch\n\n\ndef run(left, right):\n    {body}\n",
    }, out)
P
}
define right flashinfer.blend.right
define wrong flashinfer.blend.right 'return left + 0.99 * right'
verify --ground-truth fi_api
expect_exit 1
expect_status right passed
expect_status wrong failed numeric
expect "c['right', 'small:n=4']['ground_truth'] == 'fi_api' and 'table' in c['right', 'small:n=4']['ground_truth_version']"
expect "all(all_of('right', 'kept'))"
verify --ground-truth fi_api right
expect_ran 0
# `--ground-truth all` also calls the function of the tag. The default, `auto`, calls no libraries on a CPU.
verify --ground-truth all right
expect_exit 0
expect "c['right', 'small:n=4']['ground_truth'] == 'fi_api'"
verify right
expect_exit 3
expect_status right checked no_ground_truth

# A tag whose function cannot be called gives no ground truth, and no function outside FlashInfer is called.
for bad in \
	"absent|flashinfer.blend.nonesuch|this FlashInfer has no flashinfer.blend.nonesuch" \
	"raises|flashinfer.blend.raises|ValueError: no kernel for this" \
	"more|flashinfer.blend.needs_more|the definition has no input for the argument 'workspace' of the function" \
	"method|flashinfer.blend.Wrapper.run|is a method, but only functions can be called" \
	"system|flashinfer.blend.os.system|is not a function that FlashInfer defines" \
	"outside|os.system|names no public function of FlashInfer" \
	"shape|flashinfer.blend.shape|but it is declared as (4,) float32" \
	"nothing|flashinfer.blend.in_place|the function returns nothing, and no input has the name of the output"; do
	name=${bad%%|*} rest=${bad#*|}
	define "$name" "${rest%%|*}"
done
rm definitions/blend/wrong.json
verify --ground-truth fi_api
expect_exit 3
for bad in "absent|flashinfer has no|" "raises|no kernel for this" "more|no input for the argument 'workspace" "method|is a method" \
	"system|is not a function that FlashInfer defines" "outside|names no public function" "shape|declared as (4,)" \
	"nothing|returns nothing"; do
	name=${bad%%|*} rest=${bad#*|}
	expect_status "$name" checked no_ground_truth
	expect "'''${rest%|}'''.lower() in c['$name', 'small:n=4']['message'].lower()"
done
expect_status right passed

# If a definition has no tag `fi_api:`, a message says so.
given tiny_norm
verify tiny_norm --ground-truth fi_api
expect_exit 3
expect "'the definition has no tag' in all_of('tiny_norm', 'message')[0]"
