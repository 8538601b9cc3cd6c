#!/usr/bin/env python3
"""sample_sentences - prints random sentences of this repository, to find out whether they can be understood at the
first reading.

tools/sample_sentences.py [SEED [COUNT]] prints COUNT (20) sentences of each kind: pages, comments, and messages that
users see. A reader who does not know the code then marks each sentence: understood at once, read twice, or not
understood.

With each sentence, the program prints what a reader sees beside it. For a sentence of a page, this is the heading and
the part of the paragraph before the sentence. For a comment, this is the part of the comment before the sentence, the
code beside or below the comment and, in C, the lines directly above it. For a literal, this is the whole message in
which it is printed (c_messages.py). A value is shown as the name of its variable in ‹…›, and of several alternatives,
the first text that is not empty is shown.

The program leaves out:
- sentences and messages of fewer than five words
- tables, tables of contents, code blocks and generated files
- literals without a space (paths), members of JSON objects, and programs in Python and shell
- lists of words in Python (strings for which the code calls split()), and static assertions in C
- literals in the files of NOT_PROSE, which are mostly scripts

`--left-out` prints the literals that these rules leave out, except static assertions. No rule depends on the style of a
sentence."""
import ast
import pathlib
import random
import re
import subprocess
import sys

import c_messages

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".c", ".h", ".cu", ".cuh"}
PROGRAM = re.compile(r"import [\w.]+( as \w+)?[,;]|from [\w.]+ import ")  # matches the beginning of a Python program
ABOVE = 3  # at most this number of lines above a comment is printed
NEAR = 400  # the maximum number of characters that are printed of the text or code beside a sentence
TEXT = r"(?:[^()|]|\([^()|]*\))*"  # a text with balanced brackets
ALTERNATIVES = re.compile(rf"\(({TEXT}(?:\|{TEXT})+)\)")
VAGUE = {"text", "data", "valuestring", "long", "int"}  # words in expressions that do not say what a value is
SHELL = re.compile(r"\|\| (exit|\{)|; then |>&2|>/dev/null")  # matches commands of shell scripts
# generated files, and tables of figures
SKIPPED = ("tests/references/", "tests/data/", "bench/RESULTS.md", "docs/coverage.md")
NOT_PROSE = {"cli/completions.c": "scripts of shells", "testgen/test_file.c": "the Python code of generated tests"}


def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in listed if name and not name.startswith(SKIPPED) and (ROOT / name).is_file()]


def sentences(text):
    """Yields each sentence of at least five words, with the part of its paragraph before it. Leaves out code, tables and
    paths. A list item begins a new paragraph, after the sentence that introduces the list."""
    lead = ""
    for part in re.split(r"(\n\s*\n|\n\s*(?=[-*]\s|\d+\.\s))", text):
        item = re.match(r"\s*(?:[-*]|\d+\.)\s+", part)
        before = lead if item else ""
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`'\"({%])", part[item.end():] if item else part):
            sentence = in_lines(sentence)
            if len(re.findall(r"[A-Za-z']+", without_links(sentence))) >= 5 and not sentence.startswith(("|", "#", "```", "$ ")):
                yield sentence, before[-NEAR:]
            before = (before + " " + sentence).strip()
        lead = lead if item or not before else before if before.endswith(":") else ""


def in_lines(sentence):
    """Joins the lines of a sentence. Rows of a table stay separate lines. A sentence counts as a table if two or more
    blanks separate words in at least two of its lines."""
    rows = [row.strip() for row in sentence.strip().split("\n")]
    table = sum(bool(re.search(r"\S {2,}\S", row)) for row in rows) >= 2
    return "\n    ".join(filter(None, rows)) if table else " ".join(sentence.split())


def without_links(sentence):
    """Removes list items that begin with a link, because they are entries of a table of contents."""
    return re.sub(r"\[[^]]*\]\([^)]*\)", "", sentence) if sentence.startswith("[") else sentence


def page_sentences(path):
    """Yields (sentence, place) for each sentence of a page. The place is the heading and the part of the paragraph before
    the sentence."""
    text = re.sub(r"```.*?```", "\n\n", path.read_text(), flags=re.S)
    for section in re.split(r"^(?=#)", text, flags=re.M):
        heading = section.split("\n")[0].strip() if section.startswith("#") else ""
        lines = [line for line in section.split("\n") if not line.lstrip().startswith(("|", "#", "    "))]
        for sentence, before in sentences("\n".join(lines)):
            yield sentence, [heading, before]


def blocks(lines):
    """Yields each comment of a script with the line of code below it. Consecutive lines that begin with "#", possibly
    after blanks, are one comment."""
    block = []
    for line in [*lines, ""]:
        comment = re.match(r"\s*#(?!!) ?(.*)", line)
        if comment:
            block.append(comment[1])
        elif block:
            yield "\n".join(block), line.strip()
            block = []


