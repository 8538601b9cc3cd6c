"""vacuous_tests.py - tests python/vacuous_tests.py. Runs the script, as `reftest generate --audit` does, on the sources
of tests/data/audit.txt and on some others, and compares its findings with the expected ones. Repeats the test with each
interpreter of the command line: vacuous_tests.py PYTHON…"""

import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = "import torch\n\n\ndef run(x):\n    # doubled\n    return x * 2\n"
ABOUT = "definitions/x/y.json"
CATCHING = (
    "except:",
    "except AssertionError:",
    "except Exception as e:",
    "except (ValueError, AssertionError):",
    "except BaseException:",
)
SILENT = ("pass", "print(e)", "return", "...", "pytest.skip('x')", "'why'", "logger.info('x')")
PARSED = "the file cannot be parsed by Python 3."
GOOD = "def test_a():\n    assert x\n"


def table():
    """Yields (title, source, {line: words of the expected reason}) for each case in tests/data/audit.txt."""
    text = (TOP / "tests/data/audit.txt").read_text()
    for group in text.split("==== ")[1:]:
        title, rest = group.split("\n", 1)
        for source in re.split(r"^----\n", rest, flags=re.MULTILINE):
            marks = (line.partition("#! ")[2] for line in source.split("\n"))
            yield title, source.encode(), {n: mark for n, mark in enumerate(marks, 1) if mark}


def swallowed():
    for clause, body in itertools.product(CATCHING, SILENT):
        source = f"def test_a():\n    assert shape\n    try:\n        assert x\n    {clause}\n        {body}\n"
        yield "swallowed", source.encode(), {4: "catches the error of this assertion, so the test passes anyway"}


def unusual():
    """Yields cases as table() does: files that are not parsed, that are not in UTF-8, or that are unusual otherwise."""
    for text in ('"', "'''", "def", "def test_a(", "))))\ndef test_a(): '\\", "x = 1\ry\0", "-" * 100000 + "1", "(" * 1000):
        yield "not parsed", text.encode(), {1: PARSED}
    yield "not parsed", (GOOD + "def broken(:\n").encode(), {3: PARSED}
    yield "newer than this interpreter", b"x = 1\nbrandnew statement: y\n" + GOOD.encode(), {2: PARSED}
    yield "not parsed", b"\\\n\\", {2: PARSED}
    yield "bytes that are not UTF-8", b"x = '\xff'\n" + GOOD.encode(), {1: PARSED}
    yield "another coding", b"# coding: latin-1\nx = '\xff'\n" + GOOD.encode(), {}
    yield "byte order mark", b"\xef\xbb\xbf" + GOOD.encode(), {}
    yield "CRLF", GOOD.replace("x", "True").replace("\n", "\r\n").encode(), {2: "asserts something"}
    yield "no newline", b"def test_a(): print(1)", {1: "compares nothing"}
    yield "empty", b"", {}
    yield "large", GOOD.encode() + b"#" * (1 << 20), {1: "the file is larger than 1048576 bytes"}
    yield "names of all kinds", "def test_ä():\n    return 1\n".encode(), {2: "test_ä returns its verdict"}
    yield "a warning of the parser", b"def test_a():\n    assert (x, 'why')\n    assert x is 1, '\\d'\n", {2: "asserts something"}
    deep = "".join(f"{' ' * n}if x:\n" for n in range(90)) + " " * 90 + "def test_a(): assert x\n"
    yield "deep blocks", deep.encode(), {}


def audit(python, folder, requests):
    """Runs the script as testgen/vacuous_tests.c does, and returns its answers."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    command = [python, "-IS", TOP / "python/vacuous_tests.py", folder]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == "", done.stderr
    return [json.loads(line)["findings"] for line in done.stdout.splitlines()]


def differs(found, expected):
    lines = [finding["line"] for finding in found]
    return lines != sorted(expected) or any(expected[f["line"]] not in f["reason"] or len(f["reason"]) > 400 for f in found)


def check(python, folder):
    cases = [*table(), *swallowed(), *unusual()]
    requests = []
    for n, (_, source, _) in enumerate(cases):
        (folder / f"{n}.py").write_bytes(source)
        requests.append({"path": f"{n}.py", "reference": REFERENCE, "about": ABOUT})
    (folder / "paste.py").write_text("def run(x):\n    return x * 3\n")
    requests += [
        {"path": "paste.py", "reference": "def run(x:\n", "about": ABOUT},
        {"path": "paste.py", "reference": "def other(x): return x\n", "about": ABOUT},
        {"path": "paste.py", "reference": REFERENCE, "about": "a\u202e\n" + "b" * 1000},
        {"path": "paste.py"},
        {"path": "none.py"},
    ]
    cases += [
        ("the reference is not parsed", b"", {1: f"the reference of {ABOUT} cannot be parsed by Python 3."}),
        ("the reference has no run", b"", {}),
        ("a reference of a strange name", b"", {1: "run() is an edited copy of the reference of a??b"}),
        ("there is no reference", b"", {}),
        ("a file that is gone", b"", {1: "cannot be read"}),
    ]
    answers = audit(python, folder, requests)
    assert len(answers) == len(cases), (len(answers), len(cases))
    wrong = [(case, found) for case, found in zip(cases, answers) if differs(found, case[2])]
    for (title, source, expected), found in wrong:
        print(f"{title}:\n{source.decode(errors='replace')[:500]}\nexpected {expected}\nfound {found}\n")
    print(f"{python}: {len(cases)} sources, {len(wrong)} wrong")
    return len(wrong)


def main():
    wrong = 0
    for python in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            wrong += check(python, pathlib.Path(folder))
    sys.exit(wrong > 0)


main()
