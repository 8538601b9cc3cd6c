#!/usr/bin/env python3
"""coverage - reports, for each op family, which lines and branches of its oracle the default cases reach. The oracle is
the C code that computes the ground truth. `make coverage` builds the instrumented programs and runs this script.

    tools/coverage.py BUILD [--read] [--write] [FAMILY...]

BUILD/tests/coverage/oracles runs the cases of each op family in a separate process, and gcov counts the executions. The
report covers the functions op.oracle, op.judge and op.weigh of the family, and the functions that these call. The
report leaves out:

- checks of workload inputs
- code that op.match of the family also calls, because this code parses definitions
- code that all families share (number formats, memory)
- error handling: statements that set an error message or return -1, and the branches that lead to them
- code that runs only if op_case.mistake is set (to find the cause of a failure): code under a condition such as `if
  (c->mistake == SWAPPED)`, and functions that only such code calls
- on other lines that compare op_case.mistake: the branches that are reached only if op_case.mistake is set. To find
  them, BUILD/tests/coverage/oracles runs a second time with the same inputs and op_case.mistake set (docs/coverage.md)

If a line or one of its branches is not reached, tests/coverage/explained.tsv must give a reason. If the reason is
missing, or if a line with a reason is reached completely, the script prints the line and exits with status 1.

--read uses the counters of the last run; --write writes the tables of docs/coverage.md."""

import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPLAINED = ROOT / "tests/coverage/explained.tsv"
PAGE = ROOT / "docs/coverage.md"
MARK = "<!-- written by tools/coverage.py --write -->\n"
JUDGED = ("oracle", "judge", "weigh")
WORD = re.compile(r"(?<![\w.>])[A-Za-z_]\w*")  # matches a name that is not a member of a struct
# Code that all op families share (number formats, memory, tensors from workloads); unit tests cover it.
COMMON = re.compile(r"kernels/core/(dtype_convert|input_check|random_inputs|ops|op|compare_tensors|compare_truncation|row_counts|take)\.[ch]$")
CHECKS = re.compile(r"(^|_)check(_|$)")  # matches the functions that check workload inputs
MISTAKE = re.compile(r"mistak")
COMPARES = re.compile(r"mistake (==|!=|<|>)")
# Matches a comparison that can be true only if op_case.mistake is set (differs from NO_MISTAKE, which is 0).
HAS_MISTAKE = re.compile(r"\(*[\w.>-]*mistake (== (?!\w*NO_MISTAKE\b|0\b)|>= (?!0\b)|> |!= (\w*NO_MISTAKE|0)\b)")
FAILS = re.compile(r"\berr_set\(|return -1;|\bdie_no_memory\(")


def fail(text):
    sys.exit(f"coverage: {text}")


def run_cases(build, family, *option):
    """Runs the cases of an op family, which writes gcov's counters to BUILD/families/FAMILY/…. With the option
    --mistakes, this folder is named FAMILY--mistakes."""
    folder = build / "families" / "".join((family, *option))
    shutil.rmtree(folder, ignore_errors=True)
    strip = len((ROOT / build).resolve().parts) - 1
    surroundings = {**os.environ, "GCOV_PREFIX": str(folder.resolve()), "GCOV_PREFIX_STRIP": str(strip), "OMP_NUM_THREADS": "1"}
    command = [build / "tests/coverage/oracles", family, *option]
    if subprocess.run(command, cwd=ROOT, env=surroundings, stdout=subprocess.DEVNULL).returncode != 0:
        fail(f"the cases of {family} did not run")


