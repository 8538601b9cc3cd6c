"""wheel_hook - adds the results of `make` to a wheel, at the paths that `make install` uses: the program in bin/, the
libraries and the Python files in lib/reftest/, the manual page and the completions in share/.

The program finds its files relative to itself, so an installed wheel works in any virtual environment. The libraries are
copied as they are, because the program accepts only libraries whose digests are compiled into it.

The wheel also contains, in lib/reftest/, the system libraries that not every Linux has (libcjson, liblmdb, libgomp, …).
The program in the wheel looks for these libraries there first. libcurl is not included, because only shared caches need
it, and because it depends on thirty other libraries and on the system's certificates. The platform tag names the oldest
glibc with which all binaries of the wheel work.
"""

import os
import platform
import re
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The libraries that the wheel does not contain: those that PEP 600 expects on every Linux, and libcurl.
EXPECTED = re.compile(
    r"(linux-vdso|ld-linux-[\w-]+|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+|curl))\.so(\.\d+)*"
)
SHARED = {
    "reftest.1": "share/man/man1/reftest.1",
    "completions/reftest.bash": "share/bash-completion/completions/reftest",
    "completions/_reftest": "share/zsh/site-functions/_reftest",
    "completions/reftest.fish": "share/fish/vendor_completions.d/reftest.fish",
}


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(file: Path) -> set[str]:
    """Returns the names of the libraries that a program or library loads directly."""
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-dW", str(file))))


def copyright_file(library: Path) -> Path:
    """Returns the copyright file that Debian installed for a system library."""
    owner = subprocess.run(["dpkg", "-S", str(library)], capture_output=True, text=True).stdout
    terms = Path("/usr/share/doc", owner.partition(":")[0].strip() or "-", "copyright")
    if not terms.exists():
        raise SystemExit(f"wheel: no file says under which terms {library} may be passed on; make the wheel on Debian or Ubuntu")
    return terms


def travelling(files: list[Path]) -> dict[str, Path]:
    """Returns the system libraries that the wheel must contain because these files need them: {name: file}."""
    found: dict[str, Path] = {}
    for file in files:
        places = dict(re.findall(r"(\S+) => (/\S+)", output_of("ldd", str(file))))
        wanted = list(needed(file))
        while wanted:
            name = wanted.pop()
            if EXPECTED.fullmatch(name) or name in found:
                continue
            if name not in places:
                raise SystemExit(f"wheel: {file} needs {name}, which this machine lacks")
            found[name] = Path(places[name]).resolve()
            wanted += needed(found[name])
    return found


def platform_tag(files: list[Path]) -> str:
    """Returns the platform tag manylinux_2_N_ARCH, where glibc 2.N is the newest version that one of these files
    requires."""
    minor = 17
    for file in files:
        found = re.findall(r"Name: GLIBC_2\.(\d+)", output_of("readelf", "-VW", str(file)))
        minor = max([minor, *map(int, found)])
    return f"manylinux_2_{minor}_{platform.machine()}"


class WheelHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict) -> None:
        top = Path(self.root)
        build = top / os.environ.get("REFTEST_BUILD", "build")
        program = build / "wheel/reftest"
        if not program.exists():  # the program exists after `make wheel`, but not after `pip install .`
            subprocess.run(["make", "-C", str(top), "all", str(program.relative_to(top))], check=True)
        libraries = sorted(build.glob("libreftest_*.so"))
        brought = travelling([program, *libraries])
        data = {file: f"lib/reftest/{file.name}" for file in libraries}
        data |= {file: f"lib/reftest/{name}" for name, file in brought.items()}
        terms = {copyright_file(file): f"share/doc/reftest/copyright/{name}" for name, file in brought.items()}
        for file in [*top.glob("python/*.py"), *top.glob("python/libraries/*.py")]:
            data[file] = f"lib/reftest/{file.relative_to(top / 'python')}"
        data |= {build / name: place for name, place in SHARED.items()}
        data[top / "tools/slurm_array.sh"] = "share/reftest/slurm_array.sh"
        build_data["shared_data"] = {str(file): place for file, place in (data | terms).items()}
        build_data["shared_scripts"] = {str(program): "reftest"}
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag([program, *libraries, *brought.values()])}"
