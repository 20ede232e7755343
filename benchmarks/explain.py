"""`stackfix explain` as a whole command: a line, a log of megabytes, and the example of every rule; beside rivals.

    python benchmarks/explain.py                # 7 runs each
    python benchmarks/explain.py --runs 15 --every

A line: `stackfix explain --no-inspect LINE`, Python's start included. Beside it in the same run, alternately: Python
that does nothing, `python -c 'import click'` (what the command line itself costs), and `grep -E` of the patterns of
all rules over the same line, which finds the message and tells nothing of it. The log has 4 MiB of a training run with
the line near its end. With --every each rule's first example is explained once as a whole command; the slowest are
named.

Medians of wall and processor seconds. The mark is a quarter of a second for a line, of processor time: the command is
one thread that waits for nothing, so that is its wall time on a machine that does nothing else. Exit status 1 where it
is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stackfix.explain.records import Rule
from stackfix.explain.rules import read_rules
from stackfix.explain.text import MOST_BYTES

MARK = 0.25             # seconds for an error line, the whole command
SLOWEST = 5
LINE = ("ImportError: /opt/env/lib/python3.11/site-packages/nvidia/cusparse/lib/libcusparse.so.12: undefined symbol:"
        " __nvJitLinkComplete_12_4, version libnvJitLink.so.12")
EXPLAIN = (sys.executable, "-m", "stackfix", "explain", "--no-inspect")


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of some runs, in seconds."""

    wall: float
    processor: float


def main() -> int:
    """Print the tables and one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--every", action="store_true", help="explain each rule's first example, too")
    options = parser.parse_args()
    rules = read_rules()
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(commands(Path(folder), rules), options.runs)
    for name, cost in costs.items():
        print(f"{name:34} {cost.wall:7.3f} s {cost.processor:7.3f} s of processor")
    slowest = examples(rules) if options.every else []
    for cost, name in slowest[:SLOWEST]:
        print(f"{name:34} {cost.wall:7.3f} s {cost.processor:7.3f} s of processor")
    taken = max(costs["explain, a line"].processor, *(cost.processor for cost, _ in slowest[:1]), 0.0)
    print(f"{'a line within a quarter second':34} {'met' if taken < MARK else 'missed':>7}")
    print(json.dumps({name: [round(cost.wall, 4), round(cost.processor, 4)] for name, cost in costs.items()}))
    return 0 if taken < MARK else 1


def commands(folder: Path, rules: Sequence[Rule]) -> Mapping[str, tuple[str, ...]]:
    """What is measured, by name."""
    log, line, patterns = folder / "train.log", folder / "line", folder / "patterns"
    log.write_text(long_log(), encoding="utf-8")
    line.write_text(f"{LINE}\n", encoding="utf-8")
    known = [pattern for rule in rules for pattern in map(as_ere, rule.patterns) if pattern]
    patterns.write_text("\n".join(known) + "\n", encoding="utf-8")
    found = {
        "python, nothing": (sys.executable, "-c", "pass"),
        "python, import click": (sys.executable, "-c", "import click"),
        "explain, a line": (*EXPLAIN, LINE),
        "explain, a log of 4 MiB": (*EXPLAIN, str(log)),
    }
    if shutil.which("grep"):
        found |= {"grep -E of all patterns, a line": ("grep", "-E", "-f", str(patterns), str(line)),
                  "grep -E of all patterns, the log": ("grep", "-c", "-E", "-f", str(patterns), str(log))}
    return found


def as_ere(pattern: str) -> str | None:
    """A pattern as grep reads it; None for one with what it does not know."""
    plain = re.sub(r"\(\?(?:P<\w+>|:)", "(", pattern)
    plain = plain.replace(r"\d", "[0-9]")
    return None if re.search(r"\(\?|\*\?|\+\?|\}\?|\\[^\\wsWSb.(){}\[\]+*?|^$/'\"`-]", plain) else plain


def long_log() -> str:
    """4 MiB of a training run that ends with the line, as four workers write it."""
    lines: list[str] = []
    size = 0
    while size < MOST_BYTES - 4096:
        step = len(lines)
        at = f"2026-05-01 12:{step // 60 % 60:02}:{step % 60:02},{step % 1000:03} - INFO - [rank{step % 4}]:"
        lines.append(f"{at} step {step} loss {1 / (step + 1):.6f} cuda memory {step % 80} GiB torch.float32 lr 3e-4")
        size += len(lines[-1]) + 1
    return "\n".join([*lines, *(f"[rank{rank}]: {LINE}" for rank in range(4))]) + "\n"


def measure(named: Mapping[str, tuple[str, ...]], runs: int) -> dict[str, Cost]:
    """Each command's medians; they run in turns, so that a busy moment hits all of them."""
    taken: dict[str, list[Cost]] = {name: [] for name in named}
    for _ in range(runs):
        for name, command in named.items():
            taken[name].append(run(command))
    return {name: Cost(statistics.median(each.wall for each in costs),
                       statistics.median(each.processor for each in costs)) for name, costs in taken.items()}


def examples(rules: Sequence[Rule]) -> list[tuple[Cost, str]]:
    """Each rule's first example, slowest first."""
    return sorted(((run((*EXPLAIN, "--", rule.examples[0].text)), rule.name) for rule in rules),
                  key=lambda each: -each[0].processor)


def run(command: Sequence[str]) -> Cost:
    """One run. Its answer may be "no", not a fault."""
    environ = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "CONDA_PREFIX"}}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environ, check=False)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"{command[0]}: {done.stderr.decode(errors='replace')}")
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    raise SystemExit(main())
