#!/usr/bin/env python3
"""python3 tests/hostile/run.py BUILD [options] - runs hostile references, and checks what reftest reports about them
and what they can access.

Each file of tests/hostile/references is a reference with one kind of hostile behaviour. The head of the file says what
reftest must report (hostile_reference.py). A dataset contains all of these references, and also honest definitions with
correct and with wrong references. The dataset is verified in each set-up of setups.py. In each set-up:

- each reference gets a verdict that its head allows, and each honest definition gets the right verdict;
- `reftest doctor` reports only gaps that docs/containment.md lists for the set-up. An attack succeeds only if doctor
  reports the gap in the attack's head. For each gap that doctor reports, at least one attack succeeds;
- no process and no file is left, the user's files are unread and unchanged, and the run ends in time.

A set-up that this machine cannot build is a failure, unless REFTEST_ALLOW_MISSING_SETUPS=1 is set.

Prints TAP: for each set-up a line for each reference and for each of the statements above.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys

import gaps
import hostile_reference
import inside
import setups

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
LEAST = 80  # the minimum number of references
RUN_SECONDS = 150  # the maximum time for one batch of references in a set-up
GUARD_SECONDS = 500
ALLOW_MISSING = "REFTEST_ALLOW_MISSING_SETUPS"


NEEDS = {
    "cuda": "it needs a CUDA device",
    "x86-64": "it uses numbers of system calls of x86-64",
}


def can_run(reference, device):
    """Returns whether this machine has what a reference needs."""
    return {None: True, "cuda": device != "cpu", "x86-64": platform.machine() == "x86_64"}[reference.needs]


class Tap:
    def __init__(self):
        self.count, self.failed = 0, 0

    def tell(self, good, sentence, reason=None):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {escape(sentence)}", flush=True)
        if not good and reason:
            print("".join(f"# {escape(line)}\n" for line in str(reason)[:4000].split("\n")), end="", flush=True)

    def miss(self, sentence, reason):
        """Reports that this machine cannot build a set-up. This is a failure unless REFTEST_ALLOW_MISSING_SETUPS is
        1."""
        if os.environ.get(ALLOW_MISSING) == "1":
            self.skip(sentence, reason)
        else:
            self.tell(False, sentence, f"{reason}; {ALLOW_MISSING}=1 skips what this machine cannot test")

    def skip(self, sentence, reason):
        self.count += 1
        print(f"ok {self.count} - {escape(sentence)} # SKIP {escape(reason)}", flush=True)


def escape(text):
    """Returns a text in which control characters are escaped, because a reference may have chosen the text."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class Result:
    """The results of one set-up."""

    def __init__(self, facts):
        self.facts = facts
        self.batches = {name: facts[name] for name in ("endless", "others")}
        self.open_gaps = set(facts["gaps"])
        self.reports, self.summaries = {}, {}
        for name, batch in self.batches.items():
            report = json.loads(batch["output"])
            self.summaries[name] = report["summary"]
            self.reports[name] = {one["name"]: one for one in report["definitions"]}

    def definition(self, reference):
        return self.reports["endless" if reference.is_endless else "others"][reference.name]

    def texts(self):
        return [batch[kind] for batch in self.batches.values() for kind in ("output", "errors")]


def message_of(definition):
    return "; ".join(case["message"] or "" for case in definition["cases"]) or definition["message"] or ""


def claim_of(reference, definition):
    """Returns "reached" or "contained". Takes this from the verdict or, if the verdict does not decide it, from the
    text of the reference's exception. Returns None if the text contains neither word."""
    verdict = f"{definition['status']} {definition['reason']}"
    if verdict in (reference.reached, reference.contained):
        return "reached" if verdict == reference.reached else "contained"
    for word in ("reached", "contained"):
        if f"AssertionError: {word}" in message_of(definition):
            return word
    return None


def fault_of(reference, result, device):
    """Returns why the report about a reference is not the expected one, or None."""
    definition = result.definition(reference)
    status, reason, claim = definition["status"], definition["reason"], claim_of(reference, definition)
    if not reference.accepts(status, reason, device):
        return f"expected {' or '.join(reference.expected(device))}, reported {status} {reason}: {message_of(definition)}"
    if reference.gap is None:
        return None
    if claim is None:
        return f"it says neither what it reached nor that it was contained: {message_of(definition)}"
    if claim == "reached" and reference.gap not in result.open_gaps:
        return f"it reached what doctor reports as closed ({reference.gap}): {message_of(definition)}"
    return None


def wrong_neighbours(result):
    """Returns the honest definitions whose verdict is not the right one."""
    states = {"right": "passed", "wrong": "failed"}
    return [
        f"{batch}: {name}: {report[name]['status']} {report[name]['reason']}"
        for batch, report in result.reports.items()
        for name, kind in inside.NEIGHBOURS.items()
        if report[name]["status"] != states[kind]
    ]


def changed_files(facts):
    before, after = facts["files_before"], facts["files_after"]
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def judge_references(tap, setup, references, result, device):
    for reference in references:
        sentence = f"{setup.name}: {reference.name}: {reference.about}"
        if not can_run(reference, device):
            tap.skip(sentence, NEEDS[reference.needs])
        elif reference.name not in result.facts["ran"]:
            tap.skip(sentence, f"the gap '{reference.gap}' is open here, and it would end the run")
        else:
            fault = fault_of(reference, result, device)
            tap.tell(fault is None, sentence, fault)


