#!/usr/bin/env python3
"""Plants mistakes that any reference can make, whatever it computes: python3 tests/mutants/from_schema.py BUILD [options].
Words after "--" go to `reftest verify`; options are those of run.py beside this file.

The mistakes are made from a definition's schema, so that no op family can forget one:

  - an input keeps the value or the contents that it had in the first call on these shapes: who ignores an argument, or takes
    a scalar for what models have, answers so
  - an output keeps what the first call on these shapes gave
  - the outputs lie in the same memory as those of the call before
  - an optional input must not be None
  - an output is larger by up to 0.3 %, by a random number of torch (of operations that sample, none)

Each stands in a function around the definition's own run(). Of starter definitions with equal op_type and inputs the first
by name is taken. A mutant is caught as in run.py. Prints TAP: caught/planted by device and family.
"""
import glob
import json
import os
import re
import shutil
import sys
import tempfile

import run

AROUND = """

_run, _kept = run, {{}}


def run({arguments}):
    given = dict({keywords})
    shapes = str([(name, getattr(value, "shape", None)) for name, value in given.items()])
{body}
"""
KEEP_INPUT = """    value = given[{name!r}]
    given[{name!r}] = _kept.setdefault(shapes, value.clone() if hasattr(value, "clone") else value)
    return _run(**given)"""
KEEP_OUTPUT = """    results = _run(**given)
    several = isinstance(results, (tuple, list))
    results = list(results) if several else [results]
    results[{at}] = _kept.setdefault(shapes, results[{at}].clone())
    return tuple(results) if several else results[0]"""
OVERWRITE = """    results = _run(**given)
    several = isinstance(results, (tuple, list))
    results = list(results) if several else [results]
    kept = _kept.setdefault(shapes, [torch.empty_like(result) for result in results])
    for place, result in zip(kept, results):
        place.copy_(result)
    return tuple(kept) if several else kept[0]"""
NEED = """    assert given[{name!r}] is not None, "it is needed"
    return _run(**given)"""
SEEDED = """    results = _run(**given)
    several = isinstance(results, (tuple, list))
    results = list(results) if several else [results]
    factor = 1 + 3e-3 * torch.rand((), device=results[{at}].device)
    results[{at}] = (results[{at}].float() * factor).to(results[{at}].dtype)
    return tuple(results) if several else results[0]"""
FLOATS = ("float32", "float16", "bfloat16")
# Inputs that can hold one value only, so that keeping it is no mistake: {(definition, input): why}.
ONE_VALUE = {
    ("append_paged_kv_cache_kv8_d128_ps1", "kv_last_page_len"): "a page of one token is full",
}


def is_used(definition, name):
    """Is the argument more than declared?"""
    return len(re.findall(rf"\b{name}\b", definition["reference"])) > 1


def mistakes_of(definition):
    """[(mistake, the body of the function around run())]"""
    inputs, outputs = definition["inputs"], definition["outputs"]
    out = [(f"input '{name}' keeps its first value", KEEP_INPUT.format(name=name)) for name in inputs
           if is_used(definition, name) and (definition["name"], name) not in ONE_VALUE]
    out += [(f"optional input '{name}' is needed", NEED.format(name=name))
            for name, spec in inputs.items() if spec.get("optional")]
    out.append(("outputs overwrite those of the call before", OVERWRITE))
    for at, (name, spec) in enumerate(outputs.items()):
        out.append((f"output '{name}' keeps its first contents", KEEP_OUTPUT.format(at=at)))
        if spec["dtype"] in FLOATS:
            out.append((f"output '{name}' depends on a seed", SEEDED.format(at=at)))
    return out


def plant(definition, body):
    names = list(definition["inputs"])
    around = AROUND.format(arguments=", ".join(names), keywords=", ".join(f"{n}={n}" for n in names), body=body)
    return {**definition, "reference": definition["reference"].rstrip() + around}


def definitions_of(families):
    """The first by name of those with equal op_type and inputs: [(family, definition)]."""
    seen = set()
    for path in sorted(glob.glob(os.path.join(run.PROJECT, "definitions", "*", "*.json"))):
        family = os.path.basename(os.path.dirname(path))
        with open(path) as source:
            definition = json.load(source)
        kinds = tuple((n, s["dtype"], s.get("optional"), s["shape"] is None) for n, s in definition["inputs"].items())
        if family in families and (family, kinds) not in seen:
            seen.add((family, kinds))
            yield family, definition


def build_dataset(root, families):
    planted, originals = {}, {}
    for family, definition in definitions_of(families):
        run.write_definition(root, definition)
        originals[definition["name"]] = family
        for number, (mistake, body) in enumerate(mistakes_of(definition)):
            mutant = {**plant(definition, body), "name": f"{definition['name']}_schema{number}"}
            run.write_definition(root, mutant)
            planted[mutant["name"]] = (family, definition["name"], mistake)
    return planted, originals


def main():
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    options, words = run.options_of(words[:at]), words[at + 1 :]
    root = tempfile.mkdtemp(prefix="reftest-schema-")
    good = True
    try:
        planted, originals = build_dataset(root, options.family)
        print(f"1..{len(options.device) * len(options.family)}", flush=True)
        for d, device in enumerate(options.device):
            lanes = ["--device", device, "--jobs", str(min(os.cpu_count(), 4))]
            caught, passed = run.judge(options.build, root, planted, originals, lanes + words)
            for f, family in enumerate(options.family):
                number = 1 + d * len(options.family) + f
                good &= run.tell(number, device, family, planted, originals, caught, passed, least=1)
    finally:
        shutil.rmtree(root)
    sys.exit(not good)


main()
