#!/usr/bin/env python3
"""coverage - reports which lines and branches of each op family's oracle are reached by the default cases. `make
coverage` builds the instrumented programs and runs this script.

    tools/coverage.py BUILD [--read] [--write] [FAMILY...]

BUILD/tests/coverage/oracles runs the cases of each op family in a separate process, and gcov counts the executions. The
report covers the functions op.oracle, op.judge and op.weigh of the family, and the functions that these call. The
report leaves out:

- checks of workload inputs
- code that op.match of the family also calls, because this code parses definitions
- code that all families share (number formats, memory)
- error handling: statements that set an error message or return -1, and the branches that lead to them

If a line or one of its branches is not reached, tests/coverage/explained.tsv must give a reason. If the reason is
missing, or if a line with a reason is reached completely, the script prints the line and exits with status 1.

--read uses the counters of the last run; --write writes the tables of docs/coverage.md."""

import collections
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
COMMON = re.compile(r"kernels/core/(dtype_convert|input_check|random_inputs|ops|op|compare|row_counts|take)\.[ch]$")
CHECKS = re.compile(r"(^|_)check(_|$)")  # matches the functions that check workload inputs
FAILS = re.compile(r"\berr_set\(|return -1;|\bdie_no_memory\(")


def fail(text):
    sys.exit(f"coverage: {text}")


def run_cases(build, family):
    """Runs the cases of an op family. Writes gcov's counters to BUILD/families/FAMILY/…, and beside them links to the
    .gcno files."""
    folder = build / "families" / family
    shutil.rmtree(folder, ignore_errors=True)
    strip = len((ROOT / build).resolve().parts) - 1
    surroundings = {**os.environ, "GCOV_PREFIX": str(folder.resolve()), "GCOV_PREFIX_STRIP": str(strip), "OMP_NUM_THREADS": "1"}
    command = [build / "tests/coverage/oracles", family]
    if subprocess.run(command, cwd=ROOT, env=surroundings, stdout=subprocess.DEVNULL).returncode != 0:
        fail(f"the cases of {family} did not run")


def read_counts(build, family):
    """Returns the functions and lines of each source file below kernels/, as gcov reports them. The counters of a
    header are summed over all files that include it."""
    folder = build / "families" / family
    functions, lines = {}, {}
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
                functions[file["file"], function["name"]] = (function["start_line"], function["end_line"])
            for line in file["lines"]:
                key = (file["file"], line.get("function_name", "").split("._omp_fn")[0], line["line_number"])
                branches = [branch["count"] for branch in line["branches"]]
                count, before = lines.get(key, (0, []))
                both = [a + b for a, b in zip(before, branches)] if len(before) == len(branches) else before or branches
                lines[key] = (count + line["count"], both)
    return functions, lines


def uncommented(path):
    text = (ROOT / path).read_text()
    return re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.S)


class Names:
    """The names that the functions and tables of kernels/ use, and the file that defines each name. If several files
    define a name, the file that uses it comes first, then a header, then a file in which the name is not static."""

    def __init__(self, functions, family):
        self.text, self.words = {}, {}
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
        self.words[path, name] = set(WORD.findall("\n".join(self.text[path][start - 1:end])))
        self.own[path].add(name)
        if path.endswith(".h") or not self.text[path][start - 1].startswith("static"):
            self.places[name].append(path)

    def place(self, path, name):
        return path if name in self.own[path] else next(iter(self.places.get(name, [])), None)

    def reached(self, path, names):
        found, todo = set(), [(path, name) for name in names]
        while todo:
            path, name = todo.pop()
            at = self.place(path, name)
            if at is None or CHECKS.search(name) or COMMON.match(at) or (at, name) in found:
                continue
            found.add((at, name))
            todo += [(at, word) for word in self.words[at, name]]
        return found


def judged_functions(names, family):
    path = f"kernels/{family}/{family}.c"
    text = "\n".join(names.text[path])
    table = re.search(rf"^const struct op {family}_op = \{{(.*?)^\}};", text, re.M | re.S)
    members = dict(re.findall(r"\.(\w+) = (\w+)", table[1]))
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


def report(names, functions, lines, family):
    """Returns the lines that the report covers as {(path, function, line): counts}. `counts` has the execution count of
    the line and of each of its branches."""
    failing = {key: failing_lines(names.text[key[0]], *functions[key])
               for key in judged_functions(names, family) if key in functions}
    return {key: [count] + branches for key, (count, branches) in lines.items()
            if key[:2] in failing and key[2] not in failing[key[:2]]}


def totals_of(lines):
    ran = [counts[0] > 0 for counts in lines.values()]
    branches = [branch > 0 for counts in lines.values() for branch in counts[1:]]
    return sum(ran), len(ran), sum(branches), len(branches)


def is_shared(path):
    return path.startswith(("kernels/core/", "kernels/common/"))


def left_of(family, reports):
    """Yields (path, function, line, branches, shared) for each line that never runs or has an unreached branch.
    `branches` has a 1 for each reached branch and a 0 for each other branch, or is "-" if the line never runs. `shared`
    is true if other op families also use the line, and these families together reach the line and all its branches."""
    left = []
    for key, counts in sorted(reports[family].items()):
        if all(counts):
            continue
        shared = is_shared(key[0])
        others = [other[key] for other in reports.values() if shared and len(other.get(key, [])) == len(counts)]
        elsewhere = shared and all(any(other[i] for other in others) for i in range(len(counts)))
        left.append((*key, "".join("01"[count > 0] for count in counts[1:]) if counts[0] else "-", elsewhere))
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
        functions, lines = read_counts(build, family)
        reports[family] = report(Names(functions, family), functions, lines, family)
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
