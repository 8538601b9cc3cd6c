#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# `reftest check` reads definitions in the form that FlashInfer's tracer writes. It knows the fields of these
# definitions, accepts a function `…_reference` instead of `run`, and reports the same errors as `reftest verify`.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'END'
import json
import os

ROWS = {"shape": ["n", "width"], "dtype": "bfloat16"}
SCALED = "import torch\n\n\n@torch.no_grad()\ndef _scaled_reference(x):\n    return x * 2\n"
os.makedirs("definitions/scaled")


INIT = """import torch


def _scaled_init(*, n, device, seed):
    torch.manual_seed(seed)
    return {"input": torch.randn(n, 64, device=device).to(torch.bfloat16)}
"""


def write(name, reference, **changes):
    definition = {
        "name": name, "op_type": "scaled", "description": "x * 2", "tags": ["fi_api:flashinfer.scaled", "status:verified"],
        "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 64}},
        "inputs": {"input": {**ROWS, "param": "x"}, "out": {"shape": ["n"], "dtype": "unknown", "optional": True},
                   "mode": {"shape": None, "dtype": "string", "optional": True}},
        "outputs": {"output": {**ROWS, "param": "out", "optional": True}}, "reference": reference,
        "init": INIT, "check": "def _scaled_check():\n    pass\n", **changes,
    }
    with open(f"definitions/scaled/{name}.json", "w", encoding="utf-8") as file:
        json.dump({key: value for key, value in definition.items() if value is not None}, file, indent=1)


write("plain", SCALED)
write("any_name", SCALED.replace("import torch\n", "import torch\nfrom math import *\n"))
write("own_run", "def _old_reference(x):\n    return x\n\n\ndef run(input, out, mode):\n    return input * 2\n")
write("no_reference", None)
write("unknown_dtype", SCALED, inputs={"input": ROWS, "scale": {"shape": ["n"], "dtype": "unknown"}})
write("untraced", None, tags=[])
write("misspelt", SCALED, descripton="")
write("no_python", SCALED.replace("(x):", "(x)"))
write("no_function", SCALED.replace("_reference", "_referenz"))
write("awaited", SCALED.replace("def", "async def"))
END

run check
expect_exit 2
cp "$work/out" "$work/checked"
expect_says '10 definitions, 0 workload files' ': 4 errors, ' \
	'error  definitions/scaled/no_python.json:51:15: the reference is not valid Python at line 5, column 25: expected '"':'" \
	'error  definitions/scaled/no_function.json:51:15: expected Python source with a function run() or …_reference() at top level, found only _scaled_referenz' \
	'error  definitions/scaled/awaited.json:51:15: expected Python source with a function run() or …_reference()' \
	'error  definitions/scaled/untraced.json:1:1: expected a field "reference"' \
	'note   definitions/scaled/no_reference.json:1:1: no case can run, because the definition has no "reference"' \
	'note   definitions/scaled/unknown_dtype.json:' 'no case can run, because the dtype is "unknown"' \
	'note   definitions/scaled/misspelt.json:54:16: the field "descripton" is unknown to the schema and ignored; did you mean "description"?'
[ "$(grep -c 'unknown to the schema' "$work/out")" = 1 ] || fail "a field of the tracer is called unknown"

# check also reports everything that verify reports about a file.
verify
expect_exit 2
for name in plain any_name own_run misspelt; do expect_status "$name" checked no_ground_truth; done
expect "not any('raised' in case['message'] for one in d.values() for case in one.get('cases', []))"
expect_status no_reference skipped no_reference
expect_status unknown_dtype skipped unknown_dtype
for name in untraced no_python no_function awaited; do expect_status "$name" invalid; done
cat >"$work/compare.py" <<'END'
import json
import sys

verified, checked = json.load(open(sys.argv[1])), open(sys.argv[2], encoding="utf-8").read()
count = 0
for one in verified["definitions"]:
    said = [note for note in one.get("notes") or [] if not note.startswith("not cached: ")]
    if one["status"] == "invalid":
        said.append(one["message"])
    said += [case["message"] for case in one.get("cases", []) if case.get("reason") in ("no_reference", "unknown_dtype")]
    for sentence in said:
        assert sentence in checked, (one["name"], sentence)
        count += 1
assert count >= 15, count
END
"$python" -I -S "$work/compare.py" "$work/out" "$work/checked" || fail "check and verify differ"