def read_counts(build, family):
    """Returns the functions and lines of each source file below kernels/, as gcov reports them. The counters of a
    header are summed over all files that include it."""
    folder = build / "families" / family
    functions, lines, called = {}, {}, collections.Counter()
    for counts in sorted(folder.glob("obj/kernels/**/*.gcda")):
        notes = counts.with_suffix(".gcno")
        if not notes.is_symlink():
            notes.symlink_to((build / counts.relative_to(folder)).with_suffix(".gcno").resolve())
        answer = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", counts.resolve()],
                                cwd=ROOT, stdout=subprocess.PIPE, check=True)
        for file in json.loads(answer.stdout)["files"]:
            if not file["file"].startswith("kernels/"):
                continue
            for function in file["functions"]:
                called[file["file"], function["name"]] += function["execution_count"]
                functions[file["file"], function["name"]] = (function["start_line"], function["end_line"])
            for line in file["lines"]:
                key = (file["file"], line.get("function_name", "").split("._omp_fn")[0], line["line_number"])
                branches = [branch["count"] for branch in line["branches"]]
                count, before = lines.get(key, (0, []))
                both = [a + b for a, b in zip(before, branches)] if len(before) == len(branches) else before or branches
                lines[key] = (count + line["count"], both)
    return functions, lines, {function for function, count in called.items() if count > 0}


def uncommented(path):
    text = (ROOT / path).read_text()
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


class Names:
    """The names that the functions and tables of kernels/ use, and the file that defines each name. If several files
    define a name, a use of the name means the definition in the same file. If this file has none, it means a definition
    in a header, or a definition that is not static."""

    def __init__(self, functions, family):
        self.text, self.words, self.right_words = {}, {}, {}
        self.of_mistakes, self.asking = {}, {}
        self.own, self.places = collections.defaultdict(set), collections.defaultdict(list)
        for path in {path for path, _ in functions} | {f"kernels/{family}/{family}.c"}:
            self.text[path] = uncommented(path).split("\n")
        for (path, name), (start, end) in functions.items():
            self.add(path, name, start, end)
        for path, text in self.text.items():
            for match in re.finditer(r"^(?=\w)[\w \t*]*?(\w+)(?:\[[^]\n]*\])* = \{.*?\};", "\n".join(text), re.M | re.S):
                start = "\n".join(text)[:match.start()].count("\n") + 1
                self.add(path, match[1], start, start + match[0].count("\n"))

    def add(self, path, name, start, end):
        text = self.text[path]
        mistaken, self.asking[path, name] = mistake_lines(text, start, end)
        self.of_mistakes[path, name] = mistaken
        self.words[path, name] = set(WORD.findall("\n".join(text[start - 1:end])))
        self.right_words[path, name] = set(WORD.findall("\n".join(
            text[at - 1] for at in range(start, end + 1) if at not in mistaken and not MISTAKE.search(text[at - 1]))))
        self.own[path].add(name)
        if path.endswith(".h") or not self.text[path][start - 1].startswith("static"):
            self.places[name].append(path)

    def place(self, path, name):
        return path if name in self.own[path] else next(iter(self.places.get(name, [])), None)

    def reached(self, path, names):
        return self.closure([(path, name) for name in names], self.words)

    def closure(self, todo, words):
        found, todo = set(), list(todo)
        while todo:
            path, name = todo.pop()
            at = self.place(path, name)
            if at is None or CHECKS.search(name) or COMMON.match(at) or (at, name) in found:
                continue
            found.add((at, name))
            todo += [(at, word) for word in words[at, name]]
        return found


def mistake_lines(text, start, end):
    """Returns two sets of lines of a function. The lines of the first set run only if op_case.mistake is set: they are
    indented below a condition that HAS_MISTAKE matches, or are in a case of `switch (…mistake)` before its `default`.
    The lines of the second set contain these conditions and switches. On each of these lines, all branches except one
    are reached only if op_case.mistake is set."""
    mistaken, asking, until, switch = set(), set(), None, None
    for number in range(start + 1, end + 1):
        line = text[number - 1].strip()
        indent = len(text[number - 1]) - len(text[number - 1].lstrip("\t"))
        if not line:
            continue
        if until is not None and indent > until:
            mistaken.add(number)
            continue
        until = None
        if switch is not None and (indent < switch or (indent == switch and not re.match("(case|default)\\b", line))):
            switch = None
        if switch is not None and line.startswith("default"):
            switch = None
        elif switch is not None and re.match(r"case (?!\w*NO_MISTAKE\b|0\b)", line):
            mistaken.add(number)
            until = indent
        elif re.match(r"switch \(.*mistake\) \{", line):
            switch = indent
            asking.add(number)
        elif re.match(r"(\} )?(else )?if \(.*\)( \{)?$|for \(.*;.*;.*\)( \{)?$", line):
            condition = line.split(";")[1] if "for (" in line else line.split("if (", 1)[1]
            parts = [[HAS_MISTAKE.match(term.strip()) for term in part.split("&&")] for part in condition.split("||")]
            if all(map(any, parts)) and not re.search(r"!\(|\) [!=]=", condition):
                until = indent
                if "?" not in line and "for (" not in line and all(part[0] for part in parts):
                    asking.add(number)
    return mistaken, asking


