"""The conda side of `stackfix lock` beside py-rattler's own solve: `python benchmarks/conda.py`.

A channel of realistic size is generated around the bundled records: older builds of each that lose, and newer ones that
cannot be had and must be stepped over. Both read it as a file:// channel, each run a process of its own, alternating.
py-rattler is given the very specs, virtual packages and channels of the solve that the lock came from.
Printed: medians of the seconds that passed and of those of the processor, their ratios, and the largest memory of any
run. The marks are of the processor and the memory: the seconds that pass are others' on a busy machine.
Exit status: 0 the marks are met, 1 they are not, 3 a run failed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / "matrices" / "conda"
SETS = {
    "conda-forge": ("--torch", "2.6", "--cuda", "12.6", "--with", "transformers", "--with", "accelerate"),
    "pytorch": ("--torch", "2.5", "--cuda", "12.1", "--with", "transformers"),
    "newest": ("--cuda", "12.9", "--with", "transformers"),
}
LOCK = ("--python", "3.11", "--no-flash-attn", "--format", "conda-lock", "--quiet")
RATIO, MEMORY = 1.5, 1 << 30        # times py-rattler's own solve; bytes
HEADER = ("                             seconds                processor seconds               MiB\n"
          "set          packages  rattler     ours  ratio  rattler     ours  ratio   rattler      ours")
Row = dict[str, Any]

# Runs `stackfix lock` and keeps the last solve that had an answer: stdout of the file named first
RECORD = """
import json, sys
from dataclasses import asdict
from pathlib import Path
from stackfix.conda.records import CondaSolved
from stackfix.sources.conda_channels import CondaChannels
solve, target = CondaChannels.solve, Path(sys.argv.pop(1))
def recorded(self, ask):
    answer = solve(self, ask)
    if isinstance(answer, CondaSolved):
        target.write_text(json.dumps({**asdict(ask), "packages": len(answer.records)}))
    return answer
CondaChannels.solve = recorded
from stackfix.cli import main
main()
"""
# py-rattler alone, on the same solve
RATTLER = """
import asyncio, json, sys
from pathlib import Path
from rattler import (BuildString, Channel, ChannelPriority, Gateway, GenericVirtualPackage, MatchSpec, PackageName,
                     Version, solve)
ask = json.loads(Path(sys.argv[1]).read_text())
strict = ask["priority"] == "strict"
found = asyncio.run(solve(
    [Channel(each["url"]) for each in ask["channels"]], [MatchSpec(each["text"]) for each in ask["specs"]],
    gateway=Gateway(cache_dir=Path(sys.argv[2])), platforms=[ask["platform"], "noarch"],
    virtual_packages=[GenericVirtualPackage(PackageName(each["name"]), Version(each["version"]),
                                            BuildString(each["build"])) for each in ask["virtual"]],
    channel_priority=ChannelPriority.Strict if strict else ChannelPriority.Disabled,
    constraints=[MatchSpec(each["text"]) for each in ask["constraints"]]))
assert len(found) == ask["packages"], (len(found), ask["packages"])
"""


class BenchError(Exception):
    """A run that gives no time worth printing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One process that ended well."""

    seconds: float
    processor: float                # seconds of it, of all threads
    memory: int                     # bytes, the most that was resident


def generate(folder: Path, count: int) -> int:
    """A channel for each of the snapshot's, of about `count` records in all; gives the number of records."""
    documents = {path: json.loads(lzma.decompress(path.read_bytes())) for path in sorted(SNAPSHOT.glob("*.xz"))
                 if "aarch64" not in path.name}
    real = sum(len(document[key]) for document in documents.values() for key in ("packages", "packages.conda"))
    copies = max(0, round(count / real) - 1)
    written = 0
    for path, document in documents.items():
        name = path.name.removesuffix(".json.xz")
        subdir = "noarch" if name.endswith("-noarch") else "linux-64"
        for key in ("packages", "packages.conda"):
            rows = document[key]
            rows.update([pair for file, row in list(rows.items()) for pair in clones(file, row, copies)])
            written += len(rows)
        place = folder / name.removesuffix(f"-{subdir}") / subdir
        place.mkdir(parents=True)
        (place / "repodata.json").write_text(json.dumps(document), encoding="utf-8")
    return written


