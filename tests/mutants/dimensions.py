#!/usr/bin/env python3
"""python3 tests/mutants/dimensions.py BUILD [ROOT…] - plants wrong dimensions and wrong degrees of parallelism into the
starter definitions. ROOT is a dataset; by default this repository.

A definition gets mistakes only if it has a `model:` tag that models/models.json knows. An axis gets mistakes only if a
rule of models/architectures.json states its length. The kinds:

  - axis        an axis gets a wrong length; name and description stay
  - everywhere  an axis gets a wrong length, also in the name and the description, so that only the model's
                configuration contradicts the length
  - degree      the tag tp: or ep: states a degree that is twice the right one

No reference runs, because a definition that contradicts itself fails before its reference runs. Prints TAP: the
mistakes that were not found, and for each kind the number found and planted. The last test verifies the definitions
without a mistake. None of these definitions may fail.
"""
import collections
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def known_models():
    with open(f"{TOP}/models/models.json") as file:
        rows = json.load(file)
    return {name for row in rows if "architecture" in row for name in [row["model"], *row.get("aliases", [])]}


def have_vocabulary():
    """Returns the models whose vocabulary size models/models.json states. For other models, the output projection may
    have any number of rows."""
    with open(f"{TOP}/models/models.json") as file:
        rows = json.load(file)
    return {name for row in rows if "vocab_size" in row for name in [row["model"], *row.get("aliases", [])]}


def known_axes():
    """Returns {op_type: axes}. The axes are those whose length a rule of models/architectures.json states, except axes
    that may have any length in every model."""
    with open(f"{TOP}/models/architectures.json") as file:
        blocks = json.load(file)["blocks"]
    axes = collections.defaultdict(set)
    for block in blocks.values():
        for rule in block:
            axes[rule["op_type"]].update(name for name, text in rule["axes"].items() if text not in ("page_size", "1"))
    return axes


def other_numbers(definition, name, value):
    """Returns wrong lengths that people write by mistake. None of them is the right length divided by a degree of
    parallelism. Matrix products have their own list, because a length that is right for another projection of the
    model would not count as wrong."""
    if definition["op_type"] == "gemm":
        numbers = (value + 8, value * 11)
    elif name.startswith("num_") or name in ("nheads", "ngroups"):
        numbers = (value * 5 // 4, value * 3 // 4)
    else:
        numbers = (value * 5 // 4, value * 3 // 4, 64, 256)
    return [number for number in numbers if number not in (value, 0)]


def replaced(text, old, new):
    return re.sub(rf"(?<![0-9.]){old}(?![0-9.])", str(new), text)


def axis_mistakes(definition, axes, vocabularies):
    undecided = {"N"} if all(tag[6:] not in vocabularies for tag in definition["tags"] if tag[:6] == "model:") else set()
    for name, axis in definition["axes"].items():
        if axis["type"] != "const" or name not in axes - undecided:
            continue
        for number in other_numbers(definition, name, axis["value"]):
            wrong = json.loads(json.dumps(definition))
            wrong["axes"][name]["value"] = number
            yield "axis", f"{name} {axis['value']} -> {number}", wrong
            wrong = json.loads(json.dumps(wrong))
            wrong["name"] = replaced(wrong["name"], axis["value"], number)
            wrong["description"] = replaced(wrong.get("description", ""), axis["value"], number)
            yield "everywhere", f"{name} {axis['value']} -> {number}", wrong


def degree_mistakes(definition):
    for at, tag in enumerate(definition["tags"]):
        divided = tag[:3] == "tp:" and definition["op_type"] != "moe" or "num_local_experts" in definition["axes"]
        if re.fullmatch("(tp|ep):[0-9]+", tag) and divided:
            wrong = json.loads(json.dumps(definition))
            wrong["tags"][at] = f"{tag[:3]}{int(tag[3:]) * 2}"
            yield "degree", f"{tag} -> {wrong['tags'][at]}", wrong


def statuses(build, definitions):
    """Returns the status and reason of each definition. No reference runs."""
    with tempfile.TemporaryDirectory() as root:
        for definition in definitions:
            folder = f"{root}/definitions/{definition['op_type']}"
            os.makedirs(folder, exist_ok=True)
            with open(f"{folder}/{definition['name']}.json", "w") as file:
                json.dump(definition, file)
        command = [f"{build}/reftest", "--root", root, "verify", "--all", "--cached-only", "--device", "cpu", "--format", "json"]
        found = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    return {(one["op_type"], one["name"]): (one["status"], one["reason"]) for one in found["definitions"]}


def main():
    build, roots = os.path.abspath(sys.argv[1]), sys.argv[2:] or [TOP]
    models, vocabularies, axes = known_models(), have_vocabulary(), known_axes()
    definitions = []
    for root in roots:
        for path in sorted(glob.glob(f"{root}/definitions/*/*.json")):
            with open(path) as file:
                definitions.append(json.load(file))
    attested = [d for d in definitions if any(tag[:6] == "model:" and tag[6:] in models for tag in d.get("tags", []))]
    rounds = collections.defaultdict(list)
    for definition in attested:
        mistakes = [*axis_mistakes(definition, axes[definition["op_type"]], vocabularies), *degree_mistakes(definition)]
        for number, mistake in enumerate(mistakes):
            rounds[number].append(mistake)
    planted, found = collections.Counter(), collections.Counter()
    for number in sorted(rounds):
        given = {}
        for kind, what, wrong in rounds[number]:
            given.setdefault((wrong["op_type"], wrong["name"]), (kind, what, wrong))
        answers = statuses(build, [wrong for _, _, wrong in given.values()])
        for key, (kind, what, _) in given.items():
            planted[kind] += 1
            if answers[key][0] == "invalid" or answers[key] == ("failed", "constants"):
                found[kind] += 1
            else:
                print(f"# {key[0]}/{key[1]}: {what} is not found ({answers[key][0]})")
    for kind in ("axis", "everywhere", "degree"):
        right = planted[kind] > 0 and found[kind] == planted[kind]
        print(f"{'ok' if right else 'not ok'} - {kind}: {found[kind]} of {planted[kind]} mistakes found")
    alarms = sum(len([a for a in statuses(build, part).values() if a[0] != "skipped"]) for part in [definitions])
    print(f"{'ok' if alarms == 0 else 'not ok'} - {alarms} false alarms in {len(definitions)} definitions")
    print("1..4")
    sys.exit(alarms > 0 or found != planted)


main()
