"""What tools/record_signatures.py recorded of the libraries' functions, for the tests that hold calls against it.

The record is {library: {"version", "signatures": {"module:name": {"takes": "(x, eps=None)", "asked_by": [who]}}}}; a
method is "module:Class.method", without its self, and "module:Class" is what the constructor takes.
"""

import inspect
import json
import pathlib

PATH = pathlib.Path(__file__).resolve().parent / "data/signatures.json"
ASKERS = {"generated", "providers"}


def load(path=PATH):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def asked_by(asker, record):
    """{"library version": {"module:name": what it takes}} of what this one asks for."""
    return {
        f"{library} {entry['version']}": {
            name: told["takes"] for name, told in entry["signatures"].items() if asker in told["asked_by"]
        }
        for library, entry in record.items()
    }


def unasked(record):
    """Names that no test would look at."""
    every = ((name, told["asked_by"]) for entry in record.values() for name, told in entry["signatures"].items())
    return sorted(name for name, askers in every if not askers or not ASKERS.issuperset(askers))


def signature(takes):
    scope = {}
    exec(f"def call{takes}: pass", scope)
    return inspect.signature(scope["call"])


def changed(record, name, parameter=None, instead=None):
    """A copy without this function, or without this parameter of it, or with another name for it, wherever it is recorded."""
    copy, hits = json.loads(json.dumps(record)), 0
    for entry in copy.values():
        told = entry["signatures"].get(name)
        if told is None:
            continue
        hits += 1
        if parameter is None:
            del entry["signatures"][name]
            continue
        before = signature(told["takes"])
        assert parameter in before.parameters, (name, parameter)
        after = [
            one.replace(name=instead) if one.name == parameter else one
            for one in before.parameters.values()
            if one.name != parameter or instead
        ]
        told["takes"] = str(before.replace(parameters=after))
    assert hits, name
    return copy


def one_more(record, library, name, *askers):
    """A copy in which a library has one more function."""
    copy = json.loads(json.dumps(record))
    copy[library]["signatures"][name] = {"takes": "(x)", "asked_by": list(askers)}
    return copy
