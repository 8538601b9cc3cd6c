#!/bin/sh
# own interpreter: the test starts an interpreter with other packages.
# When torch is imported, it runs the plug-ins of other packages (entry points of the group torch.backends). A plug-in may
# change any function of torch. Plug-ins do not run in the processes of references, so they change no verdict, and stored
# verdicts stay valid if a package with a plug-in is installed.
. "$(dirname "$0")/../harness.sh"
interpreter_with_packages
with() { verify --python "$other" "$@"; }
define norm <<'P'
import torch


def run(hidden_states, weight):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P
with
expect_exit 0
mkdir "$site/planted-1.0.dist-info"
printf 'Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n' >"$site/planted-1.0.dist-info/METADATA"
printf '[torch.backends]\nplanted = planted:change\n' >"$site/planted-1.0.dist-info/entry_points.txt"
cat >"$site/planted.py" <<'P'
import torch


def change():
    torch.rsqrt = torch.sqrt
P
"$other" -c 'import torch; assert torch.rsqrt is torch.sqrt' || skip "this torch has no plug-ins"
with
expect_exit 0
expect_ran 0
with --force
expect_exit 0
expect_cached 0

# A user who wants plug-ins in other programs does not get them in references.
export TORCH_DEVICE_BACKEND_AUTOLOAD=1
with --force
expect_exit 0
