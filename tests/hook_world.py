"""Interpreters of this machine, and small environments in which a package needs the right one of two libraries.

faketorch/_C.abi3.so -> libsparse.so.1 (RUNPATH) -> libjit.so.1 (RUNPATH, which LD_LIBRARY_PATH beats)
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackfix.plan.records import SetAside, WriteFile

MINORS = ("3.10", "3.11", "3.12", "3.13")
GOOD = "fakelibs/jit/lib/libjit.so.1"
LIBRARIES = {"faketorch": (GOOD, "fakelibs/sparse/lib/libsparse.so.1")}
ASK = "import sys, _ctypes, venv; print(sys.executable if '%d.%d' % sys.version_info[:2] == sys.argv[1] else '')"
# What <Python.h> would say, spelled out: no headers are needed, and one file serves all minors
EXTENSION = """
extern int sparse_run(void);
extern void *PyModule_Create2(void *, int);
static struct { long head[5]; const char *name, *doc; long size; void *rest[5]; } definition = {{1}, "_C", 0, -1, {0}};
void *PyInit_NAME(void) { return sparse_run() == 42 ? PyModule_Create2(&definition, 1013) : 0; }
"""
MAPS = "with open('/proc/self/maps') as maps: maps = maps.read()\n"


@functools.cache
def interpreter(minor: str) -> str | None:
    """A CPython of that minor that has ctypes and venv: from PATH, else from pyenv's folder."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    beside = sorted(root.glob(f"versions/{minor}.*/bin/python"))
    for name in (shutil.which(f"python{minor}"), *map(str, beside)):
        done = subprocess.run([name, "-I", "-c", ASK, minor], capture_output=True, text=True, check=False,
                              timeout=60) if name else None
        if done and done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip()
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A venv with the fake stack, and the folder that shadows its library."""

    prefix: Path
    hostile: Path
    minor: str

    @property
    def site(self) -> Path:
        return self.prefix / "lib" / f"python{self.minor}" / "site-packages"

    @property
    def place(self) -> str:
        return str(self.site.relative_to(self.prefix))

    def run(self, code: str, *options: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """A program in the environment, with the hostile variable and nothing else."""
        environ = {"LD_LIBRARY_PATH": str(self.hostile), "PATH": os.defpath, **(env or {})}
        return subprocess.run([str(self.prefix / "bin" / "python"), *options, "-c", code], env=environ, check=False,
                              cwd=self.prefix, capture_output=True, text=True, timeout=120)

    def says(self, code: str, *options: str, env: Mapping[str, str] | None = None) -> str:
        """What the program prints; it must succeed and complain of nothing."""
        done = self.run(code, *options, env=env)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout.strip()


def write(prefix: Path, steps: Sequence[WriteFile | SetAside]) -> None:
    """The files of the steps, as a repair would leave them."""
    for step in steps:
        path = prefix / step.path
        if isinstance(step, WriteFile):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(step.text, encoding="utf-8", newline="")
            path.chmod(step.mode)
        else:
            path.unlink()


def compile_stack(folder: Path) -> None:
    """The libraries and the package, laid out as in a site folder; the bad library in `hostile`."""
    jit, sparse = folder / "fakelibs" / "jit" / "lib", folder / "fakelibs" / "sparse" / "lib"
    for each in (jit, sparse, folder / "faketorch", folder / "hostile"):
        each.mkdir(parents=True)
    gcc(jit / "libjit.so.1", "int jit_new(void) { return 42; }")
    gcc(folder / "hostile" / "libjit.so.1", "int jit_old(void) { return 1; }")
    gcc(sparse / "libsparse.so.1", "extern int jit_new(void); int sparse_run(void) { return jit_new(); }",
        str(jit / "libjit.so.1"), "-Wl,-rpath,$ORIGIN/../../jit/lib", "-Wl,--enable-new-dtags")
    for name, place in (("_C", "faketorch/_C.abi3.so"), ("fakesingle", "fakesingle.abi3.so")):
        up = "$ORIGIN/../" if "/" in place else "$ORIGIN/"
        gcc(folder / place, EXTENSION.replace("NAME", name), str(sparse / "libsparse.so.1"),
            f"-Wl,-rpath,{up}fakelibs/sparse/lib", "-Wl,--enable-new-dtags")
    (folder / "faketorch" / "__init__.py").write_text("from faketorch import _C\n")
    (folder / "faketorch" / "words.txt").write_text("some words")


def gcc(target: Path, source: str, *more: str) -> None:
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", "-shared", "-fPIC", f"-Wl,-soname,{target.name}",
                    "-o", str(target), "-Wl,--no-as-needed", *more], input=source, text=True, check=True, timeout=120)


def make_world(minor: str, stack: Path, prefix: Path) -> World:
    """A venv that has the stack in its site folder. Raises LookupError where there is no such Python."""
    python = interpreter(minor)
    if python is None:
        raise LookupError(minor)
    subprocess.run([python, "-m", "venv", "--without-pip", str(prefix)], check=True, timeout=120)
    made = World(prefix=prefix, hostile=prefix / "hostile", minor=minor)
    shutil.copytree(stack, made.site, dirs_exist_ok=True)
    shutil.move(made.site / "hostile", made.hostile)
    return made
