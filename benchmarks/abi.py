"""`stackfix abi` beside `nm -D` and LIEF on a large extension, look-ups in the almanac, its size in a built wheel.

    python benchmarks/abi.py FILE.so            # best 400 MB and more: vllm and xformers have such
    python benchmarks/abi.py FILE.so --rivals /path/to/python       # one that has lief

Whole commands, Python's start included: `stackfix abi --json FILE` judges torch, CUDA, Python, C library and GPUs;
`nm -D` lists the dynamic symbols; LIEF parses the file and walks over them. Neither rival compares anything. Medians of
wall and processor seconds. A look-up asks in which torch minors one name is exported: each name of the file, and each
of core.tsv, in one process that has mapped the almanac.

Exit status 1 where a mark is missed: half a second for the command, ten microseconds for a look-up, 3 MB in the wheel.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.check import ROOT, Cost, has_module, median
from benchmarks.elf import LIEF
from stackfix.abi.book import open_torch_book
from stackfix.abi.records import TorchBook
from stackfix.abi.torch_asked import names_asked
from stackfix.inspect.compiled import read_file
from stackfix.inspect.places import Root
from stackfix.matrix.toml_files import matrix_directory

MB = 1_000_000
MOST_SECONDS, MOST_MICROSECONDS, MOST_BYTES = 0.5, 10.0, 3 * MB
ENOUGH = 10_000                 # look-ups in one measurement: the clock of processor time ticks coarsely
DATA = "stackfix/_matrices/"


def main() -> int:
    """Print the tables and one JSON line."""
    options = parse_options()
    times = commands(options.file, options.runs, options.rivals)
    size = options.file.stat().st_size
    print(f"{options.file.name}, {size / MB:.0f} MB")
    for name, cost in times.items():
        ratio = cost.wall / times["stackfix abi"].wall
        print(f"  {name:14} {cost.wall:7.3f} s  {ratio:6.2f} x  {cost.processor:7.3f} s busy")
    asked = look_ups(options.file)
    for name, value in asked.items():
        print(f"  {name:46} {value:9.3f}")
    parts = wheel_parts()
    whole, almanac = sum(parts.values()), sum(part for name, part in parts.items() if name.startswith(f"{DATA}abi/"))
    print(f"  data of ours in the wheel {whole / MB:.2f} MB, of these the almanac {almanac / MB:.2f} MB")
    for name, part in sorted(parts.items(), key=lambda item: -item[1])[:8]:
        print(f"    {name.removeprefix(DATA):44} {part / 1000:9.1f} kB")
    marks = {
        "the command under 0.5 s": times["stackfix abi"].wall <= MOST_SECONDS,
        "a look-up in microseconds": all(
            value <= MOST_MICROSECONDS for name, value in asked.items() if name.startswith("us")),
        "under 3 MB in the wheel": whole <= MOST_BYTES,
    }
    for name, met in marks.items():
        print(f"{name:45} {'met' if met else 'missed':>7}")
    print(json.dumps({"bytes": size, "seconds": {name: round(cost.wall, 4) for name, cost in times.items()},
                      "busy": {name: round(cost.processor, 4) for name, cost in times.items()},
                      "asked": {name: round(value, 3) for name, value in asked.items()},
                      "wheel": {"data": whole, "almanac": almanac}}))
    return 0 if all(marks.values()) else 1


def parse_options() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a compiled extension of torch")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rivals", default=sys.executable, help="a Python that has lief")
    return parser.parse_args()


def commands(file: Path, runs: int, rivals: str) -> dict[str, Cost]:
    """Median costs of each contender on one file."""
    script = Path(sys.executable).with_name("stackfix")
    own = [str(script)] if script.exists() else [sys.executable, "-m", "stackfix"]
    times = {"stackfix abi": median([*own, "abi", "--json", str(file)], runs, passes={0, 1})}
    if nm := shutil.which("nm"):
        times["nm -D"] = median([nm, "-D", str(file)], runs)
    if has_module(rivals, "lief"):
        times["LIEF"] = median([rivals, "-c", LIEF], min(runs, 3), says=str(file))
    return times


def look_ups(file: Path) -> dict[str, float]:
    """Milliseconds of opening the almanac, microseconds of a look-up."""
    path = str(file.resolve())
    asked = list(names_asked(read_file(path, path, Root()).files))
    lines = (matrix_directory() / "abi" / "core.tsv").read_text("utf-8").splitlines()[1:]
    core = [line.split("\t")[0] for line in lines]
    book: TorchBook = open_torch_book()
    found = {"ms to open the book": median_seconds(open_torch_book) * 1e3}
    for title, names in ((f"the {len(asked)} names of the file", asked), (f"{len(core)} names of core.tsv", core),
                         ("as many that nobody exports", [f"{name}v" for name in core])):
        if names:
            many = names * (ENOUGH // len(names) + 1)
            found[f"us for one look-up, {title}"] = median_seconds(partial(ask, book, many)) / len(many) * 1e6
    return found


def ask(book: TorchBook, names: Sequence[str]) -> int:
    """How many of the names are exported by some minor."""
    return sum(bool(book.minors(name)) for name in names)


def median_seconds(work: Callable[[], object], runs: int = 7) -> float:
    """Median processor seconds of a piece of work: a busy machine does not change them."""
    taken = []
    for _ in range(runs):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def wheel_parts() -> dict[str, int]:
    """Compressed bytes of each file of data in a wheel that is built of this tree."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], check=True, cwd=ROOT,
                       capture_output=True)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            return {each.filename: each.compress_size for each in wheel.infolist() if each.filename.startswith(DATA)}


if __name__ == "__main__":
    sys.exit(main())
