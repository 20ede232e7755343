"""Files that nobody can load although they have the size that their installer stated."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.damaged import find_unjudged, find_unusable_files
from stackfix.diagnose.diagnose import diagnose
from tests.diagnose_world import World, lib

CUSPARSE, NVJITLINK = "nvidia/cusparse/lib/libcusparse.so.12", "nvidia/nvjitlink/lib/libnvJitLink.so.12"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.wheel("nvidia-nvjitlink-cu12", "12.1.105", {NVJITLINK: lib(offers=("link@libnvJitLink.so.12",))})
    made.wheel("nvidia-cusparse-cu12", "12.1.0.106", {CUSPARSE: lib(
        needs=("libnvJitLink.so.12",), wants=("link@libnvJitLink.so.12",), runpath="$ORIGIN/../../nvjitlink/lib")})
    return made.opens(CUSPARSE)


def damage(world: World, path: str, place: int = 1) -> None:
    """Turn the bits of one byte."""
    file = world.host(world.inside(path))
    content = bytearray(file.read_bytes())
    content[place] ^= 0xFF
    file.write_bytes(content)


def test_a_whole_library_is_none(world: World) -> None:
    assert list(find_unusable_files(world.view())) == []


def test_a_damaged_library_of_the_stated_size_is_named_with_its_package(world: World) -> None:
    damage(world, NVJITLINK)
    [finding] = find_unusable_files(world.view())
    assert (finding.code, finding.severity) == ("SF702", "error")
    assert finding.culprit.path == world.inside(NVJITLINK)
    assert finding.culprit.package == "nvidia-nvjitlink-cu12 12.1.105"
    assert finding.requester is not None
    assert finding.requester.path == world.inside(CUSPARSE)
    assert finding.error is not None
    assert finding.error.endswith("libnvJitLink.so.12: invalid ELF header")
    assert finding.error.removeprefix(world.site) in world.really().replace(world.site, "")
    assert "nvidia-nvjitlink-cu12==12.1.105" in finding.cure[0]
    assert finding.repairable


def test_what_its_size_shows_already_is_told_once(world: World) -> None:
    file = world.host(world.inside(NVJITLINK))
    file.write_bytes(file.read_bytes()[:100])
    found = [each for each in diagnose(world.view()).findings if each.severity == "error"]
    assert [(each.code, each.culprit.path) for each in found] == [("SF702", world.inside(NVJITLINK))]
    assert found[0].error is not None           # program headers, at least, are not all there
    assert found[0].error.endswith("libnvJitLink.so.12: cannot read file data")


def test_a_damaged_file_that_shadows_a_good_one_is_a_shadow(world: World) -> None:
    world.library("/opt/lib/libnvJitLink.so.12", lib()).environ(LD_LIBRARY_PATH="/opt/lib")
    damage(world, "/opt/lib/libnvJitLink.so.12")
    found = [each for each in diagnose(world.view()).findings if each.severity == "error"]
    assert [(each.code, each.culprit.path) for each in found] == [("SF101", "/opt/lib/libnvJitLink.so.12")]


def test_a_file_that_no_installer_knows(world: World) -> None:
    world.write(f"{world.site}/mine.so", "no library\n").opens("mine.so", phase="module")
    world.opens(f"{world.site}/mine.so", phase="module")
    [finding] = find_unusable_files(world.view())
    assert (finding.severity, finding.culprit.path) == ("warning", f"{world.site}/mine.so")
    assert not finding.repairable


def test_symbols_that_cannot_be_read_are_undecided(world: World) -> None:
    assert list(find_unjudged(world.view())) == []
    file = world.host(world.inside(CUSPARSE))
    content = bytearray(file.read_bytes())
    place = content.index((0x6FFFFEF5).to_bytes(8, "little")) + 8      # DT_GNU_HASH
    content[place:place + 8] = (1 << 40).to_bytes(8, "little")
    file.write_bytes(content)
    view = world.view()
    [undecided] = find_unjudged(view)
    assert undecided.subject == world.inside(CUSPARSE)
    assert "lies in no segment" in undecided.reason
    assert list(find_unusable_files(view)) == []
    assert undecided in diagnose(view).undecided
