"""hostile_reference.py - reads the references of tests/hostile/references. The head of each reference says what reftest
must report about this reference.

A head is a comment at the beginning of the file: a sentence about what the reference does, then lines "# KEY: VALUE".

- expect: the status and the reason that reftest must report, such as "error raised"; alternatives are separated by "|".
  A status without a reason accepts every reason of this status, and "not passed" accepts every status except "passed".
  A reference whose case may end by a timeout runs in a batch with a short timeout.
- on_cuda: what reftest must report on a CUDA device instead of what "expect" says.
- gap: the reference tries something and then raises an exception whose text begins with "reached" if it succeeded, else
  with "contained". "reached" is allowed only in set-ups in which this gap of docs/containment.md is open. If the gap is
  "none", "reached" is never allowed.
- reached, contained: a verdict, such as "error timeout". These keys are for a reference that may be unable to raise an
  exception after its attempt. The verdict `reached` shows that the attempt succeeded, and the verdict `contained` shows
  that it did not.
- destroys: "run". If this reference succeeded, it would end the whole run of reftest. Therefore the reference does not
  run in set-ups in which its gap is open.
- uses: "processes_named". The content of the file processes_named.py beside this file is added at the end of the
  reference.
- needs: "cuda" (the reference runs only on a CUDA device), or "x86-64" (it uses the numbers of system calls on x86-64).
"""

import dataclasses
import pathlib

FOLDER = pathlib.Path(__file__).parent / "references"
KEYS = {"expect", "on_cuda", "gap", "reached", "contained", "destroys", "needs", "uses"}
STATES = {"passed", "failed", "error", "skipped", "invalid", "checked"}


@dataclasses.dataclass(frozen=True)
class Reference:
    name: str
    about: str
    source: str
    expect: tuple  # the accepted results, each as a text "status reason"
    on_cuda: tuple | None = None
    gap: str | None = None
    reached: str | None = None
    contained: str | None = None
    destroys: str | None = None
    needs: str | None = None
    uses: str | None = None

    @property
    def is_endless(self):
        return any("timeout" in text for text in self.expect)

    def expected(self, device):
        return self.on_cuda if self.on_cuda and device != "cpu" else self.expect

    def accepts(self, status, reason, device):
        expected = self.expected(device)
        if expected == ("not passed",):
            return status != "passed"
        return f"{status} {reason}" in expected or status in expected


def split_head(source):
    """Returns the sentence of a reference's head, and the keys with their values."""
    about, keys = [], {}
    for line in source.splitlines():
        if not line.startswith("# "):
            break
        key, mark, value = line[2:].partition(": ")
        if mark and key in KEYS:
            keys[key] = value
        elif keys:
            raise ValueError(f"{line!r} follows the keys of the head but is none")
        else:
            about.append(line[2:])
    return " ".join(about), keys


def read(path):
    source = path.read_text(encoding="utf-8")
    about, keys = split_head(source)
    if not about or "expect" not in keys:
        raise ValueError(f"{path}: the head has no sentence or no line 'expect'")
    for key in {"expect", "on_cuda"} & keys.keys():
        keys[key] = tuple(text.strip() for text in keys[key].split("|"))
        for text in keys[key]:
            if text != "not passed" and text.split()[0] not in STATES:
                raise ValueError(f"{path}: {text!r} is no status")
    if "uses" in keys:
        source += "\n\n" + (FOLDER.parent / f"{keys['uses']}.py").read_text(encoding="utf-8")
    return Reference(path.stem, about, source, **keys)


def read_all():
    return [read(path) for path in sorted(FOLDER.glob("*.py"))]
