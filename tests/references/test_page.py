# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: 9ad0158498ec154d7990634974fe3088
"""Tests of definitions/page. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def page_roles(definition):
    """Names: what is appended, the caches, and the tables of integers by the words in their names."""
    specs = definition["inputs"]
    floats = [name for name, spec in specs.items() if "int" not in spec["dtype"]]
    caches = [name for name in floats if "cache" in name]
    tables = {}
    for name in specs:
        if name not in floats:
            words = ("position", "indptr", "last_page", "batch", "indices")
            tables[next((word for word in words if word in name), "indices")] = name
    return [name for name in floats if name not in caches], caches, tables


def page_size_axis(definition):
    """The axis of a cache that is neither pages nor halves nor in what is appended."""
    added, caches, _ = page_roles(definition)
    own = definition["inputs"][added[0]]["shape"]
    shape = definition["inputs"][caches[0]]["shape"][1:]
    return [axis for axis in shape if axis not in own][-1]


def page_inputs(definition, axes, device="cpu", seed=0):
    """Ragged sequences that hold the new tokens at their ends; their pages lie in no order, the last ones partly filled,
    no two share one; the tokens come in no order. No element is zero, so that a vector which lands in another place, or
    does not land, shows."""
    sizes, specs = conftest.resolve_axes(definition, axes), definition["inputs"]
    generator = conftest.generator_of(seed)
    added, caches, tables = page_roles(definition)
    page = sizes[page_size_axis(definition)]
    tokens, batch, entries, pool = (
        conftest.shape_of(specs[name], sizes)[0]
        for name in (added[0], tables["indptr"], tables["indices"], caches[0])
    )
    batch -= 1
    least = min(entries // max(batch, 1), 1)
    extra = torch.randint(
        max(batch, 1), (entries - least * batch,), generator=generator
    )
    pages = extra.bincount(minlength=batch)[:batch] + least
    last = torch.randint(1, page + 1, (batch,), generator=generator)
    if ((pages - 1) * page + last).clamp(min=0).sum() < tokens:
        last = torch.full((batch,), page)
    lengths = ((pages - 1) * page + last).clamp(min=0)
    if lengths.sum() < tokens or entries > pool or (batch == 0 and entries > 0):
        raise conftest.Unavailable(f"{entries} of {pool} pages hold no {tokens} tokens")

    owner = torch.arange(batch).repeat_interleave(lengths)
    owner = (
        owner[torch.randperm(len(owner), generator=generator)[:tokens]].sort().values
    )
    new = owner.bincount(minlength=batch)
    rank = torch.arange(tokens) - (new.cumsum(0) - new)[owner]
    order = torch.randperm(tokens, generator=generator)
    values = {
        "batch": owner[order],
        "position": ((lengths - new)[owner] + rank)[order],
        "indptr": torch.cat([torch.zeros(1), pages.cumsum(0)]),
        "indices": torch.randperm(pool, generator=generator)[:entries],
        "last_page": torch.where(pages > 0, last, 0),
    }
    inputs = {name: values[word] for word, name in tables.items()}
    for name in [*added, *caches]:
        shape = conftest.shape_of(specs[name], sizes)
        values = conftest.noise(shape, torch.float32, "cpu", generator)
        inputs[name] = values + torch.where(values < 0, -1.0, 1.0)
    return {
        name: inputs[name].to(conftest.dtype_of(spec)).to(device)
        for name, spec in specs.items()
    }


def page_edges(definition, axes):
    """No token, and one."""
    token = definition["inputs"][page_roles(definition)[0][0]]["shape"][0]
    return [{**axes, token: count} for count in (0, 1)]


def page_layout(definition):
    """FlashInfer's word for where the heads are."""
    added, caches, _ = page_roles(definition)
    shape = definition["inputs"][caches[0]]["shape"]
    after = shape[shape.index(page_size_axis(definition)) + 1 :]
    heads = definition["inputs"][added[0]]["shape"][1:-1]
    return "NHD" if all(axis in after for axis in heads) else "HND"


def page_outputs(definition, names, caches):
    """Outputs go by the caches' names where they have them, by their places otherwise."""
    named = dict(zip(names, caches, strict=True))
    pairs = zip(definition["outputs"], caches, strict=True)
    return [named.get(name, cache) for name, cache in pairs]


