#!/bin/sh
# Every file that a page or a comment names exists in the tree. Every function that a table of docs/architecture.md
# lists is in the file that the table gives. The check itself is also tested: it must report names that do not exist.
. "$(dirname "$0")/../harness.sh"
cat >"$work/names.py" <<'END'
import itertools
import pathlib
import re
import subprocess
import sys

top = pathlib.Path(sys.argv[1])
tree = [name for name in subprocess.check_output(["git", "-C", top, "ls-files"], text=True).split("\n") if name]
folders = {str(parent) for name in tree for parent in pathlib.PurePath(name).parents}
MODULES = "base bench cache check cli dataset docs engine examples extract git kernels models python remote report repos serve testgen tools watcher workers".split()
METHODS = {"tools/call", "tools/list"}  # of the Model Context Protocol
PATH = re.compile(r"(?<![\w./$-])(?:%s)/[\w./{},*-]*\w[\w/{},*.-]*" % "|".join(MODULES))


def expand(path):
    """The names that a path with "{h,c}" and "*" stands for; none, if it has a placeholder such as {family}."""
    parts = re.split(r"\{([^}]*)\}", path)
    if any("," not in part for part in parts[1::2]):
        return None
    choices = [[part] if at % 2 == 0 else part.split(",") for at, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def exists(name):
    name = name.rstrip("/.")
    if "*" in name:
        return any(pathlib.PurePath(file).match(name) for file in tree)
    return name in tree or name in folders or any(file.startswith(name + ".") for file in tree)


def missing(text):
    for found in PATH.findall(text):
        for name in expand(found.rstrip(".,-")) or []:
            if not exists(name) and name not in METHODS:
                yield name


def misplaced(text):
    """Of "`name` in `file`" in a table: those whose file does not have the name."""
    for name, path in re.findall(r"`(\w+)` (?:of|in) `([\w/.{},]+)`", text):
        files = [file for file in expand(path) or [] if file in tree]
        if files and not any(re.search(r"\b%s\b" % name, (top / file).read_text()) for file in files):
            yield f"{name} in {path}"


if sys.argv[2:]:
    print(*missing(sys.argv[2]), *misplaced(sys.argv[2]), sep="\n")
    sys.exit(0)
wrong = []
for name in tree:
    if name.endswith(".md") and not name.startswith("tests/"):
        text = (top / name).read_text()
        wrong += [f"{name}: {what}" for what in itertools.chain(missing(text), misplaced(text))]
    elif name.endswith((".c", ".h", ".cu", ".cuh")) and not name.startswith("tests/"):
        comments = " ".join(re.findall(r"/\*.*?\*/", (top / name).read_text(), flags=re.S))
        wrong += [f"{name}: {what}" for what in missing(comments)]
print(*wrong, sep="\n")
END
step="the tree"
found=$(python3 "$work/names.py" "$top")
expectations=$((expectations + 1))
[ -z "$found" ] || fail "these do not exist: $found"
step="planted names"
for planted in "see cache/nowhere.h" "see \`rerun_case\` in \`engine/run.c\`" "see engine/{run,nowhere}.c"; do
	expectations=$((expectations + 1))
	[ -n "$(python3 "$work/names.py" "$top" "$planted" | tr -d '\n')" ] || fail "not found: $planted"
done
