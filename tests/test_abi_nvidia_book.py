"""The book of NVIDIA's libraries over small files: what it answers, what it leaves open, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from stackfix.abi.nvidia_book import AlmanacOfNvidia, open_nvidia_book
from stackfix.abi.records import Bounds, NvidiaBook, Provision, Since
from stackfix.errors import BadInput

PACKAGES = """\
# head
nvidia-x\t13.0.1\tlibx.so.2 liby.so.1
nvidia-x-cu12\t1.0\tlibx.so.1
nvidia-x-cu12\t2.0\tlibx.so.2
nvidia-x-cu12\t2.1\tlibx.so.2
nvidia-x-cu12\t2.2rc1\tunread
nvidia-x-cu12\t2.2\tlibx.so.2
nvidia-x-cu12\t2.3\tunread
nvidia-x-cu12\t2.4\tlibx.so.2
nvidia-z\t0.1\tunread
"""
X1 = "@ nvidia-x-cu12\nxOld\n"
X2 = "# head\n@ nvidia-x\nxMake\nxNew\n@ nvidia-x-cu12\nxAgain\t2.0,2.2-\nxGone\t2.0-2.2\nxMake\nxNew\t2.2-\n"
Y1 = "@ nvidia-x\nyOnly\n"
USES = """\
= nvidia-c\t1.0 1.1 2.0
@ libc.so.1\tlibx.so.2
xGone\t1.0
xMake
xNew\t1.1-
@ libc.so.1\tlibq.so.1
qOne
= torch\t2.3.1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "nvidia").mkdir()
    for name, text in (("nvidia/packages.tsv", PACKAGES), ("nvidia/libx.so.1.tsv", X1), ("nvidia/libx.so.2.tsv", X2),
                       ("nvidia/liby.so.1.tsv", Y1), ("uses.tsv", USES)):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def book(folder: Path) -> AlmanacOfNvidia:
    return open_nvidia_book(folder)


def test_it_fills_the_protocol_and_lists_what_was_read(book: AlmanacOfNvidia) -> None:
    asked: NvidiaBook = book
    assert asked.packages("libx.so.2") == ("nvidia-x", "nvidia-x-cu12")
    assert asked.packages("libnone.so") == ()
    assert asked.versions("nvidia-x-cu12") == ("1.0", "2.0", "2.1", "2.2", "2.4")
    assert asked.versions("nvidia-z") == asked.versions("nvidia-none") == ()
    assert book.unread("nvidia-x-cu12") == ("2.2rc1", "2.3")
    assert book.sonames == ("libx.so.1", "libx.so.2", "liby.so.1")


def test_since_when_a_function_is_there_by_run_of_versions(book: AlmanacOfNvidia) -> None:
    def since(package: str, name: str, *rest: str | None) -> Since:
        first, last, before, after = rest
        return Since(package=package, soname="libx.so.2", name=name, first=first, last=last, absent_before=before,
                     absent_after=after)

    assert book.since("libx.so.2", "xNew") == (
        since("nvidia-x", "xNew", None, None, None, None), since("nvidia-x-cu12", "xNew", "2.2", None, "2.1", None))
    assert book.since("libx.so.2", "xGone") == (since("nvidia-x-cu12", "xGone", None, "2.2", None, "2.4"),)
    assert book.since("libx.so.2", "xAgain") == (
        since("nvidia-x-cu12", "xAgain", None, "2.0", None, "2.1"),
        since("nvidia-x-cu12", "xAgain", "2.2", None, "2.1", None))
    assert book.since("libx.so.2", "xNever") == book.since("libnone.so", "xNew") == ()


def test_bounds_are_of_the_package_so_that_another_soname_ends_them(book: AlmanacOfNvidia) -> None:
    of_13, of_12 = book.bounds("libx.so.2", ["xNew", "xMake", "_ZN1x1yEv", "sm80_xmma"])
    assert of_12 == Bounds(
        package="nvidia-x-cu12", soname="libx.so.2", versions=("2.2", "2.4"), floor="2.2", not_enough="2.1",
        ceiling=None, gone_in=None, low=("xNew",), high=(), unknown=())
    assert of_13 == Bounds(
        package="nvidia-x", soname="libx.so.2", versions=("13.0.1",), floor=None, not_enough=None, ceiling=None,
        gone_in=None, low=(), high=(), unknown=())
    makes = book.bounds("libx.so.2", ["xMake"])[1]
    assert (makes.floor, makes.not_enough, makes.low) == ("2.0", "1.0", ("xMake",))
    old, = book.bounds("libx.so.1", ["xOld"])
    assert (old.versions, old.floor, old.ceiling, old.gone_in, old.high) == (("1.0",), None, "1.0", "2.0", ("xOld",))


