"""bug.py - functions and constants for the entries of tests/shipped_bugs. An entry describes a bug that shipped."""
import collections

# The values of Bug.says: what reftest must report about the wrong reference.
CAUGHT = "caught"  # the case failed, or the reference raised an exception
# the default cases pass, and only an edge case fails, because implementations handle the edge case differently
EDGE = "caught with `--edge --strict`"
# the case is skipped (no_ground_truth), because no op family has ground truth for the operation
UNDECIDED = "not decided"
UNSEEN = "passed"  # the wrong reference passes: nothing in the definition contradicts it

# Some members of Bug:
#   - definition: the name of a starter definition, the result of like(), or a new definition with a correct reference
#   - source: "owner/repository#number" (an issue or a pull request) or "owner/repository@commit"; several sources are
#     separated by blanks
#   - old: a text that occurs once in the correct reference; None if the bug is a wrong number in the definition itself
#   - new: the wrong text that replaces it, or None
Bug = collections.namedtuple("Bug", "definition source wrong old new says why")


def like(name, axes=None, dtypes=None, tags=None):
    """Describes a starter definition with changes: other axis lengths, other dtypes of inputs and outputs, or other
    tags ({old: new})."""
    return {"like": name, "axes": axes or {}, "dtypes": dtypes or {}, "tags": tags or {}}


def definition(op_type, name, axes, inputs, outputs, reference):
    """Builds a definition that is not a starter definition. axes: {name: length}, where None makes a var axis. inputs
    and outputs: {name: (dtype, axis, …)}; a tensor without axes becomes a scalar."""

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
