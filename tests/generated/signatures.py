"""Holds the calls of generated tests against how the libraries are called: python3 tests/generated/signatures.py [RECORD]

In the root of a dataset with its generated files. Every ground truth of every class is called on small and on medium
inputs on the CPU, for GPUs of two generations, with stand-ins for each library that was recorded
(tests/data/signatures.json, by tools/record_signatures.py): they bind what they are given to the recorded
parameters, and go no further. A call must bind, or the test must refuse with a sentence; and every name that was
recorded for generated tests must be called by somebody.
"""

import contextlib
import importlib
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import recorded

EVERY = recorded.load(*sys.argv[1:2])
RECORD = {
    library: {name.replace(":", "."): takes for name, takes in known.items()}
    for library, known in recorded.asked_by("generated", EVERY).items()
}
# What other calls depend on, and so must return; all else ends the ground truth.
PREPARES = ("Wrapper", "Wrapper.plan", "MoeRunnerConfig", "StandardTopKOutput", "ServerArgs", "set_server_args")
OWNS = {"get_context": "RuntimeContext", "get_parallel": "ParallelContext"}  # what gives an object of a class beside it


class Bound(Exception):
    """A call fits what was recorded."""


class Stand:
    """A module, a class or a function of a library, by its dotted name."""

    def __init__(self, name, known, seen):
        self.__dict__.update(name=name, known=known, seen=seen)

    def __getattr__(self, part):
        name = f"{self.name}.{part}"
        if not any(key == name or key.startswith(name + ".") for key in self.known):
            raise AttributeError(f"module '{self.name}' has no attribute '{part}'")
        return Stand(name, self.known, self.seen)

    def __call__(self, *values, **words):
        recorded.signature(self.known[self.name]).bind(*values, **words)
        self.seen.add(self.name)
        if self.name.endswith(PREPARES):
            return self
        above, _, last = self.name.rpartition(".")
        if last in OWNS:
            return Stand(f"{above}.{OWNS[last]}", self.known, self.seen)
        if last == "is_config_namespace_published":
            return False
        if last == "override":
            return contextlib.nullcontext()
        raise Bound(self.name)


def tell(test, function, inputs, conftest):
    """"bound", "refused: why", or what is wrong."""
    try:
        function(test, conftest.copies(inputs))
    except Bound:
        return "bound"
    except conftest.Unavailable as why:
        return f"refused: {why}"
    except Exception as why:
        kind = "refused" if conftest.refusal(why) is not None else f"wrong: {type(why).__name__}"
        return f"{kind}: {why}"
    return "wrong: it calls nothing"


def pairs(conftest, bound):
    """Each class with the inputs of its last small size, and of its last medium size if with those it has not called all."""
    for path in sorted(pathlib.Path("tests/references").glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for name, test in vars(module).items():
            cases = {case.label: case for case in test.SIZES if case.label != "large"} if name.startswith("Test") else {}
            for case in cases.values():
                if all(function.__name__ + test.NAME in bound for function in test.GROUND_TRUTHS):
                    break
                yield test, case, conftest.make_inputs(test, case, conftest.torch.device("cpu"))


def main():
    sys.path.insert(0, "tests/references")
    conftest = importlib.import_module("conftest")
    seen, calls, bad, bound = {library: set() for library in RECORD}, {}, [], set()

    def try_all(library, test, case, inputs):
        known = RECORD[library]

        def need(module, device=None):
            if module == "cutlass":  # without which FlashInfer's gdn calls None
                return None
            if not any(name.startswith(module + ".") for name in known):
                raise conftest.Unavailable(f"{module} is not in {library}")
            return Stand(module, known, seen[library])

        conftest.need = need
        for function in test.GROUND_TRUTHS:
            kind = conftest.truth_name(function)
            if kind == "torch":
                bound.add(function.__name__ + test.NAME)
            if not library.startswith({"sglang": ("sglang", "sgl_")}.get(kind, kind)):
                continue
            for major in (9, 10):
                conftest.need_capability = lambda device, least, minor=0: major
                word = tell(test, function, inputs, conftest)
                calls.setdefault(function.__name__, []).append(word)
                if word == "bound":
                    bound.add(function.__name__ + test.NAME)
                if word.startswith("wrong"):
                    bad.append(f"{library}: {function.__name__} of {test.NAME}, {case}: {word}")

    for test, case, inputs in pairs(conftest, bound):
        for library in RECORD:
            try_all(library, test, case, inputs)
    for name, words in calls.items():
        if "bound" not in words:
            bad.append(f"{name} never calls anything: {sorted(set(words))}")
    uncalled = set().union(*RECORD.values()) - set().union(*seen.values())
    bad += [f"nothing calls {name}" for name in sorted(uncalled)]
    bad += [f"nobody asks for {name}" for name in recorded.unasked(EVERY)]
    called = sum(map(len, seen.values()))
    bad.append(f"{len(calls)} ground truths, {called} names of {len(RECORD)} libraries, {len(bad)} wrong")
    print("\n".join(bad))
    return len(bad) > 1


sys.exit(main())