def test_bounds_of_a_dropped_function_and_of_what_no_version_has(book: AlmanacOfNvidia) -> None:
    gone = book.bounds("libx.so.2", ["xGone", "xMake"])[1]
    assert (gone.versions, gone.ceiling, gone.gone_in, gone.high) == (("2.0", "2.1", "2.2"), "2.2", "2.4", ("xGone",))
    never = book.bounds("libx.so.2", ["xMake", "xNever"])[1]
    assert (never.versions, never.floor, never.ceiling, never.unknown) == ((), None, None, ("xNever",))
    gap = book.bounds("libx.so.2", ["xAgain"])[1]
    assert (gap.versions, gap.not_enough) == (("2.0", "2.2", "2.4"), "1.0")


def test_what_a_release_exports_is_unknown_where_it_was_not_read(book: AlmanacOfNvidia) -> None:
    assert set(book.exported("nvidia-x-cu12", "2.1", "libx.so.2") or ()) == {"xGone", "xMake"}
    assert set(book.exported("nvidia-x-cu12", "2.1.0", "libx.so.2") or ()) == {"xGone", "xMake"}
    assert book.exported("nvidia-x-cu12", "1.0", "libx.so.2") == frozenset()
    assert book.exported("nvidia-x-cu12", "2.3", "libx.so.2") is None
    assert book.exported("nvidia-x-cu12", "2.1", "libinside.so") is None
    assert book.exported("nvidia-x-cu12", "no version", "libx.so.2") is None
    assert book.exported("nvidia-none", "2.1", "libx.so.2") is None


def provision(version: str, missing: str, unsure: str, older: str | None, newer: str | None) -> Provision:
    return Provision(package="nvidia-x-cu12", version=version, soname="libx.so.2", missing=tuple(missing.split()),
                     unsure=tuple(unsure.split()), older=older, newer=newer)


@pytest.mark.parametrize(("version", "missing", "unsure", "older", "newer"), [
    ("2.1", "xAgain xNever xNew", "_Zx sm90_x", None, None),
    ("2.3", "xNever", "_Zx sm90_x xGone", "2.2", "2.4"),           # the neighbours differ about xGone alone
    ("2.1.5", "xNever", "_Zx sm90_x xAgain xNew", "2.1", "2.2"),
    ("1.5", "xNever xNew", "_Zx sm90_x xAgain xGone xMake", "1.0", "2.0"),     # 1.0 has no libx.so.2 at all
    ("2.5", "", "_Zx sm90_x xAgain xGone xMake xNever xNew", "2.4", None),
    ("0.5", "", "_Zx sm90_x xAgain xGone xMake xNever xNew", None, "1.0"),
    ("2.1+local", "", "_Zx sm90_x xAgain xGone xMake xNever xNew", None, None),
])
def test_between_read_versions_only_what_both_say_is_told(
    book: AlmanacOfNvidia, version: str, missing: str, unsure: str, older: str | None, newer: str | None,
) -> None:
    names = ["xNew", "xMake", "xGone", "xAgain", "xNever", "_Zx", "sm90_x"]
    assert book.provides("nvidia-x-cu12", version, "libx.so.2", names) == provision(
        version, missing, unsure, older, newer)


def test_of_a_library_that_it_does_not_know_it_cannot_tell(book: AlmanacOfNvidia) -> None:
    told = book.provides("nvidia-x-cu12", "2.1", "libinside.so", ["a"])
    assert (told.missing, told.unsure) == ((), ("a",))


def test_what_a_consumer_wants_comes_with_its_bounds(book: AlmanacOfNvidia) -> None:
    found = book.uses("nvidia-c", "1.1")
    assert [(each.file, each.bounds.soname, each.bounds.package) for each in found] == [
        ("libc.so.1", "libx.so.2", "nvidia-x"), ("libc.so.1", "libx.so.2", "nvidia-x-cu12")]
    assert found[1].bounds.floor == "2.2"
    older = [each.bounds.versions for each in book.uses("nvidia-c", "1.0") if each.bounds.package == "nvidia-x-cu12"]
    assert older == [("2.0", "2.1", "2.2")]
    assert book.wants("nvidia-c", "1.0.0")[0] == ("libc.so.1", "libx.so.2", ("xGone", "xMake"))
    assert book.consumers() == ("nvidia-c", "torch")
    assert book.consumer_versions("torch") == ("2.3.1",)
    assert book.uses("torch", "2.3.1") == book.uses("torch", "2.4.1") == book.uses("none", "1") == ()


