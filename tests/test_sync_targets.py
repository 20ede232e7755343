"""`stackfix sync pylock.toml` of several targets really installs the one of the environment, through uv and pip."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from platform import machine

import pytest

from stackfix.sync.errors import LockDoesNotFit
from stackfix.sync.install import FindInstaller, find_installer, sync
from stackfix.write.pylock import render_pylocks
from tests.judges.command import clean_environment, run
from tests.lock_samples import HERE, Loopback, loopback
from tests.target_samples import NEWER, OLDER, PROJECTS, Samples, target_of
from tests.test_sync_install import find_pip

pytestmark = pytest.mark.skipif(sys.platform != "linux" or machine() != "x86_64", reason="installs for linux-64")

OTHERS = (target_of("3.11" if HERE.python != "3.11" else "3.12", "linux-64"), target_of(HERE.python, "osx-arm64"),
          target_of(HERE.python, "win-64"), target_of(HERE.python, "linux-aarch64"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("store"), PROJECTS) as started:
        yield started


@pytest.fixture
def lock(tmp_path: Path, servers: Loopback) -> Path:
    """A lock of five targets, this machine's among them."""
    samples = Samples(base=servers.index_url.removesuffix("/simple"))
    targets = (*OTHERS, target_of(HERE.python, "linux-64"))
    path = tmp_path / "pylock.toml"
    path.write_text(render_pylocks([samples.lock(one) for one in targets], second_steps={}), encoding="utf-8")
    return path


@pytest.mark.parametrize("find", [find_installer, find_pip], ids=["uv", "pip"])
def test_the_environment_gets_its_own_packages(
    find: FindInstaller, lock: Path, servers: Loopback, tmp_path: Path,
) -> None:
    assert run([sys.executable, "-m", "venv", "--without-pip", "env"], cwd=tmp_path).status == 0
    environ = clean_environment(UV_CACHE_DIR=str(tmp_path / "cache"), PIP_INDEX_URL=servers.index_url,
                                UV_INDEX_URL=servers.index_url, PIP_NO_CACHE_DIR="1")
    assert sync(lock, environ=environ, prefix=str(tmp_path / "env"), find=find) == 0
    site = tmp_path / "env" / "lib" / f"python{HERE.python}" / "site-packages"
    found = dict(path.name.removesuffix(".dist-info").split("-") for path in site.glob("*.dist-info"))
    assert found == {"torch": "2.8.0", "shared": "3.0", "pure": "1.0", "only_linux": "1.0",
                     "varied": OLDER if HERE.python == "3.11" else NEWER}
    wheel = next(site.glob("torch-*.dist-info/WHEEL")).read_text(encoding="utf-8")
    assert f"Tag: cp{HERE.python.replace('.', '')}-cp{HERE.python.replace('.', '')}-manylinux_2_28_x86_64" in wheel


def test_an_environment_that_is_not_in_the_file_is_refused(servers: Loopback, tmp_path: Path) -> None:
    samples = Samples(base=servers.index_url.removesuffix("/simple"))
    path = tmp_path / "pylock.toml"
    path.write_text(render_pylocks([samples.lock(one) for one in OTHERS], second_steps={}), encoding="utf-8")
    assert run([sys.executable, "-m", "venv", "--without-pip", "env"], cwd=tmp_path).status == 0
    with pytest.raises(LockDoesNotFit) as caught:
        sync(path, environ=clean_environment(), prefix=str(tmp_path / "env"))
    assert f"CPython {HERE.python} on linux-aarch64 or win-64 or osx-arm64" in caught.value.locked_for
    assert not list((tmp_path / "env").glob("lib/*/site-packages/*.dist-info"))
