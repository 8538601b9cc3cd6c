#!/usr/bin/env python3
"""from_schema.py - plants mistakes that any reference can make, whatever it computes: python3
tests/mutants/from_schema.py BUILD [options]. Words after "--" are passed to `reftest verify`; the options are those of
run.py beside this file.

The mistakes need only a definition's schema, so they can be planted in every op family:

  - In every call, the reference uses the value that an input had in the first call with these shapes, as if it ignored
    the argument.
  - The reference has two Python scalars, and caches the first scalar in a table whose only key is the second scalar. If
    a later call has the same second scalar but another first scalar, the reference still uses the old first scalar.
  - The reference keeps the value of an input, and finds it again by the values of the integer inputs, as if it kept what
    it once gathered from a cache by page numbers.
  - In every call, the reference returns the output of the first call with these shapes.
  - The outputs are in the same memory as those of the previous call.
  - If a Python scalar is a certain valid number (1, or the most common number), the reference treats it as absent, and
    uses another number instead.
  - The reference raises an exception if an optional input is None.
  - A random number from torch makes an output up to 0.3 % larger (not for operations that sample).
  - In the first output, the last element along the first var axis is wrong if the length of this axis is a multiple of
    a block size. Another mutant does this if the length is one more than a multiple.

Each mistake is a function around the definition's own run(). If several starter definitions have the same op_type and
inputs, only the first by name is used, with the smaller constants that run.py gives it. A mutant is caught under the
same conditions as in run.py. Prints TAP: the number of mutants caught and planted, by device and family.
"""
import glob
import json
import os
import re
import shutil
import subprocess
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
KEEP_BY = """    given[{name!r}] = _kept.setdefault(given[{key!r}], given[{name!r}])
    return _run(**given)"""
KEEP_BY_INTEGERS = """    key = str([given[name].tolist() for name in {integers!r} if given[name] is not None])
    given[{name!r}] = _kept.setdefault(key, given[{name!r}].clone())
    return _run(**given)"""