def clones(file: str, row: Row, copies: int) -> Iterator[tuple[str, Row]]:
    """Builds beside a real one: older ones, and for one in four a newer one that nothing can satisfy."""
    end = ".conda" if file.endswith(".conda") else ".tar.bz2"
    for copy in range(1, copies + 1):
        build = f"{row['build']}_g{copy}"
        newer = copy % 4 == 0
        depends = [*row["depends"], f"generated-never >={copy}"] if newer else row["depends"]
        number = row["build_number"] + 1 if newer else 0
        digest = f"{copy:02x}"
        yield (f"{row['name']}-{row['version']}-{build}{end}",
               {**row, "build": build, "build_number": number, "depends": depends, "md5": digest + row["md5"][2:]})


def run(words: list[str], environ: Mapping[str, str], what: str) -> Run:
    """One process. Raises BenchError where it fails."""
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            raise BenchError(f"{what}: exit {process.returncode}: {errors.read().decode()[-600:]}")
    return Run(seconds=seconds, processor=usage.ru_utime + usage.ru_stime, memory=usage.ru_maxrss * 1024)


def environment(folder: Path, channels: Path) -> dict[str, str]:
    """A user whose conda-forge, pytorch and nvidia are the generated ones, and nothing of this machine."""
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    lines = [f"  {name}: {channels.as_uri()}" for name in ("conda-forge", "pytorch", "nvidia")]
    (home / ".condarc").write_text("\n".join(["custom_channels:", *lines, ""]), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("CONDA", "PIP_", "UV_", "STACKFIX_", "XDG_"))}
    return {**kept, "HOME": str(home), "PIP_CONFIG_FILE": os.devnull, "STACKFIX_CACHE_DIR": str(folder / "cache")}


def measure(name: str, channels: Path, runs: int) -> tuple[list[Run], list[Run], int]:
    """The runs of the lock, those of py-rattler, and the number of packages."""
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder, ask = Path(scratch), Path(scratch) / "ask.json"
        environ = environment(folder, channels)
        lock = [*SETS[name], *LOCK, "-o", str(folder)]
        run([sys.executable, "-c", RECORD, str(ask), "lock", *lock], environ, f"the first lock of {name}")
        packages = json.loads(ask.read_text(encoding="utf-8"))["packages"]
        for _ in range(runs):
            (folder / "conda-lock.yml").unlink()        # an existing lock would be preferred
            ours.append(run([sys.executable, "-m", "stackfix", "lock", *lock], environ, f"lock of {name}"))
            theirs.append(run([sys.executable, "-c", RATTLER, str(ask), str(folder / "rattler")], environ,
                              f"py-rattler's solve of {name}"))
    return ours, theirs, packages


def render(name: str, ours: list[Run], theirs: list[Run], packages: int) -> tuple[str, bool]:
    """One line of the table, and whether its marks are met."""
    lock, solve = (statistics.median(each.seconds for each in runs) for runs in (ours, theirs))
    memory, beside = (max(each.memory for each in runs) for runs in (ours, theirs))
    busy, busy_beside = (statistics.median(each.processor for each in runs) for runs in (ours, theirs))
    line = (f"{name:12} {packages:8} {solve:8.2f} {lock:8.2f} {lock / solve:6.2f} {busy_beside:8.2f} {busy:8.2f}"
            f" {busy / busy_beside:6.2f} {beside / 2**20:9.0f} {memory / 2**20:9.0f}")
    return line, busy / busy_beside <= RATIO and memory < MEMORY


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--sets", nargs="+", choices=sorted(SETS), default=sorted(SETS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        count = generate(Path(scratch), options.records)
        print(f"medians of {options.runs} runs after one discarded; {count} records; {os.cpu_count()} cores; Python"
              f" {sys.version.split()[0]}\n{HEADER}", flush=True)
        met = True
        for name in options.sets:
            try:
                line, good = render(name, *measure(name, Path(scratch), options.runs))
            except BenchError as reason:
                print(f"error: {reason}", file=sys.stderr)
                return 3
            met &= good
            print(line, flush=True)
    print("all marks met" if met else f"marks missed (ratio {RATIO}, memory {MEMORY >> 20} MiB)")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
