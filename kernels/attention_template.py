"""What generated pytest files have of attention: pasted before the functions of the families that import from it."""

import torch

# isort: split


def attention_split(total, parts, generator, least=1, most=None):
    """`total` as a list of random parts, each of at least `least` where that is possible, at most `most` (a list)."""
    if parts == 0:
        return []
    least = min(least, total // parts)
    most = [min(m, total) for m in most] if most else [total] * parts
    lengths = [min(least, m) for m in most]
    left = total - sum(lengths)
    while left > 0:
        open_parts = [i for i in range(parts) if lengths[i] < most[i]] or [parts - 1]
        chosen = open_parts[torch.randint(len(open_parts), (), generator=generator)]
        room = (
            most[chosen] - lengths[chosen] if lengths[chosen] < most[chosen] else left
        )
        step = torch.randint(1, min(room, left) + 1, (), generator=generator).item()
        lengths[chosen] += step
        left -= step
    return lengths


def attention_offsets(lengths, dtype):
    offsets = torch.tensor([0, *lengths])
    return offsets.cumsum(0).to(dtype)


def attention_tolerance(definition, axes, index):
    """Kernels keep probabilities in the values' dtype on the way: averages are good to a few units of it, lse to 1e-2."""
    return (1e-2, 2e-2, 1.0) if index == 0 else (1e-2, 1e-3, 1.0)


def attention_flashinfer_heads(q, v):
    """FlashInfer compiles for other sizes, too, and what comes of it reads where nothing is."""
    pair = (q.shape[-1], v.shape[-1])
    if pair not in ((64, 64), (128, 128), (256, 256), (192, 128)):
        raise NotImplementedError(
            f"it has no kernel for heads of {pair[0]} and {pair[1]}"
        )


def attention_workspace(device):
    return torch.empty(128 << 20, dtype=torch.uint8, device=device)


def attention_outputs(definition, result):
    """lse of an empty row is -inf; older releases have a large negative number."""
    output, lse = result
    lse = torch.where(lse <= -1e4, -torch.inf, lse.float())
    return (output, lse)[: len(definition["outputs"])]


def attention_causal(test):
    """Whether a query sees only the keys up to its own place: as the op family takes it from name, tags and description."""
    return test.VARIANT == 1
