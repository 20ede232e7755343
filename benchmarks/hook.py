"""What the preload hook costs at the start of an interpreter: reports times, judges nothing.

    python benchmarks/hook.py [PYTHON…]     # by default each Python from 3.10 to 3.13 that is found

"line": CPU time of the .pth line alone, in one process over and over, the finder dropped each time.
"start": wall time of `python -I -c pass`, with the hook and without it, in turns. On a busy machine only the least of
many tells something.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stackfix.plan.hook import hook_steps
from stackfix.plan.records import WriteFile
from tests.hook_world import MINORS, interpreter

TURNS = 100
TABLE = {"torch": tuple(f"nvidia/part{number}/lib/libpart{number}.so.12" for number in range(12))}
LINE = """
import sys, time
line, sitedir = open(sys.argv[1]).read(), sys.argv[1].rpartition("/")[0]
times = []
for _ in range(300):
    sys.meta_path[:] = [each for each in sys.meta_path if type(each).__name__ != "Finder"]
    begun = time.thread_time_ns()
    exec(line)
    times.append(time.thread_time_ns() - begun)
print(*times)
"""


def main() -> None:
    pythons = sys.argv[1:] or [each for minor in MINORS if (each := interpreter(minor)) is not None]
    print(f"{'Python':10}{'line: least':>14}{'median':>10}{'start: without':>18}{'with':>10}{'more':>10}   (ms)")
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            print(measured(python, Path(folder)), flush=True)


def measured(python: str, folder: Path) -> str:
    """One row."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = next(folder.glob("lib/python3.*/site-packages"))
    minor = site.parent.name.removeprefix("python")
    steps = [step for step in hook_steps("site", TABLE, minor) if isinstance(step, WriteFile)]
    for step in steps:
        (site / Path(step.path).name).write_text(step.text)
    starter = site / Path(steps[-1].path).name
    line = output(str(folder / "bin/python"), LINE, str(starter))
    times = sorted(int(each) / 1e6 for each in line.split())
    without, with_it = starts(folder / "bin/python", starter)
    return (f"{minor:10}{times[0]:14.2f}{statistics.median(times):10.2f}{without:18.2f}{with_it:10.2f}"
            f"{with_it - without:10.2f}")


def starts(python: Path, starter: Path) -> tuple[float, float]:
    """(without, with): the least time of a start in milliseconds, measured in turns."""
    aside, least = starter.with_suffix(".off"), {False: float("inf"), True: float("inf")}
    for turn in range(2 * TURNS):
        hooked = bool(turn % 2)
        if hooked != starter.exists():
            (aside if hooked else starter).rename(starter if hooked else aside)
        begun = time.perf_counter()
        output(str(python), "pass")
        least[hooked] = min(least[hooked], (time.perf_counter() - begun) * 1000)
    return least[False], least[True]


def output(python: str, code: str, *words: str) -> str:
    return subprocess.run([python, "-I", "-c", code, *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
