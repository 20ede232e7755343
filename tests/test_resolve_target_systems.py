"""Targets on Windows and macOS: tags in packaging's own order for such a machine, markers, and what uv takes there."""

from __future__ import annotations

import platform
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.tags import sys_tags

from stackfix.platforms import PLATFORMS, platform_of_wheel, split_place
from stackfix.resolve.records import Target
from stackfix.resolve.target import TargetView, marker_environment, supported_tags
from tests.judges.uv import UvJudge
from tests.replay.wheels import make_wheel

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
MAC = Target(python="3.11", platform="osx-arm64", glibc="2.28")
WINDOWS = Target(python="3.11", platform="win-64", glibc="2.28")


def as_mac(monkeypatch: pytest.MonkeyPatch, macos: str) -> None:
    """What packaging asks of a machine, answered as one of Apple silicon does."""
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: (macos, ("", "", ""), "arm64"))


@pytest.mark.parametrize("macos", ["11.0", "12.0", "13.0", "14.0", "14.5", "15.0", "26.0", "26.1"])
def test_the_tags_of_macos_are_packagings_in_its_order(macos: str, monkeypatch: pytest.MonkeyPatch) -> None:
    as_mac(monkeypatch, macos)
    wanted = [str(tag) for tag in sys_tags()]
    target = Target(python=HERE, platform="osx-arm64", glibc="2.28", macos=macos)
    assert list(supported_tags(target)) == wanted
    assert any(tag.endswith("macosx_10_9_universal2") for tag in wanted)


def test_the_tags_of_windows_are_packagings_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Windows")
    monkeypatch.setattr(sysconfig, "get_platform", lambda: "win-amd64")
    target = Target(python=HERE, platform="win-64", glibc="2.28")
    assert list(supported_tags(target)) == [str(tag) for tag in sys_tags()]


MAC_BEST_FIRST = (
    "x-1.0-cp311-cp311-macosx_14_0_arm64.whl", "x-1.0-cp311-cp311-macosx_14_0_universal2.whl",
    "x-1.0-cp311-cp311-macosx_13_0_arm64.whl", "x-1.0-cp311-cp311-macosx_11_0_arm64.whl",
    "x-1.0-cp311-cp311-macosx_10_16_universal2.whl",
    "x-1.0-cp311-cp311-macosx_10_9_x86_64.macosx_10_9_universal2.whl", "x-1.0-cp311-none-macosx_11_0_arm64.whl",
    "x-1.0-cp39-abi3-macosx_11_0_arm64.whl", "x-1.0-py3-none-macosx_11_0_arm64.whl", "x-1.0-py3-none-any.whl",
)
MAC_MISFITS = (
    "x-1.0-cp311-cp311-macosx_15_0_arm64.whl", "x-1.0-cp311-cp311-macosx_11_0_x86_64.whl",
    "x-1.0-cp311-cp311-macosx_10_9_arm64.whl", "x-1.0-cp311-cp311-macosx_10_9_x86_64.whl",
    "x-1.0-cp311-cp311-manylinux_2_17_aarch64.whl", "x-1.0-cp311-cp311-win_arm64.whl",
    "x-1.0-cp313-cp313t-macosx_11_0_arm64.whl", "x-1.0-cp311-cp311-macosx_10_3_universal2.whl",
)
WINDOWS_BEST_FIRST = ("x-1.0-cp311-cp311-win_amd64.whl", "x-1.0-cp311-none-win_amd64.whl",
                      "x-1.0-cp38-abi3-win_amd64.whl", "x-1.0-py3-none-win_amd64.whl", "x-1.0-py3-none-any.whl")
WINDOWS_MISFITS = ("x-1.0-cp311-cp311-win32.whl", "x-1.0-cp311-cp311-win_arm64.whl",
                   "x-1.0-cp312-cp312-win_amd64.whl", "x-1.0-cp311-cp311-linux_x86_64.whl",
                   "x-1.0-cp313-cp313t-win_amd64.whl", "x-1.0-cp312-abi3-win_amd64.whl")
CASES = ((MAC, MAC_BEST_FIRST, MAC_MISFITS), (WINDOWS, WINDOWS_BEST_FIRST, WINDOWS_MISFITS))


@pytest.mark.parametrize(("target", "best_first", "misfits"), CASES, ids=["macos", "windows"])
def test_files_in_the_order_of_an_installer(
    target: Target, best_first: tuple[str, ...], misfits: tuple[str, ...]
) -> None:
    view = TargetView(target)
    worst_first = best_first[::-1]
    ranked = sorted(worst_first, key=lambda name: view.rank(name) or (10**6, 0, ""))
    assert tuple(ranked) == best_first
    assert [name for name in misfits if view.rank(name) is not None] == []


