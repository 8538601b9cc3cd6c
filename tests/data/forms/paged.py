import math
import torch.nn.functional as F, torch
from torch import (
    Tensor,   # a name that is no module
    bfloat16,
)


class Pages:
    '''A table of pages,
    # not a comment: it stands in a docstring
    with "quotes" of the other kind.'''

    width: int = 16
    "a string after an attribute: no docstring, and kept"

    def __init__(self, table, *, width=0x10):
        r'''raw \d docstring'''
        self.table, self.width = table, width

    async def later(self):
        u"prefixed docstring"
        return [row async for row in self]

    def nothing(self):
        "the whole of the body"

    def one(self): "on the line of its def"


def split(total: int, /, parts: int = 3, *rest, key=lambda a, b=(): (a, b), **more) -> "tuple":
    """Long

    docstring — with a dash and a long one ✓.
    """
    sizes = {k: v for k, v in zip(range(parts), [1, 2_000, 0b11, 0o17, 1.5e-3, .5, 2., 1j])}
    if (half := total // 2) >= 1 and not total != half ** 2 or total <= -1:
        for i in range(0, total, half):
            while i <= half: i += 1
            else:
                pass
        sizes[half] @= sizes.get(~half, 1 if half else 2)
    elif total is None: return ...
    else:
        try:
            del sizes[0]; sizes[1] <<= 2
        except (KeyError, ValueError) as problem:
            # indentation of comments is free
    # even this one
            print("bad", problem, sep='\t', end="\n")
        else:
            total += 1
    with torch.no_grad() as a, torch.no_grad() as b:
        text = ("joined "
                'strings' f"{half!r:>{parts}} {{literal}} {total:,}") \
            if False else rf"\d{half}"
    return total, \
        sizes


@torch.no_grad()
def run(q, k_cache, v_cache, kv_indptr, *, sm_scale=1.0 / math.sqrt(128)):
    page_size = k_cache.shape[1]


    out = torch.zeros_like(q)
    for b in range(len(kv_indptr) - 1):
        beg, end = int(kv_indptr[b].item()), int(kv_indptr[b + 1].item())
        if beg >= end:
            continue
        k = k_cache[beg:end, :, ...].reshape(-1, page_size)   ;   v = v_cache[beg:end]
        logits = (q[b] @ k.T) * sm_scale
        out[b] = F.softmax(logits.float(), dim=-1).to(q.dtype) @ v
    return out
