"""order.py REFERENCES KERNELS - tests the order in which generated tests call ground truths, and what happens if a
ground truth is wrong, declines, raises an exception or is not installed.

FlashInfer, SGLang and FLA are fakes. The generated tests are those of the norm rmsnorm_h128."""

import os
import sys
import types
import warnings

references, kernels = sys.argv[1:]
sys.path.insert(0, references)
import conftest
import pytest
import test_rmsnorm
import torch

ORDER = ["flashinfer", "sgl_kernel", "fla", "torch", "builtin"]
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
    """Creates a fake module `name` with the functions of this library that the provider's tables use."""
    module = sys.modules[name] = types.ModuleType(name)
    module.__dict__.update(functions)
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, module)


def plain(who):
    return lambda x, weight, *rest, eps=None: norm(who, x, weight, eps or rest[-1])


# The fake libraries need no GPU, and reftest accepts any version of them.
conftest.device_class = lambda device: "sm_90"
conftest.lacking_version = lambda name: (
    f"{name} is not installed" if does.get(name) == "absent" else None
)
for parent in ("flashinfer", "fla", "fla.modules", "fla.modules.norm", "triton"):
    fake(parent)
fake("flashinfer.norm", rmsnorm=plain("flashinfer"))
fake("sgl_kernel", rmsnorm=plain("sgl_kernel"))
fake("fla.modules.norm.layernorm", rms_norm=plain("fla"))
torch.nn.functional.rms_norm = lambda x, shape, w, eps: norm("torch", x, w, eps)
assert conftest.ground_truths("rmsnorm") == ORDER

test = test_rmsnorm.TestRmsnormH128()
case, cpu = test.SIZES[-2], torch.device("cpu")


def outcome(check, *words, at=kernels, **ways):
    """Calls a test function. Returns "passed", or how the test ended and its message."""
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


# ORDER lists the ground truths in the order in which they are called. If no ground truth before `name` can compute the
# outputs, the reference is compared only with `name`.
correct = conftest.check_numerical_correctness
SETS = 2  # each comparison runs for both sets of input values
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
        assert asked == SETS * [o for o in [*reached, name] if o != "builtin"], (
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

# If no ground truth is available, the test reports the reason for each one.
none = {
    "flashinfer": "absent",
    "sgl_kernel": "unsupported",
    "fla": "refuses",
    "torch": "refuses",
}
empty = os.path.join(references, "nothing")
reasons = (
    "skipped: no ground truth: flashinfer: flashinfer is not installed",
    "; sgl_kernel: head size 128 is not supported; ",
    "; fla: no kernel of fla's for this; ",
    "; builtin: reftest's kernels are not available ($REFTEST_KERNELS is ",
)
want(outcome(correct, at=empty, **none), *reasons)
want(
    outcome(conftest.check_against, "sgl_kernel", **none),
    "skipped: sgl_kernel: head size 128 is not supported",
)

# A library of kernels that cannot be loaded counts as not installed, and the reason is reported.
os.makedirs(empty)
with open(os.path.join(empty, "libreftest_kernels.so"), "w") as file:
    file.write("no library")
want(
    outcome(correct, at=empty, **none),
    "skipped: ",
    "builtin: reftest's kernels failed to load (",
)
assert outcome(correct, at=empty) == "passed"

# All available ground truths must agree, not only the first and the last.
agree = conftest.check_ground_truths_agree
assert outcome(agree) == "passed" and asked == ORDER[:-1]
for name in ORDER[:-1]:
    want(outcome(agree, **{name: "wrong"}), "failed: ", f"{name} against builtin")
want(
    outcome(agree, at=empty, **none),
    "skipped: fewer than two ground truths are available: flashinfer: ",
)

# A ground truth is coarse if its own error bounds are larger than the definition's bounds. The reference must agree
# with a coarse ground truth within these larger bounds, and is then also compared with the next ground truth.
row = conftest.tables()["flashinfer"].rows["rmsnorm"]
row.coarse = {"output": (0.0, 0.5)}
assert outcome(correct) == "passed" and asked == SETS * ["flashinfer", "sgl_kernel"]
assert outcome(correct, flashinfer="wrong") == "passed"
want(outcome(correct, sgl_kernel="wrong"), "failed: ", "against sgl_kernel:")
others = dict.fromkeys(("sgl_kernel", "fla", "torch"), "refuses")
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    assert outcome(correct, at=empty, **others) == "passed"
want(str([str(one.message) for one in found]), "only flashinfer gave a result")
row.coarse = {"output": (0.0, 0.1)}
want(outcome(correct, flashinfer="wrong"), "failed: ", "against flashinfer:")
row.coarse = None
print("in order")
