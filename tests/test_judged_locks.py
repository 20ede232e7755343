"""Locks over torch 2.0 to the newest, each judged by what we did not write.

The index page states every hash; uv's and pip's dry runs take the files; uv's own resolution, limited to our pins,
gives our set; packaging.pylock selects the same. The table is printed at the end of the run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.judges import pip, pylock
from tests.judges.command import Run, stackfix
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.table import VERDICTS, Verdict
from tests.judges.uv import UvJudge, compiled_set, locked_set, loopback_urls, release_path
from tests.replay.releases import ReleaseServer
from tests.replay.server import ReplayServer

pytestmark = pytest.mark.recorded

# Planned by the release's own build matrix, hashed by nobody: the digest has to come from the release source.
PLANNED = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One request. flash-attn: left out; "known": its hash is in the matrix; "listed": in the release source."""

    torch: str
    python: str
    with_: tuple[str, ...] = ()
    platform: str = "linux-64"
    glibc: str = "2.28"
    flash_attn: str | None = None

    def __str__(self) -> str:
        words = [f"torch {self.torch}", f"py{self.python}", self.platform, *self.with_]
        return " ".join([*words, *(["flash-attn"] if self.flash_attn else [])])

    def options(self) -> Iterator[str]:
        yield from ("--torch", self.torch, "--python", self.python, "--platform", self.platform, "--glibc", self.glibc)
        for requirement in self.with_:
            yield from ("--with", requirement)
        if not self.flash_attn:
            yield "--no-flash-attn"


def combination(torch: str, python: str, *with_: str, **rest: Any) -> Combination:
    return Combination(torch=torch, python=python, with_=with_, **rest)


AARCH64 = {"platform": "linux-aarch64"}
NEWER_GLIBC = {"glibc": "2.35"}      # wheels of vllm 0.12 to 0.20 and of its llguidance need more than 2.28
COMBINATIONS = (
    combination("2.0", "3.10", "transformers"),
    combination("2.0", "3.11", "torchvision", "torchaudio"),
    combination("2.0", "3.9", **AARCH64),
    combination("2.1", "3.11", "torchvision", "transformers"),
    combination("2.1", "3.10", "xformers"),
    combination("2.1", "3.9", "torchvision", **AARCH64),
    combination("2.2", "3.12", "transformers"),
    combination("2.2", "3.9", "torchvision"),
    combination("2.3", "3.11", "torchvision", "torchaudio", "transformers"),
    combination("2.3", "3.12", "xformers"),
    combination("2.3", "3.10", flash_attn="known"),
    combination("2.3", "3.11", flash_attn="listed"),
    combination("2.4", "3.10", "torchvision", "torchaudio"),
    combination("2.4", "3.12", "transformers", **AARCH64),
    combination("2.5", "3.11", "xformers", "torchvision"),
    combination("2.5", "3.13", "transformers"),
    combination("2.5", "3.11", "torchaudio", **AARCH64),
    combination("2.6", "3.12", "vllm"),
    combination("2.6", "3.13", "torchvision", "transformers"),
    combination("2.6", "3.10", **AARCH64),
    combination("2.7", "3.11", "xformers", "torchaudio"),
    combination("2.7", "3.9", "torchvision"),
    combination("2.7", "3.11", "transformers", flash_attn="known"),
    combination("2.8", "3.12", "vllm"),
    combination("2.8", "3.11", "transformers", flash_attn="known"),
    combination("2.8", "3.13", "torchvision", **AARCH64),
    combination("2.9", "3.14", "transformers"),
    combination("2.9", "3.12", "vllm", **NEWER_GLIBC),
    combination("2.10", "3.11", "torchvision", "transformers"),
    combination("2.10", "3.14", **AARCH64),
    combination("2.11", "3.12", "torchvision", "torchaudio"),
    combination("2.11", "3.13", "transformers", **AARCH64),
    combination("2.12", "3.11", "transformers"),
    combination("2.13", "3.13", "torchvision", **AARCH64),
    combination("2.14", "3.14", "torchvision", "torchaudio", "transformers"),
    combination("2.14", "3.11", "vllm", **NEWER_GLIBC),
    combination("2.15", "3.14", "torchvision"),
    combination("2.15", "3.12", "transformers", **AARCH64),
)


