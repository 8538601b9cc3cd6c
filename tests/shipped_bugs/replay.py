#!/usr/bin/env python3
"""replay.py - replays bugs that shipped, and checks what reftest reports about each bug:
python3 tests/shipped_bugs/replay.py BUILD [options]. Arguments after "--" are passed to `reftest verify`. Without
BUILD, `--write` writes the tables of docs/history.md.

Every other file of this folder has BUGS, a list of bug.Bug: a correct reference, the edit that turns it into the wrong
reference that shipped, the source that reported the bug, and the expected result of reftest. The correct and the wrong
references become one dataset, which is verified on the CPU, and on the GPU if there is one. A bug is caught if its
wrong reference fails or raises an exception, and the correct reference passes. A bug is also caught if an edge case of
the wrong reference fails and no edge case of the correct reference fails. If no ground truth exists for a bug's
operation, the wrong reference must be skipped and must not pass. If the expected result is "passed", the wrong
reference must pass; if a later version of reftest catches the bug, the bug's entry and docs/history.md must be changed.
The script prints TAP. Test 1 checks that docs/history.md lists exactly these entries, and test 2 checks that there are
enough entries. Each further test checks the result of one bug on one device.
"""
import argparse
import glob
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROJECT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(PROJECT, "docs", "history.md")
LEAST = 30  # the test fails if there are fewer bugs
BEGIN, END = "<!-- written by tests/shipped_bugs/replay.py --write -->", "<!-- end of the part that replay.py writes -->"


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


bug = load("bug", os.path.join(HERE, "bug.py"))
mutants = load("mutants_run", os.path.join(PROJECT, "tests", "mutants", "run.py"))


def load_tables():
    """Reads the bugs of all files, in the order of the file names: [(title of the table, its bugs)]."""
    tables = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.py"))):
        name = os.path.basename(path)[:-3]
        if name not in ("replay", "bug"):
            module = load("history_" + name, path)
            title = module.__doc__.strip().rpartition("bugs that shipped in ")[2].rstrip(".")
            tables.append((title[0].upper() + title[1:], module.BUGS))
    return tables


def read_starter(name):
    with open(mutants.find_definition(name)) as source:
        return json.load(source)


def changed(like):
    """Builds the definition that bug.like() describes."""
    result = read_starter(like["like"])
    for axis, length in like["axes"].items():
        result["axes"][axis]["value"] = length
    for tensor, dtype in like["dtypes"].items():
        for tensors in (result["inputs"], result["outputs"]):
            if tensor in tensors:
                tensors[tensor]["dtype"] = dtype
    result["tags"] = [like["tags"].get(tag, tag) for tag in result["tags"]]
    return result


def right_definition(entry):
    if isinstance(entry.definition, str):
        return read_starter(entry.definition)
    if "like" in entry.definition:
        return {**changed(entry.definition), "name": entry.definition["like"] + "_changed"}
    return entry.definition


def wrong_definition(entry, right, number):
    wrong = right
    if entry.old is not None:
        wrong = mutants.plant(right, entry.wrong, entry.old, entry.new)
    return {**wrong, "name": f"{right['name']}_bug{number}"}


def build_dataset(root, bugs):
    """Writes the correct definitions and the wrong ones. Returns, for each bug, the names (wrong, right) of its two
    definitions; right is None if the bug is in the definition itself."""
    names = []
    for number, entry in enumerate(bugs):
        right = right_definition(entry)
        wrong = wrong_definition(entry, right, number)
        mutants.write_definition(root, wrong)
        if entry.old is not None:
            right = {**right, "name": f"{right['name']}_right{number}"} if "like" in entry.definition else right
            mutants.write_definition(root, right)
        names.append((wrong["name"], right["name"] if entry.old is not None else None))
    return names


def is_undecided(definition):
    cases = definition["cases"]
    return definition["status"] in ("skipped", "checked") and all(c["reason"] == "no_ground_truth" for c in cases) and len(cases) > 0


def guilty_edges(definition):
    """Returns the edge cases that fail or raise an exception. The failure of an edge case does not change the status of
    the definition."""
    edges = [c for c in definition["cases"] if c["id"].startswith("edge:")]
    return [c["id"] for c in edges if c["status"] == "failed" or c["reason"] == "raised"]


def matches_entry(says, wrong):
    if says == bug.CAUGHT:
        return mutants.is_caught(wrong)
    if says == bug.EDGE:
        return len(guilty_edges(wrong)) > 0
    if says == bug.UNDECIDED:
        return is_undecided(wrong)
    return wrong["status"] == "passed"


def complaint(entry, wrong, right):
    """Returns None if the result is the one that the entry expects, else a message. right is None if there is no
    correct definition."""
    if right is not None and (right["status"] != "passed" or guilty_edges(right)):
        if isinstance(entry.definition, str) or not is_undecided(right):
            return f"the correct definition does not pass: {right['status']} {' '.join(guilty_edges(right))}"
    if not matches_entry(entry.says, wrong):
        return f"{entry.says} is expected, reftest says {wrong['status']}"
    return None


