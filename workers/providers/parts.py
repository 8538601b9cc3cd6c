"""parts - what the inputs and outputs of a definition are to its op family, whatever order and names they have.

The rules are those of the families themselves, in the files of kernels/ that stand beside each of them here: a table that took
an input for something else would witness another operation."""

from reftest_providers import Unavailable

torch = None  # the module, once the process that serves has imported it

ATTENTION_CAUSAL = 1  # variant of the families of attention with offsets of queries: kernels/attention_roles.h


def is_causal(call):
    """As the family takes it, which reads more than a name, and in the name more than a word."""
    return call.variant == ATTENTION_CAUSAL


def index_part(name):
    """What an index vector of attention is by its name, as kernels/attention_roles.c has it; None: it says nothing."""
    name = name.lower()
    for word, part in (("last", "last"), ("indices", "indices")):
        if word in name:
            return part
    if not any(word in name for word in ("indptr", "cu_seqlens", "offsets")):
        return None
    return "queries" if name[0] == "q" or "qo_" in name or "_q" in name else "keys"


class Attention:
    """The parts of attention, whatever order and names a definition has for them, as its family takes them. `queries` and
    `keys` are offsets, `queries` None where each sequence has one query; `last` may be None; `scale` is a number."""

    def __init__(self, call):
        self.call, self.scale = call, call.scalar("scale")
        if self.scale is None:
            raise Unavailable("the definition has no scale")
        self.queries = self.keys = self.indices = self.last = None
        for name, x in call.inputs.items():
            if isinstance(x, call.torch.Tensor) and x.dim() == 1 and index_part(name) is not None:
                setattr(self, index_part(name), x)
        self.floats = {name: x for name, x in call.inputs.items()
                       if isinstance(x, call.torch.Tensor) and x.is_floating_point()}
        self.output = next(name for name, spec in call.outputs.items() if len(spec["shape"]) == 3)

    def queries_first(self, names):
        """A query has the output's tokens and heads, by the names of these axes if not by their sizes."""
        axes, shape = self.call.axes_of, self.call.outputs[self.output]["shape"]

        def likeness(name):
            return axes[name][:2] == axes[self.output][:2], list(self.floats[name].shape[:2]) == shape[:2]

        return sorted(names, key=likeness, reverse=True)

    def whole(self):
        """(q, k, v)."""
        if len(self.floats) != 3:
            raise Unavailable("it takes a query, keys and values")
        q, k, v = self.queries_first(self.floats)
        k, v = (v, k) if k[0] == "v" and v[0] == "k" else (k, v)
        return tuple(self.floats[name] for name in (q, k, v))

    def latent(self):
        """(q_nope, q_pe, ckv, kpe): what is as wide as the output is latent."""
        width = self.call.outputs[self.output]["shape"][2]
        wide = [name for name, x in self.floats.items() if x.shape[-1] == width]
        rotary = [name for name in self.floats if name not in wide]
        if len(wide) != 2 or len(rotary) != 2:
            raise Unavailable("it takes a latent and a rotary part of the query and of the cache")
        (q_nope, ckv), (q_pe, kpe) = self.queries_first(wide), self.queries_first(rotary)
        return tuple(self.floats[name] for name in (q_nope, q_pe, ckv, kpe))


def part_by(words, name):
    return next((part for word, part in words if word in name.lower()), None)


GDN_V_LAST, GDN_L2NORM = 1, 2  # variants: kernels/gdn/roles.h
GDN_SCALARS = (("l2norm", "l2norm"), ("disable_state_update", "frozen"), ("scale", "scale"))
GDN_INDICES = (("indices", "indices"), ("seqlens", "cu_seqlens"), ("indptr", "cu_seqlens"), ("offsets", "cu_seqlens"))
GDN_WEIGHTS = (("log", "a_log"), ("bias", "dt_bias"))


