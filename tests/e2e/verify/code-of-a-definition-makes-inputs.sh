#!/bin/sh
# A definition without an op family gets its inputs from the function in its `init`. The function runs in a process of
# its own, so it cannot leave anything in the process of the reference. If the inputs are wrong, the definition does not
# pass, and the message gives the position of `init`. Other definitions are not affected.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - <<'END'
import json
import os

MADE = {
    "op_type": "made", "tags": [], "description": "Rows of x, taken at index, times scale.",
    "axes": {"n": {"type": "var"}, "m": {"type": "var"}, "p": {"type": "var"}, "width": {"type": "const", "value": 8}},
    "constraints": ["p == m + 1", "index.max() < n"],
    "inputs": {
        "x": {"shape": ["n", "width"], "dtype": "float32"},
        "index": {"shape": ["m"], "dtype": "int64", "param": "rows"},
        "scale": {"shape": None, "dtype": "float32"},
        "bias": {"shape": ["width"], "dtype": "float32", "optional": True},
    },
    "outputs": {"y": {"shape": ["m", "width"], "dtype": "float32"}, "ends": {"shape": ["p"], "dtype": "int64"}},
}
# The reference accepts only inputs like those that init makes: indices of existing rows, a scale above 2 and no bias.
REFERENCE = '''import torch


def _made_reference(x, rows, scale, bias=None):
    if scale <= 2 or bias is not None or int(rows.max()) >= len(x) or not x.is_contiguous():
        raise ValueError("inputs that init does not make")
    return x[rows] * scale, torch.arange(len(rows) + 1)
'''
INIT = '''import torch


def helper(n, width, device):
    return torch.randn(width, n, device=device)


def _made_init(*, n, m=0, p: int = 0, width, batch=3, device="cuda", seed=0):
    torch.manual_seed(seed)
    x = helper(n, width, device).T
    return {"x": x, "rows": torch.randint(0, n, (batch,), device=device), "scale": torch.tensor(3.0 + seed)}
'''
os.makedirs("definitions/made")


def write(name, init=INIT, reference=REFERENCE, **changes):
    with open(f"definitions/made/{name}.json", "w") as out:
        json.dump({**MADE, "name": name, "init": init, "reference": reference, **changes}, out, indent=1)


def returning(text):
    return INIT.replace('"scale": torch.tensor(3.0 + seed)', '"scale": torch.tensor(3.0), ' + text)


write("right")
write("longer", reference=REFERENCE.replace("len(rows) + 1", "len(rows) + 2"))
write("plan", INIT[:INIT.index("    x = helper")] + "    return {'plan': {}, 'run': {}}\n")
write("grouped", INIT.replace('return {"x": x, "rows"', 'return {"run": {"x": x}, "plan": {"x": None, "rows"').replace("seed)}", "seed)}}"))
write("wider", returning("'x': x.new_zeros(n, 9)"))
write("more_rows", returning("'x': x.new_zeros(n + 1, width)"))
write("double", returning("'x': x.double()"))
write("number", returning("'x': 3"))
write("tensor", returning("'scale': x"))
write("text", returning("'scale': 'three'"))
for name, value in ("flag", 1), ("flag_of_two", 2):
    write(name, returning(f"'flag': {value}"), REFERENCE.replace("bias=None):", "flag, bias=None):\n    assert flag is True"),
          inputs={**MADE["inputs"], "flag": {"shape": None, "dtype": "bool"}})
write("elsewhere", returning("'x': torch.empty(n, width, device='meta')"))
write("no_dict", INIT[:INIT.index("    x = helper")] + "    return [1, 2]\n")
write("broken", returning("'rows': torch.full((batch,), n)"))
write("raises", INIT.replace("    torch.manual_seed(seed)", "    raise KeyError('no such size')"))
write("takes_any", INIT.replace("    torch.manual_seed(seed)", "    raise KeyError('no such size')"),
      "import torch\n\n\ndef _made_reference(x, rows, scale, bias=None):\n    y = x[rows] * scale if bias is None else x[rows] * scale + bias\n"
      "    return y, torch.arange(len(rows) + 1) + rows.sum()\n")
write("loads_not", "import torch\n\nundefined\n\n\ndef _made_init():\n    pass\n")
write("dies", INIT.replace("    torch.manual_seed(seed)", "    import os\n    print('last words')\n    os._exit(3)"))
write("no_function", "size = 3\n")
write("no_python", "def _made_init(:\n")
write("others", returning("'workspace': x, 'bias': None"))
write("other_name", INIT.replace('"x": x,', '"input": x,'))
write("two_names", INIT.replace('"x": x,', '"input": x, "residual": x,'))
IN_PAIRS = {**MADE["inputs"], "z": {"shape": ["n", "width"], "dtype": "float32"}, "batch_scalar": {"shape": None, "dtype": "int32"}}
PAIRS = REFERENCE.replace("bias=None):", "z, batch_scalar, bias=None):\n    assert torch.equal(z, x * 2) and batch_scalar == 3")
for name, text in (("pair", '"pair": (x, x * 2), "batch": batch,'), ("in_order", '"first": x, "twice": x * 2, "batch": batch,'),
                   ("three", '"pair": (x, x * 2), "more": x, "batch": batch,')):
    write(name, INIT.replace('"x": x,', text), PAIRS, inputs=IN_PAIRS)