def test_combinations_span_the_matrix() -> None:
    assert len(COMBINATIONS) >= 30
    assert len({one.torch for one in COMBINATIONS}) >= 12
    assert {one.platform for one in COMBINATIONS} == {"linux-64", "linux-aarch64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A lock in a folder, and what is needed to judge it."""

    asked: Combination
    folder: Path
    scratch: Path
    index: ReplayServer
    pages: Pages
    uv: UvJudge

    @property
    def requirements(self) -> Path:
        return self.folder / "requirements.txt"

    @property
    def requires(self) -> dict[str, tuple[str, ...]]:
        """Requires-Dist of wheels that are locked by URL, as the sdist of the same version states it."""
        urls = [(entry.name, entry.url) for entry in self.entries if entry.url]
        return {url: self.pages.sdist_requires(name, release_path(url)[0]) for name, url in urls}

    @property
    def entries(self) -> tuple[Entry, ...]:
        return read_entries(self.requirements)


def by_pages(judged: Judged) -> str:
    """Every sha256 of both files is stated by the page."""
    return "\n".join(judged.pages.complaints(judged.requirements)
                     + judged.pages.complaints_of_pylock(judged.folder / "pylock.toml"))


def by_uv_dry_run(judged: Judged) -> str:
    return complaint(judged.uv.dry_run(judged.requirements, judged.scratch, judged.requires))


def by_uv_compile(judged: Judged) -> str:
    """What uv resolves, limited to our pins, is our set."""
    with loopback_urls(judged.requirements, judged.scratch / "urls.txt", judged.requires) as copy:
        urls = [f"{entry.name} @ {entry.url}" for entry in read_entries(copy) if entry.url]
        run = judged.uv.compile([f"torch=={judged.asked.torch}.*", *judged.asked.with_, *urls], judged.entries,
                                judged.scratch)
    if run.status:
        return complaint(run)
    different = compiled_set(run.stdout) ^ locked_set(judged.entries)
    return f"differs in {sorted(different)}" if different else ""


def by_pip(judged: Judged) -> str | None:
    """None where pip cannot judge: it evaluates markers and Requires-Python for the Python that runs it."""
    asked = judged.asked
    if (asked.python, asked.platform) != (RUNNING, "linux-64"):
        return None
    return complaint(pip.dry_run(judged.requirements, judged.scratch, pages=judged.pages, python=asked.python,
                                 platform=asked.platform, glibc=asked.glibc, requires=judged.requires))


def by_pylock(judged: Judged) -> str:
    asked = judged.asked
    return "\n".join(pylock.complaints(judged.folder / "pylock.toml", judged.entries, python=asked.python,
                                       platform=asked.platform, glibc=asked.glibc))


JUDGES: dict[str, Callable[[Judged], str | None]] = {
    "index page": by_pages, "uv dry-run": by_uv_dry_run, "uv compile": by_uv_compile, "pip": by_pip,
    "pylock": by_pylock,
}


def complaint(run: Run) -> str:
    return "" if run.status == 0 else f"exit {run.status}: {run.stderr.strip() or run.stdout.strip()}"


@pytest.fixture(scope="session")
def sources() -> Iterator[dict[str | None, str]]:
    """Release sources: one has a wheel that nobody hashed yet, the other cannot be reached."""
    with ReleaseServer({"2.5.8": (PLANNED,)}) as listed, ReleaseServer({}, status=503) as unreachable:
        yield {"listed": listed.url, "known": unreachable.url, None: unreachable.url}


@pytest.mark.parametrize("asked", COMBINATIONS, ids=str)
def test_every_judge_accepts_the_lock(
    asked: Combination, tmp_path: Path, index: ReplayServer, pages: Pages, uv_cache: Path, stackfix_cache: Path,
    sources: dict[str | None, str], request: pytest.FixtureRequest,
) -> None:
    folder, scratch = tmp_path / "lock", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    began = time.monotonic()
    run = stackfix("lock", *asked.options(), "--format", "requirements", "--format", "pylock", "--json",
                   "--index-url", index.url, "--flash-attn-source", sources[asked.flash_attn], "-o", folder,
                   cwd=scratch, cache=stackfix_cache)
    seconds = time.monotonic() - began
    said: dict[str, str] = {"lock": complaint(run)}
    packages = 0
    if run.status == 0:
        judged = Judged(asked=asked, folder=folder, scratch=scratch, index=index, pages=pages,
                        uv=UvJudge(index_url=index.url, cache=uv_cache, python=asked.python, platform=asked.platform,
                                   glibc=asked.glibc))
        packages = len(judged.entries)
        said |= {name: verdict for name, judge in JUDGES.items() if (verdict := judge(judged)) is not None}
    request.config.stash[VERDICTS].append(
        Verdict(combination=str(asked), packages=packages, seconds=seconds, said=said)
    )
    assert {name: text for name, text in said.items() if text} == {}
    assert ("flash-attn" in {entry.name for entry in judged.entries}) == bool(asked.flash_attn)
