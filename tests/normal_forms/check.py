"""check.py - compares the lexical normal form of Python texts (test_python_normal_form) with the syntax trees of this
interpreter's parser.

    python3 tests/normal_forms/check.py build/tests/test_python_normal_form

For the sources in tests/data/forms and thousands of variants of them:
- A form consists of tokens, or is the raw text. If two texts have the same form of tokens, their syntax trees are the
  same apart from docstrings. A text that Python rejects never has the form of a text that Python accepts.
- An edit that changes only comments, docstrings or spaces does not change the form. An edit of a token that changes the
  syntax tree changes the form.
- If a program can read its own line numbers or docstrings, no other text has the same form as this program.

Every variant is generated from a fixed seed. The script runs with any Python from 3.8 on.
"""
import ast
import glob
import io
import os
import random
import re
import subprocess
import sys
import tokenize
import warnings

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))


def forms_of(program, sources):
    """Returns the form of each source: b'T…' (tokens) or b'R…' (raw text). The program prints one form per line, in
    hexadecimal."""
    request = b"".join(b"%d\n%s" % (len(s), s) for s in sources)
    answer = subprocess.run([program, "--forms"], input=request, stdout=subprocess.PIPE, check=True).stdout
    forms = [bytes.fromhex(line.decode()) for line in answer.splitlines()]
    assert len(forms) == len(sources), "%d forms for %d sources" % (len(forms), len(sources))
    return forms


