"""`lock --check` of a pylock: targets that changed are told first, and lines by the package that they are of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stackfix.write.compare import compare
from stackfix.write.files import plan_files
from stackfix.write.records import Difference, PlannedFile
from tests.lock_samples import COMMAND, lock_of
from tests.target_samples import NEWER, OLDER, Samples, target_of

LINUX = ("3.12 linux-64", "3.11 linux-64")
MAC = "3.12 osx-arm64"


def planned(*targets: str) -> PlannedFile:
    """The pylock of these targets."""
    lock = lock_of(*(Samples().lock(target_of(*each.split())) for each in targets))
    file, = plan_files(lock, formats=("pylock",), name=None, command=COMMAND)
    return file


def told(folder: Path, there: str, wanted: PlannedFile) -> list[str]:
    (folder / wanted.path).write_text(there, encoding="utf-8")
    return [one.describe() for one in compare(folder, [wanted])]


def line_of(text: str, start: str, after: str = "") -> int:
    lines = text.split("\n")
    begin = next(index for index, line in enumerate(lines) if after in line)
    return next(index for index in range(begin, len(lines)) if lines[index].strip().startswith(start)) + 1


@pytest.mark.parametrize("there", [LINUX[:1], LINUX])
def test_a_target_that_is_missing_is_one_line(there: tuple[str, ...], tmp_path: Path) -> None:
    text = planned(*there).text
    found = told(tmp_path, text, planned(*there, MAC))
    assert found == [f"pylock.toml:{line_of(text, 'environments')}: targets: Python 3.12 on osx-arm64 is missing"]


def test_a_target_that_is_too_much_is_one_line_at_its_own(tmp_path: Path) -> None:
    text = planned(*LINUX, MAC).text
    found = told(tmp_path, text, planned(*LINUX))
    number = next(number for number, line in enumerate(text.split("\n"), start=1) if "sys_platform == 'darwin'" in line)
    assert found == [f"pylock.toml:{number}: targets: Python 3.12 on osx-arm64 is too much"]


def test_targets_that_are_others_altogether_are_a_line_each(tmp_path: Path) -> None:
    found = told(tmp_path, planned(*LINUX).text, planned(MAC, "3.12 win-64"))
    assert [line.partition("targets: ")[2] for line in found] == [
        "Python 3.12 on win-64 is missing", "Python 3.12 on osx-arm64 is missing",
        "Python 3.11 on linux-64 is too much", "Python 3.12 on linux-64 is too much"]


@pytest.mark.parametrize(("pattern", "other", "name"), [
    (r'(name = "pure-1\.0.*?sha256 = ")[0-9a-f]{4}', r"\g<1>0000", "pure"),
    (r'(name = "pure"\nversion = ")1\.0', r"\g<1>0.9", "pure"),
    (r'(name = "shared"\nversion = "3\.0"\n)', r"""\g<1>marker = "python_version == '3.11'"\n""", "shared"),
])
def test_what_both_have_is_still_compared_and_told_with_its_package(
    pattern: str, other: str, name: str, tmp_path: Path,
) -> None:
    text, count = re.subn(pattern, other, planned(*LINUX).text, count=1, flags=re.DOTALL)
    assert count == 1
    first, *rest = told(tmp_path, text, planned(*LINUX, MAC))
    assert first.endswith("targets: Python 3.12 on osx-arm64 is missing")
    assert rest
    assert all(re.match(rf"pylock\.toml:\d+: {name}(?: \(.*\))?: ", line) for line in rest), rest


def test_a_package_that_only_the_target_of_both_lacks_is_one_line(tmp_path: Path) -> None:
    text = planned(*LINUX).text
    start, end = (text.index(f'[[packages]]\nname = "{name}"') for name in ("pure", "shared"))
    text = text[:start] + text[end:]
    found = told(tmp_path, text, planned(*LINUX, MAC))
    assert found[1:] == [f"pylock.toml:{line_of(text, '[[packages]]', 'only_linux-1.0')}: pure is missing"]


def test_many_lines_are_told_by_entry_and_blank_ones_are_none(tmp_path: Path) -> None:
    """Entries that are gone, new and changed at once: as lines alone, one entry is taken for another."""
    wanted = planned(*LINUX)
    text = wanted.text.replace('name = "only-linux"', 'name = "zlast"').replace("only_linux", "zlast")
    text = text.replace(f'version = "{NEWER}"', 'version = "2.0.0"').replace(f"varied-{NEWER}", "varied-2.0.0")
    found = compare_with(tmp_path, text, wanted)
    assert {(one.about or "").partition(" ")[0] for one in found} == {
        "only-linux", "pure", "shared", "torch", "varied", "zlast"}         # some by what they depend on
    assert {(one.about, one.found, one.expected) for one in found if one.whole} == {
        ("only-linux", None, 'name = "only-linux"'), ("zlast", 'name = "zlast"', None)}
    varied = [one for one in found if (one.about or "").startswith("varied")]
    assert {one.about for one in varied} == {"varied (python_version == '3.12')"}
    assert all("" not in {one.found, one.expected} for one in found)
    assert not any(OLDER in f"{one.found}{one.expected}" for one in varied)


@pytest.mark.parametrize(("count", "terms"), [(10_000, 1), (60, 2_000)])
def test_a_huge_hostile_pylock_of_other_targets_is_compared_in_time(count: int, terms: int, tmp_path: Path) -> None:
    wanted = planned(*LINUX, MAC)
    environments = planned(*LINUX).text.partition("[[packages]]")[0]
    entry = '[[packages]]\nname = "pure"\nversion = "1.0"\n' + "# x\n" * 60
    marker = 'marker = "' + " or ".join(["python_version == '3.11'"] * terms) + '"\n'
    found = compare_with(tmp_path, environments + (entry + marker) * count, wanted)
    assert found[0].about == "targets: Python 3.12 on osx-arm64"
    assert len(found) > count
    assert all(len(one.about or "") < 400 for one in found)


def compare_with(folder: Path, text: str, wanted: PlannedFile) -> tuple[Difference, ...]:
    (folder / wanted.path).write_text(text, encoding="utf-8")
    return compare(folder, [wanted])


def test_a_line_with_both_kinds_of_quotes_is_told_without_backslashes() -> None:
    line = """marker = "sys_platform == 'linux'\""""
    one = Difference(path="pylock.toml", line=7, found=None, expected=line, about="a")
    assert one.describe() == f"pylock.toml:7: a: missing `{line}`"
    blank = Difference(path="requirements.txt", line=7, found="", expected=None)
    assert blank.describe() == "requirements.txt:7: unexpected an empty line"
    hostile = Difference(path="pylock.toml", line=7, found="\x1b[2J'\"", expected=None)
    assert "\x1b" not in hostile.describe()
