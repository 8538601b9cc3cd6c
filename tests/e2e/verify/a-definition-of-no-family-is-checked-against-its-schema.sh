#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# A definition with an unknown op_type, or with shapes that its family does not support, has no ground truth. The status
# of such a definition is "checked", and the report gives the reason why it is not verified. The checks are those that
# need no ground truth: shape, dtype, determinism, changed inputs. If one of these checks fails, the definition does not
# count as checked. If a definition has only the status "checked", the exit status is 3, unless an option accepts this
# status. If the reference of a definition without ground truth raises an exception, the report contains the exception.
# The case is only skipped, because the exception may be due to the generated inputs. If the reference uses an undefined
# name or returns too many outputs, the case is an error, because inputs cannot be the reason for this.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - "$top" <<'END'
import json
import os
import sys

RIGHT = "return x.sum(-1)"
WRONG = {
    "dtype": ("failed", "dtype", "return x.sum(-1).double()"),
    "shape": ("failed", "shape", "return x.sum(-1, keepdim=True)"),
    "mood": ("failed", "nondeterministic", "return x.sum(-1) + float(__import__('time').perf_counter_ns() % 4096)"),
    "text": ("error", "raised", "return torch.sum(dim=-1, x)"),
    "name": ("error", "raised", "return total(x)"),
    "count": ("error", "raised", "return x.sum(-1), x"),
    "unbound": ("skipped", "no_ground_truth", "if len(x) > 1 << 30:\n        y = x.sum(-1)\n    return y"),
    "fall": ("skipped", "no_ground_truth", "raise ValueError('no')"),
    "writes": ("skipped", "no_ground_truth", "x += 1\n    return x.sum(-1)"),
}


def write(op_type, name, body):
    os.makedirs(f"definitions/{op_type}", exist_ok=True)
    with open(f"definitions/{op_type}/{name}.json", "w") as out:
        json.dump({
            "name": name, "op_type": op_type, "description": "",
            "axes": {"n": {"type": "var"}, "width": {"type": "const", "value": 8}},
            "inputs": {"x": {"shape": ["n", "width"], "dtype": "float32"}},
            "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
            "reference": f"import torch\n\n\ndef run(x):\n    {body}\n",
        }, out)


expected = {}
for op_type in ["novel_attention_v2", *sorted(os.listdir(sys.argv[1] + "/definitions"))]:
    write(op_type, f"{op_type}_right", RIGHT)
    expected[f"{op_type}_right"] = ["checked", "no_ground_truth"]
for op_type in ("novel_attention_v2", "moe", "sampling"):
    for word, (status, reason, body) in WRONG.items():
        write(op_type, f"{op_type}_{word}", body)
        expected[f"{op_type}_{word}"] = [status, reason]
json.dump(expected, open("../expected", "w"))
END
verify
expect_exit 1
op_types=$(($(find "$top/definitions" -mindepth 1 -maxdepth 1 -type d | wc -l) + 1)) # and the unknown one
expect "len(json.load(open('../expected'))) == len(d) == $op_types + 27"
wrong="[(n, d[n]['status'], d[n]['reason'], d[n]['message']) for n, expected in json.load(open('../expected')).items()
	if [d[n]['status'], d[n]['reason']] != expected]"
step="these definitions: $(value "$wrong")"
expect "$wrong == []"
expect "all('ValueError: no' in case['message'] for n, one in d.items() if n.endswith('_fall') for case in one['cases'])"
# A changed input is reported, but does not make the definition fail, because some operations update an input in place.
expect "all(\"changed its input 'x'\" in case['findings'][0] for n, one in d.items() if n.endswith('_writes') for case in one['cases'])"
verify novel_attention_v2_right
expect_exit 3
expect "s['passed'] == 0 and s['checked'] == 1"
verify novel_attention_v2_right --accept checked
expect_exit 0
expect "s['passed'] == 0 and s['checked'] == 1 and s['exit'] == 0"
verify novel_attention_v2_right novel_attention_v2_writes --accept checked
expect_exit 3
run verify novel_attention_v2_right --device "$device"
expect_exit 3
expect_says 'checked  novel_attention_v2/novel_attention_v2_right  1 of 1 cases checked: no ground truth decides' 'holds: outputs, repeat, '
expect_silence_about passed verified
run status novel_attention_v2_right --device "$device" --accept checked
expect_exit 0
run status novel_attention_v2_right --device "$device"
expect_exit 3
run explain novel_attention_v2_right --device "$device"
expect_exit 3
expect_says 'novel_attention_v2_right is checked' 'repeat holds: two runs'
run explain novel_attention_v2_right --device "$device" --accept checked
expect_exit 0
run verify --accept passed
expect_exit 2
# With --quiet, verify reads only the stored summary of each definition. Its output must still give the right number of
# checked cases.
run verify novel_attention_v2_right --device "$device" --quiet
expect_says '1 definition: 1 checked; 0 cases run, 1 cached'
run verify novel_attention_v2_right --device "$device" --junit "$work/junit.xml" --format github
expect_says '::warning file=definitions/novel_attention_v2/novel_attention_v2_right.json' 'checked'
grep -q '<skipped message="checked: ' "$work/junit.xml" || fail "a checked case is not skipped in JUnit"
verify
# The message says why the definition is only checked. It says that there is no family, or it names the part of the
# definition that the family does not support.
messages="{n: one['cases'][0]['message'] for n, one in d.items() if n.endswith('_right')}"
expect "all(len(text) > 25 for text in $messages.values()) and len($messages) == $op_types"
expect "\"'novel_attention_v2'\" in $messages['novel_attention_v2_right'] and '(softmax: ' in $messages['softmax_right']"
# If the name of an input is not a valid name of an argument, the input is passed by position.
"$python" -I -S - <<'EOF'
import json

with open("definitions/softmax/odd_names.json", "w") as out:
    json.dump({
        "name": "odd_names", "op_type": "softmax", "axes": {"n": {"type": "var"}, "w": {"type": "const", "value": 8}},
        "inputs": {name: {"shape": ["n", "w"], "dtype": "float32"} for name in ("a-b", "y", "lambda")},
        "outputs": {"out": {"shape": ["n", "w"], "dtype": "float32"}},
        "reference": "def run(first, y, last):\n    return first - 2 * y + 3 * last\n"}, out)
EOF
verify odd_names
expect_status odd_names checked no_ground_truth
expect "len(d['odd_names']['notes']) == 2 and all('passed by position' in n for n in d['odd_names']['notes'])"
