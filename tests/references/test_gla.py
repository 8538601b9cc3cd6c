# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 7191a094ff7571a2365149ca3ceff6cf
"""Tests of definitions/gla. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def recurrence_says(definition, *words):
    """Does the name or a tag hold one of the words?"""
    told = " ".join([definition["name"], *definition.get("tags", [])])
    told = told.lower().replace("-", "_")
    return any(word in told for word in words)


def recurrence_part(name, spec):
    """What an input is: the name that most definitions have for it."""
    if spec["shape"] is not None and "int" in spec["dtype"]:
        return "cu_seqlens"
    scalars = ("l2norm", "beta_sigmoid", "neg_eigval", "lower_bound", "scale")
    words = {
        "state": "initial_state",
        "a_log": "A_log",
        "bias": "dt_bias",
        "gamma": "g_gamma",
    }
    if spec["shape"] is None:
        words = {word: word for word in scalars}
    for word, part in words.items():
        if word in name.lower():
            return part
    if name == "h0":
        return "initial_state"
    return name if name in ("g", "gk", "b", "beta") else name[0].lower()


def recurrence_parts(definition, values):
    """Values of inputs by part."""
    specs = definition["inputs"]
    return {recurrence_part(name, spec): values[name] for name, spec in specs.items()}


def recurrence_is_state(output):
    return "state" in output.lower() or output == "ht"


def recurrence_scalar(part, key_size):
    """Values of Python scalars, none that a reference would have by heart."""
    if part == "lower_bound":
        return -5.0
    return 1.25 * key_size**-0.5 if part == "scale" else True


def recurrence_offsets(total, parts, generator):
    """Sequences of random lengths, none of them empty if there are tokens enough."""
    if parts == 0:
        return torch.zeros(1, dtype=torch.int64)
    cuts = torch.randperm(max(total - 1, 0), generator=generator)[: parts - 1] + 1
    cuts = torch.cat([cuts, torch.full((parts - 1 - len(cuts),), total)])
    return torch.cat([torch.tensor([0]), cuts.sort().values, torch.tensor([total])])


def recurrence_gates(values, raw):
    """As they are: logarithms, from hardly any decay to nearly all, by head and key. Else what makes many sizes."""
    if raw:
        return values * 3
    classes = sum(
        torch.arange(n).view(-1, *[1] * i) for i, n in enumerate(values.shape[::-1])
    )
    levels = torch.tensor([2.0**-4, 2.0, 2.0**-8, 0.5])
    return -values.abs() * levels[classes % 4]


def recurrence_inputs(definition, axes, device="cpu", seed=0):
    """Keys of a norm near 1, so that the state contracts; a first state of which something is left at the end."""
    sizes = conftest.resolve_axes(definition, axes)
    generator = conftest.generator_of(seed)
    parts = recurrence_parts(definition, definition["inputs"])
    key_size = sizes[parts["q"]["shape"][-1]]
    raw = any(word in parts for word in ("A_log", "lower_bound"))
    logits = "beta_sigmoid" in parts or recurrence_says(definition, "beta_sigmoid")
    inputs = {}
    for name, spec in definition["inputs"].items():
        part = recurrence_part(name, spec)
        if spec["shape"] is None:
            inputs[name] = recurrence_scalar(part, key_size)
            continue
        shape, dtype = conftest.shape_of(spec, sizes), conftest.dtype_of(spec)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        if part == "cu_seqlens":
            total = sizes[parts["q"]["shape"][-3]]
            values = recurrence_offsets(total, shape[0] - 1, generator)
        elif part == "k":
            values *= (3 / key_size) ** 0.5
        elif part == "initial_state":
            values *= 0.5
        elif part in ("g", "gk", "g_gamma"):
            values = recurrence_gates(values, raw)
        elif part == "A_log":
            values -= 2
        elif part == "dt_bias":
            values *= 2
        elif part in ("beta", "b"):
            values = values * 4 if logits or part == "b" else (values + 1) / 2
        inputs[name] = values.to(dtype).to(device)
    return inputs


def recurrence_edges(definition, axes):
    """No sequence, and one of one token."""
    parts, edges = recurrence_parts(definition, definition["inputs"]), []
    offsets, tokens = parts.get("cu_seqlens"), parts["q"]["shape"]
    for count in (0, 1):
        edge = {**axes, tokens[-3]: count}
        if offsets is None:
            edge[tokens[0]] = count
            edge[tokens[1]] = 1
        else:
            outputs = definition["outputs"]
            states = [outputs[name] for name in outputs if recurrence_is_state(name)]
            if "initial_state" in parts:
                states.append(parts["initial_state"])
            edge.update({state["shape"][0]: count for state in states})
            edge[offsets["shape"][0]] = count + 1
        edges.append({axis: edge[axis] for axis in axes})
    return edges


def recurrence_tolerance(definition, axes, index):
    """Kernels multiply tiles in the inputs' dtype: some of 256 parts of a typical element, which is around 1/2."""
    return 2e-2, 2e-2, 0.999


