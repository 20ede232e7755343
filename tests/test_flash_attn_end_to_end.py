"""flash-attn in a lock: by a hash known, stated or computed; else as a second step; else left out, with the reason."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.judges.command import Run, stackfix
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.replay.releases import ReleaseServer, stand_in
from tests.replay.server import ReplayServer

pytestmark = pytest.mark.recorded

ASKED = ("--torch", "2.3", "--cuda", "12.1")
STACK = {"torch": "2.3.1", "nvidia-cudnn-cu12": "8.9.2.26", "nvidia-nvjitlink-cu12": "12.1.105"}
CP310 = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
CP311 = "flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
NEW_ABI = "flash_attn-2.5.8+cu122torch2.3cxx11abiTRUE-cp311-cp311-linux_x86_64.whl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A recorded index, a cache of its own and a folder."""

    index: str
    folder: Path

    def lock(self, *words: str | Path, source: str | Path) -> Run:
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        return stackfix("lock", *words, "--json", "--format", "requirements", "--format", "pylock", "--index-url",
                        self.index, "--flash-attn-source", source, "-o", out, cwd=self.folder,
                        cache=self.folder / "cache")

    def entries(self, name: str = "requirements.txt") -> dict[str, Entry]:
        return {entry.name: entry for entry in read_entries(self.folder / "out" / name)}


@pytest.fixture
def bench(index: ReplayServer, tmp_path: Path) -> Bench:
    return Bench(index=index.url, folder=tmp_path)


def document(run: Run) -> dict[str, Any]:
    assert run.status == 0, run
    said: dict[str, Any] = run.json
    return said


def flash_requests(requests: Sequence[tuple[str, str, str]], ending: str) -> int:
    return sum(path.endswith(ending) for _, path, _ in requests)


def test_the_hash_that_the_matrix_knows(bench: Bench) -> None:
    with ReleaseServer({}, status=503) as unreachable:
        said = document(bench.lock(*ASKED, "--python", "3.10", source=unreachable.url))
    entries = bench.entries()
    assert {name: entries[name].version for name in STACK} == STACK
    assert all(entry.hashes for entry in entries.values())
    assert str(entries["flash-attn"].url).endswith("/" + CP310.replace("+", "%2B"))
    assert said["stack"]["flash_attn"] == "2.5.8"
    assert any("2.7.4.post1" in note for note in said["notes"])     # newer, but nobody can say its hash


def test_the_digest_that_the_release_source_states(bench: Bench) -> None:
    with ReleaseServer({"2.5.8": (NEW_ABI, CP311)}) as listed:
        document(bench.lock(*ASKED, "--python", "3.11", source=listed.url))
        assert flash_requests(listed.requests, ".whl") == 0
    entry = bench.entries()["flash-attn"]
    assert str(entry.url).endswith("/" + CP311.replace("+", "%2B"))
    assert entry.hashes == (hashlib.sha256(stand_in(CP311)).hexdigest(),)


def test_one_download_where_no_digest_is_stated(bench: Bench) -> None:
    with ReleaseServer({"2.5.8": (CP311,)}, digest=False) as listed:
        for _ in range(2):
            document(bench.lock(*ASKED, "--python", "3.11", source=listed.url))
            assert bench.entries()["flash-attn"].hashes == (hashlib.sha256(stand_in(CP311)).hexdigest(),)
        assert flash_requests(listed.requests, ".whl") == 1


def test_a_folder_of_wheels(bench: Bench) -> None:
    wheels = bench.folder / "wheels"
    wheels.mkdir()
    (wheels / CP311).write_bytes(stand_in(CP311))
    document(bench.lock(*ASKED, "--python", "3.11", source=wheels))
    assert bench.entries()["flash-attn"].hashes == (hashlib.sha256(stand_in(CP311)).hexdigest(),)


def test_no_such_wheel_is_never_kept_in_mind(bench: Bench) -> None:
    for files, has in (((), False), ((CP311,), True)):
        with ReleaseServer({"2.5.8": files}) as listed:
            document(bench.lock(*ASKED, "--python", "3.11", source=listed.url))
        assert ("flash-attn" in bench.entries()) == has


def test_the_second_step_where_no_hash_can_be_had(bench: Bench, pages: Pages) -> None:
    with ReleaseServer({}, status=503) as unreachable:
        said = document(bench.lock(*ASKED, "--python", "3.11", source=unreachable.url))
    assert "flash-attn" not in bench.entries()
    second = bench.entries("requirements-flash-attn.txt")
    assert set(second) == {"flash-attn"}
    assert pages.complaints(bench.folder / "out" / "requirements-flash-attn.txt") == []
    steps = {package["name"]: package.get("step") for package in said["targets"][0]["packages"]}
    assert steps["flash-attn"] == 2
    assert any("second step" in note for note in said["notes"])
    build = {"setuptools", "wheel"} & set(bench.entries())
    assert build == {"setuptools", "wheel"}     # --no-build-isolation needs them installed before


def test_a_wheel_that_is_not_what_the_matrix_knows_is_refused(bench: Bench) -> None:
    with ReleaseServer({"2.5.8": (CP310,)}) as replaced:
        run = bench.lock(*ASKED, "--python", "3.10", "--flash-attn", "2.5.8", source=replaced.url)
    assert run.status == 3, run
    assert "sha256" in run.json["error"]["message"]
    assert not list((bench.folder / "out").iterdir())


def test_left_out_with_the_nearest_stack_that_has_one(bench: Bench) -> None:
    with ReleaseServer({}, status=503) as unreachable:
        said = document(bench.lock("--torch", "2.9", "--python", "3.11", source=unreachable.url))
    assert said["stack"]["flash_attn"] is None
    note = next(note for note in said["notes"] if "flash-attn" in note and "left out" in note)
    assert "torch 2.8" in note