def judge(build, root, bugs, names, words):
    """Returns a list with an item for each bug: None if the result is the expected one, else a message. A bug that is
    caught at the small size is not tried at the other sizes."""
    codes = (0, 1, 3)  # 3: a case was skipped
    found = mutants.verify(build, root, [], [*words, "--sizes", "small"], codes)
    found.update(mutants.verify(build, root, [n for n in found if not mutants.is_caught(found[n])], words, codes))
    edges = sorted({n for b, pair in zip(bugs, names) if b.says == bug.EDGE for n in pair if n is not None})
    strict = mutants.verify(build, root, edges, [*words, "--edge", "--strict"], codes) if edges else {}
    complaints = []
    for entry, (wrong, right) in zip(bugs, names):
        source = strict if entry.says == bug.EDGE else found
        complaints.append(complaint(entry, source[wrong], source[right] if right else None))
    return complaints


def link(source):
    """Formats a source as Markdown."""
    repository, mark, number = re.fullmatch(r"([\w.-]+/[\w.-]+)([#@])(\w+)", source).groups()
    page = "issues" if mark == "#" else "commit"
    return f"[{repository.split('/')[1]}{' #' if mark == '#' else ' '}{number}](https://github.com/{repository}/{page}/{number})"


def row(entry):
    definition = entry.definition
    name = definition if isinstance(definition, str) else definition.get("like", definition.get("name"))
    sources = ", ".join(link(source) for source in entry.source.split())
    kind = "" if isinstance(definition, str) else " (changed)" if "like" in definition else " (its own)"
    return f"| {sources} | {entry.wrong} | `{name}`{kind} | {entry.says} | {entry.why} |"


def page_tables(tables):
    """Returns the tables of docs/history.md, which stand between two marks in the page."""
    lines = [BEGIN]
    for title, bugs in tables:
        lines += ["", f"## {title}", "", "| source | what was wrong | replayed in | reftest says | why |"]
        lines += ["|---|---|---|---|---|", *(row(entry) for entry in bugs)]
    return lines + ["", END]


def split_page():
    """Returns the page in three parts: the lines before the tables, the tables, and the lines after them."""
    with open(PAGE) as file:
        lines = file.read().splitlines()
    first, last = lines.index(BEGIN), lines.index(END) + 1
    return lines[:first], lines[first:last], lines[last:]


def write_page(tables):
    before, _, after = split_page()
    with open(PAGE, "w") as file:
        file.write("\n".join(before + page_tables(tables) + after) + "\n")


def tell(number, good, sentence, reason=None):
    print(f"{'ok' if good else 'not ok'} {number} - {sentence}", flush=True)
    if reason:
        print(f"# {reason}")
    return good


def tell_page(number, tables):
    differing = sorted(set(split_page()[1]) ^ set(page_tables(tables)))
    good = split_page()[1] == page_tables(tables)
    reason = None if good else f"tests/shipped_bugs/replay.py --write mends it; it differs in: {differing[:1]}"
    return tell(number, good, "docs/history.md tells of every bug here, and of nothing else", reason)


def options_of(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/history.md instead")
    parser.add_argument("--only", metavar="WORDS", help="the bugs whose source or description holds these")
    parser.add_argument("--device", action="append", help="as reftest takes it (default: cpu, and cuda:0 if there)")
    options = parser.parse_args(words)
    if not options.write and options.build is None:
        parser.error("BUILD is missing")
    gpu = glob.glob("/dev/nvidia[0-9]*") and os.path.exists(f"{options.build}/libreftest_kernels_cuda.so")
    options.device = options.device or ["cpu"] + (["cuda:0"] if gpu else [])
    return options


def main():
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, words = options_of(sys.argv[1:at]), sys.argv[at + 1 :]
    tables = load_tables()
    if options.write:
        write_page(tables)
        return
    bugs = [entry for _, table in tables for entry in table]
    asked = [b for b in bugs if options.only is None or options.only in b.source or options.only in b.wrong]
    root = tempfile.mkdtemp(prefix="reftest-history-")
    print(f"1..{len(options.device) * len(asked) + 2}", flush=True)
    good = tell_page(1, tables)
    good &= tell(2, len(bugs) >= LEAST, f"{len(bugs)} bugs are replayed, of at least {LEAST}")
    try:
        names = build_dataset(root, asked)
        number = 2
        for device in options.device:
            lanes = ["--device", device, "--jobs", str(min(os.cpu_count(), 4))]
            for entry, reason in zip(asked, judge(options.build, root, asked, names, lanes + words)):
                number += 1
                good &= tell(number, reason is None, f"{device}: {entry.source}: {entry.wrong}: {entry.says}", reason)
    finally:
        shutil.rmtree(root)
    sys.exit(not good)


if __name__ == "__main__":
    main()
