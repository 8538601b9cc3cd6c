"""isolation - decides from the source code of a reference whether its runner may run other references afterwards.

`needs_own(source, erases)` returns None if nothing that the source code does can outlive a call, or affect anything but
the inputs and outputs of the reference. Otherwise it returns a phrase that says why the reference needs a process of
its own. The lists below contain the imports, builtins, attributes and kinds of syntax nodes that are allowed. A
reference that contains any other one needs its own process. The source code is only parsed, never executed. runner.py
calls `needs_own` in a process that runs no reference.

For example, a reference needs its own process if it contains one of these:

- Assignments to attributes, because they could replace a function of torch, of Python or of the runner.
- Attributes that are not in the list ATTRIBUTES. Because the source code does not show which object a variable refers
  to, an attribute in the list is allowed on every object. Each attribute in the list must therefore be harmless on
  tensors, on Python's own values, and on each module that the source code can reach (torch, torch.nn,
  torch.nn.functional, torch.linalg, torch.special, math). tests/isolation.py checks all attributes with torch.
- Names that begin with two underscores, `global`, `nonlocal`, classes, `try`, and generators that can stay suspended
  inside a `with`. Without these, a reference can change only its own module, which is removed after the reference's
  last case.
- Functions that return uninitialised memory (empty, new_empty, resize_, Tensor(…)). Uninitialised memory could still
  contain results of an earlier reference, and a later reference could return these results as its own. Runners on a GPU
  overwrite unused memory between two references, so there the functions in the list UNINITIALISED are allowed.
- Strings that name an attribute at run time (format, getattr).
- Builtins that are not in the list BUILTINS, and statements that assign to the name of any builtin.
- autograd, streams, modules of devices such as torch.cuda, files, threads, the environment, and random number
  generators, except torch's default ones, which are seeded before each call."""

import ast
import builtins

SOURCE_MAX = 64 << 10  # bytes; a reference with longer source code needs its own process
DEPTH_MAX = 60         # the maximum depth of nested nodes

NODES = frozenset("""
    Module FunctionDef Lambda arguments arg Return Expr Pass Break Continue Assign AnnAssign AugAssign NamedExpr Delete
    If IfExp For While With withitem Assert Raise Import ImportFrom alias
    Name Attribute Subscript Slice Constant JoinedStr FormattedValue Tuple List Dict Set Starred Call keyword
    ListComp SetComp DictComp GeneratorExp comprehension
    BoolOp And Or UnaryOp Not Invert UAdd USub Compare Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn
    BinOp Add Sub Mult MatMult Div FloorDiv Mod Pow LShift RShift BitAnd BitOr BitXor
    Load Store Del
""".split())

# Modules that the source code may import. From the module typing, the source code may import only the names in TYPING.
# From torch and the modules below it, the source code may import only the names in ATTRIBUTES.
MODULES = frozenset("math torch torch.nn torch.nn.functional torch.linalg torch.special typing".split())
TYPING = frozenset("Any Callable Dict Iterable List Optional Sequence Set Tuple Union".split())

BUILTINS = frozenset("""
    abs all any bool complex divmod enumerate filter float int isinstance len list map max min pow range reversed round
    set slice sorted str sum tuple zip dict frozenset
    ArithmeticError AssertionError Exception IndexError KeyError NotImplementedError RuntimeError TypeError ValueError
""".split())

# The source code may bind the name `input`, because many functions of torch have an argument with this name. The
# builtin input() is harmless: there is no standard input, so it only raises an exception.
BINDABLE = frozenset(("input",))

# The modes of torch.nn.functional.pad that write all elements of the result. With the mode "circular" and a negative
# size, it returns uninitialised memory.
PAD_MODES = frozenset(("constant", "reflect", "replicate"))

CONTEXTS = frozenset(("no_grad", "inference_mode"))  # contexts of with statements, as in `with torch.no_grad():`

# Keyword arguments that are refused. A call with such an argument could start work that outlives the call, or pass a
# number with which torch accesses memory without checking it.
ARGUMENTS_OUTSIDE = frozenset("generator non_blocking out output_size pin_memory sorter".split())

