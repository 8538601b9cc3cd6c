# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 2d639420cc9381b6507e0a2e038469e0
"""Tests of definitions/sampling. conftest.py says how they run."""

import conftest


# definition: "min_p_sampling_from_probs_v32000"
class TestMinPSamplingFromProbsV32000(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "min_p_sampling_from_probs_v32000"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
        min_p="min_p",
    )
    OUTPUT_ROLES = conftest.constants(
        output="samples",
    )
    MODES = ("min_p",)
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=768),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("ties", batch_size=192),
        conftest.edge("open_min_p", batch_size=192),
    )
    RULES = conftest.rules(
        None,  # samples: reftest's kernels judge it
    )
    SAMPLES = True
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, min_p):
    largest = probs.amax(dim=-1, keepdim=True)
    kept = torch.where(probs >= min_p[:, None] * largest, probs, 0.0)
    return torch.multinomial(kept, 1).squeeze(-1)
"""


# definition: "sampling_from_probs_v32000"
class TestSamplingFromProbsV32000(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "sampling_from_probs_v32000"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
    )
    OUTPUT_ROLES = conftest.constants(
        output="samples",
    )
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=512),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("ties", batch_size=192),
    )
    RULES = conftest.rules(
        None,  # samples: reftest's kernels judge it
    )
    SAMPLES = True
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs):
    return torch.multinomial(probs, 1).squeeze(-1).to(torch.int32)
"""


# definition: "top_k_renorm_probs_v32000"
class TestTopKRenormProbsV32000(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "top_k_renorm_probs_v32000"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
        top_k="top_k",
    )
    OUTPUT_ROLES = conftest.constants(
        output="renormalised",
    )
    MODES = ("top_k", "renormalise")
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=256),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("open_top_k", batch_size=192),
        conftest.edge("large_top_k", batch_size=192),
    )
    RULES = conftest.rules(
        [  # renormalised
            (1e-10, 1e-05, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_k):
    renormalised = torch.zeros_like(probs)
    for row, out, k in zip(probs, renormalised, top_k.tolist()):
        k = len(row) if k <= 0 else min(k, len(row))
        values, tokens = torch.topk(row, k)
        out[tokens] = values / values.sum()
    return renormalised
"""


# definition: "top_k_sampling_from_probs_v32000"
class TestTopKSamplingFromProbsV32000(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "top_k_sampling_from_probs_v32000"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
        top_k="top_k",
    )
    OUTPUT_ROLES = conftest.constants(
        output="samples",
    )
    MODES = ("top_k",)
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=256),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("ties", batch_size=192),
        conftest.edge("open_top_k", batch_size=192),
        conftest.edge("large_top_k", batch_size=192),
    )
    RULES = conftest.rules(
        None,  # samples: reftest's kernels judge it
    )
    SAMPLES = True
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_k):
    vocab_size = probs.shape[1]
    samples = [torch.empty(0, dtype=torch.int64, device=probs.device)]
    for row, k in zip(probs.float(), top_k.tolist()):
        if k <= 0 or k > vocab_size:
            k = vocab_size
        weights, tokens = torch.topk(row, k)
        drawn = torch.multinomial(weights, 1)
        samples.append(tokens[drawn])
    return torch.cat(samples)
"""


# definition: "top_k_top_p_sampling_from_probs_v128256"
class TestTopKTopPSamplingFromProbsV128256(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "top_k_top_p_sampling_from_probs_v128256"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
        top_k="top_k",
        top_p="top_p",
    )
    OUTPUT_ROLES = conftest.constants(
        output="samples",
    )
    MODES = ("top_k", "top_p")
    VOCAB_SIZE = 128256
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=256),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("ties", batch_size=192),
        conftest.edge("open_top_k", batch_size=192),
        conftest.edge("large_top_k", batch_size=192),
        conftest.edge("open_top_p", batch_size=192),
    )
    RULES = conftest.rules(
        None,  # samples: reftest's kernels judge it
    )
    SAMPLES = True
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_k, top_p):
    vocab_size = probs.shape[1]
    samples = [torch.empty(0, dtype=torch.int64, device=probs.device)]
    for row, k, p in zip(probs.float(), top_k.tolist(), top_p.tolist()):
        if k <= 0 or k > vocab_size:
            k = vocab_size
        weights, tokens = torch.topk(row, k)
        weights = weights / weights.sum()
        before = torch.cumsum(weights, dim=0) - weights
        weights = torch.where(before <= p, weights, 0.0)
        drawn = torch.multinomial(weights, 1)
        samples.append(tokens[drawn])
    return torch.cat(samples)
"""


# definition: "top_p_renorm_probs_v32000"
class TestTopPRenormProbsV32000(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "top_p_renorm_probs_v32000"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
        top_p="top_p",
    )
    OUTPUT_ROLES = conftest.constants(
        output="renormalised",
    )
    MODES = ("top_p", "renormalise")
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=256),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("open_top_p", batch_size=192),
    )
    RULES = conftest.rules(
        [  # renormalised
            (1e-10, 1e-05, 1.0),
        ],
    )
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_p):
    values, tokens = torch.sort(probs, dim=-1, descending=True)
    before = torch.cumsum(values, dim=-1) - values
    values = torch.where(before <= top_p[:, None], values, 0.0)
    kept = torch.zeros_like(probs).scatter(-1, tokens, values)
    return kept / kept.sum(dim=-1, keepdim=True)
"""


# definition: "top_p_sampling_from_probs_v32000"
class TestTopPSamplingFromProbsV32000(conftest.DefinitionTests):
    OP_TYPE = "sampling"
    NAME = "top_p_sampling_from_probs_v32000"
    FAMILY = "sampling"
    ROLES = conftest.constants(
        probs="probs",
        top_p="top_p",
    )
    OUTPUT_ROLES = conftest.constants(
        output="samples",
    )
    MODES = ("top_p",)
    VOCAB_SIZE = 32000
    AXES = conftest.constants(
        batch_size=None,
        vocab_size=VOCAB_SIZE,
    )
    SIZES = (
        conftest.size("small", batch_size=1),
        conftest.size("small", batch_size=65),
        conftest.size("medium", batch_size=256),
        conftest.size("medium", batch_size=257),
        conftest.size("large", batch_size=1024),
    )
    RUNS = ((1, 2, 1), (1, 2, 1), (1, 2), (1,), (1, 2, 1))
    EDGES = (
        conftest.edge("no_rows", batch_size=0),
        conftest.edge("one_row", batch_size=1),
        conftest.edge("certain", batch_size=8),
        conftest.edge("ties", batch_size=192),
        conftest.edge("open_top_p", batch_size=192),
    )
    RULES = conftest.rules(
        None,  # samples: reftest's kernels judge it
    )
    SAMPLES = True
    REFERENCE = """\
import torch


@torch.no_grad()
def run(probs, top_p):
    samples = [torch.empty(0, dtype=torch.int64, device=probs.device)]
    for row, p in zip(probs.float(), top_p.tolist()):
        weights, tokens = torch.sort(row, descending=True)
        before = torch.cumsum(weights, dim=0) - weights
        weights = torch.where(before <= p, weights, 0.0)
        drawn = torch.multinomial(weights, 1)
        samples.append(tokens[drawn])
    return torch.cat(samples)
"""


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
