#!/bin/sh
# sanitizers: tests/run also runs this test with the sanitizers' build.
# `reftest check` reports each planted fault with its file and line, and reports nothing else. Without a fault, `reftest
# check` exits with 0.
. "$(dirname "$0")/../harness.sh"
given tiny_gemm tiny_norm
cat >"$work/plant.py" <<'END'
"""Each function plants one fault in the working directory, and says what `check` must report."""
import json
import os
import struct

NORM, GEMM = "definitions/rmsnorm/tiny_norm.json", "definitions/gemm/tiny_gemm.json"
LINES = "workloads/rmsnorm/tiny_norm.jsonl"
BLOB = "blob/workloads/rmsnorm/tiny_norm/rows.safetensors"
MINE, THEIRS = "solutions/baseline/rmsnorm/tiny_norm/plain.json", "solutions/ann/rmsnorm/tiny_norm/fast.json"
TRACES = "traces/baseline/rmsnorm/tiny_norm.jsonl"


def put(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def text_of(path):
    return open(path, encoding="utf-8").read()


def edit(path, old, new):
    text = text_of(path)
    assert old in text, (path, old)
    put(path, text.replace(old, new, 1))


def solution(name, author):
    source = "import torch\n\n\ndef run(hidden_states, weight):\n    return hidden_states * weight\n"
    spec = {"language": "python", "target_hardware": ["cpu"], "entry_point": "main.py::run"}
    return {"name": name, "definition": "tiny_norm", "author": author, "spec": spec, "description": "",
            "sources": [{"path": "main.py", "content": source}, {"path": "note.txt", "content": "text"}]}


def workloads():
    return [json.loads(line) for line in text_of(LINES).splitlines()]


def put_lines(path, lines):
    put(path, "".join(json.dumps(line) + "\n" for line in lines))


def traces(name):
    evaluation = {"status": "PASSED", "environment": {"hardware": "cpu"}, "timestamp": "2026-01-01",
                  "correctness": {}, "performance": {}}
    return [{**line, "solution": name, "evaluation": evaluation} for line in workloads()]


def describe(path):
    definition = json.loads(text_of(path))
    definition["description"] = definition.get("description") or "d"
    for group in ("axes", "inputs", "outputs"):
        for item in definition[group].values():
            item["description"] = item.get("description") or "d"
    put(path, json.dumps(definition, indent=2))


def clean():
    for path in NORM, GEMM:
        describe(path)
    for path, name, author in (MINE, "plain", "baseline"), (THEIRS, "fast", "ann"):
        put(path, json.dumps(solution(name, author), indent=1))
    put_lines(TRACES, traces("plain"))
    put_lines("traces/ann/rmsnorm/tiny_norm.jsonl", traces("fast"))


def change_line(path, change):
    lines = [json.loads(line) for line in text_of(path).splitlines()]
    change(lines)
    put_lines(path, lines)


def change_solution(change):
    one = solution("fast", "ann")
    change(one)
    put(THEIRS, json.dumps(one, indent=1))


def header(change):
    whole = open(BLOB, "rb").read()
    length = struct.unpack("<Q", whole[:8])[0]
    parsed = json.loads(whole[8:8 + length])
    change(parsed)
    text = json.dumps(parsed).encode()
    open(BLOB, "wb").write(struct.pack("<Q", len(text)) + text + whole[8 + length:])


def bad_blobs(there):
    """Lets two workloads name tensor files of their own, which are no tensor files or not there."""
    def change(lines):
        one = next(line for line in lines if "safetensors" in json.dumps(line))
        lines[:] = [line for line in lines if line is not one]
        for number in range(2):
            new = json.loads(json.dumps(one).replace("rows.safetensors", f"other{number}.safetensors"))
            lines.append(new)
            if there:
                put(f"blob/workloads/rmsnorm/tiny_norm/other{number}.safetensors", "not a tensor file at all")
        for number, line in enumerate(lines):
            line["workload"]["uuid"] = "u%d" % number

    change_line(LINES, change)


def move(old, new):
    os.makedirs(os.path.dirname(new), exist_ok=True)
    os.rename(old, new)


def first(key, value):
    return lambda lines: lines[0]["workload"].update({key: value})


EVALUATION = lambda key, value: lambda lines: lines[0]["evaluation"].update({key: value})

# name: (function that plants the fault, severity, topic, path, line (0: any, None: none), text of the message)
FAULTS = {
    "schema": (lambda: edit(NORM, '"bfloat16"', '"bfloat17"'), "error", "definition", NORM, 0, "bfloat17"),
    "json": (lambda: edit(NORM, "{", "["), "error", "definition", NORM, 2, "expected"),
    "no_python": (lambda: edit(NORM, "def run(", "def run(("), "error", "definition", NORM, 0, "not valid Python at line 7"),
    "no_such_name": (lambda: edit(NORM, "import torch", "limit = lambda: limits\\nimport torch"), "note", "definition", NORM, 0,
                     "uses 'limits' at line 1, column 17, but does not define this name"),
    "no_run": (lambda: edit(NORM, "def run(", "def walk("), "error", "definition", NORM, 0, "found only walk"),
    "other_name": (lambda: edit(NORM, '"tiny_norm"', '"other_norm"'), "error", "definition", NORM, 2, "other_norm"),
    "other_op_type": (lambda: edit(NORM, '"rmsnorm"', '"layernorm"'), "error", "definition", NORM, 3, "layernorm"),
    "misspelt": (lambda: edit(NORM, '"description"', '"descripton"'), "note", "definition", NORM, 4,
                 'did you mean "description"'),
    "no_description": (lambda: edit(NORM, '"description": "d"', '"description": ""'), "note", "description", NORM, None,
                       "without a description: axis "),
    "no_reads": (lambda: edit(NORM, "{", '{"reads": ["data/table.txt"],'), "error", "definition", NORM, None, "data/table.txt"),
    "too_deep": (lambda: put("definitions/rmsnorm/deep/x.json", "{}"), "error", "layout", "definitions/rmsnorm/deep/x.json",
                 None, "expected definitions/{op_type}/{name}.json"),
    "too_high": (lambda: put("workloads/x.jsonl", ""), "error", "layout", "workloads/x.jsonl", None, "is never read"),
    "stray": (lambda: put("workloads/rmsnorm/x.json", "{}"), "note", "layout", "workloads/rmsnorm/x.json", None, "is never read"),
    "truth_of_none": (lambda: put("truths/rmsnorm/other.py", "def run(x):\n    return x\n"), "error", "layout",
                      "truths/rmsnorm/other.py", None, "there is no definition definitions/rmsnorm/other.json"),
    "truth_no_python": (lambda: put("truths/rmsnorm/tiny_norm.py", "def run(x):\n    return (x\n"), "error", "layout",
                        "truths/rmsnorm/tiny_norm.py", 2, "not valid Python"),
    "truth_no_run": (lambda: put("truths/rmsnorm/tiny_norm.py", "def walk(x):\n    return x\n"), "error", "layout",
                     "truths/rmsnorm/tiny_norm.py", None, "expected a function run"),
    "approval_of_none": (lambda: put("approved/rmsnorm/other.json", "{}"), "error", "layout", "approved/rmsnorm/other.json", None,
                         "there is no definition definitions/rmsnorm/other.json; if you removed the definition, remove this file, too"),
    "approval_edited": (lambda: put("approved/rmsnorm/tiny_norm.json", '{"approval": 1, "digest": "%032x"}' % 7), "error", "layout",
                        "approved/rmsnorm/tiny_norm.json", None, "was changed after `reftest approve` wrote it"),
    "approval_truncated": (lambda: put("approved/rmsnorm/tiny_norm.json", '{"approval": 1,'), "error", "layout",
                           "approved/rmsnorm/tiny_norm.json", 1, "expected"),
    "approval_of_nothing": (lambda: put("approved/rmsnorm/tiny_norm.json", "{}"), "error", "layout",
                            "approved/rmsnorm/tiny_norm.json", None, "expected a file that `reftest approve` wrote"),
    "approval_newer": (lambda: put("approved/rmsnorm/tiny_norm.json", '{"approval": 2}'), "error", "layout",
                       "approved/rmsnorm/tiny_norm.json", None, "version 2 of its format"),
    "approval_stray": (lambda: put("approved/tiny_norm.json", "{}"), "error", "layout", "approved/tiny_norm.json", None,
                       "is never read"),
    "truth_stray": (lambda: put("truths/tiny_norm.py", "def run(x):\n    return x\n"), "error", "layout",
                    "truths/tiny_norm.py", None, "is never read"),
    "two_names": (lambda: put("definitions/norm/tiny_norm.json", text_of(NORM).replace('"rmsnorm"', '"norm"', 1)), "error",
                  "layout", "definitions/rmsnorm/tiny_norm.json", None, "has the same name"),
    "no_workload_file": (lambda: os.remove("workloads/gemm/tiny_gemm.jsonl"), "note", "workload", GEMM, None, "no workload file"),
    "no_workloads": (lambda: put("workloads/gemm/tiny_gemm.jsonl", "\n"), "note", "workload", "workloads/gemm/tiny_gemm.jsonl",
                     None, "no workload"),
    "lost_workloads": (lambda: put("workloads/norm/lost.jsonl", "{}"), "error", "workload", "workloads/norm/lost.jsonl", None,
                       "no definition definitions/norm/lost.json"),
    "wrong_line": (lambda: change_line(LINES, first("axes", {})), "error", "workload", LINES, 1, "batch_size"),
    "empty_axis": (lambda: change_line(LINES, first("axes", {"batch_size": 0})), "note", "workload", LINES, 1,
                   "the axis 'batch_size' is 0"),
    "wrong_input": (lambda: change_line(LINES, first("inputs", {})), "error", "workload", LINES, 1, "hidden_states"),
    "a_trace": (lambda: change_line(LINES, lambda lines: lines[0].update(solution="x")), "error", "workload", LINES, 1, "null"),
    "no_blob": (lambda: os.remove(BLOB), "error", "blob", LINES, 0, "git lfs pull"),
    "pointer": (lambda: put(BLOB, "version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 1\n" % 0), "note", "blob",
                LINES, 0, "git lfs pull"),
    "bad_blob": (lambda: put(BLOB, "not a tensor file, but long enough"), "error", "blob", LINES, 0, "rows.safetensors"),
    "blob_dtype": (lambda: header(lambda h: h["weight"].update(dtype="F16")), "error", "blob", LINES, 0, "needs (64,) bfloat16"),
    "blob_shape": (lambda: header(lambda h: h["weight"].update(shape=[2, 32])), "error", "blob", LINES, 0, "(2, 32)"),
    "blob_sizes": (lambda: header(lambda h: h["hidden_states"].update(shape=[2, 128])), "error", "blob", LINES, 0, "(2, 128)"),
    "bad_blobs": (lambda: bad_blobs(True), "error", "blob", LINES, 0, "other1.safetensors"),
    "missing_blobs": (lambda: bad_blobs(False), "error", "blob", LINES, 0, "; more missing files: 1"),
    "blob_key": (lambda: header(lambda h: h.update(other=h.pop("weight"))), "error", "blob", LINES, 0, 'no tensor "weight"'),
    "solution_field": (lambda: change_solution(lambda s: s.pop("author")), "error", "solution", THEIRS, 0, "author"),
    "solution_author": (lambda: change_solution(lambda s: s.update(author="bob")), "error", "solution", THEIRS, 0, '"ann"'),
    "solution_name": (lambda: change_solution(lambda s: s.update(name="slow")), "error", "solution", THEIRS, 0, '"fast"'),
    "solution_of": (lambda: change_solution(lambda s: s.update(definition="x")), "error", "solution", THEIRS, 0, '"tiny_norm"'),
    "solution_spec": (lambda: change_solution(lambda s: s.update(spec=1)), "error", "solution", THEIRS, 0, "an object"),
    "solution_hardware": (lambda: change_solution(lambda s: s["spec"].update(target_hardware=[])), "error", "solution", THEIRS,
                          0, "a list with a string"),
    "solution_entry": (lambda: change_solution(lambda s: s["spec"].update(entry_point="run")), "error", "solution", THEIRS, 0,
                       "main.py::run"),
    "solution_entry_file": (lambda: change_solution(lambda s: s["spec"].update(entry_point="x.py::run")), "error", "solution",
                            THEIRS, 0, "x.py"),
    "solution_function": (lambda: change_solution(lambda s: s["spec"].update(entry_point="main.py::walk")), "error", "solution",
                          THEIRS, 0, "walk"),
    "solution_empty": (lambda: change_solution(lambda s: s.update(sources=[])), "error", "solution", THEIRS, 0, "source file"),
    "solution_no_text": (lambda: change_solution(lambda s: s["sources"][1].update(content=" \n")), "error", "solution", THEIRS, 0,
                         "not empty"),
    "solution_twice": (lambda: change_solution(lambda s: s["sources"].append(s["sources"][0])), "error", "solution", THEIRS, 0,
                       "each path once"),
    "solution_python": (lambda: change_solution(lambda s: s["sources"][0].update(content="def run(:\n")), "error", "solution",
                        THEIRS, 0, "not valid Python at line 1, column 8"),
    "solution_misspelt": (lambda: change_solution(lambda s: s.update(descripton=s.pop("description"))), "note", "solution", THEIRS,
                          0, 'did you mean "description"'),
    "solution_language": (lambda: change_solution(lambda s: s["spec"].update(language="pyhton")), "note", "solution", THEIRS, 0,
                          'the language "pyhton" is unknown; did you mean "python"?'),
    "solution_languages": (lambda: change_solution(lambda s: s["spec"].update(languages=["triton", "cobol"])), "note", "solution",
                           THEIRS, 0, 'the language "cobol" is unknown'),
    "solution_lost": (lambda: put("solutions/ann/norm/lost/x.json", json.dumps({**solution("x", "ann"), "definition": "lost"})), "error",
                      "solution", "solutions/ann/norm/lost/x.json", None, "no definition definitions/norm/lost.json"),
    "solution_stray": (lambda: put("solutions/x.json", "{}"), "note", "layout", "solutions/x.json", None, "is never read"),
    "trace_stray": (lambda: put("traces/x.jsonl", "{}"), "note", "layout", "traces/x.jsonl", None, "is never read"),
    "trace_lost": (lambda: put("traces/norm/lost.jsonl", ""), "error", "trace", "traces/norm/lost.jsonl", None, "no definition"),
    "trace_line": (lambda: change_line(TRACES, lambda lines: lines[0].pop("evaluation")), "error", "trace", TRACES, 1,
                   "evaluation"),
    "trace_status": (lambda: change_line(TRACES, EVALUATION("status", "FINE")), "error", "trace", TRACES, 1, "TIMEOUT"),
    "trace_measures": (lambda: change_line(TRACES, EVALUATION("performance", None)), "error", "trace", TRACES, 1,
                       "the status is PASSED"),
    "trace_measured": (lambda: change_line(TRACES, EVALUATION("status", "TIMEOUT")), "error", "trace", TRACES, 1,
                       "null, because the status is TIMEOUT"),
    "trace_hardware": (lambda: change_line(TRACES, EVALUATION("environment", {})), "error", "trace", TRACES, 1, "hardware"),
    "trace_uuid": (lambda: change_line(TRACES, first("uuid", "zzz")), "error", "trace", TRACES, 1, "zzz"),
    "trace_solution": (lambda: change_line(TRACES, lambda lines: lines[0].update(solution="lost")), "error", "trace", TRACES, 1,
                       'no solution "lost"'),
    "trace_coverage": (lambda: change_line("traces/ann/rmsnorm/tiny_norm.jsonl", lambda lines: lines.pop()), "note", "trace",
                       "traces/ann/rmsnorm/tiny_norm.jsonl", None, "have no trace"),
    "baseline_solution": (lambda: change_line(TRACES, lambda lines: lines[0].update(solution="fast")), "error", "baseline",
                          TRACES, 1, "not in solutions/baseline/"),
    "baseline_failed": (lambda: change_line(TRACES, lambda lines: lines[0]["evaluation"].update(
        status="RUNTIME_ERROR", correctness=None, performance=None)), "note", "baseline", TRACES, None, "did not pass"),
    "no_baseline": (lambda: (move(MINE, "solutions/bob/rmsnorm/tiny_norm/plain.json"),
                             edit("solutions/bob/rmsnorm/tiny_norm/plain.json", "baseline", "bob"),
                             move(TRACES, "traces/bob/rmsnorm/tiny_norm.jsonl")), "note", "baseline", NORM, None,
                    "no solution in solutions/baseline/"),
    "no_baseline_trace": (lambda: os.remove(TRACES), "note", "baseline", NORM, None, "no traces in traces/baseline/"),
    "two_solutions": (lambda: put("solutions/bob/rmsnorm/tiny_norm/fast.json", json.dumps(solution("fast", "bob"))), "error",
                      "solution", "solutions/bob/rmsnorm/tiny_norm/fast.json", None, "traces identify solutions by name"),
}
END
cat >"$work/each.py" <<'END'
"""Plants each fault in a copy of the dataset, and runs reftest there."""
import json
import os
import shutil
import subprocess
import sys

import plant

reftest, work = sys.argv[1:3]
os.chdir(work + "/dataset")
plant.clean()


def check(folder):
    done = subprocess.run([reftest, "check", "--format", "json"], cwd=folder, capture_output=True, text=True)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


code, report, said = check(".")
assert (code, report["findings"], said) == (0, [], ""), (code, report, said)
assert report["summary"]["solutions"] == 2 and report["summary"]["definitions"] == 2, report
wrong = 0
for name, (fault, severity, topic, path, line, text) in plant.FAULTS.items():
    folder = f"{work}/{name}"
    shutil.copytree(".", folder)
    os.chdir(folder)
    fault()
    code, report, said = check(".")
    os.chdir(work + "/dataset")
    shutil.rmtree(folder)
    found = [f for f in report["findings"] if f["severity"] == severity and f["topic"] == topic and f["path"] == path
             and text in f["message"] and (f["line"] == line if line != 0 else f["line"])]
    others = [f for f in report["findings"] if f not in found and f["severity"] == "error"]
    if name in ("json", "schema", "no_python", "no_run", "other_name", "other_op_type") or severity == "note":
        allowed = []
    else:
        allowed = [f for f in others if f["topic"] in ("trace", "workload", "blob" if name == "bad_blobs" else "trace")]
    expected = 2 if severity == "error" else 0
    if len(found) != 1 or code != expected or [f for f in others if f not in allowed]:
        wrong += 1
        print(f"{name}: exit {code}, {json.dumps(report['findings'], indent=1)} {said}")
print(f"{len(plant.FAULTS)} faults")
sys.exit(wrong > 0)
END
expectations=$((expectations + 1))
PYTHONPATH=$work "$python" -B -S "$work/each.py" "$reftest" "$work" >"$work/out" 2>"$work/err" || fail "not every fault is found"
