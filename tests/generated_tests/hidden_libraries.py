"""hidden_libraries.py - lists the modules of the libraries for which python/libraries/ has tables. Tests hide these
modules, so that their results do not depend on which libraries are installed."""

import importlib.util
import os
import sys

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(PROJECT, "python", "libraries")


def library_modules():
    """Returns the names of the modules, without torch. The first Need of a table is the library itself."""
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location(
        "reftest_providers", os.path.join(FOLDER, "common.py")
    )
    common = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(common)
    tables = common.load_tables(FOLDER)
    for name in set(sys.modules) - before:
        if name.startswith("reftest_provider"):
            del sys.modules[name]
    return sorted({table.needs[0].module for table in tables.values()} - {"torch"})
