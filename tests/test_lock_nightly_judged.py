"""Locks of nightlies before judges that we did not write: uv, pip, packaging; and what sync and diff make of them."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stackfix.cli.app import run as stackfix
from tests.judges import pip, pylock, torch_index
from tests.judges.command import clean_environment, run
from tests.judges.lockfile import Entry, read_entries
from tests.judges.pages import Pages
from tests.judges.uv import UvJudge, compiled_set, locked_set
from tests.replay.server import ReplayServer
from tests.replay.store import Store
from tests.replay.torch_nightly import NightlyReplica
from tests.test_judged_locks import RUNNING, complaint
from tests.variant_locks import Locked, Locker

pytestmark = pytest.mark.recorded

COMPANIONS = ("torchvision", "torchaudio")
ASKED = {       # platform, CUDA
    "linux-64 with CUDA 12.8": ("linux-64", "12.8"),
    "linux-64 for the CPU": ("linux-64", "cpu"),
    "linux-aarch64 for the CPU": ("linux-aarch64", "cpu"),
    "win-64 with CUDA 12.8": ("win-64", "12.8"),
    "osx-arm64": ("osx-arm64", "cpu"),
}


@pytest.fixture(scope="module")
def replica(store: Store) -> Iterator[NightlyReplica]:
    with NightlyReplica(store, hashless=lambda _: False) as served:
        yield served


def asked_for(platform: str, cuda: str, python: str = RUNNING) -> tuple[str, ...]:
    beside = (word for name in COMPANIONS for word in ("--with", name))
    return ("--torch", "2.9.0.dev20250902", "--cuda", cuda, "--python", python, "--platform", platform,
            "--no-flash-attn", *beside)


def led_to(replica: NightlyReplica, found: Locked, copy: Path) -> Path:
    """The requirements with addresses of the index on loopback; the hashes are those of its wheels."""
    text = found.requirements.read_text(encoding="utf-8").replace(f"{torch_index.BASE}/", f"{replica.url}/")
    copy.write_text(text, encoding="utf-8")
    return copy


@pytest.mark.parametrize("name", ASKED)
def test_installers_take_it(
    name: str, lock: Locker, index: ReplayServer, replica: NightlyReplica, pages: Pages, uv_cache: Path, tmp_path: Path
) -> None:
    platform, cuda = ASKED[name]
    found = lock(asked_for(platform, cuda, "3.11"), tmp_path / "lock", replica.url)
    assert found.status == 0, found.said
    judged = led_to(replica, found, tmp_path / "judged.txt")
    entries = read_entries(judged)
    uv = UvJudge(index_url=index.url, cache=uv_cache, python="3.11", platform=platform)
    compiled = uv.compile([f"{entry.name} @ {entry.url}" for entry in entries if entry.url], entries, tmp_path)
    assert complaint(compiled) == ""
    assert compiled_set(compiled.stdout) == locked_set(entries)
    assert complaint(uv.dry_run(judged, tmp_path)) == ""
    assert pages.complaints(found.requirements) == []
    said = pylock.complaints(found.folder / "pylock.toml", read_entries(found.requirements), python="3.11",
                             platform=platform, glibc="2.28")
    assert said == []
    assert {entry.name for entry in entries if entry.url} == {"torch", *COMPANIONS, *(
        ["pytorch-triton"] if (platform, cuda) == ("linux-64", "12.8") else [])}


@pytest.mark.skipif(sys.platform != "linux", reason="pip takes wheels of the machine that it runs on")
def test_pip_takes_it(lock: Locker, replica: NightlyReplica, pages: Pages, tmp_path: Path) -> None:
    found = lock(asked_for("linux-64", "12.8"), tmp_path / "lock", replica.url)
    judged = led_to(replica, found, tmp_path / "judged.txt")
    verdict = pip.dry_run(judged, tmp_path, pages=pages, python=RUNNING, platform="linux-64", glibc="2.28")
    assert complaint(verdict) == ""


@pytest.fixture
def installed(lock: Locker, replica: NightlyReplica, tmp_path: Path) -> tuple[Path, dict[str, Entry]]:
    """An environment with what a lock has from the torch index, really installed; and the lock's pins."""
    found = lock(asked_for("linux-64", "12.8"), tmp_path / "lock", replica.url)
    assert found.status == 0, found.said
    pins = {entry.name: entry for entry in read_entries(found.requirements)}
    lines = [f"{one.name} @ {str(one.url).replace(torch_index.BASE, replica.url)} --hash=sha256:{one.hashes[0]}\n"
             for one in pins.values() if one.url]
    (tmp_path / "family.txt").write_text("".join(lines), encoding="utf-8")
    prefix = tmp_path / "env"
    assert run([sys.executable, "-m", "venv", "--without-pip", prefix], cwd=tmp_path).status == 0
    done = run([sys.executable, "-m", "pip", "--python", prefix / "bin" / "python", "install", "--no-deps",
                "--require-hashes", "--no-cache-dir", "--no-index", "-r", tmp_path / "family.txt"],
               cwd=tmp_path, env=clean_environment())
    assert complaint(done) == ""
    return prefix, pins


@pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")
def test_sync_finds_that_it_is_there(
    installed: tuple[Path, dict[str, Entry]], lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    prefix, pins = installed
    file = tmp_path / "requirements.txt"        # uv wants a pin by address from that address
    text = (tmp_path / "lock" / "requirements.txt").read_text()
    file.write_text(text.replace(torch_index.BASE, replica.url))
    lock.capfd.readouterr()
    status = stackfix(["sync", str(file), "--prefix", str(prefix), "--dry-run", "--json"])
    document = json.loads(lock.capfd.readouterr().out)
    assert status == 1
    actions = {change["name"]: (change["action"], change["locked"]) for change in document["changes"]}
    assert actions["torch"] == ("keep", "2.9.0.dev20250902+cu128")
    assert actions["torchvision"] == ("keep", "0.24.0.dev20250902+cu128")
    assert actions["pytorch-triton"] == ("keep", "3.4.0+gitf7888497")
    assert {name for name, (action, _) in actions.items() if action == "keep"} == {
        name for name, entry in pins.items() if entry.url}


@pytest.mark.skipif(sys.platform != "linux", reason="the wheels are for Linux")
def test_diff_tells_the_lock_from_the_environment_and_one_night_from_another(
    installed: tuple[Path, dict[str, Entry]], lock: Locker, replica: NightlyReplica, tmp_path: Path
) -> None:
    prefix, _ = installed
    shutil.copytree(tmp_path / "lock", tmp_path / "other")
    words = [word.replace("dev20250902", "dev20250903") for word in asked_for("linux-64", "12.8")]
    assert lock(words, tmp_path / "other", replica.url).status == 0
    lock.capfd.readouterr()
    status = stackfix(["diff", str(tmp_path / "lock" / "requirements.txt"), str(tmp_path / "other" / "pylock.toml")])
    said = lock.capfd.readouterr().out
    assert status == 1
    for text in ("torch 2.9.0.dev20250902+cu128 -> 2.9.0.dev20250903+cu128", "nvidia-nccl-cu12 2.27.5 -> 2.27.7",
                 "torchvision 0.24.0.dev20250902+cu128 -> 0.24.0.dev20250903+cu128"):
        assert text in said, said
    assert "pytorch-triton" not in said
    stackfix(["diff", str(tmp_path / "lock" / "requirements.txt"), str(prefix)])
    beside = lock.capfd.readouterr().out
    assert "torch 2.9" not in beside
    assert "nvidia-nccl-cu12" in beside
