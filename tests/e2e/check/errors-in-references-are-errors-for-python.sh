#!/bin/sh
# If `reftest check` says that a reference is invalid Python, Python also refuses the reference. References of the
# starter dataset get one random edit each: a bracket, quote, colon or word is removed or added, or a line is moved.
# reftest must find nearly all references that Python refuses, and must accept all references that Python accepts.
. "$(dirname "$0")/../harness.sh"
"$python" -I -S - "$top" <<'END'
import json
import os
import pathlib
import random
import sys
import warnings

warnings.simplefilter("ignore")
good = sorted(pathlib.Path(sys.argv[1], "definitions").glob("*/*.json"))
draw = random.Random(5)


def cut(text, characters):
    places = [i for i, c in enumerate(text) if c in characters]
    place = draw.choice(places) if places else 0
    return text[:place] + text[place + 1:]


def add(text, characters):
    place = draw.randrange(len(text))
    return text[:place] + draw.choice(characters) + text[place:]


def indent(text, width):
    lines = text.split("\n")
    place = draw.randrange(len(lines))
    lines[place] = " " * width + lines[place] if width > 0 else lines[place][-width:] if lines[place][:1] == " " else lines[place]
    return "\n".join(lines)


def drop_line(text):
    lines = text.split("\n")
    del lines[draw.randrange(len(lines))]
    return "\n".join(lines)


EDITS = (lambda t: cut(t, "()[]{}"), lambda t: add(t, "()[]{}"), lambda t: cut(t, "'\""), lambda t: add(t, "'\""),
         lambda t: cut(t, ":"), lambda t: add(t, ":,=."), lambda t: cut(t, "abcdefnrst= "), lambda t: indent(t, draw.choice((1, 4))),
         lambda t: indent(t, draw.choice((-1, -4))), drop_line, lambda t: add(t, " \n\t#\\"))
os.makedirs("definitions/x")
valid = []
for number in range(3000):
    definition = json.loads(draw.choice(good).read_text())
    name = f"m{number:04}"
    definition.update(name=name, op_type="x", reference=draw.choice(EDITS)(definition["reference"]))
    try:
        compile(definition["reference"], name, "exec", dont_inherit=True)
        valid.append(name)
    except SyntaxError:
        pass
    pathlib.Path(f"definitions/x/{name}.json").write_text(json.dumps(definition))
json.dump(valid, open("../valid", "w"))
END
run check --format json
expect_exit 2
refused="{f['path'][14:-5] for f in r['findings'] if f['severity'] == 'error' and 'not valid Python' in f['message']}"
expect "len(json.load(open('../valid'))) > 500"
expect "not $refused & set(json.load(open('../valid')))"
expect "len($refused) > 0.98 * (3000 - len(json.load(open('../valid'))))"
