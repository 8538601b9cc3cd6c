#!/usr/bin/env python3
"""Records the signatures of the library functions that workers/providers/ calls, from unpacked or packed wheels, without
importing them: tests/data/providers/signatures.json. The test beside it holds the tables against the record.

    tools/record_signatures.py WHEEL… > tests/data/providers/signatures.json

Run it with the wheels of a new release: what differs in the record is what changed in the API."""

import ast
import json
import os
import re
import sys
import zipfile

TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "workers", "providers")


def words_of_tables():
    """Every name that a table could call: attributes, imported names and strings."""
    words = set()
    for name in ("flashinfer", "sglang", "fla"):
        with open(os.path.join(TABLES, name + ".py"), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                words.add(node.attr)
            elif isinstance(node, ast.alias):
                words.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
                words.add(node.value.lstrip("_"))
    suffixed = [w for w in words if re.fullmatch(r"[a-z_]*(sampling_from_probs|renorm_probs)", w)]
    for first in ("", "top_k_", "top_p_", "min_p_", "top_k_top_p_"):
        for word in suffixed:
            words.add(first + word)
    return words


def parameters_of(function):
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = len(plain) - len(arguments.defaults)
    out = [a.arg + ("" if i < needed else "=") for i, a in enumerate(plain)]
    if arguments.vararg:
        out.append("*" + arguments.vararg.arg)
    elif arguments.kwonlyargs:
        out.append("*")
    out += [a.arg + ("" if d is None else "=") for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return out + (["**" + arguments.kwarg.arg] if arguments.kwarg else [])


def is_overload(function):
    return any("overload" in ast.unparse(d) for d in function.decorator_list)


def functions_of(source, words):
    """(name, parameters) of functions and of the methods of classes at the top of a module. The last of a name counts."""
    for node in source.body:
        if isinstance(node, ast.FunctionDef) and node.name in words:
            yield node.name, parameters_of(node)
        elif isinstance(node, ast.ClassDef) and node.name in words:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and not is_overload(method) and (
                        method.name in ("__init__", "plan", "run")):
                    yield node.name + "." + method.name, parameters_of(method)


def exports_of(source):
    """Names that a package hands on: what `from package import name` finds there."""
    return sorted({alias.asname or alias.name for node in ast.walk(source) if isinstance(node, ast.ImportFrom)
                   for alias in node.names})


def record(wheel, words):
    out = {"modules": {}, "exports": {}}
    with zipfile.ZipFile(wheel) as file:
        for path in sorted(file.namelist()):
            if path.endswith(".dist-info/METADATA"):
                text = file.read(path).decode("utf-8", "replace")
                out["name"], out["version"] = (re.search(r"^%s: (.*)$" % key, text, re.M).group(1).strip()
                                               for key in ("Name", "Version"))
            if not path.endswith(".py") or "/hardware_backend/" in path or path.endswith("/musa.py"):
                continue
            module = path[:-3].replace("/", ".").removesuffix(".__init__")
            try:
                source = ast.parse(file.read(path))
            except SyntaxError:
                continue
            found = dict(functions_of(source, words))
            if found:
                out["modules"][module] = found
            if path.endswith("__init__.py"):
                handed_on = [name for name in exports_of(source) if name in words]
                if handed_on:
                    out["exports"][module] = handed_on
    return out


def main():
    words = words_of_tables()
    records = [record(wheel, words) for wheel in sys.argv[1:]]
    print(json.dumps({r.pop("name"): r for r in records}, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
