"""Locks of every CUDA variant that the torch index has, judged by what we did not write.

Each is made twice: with the torch index on loopback, and from what the matrix knows of it. The bytes must be the same.
Then the rows of the index, uv's dry run and its own resolution, packaging.pylock and, for some, pip judge them. They
are in the table at the end of the run, with those of the default index.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.judges import pip, pylock, torch_index
from tests.judges.lockfile import read_entries
from tests.judges.pages import Pages
from tests.judges.table import VERDICTS, Verdict
from tests.judges.uv import UvJudge, compiled_set, locked_set
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.torch_index import TorchReplica
from tests.test_judged_locks import RUNNING, complaint
from tests.variant_locks import Locked, Locker, both_ways

pytestmark = pytest.mark.recorded

AARCH64 = "linux-aarch64"
ON_LINUX = (        # torch, CUDA, Pythons with what is asked beside torch
    ("2.0", "11.8", "3.10", "torchvision"), ("2.0", "cpu", "3.11"),
    ("2.1", "11.8", "3.11", "xformers"), ("2.1", "11.8", "3.9", "torchvision", "torchaudio"), ("2.1", "cpu", "3.10"),
    ("2.2", "11.8", "3.12"), ("2.2", "11.8", "3.11", "torchvision", "xformers"), ("2.2", "cpu", "3.12", "torchvision"),
    ("2.3", "11.8", "3.11", "torchvision"), ("2.3", "11.8", "3.12", "transformers"), ("2.3", "cpu", "3.11"),
    ("2.3", "11.8", "3.10", "xformers"), ("2.4", "11.8", "3.11", "torchvision"), ("2.4", "12.4", "3.12", "torchaudio"),
    ("2.4", "12.4", "3.11", "torchvision"), ("2.4", "11.8", "3.12", "xformers"), ("2.4", "cpu", "3.10", "torchvision"),
    ("2.5", "11.8", "3.13"), ("2.5", "11.8", "3.11", "xformers"), ("2.5", "12.1", "3.11", "torchvision"),
    ("2.5", "12.1", "3.12", "xformers"), ("2.5", "cpu", "3.13"), ("2.6", "11.8", "3.11", "torchvision"),
    ("2.6", "11.8", "3.12", "xformers"), ("2.6", "12.6", "3.11", "torchvision"), ("2.6", "12.6", "3.13"),
    ("2.6", "12.6", "3.12", "xformers"), ("2.6", "cpu", "3.11", "torchvision"), ("2.7", "11.8", "3.11"),
    ("2.7", "11.8", "3.12", "torchvision"), ("2.7", "12.8", "3.13", "torchvision"), ("2.7", "12.8", "3.11", "xformers"),
    ("2.7", "12.8", "3.10", "transformers"), ("2.7", "cpu", "3.12", "torchvision"), ("2.8", "12.6", "3.11"),
    ("2.8", "12.6", "3.12", "torchvision", "torchaudio"), ("2.8", "12.6", "3.10", "xformers"),
    ("2.8", "12.9", "3.12", "torchvision", "torchaudio"), ("2.8", "12.9", "3.13"),
    ("2.8", "cpu", "3.11", "torchvision"), ("2.9", "12.6", "3.11", "torchvision"), ("2.9", "12.6", "3.12", "xformers"),
    ("2.9", "12.9", "3.13"), ("2.9", "13.0", "3.12", "torchvision"), ("2.9", "13.0", "3.14"), ("2.9", "cpu", "3.14"),
    ("2.10", "12.6", "3.12", "torchvision"), ("2.10", "12.9", "3.11"), ("2.10", "13.0", "3.13", "torchvision"),
    ("2.10", "13.0", "3.12", "torchaudio"), ("2.10", "cpu", "3.12", "torchvision"), ("2.11", "12.8", "3.12"),
    ("2.11", "12.8", "3.13", "torchvision"), ("2.11", "cpu", "3.11"), ("2.12", "cpu", "3.13"),
    ("2.13", "12.6", "3.12", "torchvision"), ("2.13", "cpu", "3.14"),
)
ON_AARCH64 = (
    ("2.4", "12.4", "3.11"), ("2.5", "12.4", "3.12", "torchvision"), ("2.6", "12.6", "3.11", "torchvision"),
    ("2.7", "12.8", "3.12", "torchvision"), ("2.8", "12.9", "3.11", "torchvision"), ("2.9", "12.8", "3.12"),
    ("2.9", "13.0", "3.13", "torchvision"), ("2.10", "12.6", "3.12", "torchvision"), ("2.10", "13.0", "3.11"),
    ("2.11", "12.8", "3.13", "torchvision"), ("2.13", "12.6", "3.12"),
)
BY_PIP = 6          # of those that pip can judge: it runs for seconds, and each release of torch is much like the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One request."""

    torch: str
    cuda: str
    python: str
    with_: tuple[str, ...]
    platform: str = "linux-64"
    by_pip: bool = False

    def __str__(self) -> str:
        return " ".join((f"torch {self.torch}+{self.cuda}", f"py{self.python}", self.platform, *self.with_))

    @property
    def words(self) -> tuple[str, ...]:
        """The options."""
        asked = ("--torch", self.torch, "--cuda", self.cuda, "--python", self.python, "--platform", self.platform)
        return (*asked, "--no-flash-attn", *(word for name in self.with_ for word in ("--with", name)))


