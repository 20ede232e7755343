"""The symbol work of `check` beside LIEF, pyelftools and `ldd -r`: reports times and ratios, judges nothing.

    python benchmarks/elf.py                    # extension modules and libraries of this Python, at most 66
    python benchmarks/elf.py --count 500 DIR…   # the first 500 shared objects below the folders

Ours: a fresh process that starts the simulated interpreter, opens each file by path, and binds every undefined symbol.
LIEF and pyelftools: undefined and defined symbols of each file with their versions, nothing bound: the least that any
check over them would need. `ldd -r`: one call over all files. Rivals that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = """
import os, sys
from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import OpenLibrary, ProcessState, StartProgram
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.ldso import read_loader
from stackfix.inspect.places import Root
from stackfix.inspect.records import LoaderEnvironment
glibc = tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2])
machine = read_loader(Root(), machine=os.uname().machine, glibc=glibc)
simulator = Simulator(LoaderEnvironment(machine=machine, cwd="/"), DiskFiles(), keep_going=True)
state = simulator.load(StartProgram(path=os.path.realpath(sys.executable)), ProcessState()).state
bound = failures = 0
for path in sys.stdin.read().split("\\n"):
    outcome = simulator.load(OpenLibrary(name=path), state)
    bound, failures = bound + len(outcome.bindings), failures + len(outcome.failures)
print(bound, "bound,", failures, "missing")
"""
LIEF = """
import sys, lief
count = 0
for path in sys.stdin.read().split("\\n"):
    binary = lief.parse(path)       # without a name for it, LIEF 1.0 frees it under the loop
    for symbol in binary.dynamic_symbols:
        count += len(symbol.name) > 0 and symbol.symbol_version is not None
print(count, "symbols")
"""
PYELFTOOLS = """
import sys
from elftools.elf.elffile import ELFFile
count = 0
for path in sys.stdin.read().split("\\n"):
    with open(path, "rb") as stream:
        elf = ELFFile(stream)
        table, versions = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
        for index, symbol in enumerate(table.iter_symbols()):
            count += len(symbol.name) > 0 and (versions is None or versions.get_symbol(index) is not None)
print(count, "symbols")
"""


def main() -> int:
    """Print a table and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(sysconfig.get_path("stdlib"))])
    parser.add_argument("--count", type=int, default=66)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    files = sorted({path for folder in options.folders for path in folder.rglob("*.so*") if is_elf(path)},
                   key=lambda path: -path.stat().st_size)[:options.count]
    if not files:
        print("no shared objects there")
        return 2
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB; best of {options.runs} runs")
    results = {name: timed(name, command, files, options.runs) for name, command in commands(files).items()}
    for name, (seconds, said) in results.items():
        print(f"{name:12} {seconds:7.3f} s  {seconds / results['stackfix'][0]:6.1f} x  {said}")
    print(json.dumps({name: round(seconds, 4) for name, (seconds, _) in results.items()}))
    return 0


def is_elf(path: Path) -> bool:
    """Whether a plain file begins as ELF files do."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def commands(files: list[Path]) -> dict[str, list[str]]:
    """Each contender's command; the files come on its standard input, one a line."""
    found = {"stackfix": [sys.executable, "-c", OURS]}
    for name, module, code in (("LIEF", "lief", LIEF), ("pyelftools", "elftools", PYELFTOOLS)):
        if importlib.util.find_spec(module):
            found[name] = [sys.executable, "-c", code]
    if ldd := shutil.which("ldd"):
        found["ldd -r"] = [ldd, "-r", *map(str, files)]
    return found


def timed(name: str, command: list[str], files: list[Path], runs: int) -> tuple[float, str]:
    """Best wall time, and the last line that the command printed."""
    best, said = float("inf"), ""
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(command, input="\n".join(map(str, files)), capture_output=True, text=True, check=False,
                              cwd=ROOT)
        best = min(best, time.perf_counter() - start)
        said = done.stdout.strip().rpartition("\n")[2][:60] if name != "ldd -r" else ""
        if done.returncode and name != "ldd -r":
            said = f"failed: {done.stderr.strip().rpartition(chr(10))[2]}"
    return best, said


if __name__ == "__main__":
    sys.exit(main())
