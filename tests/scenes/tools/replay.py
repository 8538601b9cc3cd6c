"""replay.py WORKFLOW SOURCE WORKSPACE CACHES BIN - plays a job of a GitHub workflow: its own `run` lines in its own order, with
git for actions/checkout, tar for actions/cache (a folder of archives, newest of a prefix first), nothing for what only
GitHub can do, and an installed reftest in BIN for the step "Build". Exit code: of the first step that failed, after the
steps that say `if: always()`."""

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
environment = dict(os.environ, PATH=programs + ":" + os.environ["PATH"], GITHUB_WORKSPACE=str(workspace))


def fill(text):
    return re.sub(r"\$\{\{ *([^ }]+) *\}\}", lambda m: values[m[1]], text)


def restore(given):
    key = fill(given["key"])
    for prefix in [key, *fill(given["restore-keys"]).split()]:
        found = sorted(
            (f for f in caches.iterdir() if f.name.startswith(prefix)), key=lambda f: f.stat().st_mtime_ns
        )
        if found:
            subprocess.run(["tar", "-xmf", found[-1], "-C", workspace], check=True)  # -m: every mtime is new
            print("# restored", found[-1].name)
            return


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
        sys.exit(f"nobody knows how to play {uses}")
    elif one["name"] != "Build":
        return subprocess.run(["bash", "-e", "-c", fill(one["run"])], cwd=workspace, env=environment).returncode
    return 0


failed = 0
(job,) = yaml.safe_load(pathlib.Path(workflow).read_text())["jobs"].values()
for one in job["steps"]:
    if failed == 0 or one.get("if") == "always()":
        sys.stdout.flush()
        failed = step(one) or failed
sys.exit(failed)
