#!/bin/sh
# gradients - checks the gradients of every starter definition of linear attention on a GPU. Compares the gradients from
# three sources: autograd on the reference, the backward kernels of flash-linear-attention (the ground truths fla and
# fla_chunk), and the oracle (the ground truth builtin). For each case, prints the worst margin of the reference against
# each ground truth. Then prints a line for each other ground truth: its margin against builtin, or the reason why it
# was skipped. If the case did not pass, also prints its message. The op types run in parallel, because Triton compiles
# and tunes in one thread, and needs minutes for each op type.
#
#         tests/gpu/gradients.sh [BUILD [DEVICE [OPTION…]]]
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build} device=${2:-cuda:0}
[ $# -lt 2 ] || shift
[ $# -lt 1 ] || shift
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
for op_type in gla simple_gla delta_rule gated_delta_rule kda gdn; do
	"$build/reftest" --root . verify --backward --force --device "$device" --ground-truth all --timeout 600 --format json \
		--op-type "$op_type" "$@" >"$out/$op_type.json" &
done
wait
"${REFTEST_PYTHON:-python3}" - "$out"/*.json <<'END'
import json
import sys

whole = True
for path in sys.argv[1:]:
    result = json.load(open(path))
    for definition in result["definitions"]:
        for case in definition["cases"]:
            if not case["id"].endswith(":backward"):
                continue
            margins = {}
            for output in case["outputs"]:
                margin = float(output.get("margin", "nan"))
                margin = margin if margin == margin else float("inf")  # NaN counts as the worst margin
                margins[output["ground_truth"]] = max(margins.get(output["ground_truth"], 0), margin)
            text = ", ".join(f"{truth} {margin:.3g}" for truth, margin in margins.items())
            print(f"{case['status']:8} {definition['name']} {case['id']}: {text}")
            for witness in case.get("witnesses", []):
                if witness["passed_over"]:
                    print(f"           {witness['name']} passed over: {witness['passed_over'].splitlines()[0]}")
                elif witness.get("margin") is not None:
                    print(f"           {witness['name']} against builtin: {witness['margin']}")
            if case["status"] != "passed":
                whole = False
                print("           " + (case["message"] or "").replace("\n", "\n           "))
    print(result["summary"])
sys.exit(0 if whole else 1)
END
