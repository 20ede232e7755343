"""`stackfix sync` really installs: tiny wheels from loopback, into fresh environments, through uv and through pip."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from stackfix.errors import BadInput, StackfixError
from stackfix.resolve.records import LockedPackage, TargetLock
from stackfix.sources.records import ReleaseAsset
from stackfix.sync.changes import describe
from stackfix.sync.errors import InstallFailed, LockDoesNotFit
from stackfix.sync.install import FindInstaller, find_installer, sync
from stackfix.sync.plan import pip_installer
from stackfix.sync.records import Installer, Interpreter, Plan
from stackfix.sync.source import WrongWheel
from stackfix.write.files import plan_files, write_files
from tests.judges.command import clean_environment, run
from tests.lock_samples import (
    COMMAND,
    FLASH,
    HERE,
    WHEELS,
    Loopback,
    index_file,
    lock_of,
    loopback,
    package,
    sample_packages,
    target_lock,
)
from tests.replay.releases import stand_in

NOBODY = "http://127.0.0.1:9/simple"       # the discard port: a request is refused
ALL = {"einops": "0.8.1", "filelock": "3.29.0", "flash_attn": "2.5.8", "tiny_server": "1.0", "torch": "2.3.1"}

# A build that looks at torch while it runs, as flash-attn's does, and that no isolated build could do
BACKEND = """
import zipfile, pathlib
import torch
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "flash_attn-2.5.8-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as archive:
        archive.writestr("flash_attn.py", "built_beside = %r" % torch.__file__)
        archive.writestr("flash_attn-2.5.8.dist-info/METADATA",
                         "Metadata-Version: 2.1\\nName: flash-attn\\nVersion: 2.5.8\\n")
        archive.writestr("flash_attn-2.5.8.dist-info/WHEEL",
                         "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr("flash_attn-2.5.8.dist-info/RECORD", "")
    return name
"""
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
PYPROJECT += '[project]\nname = "flash-attn"\nversion = "2.5.8"\n'


def make_sdist() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, text in {"pyproject.toml": PYPROJECT, "backend.py": BACKEND,
                           "PKG-INFO": "Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.5.8\n"}.items():
            member = tarfile.TarInfo(f"flash_attn-2.5.8/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


SDIST = make_sdist()
PROJECTS: Mapping[str, Mapping[str, bytes]] = {**WHEELS, "flash-attn": {"flash_attn-2.5.8.tar.gz": SDIST}}


def find_pip(interpreter: Interpreter, environ: Mapping[str, str]) -> Installer:
    return pip_installer(sys.executable, interpreter)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loopback]:
    with loopback(tmp_path_factory.mktemp("store"), PROJECTS) as started:
        yield started


@dataclass(kw_only=True)
class Place:
    """A fresh environment, the variables of a user, and the installer to use."""

    folder: Path
    venv: Path
    environ: dict[str, str]
    find: FindInstaller

    def sync(self, name: str, **options: object) -> int:
        return sync(self.folder / name, environ=self.environ, prefix=str(self.venv), find=self.find,
                    **options)  # type: ignore[arg-type]

    def installed(self) -> dict[str, str]:
        site = self.venv / "lib" / f"python{HERE.python}" / "site-packages"
        names = (path.name.removesuffix(".dist-info").split("-") for path in site.glob("*.dist-info"))
        return {name: version for name, version in names if name not in {"pip", "setuptools"}}

    def write(self, lock: TargetLock, *formats: str) -> None:
        write_files(self.folder, plan_files(lock_of(lock), formats=formats, name=None, command=COMMAND))


@pytest.fixture(params=["uv", "pip"])
def place(request: pytest.FixtureRequest, servers: Loopback, tmp_path: Path) -> Place:
    venv = tmp_path / "venv"
    made = run([sys.executable, "-m", "uv", "venv", "--python", sys.executable, venv], cwd=tmp_path)
    assert made.status == 0, made
    environ = clean_environment(UV_CACHE_DIR=str(tmp_path / "cache"), UV_DEFAULT_INDEX=servers.index_url,
                                PIP_INDEX_URL=servers.index_url, PIP_NO_CACHE_DIR="1")
    return Place(folder=tmp_path, venv=venv, environ=environ,
                 find=find_pip if request.param == "pip" else find_installer)


def two_step(servers: Loopback) -> TargetLock:
    base = servers.index_url.removesuffix("/simple")
    file = index_file("flash-attn", "flash_attn-2.5.8.tar.gz", SDIST,
                      url=f"{base}/files/flash-attn/flash_attn-2.5.8.tar.gz")
    later = package("flash-attn", "2.5.8", (file,), requires=("torch",), requested_by=("stack",), step=2)
    return target_lock((*(p for p in sample_packages(servers) if p.name != "flash-attn"), later))


def altered(lock: TargetLock, name: str) -> TargetLock:
    """One hex digit of each file of `name` changed."""
    def other(sha256: str | None) -> str:
        assert sha256 is not None
        return ("0" if sha256[0] != "0" else "1") + sha256[1:]

    def change(pin: LockedPackage) -> LockedPackage:
        return replace(pin, files=tuple(replace(file, sha256=other(file.sha256)) for file in pin.files))

    return replace(lock, packages=tuple(change(pin) if pin.name == name else pin for pin in lock.packages))


@pytest.mark.parametrize("form", ["requirements", "pylock"])
def test_the_lock_is_installed_and_nothing_else(place: Place, servers: Loopback, form: str) -> None:
    place.write(target_lock(sample_packages(servers)), form)
    assert place.sync("requirements.txt" if form == "requirements" else "pylock.toml") == 0
    assert place.installed() == ALL
    assert place.sync("requirements.txt" if form == "requirements" else "pylock.toml", quiet=True) == 0


@pytest.mark.parametrize("form", ["requirements", "pylock"])
def test_both_steps(place: Place, servers: Loopback, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    place.write(two_step(servers), form)
    assert place.sync("requirements.txt" if form == "requirements" else "pylock.toml") == 0
    assert place.installed() == ALL
    site = place.venv / "lib" / f"python{HERE.python}" / "site-packages"
    assert str(site / "torch" / "__init__.py") in (site / "flash_attn.py").read_text()
    assert capfd.readouterr().out == ""


def test_the_second_step_alone(place: Place, servers: Loopback) -> None:
    place.write(two_step(servers), "requirements")
    with pytest.raises(InstallFailed, match=r"requirements-flash-attn\.txt"):
        place.sync("requirements-flash-attn.txt")       # there is no torch to build against yet
    place.sync("requirements.txt")
    assert place.installed() == ALL


@pytest.mark.parametrize("form", ["requirements", "pylock"])
@pytest.mark.parametrize("name", ["einops", "flash-attn"])
def test_a_wrong_hash_is_refused(
    place: Place, servers: Loopback, form: str, name: str, capfd: pytest.CaptureFixture[str],
) -> None:
    place.environ["UV_NO_VERIFY_HASHES"] = "1"          # a setting must not open the door
    place.write(altered(target_lock(sample_packages(servers)), name), form)
    with pytest.raises(InstallFailed) as caught:
        place.sync("requirements.txt" if form == "requirements" else "pylock.toml")
    assert caught.value.exit_status == 3
    assert "install --require-hashes --no-deps" in caught.value.what()
    said = capfd.readouterr().err.lower()
    assert "hash mismatch" in said or "do not match the hashes" in said
    assert place.installed() == {}


def test_a_wrong_hash_of_the_second_step_is_refused(place: Place, servers: Loopback) -> None:
    place.write(altered(two_step(servers), "flash-attn"), "requirements")
    with pytest.raises(InstallFailed, match=r"requirements-flash-attn\.txt"):
        place.sync("requirements.txt")
    assert "flash_attn" not in place.installed()


@pytest.mark.parametrize("form", ["requirements", "pylock"])
def test_a_dry_run_tells_what_a_sync_then_does_and_asks_nobody(
    place: Place, servers: Loopback, form: str, capfd: pytest.CaptureFixture[str],
) -> None:
    name = "requirements.txt" if form == "requirements" else "pylock.toml"
    place.write(target_lock(sample_packages(servers)), form)
    there = dict(place.environ)
    place.environ |= {"UV_DEFAULT_INDEX": NOBODY, "PIP_INDEX_URL": NOBODY}
    actions = {"einops": "install", "filelock": "install", "flash-attn": "install", "tiny-server": "install",
               "torch": "install"}
    assert planned(place, name) == actions
    assert place.installed() == {}
    place.environ.update(there)
    place.sync(name)
    place.environ |= {"UV_DEFAULT_INDEX": NOBODY, "PIP_INDEX_URL": NOBODY}
    assert planned(place, name) == dict.fromkeys(actions, "keep")
    place.sync(name, quiet=True)            # so it is: nothing is asked for
    capfd.readouterr()


def test_a_dry_run_tells_a_changed_version(place: Place, servers: Loopback) -> None:
    place.write(target_lock(sample_packages(servers)), "requirements")
    place.sync("requirements.txt")
    site = place.venv / "lib" / f"python{HERE.python}" / "site-packages"
    record = site / "filelock-3.29.0.dist-info"
    record.rename(site / "filelock-3.1.dist-info")
    metadata = site / "filelock-3.1.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("3.29.0", "3.1"))
    before = place.installed()
    assert planned(place, "requirements.txt") == {
        "einops": "keep", "filelock": "change", "flash-attn": "keep", "tiny-server": "keep", "torch": "keep"}
    assert place.installed() == before


def test_a_dry_run_tells_the_second_step(place: Place, servers: Loopback) -> None:
    place.write(two_step(servers), "requirements")
    plans: list[Plan] = []
    assert place.sync("requirements.txt", dry_run=True, tell=plans.append) == 0
    assert describe(plans[0].changes[-1]) == "install flash-attn 2.5.8 (second step, built from source)"
    assert place.installed() == {}


def planned(place: Place, name: str) -> dict[str, str]:
    """Name -> action of a dry run."""
    plans: list[Plan] = []
    assert place.sync(name, dry_run=True, tell=plans.append) == 0
    plan, = plans
    assert plan.prefix == str(place.venv)
    return {change.name: change.action for change in plan.changes}


def test_quiet_says_nothing(place: Place, servers: Loopback, capfd: pytest.CaptureFixture[str]) -> None:
    place.write(target_lock(sample_packages(servers)), "requirements")
    assert place.sync("requirements.txt", quiet=True) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "stackfix:" not in err
    assert "torch" not in err


def test_constraints_of_this_machine_do_not_steer(place: Place, servers: Loopback) -> None:
    limits = place.folder / "limits.txt"
    limits.write_text("einops==0.1\n")
    (place.folder / "pip.conf").write_text(f"[global]\nconstraint = {limits}\n")
    place.environ |= {"PIP_CONFIG_FILE": str(place.folder / "pip.conf"), "UV_CONSTRAINT": str(limits)}
    place.write(target_lock(sample_packages(servers)), "requirements")
    assert place.sync("requirements.txt") == 0
    assert place.installed() == ALL


def test_a_lock_for_another_target_is_refused_before_anything(place: Place, servers: Loopback) -> None:
    for target in (replace(HERE, python="3.99"), replace(HERE, platform="linux-aarch64")):
        place.write(target_lock(sample_packages(servers), target), "requirements", "pylock")
        for name in ("requirements.txt", "pylock.toml"):
            with pytest.raises(LockDoesNotFit) as caught:
                place.sync(name)
            assert caught.value.exit_status == 1
            assert f"{HERE.python}" in caught.value.what()
    assert place.installed() == {}


def test_the_second_step_is_read_before_the_first_is_installed(place: Place, servers: Loopback) -> None:
    place.write(two_step(servers), "requirements")
    second = place.folder / "requirements-flash-attn.txt"
    text = second.read_text()
    for broken, reason in ((None, "no such lockfile"), (text.replace("--hash=", "--hush="), "is not `--hash"),
                           (text.partition(" \\")[0], "has no sha256"),
                           (text.replace("# second step of", "# step of"), "is not the second step")):
        if broken is None:
            second.unlink()
        else:
            second.write_text(broken)
        with pytest.raises(BadInput, match=reason):
            place.sync("requirements.txt")
    assert place.installed() == {}


@pytest.mark.parametrize("form", ["requirements", "pylock"])
def test_the_release_wheel_from_a_folder(
    place: Place, servers: Loopback, form: str, capfd: pytest.CaptureFixture[str],
) -> None:
    elsewhere = Loopback(index_url=servers.index_url, release_url="http://127.0.0.1:9/gone")
    place.write(target_lock(sample_packages(elsewhere)), form)
    name = "requirements.txt" if form == "requirements" else "pylock.toml"
    folder = place.folder / "with space"
    with pytest.raises(BadInput, match="no such folder"):
        place.sync(name, flash_attn_source=str(folder))
    folder.mkdir()
    with pytest.raises(BadInput, match=r"does not hold flash_attn-2\.5\.8"):
        place.sync(name, flash_attn_source=str(folder))
    (folder / FLASH).write_bytes(b"something else")
    with pytest.raises(WrongWheel, match=hashlib.sha256(b"something else").hexdigest()):
        place.sync(name, flash_attn_source=str(folder))
    assert place.installed() == {}
    (folder / FLASH).write_bytes(stand_in(FLASH))
    assert place.sync(name, flash_attn_source=str(folder)) == 0
    assert place.installed() == ALL
    assert "is not used" not in capfd.readouterr().err


def test_a_source_that_is_not_needed_is_said(
    place: Place, servers: Loopback, capfd: pytest.CaptureFixture[str],
) -> None:
    pins = tuple(pin for pin in sample_packages(servers) if pin.name == "einops")
    place.write(target_lock(pins), "requirements")
    assert place.sync("requirements.txt", flash_attn_source=str(place.folder)) == 0
    assert "--flash-attn-source is not used" in capfd.readouterr().err


@dataclass(frozen=True)
class Mirror:
    """Fills resolve.records.Releases."""

    url: str
    sha256_: str | None

    def assets(self, versions: tuple[str, ...]) -> dict[str, tuple[ReleaseAsset, ...]]:
        asset = ReleaseAsset(version="2.5.8", file=FLASH, url=self.url, sha256=self.sha256_, size=None, updated_at=None)
        return {version: (asset,) if version == "2.5.8" else () for version in versions}

    def sha256(self, asset: ReleaseAsset) -> str:
        raise AssertionError("sync hashes nothing through the release source")


def test_the_release_wheel_from_a_mirror(place: Place, servers: Loopback) -> None:
    elsewhere = Loopback(index_url=servers.index_url, release_url="http://127.0.0.1:9/gone")
    place.write(target_lock(sample_packages(elsewhere)), "requirements")
    url = f"{servers.release_url}/releases/download/v2.5.8/{FLASH.replace('+', '%2B')}"
    with pytest.raises(WrongWheel, match="has sha256 0000"):
        place.sync("requirements.txt", flash_attn_source="https://mirror", releases=Mirror(url, "0" * 64))
    assert place.installed() == {}
    assert place.sync("requirements.txt", flash_attn_source="https://mirror", releases=Mirror(url, None)) == 0
    assert place.installed() == ALL


def test_an_environment_with_a_pip_of_its_own(servers: Loopback, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    made = run([sys.executable, "-m", "venv", venv], cwd=tmp_path)
    assert made.status == 0, made
    environ = clean_environment(PIP_INDEX_URL=servers.index_url, PIP_NO_CACHE_DIR="1", VIRTUAL_ENV=str(venv))
    place = Place(folder=tmp_path, venv=venv, environ=environ, find=find_pip)
    place.write(target_lock(sample_packages(servers)), "requirements")
    assert sync(tmp_path / "requirements.txt", environ=environ, find=find_pip) == 0
    assert place.installed() == ALL


def test_an_externally_managed_python_is_refused(tmp_path: Path, servers: Loopback) -> None:
    marked = tmp_path / "python"
    marked.write_text("#!/bin/sh\n" + f'exec {sys.executable} "$@" | sed \'s/"externally_managed": false/'
                      '"externally_managed": true/\'\n')
    marked.chmod(0o755)
    place = Place(folder=tmp_path, venv=tmp_path, environ={}, find=find_pip)
    place.write(target_lock(sample_packages(servers)), "requirements")
    with pytest.raises(BadInput, match="externally managed") as caught:
        sync(tmp_path / "requirements.txt", environ=os.environ, python=str(marked), find=find_pip)
    assert "-m venv .venv" in (caught.value.hint or "")


def test_an_installer_that_cannot_be_started(place: Place, servers: Loopback) -> None:
    place.write(target_lock(sample_packages(servers)), "requirements")
    place.find = lambda interpreter, environ: Installer(name="uv", words=("/nowhere/uv",), after=())
    with pytest.raises(StackfixError, match="/nowhere/uv: cannot be started"):
        place.sync("requirements.txt")
