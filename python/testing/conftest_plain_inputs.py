"""conftest_plain_inputs - generates inputs if reftest's kernels are not installed. `reftest generate` appends this
file, from its first dashed line on, to conftest.py, which contains the imports. The functions that are called here are
in the other parts of conftest.py."""

# ruff: noqa: F821


# ---- plain inputs ---------------------------------------------------------------------------------------------------


def noise(shape, generator):
    """Returns uniform values in [-1, 1), which are the same on every device."""
    return torch.rand(shape, generator=generator, dtype=torch.float32) * 2 - 1


def split(total, parts, most=None):
    """Divides `total` into parts that are as equal as possible, larger parts first. `most` contains the maximum of each
    part, in descending order. If `total` exceeds the sum of the maximums, the first
    part gets the rest."""
    lengths = [0] * parts
    for i in reversed(range(parts)):
        fits = most and i > 0
        lengths[i] = min(total // (i + 1), most[i]) if fits else total // (i + 1)
        total -= lengths[i]
    return lengths


def offsets(lengths):
    return torch.tensor([0, *lengths]).cumsum(0)


class Plain:
    """Generates valid inputs: random noise for floats, and regular sequences for integers. Which integers are valid
    follows from the role of the input (ROLES of the test class). Raises Unavailable for an input whose role does not
    say which values are valid. These inputs expose fewer mistakes than the inputs that reftest generates."""

    def __init__(self, test, case, scalars, seed, why):
        definition = definition_of(test)
        self.test, self.scalars, self.why = test, scalars, why
        self.place = place_of(test, case)
        self.generator = torch.Generator(device="cpu").manual_seed(seed)
        self.specs = definition["inputs"]
        self.sizes = resolve_axes(definition, case.axes)
        self.names = test.ROLES
        self.roles = {name: role for role, name in self.names.items()}

    def inputs(self, device):
        found = {}
        for name, spec in self.specs.items():
            if spec["shape"] is None:
                found[name] = self.scalar(name)
            else:
                found[name] = self.tensor(name).to(dtype_of(spec)).to(device)
        return found

    def unavailable(self, name):
        if self.test.FAMILY is None:
            return Unavailable(f"the valid values of '{name}' are unknown")
        return Unavailable(
            f"only reftest can generate valid values of '{name}'; install reftest ({self.why})"
        )

    def scalar(self, name):
        rows = self.test.SCALARS.get(name, [])
        if name in self.scalars:
            return self.scalars[name]
        if rows:
            return rows[(self.place or 0) % len(rows)]
        if "float" not in self.specs[name]["dtype"]:
            raise self.unavailable(name)
        return 1.0

    def tensor(self, name):
        role, shape = self.roles.get(name), shape_of(self.specs[name], self.sizes)
        if "float" in self.specs[name]["dtype"]:
            return self.floats(role, noise(shape, self.generator))
        make = getattr(self, f"integers_{role}", None)
        values = None if make is None else make(shape)
        if values is None:
            raise self.unavailable(name)
        return values.expand(shape)

    def floats(self, role, values):
        if role == "probs":
            return values.softmax(-1)
        if role in ("top_p", "min_p"):
            return values.abs()
        if role == "temperature":
            return values.abs() + 0.5
        if "new_state" in self.test.OUTPUT_ROLES:
            # The logarithm of a decay is at most 0.
            if role in ("gate", "gamma"):
                return -values.abs()
            # Keys with a norm above 1 would amplify the state at each token.
            if role == "k":
                return torch.nn.functional.normalize(values, dim=-1)
        return values

    def length(self, role, axis=0):
        return shape_of(self.specs[self.names[role]], self.sizes)[axis]

    def numbers(self, count, limit):
        """Returns `count` numbers: 0, 1, …, limit - 1, and then from 0 again."""
        return torch.arange(count) % max(limit, 1)

    def page_size(self):
        if "cache" not in self.names:
            return self.length("k", 1)
        modes = self.test.MODES
        return self.length("cache", 1 + ("combined" in modes) + ("hnd" in modes))

    def keys(self):
        """Returns the number of keys of each sequence."""
        count = self.length("kv_indptr") - 1
        if "kv_indices" not in self.names:
            return split(self.length("k"), count)
        pages = split(self.length("kv_indices"), count)
        return [self.page_size() * number for number in pages]

    def integers_qo_indptr(self, shape):
        keys = self.keys()
        return offsets(split(self.length("q"), len(keys), keys))

    def integers_kv_indptr(self, shape):
        pages = "kv_indices" if "kv_indices" in self.names else "k"
        return offsets(split(self.length(pages), shape[0] - 1))

    def integers_cu_seqlens(self, shape):
        return offsets(split(self.length("q", -3), shape[0] - 1))

    def integers_indptr(self, shape):
        return offsets(split(self.length("indices"), shape[0] - 1))

    def integers_kv_indices(self, shape):
        return self.numbers(shape[0], self.length("k"))

    def integers_indices(self, shape):
        """Returns page numbers of a cache, or slots of a state pool. No number occurs
        twice."""
        pool = self.length("cache" if "cache" in self.names else "state")
        return torch.arange(shape[0]) if shape[0] <= pool else None

    def integers_last_page_len(self, shape):
        indptr = (
            self.integers_indptr if "indices" in self.names else self.integers_kv_indptr
        )
        pages = indptr((shape[0] + 1,)).diff()
        return torch.where(pages > 0, self.page_size(), 0)

    def appended(self):
        """Returns the sequence and the position of each appended token. Tokens are appended at the end of their
        sequence."""
        sequences = self.length("indptr") - 1
        pages = split(self.length("indices"), sequences)
        room = [self.page_size() * number for number in pages]
        tokens = self.length("append")
        if tokens > sum(room):
            return None
        new = torch.tensor(split(tokens, sequences, room), dtype=torch.int64)
        owner = torch.arange(sequences).repeat_interleave(new)
        rank = torch.arange(tokens) - (new.cumsum(0) - new)[owner]
        return owner, torch.tensor(room, dtype=torch.int64)[owner] - new[owner] + rank

    def integers_batch_indices(self, shape):
        found = self.appended()
        return found and found[0]

    def integers_positions(self, shape):
        if "append" in self.names:
            found = self.appended()
            return found and found[1]
        rows = self.length("cos_sin_cache") if "cos_sin_cache" in self.names else 4096
        return self.numbers(shape[0], rows)

    def integers_sparse(self, shape):
        """Returns the indices of the keys of each query, padded with -1. Each query uses the first keys."""
        keys = self.length("k") * self.length("k", 1)
        chosen = torch.arange(shape[1])
        return torch.where(chosen < keys, chosen, -1)

    def integers_top_k(self, shape):
        return 1 + self.numbers(shape[0], self.length("probs", 1))

    def integers_ids(self, shape):
        """Returns the numbers of the selected experts. Returns None if the definition has no
        input with the weights of these experts: each integer then contains the number of
        an expert and its weight."""
        if "id_weights" not in self.names:
            return None
        first = self.numbers(shape[0], self.length("weights1"))[:, None]
        return (first + torch.arange(shape[1])) % self.length("weights1")

    def integers_mask(self, shape):
        return torch.arange(math.prod(shape)).view(shape) % 2
