"""pylock.toml of several targets, read for one of them: its pins and no others, or no."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from stackfix.errors import BadInput
from stackfix.resolve.records import Target
from stackfix.sync.errors import LockDoesNotFit
from stackfix.sync.pylock import parse_pylock
from stackfix.sync.targets import could_fit, stand_in
from stackfix.write.pylock import render_pylocks
from stackfix.write.requirements import requirements_entries
from tests.judges.pylock import environment_of
from tests.target_samples import PLACES, PYTHONS, Samples, target_of

TARGETS = tuple(target_of(*point) for point in product(PYTHONS, PLACES))
A = "0a" * 32


def text_of(*targets: Target, second_steps: dict[Target, str] | None = None) -> str:
    return render_pylocks([Samples().lock(target) for target in targets], second_steps=second_steps or {})


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: f"{one.python} {one.platform}")
def test_each_target_reads_back_what_its_requirements_say(target: Target) -> None:
    entries, second = parse_pylock(text_of(*TARGETS), "pylock.toml", stand_in(target.python, target.platform))
    written = {entry.name: replace(entry, via=()) for entry in requirements_entries(Samples().lock(target))}
    assert {entry.name: entry for entry in entries} == written
    assert second is None


@pytest.mark.parametrize("target", TARGETS, ids=lambda one: f"{one.python} {one.platform}")
def test_stand_ins_are_as_others_see_the_target(target: Target) -> None:
    assert dict(stand_in(target.python, target.platform).markers) == environment_of(target.python, target.platform)


@pytest.mark.parametrize(("python", "platform", "locked"), [
    ("3.11", "win-64", "CPython 3.11 or 3.12 on linux-64 or osx-arm64"),
    ("3.13", "linux-64", "CPython 3.11 or 3.12 on linux-64 or osx-arm64"),
])
def test_who_is_not_in_the_file_is_refused_in_words(python: str, platform: str, locked: str) -> None:
    text = text_of(*(target for target in TARGETS if target.platform in {"linux-64", "osx-arm64"}))
    with pytest.raises(LockDoesNotFit) as caught:
        parse_pylock(text, "pylock.toml", stand_in(python, platform))
    assert caught.value.locked_for == locked
    assert caught.value.environment == f"Python {python}.0 on {platform}"


def test_targets_that_are_no_square_are_told_apart() -> None:
    text = text_of(target_of("3.11", "linux-64"), target_of("3.12", "linux-64"), target_of("3.12", "osx-arm64"))
    with pytest.raises(LockDoesNotFit) as caught:
        parse_pylock(text, "pylock.toml", stand_in("3.12", "win-64"))
    assert caught.value.locked_for == "CPython 3.11 on linux-64; CPython 3.12 on linux-64 or osx-arm64"


def test_markers_of_nobody_known_are_shown() -> None:
    text = 'lock-version = "1.0"\nenvironments = ["sys_platform == \'sunos5\'"]\npackages = []\n'
    with pytest.raises(LockDoesNotFit) as caught:
        parse_pylock(text, "pylock.toml", stand_in("3.12", "win-64"))
    assert caught.value.locked_for == "sys_platform == 'sunos5'"


def test_the_second_step_is_the_target_s_own() -> None:
    first, second = target_of("3.11", "linux-64"), target_of("3.12", "linux-64-cpu")
    steps = {one: f"requirements-flash-attn-cp3{one.python[2:]}-{one.place}.txt" for one in (first, second)}
    text = text_of(first, second, second_steps=steps)
    assert parse_pylock(text, "x", stand_in("3.11", "linux-64"))[1] == steps[first]
    assert parse_pylock(text, "x", stand_in("3.12", "linux-64"))[1] == steps[second]
    only = text_of(first, second, second_steps={first: steps[first]})
    assert parse_pylock(only, "x", stand_in("3.12", "linux-64"))[1] is None
    bad = text.replace(steps[first], "../x.txt")
    with pytest.raises(BadInput, match=r"second-steps\.cp311-linux-64"):
        parse_pylock(bad, "x", stand_in("3.11", "linux-64"))


def test_an_entry_without_a_file_of_the_target_is_named() -> None:
    text = ('lock-version = "1.0"\n[[packages]]\nname = "a"\nversion = "1"\nwheels = [{ name = '
            f'"a-1-cp311-cp311-win_amd64.whl", url = "https://h/a.whl", hashes = {{ sha256 = "{A}" }} }}]\n')
    assert parse_pylock(text, "x", stand_in("3.11", "win-64"))[0][0].sha256 == (A,)
    with pytest.raises(BadInput, match=r"packages\[0\] \(a\): has no file for CPython 3\.11 on linux-64"):
        parse_pylock(text, "x", stand_in("3.11", "linux-64"))


@pytest.mark.parametrize(("tags", "yes", "no"), [
    ("py3-none-any", "3.11 linux-64|3.12 win-64", ""),
    ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", "3.11 linux-64", "3.12 linux-64|3.11 linux-aarch64"),
    ("cp39-abi3-macosx_11_0_arm64", "3.9 osx-arm64|3.12 osx-arm64", "3.8 osx-arm64|3.12 linux-64"),
    ("cp311-cp311-macosx_10_9_universal2", "3.11 osx-arm64", "3.12 osx-arm64"),
    ("py2.py3-none-win_amd64", "3.12 win-64", "3.12 osx-arm64"),
    ("py312-none-any", "3.12 linux-64|3.13 linux-64", "3.11 linux-64"),
    ("pp311-pypy311_pp73-manylinux_2_17_x86_64", "", "3.11 linux-64"),
    ("py2-none-any", "", "3.11 linux-64"),
])
def test_wheels_that_can_be_a_target_s(tags: str, yes: str, no: str) -> None:
    for points, expected in ((yes, True), (no, False)):
        for point in filter(None, points.split("|")):
            assert could_fit(f"a-1-{tags}.whl", stand_in(*point.split())) is expected, point


@pytest.mark.parametrize("name", ["", "a-1.tar.gz", "x.whl", "a-1-b-c-d-e-f.whl"])
def test_a_name_that_tells_nothing_is_no_reason_against(name: str) -> None:
    assert could_fit(name, stand_in("3.11", "linux-64"))
    assert could_fit("a-1-cp311-cp311-win_amd64.whl", replace(stand_in("3.11", "linux-64"), implementation="pypy"))
