"""gradients - the gradients of what run() computes, taken by torch's autograd, of losses that the judge makes up.

A case of gradients (kernels/gradient.h) has, beside run()'s own arguments, inputs grad:Y, which are the gradients of run()'s
outputs Y, and in float64 inputs step:X; its outputs are d_X, the gradients of arguments X, and slope_X. Used by runner.py
for references and by provider.py for libraries. Both hand themselves over as `runner`: torch, and how outputs are unpacked
and mistakes told, are theirs. Nothing is decided here: whatever comes out is compared by the judge."""

import contextlib
import warnings


def undecorated(runner, run):
    """run() without the decorators of torch that switch gradients off (no_grad, inference_mode): what they decorate."""
    contexts = runner.sys.modules["torch.utils._contextlib"].__file__
    while hasattr(run, "__wrapped__") and getattr(getattr(run, "__code__", None), "co_filename", None) == contexts:
        run = run.__wrapped__
    return run


@contextlib.contextmanager
def in_float64(torch):
    """Whatever asks for a narrower float gets float64: x.float(), x.to(torch.bfloat16), torch.zeros(n), dtype=…"""
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
    """Where torch can add up in one order, it does: on a GPU the gradient of a gather, say, otherwise takes terms as threads
    bring them, which is torch's choice and no fault of the reference. Where it cannot it goes on, with a warning that is
    nobody's. As the mode brings it, torch.empty() is NaN and not by chance zero."""
    before = torch.get_deterministic_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*deterministic")
        torch.set_deterministic_debug_mode("warn")
        try:
            yield
        finally:
            torch.set_deterministic_debug_mode(before)


def named(inputs, arguments, kind):
    """{Y: (spec, tensor)} of the inputs called kind + Y, which are taken out of the arguments."""
    return {spec["name"][len(kind):]: (spec, arguments.pop(spec["name"])) for spec in inputs
            if spec["name"].startswith(kind)}


def outputs_of(runner, result, given):
    """[(value, its given gradient)] of what run() returned, or runner.Mistake."""
    results = runner.unpack(result, [dict(spec, name=name) for name, (spec, _) in given.items()])
    for (name, (spec, gradient)), value in zip(given.items(), results):
        if not isinstance(value, runner.torch.Tensor):
            runner.as_tensor(dict(spec, name=name, scalar=False), value, "cpu")  # says what is wrong
        if list(value.shape) != list(gradient.shape):
            raise runner.Mistake("output '%s' has shape %s, declared %s: its gradient cannot be given"
                                 % (name, tuple(value.shape), tuple(gradient.shape)))
    return [(value, gradient) for value, (_, gradient) in zip(results, given.values())]


def backwards(runner, pairs, leaves, given):
    """The gradients of the leaves; None: there is none."""
    pairs = [(value, gradient) for value, gradient in pairs if value.requires_grad]
    if not pairs:
        raise runner.Mistake("the reference's outputs carry no gradient: torch's autograd sees no way from %s to an input "
                             "(is it switched off inside, or are they detached?)" % ", ".join(given))
    # Of the sum of all products, to which the given gradients are constants: given as such, torch would import sympy.
    loss = sum((value * gradient.to(value.dtype)).sum() for value, gradient in pairs)
    return runner.torch.autograd.grad(loss, leaves, allow_unused=True)


def slope(runner, run, arguments, name, step, given):
    """Half of what the loss differs by between the ends of a step in one argument."""
    ends = []
    for end in (1, -1):
        moved = {key: value.detach().clone() if isinstance(value, runner.torch.Tensor) else value
                 for key, value in arguments.items()}
        moved[name] += end * step
        ends.append(sum((gradient * value).sum() for value, gradient in outputs_of(runner, run(**moved), given)))
    return (ends[0] - ends[1]) / 2


def differentiate(runner, run, case, arguments):
    """What run() gives back for the gradients of its outputs: a tensor (None: no gradient) for each output d_X of the case,
    then one for each slope_X. `arguments` are the case's inputs by name."""
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
        del result  # and what autograd kept of it, before two more runs for each input
        with torch.no_grad(), wide(torch):
            slopes = [slope(runner, run, arguments, name, step, given) for name, (_, step) in steps.items()]
    return [*gradients, *slopes]
