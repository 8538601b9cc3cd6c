"""common - the terms in which a library's table is written.

A table has rows by op family (a folder of kernels/). A row's call gets a Call, computes the definition's outputs with the
library, and returns them in the order of the definition, in its dtypes and layouts. What it cannot compute it declines by
raising Unavailable with the reason. Inputs are the call's own: it may write to them."""

import contextlib
from dataclasses import dataclass, field

IMPORT_S = 600  # seconds for an import: compilers and large libraries on slow disks
COMPILE_S = 3600  # seconds for one module's compiler


def progress(doing, allow, tell=False):
    """Replaced by whoever serves: see provider.py."""


@contextlib.contextmanager
def progress_of(doing, allow, tell=False):
    progress(doing, allow, tell)
    try:
        yield
    finally:
        progress(None, 0)


class Unavailable(Exception):
    """This library has no call for this case: a sentence."""


class NotBuilt(RuntimeError):
    """A library's kernels could not be compiled; what the compiler said."""


@dataclass
class Need:
    """A distribution; `names`: what it has been called, today's name first. `module`: what is imported of it."""
    names: tuple
    module: str = None
    least: tuple = ()
    optional: bool = False  # only part of the version


@dataclass
class Row:
    call: object
    cpu: bool = False  # runs without a GPU
    least: int = 80  # compute capability, ten times; None: any
    most: int = None
    first_use_s: int = 900  # seconds that its first use may take beyond a case's
    coarse: tuple = None  # (atol, rtol) of each result if its arithmetic is coarser than the definition's: see provider.py
    mutates: str = ""  # what the library's call writes to; the row clones it, or says why it need not


@dataclass
class Table:
    name: str
    needs: tuple
    rows: dict
    never: dict = field(default_factory=dict)  # families that it has no call for, and why


class Call:
    """One case as the tables see it."""

    def __init__(self, module, request, inputs, device):
        self.torch, self.device, self.inputs = module, device, inputs
        self.family, self.variant, self.name = request["family"], request["variant"], request["name"]
        self.op_type, self.tags = request["op_type"], request["tags"]
        self.axes, self.constants = request["axes"], request["constants"]
        self.noise = 0.0  # of the root mean square of an output: what quantising on the way leaves
        self.outputs = {spec["name"]: spec for spec in request["outputs"]}
        self.declared = {spec["name"]: spec for spec in request["inputs"]}
        self.axes_of = request["axes_of"]  # names of the axes of each input and output
        self.order = range(len(request["outputs"]))  # which of the row's results each output is

    def __getitem__(self, name):
        """The input of this name; Unavailable if the definition has none."""
        if name not in self.inputs:
            raise Unavailable("the definition has no input '%s'" % name)
        return self.inputs[name]

    def get(self, name, default=None):
        return self.inputs.get(name, default)

    def with_word(self, word):
        """The first input whose name holds the word; None: there is none."""
        return next((value for name, value in self.inputs.items() if word in name), None)

    def tensors(self, least_rank=0, floating=None):
        """Tensor inputs in the definition's order."""
        return [x for x in self.inputs.values()
                if isinstance(x, self.torch.Tensor) and x.dim() >= least_rank
                and (floating is None or x.is_floating_point() == floating)]

    def scalar(self, word, default=None):
        for name, value in self.inputs.items():
            if word in name.lower() and isinstance(value, (int, float)):
                return value
        return default

    def constant(self, name):
        """A hidden constant (an epsilon) by its name, or a Python scalar of that name among the inputs."""
        value = self.constants.get(name)
        if value is None:
            value = self.scalar(name)
        if value is None:
            raise Unavailable("no '%s' is known" % name)
        return value

    def output_dtypes(self):
        return [getattr(self.torch, spec["dtype"]) for spec in self.outputs.values()]

    def cut(self, *results):
        """As many of the results as the definition has outputs, in the outputs' dtypes and in their order, as far as shapes
        tell which is which."""
        specs, order = list(self.outputs.values()), self.order
        if len(specs) > len(results):
            raise Unavailable("it gives %d outputs, the definition has %d" % (len(results), len(specs)))
        if any(list(x.shape) != spec["shape"] for x, spec in zip(results, specs)):
            fitting = [[i for i, x in enumerate(results) if list(x.shape) == spec["shape"]] for spec in specs]
            order = [found[0] for found in fitting] if all(len(found) == 1 for found in fitting) else order
        return self.cut_in(order, *results)

    def cut_in(self, order, *results):
        """The same where something else tells which of the results each output is."""
        self.order = order
        return tuple(results[i].to(dtype) for i, dtype in zip(order, self.output_dtypes()))
