#!/usr/bin/env python3
"""diagnoses.py - measures how many failures of the planted mistakes get a diagnosis, and whether it names the mistake:
python3 tests/mutants/diagnoses.py BUILD [--family NAME]... [--list]

Plants the mistakes of tests/mutants/{family}.py as run.py does, and verifies them on the CPU at the small size. Each
failure that is neither a wrong shape or dtype nor an error counts. A diagnosis is the line "behaves as if ..." or,
without one, the sentences "output ... is NaN only where ..." and "... is 0 ...". ("differs only where" is a fact about
one case; it names no cause, and does not count.) tests/mutants/diagnosed.json has the diagnosis that
somebody has judged to name the mistake, for each mistake with one; a diagnosis that is not in the file is new, and the
test fails until it is judged; families that are not in the file are only counted. --list prints all, --judged writes the file. Prints TAP.
"""
import argparse
import glob
import json
import os
import shutil
import sys
import tempfile

import run

JUDGED = os.path.join(run.HERE, "diagnosed.json")
BAR = 0.5  # the least fraction of failures with a diagnosis


def regions_of(definition):
    """Returns the regions that all failed cases of a definition have, without the lengths, which differ by case."""
    failed = [c for c in definition["cases"] if c["status"] == "failed"]
    return failed[0]["regions"] if failed and all(c["regions"] for c in failed) else []


def diagnosis_of(definition):
    return definition["diagnosis"] or [r for r in regions_of(definition) if " differs " not in r]


def is_numeric(definition):
    return definition["status"] == "failed" and definition["reason"] in ("numeric", "nonfinite")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--family", action="append")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--judged", action="store_true")
    options = parser.parse_args()
    files = sorted(glob.glob(os.path.join(run.HERE, "*.py")))
    names = [os.path.basename(f)[:-3] for f in files]
    families = options.family or [n for n in names if n not in ("run", "diagnoses", "from_schema")]
    judged = json.load(open(JUDGED)) if os.path.exists(JUDGED) else {}
    root = tempfile.mkdtemp(prefix="reftest_diagnoses_")
    numeric = told = new = 0
    try:
        for family in families:
            planted, originals = run.build_dataset(os.path.join(root, family), [family])
            found = run.verify(options.build, os.path.join(root, family), [], ["--sizes", "small", "--device", "cpu"], (0, 1, 3))
            if any(found[n]["reason"] == "unsupported_device" for n in planted):
                sys.exit(f"diagnoses: the mistakes of {family} did not run: there is no torch")
            mine = [(n, found[n]) for n in planted if is_numeric(found[n])]
            with_one = [(n, d) for n, d in mine if diagnosis_of(d)]
            print(f"# {family}: {len(planted)} mistakes, {len(mine)} wrong numbers, {len(with_one)} with a diagnosis", flush=True)
            for name, definition in mine:
                mistake = f"{planted[name][1]}: {planted[name][2]}"
                said = diagnosis_of(definition)
                if options.list:
                    print(f"  {mistake}\n      -> {' | OR | '.join(said) or '-'}", flush=True)
                if not said:
                    continue
                if options.judged:
                    judged.setdefault(family, {})[mistake] = said
                elif family in judged and judged[family].get(mistake) != said:
                    print(f"# not judged: {family}, {mistake}: {said}")
                    new += 1
            numeric += len(mine)
            told += len(with_one)
    finally:
        shutil.rmtree(root)
    if options.judged:
        with open(JUDGED, "w") as out:
            json.dump(judged, out, indent=1, sort_keys=True)
            out.write("\n")
    print("1..1")
    good = new == 0 and told >= BAR * numeric
    print(f"{'ok' if good else 'not ok'} 1 - {told} of {numeric} failures get a diagnosis, {new} of them not judged yet")
    sys.exit(not good)


if __name__ == "__main__":
    main()
