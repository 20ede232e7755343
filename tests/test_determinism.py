"""The same input and the same index give the same bytes, wherever and however the command runs."""

from __future__ import annotations

import os
import shutil
import site
import sys
from pathlib import Path

import pytest

from tests.judges.command import clean_environment, run, stackfix
from tests.replay.index import ADVERTISED
from tests.replay.server import ReplayServer
from tests.replay.store import Store

pytestmark = pytest.mark.recorded

ASKED = ("lock", "--torch", "2.11", "--python", "3.11", "--python", "3.12", "--platform", "linux-64",
         "--platform", "linux-aarch64", "--with", "transformers", "--with", "torchvision", "--no-flash-attn",
         "--format", "requirements", "--format", "pylock", "--format", "constraints")


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lock(folder: Path, index: str, cache: Path, python: str = sys.executable, **env: str) -> dict[str, bytes]:
    folder.mkdir(parents=True)
    done = stackfix(*ASKED, "--index-url", index, "-o", ".", cwd=folder, cache=cache, env=env, python=python)
    assert done.status == 0, done
    files = written(folder)
    assert len(files) >= 3
    return files


@pytest.fixture(scope="module")
def first(index: ReplayServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a first run, cold."""
    return lock(tmp_path_factory.mktemp("first") / "a", index.url, tmp_path_factory.mktemp("cold"), PYTHONHASHSEED="1")


def test_another_folder_hash_seed_clock_and_locale(
    first: dict[str, bytes], index: ReplayServer, tmp_path: Path,
) -> None:
    again = lock(tmp_path / "elsewhere" / "b", index.url, tmp_path / "cache", PYTHONHASHSEED="4242", TZ="Asia/Tokyo",
                 LC_ALL="C", USER="somebody", HOSTNAME="somewhere")
    assert again == first


def test_a_warm_cache(first: dict[str, bytes], index: ReplayServer, tmp_path: Path) -> None:
    lock(tmp_path / "a", index.url, tmp_path / "cache")
    assert lock(tmp_path / "b", index.url, tmp_path / "cache") == first


def test_over_its_own_files(first: dict[str, bytes], index: ReplayServer, tmp_path: Path) -> None:
    lock(tmp_path / "a", index.url, tmp_path / "cache")
    done = stackfix(*ASKED, "--index-url", index.url, "-o", ".", cwd=tmp_path / "a", cache=tmp_path / "cache")
    assert done.status == 0, done
    assert written(tmp_path / "a") == first


def test_an_index_that_advertises_no_metadata(
    first: dict[str, bytes], plain_index: ReplayServer, tmp_path: Path,
) -> None:
    other = lock(tmp_path / "a", plain_index.url, tmp_path / "cache")
    hashes_only = {name for name in first if name.startswith(("requirements", "constraints"))}
    assert hashes_only
    assert {name: other[name] for name in hashes_only} == {name: first[name] for name in hashes_only}


def test_an_index_that_speaks_html(first: dict[str, bytes], store: Store, tmp_path: Path) -> None:
    with ReplayServer(store, metadata=ADVERTISED, html_only=True) as html_index:
        other = lock(tmp_path / "a", html_index.url, tmp_path / "cache")
    hashes_only = {name for name in first if name.startswith(("requirements", "constraints"))}
    assert {name: other[name] for name in hashes_only} == {name: first[name] for name in hashes_only}


@pytest.mark.parametrize("minor", ["3.10", "3.12", "3.13"])
def test_another_running_python(
    minor: str, first: dict[str, bytes], index: ReplayServer, tmp_path: Path,
) -> None:
    python = shutil.which(f"python{minor}")
    if python is None:
        pytest.skip(f"no python{minor} on this machine")
    packages = os.pathsep.join([str(Path(__file__).parent.parent), *site.getsitepackages()])
    environment = clean_environment(PYTHONPATH=packages)
    usable = run([python, "-c", "import click, httpx, packaging, pip, resolvelib, rich, stackfix.cli"],
                 cwd=tmp_path, env=environment)
    if usable.status != 0:
        pytest.skip(f"python{minor} cannot import our dependencies: {usable.stderr.strip().splitlines()[-1:]}")
    assert lock(tmp_path / "a", index.url, tmp_path / "cache", python=python, PYTHONPATH=packages) == first


def test_nothing_of_this_machine_is_in_the_files(first: dict[str, bytes]) -> None:
    text = b"\n".join(first.values()).decode()
    for word in (str(Path.home()), os.uname().nodename, sys.prefix, str(Path(__file__).parent)):
        if len(word) > 3:
            assert word not in text
