"""Files that nobody can load although they have the size that their installer stated."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.diagnose.damaged import find_unjudged, find_unusable_files
from stackfix.diagnose.diagnose import diagnose
from stackfix.diagnose.records import BadLibrary
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


def cut(world: World, path: str) -> None:
    """The first half of a library of many pages: its headers are there, and the loader maps the rest in vain."""
    more = tuple(f"of_many_symbols_{number}@libnvJitLink.so.12" for number in range(2000))
    world.library(path, lib(offers=("link@libnvJitLink.so.12", *more)))
    file = world.host(world.inside(path))
    content = file.read_bytes()
    file.write_bytes(content[:len(content) // 2])


def test_a_file_cut_short_that_shadows_a_good_one_says_what_is_seen(world: World) -> None:
    """What it lacks nobody knows: the file could not be read."""
    jit = "/opt/lib/libnvJitLink.so.12"
    cut(world.environ(LD_LIBRARY_PATH="/opt/lib"), jit)
    [finding] = [each for each in diagnose(world.view()).findings if each.severity == "error"]
    assert (finding.code, finding.culprit.path, finding.symbols, finding.error) == ("SF101", jit, (), None)
    assert "The file that wins cannot be loaded: cut short: " in finding.why
    assert finding.why.endswith("; the process that opens it dies with a Bus error.")
    assert any(each.startswith(f"{jit}: cut short: ") and each.endswith(" Bus error") for each in finding.evidence)
    assert finding.loser == world.inside(NVJITLINK)


def test_a_file_cut_short_that_its_size_shows_says_what_is_seen(world: World) -> None:
    cut(world, NVJITLINK)
    [finding] = [each for each in diagnose(world.view()).findings if each.severity == "error"]
    assert (finding.code, finding.error) == ("SF702", None)
    assert "libnvJitLink.so.12 cannot be loaded: cut short: " in finding.why
    assert finding.why.endswith("; the process that opens it dies with a Bus error.")
    assert any(each.startswith(f"cannot be loaded: {world.inside(NVJITLINK)}: cut short: ")
               for each in finding.evidence)


def test_a_file_cut_short_that_no_installer_knows_says_what_is_seen(world: World) -> None:
    cut(world.opens(f"{world.site}/mine.so"), "mine.so")
    [finding] = find_unusable_files(world.view())
    assert finding.evidence[0].startswith(f"{world.inside('mine.so')}: cut short: ")
    assert finding.evidence[0].endswith("; the process that opens it dies with a Bus error")


def test_one_file_that_is_opened_by_two_paths_is_one_finding(world: World) -> None:
    """As torch does: by the RUNPATH of its library, then by the path."""
    world.opens(NVJITLINK, what="by its path")
    damage(world, NVJITLINK)
    view = world.view()
    paths = {failure.path for each in view.openings for failure in each.outcome.failures
             if isinstance(failure, BadLibrary)}
    assert len(paths) == 2
    [finding] = find_unusable_files(view)
    assert finding.culprit.path == world.inside(NVJITLINK)
    assert any("by its path" in each for each in finding.evidence)


def test_an_executable_in_the_place_of_a_library_is_no_shadow_of_itself(world: World) -> None:
    """Its symbols can be read, and it cannot be loaded."""
    damage(world, NVJITLINK, place=16)          # e_type
    damage(world, NVJITLINK, place=17)
    assert [each.code for each in diagnose(world.view()).findings if each.severity == "error"] == ["SF702"]


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