ATTRIBUTES = CONTEXTS | frozenset("""
    nn functional linalg special

    bfloat16 bool complex128 complex64 double float float16 float32 float64 float8_e4m3fn float8_e5m2 float8_e8m0fnu half
    int int16 int32 int64 int8 long short uint16 uint32 uint64 uint8 float4_e2m1fn_x2
    finfo iinfo eps tiny smallest_normal resolution bits dtype device type index shape size ndim dim stride numel nelement
    itemsize element_size is_cuda is_contiguous is_floating_point is_complex is_tensor layout
    e inf nan pi tau

    arange as_tensor complex eye full full_like linspace logspace ones ones_like scalar_tensor tensor zeros zeros_like
    new_full new_ones new_tensor new_zeros
    rand rand_like randint randint_like randn randn_like randperm bernoulli multinomial normal

    abs absolute acos acosh add addcdiv addcmul angle arccos arcsin arctan arctan2 asin asinh atan atan2 atanh bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip conj copysign
    cos cosh deg2rad degrees digamma div divide erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmax fmin fmod
    frac frexp fsum gcd hypot imag isclose isfinite isinf isnan isneginf isposinf isqrt isreal ldexp lerp lgamma log log10
    log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit maximum minimum mul multiply
    nan_to_num neg negative nextafter polygamma positive pow prod radians real reciprocal remainder round rsqrt sigmoid sign signbit
    sin sinc sinh softmax sqrt square sub subtract tan tanh trunc true_divide xlogy expit

    all allclose amax amin aminmax any argmax argmin argsort bincount bucketize count_nonzero cummax cummin cumprod cumsum
    diff dist eq equal ge greater greater_equal gt histc kthvalue le less less_equal logcumsumexp logsumexp lt max mean
    median min mode msort nanmean nansum ne nonzero norm not_equal quantile searchsorted sort std sum topk unique
    unique_consecutive var var_mean std_mean

    T H mT mH adjoint block_diag broadcast_tensors broadcast_to cat chunk clone column_stack concat concatenate contiguous
    detach diag diag_embed diagonal dsplit dstack expand expand_as flatten flip fliplr flipud gather hsplit hstack index_add
    index_copy index_fill index_put index_select item masked_fill masked_select meshgrid moveaxis movedim narrow
    permute ravel repeat repeat_interleave reshape reshape_as roll rot90 scatter scatter_add scatter_reduce select split
    squeeze stack swapaxes swapdims t take take_along_dim tensor_split tile to tolist transpose tril tril_indices triu
    triu_indices type_as unbind unflatten unfold unsqueeze view view_as view_as_complex view_as_real vsplit vstack where cpu

    addbmm addmm addmv addr baddbmm bmm chain_matmul cross dot einsum ger inner kron matmul matrix_norm matrix_power mm
    multi_dot mv outer solve_triangular tensordot trace vdot vecdot vector_norm cholesky inv solve det

    binary_cross_entropy celu conv1d conv2d conv3d conv_transpose1d conv_transpose2d cosine_similarity cross_entropy
    elu embedding gelu glu group_norm hardsigmoid hardswish hardtanh huber_loss interpolate kl_div l1_loss layer_norm
    leaky_relu linear log_softmax logsigmoid max_pool1d max_pool2d avg_pool1d avg_pool2d mish mse_loss
    nll_loss normalize one_hot pad pairwise_distance pixel_shuffle pixel_unshuffle relu relu6 rms_norm
    scaled_dot_product_attention selu silu smooth_l1_loss softmin softplus softsign threshold

    abs_ add_ addcmul_ baddbmm_ bitwise_and_ bitwise_or_ ceil_ clamp_ clamp_max_ clamp_min_ copy_ cumsum_ div_ exp_ fill_ floor_
    index_add_ index_copy_ index_fill_ index_put_ log_ logical_and_ logical_not_ logical_or_ masked_fill_ mul_
    neg_ pow_ reciprocal_ relu_ round_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sigmoid_ sqrt_ square_ squeeze_ sub_
    tanh_ transpose_ tril_ triu_ unsqueeze_ zero_

    append copy count extend get insert items join keys pop remove reverse values indices start stop step update startswith
    endswith lower upper strip
""".split())

UNINITIALISED = frozenset("empty empty_like new_empty".split())

TENSOR = "Tensor"  # allowed only in annotations and isinstance, because Tensor(…) returns uninitialised memory


class Needed(Exception):
    """A reason why the reference needs a process of its own."""