def gdn_part(name, x):
    """What an input is, as kernels/gdn/roles.c takes it."""
    if not isinstance(x, torch.Tensor):
        return part_by(GDN_SCALARS, name)
    if x.dim() == 1:
        return part_by(GDN_WEIGHTS if x.is_floating_point() else GDN_INDICES, name)
    if "state" in name.lower():
        return "buffer" if x.dim() == 5 else "state"
    return name if name in ("a", "b") else name[0].lower()


class GatedDelta:
    """A case of gdn as its family takes it, whatever order and names a definition has. `state`, `cu_seqlens` and `indices`
    may be None. `updates`: do new states go to their slots of the pool? Yes, unless an input or a constant says
    otherwise."""

    def __init__(self, call):
        parts = {gdn_part(name, x): x for name, x in call.inputs.items() if x is not None}
        self.call = call
        self.q, self.k, self.v, self.a, self.b, self.a_log, self.dt_bias = (
            parts[part] for part in ("q", "k", "v", "a", "b", "a_log", "dt_bias"))
        if self.q.shape != self.k.shape:  # each has heads of its own; to libraries those of q are those of k
            self.q, self.k = (x.repeat_interleave(self.v.shape[-2] // x.shape[-2], dim=-2) for x in (self.q, self.k))
        self.state, self.cu_seqlens, self.indices = (parts.get(part) for part in ("state", "cu_seqlens", "indices"))
        if self.indices is not None and self.state is None:
            raise Unavailable("the pool that the indices lead into is absent")
        self.scale = float(parts.get("scale") or 0) or self.q.shape[-1] ** -0.5
        self.v_last = bool(call.variant & GDN_V_LAST)  # states are [K, V]
        self.l2norm = bool(parts.get("l2norm", call.variant & GDN_L2NORM))
        self.updates = not parts["frozen"] if "frozen" in parts else call.constants.get("updates_state") != 0

    def zero_state(self):
        """[sequences, heads, V, K]"""
        count = len(self.q) if self.cu_seqlens is None else len(self.cu_seqlens) - 1
        return torch.zeros(count, self.v.shape[-2], self.v.shape[-1], self.q.shape[-1], device=self.q.device)

    def answer(self, output, states):
        """By their names: one shape may be the other's."""
        return self.call.cut_in([int("state" in name.lower()) for name in self.call.outputs], output, states)


SSU_SCALARS = (("softplus", "softplus"), ("pad", "pad"))


def ssu_parts(call):
    """The inputs of mamba_ssu by part, as kernels/mamba_ssu/mamba_ssu.c takes them; "softplus" and "pad" always."""
    parts = {"softplus": True, "pad": -1}
    for name, x in call.inputs.items():
        if isinstance(x, torch.Tensor):
            part = "indices" if not x.is_floating_point() else "state" if x.dim() == 4 else name
        else:
            part = part_by(SSU_SCALARS, name)
        if x is not None:
            parts[part] = x
    return parts


def offsets_list(offsets):
    return [int(x) for x in offsets.tolist()]


def empty_to_infinity(lse):
    """Of a row that saw nothing, for which older kernels have a large negative number. +infinity is nobody's word for it: it
    stays, and is seen."""
    lse = lse.float()
    return torch.where(lse <= -1e4, torch.full_like(lse, float("-inf")), lse)


def merged_states(call):
    """(v, s, mask): values and logsumexps in their order, by their ranks; the mask of bool, or None."""
    tensors = [x.contiguous() for x in call.tensors()]
    widest = max(x.dim() for x in tensors)
    v, s = ([x for x in tensors if x.dim() == rank] for rank in (widest, widest - 1))
    mask = next((x.bool() for x in tensors if x.dim() < widest - 1), None)
    return v, s, mask


def filter_parameter(call, word):
    """What a filter of probabilities takes, for all rows or for each: these may have a filter's name, too."""
    return next(x for name, x in call.inputs.items() if word in name and (not isinstance(x, torch.Tensor) or x.dim() == 1))


def kept_by_top_k(top_k, vocabulary):
    """int32 or int; no filter, which is what 0, less, and more than there is stand for here, is the whole vocabulary."""
    if not isinstance(top_k, torch.Tensor):
        return int(top_k) if 0 < top_k < vocabulary else vocabulary
    return torch.where((top_k > 0) & (top_k < vocabulary), top_k, vocabulary).to(torch.int32)


def normed_outputs(call, normed, total):
    """The sum is where a name speaks of a residual, the second one otherwise: kernels/rms.c."""
    first, *second = call.outputs
    swapped = second and "resid" in first and "resid" not in second[0]
    return call.cut(*((total, normed) if swapped else (normed, total)))


# Numbers of a mixture of experts, and the words in the names of inputs that give them: kernels/moe/roles.c. The first counts.
EXPERT_NUMBERS = (("offset", ("offset",)), ("scaling", ("scaling",)), ("topk_group", ("topk_group", "top_k_group")),
                  ("n_group", ("n_group", "num_expert_group")), ("top_k", ("top_k", "topk")))


def expert_number(call, number, otherwise=None):
    """A Python scalar among the inputs, or a constant; `otherwise` (None: Unavailable) if it is neither."""
    for name, value in call.inputs.items():
        said = (part for part, words in EXPERT_NUMBERS if any(word in name for word in words))
        if isinstance(value, (int, float)) and next(said, None) == number:
            return value
    value = call.constants.get(number, otherwise)
    if value is None:
        raise Unavailable("no '%s' is known" % number)
    return value


EXPERT_TENSORS = {"routing_logits", "routing_bias", "topk_ids", "hidden_states", "hidden_states_scale", "gemm1_weights",
                  "gemm1_weights_scale", "gemm2_weights", "gemm2_weights_scale"}


def only_known_experts(call):
    """What is not known by its name would be left out of the answer."""
    for name, value in call.inputs.items():
        if isinstance(value, torch.Tensor) and name not in EXPERT_TENSORS:
            raise Unavailable("it is not known here what the input '%s' is to it" % name)


def spread(scale, shape):
    """A scale for each element of that shape: each counts for a block."""
    for axis, (count, size) in enumerate(zip(scale.shape, shape)):
        scale = scale.repeat_interleave(size // max(count, 1), dim=axis)
    return scale


def scaled_hidden(call):
    """Hidden states in float32; their scales, if there are any, are [blocks, tokens] or [tokens, blocks]."""
    hidden, scale = call["hidden_states"].float(), call.get("hidden_states_scale")
    if scale is None:
        return hidden
    if call.axes_of["hidden_states_scale"][1] == call.axes_of["hidden_states"][0]:
        scale = scale.t()
    return hidden * spread(scale.float(), hidden.shape)


def choose_as_deepseek(call, logits, count):
    """(weights [T, count], experts [T, count]) of logits [T, E]: by score and bias, out of the best groups of experts; the
    weights are the scores without the bias, made to add up to the scaling factor."""
    scores = torch.sigmoid(logits.float())
    chosen = scores + call["routing_bias"].float()
    groups, kept = int(expert_number(call, "n_group", 1)), int(expert_number(call, "topk_group", 1))
    if groups > 1:
        by_group = chosen.view(len(chosen), groups, -1)
        best = by_group.topk(2, dim=-1).values.sum(-1).topk(kept, dim=-1).indices
        mask = torch.zeros_like(by_group[..., 0]).scatter_(1, best, 1.0).bool()
        chosen = by_group.masked_fill(~mask.unsqueeze(-1), float("-inf")).flatten(1)
    experts = chosen.topk(count, dim=-1).indices
    weights = scores.gather(1, experts)
    return weights / (weights.sum(-1, keepdim=True) + 1e-20) * float(expert_number(call, "scaling", 1.0)), experts
