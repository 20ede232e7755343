"""`stackfix lock` of nightlies, whole, from a loopback replica of the torch index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judges import torch_index
from tests.judges.lockfile import Entry, read_entries
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.torch_nightly import CU128, NightlyReplica
from tests.variant_locks import Locker, settle

pytestmark = pytest.mark.recorded

PY311 = ("--python", "3.11")


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[NightlyReplica]:
    with NightlyReplica(store) as served:
        yield served


@pytest.fixture
def lock(index: ReplayServer, stackfix_cache: Path, monkeypatch: pytest.MonkeyPatch,
         capfd: pytest.CaptureFixture[str]) -> Locker:
    settle(monkeypatch)
    return Locker(index=index.url, cache=stackfix_cache, capfd=capfd)


def entries(folder: Path) -> dict[str, Entry]:
    return {entry.name: entry for entry in read_entries(folder / "requirements.txt")}


def test_a_nightly_comes_from_its_path_and_its_libraries_from_the_default_index(
    lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    words = ("--torch", "2.9.0.dev20250902", "--cuda", "12.8", *PY311, "--with", "torchvision")
    found = lock(words, tmp_path, replica.url)
    assert found.status == 0, found.said
    locked = entries(tmp_path)
    base = f"{torch_index.BASE}/nightly"
    end = "cp311-cp311-manylinux_2_28_x86_64.whl"
    assert str(locked["torch"].url) == f"{base}/cu128/torch-2.9.0.dev20250902%2Bcu128-{end}"
    assert str(locked["torchvision"].url) == f"{base}/cu128/torchvision-0.24.0.dev20250902%2Bcu128-{end}"
    assert str(locked["pytorch-triton"].url).startswith(f"{base}/pytorch_triton-3.4.0%2Bgitf7888497-cp311-cp311-")
    for name, version in CU128.items():
        assert (locked[name].version, locked[name].url) == (version, None)
    assert found.said.splitlines()[2].startswith("torch 2.9.0.dev20250902 (nightly of 2025-09-02) · CUDA 12.8 · cuDNN")