@pytest.mark.parametrize(("file", "text", "reason"), [
    ("nvidia/packages.tsv", "nvidia-x\t1.0\n", "line 1: not a package"),
    ("nvidia/packages.tsv", "nvidia-x\t1.0\tlibx.so.1", "line 1: cut off"),
    ("nvidia/packages.tsv", "# h\nnvidia-x\tone\tlibx.so.1\n", "line 2: not a package"),
    ("nvidia/packages.tsv", "nvidia_X\t1.0\tlibx.so.1\n", "line 1: not a package"),
    ("nvidia/packages.tsv", "nvidia-x\t1.0\t../../etc/passwd\n", "line 1: '../../etc/passwd' are no sonames"),
    ("nvidia/packages.tsv", "nvidia-x\t1.0\tlibx.so.1  liby\n", "no sonames"),
    ("nvidia/packages.tsv", "nvidia-x\t1.1\tliba\nnvidia-x\t1.0\tliba\n", "line 2: 1.0 is not newer"),
    ("nvidia/packages.tsv", "nvidia-x\t1.1\tliba\nnvidia-x\t1.1.0\tunread\n", "line 2: 1.1.0 is not newer"),
    ("nvidia/packages.tsv", "a\t1\tlib\nb\t1\tlib\na\t2\tlib\n", "line 3: a was listed before"),
    ("nvidia/packages.tsv", "nvidia-x\t1.0\tlib\u00fc\n", "line 1: a byte that is not ASCII"),
    ("nvidia/libx.so.2.tsv", "xMake\n", "line 1: before the first section"),
    ("nvidia/libx.so.2.tsv", "@ nvidia-z\nxMake\n", "opens no package"),
    ("nvidia/libx.so.2.tsv", X2 + "@ nvidia-x\nxMake\n", "or one a second time"),
    ("nvidia/libx.so.2.tsv", "@ nvidia-x\nxMake\n", "without nvidia-x-cu12"),
    ("nvidia/libx.so.2.tsv", X2 + "xMake\n", "line 10: 'xMake' is not a name in order"),
    ("nvidia/libx.so.2.tsv", X2 + "xZ\t\n", "is not a name in order with its versions"),
    ("nvidia/libx.so.2.tsv", X2 + "xZ\t2.3-\n", "line 10: '2.3' is no version that was read"),
    ("nvidia/libx.so.2.tsv", X2 + "xZ\t2.4-2.0\n", "line 10: '2.4-2.0' is not in order"),
    ("nvidia/libx.so.2.tsv", X2 + "x Z\n", "line 10"),
    ("nvidia/libx.so.2.tsv", X2 + "\n", "line 10"),
    ("uses.tsv", "@ liba\tlibb\nx\n", "line 1"),
    ("uses.tsv", "= a\t1.0\nx\n", "line 1: 'a' is no package, is listed twice, or has names without a library"),
    ("uses.tsv", "= a\t1.0 0.9\n", "line 1: '0.9' is no version, or not newer"),
    ("uses.tsv", "= a\t1.0\n= a\t1.0\n", "line 2: 'a' is no package, is listed twice"),
    ("uses.tsv", "= a\t1.0\n@ liba\n", "neither a consumer"),
    ("uses.tsv", "= a\t1.0\n@ liba\tlibb\nname\t1.1\n", "line 3: '1.1' is no version that was read"),
])
def test_a_file_that_is_not_as_written_is_named_with_its_line(folder: Path, file: str, text: str, reason: str) -> None:
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        ask_everything(open_nvidia_book(folder))
    assert caught.value.thing == str(folder / file)
    assert reason in caught.value.reason
    assert "Install stackfix again" in (caught.value.next_step() or "")


@pytest.mark.parametrize("file", ["nvidia/packages.tsv", "nvidia/libx.so.2.tsv", "uses.tsv"])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    with pytest.raises(BadInput, match="cannot be read") as caught:
        ask_everything(open_nvidia_book(folder))
    assert caught.value.thing == str(folder / file)


def test_a_library_is_read_when_it_is_asked_about(folder: Path, book: AlmanacOfNvidia) -> None:
    (folder / "nvidia" / "libx.so.2.tsv").write_text("rubbish")
    assert [each.package for each in book.since("liby.so.1", "yOnly")] == ["nvidia-x"]
    assert book.versions("nvidia-x") == ("13.0.1",)
    with pytest.raises(BadInput, match="cut off"):
        book.since("libx.so.2", "xMake")


def ask_everything(book: AlmanacOfNvidia) -> None:
    for soname in book.sonames:
        book.bounds(soname, ["x"])
    for consumer in book.consumers():
        for version in book.consumer_versions(consumer):
            book.uses(consumer, version)
