"""Lock speed beside uv: `python benchmarks/lock.py`, or `nox -s bench`.

A loopback server (another process) replays index answers that were recorded once from the live index. Both tools run as
whole commands, alternating, with cold caches and then with warm ones. Printed: medians of the runs, and their ratio.
Exit status: 0 the marks are met, 1 they are not, 2 uv or httpx is not here, 3 a tool or the recording failed.

The sets differ in what the tools choose: uv does not know the matrix, so package counts are printed beside the times.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"
SETS = {
    "A": ("torch==2.3.1", "torchvision", "transformers"),
    "B": ("torch==2.6.0", "transformers", "accelerate", "datasets"),
    "D": ("vllm",),
}
METADATA = {"advertised": "core-metadata", "unadvertised": "none"}
DELAYS = (0.0, 0.03)
TOOLS = ("uv", "stackfix")


class BenchError(Exception):
    """A run that gives no time worth printing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One index: how it answers."""

    metadata: str
    cache_headers: bool
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Medians of one set on one index, seconds, by tool."""

    name: str
    setting: Setting
    cold: dict[str, float]
    repeat: dict[str, float]        # the same request in a new folder
    unchanged: dict[str, float]     # the same request again, its lock beside it
    requests: dict[str, int]
    packages: dict[str, int]
    memory: dict[str, float]        # MB, most of what all processes of a cold run held together


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One whole command."""

    seconds: float
    packages: int
    megabytes: float = 0.0          # the most that all its processes held together, where that was looked at


def clean_environment(cache: Path) -> dict[str, str]:
    """No settings of this machine, and a cache of the run's own."""
    ours = ("PIP_", "UV_", "STACKFIX_", "PYTHON")       # among them PYTHONDONTWRITEBYTECODE
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "UV_CACHE_DIR": str(cache / "uv"),
            "STACKFIX_CACHE_DIR": str(cache / "stackfix"), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}


def command(tool: str, name: str, url: str, folder: Path) -> list[str]:
    """The whole command of one tool; it writes `requirements.txt` into the folder."""
    if tool == "uv":
        asked = folder / "requirements.in"
        asked.write_text("".join(f"{line}\n" for line in SETS[name]), encoding="utf-8")
        return ["uv", "pip", "compile", "--generate-hashes", "--quiet", "--python-version", PYTHON, "--python-platform",
                "x86_64-manylinux_2_28", "--index-url", url, str(asked), "-o", str(folder / "requirements.txt")]
    script = Path(sys.executable).with_name("stackfix")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "stackfix"]
    asked_with = [word for line in SETS[name] for word in (
        ("--torch", line.removeprefix("torch==")) if line.startswith("torch==") else ("--with", line))]
    return [*program, "lock", *asked_with, "--no-flash-attn", "--python", PYTHON, "--format", "requirements",
            "--quiet", "--index-url", url, "-o", str(folder)]


def timed(tool: str, name: str, url: str, place: Path, lock: str = "lock", *, watched: bool = False) -> Run:
    """One whole command, with the cache of this place, into a folder below it.

    `watched`: its memory is looked at every few milliseconds, which takes time of its own.
    """
    folder = place / lock
    folder.mkdir(parents=True, exist_ok=True)
    words = command(tool, name, url, folder)
    with (place / "said").open("wb") as said:
        began = time.perf_counter()
        process = subprocess.Popen(words, env=clean_environment(place), cwd=place, stdout=said, stderr=said)
        most = watch(process) if watched else 0.0
        process.wait()
        seconds = time.perf_counter() - began
    if process.returncode != 0:
        message = (place / "said").read_text("utf-8", "replace").strip()[-600:]
        raise BenchError(f"{tool} on set {name}: exit {process.returncode}: {message}")
    lines = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    packages = sum(not line.startswith((" ", "#")) and "==" in line for line in lines)
    return Run(seconds=seconds, megabytes=most, packages=packages)


