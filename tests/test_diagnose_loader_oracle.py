"""The simulated loader against the real one: random graphs of a fresh seed, kept cases, mutants that are caught."""

from __future__ import annotations

import platform
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.loader_oracle.build import Bench, build, make_bench
from tests.loader_oracle.generate import generate
from tests.loader_oracle.graph import Graph, features
from tests.loader_oracle.judge import CASES, judge, keep, read_case, shrink
from tests.loader_oracle.observe import Observation, differences, run_real, run_simulated
from tests.loader_oracle.plants import PLANTS
from tests.loader_oracle.simulators import MUTANTS, mutant

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc" or not shutil.which("gcc"),
    reason="graphs are x86_64 files for glibc's loader, and gcc compiles their driver",
)
GRAPHS, LEAST, GCC_GRAPHS = 100, 5, 5
MUTANT_SEED, MUTANT_GRAPHS = 20260101, 400


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="loader-oracle-") as folder:
        yield Path(folder).resolve()


@pytest.fixture(scope="module")
def bench(scratch: Path) -> Bench:
    return make_bench(scratch)


def test_random_graphs_load_as_the_real_loader_loads_them(scratch: Path, bench: Bench) -> None:
    seed = random.randrange(1 << 32)        # noqa: S311 - not a secret
    print(f"seed {seed}")                   # noqa: T201 - to repeat a failure
    for place in range(GRAPHS):
        graph = generate(seed, place)
        found = judge(graph, scratch, bench)
        if found:
            path = keep(shrink(graph, scratch, bench))
            pytest.fail(f"graph {place} of seed {seed}, kept as {path.name}: {found}")


def test_graphs_that_gcc_builds_load_as_the_real_loader_loads_them(scratch: Path, bench: Bench) -> None:
    seed = random.randrange(1 << 32)        # noqa: S311 - not a secret
    print(f"seed {seed}")                   # noqa: T201 - to repeat a failure
    for place in range(GCC_GRAPHS):
        graph = replace(generate(seed, place), bind_now=True)
        assert judge(graph, scratch, bench, with_gcc=True) == [], f"graph {place} of seed {seed}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_feature_is_planted_often(seed: int) -> None:
    counts = Counter(feature for place in range(GRAPHS) for feature in features(generate(seed, place)))
    assert {name: counts[name] for name in PLANTS if counts[name] < LEAST} == {}


def test_a_seed_gives_the_same_graph() -> None:
    assert generate(5, 7) == generate(5, 7)
    assert generate(5, 7) != generate(6, 7)


@pytest.mark.parametrize("path", sorted(CASES.glob("*.json")), ids=lambda path: path.stem)
def test_kept_case(path: Path, scratch: Path, bench: Bench) -> None:
    assert judge(read_case(path), scratch, bench) == []


class Graphs:
    """Graphs of the fixed seed, built and run on the real loader once for all mutants."""

    def __init__(self, scratch: Path, bench: Bench) -> None:
        self.scratch, self.bench = scratch, bench
        self.known: list[tuple[Graph, Path, Observation]] = []

    def __iter__(self) -> Iterator[tuple[Graph, Path, Observation]]:
        for place in range(MUTANT_GRAPHS):
            if place == len(self.known):
                graph, folder = generate(MUTANT_SEED, place), self.scratch / f"fixed{place}"
                folder.mkdir()
                build(graph, folder, self.bench)
                self.known.append((graph, folder, run_real(graph, folder)))
            yield self.known[place]


@pytest.fixture(scope="module")
def graphs(scratch: Path, bench: Bench) -> Graphs:
    return Graphs(scratch, bench)


@pytest.mark.parametrize(("rule", "part"), [(rule, part) for rule, parts in MUTANTS.items() for part in parts],
                         ids=lambda value: value if isinstance(value, int) else value.__name__)
def test_a_broken_rule_is_caught(rule: int, part: type, graphs: Graphs, bench: Bench) -> None:
    broken = mutant(part)
    assert any(differences(real, run_simulated(graph, folder, bench, broken)) for graph, folder, real in graphs), \
        f"no graph of seed {MUTANT_SEED} notices that rule {rule} is broken: {part.__doc__}"


def test_every_rule_has_a_mutant() -> None:
    assert sorted(MUTANTS) == list(range(1, 11))
