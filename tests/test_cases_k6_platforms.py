"""Public reports on locks for several platforms and on the torch index beside the default one, with their answers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

pytest.importorskip("packaging.pylock", reason="packaging before 26.0 cannot read pylock.toml")

from packaging.utils import parse_wheel_filename

from tests.judges import pylock
from tests.judges.command import Run, clean_environment, run
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pylock import tags_of
from tests.replay.http import Answer
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.torch_index import LoopbackTorchIndex, TorchReplica
from tests.variant_locks import NOBODY, Locked, Locker

pytestmark = pytest.mark.recorded

# What the torch index has of projects that are not its own: a few files of one Python
MIRRORED: Mapping[str, tuple[str, ...]] = {
    "markupsafe": ("MarkupSafe-3.0.2-cp313-cp313-win_amd64.whl",
                   "MarkupSafe-3.0.2-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
    "jinja2": ("jinja2-3.1.4-py3-none-any.whl",),
}


@dataclass(kw_only=True)
class Mirroring(LoopbackTorchIndex):
    """The torch index with its partial mirrors of other projects."""

    mirrored: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MIRRORED)

    def _page(self, path: str, project: str) -> Answer:
        if project not in self.mirrored:
            return super()._page(path, project)
        lines = [f'<a href="{self.links}/{name}#sha256={"0a" * 32}">{name}</a><br/>' for name in self.mirrored[project]]
        return Answer(headers=(("Content-Type", "text/html"),), body="\n".join(["<!DOCTYPE html>", *lines]).encode())


class MirroringReplica(TorchReplica):
    """The same, served."""

    serves = Mirroring


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[TorchReplica]:
    with MirroringReplica(store) as served:
        yield served


def pins(locked: Locked, place: str, python: str = "311") -> dict[str, Entry]:
    path = locked.folder / f"requirements-cp{python}-{place}.txt"
    return {entry.name: entry for entry in read_entries(path if path.is_file() else locked.requirements)}


# -- astral-sh/uv#9209: a lock made on macOS takes 2.4.1+cpu, which has no wheel for macOS ----------------------------

PLACES = {"linux-64": "x86_64-manylinux_2_28", "linux-aarch64": "aarch64-manylinux_2_28",
          "osx-arm64": "aarch64-apple-darwin", "win-64": "x86_64-pc-windows-msvc"}
CPU = ("--torch", ">=2.4,<2.5", "--cuda", "cpu", "--python", "3.11", "--no-flash-attn",
       *(word for place in PLACES for word in ("--platform", place)))


def uv_chooses(file: Path, platform: str, index: ReplayServer, scratch: Path) -> Run:
    """uv's dry run of the file for a platform, which reads no file."""
    return run([sys.executable, "-m", "uv", "pip", "install", "--dry-run", "-r", str(file), "--target", "target",
                "--no-build", "--index-url", index.url, "--python", sys.executable, "--python-version", "3.11",
                "--python-platform", platform],
               cwd=scratch, env=clean_environment(UV_CACHE_DIR=str(scratch / "uv"), UV_PYTHON_DOWNLOADS="never"))


def test_each_platform_is_locked_to_a_build_that_has_a_wheel_for_it(
    lock: Locker, replica: TorchReplica, index: ReplayServer, tmp_path: Path,
) -> None:
    found, alone = lock(CPU, tmp_path / "lock", replica.url), lock(CPU, tmp_path / "alone", NOBODY)
    assert (found.status, alone.status) == (0, 0), found.said + alone.said
    assert found.files == alone.files
    linux, mac = pins(found, "linux-64")["torch"], pins(found, "osx-arm64")["torch"]
    assert linux.url is not None
    assert linux.url.endswith("/cpu/torch-2.4.1%2Bcpu-cp311-cp311-linux_x86_64.whl")
    assert (mac.url, mac.version) == (None, "2.4.1")
    both = found.folder / "pylock.toml"
    for place, platform in PLACES.items():
        requirements = found.folder / f"requirements-cp311-{place}.txt"
        assert pylock.complaints(both, read_entries(requirements), python="3.11", platform=place, glibc="2.28") == []
        done = uv_chooses(both, platform, index, tmp_path)
        assert done.status == 0, done
        torch = re.search(r"^ \+ torch(?:==| @ )(\S+)", done.stderr, re.MULTILINE)
        assert torch is not None, done
        pin = pins(found, place)["torch"]
        assert torch[1] == (pin.url or pin.version)
    refused = uv_chooses(both, "x86_64-apple-darwin", index, tmp_path)
    assert refused.status != 0
    assert "not supported by the lockfile" in refused.stderr


