#!/bin/sh
# own interpreter: the test starts an interpreter with other packages.
# Torch computes with some packages if they are installed: torch.einsum asks opt_einsum for the order of contractions. A
# verdict counts only with the same versions of these packages with which it was computed.
. "$(dirname "$0")/../harness.sh"
interpreter_with_packages
"$other" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("opt_einsum") is not None)' ||
	skip "opt_einsum is installed"
with() { verify --python "$other" "$@"; }
define norm <<'P'
import torch


def run(hidden_states, weight):
    x = hidden_states.float()
    factor = torch.rsqrt(x.pow(2).mean(-1) + 1e-6)
    return torch.einsum("bh,b,h->bh", x, factor, weight.float()).to(hidden_states.dtype)
P
with
expect_exit 0
with
expect_exit 0
expect_ran 0
installs() { # installs VERSION STATEMENT: installs an opt_einsum whose contract_path executes the statement
	rm -rf "$site"/opt_einsum*
	mkdir "$site/opt_einsum" "$site/opt_einsum-$1.dist-info"
	printf 'Metadata-Version: 2.1\nName: opt_einsum\nVersion: %s\n' "$1" >"$site/opt_einsum-$1.dist-info/METADATA"
	printf 'def contract_path(*operands, **options):\n    %s\n' "$2" >"$site/opt_einsum/__init__.py"
}

# torch.einsum fails with this opt_einsum, so the stored verdict does not count.
installs 1.0 'raise ValueError("planted")'
with
expect_exit 1
expect_cached 0
expect_says planted
expect "all('+packages.' in python for python in all_of('norm', 'python'))"

# Another version changes the order of contractions.
installs 2.0 'return [(1, 2), (0, 1)], None'
with
expect_exit 0
expect_cached 0
with
expect_exit 0
expect_ran 0

# Other packages do not count. Without opt_einsum, the first verdicts count again.
mkdir "$site/unrelated"
with
expect_exit 0
expect_ran 0
rm -rf "$site"/opt_einsum*
with
expect_exit 0
expect_ran 0
