"""watch - measures the time from a save to its verdict: python3 bench/watch.py BUILD [SAVES [DEVICE [PART…]]].

Starts `reftest watch --json` on its own dataset. The parts are:

saves     Simulates an author: changes the computation of a small rmsnorm in place (truncate, write, close), waits for
          the verdict, and repeats this SAVES times (500 by default). Prints the distribution of the times, for several
          pauses between a verdict and the next save. A user needs at least half a second to read a verdict
          and to save again. A pause of 100 ms simulates an editor that saves at every pause in typing. Without a pause,
          the times show how fast runners are created, because each save needs a new runner. On a GPU, each new runner
          creates a CUDA context. On a GPU, the program also simulates bursts: four saves with 100 ms between a verdict
          and the next save, then 2 s without saves. Formatters and fast users save in this way. In the last saves,
          only a comment changes.

peer      Measures the same edits with `entr -r pytest` on the generated test file of the same definition, for
          comparison.

checkout  Changes 1 000 definitions at once by `git checkout`. Measures the time from git's exit to the watcher's plan,
          and the time from git's exit to the last verdict.

bulk      Writes 1 000 files by `cp` and by `sed -i`. Unlike git, cp and sed create no lock file. Counts the batches in
          which the watcher verifies the files, and measures the time from the writer's exit to the last verdict.

walls     Runs two watchers on equal datasets. One of them runs references without namespaces and Landlock, but with
          seccomp and limits. Saves a definition in the two datasets in turn, so that both watchers have the same load.
          Prints the distribution of the times of both watchers, and of their differences.

idle      Measures the memory of a watcher with 10 000 definitions, and compares its start-up time with `git status`.

If no PART is given, all parts except walls run. Three more names stand for pieces of the part `saves`: saves@PAUSE
(PAUSE is in seconds), bursts, and comments.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PAUSES = {"cpu": (0.1, 0), "gpu": (0.5, 0.1, 0)}
WARM = {"cpu": 1, "gpu": 6}  # after this many seconds, the judge, the runner and the spare runners are ready
BURST, BURST_PAUSE, PEACE = 4, 0.1, 2


class Watch:
    """A running `reftest watch` and its events."""

    def __init__(self, build, root, *options, below=()):
        command = [*below, os.path.join(build, "reftest"), "--root", root, "watch", "--json", "--sizes", "small", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.ready = self.until("ready")

    def until(self, event, **fields):
        """Waits for the next event of the kind `event` with `fields`, and returns that event."""
        for line in self.process.stdout:
            said = json.loads(line)
            if said["event"] == event and all(said[key] == value for key, value in fields.items()):
                return said
        raise SystemExit(f"the watcher ended before it said {event}")

    def kilobytes(self):
        """Returns the total resident memory and the private resident memory, in KiB."""
        with open(f"/proc/{self.process.pid}/smaps_rollup") as rows:
            sizes = dict(row.split()[:2] for row in rows if row.split()[0] in ("Rss:", "Private_Dirty:"))
        return int(sizes["Rss:"]), int(sizes["Private_Dirty:"])

    def end(self):
        start = time.monotonic()
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        return time.monotonic() - start


def show(what, seconds, bar=""):
    seconds = sorted(1e3 * s for s in seconds)
    at = lambda part: seconds[min(len(seconds) - 1, int(part * len(seconds)))]
    print(f"{what:58} p50 {at(.5):7.2f} ms  p90 {at(.9):7.2f}  p99 {at(.99):7.2f}  max {seconds[-1]:7.2f}"
          f"  ({len(seconds)}){bar}", flush=True)


def make_tree(root, count):
    subprocess.run([sys.executable, os.path.join(HERE, "tree.py"), root, str(count)], check=True)


def save(path, text):
    with open(path, "w") as out:
        out.write(text)


def saves(watch, path, count, pause, text):
    """Returns the seconds from the end of each save to its verdict. Also returns a text that says how long the saves
    themselves took, because a filesystem may be slow. The function `pause` gets the number of a save and returns the
    pause before this save."""
    took, run, writing = [], 0, []
    for number in range(count):
        time.sleep(pause(number))
        new = text(number)
        start = time.monotonic()
        save(path, new)
        saved = time.monotonic()
        verdict = watch.until("verdict")
        writing.append(saved - start)
        took.append(time.monotonic() - saved)
        run += verdict["cases_run"]
        if verdict["status"] != "passed":
            raise SystemExit(f"save {number}: {verdict}")
    return took, f"  {run} cases run; the save itself {1e3 * sorted(writing)[count // 2]:.1f} ms"


def paces(device, parts):
    """For each way of saving, yields its name and a function. The function gets the number of a save and returns the
    pause before this save."""
    kind = "cpu" if device == "cpu" else "gpu"
    pauses = [float(part[6:]) for part in parts if part.startswith("saves@")] + list(PAUSES[kind] if "saves" in parts else ())
    for pause in pauses:
        yield f"{pause * 1e3:.0f} ms between verdict and save" if pause > 0 else "back to back", lambda n, pause=pause: pause
    if "bursts" in parts or ("saves" in parts and kind == "gpu"):
        yield f"bursts of {BURST}", lambda n: BURST_PAUSE if n % BURST else PEACE


def author(build, count, device, parts):
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, 1)
        path = os.path.join(root, "definitions", "rmsnorm", "rmsnorm_h64_v0.json")
        with open(path) as file:
            original = file.read()
        marker = "x = hidden_states"
        watch = Watch(build, root, "--no-workloads", "--device", device)
        for place, (name, pause) in enumerate(paces(device, parts)):
            time.sleep(WARM["cpu" if device == "cpu" else "gpu"])
            text = lambda n: original.replace(marker, f"k{n}p{place} = 0; {marker}")
            took, run = saves(watch, path, count, pause, text)
            show("save -> verdict, " + name, took, f"{run}; bar: p50 10, p99 40")
        if "saves" in parts or "comments" in parts:
            save(path, original)
            watch.until("verdict")
            comment = lambda n: original.replace("# mean square", f"# {n} mean square")
            took, run = saves(watch, path, count, lambda n: 0.01, comment)
            show("comment-only save -> still verified", took, f"{run}; bar: 3")
        print(f"SIGTERM -> ended: {1e3 * watch.end():.0f} ms")


def walls(build, count, device):
    """Measures pairs of saves. In each pair, one watcher runs with namespaces and Landlock, and the other runs without
    them."""
    with tempfile.TemporaryDirectory() as root:
        restrict = os.path.join(root, "restrict")
        source = os.path.join(HERE, "..", "tests", "e2e", "tools", "restrict.c")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-D_GNU_SOURCE", "-o", restrict, source], check=True)
        ways = {"with all walls": (), "without namespaces and Landlock": (restrict, "--no-namespaces", "--no-landlock")}
        watches, paths, took = {}, {}, {name: [] for name in ways}
        for name, below in ways.items():
            tree = os.path.join(root, name)
            make_tree(tree, 1)
            paths[name] = os.path.join(tree, "definitions", "rmsnorm", "rmsnorm_h64_v0.json")
            watches[name] = Watch(build, tree, "--no-workloads", "--device", device, below=below)
        with open(paths["with all walls"]) as file:
            original = file.read()
        time.sleep(WARM["cpu" if device == "cpu" else "gpu"])
        text = lambda n: original.replace("x = hidden_states", f"k{n} = 0; x = hidden_states")
        for number in range(count):
            for name in list(ways) if number % 2 else reversed(ways):
                one, _ = saves(watches[name], paths[name], 1, lambda n: 0.1, lambda n: text(number))
                took[name] += one
        for name in ways:
            show("save -> verdict, " + name, took[name])
            watches[name].end()
        extra = sorted(1e3 * (a - b) for a, b in zip(*took.values()))
        print("difference of a pair: " + ", ".join(f"p{part} {extra[part * (count - 1) // 100]:.2f} ms" for part in (25, 50, 75, 99)))


def peer(build, device, count=10):
    """Measures the time from a save to pytest's summary under `entr -r pytest`. Each save changes the definition and
    its generated test file."""
    entr = shutil.which("entr")
    if entr is None:
        print("entr -r pytest: not measured, because entr is not installed (apt-get install entr)")
        return
    checkout_root = os.path.dirname(HERE)
    python = os.path.join(checkout_root, ".venv", "bin", "python")
    sites = glob.glob(os.path.join(checkout_root, ".venv-tests", "lib", "python3*", "site-packages"))
    env = {**os.environ, "REFTEST_KERNELS": build, "PYTHONPATH": os.pathsep.join(sites), "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, 1)
        definition = os.path.join(root, "definitions", "rmsnorm", "rmsnorm_h64_v0.json")
        test = os.path.join(root, "tests", "references", "test_rmsnorm.py")
        with open(definition) as file:
            original = file.read()
        texts = []
        for number in range(2):
            save(definition, original.replace("x = hidden_states", f"k{number} = 0; x = hidden_states"))
            subprocess.run([os.path.join(build, "reftest"), "--root", root, "generate"], check=True, stdout=subprocess.DEVNULL)
            with open(definition) as one, open(test) as other:
                texts.append((one.read(), other.read()))
        command = [entr, "-n", "-r", python if os.path.exists(python) else sys.executable, "-m", "pytest", "-q", "-p",
                   "no:cacheprovider", "--device", "cpu" if device == "cpu" else device, test]
        runs = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root, env=env)
        runs.stdin.write(test + "\n")
        runs.stdin.close()

        def summary():
            for line in runs.stdout:
                if " in " in line and line.rstrip().endswith("s"):
                    return line.strip()
            raise SystemExit("entr exited before pytest printed anything")

        said, took = summary(), []
        for number in range(count):
            time.sleep(0.5)
            one, other = texts[number % 2]
            save(definition, one)
            start = time.monotonic()
            save(test, other)
            said = summary()
            took.append(time.monotonic() - start)
            if "passed" not in said or "failed" in said:
                raise SystemExit(f"pytest: {said}")
        runs.terminate()
        runs.wait()
        show("the same save under entr -r pytest -> its summary", took, f"  last: {said}")


def git(root, *words):
    subprocess.run(["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-C", root, *words], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def checked_out(watch, root, branch):
    """Returns two durations in seconds: from the end of `git checkout BRANCH` to the watcher's plan, and to the last
    verdict. Also returns how many definitions the plan has, and how many passed."""
    ended = []
    checks_out = threading.Thread(target=lambda: (git(root, "checkout", "-q", branch), ended.append(time.monotonic())))
    checks_out.start()  # reads in a thread, because the watcher blocks if nobody reads its output
    plan = watch.until("plan")
    planned = time.monotonic()
    batch = watch.until("batch")
    told = time.monotonic()
    checks_out.join()
    time.sleep(0.5)
    return max(0, planned - ended[0]), max(0, told - ended[0]), (plan["definitions"], batch["passed"])


def checkouts(watch, root, branches, count, which):
    planned, told, batches = zip(*(checked_out(watch, root, branch) for branch in branches))
    show(f"git checkout of {count} definitions {which} -> plan", planned, "  bar: 50")
    show(f"git checkout of {count} definitions {which} -> last verdict", told,
         f"  (definitions, passed) of the batches: {sorted(set(batches))}")


def checkout(build, count, device, rounds=10):
    """Measures checkouts of branches in which every definition differs. First checks out each branch once, when the
    cache already has the verdicts but the watcher has not yet seen the contents of the files. Then alternates between
    two branches, whose files the watcher has seen."""
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, count)
        git(root, "init", "-q", "-b", "b0")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "b0")
        verify = [os.path.join(build, "reftest"), "--root", root, "verify", "--no-workloads", "--device", device, "--quiet",
                  "--sizes", "small"]
        subprocess.run(verify, check=True, stdout=subprocess.DEVNULL)
        branches = [f"b{number}" for number in range(rounds + 1)]
        for number, branch in enumerate(branches[1:], 1):
            git(root, "checkout", "-q", "-b", branch)
            for path in glob.glob(os.path.join(root, "definitions", "*", "*.json")):
                with open(path) as file:
                    text = file.read()
                save(path, re.sub(r"1e-6( \+ \d+e-30)?\)", f"1e-6 + {number}e-30)", text))
            git(root, "commit", "-q", "-a", "-m", branch)
            subprocess.run(verify, check=True, stdout=subprocess.DEVNULL)
        watch = Watch(build, root, "--no-workloads", "--device", device)
        checkouts(watch, root, branches[:-1], count, "never seen")
        checkouts(watch, root, branches[:2] * (rounds // 2), count, "seen before")
        watch.end()


# Programs that write many files one by one. Unlike git, they create no lock file. When bulk() measures them, the cache
# already has the verdicts of the contents that they write.
WRITERS = {
    "cp": lambda root, texts: subprocess.run(["cp", "-r", os.path.join(texts, "."), os.path.join(root, "definitions")], check=True),
    "sed -i": lambda root, texts: subprocess.run(
        ["sed", "-i", "s/1\\.0e-6)/1e-6)/", *glob.glob(os.path.join(root, "definitions", "*", "*.json"))], check=True),
}


def bulk(build, count, device, rounds=5):
    """Writes `count` files by cp, and then their old contents by sed -i. Prints the number of batches, and the time
    from the writer's exit to the last verdict."""
    with tempfile.TemporaryDirectory() as work:
        root, texts = os.path.join(work, "root"), os.path.join(work, "texts")
        make_tree(root, count)
        shutil.copytree(os.path.join(root, "definitions"), texts)
        for path in glob.glob(os.path.join(texts, "*", "*.json")):
            with open(path) as file:
                text = file.read()
            save(path, text.replace("1e-6)", "1.0e-6)"))
        watch = Watch(build, root, "--no-workloads", "--device", device)
        took, batches = {how: [] for how in WRITERS}, {how: [] for how in WRITERS}
        for _ in range(rounds + 1):  # the first round only stores the verdicts of both contents, and is not counted
            for how, write in WRITERS.items():
                ended = []
                writer = threading.Thread(target=lambda: (write(root, texts), ended.append(time.monotonic())))
                writer.start()
                names, number = set(), 0
                for line in watch.process.stdout:
                    said = json.loads(line)
                    if said["event"] == "verdict" and said["status"] == "passed":
                        names.add(said["name"])
                        at = time.monotonic()
                    number += said["event"] == "batch"
                    if said["event"] == "batch" and len(names) == count:
                        break
                writer.join()
                took[how].append(max(0, at - ended[0]))
                batches[how].append(number)
                time.sleep(0.5)
        for how in WRITERS:
            show(f"{how} over {count} files -> last verdict", took[how][1:], f"  batches: {sorted(batches[how][1:])}")
        watch.end()


