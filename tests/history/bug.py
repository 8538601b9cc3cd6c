"""What an entry of tests/history is made of."""
import collections

# What reftest says of the wrong reference:
CAUGHT = "caught"  # failed, or the reference raised
EDGE = "caught with `--edge --strict`"  # a finding of the edges, where implementations answer by convention
UNDECIDED = "not decided"  # no family has ground truth for the op: skipped (no_ground_truth), never passed
UNSEEN = "passed"  # wrong in a way that nothing in the definition can tell

# source: "owner/repository#number" (an issue or a pull request) or "owner/repository@commit", several apart by blanks.
# definition: the name of a starter definition, what like() gives, or a definition of its own with a right reference.
# old, new: text that stands once in the right reference, and what makes it the wrong one; None where the definition's
# own numbers are what is wrong.
Bug = collections.namedtuple("Bug", "definition source wrong old new says why")


def like(name, axes=None, dtypes=None, tags=None):
    """A starter definition with other lengths of axes, dtypes of inputs and outputs, or tags ({old: new})."""
    return {"like": name, "axes": axes or {}, "dtypes": dtypes or {}, "tags": tags or {}}


def definition(op_type, name, axes, inputs, outputs, reference):
    """One of its own. axes: a number, or None for one that varies. Tensors: {name: (dtype, axis, …)}; no axis: a scalar."""

    def tensors(table):
        return {name: {"shape": list(axes) or None, "dtype": dtype} for name, (dtype, *axes) in table.items()}

    lengths = {name: {"type": "const", "value": n} if n else {"type": "var"} for name, n in axes.items()}
    return {
        "name": name,
        "op_type": op_type,
        "axes": lengths,
        "inputs": tensors(inputs),
        "outputs": tensors(outputs),
        "reference": "import torch\n\n\n@torch.no_grad()\n" + reference.strip() + "\n",
    }
