"""Are ground truths asked in their order, and does one that is wrong, refuses, breaks or is not there get what it deserves?
order.py REFERENCES KERNELS, with FlashInfer, SGLang and FLA faked: generated tests of a norm of rmsnorm_h128."""

import os
import sys
import types

references, kernels = sys.argv[1:]
sys.path.insert(0, references)
import conftest
import pytest
import test_rmsnorm
import torch

ORDER = ["flashinfer", "sglang", "fla", "torch", "builtin"]
NORM = torch.nn.functional.rms_norm
does, asked = {}, []


def norm(who, x, weight, eps):
    asked.append(who)
    way = does.get(who, "right")
    if way == "refuses":
        raise NotImplementedError(f"no kernel of {who}'s for this")
    if way == "unsupported":
        raise ValueError("head size 128 is not supported")
    if way == "lacks":
        raise ImportError(f"cannot import name 'kernels' from '{who}'")
    if way == "breaks":
        raise RuntimeError(f"misaligned address in {who}")
    found = NORM(x.double(), weight.shape, weight.double(), eps).to(x.dtype)
    return found * 1.25 if way == "wrong" else found


def fake(name, **functions):
    """What the module of that name is for the templates."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(functions)


def plain(who):
    return lambda x, weight, *rest, eps=None: norm(who, x, weight, eps or rest[-1])


real_need = conftest.need


def need(module, device=None):
    """The fakes want no GPU."""
    owner = {"sgl_kernel": "sglang"}.get(module, module.partition(".")[0])
    return real_need("no_such_" + module if does.get(owner) == "absent" else module)


conftest.need = need
fake("flashinfer.norm", rmsnorm=plain("flashinfer"), fused_add_rmsnorm=None)
fake("sgl_kernel", rmsnorm=plain("sglang"), fused_add_rmsnorm=None)
fake("fla.modules.norm.layernorm", rms_norm=plain("fla"))
torch.nn.functional.rms_norm = lambda x, shape, w, eps: norm("torch", x, w, eps)

test = test_rmsnorm.TestRmsnormH128()
case, cpu = test.SIZES[-2], torch.device("cpu")


def outcome(check, *words, at=kernels, **ways):
    """ "passed", or how it ended and with what."""
    does.clear()
    does.update(ways)
    asked.clear()
    os.environ["REFTEST_KERNELS"] = at
    conftest._find_kernels.cache_clear()
    try:
        check(test, case, *words, cpu)
    except AssertionError as why:
        return f"failed: {why}"
    except pytest.skip.Exception as why:
        return f"skipped: {why}"
    except Exception as why:  # noqa: BLE001
        return f"broke: {why}"
    return "passed"


def want(found, *texts):
    missing = [text for text in texts if text not in found]
    assert not missing, f"{missing} missing of: {found}"


# Each is asked once those before it are not there, and decides alone.
correct = conftest.check_numerical_correctness
for place, name in enumerate(ORDER):
    for way in ("refuses", "unsupported", "lacks", "absent"):
        before = {
            other: "refuses" if other == "torch" else way for other in ORDER[:place]
        }
        assert outcome(correct, **before) == "passed"
        reached = (
            ORDER[:place]
            if way != "absent"
            else [o for o in ORDER[:place] if o == "torch"]
        )
        assert asked == [o for o in [*reached, name] if o != "builtin"], (
            name,
            way,
            asked,
        )
        if name != "builtin":
            want(
                outcome(correct, **before, **{name: "wrong"}),
                "failed: ",
                f"against {name}:",
            )
            want(
                outcome(correct, **before, **{name: "breaks"}),
                "broke: misaligned",
                name,
            )

# Where none is there, each says why.
none = {
    "flashinfer": "absent",
    "sglang": "unsupported",
    "fla": "refuses",
    "torch": "refuses",
}
empty = os.path.join(references, "nothing")
reasons = (
    "skipped: no ground truth: flashinfer: no_such_flashinfer.norm cannot be imported",
    "; sglang: head size 128 is not supported; ",
    "; fla: no kernel of fla's for this; ",
    "; builtin: reftest's kernels are not here ($REFTEST_KERNELS is ",
)
want(outcome(correct, at=empty, **none), *reasons)
want(
    outcome(conftest.check_against, "sglang", **none),
    "skipped: sglang: head size 128 is not supported",
)

# A library of kernels that cannot be loaded is one that is not there, and says so.
os.makedirs(empty)
with open(os.path.join(empty, "libreftest_kernels.so"), "w") as file:
    file.write("no library")
want(
    outcome(correct, at=empty, **none),
    "skipped: ",
    "builtin: reftest's kernels cannot be loaded (",
)
assert outcome(correct, at=empty) == "passed"

# All that are there must agree, not only the first and the last.
agree = conftest.check_ground_truths_agree
assert outcome(agree) == "passed" and asked == ORDER[:-1]
for name in ORDER[:-1]:
    want(outcome(agree, **{name: "wrong"}), "failed: ", f"{name} against builtin")
want(
    outcome(agree, at=empty, **none),
    "skipped: fewer than two ground truths are here: flashinfer: ",
)
print("in order")
