"""One run for many targets: its pylock.toml must give each of them what its requirements.txt pins, and no other any.

uv holds `requires-python` against the Python that it runs with, whatever `--python-version` says: so each file has a
target of the oldest that these tests run on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("packaging.pylock", reason="packaging before 26.0 cannot read pylock.toml")

from tests.judges import pylock, torch_index
from tests.judges.command import Run, clean_environment, run
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.table import VERDICTS, Verdict
from tests.replay.store import Store
from tests.replay.torch_index import TorchReplica
from tests.variant_locks import Locker, both_ways

pytestmark = pytest.mark.recorded

UV_PLATFORMS = {"linux-64": "x86_64-manylinux_2_28", "linux-aarch64": "aarch64-manylinux_2_28",
                "win-64": "x86_64-pc-windows-msvc", "osx-arm64": "aarch64-apple-darwin"}
CHOSEN = re.compile(r"^ \+ (?P<name>[a-z0-9-]+)(?:==(?P<version>\S+)| @ (?P<url>\S+))$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request for several targets."""

    torch: str
    cuda: str
    pythons: tuple[str, ...]
    places: tuple[str, ...]
    with_: tuple[str, ...] = ()
    outside: tuple[str, str]        # a Python and a platform that are not asked

    def __str__(self) -> str:
        return f"torch {self.torch}+{self.cuda}, {len(self.pythons)} Pythons, {len(self.places)} places"

    @property
    def words(self) -> tuple[str, ...]:
        """The options."""
        return ("--torch", self.torch, "--cuda", self.cuda, "--no-flash-attn",
                *(word for python in self.pythons for word in ("--python", python)),
                *(word for place in self.places for word in ("--platform", place)),
                *(word for name in self.with_ for word in ("--with", name)))

    @property
    def targets(self) -> tuple[tuple[str, str], ...]:
        """Python and place of each."""
        return tuple((python, place) for python in self.pythons for place in self.places)


ALL = ("linux-64", "linux-aarch64", "win-64", "osx-arm64")
TABLE = (
    Asked(torch="2.8", cuda="12.9", pythons=("3.10", "3.12"), places=(*ALL, "linux-64-cpu", "win-64-cpu"),
          with_=("torchvision", "transformers"), outside=("3.13", "x86_64-manylinux_2_28")),
    Asked(torch="2.6", cuda="12.6", pythons=("3.10",), places=("linux-64", "win-64", "osx-arm64"),
          with_=("torchvision",), outside=("3.10", "aarch64-manylinux_2_28")),
    Asked(torch="2.3", cuda="cpu", pythons=("3.9", "3.10", "3.12"), places=("linux-64", "osx-arm64"),
          with_=("numpy<2",), outside=("3.11", "x86_64-manylinux_2_28")),
    Asked(torch="2.7", cuda="12.8", pythons=("3.10", "3.13"), places=("linux-64", "win-64-cpu"),
          outside=("3.13", "aarch64-apple-darwin")),
)


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[TorchReplica]:
    with TorchReplica(store) as served:
        yield served


@pytest.mark.parametrize("asked", TABLE, ids=str)
def test_one_pylock_is_each_target_s_own(
    asked: Asked, tmp_path: Path, lock: Locker, replica: TorchReplica, pages: Pages,
    request: pytest.FixtureRequest,
) -> None:
    found, _, seconds = both_ways(lock, asked.words, tmp_path, replica.url)
    apart = any(place.endswith("-cpu") and place[:-4] in asked.places for place in asked.places)
    locks = {path.name for path in found.folder.glob("pylock*")}
    assert locks == ({"pylock.toml", "pylock.cpu.toml"} if apart else {"pylock.toml"})
    said: dict[str, str] = {}
    for python, place in asked.targets:
        requirements = found.folder / f"requirements-cp{python.replace('.', '')}-{place}.txt"
        file = found.folder / ("pylock.cpu.toml" if apart and place.endswith("-cpu") else "pylock.toml")
        for judge, text in judged(file, requirements, python, place.removesuffix("-cpu"), pages, tmp_path):
            said[judge] = "\n".join(filter(None, (said.get(judge), text and f"{python} {place}: {text}")))
    request.config.stash[VERDICTS].append(Verdict(
        combination=str(asked), packages=len(asked.targets), seconds=seconds, said=said))
    assert {name: text for name, text in said.items() if text} == {}
    refused = uv_chooses(found.folder / "pylock.toml", *asked.outside, tmp_path)
    assert refused.status != 0
    assert "not supported by the lockfile" in refused.stderr


def judged(
    file: Path, requirements: Path, python: str, platform: str, pages: Pages, scratch: Path,
) -> Iterator[tuple[str, str]]:
    """What each judge says of the file for a target: "" for yes."""
    entries = read_entries(requirements)
    assert entries
    yield "index page", "\n".join(pages.complaints(requirements))
    yield "torch index", "\n".join(torch_index.complaints(requirements))
    yield "pylock", "\n".join(pylock.complaints(file, entries, python=python, platform=platform, glibc="2.28"))
    done = uv_chooses(file, python, UV_PLATFORMS[platform], scratch)
    chosen = {found["name"]: found["url"] or found["version"] for found in CHOSEN.finditer(done.stderr)}
    different = chosen.items() ^ {pin_of(entry) for entry in entries}
    yield "uv pylock", done.stderr if done.status != 0 else f"differs in {sorted(different)}" if different else ""


def pin_of(entry: Entry) -> tuple[str, str]:
    """(name, address or version)."""
    return entry.name, str(entry.url or entry.version)


def uv_chooses(file: Path, python: str, platform: str, scratch: Path) -> Run:
    """uv's dry run of the file, which reads no wheel and asks no index."""
    return run([sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--require-hashes", "-r", str(file),
                "--target", "target", "--no-build", "--no-index", "--python", sys.executable, "--python-version",
                python, "--python-platform", platform],
               cwd=scratch, env=clean_environment(UV_CACHE_DIR=str(scratch / "uv"), UV_PYTHON_DOWNLOADS="never",
                                                  MACOSX_DEPLOYMENT_TARGET="14.0"))
