#!/bin/sh
# Whatever text a definition contains, its generated test is valid Python, contains the definition's values, and is
# formatted as `ruff format` formats it. Two runs of `generate` write the same bytes, in either layout. If a definition
# is unreadable, only its own tests fail.
. "$(dirname "$0")/../harness.sh"
pytest_is_here
ruff_is_here

# `hostile NAME TEXT`: writes the definition of a correct norm whose reference has TEXT (with printf escapes) in a
# comment and at the end.
hostile() {
	{
		printf 'import torch\n\n# %b\n\n\ndef run(hidden_states, weight):\n    rows = hidden_states.float()\n' "$2"
		printf '    inverse = torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6)\n'
		printf '    return (rows * inverse * weight.float()).to(hidden_states.dtype)  # %b' "$2"
	} | define "$1"
}
hostile plain 'nothing'
hostile quotes '\0042\0042\0042 \0047\0047\0047 \0042'
hostile backslashes '\\\\ \\\\n \\\\x41 \\\\N{BULLET} \\\\'
hostile controls '\t tab \b\0033[31m \0177'
hostile unicode '\303\251 \342\200\256 \342\200\250 \357\273\277 \360\237\230\200'
hostile blanks 'end   \n#\n   '
hostile marks 'x\n# definition: "plain"\n# definition: none\n# x'
hostile returns "a\r# b\f\v c\r\n# \034 $(printf '%03000d' 0)$(printf '%0300d' 0 | tr 0 '\042')\nif 1:\n\tthis = 1\nif 1:\n        that = 2  # d"
hostile class 'a keyword for a name'
hostile a_b 'one name'
hostile a__b 'and its like'
hostile "it's \"x\\ y" 'a name with quotes'
hostile 'ⅷ' 'a name that is no ASCII'
"$python" -I -S -c '
import json
d = json.load(open("definitions/rmsnorm/plain.json"))
d["axes"].update({k: {"type": "const", "value": v} for v, k in enumerate(("I", "n", "N", "NAME", "self", "__x"), 1)})
json.dump(d, open("definitions/rmsnorm/plain.json", "w"))'

run generate
expect_exit 0
cp -r tests "$work/first"
formatted() {
	expectations=$((expectations + 1))
	"$ruff" format --isolated --no-cache --diff tests/references >"$work/out" 2>"$work/err" || fail "ruff format would change something"
	"$ruff" check --isolated --no-cache tests/references >"$work/out" 2>"$work/err" || fail "ruff check finds something"
}
formatted
run_pytest
expect_exit 0
rm -r tests .reftest
run generate
diff -r tests "$work/first" >"$work/out" || fail "the second run gave other bytes"

run generate --layout definition
expect_exit 1
expect_says "no test file can be named after 'it's \"x\\ y'"
[ -f tests/references/test_class.py ] || fail "there is no test_class.py"
[ ! -e tests/references/test_rmsnorm.py ] || fail "the other layout's file is still there"
formatted
run_pytest
expect_exit 0

# If a definition or workload line is unreadable, only its own tests fail; pytest still collects the file.
mkdir -p workloads/rmsnorm
printf 'nonsense\n{"workload": 3}\n' >workloads/rmsnorm/class.jsonl
echo '{' >definitions/rmsnorm/quotes.json
run_pytest --tb=line -k "(Class or Plain or Quotes) and (workload or unchanged or edge)"
expect_exit 1
expectations=$((expectations + 1))
! grep -qE ' errors? in ' "$work/out" || fail "an unreadable definition breaks other tests"
[ "$(grep -c '^FAILED.*TestClass.*workload' "$work/out")" = 2 ] || fail "an unreadable line is not reported"
! grep -q '^FAILED.*TestPlain' "$work/out" || fail "a definition beside the broken one fails"
grep -q '^FAILED.*TestQuotes.*unchanged' "$work/out" || fail "the broken definition is not reported"