def test_an_older_macos_takes_fewer_files() -> None:
    older = TargetView(Target(python="3.11", platform="osx-arm64", glibc="2.28", macos="12.0"))
    assert older.rank("x-1.0-cp311-cp311-macosx_12_0_arm64.whl") is not None
    assert older.rank("x-1.0-cp311-cp311-macosx_13_0_arm64.whl") is None


@pytest.mark.parametrize(("target", "best_first", "misfits"), CASES, ids=["macos", "windows"])
def test_uv_takes_what_fits_and_refuses_what_does_not(
    target: Target, best_first: tuple[str, ...], misfits: tuple[str, ...], tmp_path: Path
) -> None:
    """One project a tag: uv is shown a folder of wheels, so that a project has no other file to fall back on."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    names = {}
    for number, file in enumerate((*best_first, *misfits)):
        name = f"p{number}"
        names[file] = name
        renamed = file.replace("x-", f"{name}-", 1)
        (wheels / renamed).write_bytes(make_wheel(renamed, requires=[]))
    judge = UvJudge(index_url=wheels.as_uri(), cache=tmp_path / "cache", python=target.python,
                    platform=target.platform, macos=target.macos)
    asked = tmp_path / "asked.in"

    def takes(*files: str) -> bool:
        asked.write_text("".join(f"{names[file]}\n" for file in files), encoding="utf-8")
        words = ("pip", "compile", "-q", "--no-index", "--find-links", str(wheels), str(asked))
        return judge.run_bare(*words, cwd=tmp_path).status == 0

    assert takes(*best_first)
    assert [file for file in misfits if takes(file)] == []


@pytest.mark.parametrize(("name", "marker", "holds"), [
    ("win-64", "sys_platform == 'win32' and os_name == 'nt'", True),
    ("win-64", "platform_system == 'Windows' and platform_machine == 'AMD64'", True),
    ("win-64", "platform_machine == 'x86_64'", False), ("win-64", "platform_system == 'Linux'", False),
    ("osx-arm64", "sys_platform == 'darwin' and os_name == 'posix'", True),
    ("osx-arm64", "platform_system == 'Darwin' and platform_machine == 'arm64'", True),
    ("osx-arm64", "platform_machine == 'aarch64'", False), ("osx-arm64", "sys_platform != 'win32'", True),
    ("linux-aarch64", "platform_machine == 'arm64' or sys_platform == 'darwin'", False),
])
def test_markers_are_those_of_the_system(name: str, marker: str, holds: bool) -> None:
    target = Target(python="3.12", platform=name, glibc="2.28")
    assert Marker(marker).evaluate(marker_environment(target)) is holds
    assert TargetView(target).applies(f"x ; {marker}", None) is holds


def test_a_machine_name_alone_tells_every_platform_apart() -> None:
    """Lines of an environment.yml that hold on some platforms are held to them by it."""
    assert len({each.machine for each in PLATFORMS.values()}) == len(PLATFORMS)


@pytest.mark.parametrize(("place", "parts"), [
    ("linux-64", ("linux-64", "")), ("linux-64-cpu", ("linux-64", "cpu")), ("win-64-cpu", ("win-64", "cpu")),
    ("osx-64-cpu", ("osx-64-cpu", "")), ("cpu", ("cpu", "")), ("linux-64-cpu-cpu", ("linux-64-cpu-cpu", "")),
])
def test_a_place_is_a_platform_and_a_variant(place: str, parts: tuple[str, str]) -> None:
    assert split_place(place) == parts
    if parts[0] in PLATFORMS:
        assert Target(python="3.11", platform=parts[0], glibc="2.28", variant=parts[1]).place == place


@pytest.mark.parametrize(("file", "platform"), [
    *((file, "osx-arm64") for file in MAC_BEST_FIRST[:1]), (WINDOWS_BEST_FIRST[0], "win-64"),
    ("x-1.0-cp311-cp311-manylinux_2_28_aarch64.whl", "linux-aarch64"),
    ("x-1.0-cp311-cp311-linux_x86_64.whl", "linux-64"), ("x-1.0-cp311-cp311-macosx_11_0_universal2.whl", "osx-arm64"),
    ("x-1.0-py3-none-any.whl", None), ("x-1.0-cp311-cp311-win32.whl", None),
    ("x-1.0-cp311-cp311-macosx_10_9_x86_64.whl", None), ("x-1.0-cp311-cp311-musllinux_1_2_x86_64.whl", "linux-64"),
])
def test_the_platform_of_a_wheel(file: str, platform: str | None) -> None:
    assert platform_of_wheel(file) == platform