def members_of(table):
    """Returns {member: value} for an op family's `struct op`, whose text is `table`. Some members come from macros that
    the text uses."""
    for macro in re.findall(r"^\s*(\w+_MEMBERS),", table, re.M):
        headers = "\n".join(path.read_text() for path in sorted((ROOT / "kernels").rglob("*.h")))
        table += re.search(rf"^#define {macro}\b((?:.*\\\n)*.*)", headers, re.M)[1]
    return dict(re.findall(r"\.(\w+) = (\w+)", table))


def judged_functions(names, family):
    path = f"kernels/{family}/{family}.c"
    text = "\n".join(names.text[path])
    table = re.search(rf"^const struct op {family}_op = \{{(.*?)^\}};", text, re.M | re.S)
    members = members_of(table[1])
    if "oracle" not in members:
        fail(f"{path} does not say which function is the oracle")
    of = names.reached(path, [members[member] for member in JUDGED if member in members])
    return of - names.reached(path, [members["match"]])


def failing_lines(text, start, end):
    """Returns the lines of a function that handle errors, including the conditions that lead to error handling."""
    failing, statement, first = set(), "", start
    for number in range(start, end + 1):
        line = text[number - 1].strip()
        if not statement:
            first = number
        statement += line
        if statement.count("(") != statement.count(")") or not line:
            continue
        if re.match(r"(\} )?(else )?if \(", statement) and not statement.endswith(";"):
            body = [at for at in range(number + 1, end + 1) if text[at - 1].strip()]
            if statement.endswith("{"):
                body = body[:next((i for i, at in enumerate(body) if text[at - 1].strip().startswith("}")), 0)]
                fails = body and FAILS.search(text[body[-1] - 1])
            else:
                body = body[:1]
                fails = body and FAILS.search(text[body[0] - 1])
            if fails:
                failing.update(range(first, number + 1), body)
        elif FAILS.search(statement):
            failing.update(range(first, number + 1))
        statement = ""
    return failing


def report(names, functions, lines, called, with_mistakes, family):
    """Returns {(path, function, line): counts} of the lines in the report. `counts` is a list: how often the line ran,
    and how often each of its branches was reached. The count of a branch is None if the branch is reached only with
    op_case.mistake set. `called` contains the functions that were called in the run without op_case.mistake, and
    `with_mistakes` contains the counts of the run with op_case.mistake set."""
    judged = {key for key in judged_functions(names, family) if key in functions}
    judged &= names.closure(called & judged, names.right_words)
    found = {}
    left_out = {key: failing_lines(names.text[key[0]], *functions[key]) | names.of_mistakes[key] for key in judged}
    for key, (count, branches) in lines.items():
        if key[:2] in judged and key[2] in names.of_mistakes[key[:2]] and count > 0:
            fail(f"{key[0]}:{key[2]} runs without a mistake, although mistake_lines says otherwise")
        if key[:2] not in judged or key[2] in left_out[key[:2]]:
            continue
        if key[2] in names.asking[key[:2]]:
            branches = [branch or None for branch in branches]
        elif COMPARES.search(names.text[key[0]][key[2] - 1]):
            again = with_mistakes.get(key, (0, []))[1]
            branches = [None if branch == 0 and mistaken > 0 else branch
                        for branch, mistaken in itertools.zip_longest(branches, again[:len(branches)], fillvalue=0)]
        found[key] = [count] + branches
    return found