def watch(process: subprocess.Popen[bytes]) -> float:
    """The most MB that a process and those below it hold together until it ends; what they share counts once."""
    most = 0.0
    while process.poll() is None:
        most = max(most, sum(map(held_by, processes_from(process.pid))))
        time.sleep(0.005)
    return most


def processes_from(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            yield from processes_from(int(child))


def held_by(pid: int) -> float:
    """MB of a process: its own, and its part of what it shares; 0 once it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


@contextlib.contextmanager
def server(store: Path, setting: Setting) -> Iterator[str]:
    """The replay server as a process of its own; gives the address for --index-url."""
    words = [sys.executable, "-m", "tests.replay.server", str(store), "--live", "--compress",
             "--metadata", setting.metadata, "--delay", str(setting.delay)]
    process = subprocess.Popen([*words, *(["--cache-headers"] if setting.cache_headers else [])], cwd=ROOT,
                               stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip() if process.stdout else ""
        if not url:
            raise BenchError("the replay server did not start")
        yield url
    finally:
        process.terminate()
        process.communicate()


def counts(url: str) -> dict[str, int]:
    """How many requests the server had, and how many it passed on to the live index."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url.removesuffix("/simple") + "/status") as answer:
        said: dict[str, int] = json.load(answer)
    return said


def measure(name: str, setting: Setting, store: Path, runs: int) -> Row:
    """Both tools, alternating: cold in new places, then with the cache of one into new folders and over their own lock.

    The first round is not counted: it fills the recording, and the second run of a request is the first that finds a
    lock. Nor is the one in which memory is looked at.
    """
    cold: dict[str, list[Run]] = {tool: [] for tool in TOOLS}
    repeat: dict[str, list[Run]] = {tool: [] for tool in TOOLS}
    unchanged: dict[str, list[Run]] = {tool: [] for tool in TOOLS}
    requests = {}
    with server(store, setting) as url, tempfile.TemporaryDirectory() as scratch:
        for tool in TOOLS:
            timed(tool, name, url, Path(scratch) / "first" / tool)
        recorded = counts(url)["asked_live"]
        watched = {tool: timed(tool, name, url, Path(scratch) / "watched" / tool, watched=True).megabytes
                   for tool in TOOLS}
        for run in range(runs):
            for tool in TOOLS:
                before = counts(url)["requests"]
                cold[tool].append(timed(tool, name, url, Path(scratch) / str(run) / tool))
                requests[tool] = counts(url)["requests"] - before
        for run in range(runs + 1):
            for tool in TOOLS:
                again = timed(tool, name, url, Path(scratch) / "0" / tool, f"again-{run}")
                taken = timed(tool, name, url, Path(scratch) / "0" / tool)
                if run:
                    repeat[tool].append(again)
                    unchanged[tool].append(taken)
        if counts(url)["asked_live"] != recorded:
            raise BenchError("the live index was asked while the clock ran; run again with the same --recordings")
    return Row(
        name=name, setting=setting, requests=requests,
        cold=medians({tool: [run.seconds for run in of] for tool, of in cold.items()}),
        repeat=medians({tool: [run.seconds for run in of] for tool, of in repeat.items()}),
        unchanged=medians({tool: [run.seconds for run in of] for tool, of in unchanged.items()}),
        memory=watched,
        packages={tool: of[-1].packages for tool, of in cold.items()})


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {tool: statistics.median(seconds) for tool, seconds in times.items()}


def render(row: Row) -> str:
    setting = row.setting
    cells = [f"{row.name:3}", f"{METADATA[setting.metadata]:13}", f"{'yes' if setting.cache_headers else 'no':7}",
             f"{setting.delay * 1000:5.0f}"]
    for times in (row.cold, row.repeat, row.unchanged):
        cells += [f"{times['uv']:7.3f}", f"{times['stackfix']:8.3f}", f"{times['stackfix'] / times['uv']:5.2f}"]
    cells += [f"{numbers['uv']:4.0f}/{numbers['stackfix']:<4.0f}" for numbers in
              (row.requests, row.packages, row.memory)]
    return "  ".join(cells)


HEADER = (f"{'set':3}  {'metadata':13}  {'headers':7}  {'ms':>5}  {'cold uv':>7}  {'ours':>8}  ratio  "
          f"{'repeat':>7}  {'ours':>8}  ratio  {'unch.':>7}  {'ours':>8}  ratio  requests   packages   MB\n"
          "(repeat: the same request in a new folder; unch.: again over its own lock; requests, packages and peak "
          "memory of all processes: uv/ours, of a cold run)")


def marks_of(row: Row) -> Iterator[tuple[str, float, float]]:
    """(what, what it is, what it may be) of one row."""
    advertised = row.setting.metadata == "advertised"
    if row.setting.delay == max(DELAYS):
        most = (0.8 if row.name == "D" else 0.6) if advertised else 0.35
        yield "cold", row.cold["stackfix"] / row.cold["uv"], most
        if not row.setting.cache_headers:
            yield "repeat", row.repeat["stackfix"] / row.repeat["uv"], 0.2
    if row.setting.cache_headers:
        yield "unchanged", row.unchanged["stackfix"] / row.unchanged["uv"], 1.2
    yield "MB", row.memory["stackfix"], 200.0


def missed_marks(rows: list[Row]) -> list[str]:
    """The marks that were not met."""
    return [f"set {row.name}, {METADATA[row.setting.metadata]}, cache headers "
            f"{'on' if row.setting.cache_headers else 'off'}, {row.setting.delay * 1000:.0f} ms: "
            f"{what} {found:.2f}, at most {most:g}"
            for row in rows for what, found, most in marks_of(row) if found > most]


def run_all(store: Path, runs: int, sets: list[str], kinds: list[str], delays: list[float]) -> int:
    """Prints the table; gives the exit status."""
    uv = subprocess.run([str(shutil.which("uv")), "--version"], capture_output=True, text=True, check=True).stdout
    print(f"medians of {runs} runs after one discarded, seconds; {os.cpu_count()} cores; {uv.strip()}; "
          f"Python {sys.version.split()[0]}\n{HEADER}", flush=True)
    rows = []
    for name in sets:
        for metadata in kinds:
            for cache_headers in (True, False):
                for delay in delays:
                    setting = Setting(metadata=metadata, cache_headers=cache_headers, delay=delay)
                    rows.append(measure(name, setting, store, runs))
                    print(render(rows[-1]), flush=True)
    missed = missed_marks(rows)
    print("\n".join(["marks missed:", *missed] if missed else ["all marks met"]))
    print(f"load average {os.getloadavg()[0]:.1f}")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--sets", nargs="+", choices=sorted(SETS), default=sorted(SETS))
    parser.add_argument("--delays", nargs="+", type=float, default=list(DELAYS), help="seconds added to each request")
    parser.add_argument("--metadata", nargs="+", choices=sorted(METADATA), default=list(METADATA))
    parser.add_argument("--recordings", type=Path, help="keep the recorded answers here (else a temporary folder)")
    options = parser.parse_args()
    if shutil.which("uv") is None:
        print("uv is not on PATH: the benchmark runs it beside stackfix; `pip install uv`, then run this again",
              file=sys.stderr)
        return 2
    if importlib.util.find_spec("httpx") is None:
        print("httpx is not here: the replayed index asks the live one through it, once; "
              "`pip install --require-hashes -r tests/requirements-dev.txt`, then run this again", file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        store = options.recordings or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            return run_all(store, options.runs, options.sets, options.metadata, options.delays)
        except BenchError as reason:
            print(f"error: {reason}", file=sys.stderr)
            return 3


if __name__ == "__main__":
    raise SystemExit(main())