def idle(build, count, device):
    with tempfile.TemporaryDirectory() as root:
        make_tree(root, count)
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "tree")
        Watch(build, root, "--device", device).end()
        time.sleep(3)
        Watch(build, root, "--device", device).end()
        ready, status = [], []
        for _ in range(11):
            start = time.monotonic()
            watch = Watch(build, root, "--device", device)
            ready.append(time.monotonic() - start)
            resident, dirty = watch.kilobytes()
            watch.end()
            start = time.monotonic()
            git(root, "status", "--short")
            status.append(time.monotonic() - start)
        show(f"start -> ready, {count} definitions and nothing stale", ready)
        show("git status in the same tree", status)
        ratio = sorted(ready)[5] / sorted(status)[5]
        print(f"ready / git status, medians: {ratio:.2f} (bar: 1.5)")
        print(f"memory of the watcher with {count} definitions: {resident / 1024:.1f} MiB resident, of which"
              f" {dirty / 1024:.1f} MiB its own (bar: 16)")


def main():
    build = os.path.abspath(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    device = sys.argv[3] if len(sys.argv) > 3 else "cpu"
    parts = sys.argv[4:] or ["saves", "peer", "checkout", "bulk", "idle"]
    print(f"== watch (load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {device})")
    if any(part.partition("@")[0] in ("saves", "bursts", "comments") for part in parts):
        author(build, count, device, parts)
    if "walls" in parts:
        walls(build, count, device)
    if "peer" in parts:
        peer(build, device)
    if "checkout" in parts:
        checkout(build, 1000, device)
    if "bulk" in parts:
        bulk(build, 1000, device)
    if "idle" in parts:
        idle(build, 10000, device)


main()
