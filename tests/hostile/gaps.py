"""gaps.py - the gaps of a sandbox, as reftest names them and as `reftest doctor` reports them."""

import json
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent / "workers/sandbox/sandbox_gaps.c"


def sentences():
    """Returns {name: sentence} of all gaps."""
    table = SOURCE.read_text(encoding="utf-8").partition("sandbox_gap gaps[]")[2].partition("};")[0]
    return dict(re.findall(r'\{"(\w+)",\s*"([^"]+)"', table))


def reported_by_doctor(output):
    """Returns the names of the gaps that the output of `reftest doctor --format json` reports as open."""
    lines = [line for line in json.loads(output)["checks"] if line["name"] == "containment"]
    found = lines[0]["found"].partition("; missing layers")[0].split("; ")
    open_gaps = {name for name, sentence in sentences().items() if sentence in found}
    if len(open_gaps) != len(found) and lines[0]["state"] != "ok":
        raise ValueError(f"the sentences of doctor are not those of {SOURCE.name}: {found}")
    return open_gaps