def needs_own(source, erases):
    """`erases` is true if the runner overwrites memory between two references."""
    if len(source.encode(errors="replace")) > SOURCE_MAX:
        return "the source code is longer than %d KiB" % (SOURCE_MAX >> 10)
    try:
        tree = ast.parse(source)
        check(tree, ATTRIBUTES | UNINITIALISED if erases else ATTRIBUTES)
    except Needed as why:
        return str(why)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "the source code cannot be parsed"
    return None


def is_stateless(source):
    """Returns true if the module of the reference contains only functions and immutable values. Such a module keeps
    nothing between two calls: it has no global list or tensor and no default argument in which a call could leave data
    for a later call. Also returns false if the source code uses uninitialised memory, which could contain results of an
    earlier call: no runner overwrites memory between two calls."""
    if needs_own(source, False) is not None:
        return False
    tree = ast.parse(source)
    return not any(map(renames_math, ast.walk(tree))) and all(map(is_constant_statement, tree.body))


def renames_math(node):
    """Returns true if the node binds the name `math` to something other than the module math."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name) == "math" and (node.name, node.asname) != ("math", None)
    return "math" in (getattr(node, "name", None), getattr(node, "arg", None)) or (
        isinstance(node, ast.Name) and node.id == "math" and not isinstance(node.ctx, ast.Load))


def is_constant_statement(node):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.FunctionDef):
        defaults = node.args.defaults + [default for default in node.args.kw_defaults if default is not None]
        return (all(map(is_constant, defaults)) and all(map(is_context, node.decorator_list)) and
                not any(map(binds, annotations(node))))
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) for target in node.targets) and is_constant(node.value)
    if isinstance(node, ast.AnnAssign):
        return (isinstance(node.target, ast.Name) and (node.value is None or is_constant(node.value)) and
                not binds(node.annotation))
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def annotations(function):
    """Returns the annotations of a function, which Python evaluates when the module is loaded."""
    args = function.args
    every = args.posonlyargs + args.args + args.kwonlyargs + [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [node for node in [arg.annotation for arg in every] + [function.returns] if node is not None]


def binds(node):
    """Returns true if the expression binds a name of the module (`:=`)."""
    return any(isinstance(child, ast.NamedExpr) for child in ast.walk(node))


def is_context(node):
    """Returns true for a decorator such as `torch.no_grad()`. With a function as its argument, `torch.no_grad` calls this
    function, whose result may keep something."""
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CONTEXTS and
            all(isinstance(value, ast.Constant) for value in node.args + [keyword.value for keyword in node.keywords]))


def is_constant(node):
    """Returns true for numbers, strings, names, attributes (`torch.float32`), calls of functions of the module math,
    and tuples and arithmetic of these."""
    if isinstance(node, (ast.Constant, ast.Name)):
        return True
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name)
    if isinstance(node, ast.Tuple):
        return all(map(is_constant, node.elts))
    if isinstance(node, ast.UnaryOp):
        return is_constant(node.operand)
    if isinstance(node, ast.BinOp):
        return is_constant(node.left) and is_constant(node.right)
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "math" and all(map(is_constant, node.args)) and not node.keywords)


def check(tree, attributes):
    parents = [(tree, 0)]
    tensors, pads = allowed_tensors(tree), plain_pads(tree)
    while parents:
        node, depth = parents.pop()
        if depth > DEPTH_MAX:
            raise Needed("the source code is nested too deeply")
        kind = type(node).__name__
        if kind not in NODES:
            raise Needed("it contains %s (line %d)" % (NAMED.get(kind, kind), getattr(node, "lineno", 0)))
        look = CHECKS.get(kind)
        if look is not None:
            look(node, id(node) in tensors, attributes)
        if kind == "Attribute" and node.attr == "pad" and id(node) not in pads:
            refuse(node, "uses pad with a mode that is not known")
        parents += [(child, depth + 1) for child in ast.iter_child_nodes(node)]


NAMED = {"ClassDef": "a class", "Try": "try", "TryStar": "try", "Global": "global", "Nonlocal": "nonlocal", "Yield": "yield",
         "YieldFrom": "yield", "AsyncFunctionDef": "async", "Await": "await", "Match": "match"}


def allowed_tensors(tree):
    """Returns the ids of the nodes inside which the name Tensor is allowed: annotations, and the second argument of
    isinstance. In both places, the source code only names the class Tensor and makes no tensor. isinstance itself is
    safe, because the source code cannot rebind it."""
    found = set()
    for node in ast.walk(tree):
        tops = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            tops += node.args[1:2]
        for top in tops:
            if top is not None:
                found.update(map(id, type_nodes(top)))
    return found


def plain_pads(tree):
    """Returns the ids of the nodes such as `F.pad` that are called without a mode, or with one of PAD_MODES."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            by_position = len(node.args) > 2 or any(isinstance(value, ast.Starred) for value in node.args)
            modes = [keyword.value for keyword in node.keywords if keyword.arg == "mode"]
            if not by_position and all(isinstance(mode, ast.Constant) and mode.value in PAD_MODES for mode in modes):
                found.add(id(node.func))
    return found


