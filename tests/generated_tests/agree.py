"""agree.py - compares the verdicts of `reftest verify` with the results of generated tests: python3
tests/generated_tests/agree.py BUILD.

Writes a definition for each entry of the tables below into the working directory. Some of their references are correct,
some are wrong, and some pass with a finding. Each definition must get its expected result both from `reftest verify`
and from its generated test class. The results are "passed", "failed" and "finding", which means that the definition
passes with a finding or a warning. Reftest's own kernels are the only ground truth. Prints the number of definitions,
and each disagreement.
"""

import json
import os
import subprocess
import sys

from hidden_libraries import library_modules

PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
NORM = {
    "op_type": "rmsnorm",
    "description": "A small RMS norm. Epsilon is 1e-6.",
    "axes": {
        "batch_size": {"type": "var"},
        "hidden_size": {"type": "const", "value": 64},
    },
    "inputs": {
        "hidden_states": ROWS,
        "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
    },
    "outputs": {"output": ROWS},
}
NORM_RUN = """import torch

KEPT = {{}}


def run(hidden_states, weight):
    x = hidden_states.float()
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    y = y.to(hidden_states.dtype)
    {change}
    {answer}
"""
# (name, expected result, statements that change `y`, the return statement)
RETURN = "return y"
NORMS = [
    ("right", "passed", "", RETURN),
    ("dictionary", "passed", "", "return {'output': y}"),
    ("truncated", "failed", "x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight.float(); y = (x.view(torch.int32) & -65536).view(torch.float32).to(y.dtype)", RETURN),
    ("other_name", "failed", "", "return {'out': y}"),
    ("two_outputs", "failed", "", "return y, y"),
    ("other_dtype", "failed", "", "return y.float()"),
    ("other_shape", "failed", "", "return y[None]"),
    ("other_device", "failed", "", "return y.to('meta')"),
    ("number", "failed", "", "return 1.0"),
    ("list_of_one", "finding", "", "return [y]"),
    ("wants_grad", "finding", "y.requires_grad_()", RETURN),
    ("put_back", "finding", "hidden_states.neg_().neg_()", RETURN),
    ("writes_a_row", "failed", "hidden_states[-1] += 1", RETURN),
    ("writes_in_one_size", "failed", "hidden_states[1:] += 1", RETURN),
    ("keeps_outputs", "failed", "y = KEPT.setdefault(y.shape, y).clone()", RETURN),
    (
        "keeps_one_row",
        "failed",
        "y = KEPT.setdefault(len(y), y).clone() if len(y) == 1 else y",
        RETURN,
    ),
    (
        "one_buffer",
        "failed",
        "y = KEPT.setdefault(y.shape, torch.empty_like(y)).copy_(y)",
        RETURN,
    ),
    (
        "two_buffers",
        "failed",
        "turn = KEPT['turn'] = KEPT.get('turn', 0) ^ 1; y = KEPT.setdefault((turn, y.shape), torch.empty_like(y)).copy_(y)",
        RETURN,
    ),
    (
        "one_constant",
        "failed",
        "y = KEPT.setdefault('zeros', torch.zeros(()).bfloat16()).expand_as(y)",
        RETURN,
    ),
    (
        "seeded_rows",
        "failed",
        "y = y * (1 + 0.05 * torch.rand(()).bfloat16()) if len(y) > 1 else y",
        RETURN,
    ),
    (
        "counts",
        "failed",
        "KEPT['n'] = KEPT.get('n', 0) + 1; y = y * (1.05 if KEPT['n'] % 3 == 0 else 1)",
        RETURN,
    ),
    (
        "fifth_call",
        "failed",
        "KEPT['n'] = KEPT.get('n', 0) + 1; y = y * (1.05 if KEPT['n'] == 5 else 1)",
        RETURN,
    ),
    ("default_dtype", "failed", "torch.set_default_dtype(torch.float64)", RETURN),
    ("default_device", "failed", "torch.set_default_device('meta')", RETURN),
    ("grad_mode", "failed", "torch.set_grad_enabled(False)", RETURN),
    ("deterministic", "failed", "torch.use_deterministic_algorithms(True)", RETURN),
    ("threads", "failed", "torch.set_num_threads(torch.get_num_threads() + 1)", RETURN),
    ("not_a_number", "failed", "y[0, 0] = float('nan')", RETURN),
]
# CHANGED: (starter definition, name, expected result, the edits [(old text, new text)] of its reference)
IN_PLACE, COPY = (
    "mamba_ssu_decode_gated_h16_d64_s128_ng4",
    "mamba_ssu_decode_h32_d64_s128_ng2",
)
SCALED = "delta_rule_recurrent_qk_l2norm_h4_d64"
SAMPLED = "sampling_from_probs_v32000"
HEADS = "    heads, groups ="
CHANGED = [
    (IN_PLACE, "right", "passed", []),
    (
        IN_PLACE,
        "state_kept",
        "failed",
        [(HEADS, "    state = state.clone()\n" + HEADS)],
    ),
    (
        IN_PLACE,
        "state_partly_written",
        "failed",
        [
            (HEADS, "    given, state = state, state.clone()\n" + HEADS),
            (
                "    return output, state",
                "    given[:, 0] = state[:, 0]\n    return output, state",
            ),
        ],
    ),
    (
        IN_PLACE,
        "other_state_written",
        "failed",
        [
            (
                "    return output, state",
                "    new = state.clone()\n    state[0] += 1\n    return output, new",
            )
        ],
    ),
    (
        IN_PLACE,
        "kept_input_written",
        "failed",
        [("    return output, state", "    D.add_(1)\n    return output, state")],
    ),
    (
        IN_PLACE,
        "gate_needed",
        "failed",
        [("            if z is not None:\n    ", "            if True:\n    ")],
    ),
    (COPY, "right_copy", "passed", []),
    (
        COPY,
        "copy_written",
        "failed",
        [
            (
                "    return torch.where",
                "    state.copy_(new_state)\n    return torch.where",
            )
        ],
    ),
    (SCALED, "right_qk_l2norm", "passed", []),
    (
        SCALED,
        "zero_ignored_qk_l2norm",
        "failed",
        [("    scale = scale or q.shape[-1] ** -0.5\n", "")],
    ),
    (
        SCALED,
        "zero_means_one_qk_l2norm",
        "failed",
        [("scale or q.shape[-1] ** -0.5", "scale or 1.0")],
    ),
    (SAMPLED, "right_samples", "passed", []),
    (
        SAMPLED,
        "own_generator",
        "failed",
        [("probs, 1)", "probs, 1, generator=torch.Generator().manual_seed(3))")],
    ),
]


