#!/bin/sh
# own interpreter: the test starts interpreters with other packages.
# Python runs the code in .pth files of the folders of packages when it starts, so this code may change any function that
# a reference calls. Verdicts that were computed with other code are not accepted. The remembered version of torch is
# not believed if code may find another torch.
. "$(dirname "$0")/../harness.sh"
interpreter_with_packages
with() { verify --python "$other"; }
define norm <<'P'
import math
import torch


def run(hidden_states, weight):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + math.sqrt(1e-12)) * weight.float()).to(hidden_states.dtype)
P
with
expect_exit 0
with
expect_ran 0
expect "not any('pth' in python for python in all_of('norm', 'python'))"

# The code replaces a function that the reference calls.
echo 'import math; math.sqrt = lambda x: 3.0' >"$site/code.pth"
with
expect_exit 1
expect_cached 0
expect "all('+pth.' in python for python in all_of('norm', 'python'))"
with
expect_exit 1
expect_ran 0

# The file is written in place, and its mtime is set back.
time=$(stat -c %y "$site/code.pth")
echo 'import math; math.sqrt = lambda x: x**.5' >"$site/code.pth"
touch -d "$time" "$site/code.pth"
with
expect_exit 0
expect_cached 0

# The code is in a module that the .pth file imports.
echo 'import planted' >"$site/code.pth"
echo '' >"$site/planted.py"
with
expect_exit 0
expect_cached 0
echo 'import math; math.sqrt = lambda x: 3.0' >"$site/planted.py"
with
expect_exit 1
expect_cached 0

# The code imports so many modules that a list of them would be long.
mkdir "$site/many"
for n in $(seq 600); do
	echo '' >"$site/many/module_with_a_long_name_$n.py"
	echo "import many.module_with_a_long_name_$n"
done >"$site/planted.py"
with
expect_exit 0
expect_cached 0

# Code of widespread tools does not count.
rm "$site/code.pth"
with
expect_exit 0
expect_ran 0
echo 'import _virtualenv' >"$site/_virtualenv.pth"
echo '' >"$site/_virtualenv.py"
with
expect_exit 0
expect_ran 0

# A finder of an editable install finds torch. If the finder is written in place, it may find another torch.
finds() { # finds FOLDER: the finder finds all packages in this folder
	cat >"$site/__editable___torch_finder.py" <<P
import sys
from importlib.machinery import PathFinder

MAPPING = {"torch": "$1"}


class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return PathFinder.find_spec(name, ["$1"]) if path is None else None


def install():
    sys.meta_path.append(Finder)
P
}
finds "$packages"
mv "$site/packages.pth" "$work"
echo 'import __editable___torch_finder; __editable___torch_finder.install()' >"$site/__editable__.torch.pth"
with
expect_exit 0
expect_ran 0
with
expect_ran 0
mkdir -p "$work/elsewhere/torch"
echo 'raise ImportError("another torch")' >"$work/elsewhere/torch/__init__.py"
printf "__version__ = '9.9.9'\ncuda = None\n" >"$work/elsewhere/torch/version.py"
finds "$work/elsewhere"
with
expect_cached 0