def _variants() -> Iterator[Variant]:
    by_pip = 0
    for torch, cuda, python, *with_ in ON_LINUX:
        here = python == RUNNING and by_pip < BY_PIP
        by_pip += here
        yield Variant(torch=torch, cuda=cuda, python=python, with_=tuple(with_), by_pip=here)
    for torch, cuda, python, *with_ in ON_AARCH64:
        yield Variant(torch=torch, cuda=cuda, python=python, with_=tuple(with_), platform=AARCH64)


VARIANTS = tuple(_variants())


def test_variants_span_the_torch_index() -> None:
    assert len(set(VARIANTS)) >= 65
    assert {one.cuda for one in VARIANTS} == {"11.8", "12.1", "12.4", "12.6", "12.8", "12.9", "13.0", "cpu"}
    assert len({one.torch for one in VARIANTS}) >= 14


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[TorchReplica]:
    with TorchReplica(store) as served:
        yield served


@pytest.mark.parametrize("asked", VARIANTS, ids=str)
def test_a_variant_is_the_same_from_the_index_and_from_the_matrix(
    asked: Variant, tmp_path: Path, lock: Locker, index: ReplayServer, replica: TorchReplica, pages: Pages,
    uv_cache: Path, request: pytest.FixtureRequest,
) -> None:
    found, alone, seconds = both_ways(lock, asked.words, tmp_path, replica.url)
    assert "the torch index could not be reached" in alone.said
    said = verdicts(asked, found, tmp_path, index=index, replica=replica, pages=pages, uv_cache=uv_cache)
    request.config.stash[VERDICTS].append(Verdict(
        combination=str(asked), packages=len(read_entries(found.requirements)), seconds=seconds, said=said))
    assert {name: text for name, text in said.items() if text} == {}
    assert "torch" in {entry.name for entry in torch_index.torch_entries(found.requirements)}


def verdicts(
    asked: Variant, found: Locked, scratch: Path, *, index: ReplayServer, replica: TorchReplica, pages: Pages,
    uv_cache: Path,
) -> dict[str, str]:
    """What each judge says of the lock: "" for yes."""
    judged = torch_index.led_to(replica, found.requirements, scratch / "led-to-loopback.txt")
    entries = read_entries(judged)
    uv = UvJudge(index_url=index.url, cache=uv_cache, python=asked.python, platform=asked.platform)
    urls = [f"{entry.name} @ {entry.url}" for entry in entries if entry.url]
    compiled = uv.compile([*asked.with_[:0], *urls, *asked.with_], entries, scratch)
    different = compiled_set(compiled.stdout) ^ locked_set(entries)
    said = {
        "index page": "\n".join(pages.complaints(found.requirements)),
        "torch index": "\n".join(torch_index.complaints(found.requirements)),
        "uv dry-run": complaint(uv.dry_run(judged, scratch)),
        "uv compile": complaint(compiled) or (f"differs in {sorted(different)}" if different else ""),
        "pylock": "\n".join(pylock.complaints(found.folder / "pylock.toml", read_entries(found.requirements),
                                              python=asked.python, platform=asked.platform, glibc="2.28")),
    }
    if asked.by_pip and sys.platform == "linux":
        said["pip"] = complaint(pip.dry_run(
            judged, scratch, pages=pages, python=asked.python, platform=asked.platform, glibc="2.28"))
    return said