def recurrence_log_gates(inputs):
    """The logarithm of what stays of the state, by head or by head and key."""
    gate = inputs["gk" if "gk" in inputs else "g"].float()
    by_key = gate.dim() == inputs["v"].dim()
    rate = inputs["A_log"].exp() if "A_log" in inputs else torch.ones(())
    rate = rate[..., None] if by_key else rate
    if "dt_bias" in inputs:
        gate = gate + inputs["dt_bias"].view(gate.shape[-2 if by_key else -1 :])
    if "lower_bound" in inputs:
        return inputs["lower_bound"] * torch.sigmoid(rate * gate)
    if "A_log" in inputs:
        return -rate * torch.nn.functional.softplus(gate)
    return gate


def recurrence_strength(definition, inputs):
    beta = inputs["b" if "b" in inputs else "beta"]
    said = recurrence_says(definition, "beta_sigmoid") or "b" in inputs
    if inputs.get("beta_sigmoid", said):
        beta = torch.sigmoid(beta.float())
    if inputs.get("neg_eigval", recurrence_says(definition, "neg_eigval")):
        beta = 2 * beta
    return beta


def recurrence_normed(definition, inputs):
    """Are q and k normalised in the operation?"""
    return bool(inputs.get("l2norm", recurrence_says(definition, "l2norm")))


def recurrence_heads(inputs):
    """q, k and v, a head of q and k for each of v."""
    sharing = inputs["v"].shape[-2] // inputs["q"].shape[-2]
    q, k = (inputs[name].repeat_interleave(sharing, dim=-2) for name in "qk")
    return {"q": q, "k": k, "v": inputs["v"]}


def recurrence_unit(words):
    """The same with q and k of norm 1."""
    unit = {
        name: torch.nn.functional.normalize(words[name].float(), dim=-1)
        for name in "qk"
    }
    return words | {name: value.to(words[name].dtype) for name, value in unit.items()}


def recurrence_call(test, inputs, chunk, recurrent, words, **more):
    """One of two forms of a kernel, of inputs by part. States are [K, V] there; packed sequences are one row of a batch, in
    each of `words`."""
    definition = conftest.definition_of(test)
    if min(inputs["q"].shape) == 0:
        raise NotImplementedError("it launches no empty grid")
    flat = inputs["q"].dim() == 3
    if flat:
        words = {name: value[None] for name, value in words.items()}
    first = recurrence_says(definition, "v_first", "k_last")
    state = inputs.get("initial_state")
    if state is not None:
        state = (state.transpose(-1, -2) if first else state).float().contiguous()
    if "cu_seqlens" in inputs:
        more["cu_seqlens"] = inputs["cu_seqlens"].long()
    more["scale"] = inputs.get("scale") or None
    kernel = chunk if recurrence_says(definition, "chunk") else recurrent
    output, state = kernel(
        **words, **more, initial_state=state, output_final_state=True
    )
    state = state.transpose(-1, -2) if first else state
    found = (output[0] if flat else output, state)
    return tuple(found[recurrence_is_state(name)] for name in definition["outputs"])


