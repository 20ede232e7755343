"""Several targets in one run: `python benchmarks/lock_targets.py`, beside uv asked once for each of them.

The same loopback server as in benchmarks/lock.py. Each of the two sets is locked for its first target alone, then for
all five in one run, each time with an empty cache; uv, which takes one platform and Python a run, is run five times
(with one cache, so that it reads each page once). Printed: medians of the runs, seconds; and the ratio of five targets
to one, which may be 2 at most. Exit status: 0 it is met, 1 it is not, 2 uv is not here, 3 a tool or the recording
failed.

The torch index is answered by nobody: files of the CPU's builds come from the rows of the matrix. uv is asked for the
default index's builds, as it would need that index.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.lock import BenchError, Setting, clean_environment, counts, server

NOBODY = "http://127.0.0.1:9/"
MOST = 2.0              # what five targets may cost, of one
PLATFORMS = {           # our names, and uv's
    "linux-64": "x86_64-manylinux_2_28", "linux-aarch64": "aarch64-manylinux_2_28",
    "win-64": "x86_64-pc-windows-msvc", "osx-arm64": "aarch64-apple-darwin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One set: what both tools are asked, and its five targets as (Python, platform)."""

    ours: tuple[str, ...]
    uv: tuple[str, ...]
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        return tuple((python, platform) for python in self.pythons for platform in self.platforms)


SETS = {
    "places": Asked(
        ours=("--torch", "2.8", "--cuda", "cpu", "--with", "torchvision", "--with", "transformers"),
        uv=("torch==2.8.0", "torchvision", "transformers"), pythons=("3.11",),
        platforms=("linux-64", "linux-64-cpu", "linux-aarch64", "win-64", "osx-arm64")),
    "pythons": Asked(
        ours=("--torch", "2.8", "--cuda", "12.8", "--with", "transformers"), uv=("torch==2.8.0", "transformers"),
        pythons=("3.9", "3.10", "3.11", "3.12", "3.13"), platforms=("linux-64",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Medians of one set."""

    name: str
    one: float
    five: float
    uv_one: float
    uv_five: float
    requests: tuple[int, int]       # of ours: one target, five

    @property
    def ratio(self) -> float:
        return self.five / self.one


def our_words(asked: Asked, url: str, folder: Path, *, one: bool) -> list[str]:
    """The command for the first target, or for all."""
    script = Path(sys.executable).with_name("stackfix")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "stackfix"]
    pythons, platforms = (asked.pythons[:1], asked.platforms[:1]) if one else (asked.pythons, asked.platforms)
    return [
        *program, "lock", *asked.ours, *(word for python in pythons for word in ("--python", python)),
        *(word for platform in platforms for word in ("--platform", platform)), "--no-flash-attn", "--quiet",
        "--format", "requirements", "--index-url", url, "--torch-index", NOBODY, "-o", str(folder),
    ]


def uv_words(asked: Asked, target: tuple[str, str], url: str, folder: Path) -> list[str]:
    """uv's command for one target."""
    python, platform = target
    wanted = folder / "requirements.in"
    wanted.write_text("".join(f"{line}\n" for line in asked.uv), encoding="utf-8")
    # Told of a Python, it looks for no other; without one it would search for the target's, and download it.
    return ["uv", "pip", "compile", "--generate-hashes", "--quiet", "--python-version", python, "--python-platform",
            PLATFORMS[platform.removesuffix("-cpu")], "--python", sys.executable, "--index-url", url, str(wanted), "-o",
            str(folder / f"{python}-{platform}.txt")]


def timed(runs: list[list[str]], place: Path) -> float:
    """Seconds of these commands one after another, with the cache of this place."""
    began = time.perf_counter()
    for words in runs:
        environment = clean_environment(place)
        done = subprocess.run(words, env=environment, cwd=place, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BenchError(f"{words[0]}: exit {done.returncode}: {done.stderr.strip()[-600:]}")
    return time.perf_counter() - began


def measure(name: str, store: Path, runs: int, delay: float) -> Row:
    """All four ways, in turn; the first round fills the recording and does not count."""
    asked = SETS[name]
    times: dict[str, list[float]] = {"one": [], "five": [], "uv one": [], "uv five": []}
    requests: dict[str, int] = {}
    setting = Setting(metadata="advertised", cache_headers=True, delay=delay)
    with server(store, setting) as url, tempfile.TemporaryDirectory() as scratch:
        for run in range(runs + 1):
            if run == 1:
                recorded = counts(url)["asked_live"]
            for way, found in times.items():
                place = Path(scratch) / f"{run}-{way.replace(' ', '-')}"
                place.mkdir()
                if way.startswith("uv"):
                    targets = asked.targets[:1] if way == "uv one" else asked.targets
                    commands = [uv_words(asked, target, url, place) for target in targets]
                else:
                    commands = [our_words(asked, url, place, one=way == "one")]
                before = counts(url)["requests"]
                taken = timed(commands, place)
                requests[way] = counts(url)["requests"] - before
                if run:
                    found.append(taken)
        if counts(url)["asked_live"] != recorded:
            raise BenchError("the live index was asked while the clock ran; run again with the same --recordings")
    middle = {way: statistics.median(seconds) for way, seconds in times.items()}
    return Row(name=name, one=middle["one"], five=middle["five"], uv_one=middle["uv one"], uv_five=middle["uv five"],
               requests=(requests["one"], requests["five"]))


HEADER = f"{'set':8}  {'one':>6}  {'five':>6}  ratio  {'uv one':>6}  {'uv 5x':>6}  five/uv 5x  requests"


def render(row: Row) -> str:
    return (f"{row.name:8}  {row.one:6.3f}  {row.five:6.3f}  {row.ratio:5.2f}  {row.uv_one:6.3f}  {row.uv_five:6.3f}"
            f"  {row.five / row.uv_five:10.2f}  {row.requests[0]}/{row.requests[1]}")


def run_all(store: Path, names: list[str], runs: int, delay: float) -> Iterator[Row]:
    """Each row, printed as it comes."""
    print(f"medians of {runs} runs after one discarded, seconds; {delay * 1000:.0f} ms a request;"
          f" {os.cpu_count()} cores; Python {sys.version.split()[0]}\n{HEADER}", flush=True)
    for name in names:
        row = measure(name, store, runs, delay)
        print(render(row), flush=True)
        yield row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=sorted(SETS), default=sorted(SETS))
    parser.add_argument("--delay", type=float, default=0.03, help="seconds added to each request")
    parser.add_argument("--recordings", type=Path, help="keep the recorded answers here (else a temporary folder)")
    options = parser.parse_args()
    if shutil.which("uv") is None:
        print("uv is not on PATH: `pip install uv`, then run this again", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        store = options.recordings or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            rows = list(run_all(store, options.sets, options.runs, options.delay))
        except BenchError as reason:
            print(f"error: {reason}", file=sys.stderr)
            return 3
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 0 if all(row.ratio < MOST for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