def c_comments(text):
    """Yields each comment of a C file with its code: the code on the first line of the comment or, if there is none,
    the line below. The lines directly above the comment, at most ABOVE and up to an empty line, come before the code."""
    for match in re.finditer(r'''"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'|/\*(.*?)\*/''', text, flags=re.S):
        if match[1] is None:  # the match is a literal, not a comment
            continue
        beside = text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        below = text[match.end():match.end() + 400].lstrip()
        below = re.split(r"[;{]\s*(?:\n|$)", re.sub(r"\A((?:/\*.*?\*/\s*)*)", "", below, flags=re.S))[0]
        code = beside or ("" if below.startswith("#") else below[:200])  # the head comment of a file has no code
        above = re.split(r"\n[ \t]*\n", text[:text.rfind("\n", 0, match.start()) + 1])[-1].split("\n")[-ABOVE - 1:]
        yield re.sub(r"^\s*\*", "", match[1], flags=re.M), " ".join(" ".join([*above, code]).split())


def comments(path):
    """Yields pairs of a comment and the code to which it belongs."""
    text = path.read_text()
    if path.suffix in CODE:
        yield from c_comments(text)
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                head = "" if isinstance(node, ast.Module) else text.split("\n")[node.lineno - 1].strip()
                yield ast.get_docstring(node), head
        yield from blocks(text.split("\n"))
        for match in re.finditer(r"^(.*\S)[ \t]+#[ \t](.*)$", text, flags=re.M):
            yield match[2], match[1].strip()
    elif path.suffix == ".sh":
        yield from blocks(text.split("\n"))


def python_messages(path):
    """Yields the strings of a Python file that have at least five words and are not docstrings."""
    tree = ast.parse(path.read_text())
    inner = {id(child) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for child in ast.walk(node)}
    inner |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    inner |= {id(node.func.value) for node in ast.walk(tree)
              if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split"}
    for node in ast.walk(tree):
        parts = [node] if isinstance(node, ast.Constant) and id(node) not in inner else []
        parts = node.values if isinstance(node, ast.JoinedStr) else parts
        message = "".join(str(part.value) if isinstance(part, ast.Constant) else f"‹{ast.unparse(part.value)}›"
                          for part in parts)
        if parts and c_messages.enough(message):
            yield path, node.lineno, " ".join(message.split()), path.read_text().split("\n")[node.lineno - 1].strip()


def all_messages():
    inside = [path for path in files() if path.parts[len(ROOT.parts)] not in ("tests", "bench", "tools")]
    yield from c_messages.messages([path for path in inside if path.suffix == ".c"],
                                   [path for path in inside if path.suffix == ".h"])
    for path in inside:
        if path.suffix == ".py":
            yield from python_messages(path)


def as_printed(message):
    """Returns the message as one of the texts that a user can see: chooses an alternative, and names each value after the
    variable or function that it comes from."""
    names = re.sub(r"‹([^‹›]*)›", lambda value: f"‹{name_in(value[1])}›", message)
    while True:
        chosen = ALTERNATIVES.sub(lambda choice: next(filter(None, choice[1].split("|")), ""), names)
        if chosen == names:
            return chosen
        names = chosen


def name_in(expression):
    """Returns the last name in a C or Python expression that says what the value is."""
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^]]*\]", "", expression))
    return next((word for word in reversed(words) if word not in VAGUE), expression)


def is_prose(path, message):
    if str(path.relative_to(ROOT)) in NOT_PROSE or " " not in message:
        return False
    return not re.search(r'[{,]\s*"\w+": ?', message) and not PROGRAM.match(message) and not SHELL.search(message)


def collect():
    """Returns {kind: [(file, sentence, what a reader sees beside it)]}."""
    kinds = {"pages": [], "comments": [], "messages": []}
    for path in files():
        name = path.relative_to(ROOT)
        if path.suffix == ".md":
            kinds["pages"] += [(name, *found) for found in page_sentences(path)]
        elif path.suffix in CODE | {".py", ".sh"}:
            kinds["comments"] += [(name, sentence, [before, code]) for comment, code in comments(path)
                                  for sentence, before in sentences(comment)]
    for path, line, message, statement in all_messages():
        if is_prose(path, message):
            kinds["messages"].append((f"{path.relative_to(ROOT)}:{line}", as_printed(message), [as_printed(statement)]))
    return kinds


def main():
    if sys.argv[1:] == ["--left-out"]:
        for path, line, message, _ in all_messages():
            if not is_prose(path, message):
                print(f"{path.relative_to(ROOT)}:{line}: {message}")
        return
    seed, count = (sys.argv[1:] + [None, None])[:2]
    chance = random.Random(seed)
    for kind, found in collect().items():
        print(f"{kind}: {len(found)} sentences")
        for name, sentence, around in chance.sample(found, min(int(count or 20), len(found))):
            print(f"  {sentence}")
            for line in filter(None, around):
                print(f"      near it: {line[:NEAR]}")
            print(f"      {name}")


if __name__ == "__main__":
    main()
