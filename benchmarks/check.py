"""`stackfix check` beside `ldd -r`, LIEF and pyelftools: times, ratios, and growth with the number of libraries.

    python benchmarks/check.py VENV             # a whole check of an environment with torch, say; then grown trees
    python benchmarks/check.py --sizes 66 500 2000
    python benchmarks/check.py VENV --rivals /path/to/python    # one that has lief and pyelftools

Whole `stackfix check --json --prefix VENV`, Python's start included. `ldd -r`: one call over the environment's shared
objects, links left out. LIEF and pyelftools: undefined and defined symbols of each file with their versions, nothing
bound: the least that any check over them would need. Medians of wall and processor seconds; ratios are of wall time.
A rival that is not installed is left out.

The trees have N small libraries and extension modules in groups of twenty; each is another environment. The last lines
hold the ratios; exit status 1 where a mark is missed: no slower than `ldd -r`, a tenth of LIEF, and no more for each
library in a larger tree than in the one before.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.check_trees import build_tree
from benchmarks.elf import LIEF, PYELFTOOLS, is_elf

ROOT = Path(__file__).resolve().parent.parent

@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of some runs, in seconds."""

    wall: float
    processor: float        # of the whole process tree: what a busy machine does not change


Costs = Mapping[str, Cost]
NOISE = 1.15            # of two medians on a busy machine


def main() -> int:
    """Print both tables and one JSON line."""
    options = parse_options()
    ratios: dict[str, float] = {}
    marks: list[tuple[str, bool]] = []
    if options.prefix is not None:
        files = shared_objects(options.prefix)
        if not files:
            print(f"{options.prefix}: no shared objects in its site folders", file=sys.stderr)
            return 2
        times = measure(options.prefix, files, options.runs, rivals=options.rivals)
        show(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB", times)
        own = times["check"].wall
        ratios |= {f"check / {name}": own / cost.wall for name, cost in times.items() if name != "check"}
        marks += [(title, own <= share * times[name].wall)
                  for name, share, title in (("ldd -r", 1.0, "no slower than ldd -r"), ("LIEF", 0.1, "a tenth of LIEF"))
                  if name in times]
    if options.sizes:
        growth = grown(options.sizes, options.runs)
        for before, size in itertools.pairwise(sorted(growth)):
            ratios[f"time for each library, {size} / {before}"] = ratio = growth[size] / size * before / growth[before]
            marks.append((f"linear to {size}", ratio <= NOISE))
    for name, ratio in ratios.items():
        print(f"{name:45} {ratio:7.3f}")
    for name, met in marks:
        print(f"{name:45} {'met' if met else 'missed':>7}")
    print(json.dumps({name: round(ratio, 4) for name, ratio in ratios.items()}))
    return 0 if all(met for _, met in marks) else 1


def parse_options() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", nargs="?", type=Path, help="an environment, best one with torch")
    parser.add_argument("--sizes", nargs="*", type=int, default=[66, 500, 2000], help="libraries in the grown trees")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rivals", default=sys.executable, help="a Python that has lief and pyelftools")
    return parser.parse_args()


def shared_objects(prefix: Path) -> list[Path]:
    """Shared objects in the site folders, links left out."""
    return sorted(path for site in prefix.glob("lib/python3*/site-packages") for path in site.rglob("*.so*")
                  if is_elf(path))


def measure(prefix: Path, files: Sequence[Path], runs: int, *, rivals: str | None) -> Costs:
    """Median seconds of each contender; those in Python only where one is named."""
    times = {"check": median(check_command(prefix), runs, passes={0, 1})}
    if ldd := shutil.which("ldd"):
        times["ldd -r"] = median([ldd, "-r", *map(str, files)], runs, passes={0, 1})
    names = "\n".join(map(str, files))
    for name, module, code in (("LIEF", "lief", LIEF), ("pyelftools", "elftools", PYELFTOOLS)):
        if rivals is not None and has_module(rivals, module):
            times[name] = median([rivals, "-c", code], min(runs, 3), says=names)
    return times


def check_command(prefix: Path) -> list[str]:
    """The command as users have it, where it is installed beside this Python."""
    script = Path(sys.executable).with_name("stackfix")
    return [*([str(script)] if script.exists() else [sys.executable, "-m", "stackfix"]),
            "check", "--json", "--prefix", str(prefix)]


def has_module(python: str, module: str) -> bool:
    """Whether a Python can import a module."""
    if python == sys.executable:
        return importlib.util.find_spec(module) is not None
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def median(command: Sequence[str], runs: int, *, says: str = "", passes: Iterable[int] = (0,)) -> Cost:
    """Median cost, after one run that warms the caches. Raises SystemExit where the command fails."""
    taken = []
    for _ in range(runs + 1):
        busy, start = processor_seconds(), time.perf_counter()
        done = subprocess.run(command, input=says, capture_output=True, text=True, check=False, cwd=ROOT)
        taken.append((time.perf_counter() - start, processor_seconds() - busy))
        if done.returncode not in passes:
            sys.exit(f"{' '.join(command[:4])} ended with status {done.returncode}\n{done.stderr[-2000:]}")
    walls, processors = zip(*taken[1:], strict=True)
    return Cost(statistics.median(walls), statistics.median(processors))


def processor_seconds() -> float:
    """What all children that have ended took of the processors."""
    used = os.times()
    return used.children_user + used.children_system


def grown(sizes: Sequence[int], runs: int) -> dict[int, float]:
    """Seconds of a check by the number of libraries; prints `ldd -r` beside it."""
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            prefix = build_tree(Path(folder) / "venv", size)
            times = measure(prefix, shared_objects(prefix), runs, rivals=None)
        show(f"a tree of {size} libraries", times, size)
        found[size] = times["check"].wall
    return found


def show(title: str, times: Costs, size: int | None = None) -> None:
    """One table."""
    print(title)
    for name, cost in times.items():
        each = f"{cost.wall / size * 1e3:8.3f} ms each" if size else ""
        ratio = cost.wall / times["check"].wall
        print(f"  {name:12} {cost.wall:7.3f} s  {ratio:6.2f} x  {cost.processor:7.3f} s busy{each}")


if __name__ == "__main__":
    sys.exit(main())
