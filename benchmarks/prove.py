"""The proof of one stack from known tables, beside tools that need it installed: reports times, judges nothing.

    python benchmarks/prove.py                              # torch 2.3.1 from the almanac that ships
    python benchmarks/prove.py --cache DIR                  # and from a cache that `lock --prove` has filled with it
    python benchmarks/prove.py --installed PREFIX --lief PYTHON     # beside `ldd -r` and LIEF over that installation

Ours is a fresh process each time, in parts: its imports; the tables of every wheel, with the symbols of every
library; the matrix; the simulated imports in a clean environment; and in all those that are tried beside it. The wheels
are those that the release's own metadata pins. Parts are in seconds of the processor, which a busy machine does not
change much.
Rivals read the same libraries where they are installed: `ldd -r` binds the symbols of each, and knows nothing of the
order in which an import opens them; LIEF reads the symbols and binds nothing.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = """
from time import process_time as now
begun = now()
import re, sys
from pathlib import Path
from stackfix.cli.check import rare_collections
from stackfix.cli.lock_prove_stack import prepare
from stackfix.prove.prove import Prover, Subject
from stackfix.prove.surroundings import Locked, lay
from stackfix.resolve.records import Target
from stackfix.tables.source import open_tables
imported = now()
rare = rare_collections()           # as the command has it
rare.__enter__()
cache, version, exactly = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "cache"
source = open_tables(cache, sys.exit, offline=True)
torch = next(each for each in source.shipped("torch") if each.version == version)
requires = source.known([torch])[torch.sha256].project.requires
pins = dict(re.findall(r"([a-z][a-z0-9-]+) ?[(]?==([0-9.]+)", chr(10).join(requires)))
wheels = [torch, *(each for name, pin in pins.items() for each in source.shipped(name) if each.version == pin)]
wheels += [each for each in source.shipped("nvidia-nvjitlink-cu12") if each.version == "12.1.105" == pins.get(
    "nvidia-cuda-runtime-cu12") and "nvidia-nvjitlink-cu12" not in pins]
ready = now()
source = open_tables(cache, sys.exit, offline=True)
tables = source.known(wheels, exactly=exactly)
if len(tables) < len(wheels):
    sys.exit("not all of its wheels are there")
libraries = undefined = 0
for sha256, each in tables.items():
    for library in each.libraries:
        undefined += len(source.symbols(sha256, library.path).undefined())
        libraries += 1
read = now()
prepared = prepare(None)
told = now()
subject = Subject(target=Target(python="3.11", platform="linux-64", glibc="2.28"), wheels=tuple(wheels), outside=(),
                  tables=tables)
prover = Prover(subject, source, prepared.told)
clean = prover.tried_clean()
proven = now()
cuda = pins.get("nvidia-cuda-runtime-cu12", "12.1").rpartition(".")[0]
beside = Locked(cuda=cuda, platform="linux-64", versions={each.name: each.version for each in wheels})
laid = [lay(row, beside, prepared.matrix.components, source) for row in prepared.told.table.surroundings]
whole = prover.proven(laid)
done = now()
parts = {"imports": imported - begun, "tables": read - ready, "matrix": told - read, "clean": proven - told,
         f"{len(whole.environments) - 1} environments": done - proven}
print(f"{len(wheels)} wheels, {libraries} libraries, {undefined} undefined: {clean.verdict};",
      ", ".join(f"{name} {took:.3f} s" for name, took in parts.items()))
"""
LIEF = """
import sys, lief
count = 0
for path in sys.stdin.read().split("\\n"):
    binary = lief.parse(path)
    for symbol in binary.dynamic_symbols:
        count += len(symbol.name) > 0 and symbol.symbol_version is not None
print(count, "symbols")
"""


def main() -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default="2.3.1", help="a release whose wheels ship (2.3.1)")
    parser.add_argument("--cache", type=Path, help="a cache folder with the tables of its wheels")
    parser.add_argument("--installed", type=Path, help="a prefix in which that stack is installed, for the rivals")
    parser.add_argument("--lief", help="a Python that has LIEF")
    parser.add_argument("--times", type=int, default=5, help="runs of each; the quickest counts (5)")
    asked = parser.parse_args()
    for basis in ("almanac", *(["cache"] if asked.cache else [])):
        words = [sys.executable, "-c", OURS, str(asked.cache or "nowhere"), asked.torch, basis]
        report(f"stackfix, {basis}", words, "", asked.times)
    if asked.installed:
        paths = libraries(asked.installed)
        print(f"installed: {len(paths)} libraries, {sum(path.stat().st_size for path in paths) / 1e9:.1f} GB")
        if shutil.which("ldd"):
            report("ldd -r", ["ldd", "-r", *map(str, paths)], "", asked.times, answer=False)
        if asked.lief:
            report("LIEF", [asked.lief, "-c", LIEF], "\n".join(map(str, paths)), asked.times)
    return 0


def libraries(prefix: Path) -> list[Path]:
    """Shared objects of torch, its CUDA libraries and triton below the site folder."""
    site = next(iter(sorted(prefix.glob("lib/python3*/site-packages"))), None)
    if site is None:
        sys.exit(f"{prefix}: no site-packages")
    return sorted(path for name in ("torch", "nvidia", "triton", "functorch") for path in (site / name).rglob("*.so*")
                  if path.is_file() and not path.is_symlink())


def report(name: str, words: Sequence[str], given: str, times: int, *, answer: bool = True) -> None:
    """Print the quickest of some runs."""
    wall = processor = float("inf")
    said = ""
    for _ in range(times):
        begun, before = time.perf_counter(), spent()
        done = subprocess.run(words, input=given, capture_output=True, text=True, check=False, cwd=ROOT,
                              env=os.environ | {"PYTHONPATH": str(ROOT)})
        wall, took = min(wall, time.perf_counter() - begun), spent() - before
        if answer and done.returncode:
            print(f"{name}: {(done.stderr or 'failed').strip().splitlines()[-1]}")
            return
        if took < processor:
            processor, said = took, done.stdout.strip().splitlines()[-1] if answer else ""
    print(f"{name}: {wall:.3f} s, {processor:.3f} s of the processor{f'; {said}' if said else ''}")


def spent() -> float:
    """Processor seconds of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