write("no_module", reference=REFERENCE.replace("    if scale", "    import no_such_module\n    if scale"))
write("needs_gpu", reference=REFERENCE.replace("    if scale", "    torch.zeros(1, device='cuda')\n    if scale"))
write("without_bias", reference=REFERENCE.replace("    return x[rows]", "    return x[rows] + bias"))
write("one_set", INIT.replace("torch.manual_seed(seed)", "torch.manual_seed(1)").replace("3.0 + seed", "3.0"))
write("other_shapes", INIT.replace("(batch,)", "(batch + seed % 2,)"))
write("large", returning("'x': torch.zeros(1).expand(1 << 45, width)"))
write("reads_clock", "import time\n" + INIT)
write("keeps", reference="import torch\n\nkept = {}\n\n\ndef _made_reference(x, rows, scale):\n"
                         "    y = kept.setdefault(0, x[rows] * scale)\n    kept[0] = y + 1\n    return y, torch.arange(len(rows) + 1)\n")

# init stores a word in modules, in the interpreter, in the environment and in files. The reference must not find this
# word.
STASH = INIT.replace("    torch.manual_seed(seed)\n", '''    import builtins, os, sys, tempfile, types
    torch.word = builtins.word = "here"
    sys.modules["word"] = types.ModuleType("word")
    os.environ["WORD"] = "here"
    for folder in tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd(), "/tmp", "/dev/shm", "/var/tmp":
        try:
            open(os.path.join(folder, "word"), "w").write("here")
        except OSError:
            pass
    torch.manual_seed(seed)
''')
FINDS = REFERENCE.replace("    return x[rows]", '''    import builtins, os, sys, tempfile
    folders = tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd(), "/tmp", "/dev/shm", "/var/tmp"
    found = [folder for folder in folders if os.path.exists(os.path.join(folder, "word"))]
    if found or hasattr(torch, "word") or hasattr(builtins, "word") or "word" in sys.modules or "WORD" in os.environ:
        return x, rows
    return x[rows]''')
write("stash", STASH, FINDS)
# The reference of `stash_here` stores the word itself, and its search must find the word. This shows that the search in
# the reference of `stash` would find a word.
write("stash_here", INIT, FINDS.replace("    folders =", "    torch.word = 1\n    folders ="))
END

