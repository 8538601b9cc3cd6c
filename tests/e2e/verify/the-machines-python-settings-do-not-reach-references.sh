#!/bin/sh
# own interpreter: the test starts interpreters with another torch or other settings.
# sanitizers: tests/run also runs this test with the sanitizers' build.
# Settings for all Python programs of a user (PYTHONPATH, PYTHONSTARTUP, sitecustomize, usercustomize, the user's own
# packages, environment variables that change torch's arithmetic, GPUs beside the CPU) do not affect what a reference
# computes.
. "$(dirname "$0")/../harness.sh"
mkdir -p "$work/path" "$work/base/lib"
export PYTHONPATH="$work/path" PYTHONUSERBASE="$work/base" PYTHONHASHSEED=7 PYTHONOPTIMIZE=2
[ "$device" != cpu ] || export CUDA_VISIBLE_DEVICES=0 # a reference on a CPU sees no GPU
export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1 NVIDIA_TF32_OVERRIDE=1 MKL_CBWR=COMPATIBLE PLANTED=1
user=$("$python" -c 'import site; print(site.getusersitepackages())')
mkdir -p "$user"
# The reference below raises an error if one of the user's files or variables affects its process.
cat >"$work/path/sitecustomize.py" <<'P'
import builtins
builtins.planted = True
P
cp "$work/path/sitecustomize.py" "$work/path/usercustomize.py"
cp "$work/path/sitecustomize.py" "$user/usercustomize.py"
cp "$work/path/sitecustomize.py" "$work/path/helper.py"
cp "$work/path/sitecustomize.py" "$user/helper.py"
define norm <<'P'
import os
import sys
import torch


def run(hidden_states, weight):
    try:
        import helper
        found = "a module"
    except ImportError:
        found = ""
    if "planted" in vars(__builtins__ if not isinstance(__builtins__, dict) else sys.modules["builtins"]):
        found += " a customisation"
    found += " ".join(n for n in os.environ if n.startswith(("PYTHON", "TORCH_", "NVIDIA_TF32", "MKL_", "PLANTED"))
                      and n not in ("PYTHONHASHSEED", "PYTHONUTF8", "MKL_CBWR", "TORCH_DEVICE_BACKEND_AUTOLOAD"))
    if str(hidden_states.device) == "cpu" and os.environ["CUDA_VISIBLE_DEVICES"] != "":
        found += " a GPU"
    if found or sys.flags.optimize or os.environ["PYTHONHASHSEED"] != "0" or os.environ["MKL_CBWR"] != "AUTO":
        raise RuntimeError("reached by: " + found)
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P
verify
expect_exit 0
expect_status norm passed

# Some machines need a library that is loaded before all others (LD_PRELOAD), so references load it, too. Verdicts
# depend on this library, so a verdict that was computed with the library is valid only while the library is loaded.
# The same holds for the folders of libraries (LD_LIBRARY_PATH), whose libraries replace those of the system.
library=$(ldconfig -p | sed -n 's/.*libutil[^ ]* .*=> //p' | head -n 1)
[ -n "$library" ] || skip "there is no library to preload"
define plain <<'P'
import torch


def run(hidden_states, weight):
    x = hidden_states.float()
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(hidden_states.dtype)
P
verify plain
expect_exit 0
verify plain
expect_ran 0
mkdir "$work/libraries" "$work/others"
unset LD_LIBRARY_PATH
verify plain
export LD_LIBRARY_PATH=
verify plain # an empty variable is the same as none
expect_ran 0
export LD_LIBRARY_PATH="$work/libraries"
verify plain
expect_exit 0
expect_cached 0
verify plain
expect_ran 0
export LD_LIBRARY_PATH="$work/others"
verify plain
expect_cached 0
unset LD_LIBRARY_PATH
verify plain
expect_ran 0
case $build in *-asan*) exit 0 ;; esac # a sanitizer must be the first library
export LD_PRELOAD="$library"
verify plain
expect_exit 0
expect_cached 0
verify plain
expect_ran 0
unset LD_PRELOAD
verify plain
expect_ran 0