def type_nodes(top):
    """Yields the nodes of a type: names, attributes, subscripts, tuples, and `|`. Does not yield calls, because a call
    is not part of a type."""
    yield top
    if isinstance(top, (ast.Subscript, ast.Tuple, ast.List, ast.BinOp)):
        for child in ast.iter_child_nodes(top):
            yield from type_nodes(child)


def refuse(node, what):
    raise Needed("it %s (line %d)" % (what, getattr(node, "lineno", 0)))


def check_bound(node, name):
    """Refuses source code that binds the name of a builtin, because this name must always mean the builtin. Also
    refuses source code that binds a name that begins with two underscores."""
    if name.startswith("__"):
        refuse(node, "uses the name '%s'" % name[:80])
    if hasattr(builtins, name) and name not in BINDABLE:
        refuse(node, "binds the name '%s' of a Python builtin" % name)


def check_name(node, may_be_tensor, _):
    if not isinstance(node.ctx, ast.Load):
        check_bound(node, node.id)
    elif node.id.startswith("__") or (hasattr(builtins, node.id) and node.id not in BUILTINS | BINDABLE):
        refuse(node, "uses the name '%s'" % node.id[:80])
    elif node.id == TENSOR and not may_be_tensor:
        refuse(node, "uses Tensor outside of annotations")


def check_attribute(node, may_be_tensor, attributes):
    if not isinstance(node.ctx, ast.Load):
        refuse(node, "changes the attribute '%s'" % node.attr[:80])
    if node.attr not in attributes and not (node.attr == TENSOR and may_be_tensor):
        refuse(node, "uses the attribute '%s'" % node.attr[:80])


def check_import(node, *_):
    for name in node.names:
        if name.name not in MODULES or name.name == "typing":
            refuse(node, "imports %s" % name.name[:80])
        check_bound(node, name.asname or name.name.partition(".")[0])


def check_import_from(node, _, attributes):
    for name in node.names:
        of_torch = (node.module in MODULES - {"typing"} and name.name != "pad" and
                    (name.name in attributes or name.name == TENSOR))
        of_python = (node.module, name.name) == ("__future__", "annotations") or (node.module == "typing" and name.name in TYPING)
        if node.level or not (of_torch or of_python):
            refuse(node, "imports %s from %s" % (name.name[:80], str(node.module)[:80]))
        if name.name == TENSOR and name.asname not in (None, TENSOR):
            refuse(node, "renames Tensor")
        check_bound(node, name.asname or name.name)


def check_call(node, *_):
    for keyword in node.keywords:
        if keyword.arg in ARGUMENTS_OUTSIDE:
            refuse(node, "passes the argument '%s'" % keyword.arg)
        if keyword.arg is None:
            refuse(node, "passes arguments by **")


def check_with(node, *_):
    for item in node.items:
        call = item.context_expr
        named = call.func if isinstance(call, ast.Call) else None
        if item.optional_vars is not None or not isinstance(named, ast.Attribute) or named.attr not in CONTEXTS:
            refuse(node, "has a with statement other than `with torch.no_grad():`")


CHECKS = {
    "Name": check_name, "Attribute": check_attribute, "Import": check_import, "ImportFrom": check_import_from,
    "Call": check_call, "With": check_with,
    "FunctionDef": lambda node, *_: check_bound(node, node.name),
    "arg": lambda node, *_: check_bound(node, node.arg),
}
