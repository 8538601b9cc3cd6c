#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build. A reference may fail to compile, fail to import
# a module, raise an exception, exit, loop, allocate more memory than there is, or return values that its definition
# does not declare. The report has the right reason for each broken reference, and the other definitions are verified.
. "$(dirname "$0")/../harness.sh"
given tiny_gemm
define syntax <<'END'
import torch


def run(hidden_states, weight)
    return hidden_states
END
define syntax_at_run_time <<'END'
def run(hidden_states, weight):
    variance = hidden_states.square().mean(dim=-1, True)
    return hidden_states * variance
END
define missing_import <<'END'
import no_such_module_anywhere


def run(hidden_states, weight):
    return hidden_states
END
define raises <<'END'
def run(hidden_states, weight):
    rows = hidden_states
    raise ValueError("the sentence of the reference")
END
define exits <<'END'
import sys


def run(hidden_states, weight):
    sys.exit(0)
END
define leaves <<'END'
import os


def run(hidden_states, weight):
    os._exit(0)
END
define crashes <<'END'
import os
import signal


def run(hidden_states, weight):
    os.kill(os.getpid(), signal.SIGSEGV)
END
define too_large <<'END'
import torch


def run(hidden_states, weight):
    return torch.empty(1 << 50, dtype=torch.bfloat16)
END
define nothing <<'END'
def run(hidden_states, weight):
    pass
END
define two_outputs <<'END'
def run(hidden_states, weight):
    return hidden_states, weight
END
define no_tensor <<'END'
def run(hidden_states, weight):
    return "a string"
END
define wrong_shape <<'END'
def run(hidden_states, weight):
    return hidden_states[:, :32].clone()
END
define wrong_dtype <<'END'
def run(hidden_states, weight):
    return hidden_states.float()
END
define not_a_number <<'END'
import torch


def run(hidden_states, weight):
    return torch.full_like(hidden_states, float("nan"))
END
define other_arguments <<'END'
def run(x, w):
    return x
END
verify
expect_exit 2
expect_status tiny_gemm passed
# If reftest cannot parse a reference, the definition is invalid, and no process runs the reference. If reftest can
# parse the reference but Python cannot, the case is an error, and the message gives the line.
expect_status syntax invalid
expect "d['syntax']['message'].startswith('definitions/rmsnorm/syntax.json:')"
expect "d['syntax']['message'].endswith(\"the reference is not valid Python at line 4, column 31: expected ':', found the end of the line\")"
expect "all('SyntaxError' in text and '(line 2, column ' in text for text in all_of('syntax_at_run_time', 'message'))"
expect "all(line == 2 for line in all_of('syntax_at_run_time', 'reference_line'))"
for name in syntax_at_run_time missing_import raises exits other_arguments nothing two_outputs no_tensor; do
	expect_status $name error raised
done
for name in leaves crashes; do
	expect_status $name error crashed
	expect "not any(all_of('$name', 'kept'))"
done
expect "d['too_large']['status'] == 'error'"
expect_status wrong_shape failed shape
expect_status wrong_dtype failed dtype
expect_status not_a_number failed nonfinite
expect "all('no_such_module_anywhere' in text for text in all_of('missing_import', 'message'))"
expect "all('the sentence of the reference' in text for text in all_of('raises', 'message'))"
expect "all(line == 3 for line in all_of('raises', 'reference_line'))"
expect "all('signal' in text.lower() or 'SIGSEGV' in text for text in all_of('crashes', 'message'))"

# If the reference itself is at fault, the verdict is stored. If the machine may have caused the failure, nothing is
# stored, and the case runs again in the next run.
verify raises
expect_exit 1
expect_ran 0
verify leaves
expect_exit 1
expect_cached 0

define loops <<'END'
def run(hidden_states, weight):
    while True:
        pass
END
verify --timeout 3 loops tiny_gemm
expect_exit 1
expect_status loops error timeout
expect_status tiny_gemm passed
expect "not any(all_of('loops', 'kept'))"