def totals_of(lines):
    ran = [counts[0] > 0 for counts in lines.values()]
    branches = [branch > 0 for counts in lines.values() for branch in counts[1:] if branch is not None]
    return sum(ran), len(ran), sum(branches), len(branches)


def is_shared(path):
    return path.startswith(("kernels/core/", "kernels/common/"))


def left_of(family, reports):
    """Yields (path, function, line, branches, shared) for each line that never runs or has an unreached branch.
    `branches` has one character per branch: 1 if the branch is reached, 0 if it is not, and x if it is reached only
    with op_case.mistake set. If the line never runs, `branches` is "-". `shared` is true if the line is in code that op
    families share, and if other families reach whatever this family does not reach (the line or some of its branches),
    with or without op_case.mistake."""
    left = []
    for key, counts in sorted(reports[family].items()):
        if 0 not in counts:
            continue
        shared = is_shared(key[0])
        others = [other[key] for other in reports.values() if shared and len(other.get(key, [])) == len(counts)]
        elsewhere = shared and all(any(other[i] != 0 for other in others) for i in range(len(counts)))
        branches = "".join("x" if count is None else "01"[count > 0] for count in counts[1:])
        left.append((*key, branches if counts[0] else "-", elsewhere))
    return left


def read_explained():
    rows = [line.split("\t") for line in EXPLAINED.read_text().split("\n") if line and not line.startswith("#")]
    return {tuple(row[:4]): row[4] for row in rows}


def write_page(rows, reasons):
    table = ["| family | lines reached | branches reached | what is left |", "|---|---|---|---|"]
    for family, (lines, all_lines, branches, all_branches), kinds in rows:
        what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
        table.append(f"| {family} | {lines} of {all_lines} | {branches} of {all_branches} | {what} |")
    table += ["", "## What is left, and why", "", "| family | where | line | why |", "|---|---|---|---|"]
    for family, path, function, text, why in reasons:
        text = text.replace("|", "\\|")
        table.append(f"| {family} | `{path.removeprefix('kernels/')}`, `{function}` | `{text}` | {why} |")
    head = PAGE.read_text().split(MARK)[0]
    PAGE.write_text(head + MARK + "\n" + "\n".join(table) + "\n")


def main():
    arguments = sys.argv[1:]
    options = {argument for argument in arguments if argument.startswith("--")}
    plain = [argument for argument in arguments if argument not in options]
    if not plain or options - {"--read", "--write"}:
        fail("usage: tools/coverage.py BUILD [--read] [--write] [FAMILY...]")
    build = pathlib.Path(plain[0])
    every = sorted(path.parent.name for path in ROOT.glob("kernels/*/*.c") if path.stem == path.parent.name)
    families = plain[1:] or every
    explained, used, rows, reasons, unexplained, reports = read_explained(), set(), [], [], 0, {}
    for family in families:
        if "--read" not in options:
            run_cases(build, family)
            run_cases(build, family, "--mistakes")
        functions, lines, called = read_counts(build, family)
        with_mistakes = read_counts(build, family + "--mistakes")[1]
        reports[family] = report(Names(functions, family), functions, lines, called, with_mistakes, family)
    for family in families:
        kinds, totals = collections.Counter(), totals_of(reports[family])
        print(f"{family}: {totals[0]} of {totals[1]} lines, {totals[2]} of {totals[3]} branches")
        for path, function, number, reached, elsewhere in left_of(family, reports):
            text = (ROOT / path).read_text().split("\n")[number - 1].strip()
            key = ("*" if is_shared(path) else family, path, function, text)
            if elsewhere:
                kinds["in other families"] += 1
            elif key in explained:
                kinds[explained[key].split(":")[0]] += 1
                reasons += [(*key, explained[key])] if key not in used else []
                used.add(key)
            else:
                unexplained += 1
                print(f"  {path}:{number} ({function}) {reached}: {text}")
        rows.append((family, totals, kinds))
    stale = [key for key in explained if key not in used and len(plain) == 1]
    for key in stale:
        print(f"explained, but reached or gone: {' '.join(key)}")
    if "--write" in options:
        write_page(rows, reasons)
    return 1 if unexplained or stale else 0


if __name__ == "__main__":
    sys.exit(main())