REPLACE = """    if given[{name!r}] == {number!r}:
        given[{name!r}] = {other!r}
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
LAST = """    results = _run(**given)
    several = isinstance(results, (tuple, list))
    results = list(results) if several else [results]
    length = results[0].shape[{dimension}]
    if length >= {block} and length % {block} == {rest}:
        results[0] = results[0].clone()
        results[0].select({dimension}, -1).fill_(-1)
    return tuple(results) if several else results[0]"""
FLOATS = ("float32", "float16", "bfloat16")
INDICES = ("int32", "int64")
# {(definition, input): why} for inputs that have only one possible value. A reference that always uses the first value
# of such an input is correct, so this mistake is not planted for these inputs.
ONE_VALUE = {
    ("append_paged_kv_cache_kv8_d128_ps1", "kv_last_page_len"): "a page of one token is full",
}
# {name of a Python scalar: (number, other number)}. If the scalar has the first number, a mutant treats it as absent,
# and uses the other number instead. A float scalar that is not in the table has the numbers (1, 0.5).
NUMBERS = {
    "rope_theta": (10000.0, 500000.0),
    "local_expert_offset": (0, 1),
    "pad_slot_id": (0, -1),
}
# {op_type: why} for families in which the integers of the two sets of input values always differ. A reference that keeps
# an input, and finds it again by all integer inputs together, passes there.
OTHER_INTEGERS = {
    "dsa_paged": "lengths, and the rows that a query lists, differ",
    "moe": "given experts differ",
    "page": "positions differ",
    "rope": "positions are near in one set and far in the other",
}
# {name: why} for integer inputs whose values do not say which elements of other inputs are read.
NO_INDICES = {
    "top_k": "it is a number of tokens",
}
# {name: why} for float scalars whose value no mutant replaces.
NO_NUMBER = {
    "lower_bound": "it is below 0",
}


def is_used(definition, name):
    """Returns whether the reference uses the argument: its name occurs outside the signature, too."""
    return len(re.findall(rf"\b{name}\b", definition["reference"])) > 1


def mistakes_of(definition):
    """Returns [(mistake, body of the function around run())]."""
    inputs, outputs = definition["inputs"], definition["outputs"]
    out = [(f"input '{name}' keeps its first value", KEEP_INPUT.format(name=name)) for name in inputs
           if is_used(definition, name) and (definition["name"], name) not in ONE_VALUE]
    scalars = [name for name in inputs if inputs[name]["shape"] is None and is_used(definition, name)]
    out += [(f"scalar '{name}' is kept by '{key}'", KEEP_BY.format(name=name, key=key))
            for name in scalars for key in scalars if name != key]
    tensors = [name for name in inputs if inputs[name]["shape"] is not None and is_used(definition, name)]
    integers = [name for name in tensors if inputs[name]["dtype"] in INDICES and name not in NO_INDICES]
    if "kv_last_page_len" in inputs or definition["op_type"] in OTHER_INTEGERS:
        integers = []  # the last page of a single sequence has one key in one set, and is full in the other
    out += [(f"input '{name}' is kept by the integers", KEEP_BY_INTEGERS.format(name=name, integers=integers))
            for name in tensors if integers and inputs[name]["dtype"] not in INDICES and not inputs[name].get("optional")]
    for name in scalars:
        default = (1.0, 0.5) if inputs[name]["dtype"] in FLOATS and name not in NO_NUMBER else None
        number, other = NUMBERS.get(name, default) or (None, None)
        if number is not None:
            body = REPLACE.format(name=name, number=number, other=other)
            out.append((f"scalar '{name}' of exactly {number:g} is taken for absent", body))
    out += [(f"optional input '{name}' is needed", NEED.format(name=name))
            for name, spec in inputs.items() if spec.get("optional")]
    out.append(("outputs overwrite those of the call before", OVERWRITE))
    for at, (name, spec) in enumerate(outputs.items()):
        out.append((f"output '{name}' keeps its first contents", KEEP_OUTPUT.format(at=at)))
        if spec["dtype"] in FLOATS:
            out.append((f"output '{name}' depends on a seed", SEEDED.format(at=at)))
    return out


def blocks_of(build, root):
    """Returns {(definition, var axis): the largest block size that the default cases test on this axis}. A size is
    smaller than op_reach.block (kernels/core/op.h) if the definition's constraints exclude lengths that the family
    would choose."""
    lines = subprocess.run([f"{build}/tests/unit/test_ranges", "--blocks", root], stdout=subprocess.PIPE, text=True, check=True)
    return {(name, axis): int(block) for name, axis, block in map(str.split, lines.stdout.splitlines())}


def mistakes_at_blocks(definition, blocks):
    shape = next(iter(definition["outputs"].values()))["shape"]
    dimension = next(d for d, axis in enumerate(shape) if definition["axes"].get(axis, {}).get("type") == "var")
    block = blocks[definition["name"], shape[dimension]]
    if block == 0:
        return []
    return [(f"the last element of a multiple of {block} is wrong", LAST.format(dimension=dimension, block=block, rest=0)),
            (f"the element after a multiple of {block} is wrong", LAST.format(dimension=dimension, block=block, rest=1))]


def plant(definition, body):
    names = list(definition["inputs"])
    around = AROUND.format(arguments=", ".join(names), keywords=", ".join(f"{n}={n}" for n in names), body=body)
    return {**definition, "reference": definition["reference"].rstrip() + around}


def definitions_of(families):
    """Yields (family, definition). Of definitions with the same op_type and inputs, yields only the first by name."""
    seen = set()
    for path in sorted(glob.glob(os.path.join(run.PROJECT, "definitions", "*", "*.json"))):
        family = os.path.basename(os.path.dirname(path))
        with open(path) as source:
            definition = json.load(source)
        kinds = tuple((n, s["dtype"], s.get("optional"), s["shape"] is None) for n, s in definition["inputs"].items())
        if family in families and (family, kinds) not in seen:
            seen.add((family, kinds))
            yield family, run.smaller(definition, family)


def build_dataset(root, families, build):
    planted, originals, definitions = {}, {}, list(definitions_of(families))
    for _, definition in definitions:
        run.write_definition(root, definition)
    blocks = blocks_of(build, root)
    for family, definition in definitions:
        mistakes = mistakes_of(definition) + mistakes_at_blocks(definition, blocks)
        originals[definition["name"]] = family
        for number, (mistake, body) in enumerate(mistakes):
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
        planted, originals = build_dataset(root, options.family, options.build)
        print(f"1..{len(options.device) * len(options.family)}", flush=True)
        for d, device in enumerate(options.device):
            lanes = ["--device", device, "--jobs", str(min(os.cpu_count(), 4))]
            # only the small size, because run.py verifies the originals at all sizes
            caught, passed = run.judge(options.build, root, planted, originals, lanes + words, all_sizes=False)
            for f, family in enumerate(options.family):
                number = 1 + d * len(options.family) + f
                good &= run.tell(number, device, family, planted, originals, caught, passed, least=1)
    finally:
        shutil.rmtree(root)
    sys.exit(not good)


main()
