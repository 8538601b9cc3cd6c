"""bug.py - the parts of an entry of tests/shipped_bugs: a bug that shipped, and its definition."""
import collections

# The values of Bug.says: reftest's result for the wrong reference.
CAUGHT = "caught"  # the case failed, or the reference raised
# implementations follow different conventions in this case, and only an edge case reports the bug
EDGE = "caught with `--edge --strict`"
# no family has ground truth for the operation: the case is skipped (no_ground_truth), and never passes
UNDECIDED = "not decided"
UNSEEN = "passed"  # the wrong reference passes, because the definition contains nothing that contradicts it

# source: "owner/repository#number" (an issue or a pull request) or "owner/repository@commit", several separated by
# blanks. definition: the name of a starter definition, the result of like(), or a definition of the entry's own with a
# correct reference. old, new: a text that occurs once in the correct reference, and its wrong replacement; None if the
# numbers of the definition itself are wrong.
Bug = collections.namedtuple("Bug", "definition source wrong old new says why")


def like(name, axes=None, dtypes=None, tags=None):
    """A starter definition with other axis lengths, dtypes of inputs and outputs, or tags ({old: new})."""
    return {"like": name, "axes": axes or {}, "dtypes": dtypes or {}, "tags": tags or {}}


def definition(op_type, name, axes, inputs, outputs, reference):
    """A new definition for one entry of the table. axes: a number, or None for a var axis. Tensors: {name: (dtype,
    axis, …)}; without an axis: a scalar."""

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
