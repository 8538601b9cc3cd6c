"""replay.py WORKFLOW SOURCE WORKSPACE CACHES PROGRAMS - runs a job of a GitHub workflow on this machine.

Executes the job's `run` lines in their order, each with the shell that GitHub would use. Replaces actions/checkout by
git, and actions/cache by tar: CACHES is a folder of archives. To restore a cache, takes the newest archive whose name
begins with the key. If there is none, takes the newest archive whose name begins with the first of restore-keys that
matches an archive. For actions/upload-artifact, only checks that the path exists. Any other action is an error. Values
that a step writes to $GITHUB_PATH and $GITHUB_ENV apply to the later steps. PROGRAMS is a folder of replacements for
programs that would run for minutes. WORKFLOW is a YAML file, or a Markdown file with exactly one YAML block that uses
actions/checkout. After a step that failed, only steps with `if: always()` run. Exit status: that of the last step that
failed, or 0."""

import os
import pathlib
import re
import subprocess
import sys

import yaml

workflow, source, workspace, caches, programs = sys.argv[1:]
caches, workspace = pathlib.Path(caches), pathlib.Path(workspace)
caches.mkdir(exist_ok=True)
run_id = str(len(list(caches.iterdir())) + 1)
values = {
    "github.ref_name": "main",
    "github.run_id": run_id,
    "github.run_attempt": "1",
    "github.event.repository.default_branch": "main",
}
said = {name: workspace.with_name(workspace.name + "." + name) for name in ("GITHUB_PATH", "GITHUB_ENV")}
environment = dict(
    os.environ,
    PATH=programs + ":" + os.environ["PATH"],
    GITHUB_WORKSPACE=str(workspace),
    **{name: str(path) for name, path in said.items()},
)


def fill(text):
    return re.sub(r"\$\{\{ *([^ }]+) *\}\}", lambda m: values[m[1]], text)


def restore(given):
    key = fill(given["key"])
    for prefix in [key, *fill(given["restore-keys"]).split()]:
        found = sorted(
            (f for f in caches.iterdir() if f.name.startswith(prefix)), key=lambda f: f.stat().st_mtime_ns
        )
        if found:
            subprocess.run(["tar", "-xmf", found[-1], "-C", workspace], check=True)  # -m gives every file a new mtime
            print("# restored", found[-1].name)
            return


def run(lines):
    for path in said.values():
        path.write_text("")
    code = subprocess.run(["bash", "-e", "-c", fill(lines)], cwd=workspace, env=environment).returncode
    for folder in said["GITHUB_PATH"].read_text().splitlines():
        environment["PATH"] = folder + ":" + environment["PATH"]
    for line in said["GITHUB_ENV"].read_text().splitlines():
        name, _, value = line.partition("=")
        environment[name] = value
    return code


def step(one):
    uses = one.get("uses", "").partition("@")[0]
    given = one.get("with", {})
    if uses == "actions/checkout":
        subprocess.run(["git", "clone", "-q", source, workspace], check=True)
    elif uses == "actions/cache/restore":
        restore(given)
    elif uses == "actions/cache/save":
        subprocess.run(["tar", "-cf", caches / fill(given["key"]), "-C", workspace, given["path"]], check=True)
        print("# saved", fill(given["key"]))
    elif uses == "actions/upload-artifact":
        assert (workspace / given["path"]).exists()
    elif uses:
        sys.exit(f"the action {uses} cannot be replayed")
    else:
        return run(one["run"])
    return 0


def steps_of(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        (job,) = yaml.safe_load(text)["jobs"].values()
        return job["steps"]
    (block,) = [b for b in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S) if "actions/checkout" in b]
    return yaml.safe_load(block)


failed = 0
for one in steps_of(pathlib.Path(workflow)):
    if failed == 0 or one.get("if") == "always()":
        sys.stdout.flush()
        failed = step(one) or failed
sys.exit(failed)
