#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Every error in a definition is reported with file, line and column, and the exit status is 2. Other definitions are
# still verified.
. "$(dirname "$0")/../harness.sh"
given tiny_gemm tiny_norm

# Each bad file is the good file with one error inserted as text, at a known line and column.
"$python" -I -S - <<'END'
import json
import os

folder = "definitions/rmsnorm/"
good = open(folder + "tiny_norm.json", encoding="utf-8").read()


def plant(name, old, new, count=1):
    text = good.replace('"tiny_norm"', f'"{name}"')
    assert old in text, (name, old)
    text = text.replace(old, new, count)
    open(folder + name + ".json", "w", encoding="utf-8").write(text)


def put(name, content):
    open(folder + name + ".json", "wb").write(content)


plant("broken_json", '"op_type": "rmsnorm",', '"op_type": "rmsnorm"')
plant("wrong_type", '"value": 64', '"value": "64 rows"')
plant("missing_field", '"axes":', '"axis":')
plant("duplicate_key", '"op_type": "rmsnorm",', '"op_type": "rmsnorm", "op_type": "rmsnorm",')
plant("unknown_dtype", '"bfloat16"', '"bfloat17"')
plant("unknown_axis", '["hidden_size"]', '["hidden_sise"]')
plant("axis_negative", '"value": 64', '"value": -64')
plant("axis_fractional", '"value": 64', '"value": 64.5')
plant("axis_huge", '"value": 64', '"value": 9223372036854775808')
plant("other_name", '"other_name"', '"another_name"')
plant("unknown_constraint", '"inputs"', '"constraints": ["batch_size == ceil(hidden_size)"],\n  "inputs"')
plant("null_byte", "An RMS norm", "An RMS\\u0000norm")
plant("no_run", "def run(", "def walk(")
plant("run_in_a_string", r"\ndef run(", r"\ndef walk(): '''\ndef run():\n'''\ndef walk(")
plant("not_python", "def run(", "def run((")
put("nested", b"[" * 100000)
put("empty", b"")
put("not_utf8", good.replace('"tiny_norm"', '"not_utf8"').replace("An RMS", "An \xff").encode("latin-1"))
put("raw_null", good.replace('"tiny_norm"', '"raw_null"').encode().replace(b"An RMS", b"An\0RMS"))
put("list", b"[1, 2]\n")
put("trailing", good.replace('"tiny_norm"', '"trailing"').encode() + b"{}")
os.truncate(os.open(folder + "huge.json", os.O_CREAT | os.O_RDWR), 1 << 30)
END

verify
expect_exit 2
expect_status tiny_norm passed
expect_status tiny_gemm passed
# If reftest cannot evaluate a constraint, a note says so, and the definition is verified.
expect_status unknown_constraint passed
expect "any('12:' in note and 'not checked' in note for note in d['unknown_constraint']['notes'])"

# `expect_invalid NAME LINE TEXT`: expects the definition to be invalid, with a message that starts with file and line
# and contains the text.
expect_invalid() {
	expect_status "$1" invalid
	expect "d['$1']['message'].startswith('definitions/rmsnorm/$1.json:$2')"
	expect "'''$3''' in d['$1']['message']"
}
expect_invalid broken_json 4: ','
expect_invalid wrong_type 10:47: 'integer'
expect_invalid missing_field '' 'axes'
expect_invalid duplicate_key 3:25: 'op_type'
expect_invalid unknown_dtype 13: 'bfloat17'
expect_invalid unknown_axis 14: 'hidden_sise'
expect_invalid axis_negative 10:47: '-64'
expect_invalid axis_fractional 10:47: '64.5'
expect_invalid axis_huge 10:47: '9223372036854775808'
expect_invalid other_name 2: 'another_name'
expect_invalid null_byte 4: ''
expect_invalid no_run '' 'run'
expect_invalid run_in_a_string 19:16 'found only walk'
expect_invalid not_python 19:16 "the reference is not valid Python at line 7, column 8: '(' is never closed"
expect_invalid nested 1: 'deep'
expect_invalid empty '' ''
expect_invalid not_utf8 4: 'UTF-8'
expect_invalid raw_null 4: ''
expect_invalid list 1:1: 'object'
expect_invalid trailing '' ''
expect "d['huge']['status'] == 'invalid' and 'huge.json' in d['huge']['message']"

verify tiny_norm
expect_exit 0
expect_ran 0

# If a reference is not valid Python, every report has the position of the error, and no process runs the reference.
run verify --junit ../report.xml not_python
expect_exit 2
grep -q "not valid Python at line 7, column 8" ../report.xml || fail "JUnit has no position"
run status not_python
expect_says "not valid Python at line 7, column 8"
run explain not_python
expect_says "not valid Python at line 7, column 8"
