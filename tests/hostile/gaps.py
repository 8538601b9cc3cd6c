"""gaps.py - the names of all gaps that a sandbox may have (docs/containment.md), and the names of the gaps that
`reftest doctor` reports as open."""

import json
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent / "workers/sandbox/sandbox_gaps.c"


def names():
    """Returns the names of all gaps."""
    table = SOURCE.read_text(encoding="utf-8").partition("sandbox_gap gaps[]")[2].partition("};")[0]
    return set(re.findall(r'\{"(\w+)",', table))


def reported_by_doctor(output):
    """Returns the names of the gaps that the output of `reftest doctor --format json` reports as open."""
    reported = set(json.loads(output)["gaps"])
    if not reported <= names():
        raise ValueError(f"doctor reports gaps that {SOURCE.name} does not have: {reported - names()}")
    return reported
