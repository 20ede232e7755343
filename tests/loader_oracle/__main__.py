"""`python -m tests.loader_oracle --count 2000 --seed N`: graphs until one differs; it is shrunk and kept as a case."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tests.loader_oracle.build import make_bench
from tests.loader_oracle.generate import generate
from tests.loader_oracle.judge import judge, keep, shrink


def main() -> int:
    """Exit status 1 where a graph differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.loader_oracle")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))     # noqa: S311 - not a secret
    parser.add_argument("--keep-going", action="store_true", help="report every graph that differs, shrink none")
    parser.add_argument("--gcc", action="store_true", help="build the libraries with gcc: a second for each graph")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.count} graphs", flush=True)       # noqa: T201
    start, failures = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="loader-oracle-") as scratch:
        bench = make_bench(Path(scratch))
        for place in range(options.count):
            graph = generate(options.seed, place)
            graph = replace(graph, bind_now=True) if options.gcc else graph
            found = judge(graph, Path(scratch), bench, with_gcc=options.gcc)
            if found:
                failures += 1
                print(f"graph {place} of seed {options.seed}:", *found, sep="\n  ", flush=True)   # noqa: T201
                if not options.keep_going:
                    print(f"kept as {keep(shrink(graph, Path(scratch), bench))}")    # noqa: T201
                    break
    spent = time.monotonic() - start
    result = {"seed": options.seed, "graphs": options.count, "different": failures, "seconds": round(spent, 1)}
    print(json.dumps(result))       # noqa: T201
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
