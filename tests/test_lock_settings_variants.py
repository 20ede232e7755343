"""torch pinned in `[tool.uv.sources]` to a path of the torch index: the same lock as `--cuda` with `--torch-index`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judges import torch_index
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.torch_index import TorchReplica
from tests.variant_locks import Locker, settle

pytestmark = pytest.mark.recorded

ASKED = ("--torch", "2.3", "--python", "3.11", "--no-flash-attn", "--with", "torchvision")


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[TorchReplica]:
    with TorchReplica(store) as served:
        yield served


@pytest.fixture
def lock(index: ReplayServer, stackfix_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
         capfd: pytest.CaptureFixture[str]) -> Locker:
    settle(monkeypatch)
    monkeypatch.delenv("UV_NO_CONFIG")
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    return Locker(index=index.url, cache=stackfix_cache, capfd=capfd)


def pin(base: str, path: str = "cu118", more: str = "") -> None:
    """A pyproject.toml as uv's guide to PyTorch has it, in the working directory."""
    name = f"pytorch-{path}"
    source = f'[{{ index = "{name}"{more} }}]'
    Path("pyproject.toml").write_text(
        f'[[tool.uv.index]]\nname = "{name}"\nurl = "{base}/{path}"\nexplicit = true\n'
        f"[tool.uv.sources]\ntorch = {source}\ntorchvision = {source}\n")


def test_a_pin_to_a_copy_is_read_there_and_written_officially(
    lock: Locker, replica: TorchReplica, tmp_path: Path,
) -> None:
    by_options = lock((*ASKED, "--cuda", "11.8"), tmp_path / "options", replica.url)
    pin(replica.url)
    before = len(replica.requests)
    by_pin = lock(ASKED, tmp_path / "pin", None)
    assert (by_options.status, by_pin.status) == (0, 0), by_pin.said
    assert len(replica.requests) > before
    assert by_pin.files["pylock.toml"] == by_options.files["pylock.toml"]
    written = [str(entry.url) for entry in torch_index.torch_entries(by_pin.requirements)]
    assert [url.removeprefix(f"{torch_index.BASE}/").partition("/")[0] for url in written] == ["cu118", "cu118"]
    assert b"127.0.0.1" not in by_pin.files["pylock.toml"].replace(lock.index.encode(), b"").replace(
        lock.index.removesuffix("/simple").encode(), b"")
    assert f"torch from {replica.url}/cu118" in by_pin.said


def test_a_pin_to_the_official_index_is_the_same_where_nobody_can_be_asked(
    lock: Locker, replica: TorchReplica, tmp_path: Path,
) -> None:
    pin(torch_index.BASE, more=", marker = \"sys_platform == 'linux'\"")
    found = lock(ASKED, tmp_path / "pin", replica.url)
    assert found.status == 0, found.said
    assert b"cu118/torch-2.3.1%2Bcu118" in found.files["requirements.txt"]
    assert "the build of torch for CUDA 11.8 was taken" in found.said


def test_the_option_is_followed_against_the_pin(lock: Locker, replica: TorchReplica, tmp_path: Path) -> None:
    pin(replica.url)
    found = lock((*ASKED, "--cuda", "12.1"), tmp_path / "pin", replica.url)
    assert found.status == 0, found.said
    assert torch_index.torch_entries(found.requirements) == ()
    assert "--cuda 12.1 was followed, though the project's sources mean CUDA 11.8" in found.said
