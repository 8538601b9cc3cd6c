"""recorded.py - reads recorded signatures of library functions. A test compares calls of these functions with the
record. tools/record_signatures.py writes the record.

The record is {library: {"version", "signatures": {"module:name": {"takes": "(x, eps=None)", "asked_by":
["providers"]}}}}. The key of a method is "module:Class.method"; its parameters are recorded without self. The key
"module:Class" has the parameters of the constructor.
"""

import inspect
import json
import pathlib

PATH = pathlib.Path(__file__).resolve().parent / "data/signatures.json"
ASKERS = {"providers"}


def load(path=PATH):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def asked_by(asker, record):
    """Returns {"library version": {"module:name": parameters}} for the functions that `asker` calls."""
    return {
        f"{library} {entry['version']}": {
            name: function["takes"] for name, function in entry["signatures"].items() if asker in function["asked_by"]
        }
        for library, entry in record.items()
    }


def unasked(record):
    """Returns the recorded names that no test checks."""
    every = ((name, function["asked_by"]) for entry in record.values() for name, function in entry["signatures"].items())
    return sorted(name for name, askers in every if not askers or not ASKERS.issuperset(askers))


def signature(takes):
    scope = {}
    exec(f"def call{takes}: pass", scope)
    return inspect.signature(scope["call"])


def changed(record, name, parameter=None, instead=None):
    """Copies the record and removes a function, or removes or renames one of its parameters, in every library that has
    the function."""
    copy, hits = json.loads(json.dumps(record)), 0
    for entry in copy.values():
        function = entry["signatures"].get(name)
        if function is None:
            continue
        hits += 1
        if parameter is None:
            del entry["signatures"][name]
            continue
        before = signature(function["takes"])
        assert parameter in before.parameters, (name, parameter)
        after = [
            one.replace(name=instead) if one.name == parameter else one
            for one in before.parameters.values()
            if one.name != parameter or instead
        ]
        function["takes"] = str(before.replace(parameters=after))
    assert hits, name
    return copy


def one_more(record, library, name, *askers):
    """Copies the record and adds a function to a library."""
    copy = json.loads(json.dumps(record))
    copy[library]["signatures"][name] = {"takes": "(x)", "asked_by": list(askers)}
    return copy
