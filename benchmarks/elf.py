"""The symbol work of `check` beside LIEF, pyelftools and `ldd -r`: reports times and ratios, judges nothing.

    python benchmarks/elf.py                    # extension modules and libraries of this Python, at most 66
    python benchmarks/elf.py --count 500 DIR…   # the first 500 shared objects below the folders
    python benchmarks/elf.py --linear DIR…      # ours alone on 66, 500 and 2,000 of them

Ours is a fresh process that starts the simulated interpreter and binds every undefined symbol, twice:
"each from the start" opens each file from the bare interpreter, which is what `ldd -r` answers in one call over all of
them; "one by one" opens them one after the other in one process, as `check` follows imports.
LIEF and pyelftools: undefined and defined symbols of each file with their versions, nothing bound: the least that any
check over them would need. Rivals that are not installed are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

WAYS = ("each from the start", "one by one")
ROOT = Path(__file__).resolve().parent.parent
OURS = """
import time
begun = time.perf_counter()
import os, resource, sys
from stackfix.diagnose.loader import Simulator
from stackfix.diagnose.records import OpenLibrary, ProcessState, StartProgram
from stackfix.inspect.elf_files import DiskFiles
from stackfix.inspect.ldso import read_loader
from stackfix.inspect.places import Root
from stackfix.inspect.records import LoaderEnvironment
imported = time.perf_counter()
glibc = tuple(int(part) for part in os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2])
machine = read_loader(Root(), machine=os.uname().machine, glibc=glibc)
simulator = Simulator(LoaderEnvironment(machine=machine, cwd="/"), DiskFiles(), keep_going=True)
state = simulator.load(StartProgram(path=os.path.realpath(sys.executable)), ProcessState()).state
started = time.perf_counter()
bound = failures = 0
for path in sys.stdin.read().split("\\n"):
    outcome = simulator.load(OpenLibrary(name=path), state)
    bound, failures = bound + sum(len(each.symbols) for each in outcome.bound), failures + len(outcome.failures)
    state = outcome.attempted if sys.argv[1] == "one by one" else state
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(f"{bound} bound, {failures} missing; imports {imported - begun:.3f} s, start {started - imported:.3f} s, "
      f"files {time.perf_counter() - started:.3f} s; {memory} MB")
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
    """Compare over the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(sysconfig.get_path("stdlib"))])
    parser.add_argument("--count", type=int, default=66)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--linear", action="store_true")
    options = parser.parse_args()
    counts = (66, 500, 2000) if options.linear else (options.count,)
    files = sorted({path for folder in options.folders for path in folder.rglob("*.so*") if is_elf(path)},
                   key=lambda path: -path.stat().st_size)
    if not files:
        print("no shared objects there")
        return 2
    for count in counts:
        compare(files[:count], options.runs, alone=options.linear)
    return 0


def compare(files: list[Path], runs: int, *, alone: bool) -> None:
    """Print a table and one JSON line for these files."""
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB; best of {runs} runs")
    results = {name: timed(name, command, files, runs) for name, command in commands(files).items()
               if not alone or name in WAYS}
    ours = results[WAYS[1]][1]
    print(f"{'':20}    wall  processor")
    for name, (wall, processor, said) in results.items():
        print(f"{name:20} {wall:7.3f} s  {processor:7.3f} s  {processor / ours:6.1f} x  {said}")
    print(json.dumps({name: [round(wall, 4), round(processor, 4)] for name, (wall, processor, _) in results.items()}))


def is_elf(path: Path) -> bool:
    """Whether a plain file begins as ELF files do."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def commands(files: list[Path]) -> dict[str, list[str]]:
    """Each contender's command; the files come on its standard input, one a line."""
    found = {way: [sys.executable, "-c", OURS, way] for way in WAYS}
    for name, module, code in (("LIEF", "lief", LIEF), ("pyelftools", "elftools", PYELFTOOLS)):
        if importlib.util.find_spec(module):
            found[name] = [sys.executable, "-c", code]
    if ldd := shutil.which("ldd"):
        found["ldd -r"] = [ldd, "-r", *map(str, files)]
    return found


def timed(name: str, command: list[str], files: list[Path], runs: int) -> tuple[float, float, str]:
    """Best wall time, best processor time (a busy machine does not change it much), the last line that was printed."""
    wall = processor = float("inf")
    said = ""
    for _ in range(runs):
        start, before = time.perf_counter(), spent()
        done = subprocess.run(command, input="\n".join(map(str, files)), capture_output=True, text=True, check=False,
                              cwd=ROOT)
        wall, processor = min(wall, time.perf_counter() - start), min(processor, spent() - before)
        said = done.stdout.strip().rpartition("\n")[2][:110] if name != "ldd -r" else ""
        if done.returncode and name != "ldd -r":
            said = f"failed: {done.stderr.strip().rpartition(chr(10))[2]}"
    return wall, processor, said


def spent() -> float:
    """Processor seconds of all children so far, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
