#!/bin/sh
# 2000: whatever is wrong with a definition is said with file, line and column, makes the exit code 2, and keeps no other
# definition from being verified.
. "$(dirname "$0")/scene.sh"
given tiny_gemm tiny_norm

# Each bad file is the good one with one fault planted, as text, so that line and column are known.
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
plant("wrong_type", '"value": 64', '"value": "64"')
plant("missing_field", '"op_type": "rmsnorm",', "")
plant("duplicate_key", '"op_type": "rmsnorm",', '"op_type": "rmsnorm", "op_type": "rmsnorm",')
plant("unknown_dtype", '"bfloat16"', '"bfloat17"')
plant("unknown_axis", '["hidden_size"]', '["hidden_sise"]')
plant("axis_zero", '"value": 64', '"value": 0')
plant("axis_negative", '"value": 64', '"value": -64')
plant("axis_fractional", '"value": 64', '"value": 64.5')
plant("axis_huge", '"value": 64', '"value": 9223372036854775808')
plant("other_name", '"other_name"', '"another_name"')
plant("broken_constraint", '"inputs"', '"constraints": ["batch_size =="],\n  "inputs"')
plant("null_byte", "An RMS norm", "An RMS\\u0000norm")
plant("no_run", "def run(", "def walk(")
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

# told NAME LINE TEXT: the definition is invalid, and the sentence begins with file and line and says the text
told() {
	expect_status "$1" invalid
	expect "d['$1']['message'].startswith('definitions/rmsnorm/$1.json:$2')"
	expect "'''$3''' in d['$1']['message']"
}
told broken_json 4: ','
told wrong_type 10:47: 'integer'
told missing_field '' 'op_type'
told duplicate_key 3:25: 'op_type'
told unknown_dtype 13: 'bfloat17'
told unknown_axis 14: 'hidden_sise'
told axis_zero 10:47: '0'
told axis_negative 10:47: '-64'
told axis_fractional 10:47: '64.5'
told axis_huge 10:47: '9223372036854775808'
told other_name 2: 'another_name'
told broken_constraint 12: 'batch_size =='
told null_byte 4: ''
told no_run '' 'run'
told nested 1: 'deep'
told empty '' ''
told not_utf8 4: 'UTF-8'
told raw_null 4: ''
told list 1:1: 'object'
told trailing '' ''
expect "d['huge']['status'] == 'invalid' and 'huge.json' in d['huge']['message']"

verify tiny_norm
expect_exit 0
expect_ran 0
