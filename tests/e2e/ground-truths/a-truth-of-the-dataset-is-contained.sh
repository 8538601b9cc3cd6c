#!/bin/sh
# own interpreter: the test checks what a reference can access.
# The dataset's own ground truth for a definition (a file in truths/) runs in a process of its own, in the same sandbox
# as a reference. It cannot read the reference or the reference's outputs, and the reference cannot read the ground
# truth or its outputs. --ground-truth can select this ground truth. The watcher verifies again if the file changes, and
# --staged reads the file from git's index.
. "$(dirname "$0")/../harness.sh"
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
given tiny_norm
mkdir -p definitions/twice truths/twice truths/rmsnorm
# `define_twice NAME BODY`: defines an operation that doubles its input and belongs to no family.
define_twice() {
	"$python" -I -S - "$1" "$2" <<'P'
import json
import sys

name, body = sys.argv[1:]
with open(f"definitions/twice/{name}.json", "w") as out:
    json.dump({
        "name": name, "op_type": "twice", "description": "",
        "axes": {"n": {"type": "var"}},
        "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
        "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
        "reference": f"import torch\n\n\ndef run(x):\n    {body}\n",
    }, out)
P
}

# The ground truth of the definition `seen` looks for modules of the reference, for files of the dataset, for processes
# of reftest, and for memory of other processes. It must find none of them.
define_twice seen 'import sys; sys.modules["planted"] = sys; return 2 * x'
cat >truths/twice/seen.py <<P
import gc
import os
import sys

import torch


def attempt(path):
    try:
        open(path).read()
        return True
    except OSError:
        return False


def run(x):
    tensors = [t.numel() for t in gc.get_objects() if isinstance(t, torch.Tensor)]
    found = ["planted" in sys.modules, attempt("$root/definitions/twice/seen.json"), attempt("$root/truths/twice/seen.py")]
    arenas = sum("reftest-arena" in line for line in open("/proc/self/maps"))
    raise AssertionError("found %s, %d arenas, %d processes" % (
        found, arenas, sum(name.isdigit() for name in os.listdir("/proc"))))
P
verify seen
expect_status seen checked no_ground_truth
expect "'found [False, False, False], 1 arenas' in c['seen', 'small:n=4']['message']"
expect "not any(all_of('seen', 'kept'))" # it opens files
rm definitions/twice/seen.json truths/twice/seen.py

# A ground truth that does not end is killed, and none of its processes is left. The other definitions are verified.
define_twice loops 'return 2 * x'
printf 'def run(x):\n    while True:\n        pass\n' >truths/twice/loops.py
define_twice right 'return 2 * x'
printf 'def run(x):\n    return x + x\n' >truths/twice/right.py
verify --timeout 3
expect_exit 3
expect_status loops checked no_ground_truth
expect "'truths/twice/loops.py did not answer within 3 s' in c['loops', 'small:n=4']['message']"
expect "not any(all_of('loops', 'kept'))"
expect_status right passed
expect_no_process
rm definitions/twice/loops.json truths/twice/loops.py

# A ground truth that may depend on more than its inputs is used, but the verdicts are not stored.
define_twice clock 'return 2 * x'
printf 'import time\n\n\ndef run(x):\n    return x + x + 0 * time.time()\n' >truths/twice/clock.py
verify clock
expect_exit 0
expect "not any(all_of('clock', 'kept'))"
expect_says "not cached: line 1 of truths/twice/clock.py contains 'import time'"
rm definitions/twice/clock.json truths/twice/clock.py

# Two definitions that are equal but have different ground truths do not share a verdict.
define_twice another 'return 2 * x'
printf 'def run(x):\n    return x * 3\n' >truths/twice/another.py
rm -rf .reftest
verify right another
expect_status right passed
expect_status another failed numeric
rm definitions/twice/another.json truths/twice/another.py

# For a definition with an op family, the dataset's own ground truth is used only if --ground-truth selects it.
cat >truths/rmsnorm/tiny_norm.py <<'P'
def run(hidden_states, weight):
    return hidden_states * 0
P
verify tiny_norm
expect_exit 0
expect_status tiny_norm passed
verify tiny_norm --ground-truth truth
expect_exit 1
expect_status tiny_norm failed numeric
verify tiny_norm --ground-truth builtin,truth
expect_exit 0
verify tiny_norm --ground-truth all
expect_exit 1
expect_status tiny_norm failed ground_truths_disagree
expect "any('truth' in m for m in all_of('tiny_norm', 'message'))"
rm truths/rmsnorm/tiny_norm.py
verify tiny_norm --ground-truth truth
expect_exit 3
expect "'there is no file truths/rmsnorm/tiny_norm.py' in all_of('tiny_norm', 'message')[0]"

# The watcher notices when a ground truth file is changed, removed or added. --staged reads the file from git's index.
rm -r definitions/rmsnorm
watch
expect_events "e['passed'] == 1"
printf 'def run(x):\n    return x * 3\n' >truths/twice/right.py
await_batch
expect_events "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('right', 'failed')]"
rm truths/twice/right.py
await_batch
expect_events "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('right', 'checked')]"
printf 'def run(x):\n    return x + x\n' >truths/twice/right.py
await_batch
expect_events "[(x['name'], x['status']) for x in a if x['event'] == 'verdict'] == [('right', 'passed')]"
end_watch
git init -q -b main .
git add definitions truths
printf 'def run(x):\n    return x * 3\n' >truths/twice/right.py
verify --staged
expect_exit 0
git add truths
printf 'def run(x):\n    return x + x\n' >truths/twice/right.py
verify --staged
expect_exit 1
run affected truths/twice/right.py
expect_says twice/right