def meaning(source):
    """Returns the syntax tree without docstrings and positions, or None for a text that Python rejects. This result
    must be the same for all sources with the same form."""
    try:
        text = source.decode()
        tree = ast.parse(text)
        compile(text, "reference", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if node.body and isinstance(node.body[0], ast.Expr) and isinstance(
                    getattr(node.body[0].value, "value", None), str):
                node.body = node.body[1:]
    return ast.dump(tree)


def cut(text):
    """Returns (kind, text) of each token. From Python 3.12 on, the pieces of an f-string are joined again."""
    lines = text.splitlines(keepends=True)
    offset = [0]
    for line in lines:
        offset.append(offset[-1] + len(line))
    tokens, begin, depth = [], 0, 0
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        name = tokenize.tok_name[t.type]
        start, end = offset[t.start[0] - 1] + t.start[1], None
        if name.endswith("STRING_START"):
            begin, depth = (start if depth == 0 else begin), depth + 1
        elif name.endswith("STRING_END"):
            depth -= 1
            if depth == 0:
                end = offset[t.end[0] - 1] + t.end[1]
                tokens.append(("STRING", text[begin:end]))
        elif depth == 0 and name not in ("COMMENT", "NL", "ENDMARKER"):
            tokens.append((name, t.string))
    return tokens


def spaces(rng, least):
    return " " * rng.randint(least, 3) if rng.random() < 0.9 or least else "\t"


def comment(rng):
    return "#" + rng.choice(["", " x = 1", " 'quote", ' """', " ( [", " \\", " — ✓", " def f():"])


def respaced(text, rng):
    """Returns the same tokens with other space, comments and blank lines between them."""
    out, widths, depth, fresh, before = [], [""], 0, True, ""
    for kind, token in cut(text):
        if kind == "INDENT":
            widths.append(widths[-1] + " " * rng.randint(1, 8))
        elif kind == "DEDENT":
            widths.pop()
        elif kind == "NEWLINE":
            out.append(spaces(rng, 0) + (comment(rng) if rng.random() < 0.3 else "") + "\n")
            while rng.random() < 0.3:
                out.append(" " * rng.randint(0, 9) + rng.choice(["", comment(rng)]) + "\n")
            fresh, before = True, ""
        else:
            if fresh:
                out.append(widths[-1])
            else:
                tight = before[-1] in "()[]{}," or token[0] in "()[]{},"
                out.append(spaces(rng, 0 if tight else 1))
                if depth > 0 and rng.random() < 0.2:
                    out.append((comment(rng) if rng.random() < 0.5 else "") + "\n" + spaces(rng, 0))
                elif rng.random() < 0.1:
                    out.append("\\\n" + spaces(rng, 0))
            depth += (token in "([{") - (token in ")]}") if kind == "OP" else 0
            out.append(token)
            fresh, before = False, token
    return "".join(out).replace("\n", "\r\n" if rng.random() < 0.2 else "\n")


def redocumented(text, rng):
    """Replaces the text of each docstring that begins on a line of its own."""
    lines = text.encode().splitlines(keepends=True)
    places = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                places.append(first)
    for place in sorted(places, key=lambda p: -p.lineno):
        line = lines[place.lineno - 1]
        if line[:place.col_offset].strip() == b"":
            other = rng.choice(['"x"', "'''y\n\n   z\n'''", 'r"\\d"', '"a" \'b\''])
            tail = lines[place.end_lineno - 1][place.end_col_offset:]
            lines[place.lineno - 1:place.end_lineno] = [line[:place.col_offset] + other.encode() + tail]
    return b"".join(lines).decode()


def retokened(text, rng):
    """Changes one token of the text, which is chosen at random."""
    places = [m for m in re.finditer(r"[A-Za-z_]\w*|\d+|[-+*/<>=]|\[|,", text)]
    place = rng.choice(places)
    word = place.group()
    other = word + "0" if word[-1].isalnum() else {"+": "-", "-": "+", "*": "/", "/": "*", "<": ">", ">": "<",
                                                   "=": "==", "[": "[[", ",": ",,", "_": "_0"}[word[-1]]
    return text[:place.start()] + other + text[place.end():]


def damaged(text, rng):
    """Makes a few random edits with the characters that tokenisers often handle wrongly."""
    pieces = [" ", "\n", "\t", "#", "\\", "\\\n", '"', "'", '"""', "'''", "(", ")", "[", "]", "{", "}", ":", ";",
              ",", ".", "=", "!", "<", ">", "-", "0", "1", "e", "j", "_", "f", "r", "b", "rb", "f'", "\r", "\f", "é",
              "\u00a0", "$", "x", "if ", "else ", "#\n", "  #\n", "\n\n", "    ", "import ", "from ", '"doc"\n',
              '"\\x"\n', "pass\n", "\ufeff"]
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        action = rng.random()
        if action < 0.6:
            text = text[:at] + rng.choice(pieces) + text[at:]
        elif action < 0.9:
            text = text[:at] + text[at + rng.randint(1, 3):]
        else:
            text = text[:at] + rng.choice(pieces) + text[at + 1:]
    return text


def snippets():
    """Generates small sources, many of which look alike but are different."""
    return [
        'x = 1\n', 'x=1', 'x = 1 # c\n', '"doc"\nx = 1\n', 'x = 1 \\\n', 'x = 1 \\\n\n', 'x = 1 \\\n# c\n',
        '\\\nx = 1\n',
        ' x = 1\n', 'x = 1;\n', 'x = 1\n  ', 'x = 1\n\\\n', '"a"\n"b"\nx = 1\n', '"\\x"\nx = 1\n', '"a"; x = 1\n',
        'from __future__ import annotations\n', '"a"\nfrom __future__ import annotations\n',
        '"a"\n"b"\nfrom __future__ import annotations\n', 'def f():\n "d"\n', 'def f():\n pass\n', 'def f():\n',
        'def f(): "d"\n',
        'def f():\n # c\n "d"\n', 'def f():\n "d"; x\n', 'def f():\n f"d"\n', 'def f():\n b"d"\n',
        'def f():\n "d" "e"\n',
        'def f():\n "d" f"e"\n', 'def f():\n ("d")\n', 'def f():\n "d".x\n', 'if x:\n "d"\n', 'if x:\n "e"\n',
        'if x:\n pass\n',
        'class A:\n "d"\n', 'class A:\n "d"\n x = 1\n', 'class A:\n x = 1\n', 'class A:\n x = 1\n "d"\n',
        'async def f():\n "d"\n return 1\n', 'async def f():\n return 1\n', '@a\n# c\ndef f():\n "d"\n return 1\n',
        '@a\ndef f():\n return 1\n', 'x = 1if y else 2\n', 'x = 1 if y else 2\n', 'x = 0x1for x in y\n',
        'x = 1..real\n',
        'x = 1 .real\n', 'x = 1.real\n', 'x = 0x1e-5\n', 'x = 0x1e - 5\n', 'x = 1e-5\n', 'x = 1e - 5\n', 'a < b\n',
        'a << b\n',
        'a < < b\n', 'a -> b\n', 'a - > b\n', 'a! = b\n', 'a != b\n', 'f(x:=1)\n', 'f(x: =1)\n', 'f(x : = 1)\n',
        'a <> b\n',
        'x = rb"a"\n', 'x = rb "a"\n', 'x = br"a"\n', 'x = u"a"\n', 'x = u "a"\n', 'x = "a" "b"\n', 'x = "a""b"\n',
        'x = "ab"\n', 'x = """a"""\n', 'x = f"{y}"\n', 'x = f"{y }"\n', 'x = f"{y=}"\n', 'x = f"{y = }"\n',
        "x = f'{y['a']}'\n",
        'x = f"{y["a"]}"\n', 'x = f"{y:{z}}"\n', 'x = f"{{y}}"\n', 'x = f"{y"\n', 'x = f"y}"\n', 'x = f"{y #}"\n}"\n',
        'x = f"""{\ny}"""\n', 'x = f"{y:\\}"\n', 'x = f"\\{y}"\n', 'x = f"\\N{DASH}"\n', 'x = f"\\N{EM DASH}{y}"\n',
        'if x:\n  a\n  b\n', 'if x:\n    a\n    b\n', 'if x:\n  a\nb\n', 'if x:\n    a\n  b\n', 'if x:\n\ta\n\tb\n',
        'if x:\n\ta\n        b\n', 'if x: a\n', 'if x: a; b\n', '(a,\n b)\n', '(a, b)\n', '(a, # c\n b)\n',
        '(a,\\\n b)\n', '(a b)\n',
        '(a\nb)\n', 'a\nb\n', 'a b\n', 'a\\\nb\n', 'a\\ \nb\n', 'ab\n', '# coding: latin-1\nx = "é"\n', 'x = "é"\n',
        '#\nx = "é"\n',
        'é = 1\n', 'x = 1\u00a0\n', '\ufeffx = 1\n', 'x = 1\r\n', 'x = 1\rx = 2\n', 'x = """\r\n"""\n',
        'x = """\n"""\n', 'x = 1\x0c\n',
        '\x0cx = 1\n', 'x = 1\x00\n', '# \x00\nx = 1\n', '', '\n', '# c', '"d"', '"d"\n', '("d")\n', '"d" "e"\n',
        "if 1:\n pass\n# c\n",
        'x = $\n', 'x = ?\n', 'x = `y`\n', 'print "a"\n', 'exec "a"\n', '(' * 201 + ')' * 201, '(' * 90 + ')' * 90,
        "".join(" " * i + "if x:\n" for i in range(99)) + " " * 99 + "x\n",
        "".join(" " * i + "if x:\n" for i in range(101)) + " " * 101 + "x\n",
    ]


def planted():
    """Returns pairs of sources that differ only in a comment or a docstring, but compute different values of `result`.
    Each source reads its own text through names that no list of suspicious names would contain."""
    lines = [
        "%sg = (i for i in [1])\nresult = str(g.gi_code).rpartition(',')[2]\n",
        "%sasync def a():\n    pass\nc = a()\nresult = str(c.cr_code).rpartition(',')[2]\nc.close()\n",
        "import contextlib\n%sf = contextlib.contextmanager(lambda: (yield))\nresult = str(f().gen.gi_code).rpartition(',')[2]\n",
    ]
    docs = "def run():\n    '%s'\n    return 1\n"
    readers = [
        "import typing\ndef f(a: 'typing.Literal[len(run.__do' 'c__)]'):\n    pass\nresult = str(typing.get_type_hints(f))\n",
        "import functools\nS = type('S', (), {'__seta' 'ttr__': lambda s, k, v: s.got.append(v), 'got': []})\n"
        "result = list(functools.update_wrapper(S(), run, ['__do' + 'c__'], []).got)\n",
    ]
    return [(text % "", text % "# a comment\n") for text in lines] + \
           [(docs % "one" + text, docs % "three" + text) for text in readers]


def check_planted(program):
    for first, second in planted():
        results = []
        for text in (first, second):
            names = {"__name__": "reference"}
            exec(compile(text, "<reference>", "exec", dont_inherit=True), names)
            results.append(names["result"])
        forms = forms_of(program, [first.encode(), second.encode()])
        check(results[0] != results[1], "these were to compute another result", first.encode(), second.encode())
        check(forms[0] != forms[1], "one form, and another result:", first.encode(), second.encode())


def check(condition, sentence, *sources):
    if not condition:
        sys.exit("\n--- and ---\n".join([sentence] + [s.decode(errors="replace") for s in sources]))


def check_sound(program, sources):
    """Checks that equal forms mean equal syntax trees. Returns the number of pairs of different texts that were
    compared."""
    by_form, pairs = {}, 0
    for source, form in zip(sources, forms_of(program, sources)):
        if form[:1] == b"R":
            check(form[1:] == source, "a raw form is not its text", source)
            continue
        known, first = by_form.setdefault(form, (meaning(source), source))
        if source != first:
            pairs += 1
            check(known == meaning(source), "equal forms, different meanings:", first, source)
    return pairs


def check_samples(program, rounds):
    neutral = changed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "..", "data", "forms", "*.py"))):
        rng = random.Random(os.path.basename(path))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        same = [respaced(text, rng) for _ in range(rounds)] + [redocumented(text, rng) for _ in range(rounds)]
        same += [respaced(redocumented(text, rng), rng) for _ in range(rounds)]
        other = [retokened(text, rng) for _ in range(rounds)]
        forms = forms_of(program, [s.encode() for s in [text] + same + other])
        check(forms[0][:1] == b"T", "a sample is not taken for tokens", text.encode())
        for source, form in zip(same, forms[1:]):
            check(meaning(source.encode()) == meaning(text.encode()), "this edit was to mean nothing", source.encode())
            check(form == forms[0], "an edit that means nothing changed the form", text.encode(), source.encode())
            neutral += 1
        for source, form in zip(other, forms[1 + len(same):]):
            if meaning(source.encode()) != meaning(text.encode()):
                check(form != forms[0], "a changed token left the form alone", text.encode(), source.encode())
                changed += 1
    return neutral, changed


def check_damage(program, rounds):
    pairs = 0
    for path in sorted(glob.glob(os.path.join(HERE, "..", "data", "forms", "*.py"))):
        rng = random.Random(path.rsplit(os.sep, 1)[1] + "damage")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        pairs += check_sound(program, [text.encode()] + [damaged(text, rng).encode() for _ in range(rounds)])
    small = [s for s in snippets() if len(s) < 80]
    rng = random.Random("snippets")
    variants = [damaged(rng.choice(small), rng).encode() for _ in range(rounds * 10)]
    return pairs + check_sound(program, [s.encode() for s in small] + variants)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
    check_planted(program)
    pairs = check_sound(program, [s.encode() for s in snippets()])
    neutral, changed = check_samples(program, rounds)
    pairs += check_damage(program, rounds * 10)
    check(pairs > 100 and neutral > 100 and changed > 40, "too little was compared to mean anything")
    print("%d pairs with equal forms have equal syntax trees, %d edits without a meaning kept the form, %d other edits changed it"
          % (pairs, neutral, changed))


main()