def page_torch(test, inputs):
    """index_put_ of every token's vector at its page and place."""
    definition = conftest.definition_of(test)
    added, caches, tables = page_roles(definition)
    axis = definition["inputs"][caches[0]]["shape"].index(page_size_axis(definition))
    page = inputs[caches[0]].shape[axis]
    owner, position, indptr, indices = (
        inputs[tables[word]].long()
        for word in ("batch", "position", "indptr", "indices")
    )
    pages = indices[indptr[owner] + position // page]
    held = [inputs[name] for name in caches]
    halves = held if len(held) == len(added) else held[0].unbind(1)
    for half, name in zip(halves, added, strict=True):
        places = half if page_layout(definition) == "NHD" else half.transpose(1, 2)
        places.index_put_((pages, position % page), inputs[name])
    return page_outputs(definition, caches, held)


def page_flashinfer(test, inputs):
    page = conftest.need("flashinfer.page", conftest.device_of(inputs))
    definition = conftest.definition_of(test)
    names, caches, tables = page_roles(definition)
    added, held = [inputs[name] for name in names], [inputs[name] for name in caches]
    words = ("batch", "position", "indices", "indptr", "last_page")
    owner, position, *pages = [inputs[tables[word]].int() for word in words]
    if len(owner) == 0:
        raise NotImplementedError("it appends at least one token")
    if added[0].dim() == 2:
        page.append_paged_mla_kv_cache(*added, owner, position, *held, *pages)
    else:
        cache = held[0] if len(held) == 1 else tuple(held)
        layout = page_layout(definition)
        page.append_paged_kv_cache(
            *added, owner, position, cache, *pages, kv_layout=layout
        )
    return page_outputs(definition, caches, held)


# definition: "append_paged_kv_cache_kv8_d128_ps1"
class TestAppendPagedKvCacheKv8D128Ps1:
    OP_TYPE = "page"
    NAME = "append_paged_kv_cache_kv8_d128_ps1"
    VARIANT = 4  # of op family page
    PAGE_SIZE = 1
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz_kv=None,
        num_pages=None,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
        page_size=PAGE_SIZE,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants(
        k_cache="k_cache_out",
        v_cache="v_cache_out",
    )
    SIZES = (
        conftest.size(
            "small",
            nnz_kv=1,
            num_pages=6,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=3,
        ),
        conftest.size(
            "small",
            nnz_kv=17,
            num_pages=45,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=29,
        ),
        conftest.size(
            "medium",
            nnz_kv=333,
            num_pages=765,
            batch_size=321,
            len_indptr=322,
            num_kv_indices=131582,
        ),
        conftest.size(
            "large",
            nnz_kv=16384,
            num_pages=37250,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=24832,
        ),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # k_cache_out
            (0.0, 0.0, 1.0),
        ],
        [  # v_cache_out
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        page_flashinfer,
        page_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(append_key, append_value, batch_indices, positions, k_cache, v_cache, kv_indices, kv_indptr, kv_last_page_len):
    k_out, v_out = k_cache.clone(), v_cache.clone()
    starts = kv_indptr.tolist()
    for token, (sequence, position) in enumerate(zip(batch_indices.tolist(), positions.tolist())):
        if sequence < 0:
            continue
        page = int(kv_indices[starts[sequence] + position])
        k_out[page, 0] = append_key[token]
        v_out[page, 0] = append_value[token]
    return k_out, v_out
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return page_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, page_edges)
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


# definition: "append_paged_kv_cache_kv8_d128_ps16"
class TestAppendPagedKvCacheKv8D128Ps16:
    OP_TYPE = "page"
    NAME = "append_paged_kv_cache_kv8_d128_ps16"
    VARIANT = 4  # of op family page
    PAGE_SIZE = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    AXES = conftest.constants(
        nnz_kv=None,
        num_pages=None,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
        page_size=PAGE_SIZE,
        num_kv_heads=NUM_KV_HEADS,
        head_dim=HEAD_DIM,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants(
        k_cache="k_cache",
        v_cache="v_cache",
    )
    SIZES = (
        conftest.size(
            "small",
            nnz_kv=1,
            num_pages=5,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=2,
        ),
        conftest.size(
            "small",
            nnz_kv=17,
            num_pages=9,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=5,
        ),
        conftest.size(
            "medium",
            nnz_kv=333,
            num_pages=321,
            batch_size=321,
            len_indptr=322,
            num_kv_indices=8406,
        ),
        conftest.size(
            "large",
            nnz_kv=16384,
            num_pages=2690,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=1792,
        ),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # k_cache
            (0.0, 0.0, 1.0),
        ],
        [  # v_cache
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        page_flashinfer,
        page_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(append_key, append_value, batch_indices, positions, k_cache, v_cache, kv_indices, kv_indptr, kv_last_page_len):
    page_size = k_cache.shape[1]
    real = batch_indices >= 0
    if not real.all():
        append_key, append_value = append_key[real], append_value[real]
        batch_indices, positions = batch_indices[real], positions[real]
    rank = kv_indptr[batch_indices] + positions // page_size
    page, place = kv_indices[rank].long(), (positions % page_size).long()
    k_cache[page, place] = append_key
    v_cache[page, place] = append_value
    return k_cache, v_cache
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return page_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, page_edges)
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


# definition: "append_paged_mla_kv_cache_ckv512_kpe64_ps64"
class TestAppendPagedMlaKvCacheCkv512Kpe64Ps64:
    OP_TYPE = "page"
    NAME = "append_paged_mla_kv_cache_ckv512_kpe64_ps64"
    VARIANT = 4  # of op family page
    PAGE_SIZE = 64
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    AXES = conftest.constants(
        nnz_kv=None,
        num_pages=None,
        batch_size=None,
        len_indptr=None,
        num_kv_indices=None,
        page_size=PAGE_SIZE,
        head_dim_ckv=HEAD_DIM_CKV,
        head_dim_kpe=HEAD_DIM_KPE,
    )
    CONSTANTS = conftest.constants()
    LEAVES = conftest.constants(
        ckv_cache="ckv_cache",
        kpe_cache="kpe_cache",
    )
    SIZES = (
        conftest.size(
            "small",
            nnz_kv=1,
            num_pages=5,
            batch_size=1,
            len_indptr=2,
            num_kv_indices=2,
        ),
        conftest.size(
            "small",
            nnz_kv=17,
            num_pages=8,
            batch_size=3,
            len_indptr=4,
            num_kv_indices=4,
        ),
        conftest.size(
            "medium",
            nnz_kv=333,
            num_pages=513,
            batch_size=321,
            len_indptr=322,
            num_kv_indices=2390,
        ),
        conftest.size(
            "large",
            nnz_kv=16384,
            num_pages=962,
            batch_size=256,
            len_indptr=257,
            num_kv_indices=640,
        ),
    )
    SCALARS = conftest.constants()
    RULES = conftest.rules(
        [  # ckv_cache
            (0.0, 0.0, 1.0),
        ],
        [  # kpe_cache
            (0.0, 0.0, 1.0),
        ],
    )
    SAMPLES = False
    GROUND_TRUTHS = (
        page_flashinfer,
        page_torch,
    )
    TOLERANCE = None
    JUDGE = None
    REFERENCE = """\
import torch


@torch.no_grad()
def run(append_ckv, append_kpe, batch_indices, positions, ckv_cache, kpe_cache, kv_indices, kv_indptr, kv_last_page_len):
    page_size = ckv_cache.shape[1]
    real = batch_indices >= 0
    if not real.all():
        append_ckv, append_kpe = append_ckv[real], append_kpe[real]
        batch_indices, positions = batch_indices[real], positions[real]
    pages = kv_indices[kv_indptr[batch_indices] + positions // page_size]
    slots = pages.long() * page_size + positions % page_size
    ckv_cache.view(-1, ckv_cache.shape[-1])[slots] = append_ckv
    kpe_cache.view(-1, kpe_cache.shape[-1])[slots] = append_kpe
    return ckv_cache, kpe_cache
"""

    @classmethod
    def generate_random_inputs(cls, axes, device="cpu", seed=0):
        return page_inputs(conftest.definition_of(cls), axes, device, seed)

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
        "case", conftest.edge_cases(OP_TYPE, NAME, SIZES, page_edges)
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