verify
expect_exit 1
place() { "$python" -c "
import json, sys
text = open('definitions/made/$1.json').read()
line = next(i for i, row in enumerate(text.splitlines(), 1) if row.startswith(' \"init\"'))
print('definitions/made/$1.json:%d:10: ' % line)"; }
# `made NAME STATUS REASON WORDS…`: expects that the case has this status and reason, and that its message has the words
# and the position of init.
made() {
	name=$1
	expect_status "$name" "$2" "$3"
	shift 3
	for words in "$(place "$name")" "$@"; do
		WORDS=$words expect "__import__('os').environ['WORDS'] in d['$name']['cases'][0]['message']"
	done
}
finding() { WORDS=$2 expect "any(__import__('os').environ['WORDS'] in text for text in d['$1']['cases'][0].get('findings', []))"; }

# `init` makes valid inputs, but there is no ground truth with which the outputs could be compared. Therefore even
# correct references get only the status "checked". If a check fails for a reference, the definition fails.
for name in right flag grouped others other_name pair in_order one_set other_shapes stash reads_clock; do expect_status "$name" checked no_ground_truth; done
expect "[case['id'] for case in d['right']['cases']] == ['small:n=4']"
expect "'findings' not in d['right']['cases'][0] or not d['right']['cases'][0]['findings']"
expect_status longer failed shape
expect_status stash_here failed shape
expect_status keeps failed nondeterministic
made plan error inputs "_made_init made no inputs for this case: it returned no input 'x'"
made wider error inputs "input 'x' is (4, 9) float32, but it is declared as [n, width] float32, and width = 8"
made more_rows error inputs "input 'x' is (5, 8) float32, but it is declared as [n, width] float32, and n = 4"
made double error inputs "input 'x' is (4, 8) float64, but it is declared as [n, width] float32"
made number error inputs "input 'x' is an int, but it is declared as [n, width] float32"
made tensor error inputs "input 'scale' is (4, 8) float32, but it is declared as a Python scalar of dtype float32"
made flag_of_two error inputs "input 'flag' is an int, but it is declared as a Python scalar of dtype bool"
made text error inputs "the function made a value of type str for input 'scale', which must be a Python scalar"
made elsewhere error inputs "the function made input 'x' on meta, but was asked to make it on cpu"
made no_dict error inputs "the function returned a value of type list, but must return a dict of inputs"
made two_names error inputs "it returned no input 'x', but 'input', 'residual'"
made three error inputs "it returned no input 'x', but 'more', 'pair[0]', 'pair[1]'"
expect_status no_module skipped no_ground_truth
WORDS="The reference needs a module that is not installed: the reference raised ModuleNotFoundError: No module named 'no_such_module'" \
	expect "__import__('os').environ['WORDS'] in d['no_module']['cases'][0]['message']"
expect_status without_bias skipped no_ground_truth
if [ "$device" = cpu ]; then
	expect_status needs_gpu skipped unsupported_device
	expect "d['needs_gpu']['cases'][0]['message'].startswith('the reference needs a GPU, and this run uses the CPU: the reference raised ')"
fi
WORDS="On sizes that reftest chose, which may be invalid for this operation, and without the optional input 'bias', the reference raised TypeError" \
	expect "__import__('os').environ['WORDS'] in d['without_bias']['cases'][0]['message']"
made loads_not error inputs "it failed to load: NameError: name 'undefined' is not defined"
made large error inputs "input 'x' is (35184372088832, 8) float32" "and n = 4"
made no_function error inputs 'the field "init" defines no function at top level with a name that ends with _init'
made no_python error inputs 'the field "init" is not valid Python at line 1, column 15: '
made broken error inputs "the inputs break the definition's constraint index.max() < n"
finding others "_made_init returns 'workspace', but the definition has no such input"
finding other_name "_made_init returns no input 'x'; 'input' is used instead, because no other returned tensor has the dtype and the shape of the missing input"
for name in pair in_order; do
	finding $name "_made_init returns no input 'batch_scalar'; 'batch' is used instead, because one of the two names is a part of the other"
done
for index in 0 1; do finding pair "'pair[$index]' is used instead, because there is one returned tensor for each missing input of this dtype and shape"; done
finding in_order "_made_init returns no input 'z'; 'twice' is used instead, because there is one returned tensor"
finding one_set '_made_init makes the same inputs for another seed, so the case has only one set of input values'
finding other_shapes '_made_init makes inputs whose shapes depend on the seed'

# If an init raises an exception, dies or hangs, generic inputs are used, and a finding says so. A reference that
# accepts generic inputs gets the status "checked". The references of `raises` and `dies` fail on generic inputs,
# because they need a scale above 2 and existing rows.
fell_back() {
	WORDS="the inputs are generic, because \`init\` failed: $(place "$1")_made_init made no inputs for this case: $2" expect \
		"__import__('os').environ['WORDS'] in str(d['$1']['notes'])"
}
for name in raises dies; do expect_status "$name" skipped no_ground_truth; done
expect_status takes_any checked no_ground_truth
fell_back raises "it raised KeyError: 'no such size'"
fell_back dies "the function's process terminated with exit status 3"
fell_back takes_any "it raised KeyError: 'no such size'"
verify takes_any
expect_ran 0
# A ground truth that agrees on generic inputs does not verify the definition.
mkdir -p truths/made
cat >truths/made/takes_any.py <<'EOF'
import torch


def run(x, rows, scale, bias=None):
    y = torch.index_select(x, 0, rows) * scale
    return (y if bias is None else y + bias), torch.arange(1 + rows.numel()) + torch.sum(rows)
EOF
verify takes_any
expect_exit 3
expect_status takes_any checked inputs
expect "all(case['status'] == 'passed' for case in d['takes_any']['cases'])"
rm -r truths
run verify takes_any --device "$device" --sizes small --strict
expect_says "finding: the inputs are generic, because \`init\` failed" '1 finding, which --strict counts as failures'

# If the code of `init` changes, the case runs again. A changed comment makes no difference.
verify right
expect_cached 1
edit definitions/made/right.json 'helper(n, width, device).T' 'helper(n, width, device).T  # a comment'
verify right
expect_cached 1
edit definitions/made/right.json '3.0 + seed' '4.0 + seed'
verify right
expect_ran 1
verify reads_clock
expect_ran 1
expect "'not cached: line 1 of init contains' in d['reads_clock']['notes'][0]"

# If an `init` hangs, reftest ends its process after the timeout, and verifies the next definition.
edit definitions/made/right.json 'torch.manual_seed(seed)' 'while True: pass'
verify right longer --timeout 3
expect_status right skipped no_ground_truth # the reference takes no generic inputs
fell_back right "the function's process did not answer within 3 s"
expect_status longer failed shape

# Generated tests do not run `init`, and do not use other inputs instead: they are skipped with a reason.
mkdir "$work/away"
mv definitions/made/*.json "$work/away"
mv "$work/away/one_set.json" definitions/made
pytest_is_here
run generate
expect_exit 0
run_pytest -rs
expect_says "SKIPPED" "the definition's own code makes the inputs, and only \`reftest verify\` runs this code"
