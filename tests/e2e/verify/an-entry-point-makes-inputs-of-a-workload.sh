#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A workload need not give all inputs. The member custom_inputs_entrypoint names a function of the reference that makes
# the other inputs. This function gets the axes and the scalars of the workload. It may use torch's random generators,
# which have another seed for each set of input values. If the definition has an op family, the reference is compared
# with the family's ground truth on these inputs, too.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'END'
import json
import os

ROWS = {"shape": ["rows", "width"], "dtype": "float32"}
REFERENCE = '''import torch


def make(axes_and_scalars, device):
    rows, width = axes_and_scalars["rows"], axes_and_scalars["width"]
    if axes_and_scalars.get("eps", 1e-5) != 1e-5 or not isinstance(device, torch.device):
        raise ValueError("other arguments")
    return {"x": torch.randn(rows, width, device=device), "weight": torch.rand(width, device=device) + 1}


def run(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
'''
OTHER = REFERENCE.replace("* weight", "* weight * 2")  # agrees with no op family
os.makedirs("definitions/rmsnorm")
os.makedirs("definitions/own")
os.makedirs("workloads/rmsnorm")
os.makedirs("workloads/own")


def write(op_type, name, reference=REFERENCE, custom=("x", "weight"), **changes):
    with open(f"definitions/{op_type}/{name}.json", "w") as out:
        json.dump({
            "name": name, "op_type": op_type, "custom_inputs_entrypoint": "make",
            "axes": {"rows": {"type": "var"}, "width": {"type": "const", "value": 64}},
            "inputs": {"x": ROWS, "weight": {"shape": ["width"], "dtype": "float32"}, "eps": {"shape": None, "dtype": "float32"}},
            "outputs": {"y": ROWS}, "reference": reference, **changes,
        }, out, indent=1)
    inputs = {"x": {"type": "random"}, "weight": {"type": "random"}, "eps": {"type": "scalar", "value": 1e-5},
              **{name: {"type": "custom"} for name in custom}}
    with open(f"workloads/{op_type}/{name}.jsonl", "w") as out:
        out.write(json.dumps({"uuid": "made", "axes": {"rows": 5}, "inputs": inputs}) + "\n")


write("rmsnorm", "right")
write("rmsnorm", "half", custom=("weight",))
write("rmsnorm", "wrong", REFERENCE.replace(") * weight", ") + weight"))
# This reference is correct only for the first set of input values. For other values, such as those of the second set,
# it is wrong.
write("rmsnorm", "first_only", REFERENCE.replace("    return x *", "    if seen.setdefault(0, float(weight[0])) != float(weight[0]):\n"
                                                 "        weight = weight * 2\n    return x *").replace("def run", "seen = {}\n\n\ndef run"))
write("own", "misses", OTHER, custom=("x", "weight", "eps"))
write("rmsnorm", "scalar", REFERENCE.replace("+ 1}", '+ 1, "eps": 1e-5}'), custom=("x", "weight", "eps"))
write("rmsnorm", "raises", REFERENCE.replace("rows, width = ", "rows, width = undefined, "))
write("rmsnorm", "no_function", REFERENCE.replace("def make", "def make_them"))
write("own", "unknown", OTHER)
# Without a workload, it is unknown which inputs the function makes.
ONLY_X = OTHER.replace(', "weight": torch.rand(width, device=device) + 1', "")
write("own", "partly", ONLY_X)
write("own", "misnamed", OTHER.replace('"weight": torch.rand(width, device=device)', '"wieght": torch.rand(width, 2)'))
os.remove("workloads/own/partly.jsonl")
os.remove("workloads/own/misnamed.jsonl")
write("own", "refuses", OTHER.replace("    if axes", "    if rows != 5:\n        raise ValueError('five rows')\n    if axes"))
END

verify unknown refuses --no-workloads
expect_status unknown checked no_ground_truth
expect "[case['id'] for case in d['unknown']['cases']] == ['small:rows=4']"
# The function that makes inputs may raise an exception for sizes that reftest chooses, but not for those of a workload.
expect_status refuses skipped inputs
verify partly misnamed
expect_status partly checked no_ground_truth
expect_status misnamed error inputs
expect "\"it returned no input 'weight', but 'wieght'\" in d['misnamed']['cases'][0]['message']"
rm definitions/own/partly.json definitions/own/misnamed.json
verify
expect_exit 1
made() { echo "next(case for case in d['$1']['cases'] if case['id'] == 'workload:made')"; }
expect_case() { expect "($(made "$1")['status'], $(made "$1")['reason']) == ('$2', $3)"; }
for name in right half; do expect_case $name passed None; done
expect_case unknown checked "'no_ground_truth'"
expect_case refuses checked "'no_ground_truth'"
expect_case wrong failed "'numeric'"
expect_case first_only failed "'numeric'"
expect_case misses error "'inputs'"
expect "\"make made no inputs for this case: it returned no input 'eps'\" in $(made misses)['message']"
# The function that makes inputs must not make Python scalars such as `eps`, because the tolerance of an op family can
# depend on them.
expect_case scalar skipped "'no_ground_truth'"
expect "\"make computes the Python scalar 'eps'\" in $(made scalar)['message']"
expect_case raises error "'inputs'"
expect "\"it raised NameError: name 'undefined' is not defined\" in $(made raises)['message'] and $(made raises)['reference_line'] == 5"
expect_case no_function error "'inputs'"
expect "'custom_inputs_entrypoint names the function make, but the reference does not define it' in $(made no_function)['message']"
# In the cases without a workload, reftest does not call the function that makes inputs. Therefore these cases pass,
# even if the function is wrong.
for name in right half scalar raises no_function; do
	expect "all(case['status'] == 'passed' for case in d['$name']['cases'] if case['id'].startswith('small'))"
done
verify first_only --case workload:made --force
expect_case first_only failed "'numeric'"
expect "'on the second set of input values' in $(made first_only)['message']"