def gla_fla(test, inputs):
    ops = conftest.need("fla.ops.gla", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    inputs = recurrence_parts(definition, inputs)
    words = recurrence_heads(inputs)
    if recurrence_normed(definition, inputs):
        words = recurrence_unit(words)
    words["g"] = recurrence_log_gates(inputs)

    def recurrent(g, **more):
        return ops.fused_recurrent_gla(gk=g, **more)

    return recurrence_call(test, inputs, ops.chunk_gla, recurrent, words)


# definition: "gla_chunk_varlen_h2_d128"
class TestGlaChunkVarlenH2D128:
    OP_TYPE = "gla"
    NAME = "gla_chunk_varlen_h2_d128"
    VARIANT = 4  # of op family gla
    NUM_HEADS = 2
    HEAD_SIZE = 128
    AXES = conftest.constants(
        total_seq_len=None,
        num_seqs=None,
        len_cu_seqlens=None,
        num_heads=NUM_HEADS,
        head_size=HEAD_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", total_seq_len=5, num_seqs=1, len_cu_seqlens=2),
        conftest.size("small", total_seq_len=33, num_seqs=2, len_cu_seqlens=3),
        conftest.size("medium", total_seq_len=226, num_seqs=17, len_cu_seqlens=18),
        conftest.size("large", total_seq_len=16384, num_seqs=8, len_cu_seqlens=9),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # output
            (0.00014095465556387347, 0.01, 1.0),
        ],
        [  # final_state
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gla_fla,)
    TOLERANCE = staticmethod(recurrence_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch

CHUNK = 64


@torch.no_grad()
def run(q, k, v, g, cu_seqlens, initial_state=None):
    # [heads, tokens, dim]
    query, key, value, gate = (x.float().transpose(0, 1) for x in (q, k, v, g))
    query = query * q.shape[-1] ** -0.5

    offsets = cu_seqlens.tolist()
    output = torch.empty_like(value)
    final_state = value.new_zeros(len(offsets) - 1, q.shape[1], q.shape[2], v.shape[2])
    for n, (first, end) in enumerate(zip(offsets, offsets[1:])):
        state = torch.zeros_like(final_state[n]) if initial_state is None else initial_state[n]
        for start in range(first, end, CHUNK):
            part = slice(start, min(start + CHUNK, end))
            total = gate[:, part].cumsum(dim=1)
            # What token i still has of token j; those after it are masked below.
            left = torch.exp((total[:, :, None] - total[:, None]).clamp(max=0))
            scores = torch.einsum("hik,hijk,hjk->hij", query[:, part], left, key[:, part]).tril()
            output[:, part] = scores @ value[:, part] + (query[:, part] * torch.exp(total)) @ state
            last = total[:, -1:]
            added = (torch.exp(last - total) * key[:, part]).transpose(1, 2) @ value[:, part]
            state = torch.exp(last).transpose(1, 2) * state + added
        final_state[n] = state
    return output.transpose(0, 1).to(v.dtype), final_state
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return recurrence_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, recurrence_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: "gla_recurrent_h4_k64_v128"
class TestGlaRecurrentH4K64V128:
    OP_TYPE = "gla"
    NAME = "gla_recurrent_h4_k64_v128"
    VARIANT = 4  # of op family gla
    NUM_HEADS = 4
    KEY_SIZE = 64
    VALUE_SIZE = 128
    AXES = conftest.constants(
        batch_size=None,
        seq_len=None,
        num_heads=NUM_HEADS,
        key_size=KEY_SIZE,
        value_size=VALUE_SIZE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants()
    SIZES = (
        conftest.size("small", batch_size=1, seq_len=3),
        conftest.size("small", batch_size=2, seq_len=16),
        conftest.size("medium", batch_size=1, seq_len=64),
        conftest.size("medium", batch_size=1, seq_len=129),
        conftest.size("medium", batch_size=65, seq_len=1),
        conftest.size("large", batch_size=4, seq_len=2048),
    )
    SCALARS = conftest.constants(
        scale=[0.15625],
    )
    RULES = conftest.rules(
        [  # output
            (0.00017619331945484184, 0.01, 1.0),
        ],
        [  # final_state
            (1.52587890625e-05, 0.000244140625, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (gla_fla,)
    TOLERANCE = staticmethod(recurrence_tolerance)
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(q, k, v, g, scale, initial_state):
    scale = scale or q.shape[-1] ** -0.5
    query, key, value = q.float(), k.float(), v.float()
    decay = torch.exp(g)

    state = initial_state
    output = torch.empty_like(value)
    for t in range(q.shape[1]):
        state = decay[:, t, :, :, None] * state
        state = state + key[:, t, :, :, None] * value[:, t, :, None, :]
        output[:, t] = scale * torch.einsum("bhk,bhkv->bhv", query[:, t], state)
    return output.to(v.dtype), state.clone()
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return recurrence_inputs(conftest.definition_of(cls), axes, device, seed)

    def test_definition_is_unchanged(self):
        conftest.check_definition(self)

    @torch.no_grad()
    def test_output_shape(self, device):
        conftest.check_output_shape(self, device)

    @torch.no_grad()
    def test_output_dtype(self, device):
        conftest.check_output_dtype(self, device)

    @torch.no_grad()
    def test_inputs_are_kept(self, device):
        conftest.check_inputs_are_kept(self, device)

    @pytest.mark.parametrize("case", conftest.cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_numerical_correctness(self, case, device):
        conftest.check_numerical_correctness(self, case, device)

    @torch.no_grad()
    def test_determinism(self, device):
        conftest.check_determinism(self, device)

    @torch.no_grad()
    def test_calls_are_independent(self, device):
        conftest.check_calls_are_independent(self, device)

    @pytest.mark.parametrize(
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, recurrence_edges)
    )
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @pytest.mark.parametrize("name", conftest.truth_names(GROUND_TRUTHS))
    @torch.no_grad()
    def test_against_ground_truth(self, name, case, device):
        conftest.check_against(self, case, name, device)

    @pytest.mark.parametrize("case", conftest.some_cases(SIZES))
    @torch.no_grad()
    def test_ground_truths_agree(self, case, device):
        conftest.check_ground_truths_agree(self, case, device)


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