# -- astral-sh/uv#11532: the torch index mirrors a few helpers with partial wheels, and comes first for all -----------

WINDOWS = ("--torch", "2.6", "--cuda", "12.6", "--python", "3.10", "--platform", "win-64", "--no-flash-attn")


def wheels_of(locked: Locked, name: str, index: ReplayServer) -> list[str]:
    """The files of a project in pylock.toml, all of the default index."""
    text = (locked.folder / "pylock.toml").read_text(encoding="utf-8")
    table = next(part for part in text.split("[[packages]]\n") if part.startswith(f'name = "{name}"\n'))
    addresses = re.findall(r'^url = "([^"]+)"', table, re.MULTILINE)
    assert addresses
    assert all(address.startswith(index.url.removesuffix("/simple")) for address in addresses), addresses
    return re.findall(r'^name = "([^"]+\.whl)"', table, re.MULTILINE)


def test_the_torch_index_is_asked_for_the_torch_family_alone(
    lock: Locker, replica: TorchReplica, index: ReplayServer, tmp_path: Path,
) -> None:
    replica.requests.clear()
    found = lock(WINDOWS, tmp_path / "lock", replica.url)
    assert found.status == 0, found.said
    torch = pins(found, "win-64", "310")["torch"]
    assert torch.url is not None
    assert torch.url.endswith("/cu126/torch-2.6.0%2Bcu126-cp310-cp310-win_amd64.whl")
    taken = frozenset(tags_of("3.10", "win-64"))
    for name in ("markupsafe", "jinja2"):
        files = wheels_of(found, name, index)
        assert files
        assert all(parse_wheel_filename(file)[3] & taken for file in files), files
    asked = {path.strip("/").split("/")[2] for path in replica.requests if path.endswith("/")}
    assert asked <= {"torch", "torchvision", "torchaudio", "xformers", "triton"}, asked


def test_the_mirror_is_what_uv_stumbles_over(replica: TorchReplica, index: ReplayServer, tmp_path: Path) -> None:
    """The premise: an index that comes first, and is not explicit, is the only one asked for what it has."""
    (tmp_path / "asked.in").write_text("markupsafe\n", encoding="utf-8")
    done = run([sys.executable, "-m", "uv", "pip", "compile", "asked.in", "--index", f"{replica.url}/cu126",
                "--default-index", index.url, "--no-build", "--python", sys.executable, "--python-version", "3.10",
                "--python-platform", "x86_64-pc-windows-msvc"],
               cwd=tmp_path, env=clean_environment(UV_CACHE_DIR=str(tmp_path / "uv"), UV_PYTHON_DOWNLOADS="never"))
    assert done.status != 0
    assert "markupsafe" in done.stderr


@pytest.mark.parametrize("place", ["option", "variable"])
def test_the_torch_index_among_the_indexes_is_still_asked_for_the_torch_family_alone(
    place: str, lock: Locker, replica: TorchReplica, index: ReplayServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = lock(WINDOWS, tmp_path / "plain", replica.url)
    replica.requests.clear()
    address = f"{replica.url}/cu126"
    if place == "variable":
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", address)
    words = WINDOWS if place == "variable" else (*WINDOWS, "--extra-index-url", address)
    found = lock(words, tmp_path / "lock", replica.url)
    assert found.status == 0, found.said
    assert (found.folder / "pylock.toml").read_bytes() == (plain.folder / "pylock.toml").read_bytes()
    assert not [path for path in replica.requests if "markupsafe" in path or "jinja2" in path]
    told = (r"/whl/cu126 \((--extra-index-url|PIP_EXTRA_INDEX_URL)\) is the torch index: it was asked for torch and"
            r" what is built with it alone; --cuda 12\.6 asks for its builds")
    assert re.search(told, found.said), found.said


def test_the_torch_index_alone_is_no_index(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    refused = replace(lock, index=f"{replica.url}/cu126/")(WINDOWS, tmp_path / "lock", replica.url)
    assert refused.status == 2, refused.said
    assert "is the torch index, which has torch and what is built with it alone" in refused.said
    assert "leave it out; --cuda 12.6 asks for its builds" in refused.said
