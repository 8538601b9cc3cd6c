#!/usr/bin/env python3
"""diagnoses.py - checks that the diagnosis of each planted mistake names the mistake: python3
tests/mutants/diagnoses.py BUILD [--family NAME]... [--mistake WORDS]... [--list]

Plants the mistakes of tests/mutants/{family}.py as run.py does, and verifies them on the CPU at the small size. Only
failures because of wrong numbers count. Wrong shapes and dtypes, errors and overwritten inputs do not count. DIAGNOSES
in tests/mutants/{family}.py is {mistake: regular expression}. The expression matches words that name the mistake. The
diagnosis of a failure is right, wrong or silent:

  - If reftest prints lines "behaves as if ...", the diagnosis is right if the expression matches each of these lines.
    It is wrong if the expression does not match one of them, or if the mistake is not in the table.
  - Without such lines, the diagnosis is right if each failed case has a region that the expression matches. (A region
    is a line such as "output ... is 0 only where ..." or "... differs only where ...".) Otherwise it is silent: a
    region that the expression does not match says only where the output differs, and names no cause.

The check of a family fails if a diagnosis is wrong, if FIGURES has no number for the family, or if the number of right
diagnoses is below this number. The number in FIGURES is nine tenths of the measured number. The reason is that the time
for a diagnosis is limited, and a slow machine finds fewer mistakes in this time. Without --family, all families that
have a table DIAGNOSES are checked, at least half of all their failures must have a right diagnosis, and a TAP comment
names the families without a table. --list prints every failure with its diagnosis as soon as it is found.
--mistake plants only the mistakes whose text has these words, and ignores FIGURES. Prints TAP.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import run

BAR = 0.5  # the minimum fraction of all failures that have a right diagnosis
# The minimum number of right diagnoses for each family.
FIGURES = {
    "activation": 25,
    "cascade": 20,
    "delta_rule": 29,
    "dsa_paged": 33,
    "gated_delta_rule": 33,
    "gdn": 54,
    "gemm": 21,
    "gemma_rmsnorm": 18,
    "gla": 28,
    "gqa_paged": 28,
    "gqa_ragged": 19,
    "kda": 33,
    "layernorm": 20,
    "mamba_ssu": 33,
    "mla_paged": 18,
    "mla_ragged": 17,
    "moe": 57,
    "page": 22,
    "quantize_fp8_per_token_group": 38,
    "rmsnorm": 21,
    "rope": 37,
    "sampling": 28,
    "simple_gla": 23,
    "softmax": 21,
}


def is_numeric(definition):
    return definition["status"] == "failed" and definition["reason"] in ("numeric", "nonfinite")


def regions_name(definition, words):
    failed = [c for c in definition["cases"] if c["status"] == "failed"]
    return bool(failed) and all(any(re.search(words, r) for r in c["regions"]) for c in failed)


def judge(definition, words):
    """Returns "right", "wrong" or "silent". `words` is the regular expression for the mistake, or None."""
    said = definition["diagnosis"]
    if said:
        return "right" if words and all(re.search(words, s) for s in said) else "wrong"
    return "right" if words and regions_name(definition, words) else "silent"


def describe(definition):
    failed = [c for c in definition["cases"] if c["status"] == "failed"]
    return " | OR | ".join(definition["diagnosis"]) or " ;; ".join(str(c["regions"]) for c in failed)


def table_of(family):
    return run.load_table(os.path.join(run.HERE, family + ".py"), "DIAGNOSES")


def verdicts_of(build, root):
    """Verifies a dataset and yields the verdict of each definition as soon as it is known."""
    command = [os.path.join(build, "reftest"), "--root", root, "verify", "--no-workloads", "--sizes", "small", "--device", "cpu",
               "--format", "jsonl"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            event = json.loads(line)
            if event["event"] == "verdict":
                yield event
    if child.returncode not in (0, 1, 3):
        sys.exit(f"diagnoses: {' '.join(command)} exited with {child.returncode}")


def leave_others_out(root, planted, mistakes):
    """Removes the mutants whose mistake contains none of the words in `mistakes`."""
    for name in [n for n in planted if not any(m in planted[n][2] for m in mistakes)]:
        os.remove(run.find_definition(name, root))
        del planted[name]


def measure(build, family, root, options):
    """Returns {"right": [mistakes], "wrong": [...], "silent": [...]}."""
    planted, _ = run.build_dataset(root, [family], with_originals=False, small_constants=False)
    words = table_of(family) or {}
    unknown = set(words) - {p[2] for p in planted.values()}
    if unknown:
        sys.exit(f"diagnoses: {family}: DIAGNOSES has mistakes that are not planted: {', '.join(sorted(unknown))}")
    if options.mistake:
        leave_others_out(root, planted, options.mistake)
    out = {"right": [], "wrong": [], "silent": []}
    for found in verdicts_of(build, root):
        if found["reason"] == "unsupported_device":
            sys.exit(f"diagnoses: the mistakes of {family} did not run: there is no torch")
        if not is_numeric(found):
            continue
        _, definition, mistake = planted[found["name"]]
        answer = judge(found, words.get(mistake))
        out[answer].append(f"{definition}: {mistake}: {describe(found)}")
        if options.list:
            print(f"  {answer}: {out[answer][-1]}", flush=True)
    return out


def tell(number, family, counts, least):
    """Prints a line of TAP for a family, and returns whether it passes."""
    right, wrong, silent = (len(counts[k]) for k in ("right", "wrong", "silent"))
    problems = [f"wrong: {w}" for w in counts["wrong"]]
    if least is None:
        problems.append(f"FIGURES has no number for {family}: nine tenths of {right}")
    elif right < least:
        problems.append(f"{right} right diagnoses are fewer than {least}, as recorded")
    print(f"{'not ok' if problems else 'ok'} {number} - {family}: of {right + wrong + silent} failures, {right} get a diagnosis "
          f"that names the mistake, {wrong} a wrong one")
    for problem in problems:
        print(f"# {problem}", flush=True)
    return not problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--family", action="append")
    parser.add_argument("--mistake", action="append")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    known = sorted(os.path.basename(os.path.dirname(file)) for file in run.op_files())
    families = options.family or [family for family in known if table_of(family) is not None]
    good, right, failures = True, 0, 0
    print(f"1..{len(families) + (not options.family)}", flush=True)
    for number, family in enumerate(families, 1):
        root = tempfile.mkdtemp(prefix="reftest_diagnoses_")
        try:
            counts = measure(options.build, family, root, options)
        finally:
            shutil.rmtree(root)
        good &= tell(number, family, counts, 0 if options.mistake else FIGURES.get(family))
        right += len(counts["right"])
        failures += sum(len(c) for c in counts.values())
    if not options.family:
        enough = right >= BAR * failures
        print(f"{'ok' if enough else 'not ok'} {len(families) + 1} - of all {failures} failures, {right} get a right diagnosis")
        print(f"# not judged yet: {', '.join(f for f in known if f not in families) or 'no family'}")
        good &= enough
    sys.exit(not good)


if __name__ == "__main__":
    main()
