#!/bin/sh
# own interpreter: the test changes a package of the interpreter
# The watcher answers `verify --changed` only for definitions that a run without the watcher would take from the cache.
# A definition that imports another package is verified again, because the package may have changed. A definition with
# findings is reported by the run itself, because --strict counts its findings as failures.
. "$(dirname "$0")/../harness.sh"
given tiny_norm
interpreter_with_packages
export REFTEST_PYTHON="$other"
echo 'SCALE = 1.0' >"$site/scales.py"
define imports <<'END'
import torch
import scales

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
    return (y * scales.SCALE).to(torch.bfloat16)
END
define lists <<'END'
import torch

def run(hidden_states, weight):
    x = hidden_states.to(torch.float32)
    y = x * torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + 1e-6) * weight.to(torch.float32)
    return [y.to(torch.bfloat16)]
END
asks() {
	status=0
	step="reftest verify --changed $*"
	REFTEST_TRACE=1 "$reftest" verify --changed --sizes small --device "$device" "$@" >"$work/answer" 2>"$work/trace" \
		</dev/null || status=$?
}
says() { grep -qF -e "$1" "$work/answer" "$work/trace" || fail "$step: missing: '$1' in: $(cat "$work/answer" "$work/trace")"; }

watch
asks
expect_exit 0
says 'ask: the watcher reports 1 definitions as verified and 2 to check'
says '3 definitions: 3 passed'
asks --strict
expect_exit 1
says 'finding: the reference returns its outputs in a list'
echo 'SCALE = 5.0' >"$site/scales.py"
asks
expect_exit 1
says 'FAILED   rmsnorm/imports'
end_watch
