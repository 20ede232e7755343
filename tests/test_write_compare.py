"""`lock --check`: each line that is not as it should be, by file and number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stackfix.errors import BadInput
from stackfix.write.compare import compare
from stackfix.write.compare_lines import compare_lines, compared_lines
from stackfix.write.files import plan_files, write_files
from stackfix.write.records import Difference, PlannedFile
from tests.lock_samples import COMMAND, NOWHERE, index_file, lock_of, package, sample_packages, target_lock

SDIST = index_file("tail", "tail-2.5.8.tar.gz", b"x")
LOCK = lock_of(target_lock((*sample_packages(NOWHERE), package("tail", "2.5.8", (SDIST,), step=2))))
FILES = plan_files(LOCK, formats=("requirements", "pylock", "constraints"), name=None, command=COMMAND)


def test_what_was_written_holds(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    assert compare(tmp_path, FILES) == ()


def test_another_command_is_no_difference(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    others = plan_files(LOCK, formats=("requirements", "constraints"), name=None, command="stackfix lock --torch 2.3.1")
    assert compare(tmp_path, others) == ()


def every_line() -> list[tuple[str, int]]:
    """(file, number) of each line that says something: in requirements all but the quoted command and bare `#`."""
    return [
        (file.path, number)
        for file in FILES
        for number, line in enumerate(file.text.splitlines(), start=1)
        if line.strip("# ") and not line.startswith("#    ")
    ]


def test_a_long_marker_is_told_shortened_with_each_line_of_its_package(tmp_path: Path) -> None:
    head = '[[packages]]\nname = "a"\n'
    lines = f'marker = "{"x" * 50_000}"\n' + 'wheels = "other"\n' * 100
    (tmp_path / "pylock.toml").write_text(head + lines)
    found = compare(tmp_path, (PlannedFile(path="pylock.toml", text=head),))
    assert len(found) == 101
    assert {one.about for one in found} == {f"a ({'x' * 300}…)"}


@pytest.mark.parametrize(("path", "number"), every_line())
def test_any_one_altered_line_is_named(tmp_path: Path, path: str, number: int) -> None:
    write_files(tmp_path, FILES)
    place = tmp_path / path
    lines = place.read_text().splitlines()
    was = lines[number - 1]
    middle = len(was) // 2
    lines[number - 1] = was[:middle] + ("0" if was[middle] != "0" else "1") + was[middle + 1:]
    place.write_text("\n".join(lines) + "\n")
    expected = Difference(path=path, line=number, found=lines[number - 1], expected=was)
    assert compare(tmp_path, FILES) == (expected,)
    assert expected.describe().startswith(f"{path}:{number}: found ")


@pytest.mark.parametrize(("path", "number"), every_line())
def test_any_one_missing_line_is_named(tmp_path: Path, path: str, number: int) -> None:
    write_files(tmp_path, FILES)
    place = tmp_path / path
    lines = place.read_text().splitlines()
    was = lines.pop(number - 1)
    place.write_text("\n".join(lines) + "\n")
    difference, = compare(tmp_path, FILES)
    assert (difference.path, difference.found, difference.expected) == (path, None, was)


def test_a_line_too_much_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    place = tmp_path / "constraints.txt"
    place.write_text(place.read_text() + "evil==1\n")
    difference, = compare(tmp_path, FILES)
    assert (difference.found, difference.expected) == ("evil==1", None)
    assert difference.line == len(place.read_text().splitlines())


def test_a_missing_file_is_a_difference(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    (tmp_path / "pylock.toml").unlink()
    difference, = compare(tmp_path, FILES)
    assert difference == Difference(path="pylock.toml", line=None, found=None, expected=None)
    assert difference.describe() == "pylock.toml: missing"


def test_a_cut_off_last_newline_is_no_pin(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    place = tmp_path / "constraints.txt"
    place.write_text(place.read_text().rstrip("\n"))
    assert compare(tmp_path, FILES) == ()


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    (tmp_path / "constraints.txt").write_bytes(b"\xff")
    with pytest.raises(BadInput, match="is not UTF-8"):
        compare(tmp_path, FILES)
    (tmp_path / "constraints.txt").unlink()
    (tmp_path / "constraints.txt").mkdir()
    with pytest.raises(BadInput, match="is not a regular file"):
        compare(tmp_path, FILES)


def test_a_huge_hostile_file_is_compared_in_time(tmp_path: Path) -> None:
    place = tmp_path / "constraints.txt"
    place.write_text("x\n" * 200_000)
    file = PlannedFile(path="constraints.txt", text="y\n" * 3_000)
    assert len(compare(tmp_path, [file])) == 200_000


LINES = st.lists(st.sampled_from(["a", "b", "c", "# d", "#    e"]), max_size=12)


@given(LINES, LINES)
def test_differences_lead_from_what_is_found_to_what_is_expected(found: list[str], expected: list[str]) -> None:
    old, new = compared_lines("\n".join(found) + "\n"), compared_lines("\n".join(expected) + "\n")
    differences = list(compare_lines("x", old, new))
    assert bool(differences) == ([line for _, line in old] != [line for _, line in new])
    assert {d.found for d in differences if d.found} <= set(found)
    for difference in differences:
        assert difference.found != difference.expected


def test_the_target_of_the_header_is_compared(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    target = replace(LOCK.targets[0], target=replace(LOCK.targets[0].target, glibc="2.35"))
    planned = plan_files(lock_of(target), formats=("constraints",), name=None, command=COMMAND)
    assert [difference.line for difference in compare(tmp_path, planned)] == [3]
