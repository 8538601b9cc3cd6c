# Made by `reftest generate`, which leaves this file alone once it has been edited.
# reftest-body: f3ff26b01345897cc4212812472e2b00
"""Tests of definitions/rmsnorm. conftest.py says how they run."""

import pytest
import torch

# isort: split
import conftest


def rmsnorm_inputs(definition, axes, device="cpu", seed=0):
    return {}


# definition: "tiny_norm"
class TestTinyNorm:
    OP_TYPE = "rmsnorm"
    NAME = "tiny_norm"
    SIZES = ()
    GROUND_TRUTHS = ()

    @pytest.mark.parametrize("case", conftest.edge_cases(OP_TYPE, NAME, SIZES))
    @torch.no_grad()
    def test_edge_cases(self, case, device):
        conftest.check_edge_case(self, case, device)


# definition: none
def main():
    return conftest.main(__file__)


if __name__ == "__main__":
    raise SystemExit(main())
