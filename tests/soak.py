"""soak.py - edits a dataset at random while a watcher runs; at the end the watcher's verdicts and generated files must
equal those of a run without a cache:

    python3 tests/soak.py BUILD MINUTES [SEED]

The script saves correct and wrong references, comments and half-written files; deletes, renames, swaps and recreates
definitions; moves whole folders away and back, or replaces them by links; adds and removes workload lines; deletes
generated files. Some edits come in bursts, and some come while a run is in progress. From time to time the edits stop,
and the generated files must equal the output of `generate`. If the script compared the files only at the end, a later
update could hide that the watcher missed an earlier update.

At the end the edits stop, and the script waits until the watcher has finished its work. Then `verify` and `generate`
run on a copy of the tree without a cache. Three results of the watcher must equal those of the copy. The first result
is the watcher's last report on each definition, with the cases that did not pass. The second result is the set of
stored verdicts, each with its constants, figures and worst places. The third result is the generated files, byte for
byte. Definitions that do not parse are repaired before the comparison, because the watcher keeps the last valid test
class of such a definition. The seed is printed first, so that a failure can be repeated.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

REFERENCE = '''import torch


@torch.no_grad()
def run(hidden_states, weight):
    # remark 0
    rows = hidden_states.float()
    normed = rows * torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + EPSILON)
    return (normed * weight.float()).to(hidden_states.dtype)
'''
OPS = ("rmsnorm", "norms", "layers")
REST_EVERY = 15  # seconds between two comparisons


class Tree:
    """A dataset that the script edits and breaks."""

    def __init__(self, root, chance):
        self.root, self.chance, self.number = root, chance, 0
        for op in OPS:
            os.makedirs(self.at("definitions", op))
            os.makedirs(self.at("workloads", op))
        for i in range(18):
            self.write(OPS[i % 3], f"norm_{i}")

    def at(self, *parts):
        return os.path.join(self.root, *parts)

    def text(self, op, name):
        epsilon = self.chance.choice(("1e-6", "1e-6", "1.0e-6", "1e-5", "1e-3"))
        self.number += 1
        reference = REFERENCE.replace("EPSILON", epsilon).replace("remark 0", f"remark {self.number}")
        if self.chance.random() < .1:
            reference = reference.replace("return (", "return torch.nothing(")
        rows = {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}
        return json.dumps({
            "name": name, "op_type": op, "description": "A norm. Epsilon is 1e-6.",
            "axes": {"batch_size": {"type": "var"}, "hidden_size": {"type": "const", "value": self.chance.choice((64, 96))}},
            "inputs": {"hidden_states": rows, "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"}},
            "outputs": {"output": rows}, "reference": reference}, indent=2)

    def path(self, op, name):
        return self.at("definitions", op, name + ".json")

    def write(self, op, name):
        text, path = self.text(op, name), self.path(op, name)
        how = self.chance.randrange(4)
        if how == 0:
            with open(path + ".tmp", "w") as out:
                out.write(text)
            os.rename(path + ".tmp", path)
        elif how == 1:
            with open(path, "w") as out:
                for at in range(0, len(text), 300):
                    out.write(text[at:at + 300])
                    out.flush()
        else:
            with open(path, "w") as out:
                out.write(text)

    def any(self):
        found = [(op, file[:-5]) for op in OPS if os.path.isdir(self.at("definitions", op))
                 for file in os.listdir(self.at("definitions", op)) if file.endswith(".json")]
        return self.chance.choice(sorted(found)) if found else (OPS[0], "norm_0")

    def half(self):
        op, name = self.any()
        with open(self.path(op, name), "w") as out:
            out.write(self.text(op, name)[:self.chance.randrange(400)])

    def rename(self):
        (op, name), other = self.any(), f"norm_{self.chance.randrange(18)}"
        os.rename(self.path(op, name), self.path(op, other))

    def line(self):
        op, name = self.any()
        inputs = {"hidden_states": {"type": "random"}, "weight": {"type": "random"}}
        workload = {"uuid": str(self.number), "axes": {"batch_size": self.chance.randrange(1, 9)}, "inputs": inputs}
        with open(self.at("workloads", op, name + ".jsonl"), self.chance.choice("aw")) as out:
            out.write(json.dumps({"definition": name, "workload": workload, "solution": None, "evaluation": None}) + "\n")

    def no_lines(self):
        folder = self.at("workloads", self.chance.choice(OPS))
        for file in sorted(os.listdir(folder))[:2]:
            os.unlink(os.path.join(folder, file))

    def move_folder(self):
        op = self.chance.choice(OPS)
        folder, away = self.at("definitions", op), self.at(op + "_away")
        if os.path.islink(folder):
            os.unlink(folder)
            os.rename(away, folder)
        elif os.path.isdir(away):
            os.rename(away, folder)
        else:
            os.rename(folder, away)
            if self.chance.random() < .5:
                os.symlink("../" + op + "_away", folder)

    def no_artifact(self):
        os.unlink(self.at("tests", "references", f"test_{self.chance.choice(OPS)}.py"))

    def mend(self, names):
        """Rewrites the named definitions, which do not parse, as complete files. Skips a definition if its folder has
        been moved away."""
        for op, name in (name.split("/") for name in names):
            if os.path.isdir(self.at("definitions", op)):
                with open(self.path(op, name), "w") as out:
                    out.write(self.text(op, name))

    def save(self):
        """Writes one definition, in a folder that has not been moved away."""
        for op in [op for op in OPS if os.path.isdir(self.at("definitions", op))][:1]:
            self.write(op, "norm_0")

    def once(self):
        doing = self.chance.choices(
            (lambda: self.write(*self.any()), lambda: self.write(self.chance.choice(OPS), f"norm_{self.chance.randrange(18)}"),
             self.half, lambda: os.unlink(self.path(*self.any())), self.rename, self.line, self.no_lines, self.move_folder,
             self.no_artifact),
            (6, 12, 3, 2, 1, 3, 1, .3, .5))[0]
        try:
            doing()
        except OSError:
            pass  # the folder or the file is moved away at the moment, so the edit does nothing


def listen(watch, state, heard):
    for line in watch.stdout:
        said = json.loads(line)
        heard[0] = time.monotonic()
        heard.append(line)
        if said["event"] == "verdict":
            state[f"{said['op_type']}/{said['name']}"] = said
        elif said["event"] == "gone":
            state.pop(said["name"], None)


def quiet(heard, seconds):
    while time.monotonic() - heard[0] < seconds:
        time.sleep(.1)


# JSON members that may differ between two runs with the same result, such as the duration, the time, and whether the
# verdict was already stored.
VOLATILE = {"seconds", "time", "cached", "kept", "why", "cases_run", "cases_cached", "batch", "event", "changed"}


def lasting(value):
    """Returns the JSON value without the members that VOLATILE lists."""
    if isinstance(value, dict):
        return {key: lasting(one) for key, one in value.items() if key not in VOLATILE}
    return [lasting(one) for one in value] if isinstance(value, list) else value


def by_name(report):
    return {f"{one['op_type']}/{one['name']}": lasting(one) for one in report["definitions"]}


def last_words(said):
    """Returns the status, the reason and the message, which both a watcher's event and a result of `verify` have, and
    the cases that did not pass."""
    words = {key: said[key] for key in ("status", "reason", "message")}
    words["cases"] = [lasting(case) for case in said["cases"] if case["status"] != "passed"]
    return words


def differing(one, other):
    return {name: (one.get(name), other.get(name)) for name in {*one, *other} if one.get(name) != other.get(name)}


def files_in(folder):
    found = {}
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = file.read()
    return found


def run_json(command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def copy_of(tree, to):
    """Copies the tree without its cache and its generated files. Folders that are moved away are also copied, because
    links may lead to them."""
    shutil.copytree(tree.root, to, symlinks=True, ignore=shutil.ignore_patterns(".reftest", "tests"))
    return to


def compare(build, tree, work, state, options):
    """Returns the expected results, and {kind of result: definitions whose results differ from the expected ones}."""
    binary = os.path.join(build, "reftest")
    cold_root = copy_of(tree, os.path.join(work, "cold"))
    cold = by_name(run_json([binary, "--root", cold_root, "verify", "--format", "json", *options]))
    kept = by_name(run_json([binary, "--root", tree.root, "verify", "--cached-only", "--format", "json", *options]))
    reported = {name: last_words(said) for name, said in state.items()}
    return cold, {"reported": differing(reported, {name: last_words(said) for name, said in cold.items()}),
                  "stored": differing(kept, cold)}


def compare_files(build, tree, work):
    cold_root = os.path.join(work, "generated")
    shutil.rmtree(cold_root, ignore_errors=True)
    copy_of(tree, cold_root)
    subprocess.run([os.path.join(build, "reftest"), "--root", cold_root, "generate"], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    cold = files_in(os.path.join(cold_root, "tests", "references"))
    return len(cold), sorted(differing(files_in(tree.at("tests", "references")), cold))


def rest(build, tree, work, state, heard):
    """Waits until the watcher is idle, and repairs definitions that do not parse. Returns the number of generated
    files, and the names of the files that differ from the output of `generate`. If a generated file is deleted, the
    watcher checks all generated files again, which could hide that it missed an earlier update. Therefore the last edit
    before the comparison is always the save of a definition."""
    for patience in (2, 6):  # the second attempt waits longer, because a long run may print nothing for a while
        quiet(heard, patience)
        tree.mend([name for name, said in dict(state).items() if said["status"] == "invalid"])
        quiet(heard, patience)
        tree.save()
        quiet(heard, patience)
        count, wrong = compare_files(build, tree, work)
        if not wrong:
            break
    return count, wrong


def main():
    build, minutes = os.path.abspath(sys.argv[1]), float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    print(f"soak: seed {seed}, {minutes:g} minutes", flush=True)
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as work:
        tree = Tree(os.path.join(work, "tree"), chance)
        command = [os.path.join(build, "reftest"), "--root", tree.root]
        options = ["--sizes", "small", "--device", "cpu"]
        subprocess.run([*command, "generate"], stdout=subprocess.DEVNULL, check=True)
        watch = subprocess.Popen([*command, "watch", "--json", *options], stdout=subprocess.PIPE, text=True)
        state, heard, edits = {}, [time.monotonic()], 0
        thread = threading.Thread(target=listen, args=(watch, state, heard))
        thread.start()
        end = time.monotonic() + 60 * minutes
        pause, resting = time.monotonic() + REST_EVERY, []
        while time.monotonic() < end and watch.poll() is None:
            if time.monotonic() > pause:
                resting += rest(build, tree, work, state, heard)[1]
                pause = time.monotonic() + REST_EVERY
            for _ in range(chance.choice((1, 1, 1, 2, 20))):
                tree.once()
                edits += 1
            time.sleep(chance.choice((0, .01, .1, .5)))
        quiet(heard, 5)
        cold, wrong = compare(build, tree, work, state, options)
        files, wrong["files"] = rest(build, tree, work, state, heard)
        wrong["files at rest"] = resting
        watch.terminate()
        thread.join()
        watch.wait()
        events = len(heard) - 1
        print(f"soak: {edits} edits, {events} events, {len(cold)} definitions:"
              f" {sorted(one['status'] for one in cold.values())}; {files} generated files")
        if any(wrong.values()) or watch.returncode != 130 or events < edits / 10 or files == 0:
            with open("soak.log", "w") as out:
                out.writelines(heard[1:])
            sys.exit(f"soak: FAILED: (watch, cold run) of {wrong}, watch ended with {watch.returncode};"
                     " its events are in soak.log")
        print("soak: the watcher's last reports, its verdicts and its generated files are those of a run without a cache")


main()
