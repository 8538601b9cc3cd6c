"""gradients - computes gradients of run()'s outputs with torch's autograd, for losses that the judge chooses.

The inputs of a gradient case (kernels/core/gradient_bounds.h) are the arguments of run(), and one input grad:Y for each
output Y of run(). grad:Y is the gradient of the loss with respect to Y. A gradient case in float64 also has inputs
called step:X, each a small change of the argument X. The output d_X of a gradient case is the gradient of the loss with
respect to the argument X. The output slope_X is half the difference between two losses: with step:X added to X, and
with step:X subtracted from X. runner.py uses this module for references, and provider.py uses it for libraries.
Functions here receive the module runner.py as the parameter `runner`. The judge, not this module, compares the
gradients with ground truths."""

import contextlib
import warnings


def undecorated(runner, run):
    """Removes from run() the torch decorators that disable gradients (no_grad, inference_mode)."""
    contexts = runner.sys.modules["torch.utils._contextlib"].__file__
    while hasattr(run, "__wrapped__") and getattr(getattr(run, "__code__", None), "co_filename", None) == contexts:
        run = run.__wrapped__
    return run


@contextlib.contextmanager
def in_float64(torch):
    """Makes torch compute in float64 where run() requests a narrower floating-point type: x.float(),
    x.to(torch.bfloat16), torch.zeros(n), dtype=…"""
    narrow = (torch.float32, torch.float16, torch.bfloat16)
    methods = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)

    def wide(value):
        return torch.float64 if isinstance(value, torch.dtype) and value in narrow else value

    class Wide(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            function = torch.Tensor.double if function in methods else function
            return function(*map(wide, args), **{name: wide(value) for name, value in (kwargs or {}).items()})

    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with Wide():
            yield
    finally:
        torch.set_default_dtype(default)


@contextlib.contextmanager
def in_order(torch):
    """Makes torch use a deterministic algorithm for each operation that has one. Without this, some operations on a
    GPU, such as the backward pass of a gather, would add numbers in the order in which threads happen to run, and the
    rounding errors would differ between calls. A reference has no influence on this order. An operation without a
    deterministic algorithm runs as usual, and torch's warning is suppressed. In torch's deterministic mode,
    torch.empty() returns NaN instead of undefined values, which could be zeros by chance."""
    before = torch.get_deterministic_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deterministic")
        torch.set_deterministic_debug_mode("warn")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(before)


def named(inputs, arguments, kind):
    """Removes from `arguments` the inputs whose names begin with `kind`, such as "grad:", and returns {name without
    `kind`: (spec, tensor)} for these inputs."""
    return {spec["name"][len(kind):]: (spec, arguments.pop(spec["name"])) for spec in inputs
            if spec["name"].startswith(kind)}


def outputs_of(runner, result, given):
    """Returns a pair for each output of run(): the output, and the gradient of the loss with respect to it. Raises
    runner.Mistake if an output is not a tensor, or does not have the shape of its gradient."""
    results = runner.tensors.unpack(result, [dict(spec, name=name) for name, (spec, _) in given.items()])
    for (name, (spec, gradient)), value in zip(given.items(), results):
        if not isinstance(value, runner.torch.Tensor):
            runner.tensors.as_tensor(dict(spec, name=name, scalar=False), value, "cpu")  # raises Mistake: no tensor
        if list(value.shape) != list(gradient.shape):
            raise runner.Mistake("output '%s' has shape %s, but is declared as %s, so its gradient has the wrong shape"
                                 % (name, tuple(value.shape), tuple(gradient.shape)))
    return [(value, gradient) for value, (_, gradient) in zip(results, given.values())]


def backwards(runner, pairs, leaves, given):
    """Returns the gradient of the loss with respect to each tensor in `leaves`, or None for a tensor on which the loss
    does not depend."""
    pairs = [(value, gradient) for value, gradient in pairs if value.requires_grad]
    if not pairs:
        raise runner.Mistake(
            "the reference's outputs require no gradient: torch's autograd finds no path from %s to an input "
            "(does run() disable gradients, or detach the outputs?)" % ", ".join(given)
        )
    # The loss is the sum of all outputs, each multiplied by its given gradient. torch.autograd.grad could compute the
    # same with its argument grad_outputs, but would then import sympy.
    loss = sum((value * gradient.to(value.dtype)).sum() for value, gradient in pairs)
    return runner.torch.autograd.grad(loss, leaves, allow_unused=True)


def slope(runner, run, arguments, name, step, given):
    """Evaluates the loss with `step` added to the argument `name`, and with `step` subtracted from it, and returns half
    the difference of the two losses."""
    ends = []
    for end in (1, -1):
        moved = {key: value.detach().clone() if isinstance(value, runner.torch.Tensor) else value
                 for key, value in arguments.items()}
        moved[name] += end * step
        ends.append(sum((gradient * value).sum() for value, gradient in outputs_of(runner, run(**moved), given)))
    return (ends[0] - ends[1]) / 2


def differentiate(runner, run, case, arguments):
    """Returns the outputs of a gradient case: first the tensors d_X (None if autograd returns no gradient), then the
    tensors slope_X. `arguments` maps the names of the case's inputs to their values."""
    torch = runner.torch
    given, steps = (named(case["inputs"], arguments, kind) for kind in ("grad:", "step:"))
    wanted = [spec["name"][2:] for spec in case["outputs"] if spec["name"].startswith("d_")]
    for name in wanted:
        arguments[name] = arguments[name].detach().requires_grad_()
    leaves = [arguments[name] for name in wanted]
    wide = in_float64 if all(spec["dtype"] == "float64" for spec in case["outputs"]) else contextlib.nullcontext
    with in_order(torch):
        with torch.enable_grad():
            with wide(torch):
                result = run(**arguments)
            gradients = backwards(runner, outputs_of(runner, result, given), leaves, given)
        del result  # frees the tensors that autograd saved, because slope() needs memory for its calls of run()
        with torch.no_grad(), wide(torch):
            slopes = [slope(runner, run, arguments, name, step, given) for name, (_, step) in steps.items()]
    return [*gradients, *slopes]


def effects(runner, run, arguments, outputs):
    """Calls run() on copies of the arguments. Returns a tuple: the outputs; for each argument, whether the gradient of
    a loss with respect to the argument is nonzero; and the copies, which run() may have changed. The loss is a sum of
    the output elements with random weights. Without weights, the gradient of some outputs would be 0: for example, the
    elements in a row of a softmax always add up to 1."""
    torch = runner.torch
    leaves = {name: value.detach().clone().requires_grad_() for name, value in arguments.items()
              if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype.itemsize > 1}
    with torch.enable_grad():
        copies = {name: leaves[name].clone() if name in leaves else value for name, value in arguments.items()}
        result = run(**copies)
        values = [value for value in runner.tensors.unpack(result, outputs, copies) if isinstance(value, torch.Tensor) and value.requires_grad]
        loss = sum((value * (0.5 + torch.rand_like(value, dtype=torch.float32)).to(value.dtype)).sum() for value in values)
        found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True) if values else []
    moved = {name: gradient is not None and bool(((gradient != 0) & gradient.isfinite()).any())
             for name, gradient in zip(leaves, found)}
    return result, [moved.get(name, False) for name in arguments], copies
