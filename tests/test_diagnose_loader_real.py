"""The simulated loader beside this machine's own processes: what an interpreter maps, and a setuid program."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.diagnose.loader import load
from stackfix.diagnose.records import OpenLibrary, ProcessState, StartProgram
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.ldso import read_loader
from stackfix.inspect.places import Root
from stackfix.inspect.records import LoaderEnvironment
from tests.loader_oracle.elf_writer import write
from tests.loader_oracle.graph import Library
from tests.loader_oracle.observe import machine as bare_machine

pytestmark = pytest.mark.skipif(
    platform.machine() not in {"x86_64", "aarch64"} or platform.libc_ver()[0] != "glibc", reason="needs glibc")
MODULES = ("_ssl", "_sqlite3", "_ctypes", "_lzma", "_bz2", "pyexpat", "_decimal", "_curses", "_hashlib", "zlib")
FOLDER = Path(sysconfig.get_path("stdlib"), "lib-dynload")
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
FOUND = [name for name in MODULES if (FOLDER / f"{name}{SUFFIX}").exists()]
REPORT = ("import importlib, sys; [importlib.import_module(n) for n in sys.argv[1:]]; "
          "print(*{l.split(maxsplit=5)[5].strip() for l in open('/proc/self/maps') if '/' in l}, sep=chr(10))")


def glibc() -> tuple[int, int]:
    major, minor = platform.libc_ver()[1].split(".")[:2]
    return int(major), int(minor)


@pytest.fixture(scope="module")
def environment() -> LoaderEnvironment:
    return LoaderEnvironment(machine=read_loader(Root(), machine=platform.machine(), glibc=glibc()), cwd="/")


def mapped(*modules: str) -> set[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
    done = subprocess.run([sys.executable, "-I", "-S", "-c", REPORT, *modules], capture_output=True, text=True,
                          check=True, timeout=60, env=environ)
    return {line for line in done.stdout.splitlines() if "/locale/" not in line and not line.endswith(".cache")}


def test_a_fresh_interpreter_maps_what_is_simulated(environment: LoaderEnvironment) -> None:
    outcome = load(StartProgram(path=sys.executable), ProcessState(), environment, DiskFiles())
    assert outcome.failure is None
    simulated = {each.real_path for each in outcome.state.objects}
    assert simulated <= mapped()
    assert {path for path in mapped() - simulated if ".so" in path and "lib-dynload" not in path} == set()


@pytest.mark.parametrize("name", FOUND)
def test_an_extension_module_maps_what_is_simulated(name: str, environment: LoaderEnvironment) -> None:
    files = DiskFiles()
    state = load(StartProgram(path=sys.executable), ProcessState(), environment, files).state
    # a module may import others: what they map is opened in the order of the real list
    real = mapped(name)
    for path in sorted(path for path in real if "lib-dynload" in path):
        outcome = load(OpenLibrary(name=path), state, environment, files)
        assert outcome.failure is None
        state = outcome.state
    program = state.objects[0].real_path
    assert {each.real_path for each in state.objects} == {path for path in real if ".so" in path or path == program}


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("gcc"), reason="needs root, to make a program setuid")
def test_a_setuid_program_ignores_the_variables() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        good, bad, program = folder / "good" / "libqq.so", folder / "bad" / "libqq.so", folder / "program"
        for path in (good, bad):
            path.parent.mkdir(mode=0o755)
            path.write_bytes(write(Library(path="", soname="libqq.so")))
        need_library(program, folder)
        own = LoaderEnvironment(machine=bare_machine(), cwd="/", library_path=str(bad.parent))
        for secure, mode in ((False, 0o755), (True, 0o4755)):
            program.chmod(mode)
            outcome = load(StartProgram(path=str(program)), ProcessState(), replace(own, secure=secure), DiskFiles())
            simulated = next((each.real_path for each in outcome.state.objects if "libqq" in each.path), None)
            assert simulated == str((good if secure else bad).resolve())
            assert real_choice(program, bad.parent) == simulated


def need_library(program: Path, folder: Path) -> None:
    """A program that needs libqq.so by DT_RUNPATH, prints its mappings, and is no test of the byte writer."""
    source = """
        #include <stdio.h>
        #include <string.h>
        int main (void)
        {
          char line[4096];
          FILE *maps = fopen ("/proc/self/maps", "r");
          while (maps && fgets (line, sizeof line, maps))
            if (strstr (line, "libqq")) { fputs (strchr (line, '/'), stdout); return 0; }
          return 1;
        }
    """
    (folder / "stub.c").write_text("void unused (void) { }", encoding="utf-8")
    (folder / "main.c").write_text(source, encoding="utf-8")
    stub = folder / "stub.so"
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", str(stub), str(folder / "stub.c"), "-Wl,-soname,libqq.so"],
                   check=True, timeout=60)
    subprocess.run(["gcc", "-o", str(program), str(folder / "main.c"), "-Wl,--no-as-needed", str(stub),
                    "-Wl,--enable-new-dtags", f"-Wl,-rpath,{folder / 'good'}"], check=True, timeout=60)


def real_choice(program: Path, library_path: Path) -> str | None:
    """The libqq.so that the real loader takes, for a user who is not root."""
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=False, cwd="/",
                          env={"LD_LIBRARY_PATH": str(library_path)}, user=65534, group=65534, extra_groups=())
    return done.stdout.strip() or None