def starter(name):
    for folder, _, files in os.walk(os.path.join(PROJECT, "definitions")):
        if name + ".json" in files:
            with open(os.path.join(folder, name + ".json")) as file:
                return json.load(file)
    sys.exit(f"agree: there is no definition {name}")


def changed(text, edits):
    for old, new in edits:
        if text.count(old) != 1:
            sys.exit(f"agree: {old!r} does not occur exactly once in the reference")
        text = text.replace(old, new)
    return text


def write(definition):
    folder = os.path.join("definitions", definition["op_type"])
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, definition["name"] + ".json"), "w") as out:
        json.dump(definition, out, indent=1)


def build_dataset():
    """Writes the definitions and returns {name: expected result}."""
    expected = {}
    for name, result, change, answer in NORMS:
        write(
            {
                "name": name,
                **NORM,
                "reference": NORM_RUN.format(change=change or "pass", answer=answer),
            }
        )
        expected[name] = result
    for source, name, result, edits in CHANGED:
        definition = starter(source)
        write(
            {
                **definition,
                "name": name,
                "reference": changed(definition["reference"], edits),
            }
        )
        expected[name] = result
    unknown = {
        "name": "unknown_update",
        **NORM,
        "op_type": "unknown",
        "description": "Rows.",
    }
    write(
        {
            **unknown,
            "reference": NORM_RUN.format(change="hidden_states += 1", answer=RETURN),
        }
    )
    expected["unknown_update"] = "finding"
    return expected


def verdicts(program):
    """Returns {name: result} from `reftest verify`. A definition without an op family is "passed" if no check failed."""
    command = [
        program,
        "--root",
        ".",
        "verify",
        "--format",
        "json",
        "--device",
        "cpu",
        "--ground-truth",
        "builtin",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    found = {}
    for one in json.loads(done.stdout)["definitions"]:
        good = (
            one["status"] == "passed"
            or one["op_type"] == "unknown"
            and one["status"] in ("checked", "skipped")
        )
        noted = any(case.get("findings") for case in one["cases"])
        found[one["name"]] = "failed" if not good else "finding" if noted else "passed"
    return found


class Results:
    """A pytest plugin that collects the result of each class."""

    def __init__(self):
        self.failed, self.noted, self.seen = set(), set(), set()

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.split("::")[1]
        self.seen.add(name)
        if report.failed:
            self.failed.add(name)

    def pytest_warning_recorded(self, warning_message, nodeid):
        if warning_message.category.__name__ == "Finding":
            self.noted.add(nodeid.split("::")[1])

    def of(self, name):
        name = "Test" + "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        if name not in self.seen:
            return "not run"
        return (
            "failed"
            if name in self.failed
            else "finding"
            if name in self.noted
            else "passed"
        )


def test_results(program):
    import pytest

    subprocess.run(
        [program, "--root", ".", "generate"], check=True, stdout=subprocess.DEVNULL
    )
    results = Results()
    # The definition own_generator also runs its medium case. Its small case draws too few random numbers to show that
    # the reference uses a generator of its own.
    words = "not large and not against and not agree and not edge and (not medium or OwnGenerator)"
    pytest.main(
        [
            "-q",
            "-p",
            "no:cacheprovider",
            "--tb=no",
            "--device",
            "cpu",
            "tests/references",
            "-k",
            words,
        ],
        plugins=[results],
    )
    return results


def main():
    program = os.path.join(os.path.abspath(sys.argv[1]), "reftest")
    if os.path.exists("definitions"):
        sys.exit(
            "agree: there are definitions here already; run it in an empty directory"
        )
    # hide the other libraries, so that reftest's kernels are the only ground truth
    sys.modules.update(dict.fromkeys(library_modules()))
    expected = build_dataset()
    verified, results = verdicts(program), test_results(program)
    wrong = [
        f"{name}: expected {result}, verify says {verified[name]}, its generated tests say {results.of(name)}"
        for name, result in expected.items()
        if not result == verified[name] == results.of(name)
    ]
    print(
        f"{len(expected) - len(wrong)} of {len(expected)} definitions get the same result from both",
        *wrong,
        sep="\n  ",
    )
    sys.exit(bool(wrong))


main()
