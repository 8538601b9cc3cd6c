#!/bin/sh
# reftest.toml gives options their defaults, for every command. An option takes precedence over the file, and a
# definition's own tolerance takes precedence over the tolerance in the file. If verdicts depend on the file, the report
# names the file's settings. A change of the file makes only those verdicts stale that depend on it.
. "$(dirname "$0")/../harness.sh"
[ "$device" = cpu ] || skip "the CPU suffices"
given tiny_gemm
define norm <<'P'
import torch

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    return ((x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)) * weight.to(torch.float32)).to(torch.bfloat16)
P
# This reference returns results that are 1 % too large.
edit definitions/gemm/tiny_gemm.json 'return torch.matmul' 'return 1.01 * torch.matmul'
printf 'sizes = "small"\ndevice = "cpu"\n' >reftest.toml

run verify --alone
expect_exit 1
expect_says 'reftest.toml sets sizes = small (line 1); device = cpu (line 2)' '1 passed, 1 failed'
run status
expect_exit 1
expect_says '0 cases run' '1 passed, 1 failed' # status counts the same sizes

# With a wider bound in the file, a definition that failed before passes, and every report names this bound. Other
# definitions stay verified.
echo 'tolerance = ["float16=0.1"]' >>reftest.toml
run verify --alone
expect_exit 0
expect_says 'bounds from reftest.toml, line 3' 'tolerance = float16=0.1 (line 3)' '2 passed'
run verify --alone
expect_says '2 passed; 0 cases run'
# A new bound in the file takes effect at once, although no file of the definition has changed.
sed -i 's/float16=0.1/float16=1e-9/' reftest.toml
run status
expect_says '1 passed, 1 stale'
run verify --alone
expect_exit 1
expect_says 'bounds from reftest.toml, line 3' '1 passed, 1 failed'
sed -i 's/float16=1e-9/float16=0.1/' reftest.toml
run verify --alone
expect_says '2 passed; 0 cases run'
run status --format json
"$python" -I -S -c '
import json, sys
report = json.load(open(sys.argv[1]))
bounds = {d["name"]: d["bounds_from"] for d in report["definitions"]}
assert bounds == {"tiny_gemm": "reftest.toml", "norm": None}, bounds
assert [s["key"] for s in report["settings"]] == ["sizes", "device", "tolerance"], report["settings"]
assert report["settings"][2] == {"key": "tolerance", "value": "float16=0.1", "file": "reftest.toml", "line": 3}
' "$work/out" || fail "the JSON does not say what the file sets"
run tolerance tiny_gemm
expect_says 'C  float16  atol 0.1  rtol 0.1  hit ratio 1' 'atol and rtol from reftest.toml, line 3, hit ratio from the op family gemm'
run doctor
expect_says 'reftest.toml sets sizes = small (line 1); device = cpu (line 2); tolerance = float16=0.1 (line 3)'

# Generated tests contain the bounds that reftest.toml sets. Generated tests without these bounds count as out of date.
run generate
run generate --check
expect_exit 0
grep -q '0\.1, 0\.1, 1' tests/references/test_gemm.py || fail "the generated test has another bound"

# An option and the definition's own tolerance take precedence over the file.
run verify --alone --tolerance 1e-9 tiny_gemm
expect_exit 1
expect_silence_about 'bounds from reftest.toml'
cp definitions/gemm/tiny_gemm.json "$work/kept"
edit definitions/gemm/tiny_gemm.json '"outputs"' '"tolerance": {"atol": 1e-9, "rtol": 1e-9}, "outputs"'
run verify --alone tiny_gemm
expect_exit 1
expect_silence_about 'bounds from reftest.toml'
cp "$work/kept" definitions/gemm/tiny_gemm.json

# After the bound is removed from the file, the verdicts of the first run are valid again.
printf 'sizes = "small"\ndevice = "cpu"\n' >reftest.toml
run generate --check
expect_exit 1
run verify --alone
expect_exit 1
expect_says '1 passed, 1 failed; 0 cases run'

# The setting accept = "checked" in the file accepts definitions with this status. The report then names the setting.
rm -r definitions tests .reftest
mkdir -p definitions/unheard_of
cat >definitions/unheard_of/odd.json <<'J'
{"name": "odd", "op_type": "unheard_of", "description": "Adds 1 to every second element.",
 "axes": {"n": {"type": "var"}}, "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
 "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
 "reference": "import torch\n\ndef run(x):\n    y = x.clone()\n    y[::2] += 1\n    return y\n"}
J
run verify --alone
expect_exit 3
printf '\naccept = "checked"\n' >>reftest.toml
run verify --alone
expect_exit 0
expect_says 'checked' 'accept = checked (line 4)'
run verify --alone --accept unattested
expect_exit 3
expect_silence_about 'accept ='

# The table [hook] applies only to hooks.
git init -q . && git add definitions
printf 'sizes = "small"\ndevice = "cpu"\n' >reftest.toml
run verify --staged --hook
expect_exit 0
printf '\n[hook]\nstrict = true\n' >>reftest.toml
run verify --staged --hook
expect_exit 3
expect_says 'hook.strict ='
run verify --alone
expect_exit 3
expect_silence_about 'hook.strict'