def judge_gaps(tap, setup, references, result, device, shown):
    told = {name: set(one["containment"]) - {"full"} if isinstance(one["containment"], list) else set()
            for name, one in result.summaries.items()}  # fmt: skip
    same = all(one == result.open_gaps for one in told.values())
    tap.tell(same, f"{setup.name}: doctor reports the gaps that the references had", f"{result.open_gaps}, {told}")
    expected, sentence = (
        setup.gaps | (setups.GPU if device != "cpu" else set()),
        "no other gap is open than the page says",
    )
    if setups.old_kernel() is None:
        tap.tell(result.open_gaps <= expected, f"{setup.name}: {sentence}", result.open_gaps - expected)
    else:
        tap.miss(f"{setup.name}: {sentence}", setups.old_kernel())
    reached = {
        one.gap
        for one in references
        if one.name in result.facts["ran"] and claim_of(one, result.definition(one)) == "reached"
    }
    for gap in sorted(result.open_gaps) if shown else []:
        tap.tell(
            gap in reached,
            f"{setup.name}: the gap '{gap}' is open, as doctor reports",
            "no reference reached anything by it",
        )


def judge_remains(tap, setup, result):
    facts, opened = result.facts, result.open_gaps
    left = {name: batch["left"] for name, batch in result.batches.items() if batch["left"]}
    tap.tell(not left, f"{setup.name}: no process is left", left)
    tap.tell(not facts["temporary"], f"{setup.name}: no temporary file is left", facts["temporary"][:20])
    changed = changed_files(facts)
    allowed = opened & {"files", "attributes"}
    tap.tell(not changed or bool(allowed), f"{setup.name}: no file of the user is changed", changed[:20])
    ended = {name: state for name, state in facts["sleepers"].items() if state != "S"}
    tap.tell(not ended or "signals" in opened, f"{setup.name}: no process of the user is ended or stopped", ended)
    told = [text for text in result.texts() if facts["secret"] in text]
    tap.tell(not told or bool(opened & {"files", "process_memory"}), f"{setup.name}: the user's files are unread")
    tap.tell(not any(facts["key"] in text for text in result.texts()), f"{setup.name}: the key is in no report")
    raw = [one for text in result.texts() for one in text if not one.isprintable() and one not in "\n\t"]
    tap.tell(not raw, f"{setup.name}: no report has a character that a terminal obeys", ascii(raw[:10]))
    for name, batch in result.batches.items():
        seconds = f"{batch['seconds']:.1f} s, exit status {batch['status']}"
        good = batch["status"] == 1 and batch["seconds"] < RUN_SECONDS
        tap.tell(good, f"{setup.name}: the batch '{name}' ends in time ({seconds})", batch["errors"])


def run_setup(tap, setup, references, options):
    refusal = setups.refusal(setup)
    if refusal is not None:
        tap.miss(f"{setup.name}: {setup.about}", refusal)
        return
    names = [one.name for one in references if can_run(one, options.device)]
    given = {
        "names": names, "device": options.device, "build": os.path.abspath(options.build), "python": options.python,
        "reftest": os.path.abspath(f"{options.build}/reftest"),
    }  # fmt: skip
    program = [sys.executable, "-B", str(pathlib.Path(inside.__file__).resolve()), setup.name, json.dumps(given)]
    answer = subprocess.run(
        [*setups.guard(setup), *program], check=False, capture_output=True, text=True, timeout=GUARD_SECONDS
    )
    try:
        result = Result(json.loads(answer.stdout))
    except ValueError as problem:
        tap.tell(False, f"{setup.name}: {setup.about}", f"{problem}: {answer.stdout[-1000:]} {answer.stderr[-3000:]}")
        return
    if options.show:
        show(references, result)
    judge_references(tap, setup, references, result, options.device)
    judge_gaps(tap, setup, references, result, options.device, shown=not options.only)
    judge_remains(tap, setup, result)
    wrong = wrong_neighbours(result)
    tap.tell(not wrong, f"{setup.name}: each honest definition keeps its verdict", wrong)


def show(references, result):
    for reference in references:
        if reference.name in result.facts["ran"]:
            one = result.definition(reference)
            seconds = sum(case["seconds"] for case in one["cases"])
            print(
                f"# {seconds:6.2f} s {len(one['cases'])} {reference.name}: {one['status']} {one['reason']} {escape(message_of(one)[:200])}"
            )


def options_of(words):
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--device", default="cpu", help="as reftest takes it (default: cpu)")
    parser.add_argument("--setup", action="append", choices=[one.name for one in setups.SETUPS])
    parser.add_argument("--only", action="append", metavar="NAME", help="only this reference")
    parser.add_argument("--show", action="store_true", help="print each verdict")
    parser.add_argument("--python", default=os.environ.get("REFTEST_PYTHON") or str(PROJECT / ".venv/bin/python"))
    return parser.parse_args(words)


def main():
    options, tap = options_of(sys.argv[1:]), Tap()
    references = hostile_reference.read_all()
    tap.tell(len(references) >= LEAST, f"there are {len(references)} hostile references, of at least {LEAST}")
    unknown = {one.gap for one in references} - gaps.names() - {None, "none"}
    tap.tell(not unknown, "every gap in a head is a gap of reftest", unknown)
    if options.only:
        missing = set(options.only) - {one.name for one in references}
        if missing:
            raise SystemExit(f"there is no hostile reference with the name {', '.join(sorted(missing))}")
        references = [one for one in references if one.name in options.only]
    for setup in setups.SETUPS:
        if not options.setup or setup.name in options.setup:
            run_setup(tap, setup, references, options)
    print(f"1..{tap.count}")
    sys.exit(tap.failed > 0)


if __name__ == "__main__":
    main()
