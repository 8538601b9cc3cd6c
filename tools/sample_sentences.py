#!/usr/bin/env python3
"""sample_sentences - prints random sentences of the tree, to find out whether they can be understood at the first
reading.

tools/sample_sentences.py [SEED [COUNT]] prints COUNT (20) sentences of each kind: pages, comments, and messages that
users see. A reader who does not know the code then marks each sentence: understood at once, read twice, or not
understood."""
import ast
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CODE = {".c", ".h", ".cu", ".cuh"}
SKIPPED = ("tests/references/", "tests/data/", "bench/RESULTS.md", "docs/coverage.md")  # generated, or tables of figures


def files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    return [ROOT / name for name in listed if name and not name.startswith(SKIPPED) and (ROOT / name).is_file()]


def sentences(text):
    """Yields the sentences of at least five words, without code, tables and paths. A list item begins a sentence."""
    for part in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s+", text):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`'\"({%])", part):
            sentence = " ".join(sentence.split())
            if len(re.findall(r"[A-Za-z']+", sentence)) >= 5 and not sentence.startswith(("|", "#", "```", "$ ")):
                yield sentence


def page_sentences(path):
    text = re.sub(r"```.*?```", "\n\n", path.read_text(), flags=re.S)
    text = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith(("|", "#", "    ")))
    return sentences(text)


def blocks(lines):
    """The comments that begin with "#" in the first column of a script, or after blanks: consecutive lines are one comment."""
    block = []
    for line in [*lines, ""]:
        comment = re.match(r"\s*#(?!!) ?(.*)", line)
        if comment:
            block.append(comment[1])
        elif block:
            yield "\n".join(block)
            block = []


def comments(path):
    text = path.read_text()
    if path.suffix in CODE:
        for comment in re.findall(r"/\*(.*?)\*/", text, flags=re.S):
            yield re.sub(r"^\s*\*", "", comment, flags=re.M)
    elif path.suffix == ".py":
        nodes = [node for node in ast.walk(ast.parse(text))
                 if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        yield from filter(None, map(ast.get_docstring, nodes))
        yield from blocks(text.split("\n"))
        yield from re.findall(r"\S[ \t]+#[ \t](.*)$", text, flags=re.M)
    elif path.suffix == ".sh":
        yield from blocks(text.split("\n"))


def messages(path):
    """Yields the string literals of a C file that have at least five words."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    for literal in re.findall(r'((?:"(?:[^"\\\n]|\\.)*"\s*)+)', text):
        joined = "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', literal)).replace('\\"', '"').replace("\\n", " ")
        if len(re.findall(r"[A-Za-z']{2,}", joined)) >= 5 and "{" not in joined and not joined.startswith("<"):
            yield " ".join(joined.split())


def collect():
    kinds = {"pages": [], "comments": [], "messages": []}
    for path in files():
        name = path.relative_to(ROOT)
        if path.suffix == ".md":
            kinds["pages"] += [(name, sentence) for sentence in page_sentences(path)]
        elif path.suffix in CODE | {".py", ".sh"}:
            kinds["comments"] += [(name, sentence) for comment in comments(path) for sentence in sentences(comment)]
        if path.suffix == ".c" and path.parts[len(ROOT.parts)] not in ("tests", "bench"):
            kinds["messages"] += [(name, message) for message in messages(path)]
    return kinds


def main():
    seed, count = (sys.argv[1:] + [None, None])[:2]
    chance = random.Random(seed)
    for kind, found in collect().items():
        print(f"{kind}: {len(found)} sentences")
        for name, sentence in chance.sample(found, min(int(count or 20), len(found))):
            print(f"  {sentence}\n      {name}")


if __name__ == "__main__":
    main()
