#!/bin/sh
# A reference may use any attribute that it gives to its own objects. If a class of Python or torch has an attribute with
# the same name, the reference could also use it on an object of Python or torch, and so depend on anything. Then its
# verdicts are not stored. The same is true for the code that makes inputs and for a ground truth of the dataset.
. "$(dirname "$0")/../harness.sh"

# `norm NAME ATTRIBUTE`: creates an RMS norm whose reference gives its objects this attribute.
norm() {
	define "$1" <<P
import torch


class Model:
    def __init__(self, value):
        super().__init__()
        self.weight = value
        self.$2 = 1e-6

    def forward(self, x):
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.$2) * self.weight.float()).to(x.dtype)


def run(hidden_states, weight):
    return Model(weight).forward(hidden_states)
P
}

# `expect_not_kept NAME WHO ATTRIBUTE`: expects that the definition passed and that no verdict was stored, because WHO used
# the attribute.
expect_not_kept() {
	expect_status "$1" passed
	expect "not any(all_of('$1', 'kept'))"
	expect "any(\"not cached: when the reference ran, $2 used the attribute '$3', which objects of Python or torch also \
have, so the outputs\" in note for note in d['$1']['notes'])"
}

# Attributes of a class of Python, of a class of torch, and of a class in a module that torch does not import. Each
# definition runs again in the next run.
for attribute in deleter _backward_hooks scaleb; do
	norm norm $attribute
	verify
	expect_exit 0
	expect_ran 2
	expect_not_kept norm it $attribute
	verify
	expect_ran 2
	expect_not_kept norm it $attribute
done

# No class has the attribute. References that run at the same time, one after the other in kept processes or each in a
# process of its own do not influence each other.
norm other made_up_7
for isolation in kept own; do
	rm -rf .reftest
	verify --isolation $isolation
	expect_exit 0
	expect_ran 4
	expect_not_kept norm it scaleb
	expect "all(all_of('other', 'kept')) and not d['other'].get('notes')"
	verify
	expect_ran 2
done
rm definitions/rmsnorm/norm.json
verify
expect_nothing_to_do

# A ground truth of the dataset.
mkdir -p definitions/row_energy truths/row_energy
truth() {
	cat >truths/row_energy/energy.py <<P
import torch


class Sum:
    def __init__(self):
        self.$1 = "nw,nw->n"


def run(x):
    return torch.einsum(Sum().$1, x, x)
P
}
cat >definitions/row_energy/energy.json <<'P'
{"name": "energy", "op_type": "row_energy", "description": "",
 "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 8}},
 "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
 "reference": "import torch\n\n\ndef run(x):\n    return (x * x).sum(-1)\n"}
P
truth deleter
verify
expect_exit 0
expect_not_kept energy 'its ground truth truths/row_energy/energy.py' deleter
truth made_up_7
verify
expect_exit 0
expect_status energy passed
expect "all(all_of('energy', 'kept'))"
rm definitions/row_energy/energy.json

# The code that makes inputs.
mkdir definitions/made truths/made
cat >truths/made/made.py <<'P'
def run(x):
    return x + x
P
made() {
	cat >definitions/made/made.json <<P
{"name": "made", "op_type": "made", "description": "", "axes": {"n": {"type": "var"}},
 "inputs": {"x": {"shape": ["n"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
 "reference": "def run(x):\n    return x * 2\n",
 "init": "import torch\n\n\nclass Size:\n    def __init__(self, n):\n        self.$1 = n\n\n\ndef make(*, n, device='cuda', seed=0):\n    torch.manual_seed(seed)\n    return {'x': torch.randn(Size(n).$1, device=device)}\n"}
P
}
made deleter
verify
expect_exit 0
expect_not_kept made 'the code that makes inputs' deleter
made made_up_7
verify
expect_exit 0
expect_status made passed
expect "all(all_of('made', 'kept'))"
