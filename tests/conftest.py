"""The recorded index that many tests share, and the table of judged locks at the end of a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import variant_locks
from tests.cli_world import CONDARC, Say, World, settle, speaker
from tests.judges.pages import Pages
from tests.judges.table import STACKS, VERDICTS, render_rows, render_table
from tests.real_environments.standins import write_wheels
from tests.real_environments.workshop import Workshop
from tests.repair_world import Bench, bench_in
from tests.replay.index import ADVERTISED, UNADVERTISED
from tests.replay.live import LiveIndex
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.variant_locks import Locker

# How fast the machine draws or runs an example is no law of ours: on two busy cores it would fail a test by the clock.
settings.register_profile("stackfix", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("stackfix")


def pytest_configure(config: pytest.Config) -> None:
    os.environ["CONDARC"] = str(CONDARC)        # of programs that tests start, too
    config.addinivalue_line(
        "markers",
        "recorded: needs answers of the live package index, asked once and replayed on loopback from then on "
        "(kept in STACKFIX_RECORDINGS, else in this run's temporary folder)",
    )
    config.stash[VERDICTS] = []
    config.stash[STACKS] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Combination x judge x verdict, whatever the verbosity."""
    verdicts = config.stash[VERDICTS]
    if verdicts:
        terminalreporter.section("judged locks")
        for line in render_table(verdicts):
            terminalreporter.write_line(line)
    stacks = config.stash[STACKS]
    if stacks:
        terminalreporter.section("stacks from conda channels")
        for line in render_rows(stacks):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Recorded answers; what is missing is asked from the live index, once."""
    kept = os.environ.get("STACKFIX_RECORDINGS")
    with LiveIndex() as live:
        yield Store(Path(kept) if kept else tmp_path_factory.mktemp("recordings"), live)


@pytest.fixture(scope="session")
def index(store: Store) -> Iterator[ReplayServer]:
    """The recorded index, metadata advertised: what most indexes are."""
    with ReplayServer(store, metadata=ADVERTISED, cache_headers=True) as server:
        yield server


@pytest.fixture(scope="session")
def plain_index(store: Store) -> Iterator[ReplayServer]:
    """The recorded index without a word on metadata and without cache headers: what some mirrors are."""
    with ReplayServer(store, metadata=UNADVERTISED) as server:
        yield server


@pytest.fixture(scope="session")
def pages(index: ReplayServer) -> Iterator[Pages]:
    """The reader of index pages that shares no code with stackfix."""
    with Pages(index.url) as reader:
        yield reader


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uv-cache")


@pytest.fixture(scope="session")
def stackfix_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stackfix-cache")


@pytest.fixture
def lock(
    index: ReplayServer, stackfix_cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
) -> Locker:
    """Runs `stackfix lock` in this process, with the recorded index and nothing of this machine's settings."""
    variant_locks.settle(monkeypatch)
    return Locker(index=index.url, cache=stackfix_cache, capfd=capfd)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A small index that agrees with the matrix about torch 2.3, and an empty working directory."""
    with World().served() as served:
        settle(monkeypatch, tmp_path, served.url)
        yield served


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Say:
    """Runs a command line in this process."""
    return speaker(capfd)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Where a module's broken environments are made, of stand-in wheels."""
    folder = tmp_path_factory.mktemp("stand-ins")
    (folder / "made").mkdir()
    return Workshop(folder=folder / "made", wheels=write_wheels(folder / "wheels"))


@pytest.fixture
def bench(workshop: Workshop) -> Bench:
    """A broken environment of the test's own, with a package whose library another copy shadows."""
    return bench_in(workshop)
