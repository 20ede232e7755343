from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from stackfix.abi.judged import open_judged_wheels, parse_judged_wheels, render_judged_wheels
from stackfix.abi.records import BookRelease, JudgedWheel, PatchException
from stackfix.almanac import extensions
from stackfix.almanac.extensions_files import compiled_files, machine_of
from stackfix.almanac.extensions_judge import admitted, declared_torch, judge
from stackfix.almanac.extract import Extracted
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.almanac.records import LibraryTables, ManifestWheel, WantedName, WheelTables
from stackfix.almanac.store import write_kept
from stackfix.errors import BadInput

OLD, NEW = "_ZN3c104cuda9SetDeviceEi", "_ZN3c104cuda9SetDeviceEa"
FORMER = "_ZN3c106formerEv"
EVER = "_ZN3c105ErrorC1Ev"
HELPER = "_ZN5torch4mine6helperEv"


class Book:
    """Three minors; fills TorchBook."""

    releases = tuple(BookRelease(minor=minor, version=f"{minor}.1", file=f"torch-{minor}.1.whl", sha256="0" * 64,
                                 string_abi="old", patches=(f"{minor}.0",)) for minor in ("2.1", "2.2", "2.3"))

    def minors(self, name: str) -> tuple[str, ...]:
        return {OLD: ("2.1", "2.2"), NEW: ("2.3",), EVER: ("2.1", "2.2", "2.3")}.get(name, ())

    def libraries(self, name: str) -> tuple[str, ...]:
        return ("libc10.so",) if self.minors(name) else ()

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        return ()


def library(path: str, *wanted: str, needed: tuple[str, ...] = ("libc10.so",), exports: tuple[str, ...] = (),
            soname: str | None = None) -> LibraryTables:
    return LibraryTables(path=path, soname=soname, needed=needed, exports=exports, wanted=tuple(
        WantedName(name=name, version=None, file=None, weak=False) for name in wanted))


def wheel(*libraries: LibraryTables, name: str = "some", version: str = "1.0", letter: str = "a",
          requires: tuple[str, ...] = ("torch>=2.1",)) -> WheelTables:
    file = f"{name}-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    row = ManifestWheel(package=name, version=version, file=file, sha256=letter * 64)
    return WheelTables(wheel=row, requires=requires, libraries=libraries)


def test_a_judged_wheel_has_what_its_symbols_and_its_metadata_say() -> None:
    tables = wheel(library("some/a.so", OLD, needed=("libc10.so", "libcudart.so.12")), library("some/b.so", EVER))
    assert judge(tables, Book()) == JudgedWheel(
        package="some", version="1.0", file="some-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", sha256="a" * 64,
        torch=("2.1", "2.2"), string_abi=None, cuda=(12,), declares=">=2.1", disproved=("2.3",), because=(OLD,))


@pytest.mark.parametrize(("exported", "wanted", "declares", "able", "disproved"), [
    (True, EVER, "==2.2.0", ("2.1", "2.2", "2.3"), ()),
    (True, FORMER, "==2.2.0", ("2.2.0",), ()),          # that only this patch has
    (True, FORMER, "==2.2.1", ("2.2.0",), ("2.2",)),
    (True, FORMER, ">=2.2", ("2.2.0",), ("2.3",)),
    (False, OLD, "==2.2.0", ("2.1", "2.2.1"), ("2.2",)),        # that only this patch lacks
    (False, OLD, "==2.2.1", ("2.1", "2.2.1"), ()),
    (False, OLD, ">=2.2", ("2.1", "2.2.1"), ("2.3",)),
])
def test_each_patch_is_judged_by_itself(
    *, exported: bool, wanted: str, declares: str, able: tuple[str, ...], disproved: tuple[str, ...],
) -> None:
    class Patched(Book):
        def exceptions(self, version: str) -> tuple[PatchException, ...]:
            key = FORMER if exported else OLD
            return (PatchException(version=version, key=key, exported=exported),) if version == "2.2.0" else ()

    found = judge(wheel(library("some/a.so", wanted), requires=(f"torch{declares}",)), Patched())
    assert (found.torch, found.disproved) == (able, disproved)
    assert parse_judged_wheels(render_judged_wheels([found]), "x.tsv") == (found,)


def test_nothing_is_disproved_where_nothing_is_declared() -> None:
    found = judge(wheel(library("some/a.so", NEW), requires=("numpy",)), Book())
    assert (found.torch, found.declares, found.disproved) == (("2.3",), None, ())


def test_a_wheel_that_asks_nothing_of_torch_is_refused() -> None:
    with pytest.raises(BadInput, match="asks anything of torch"):
        judge(wheel(library("some/a.so", "_ZN4some1fEv")), Book())


def test_what_a_needed_sibling_supplies_is_not_asked_of_torch() -> None:
    module = library("some/_C.so", HELPER, NEW, needed=("libsome.so",))
    helper = library("some/lib/libsome-1.so", EVER, soname="libsome.so", needed=("libother.so",), exports=(HELPER,))
    first, second = compiled_files(wheel(module, helper))
    assert ([each.name for each in first.undefined], first.supplied) == ([NEW], 1)
    assert ([each.name for each in second.undefined], second.supplied) == ([EVER], 0)
    assert judge(wheel(module, helper), Book()).torch == ("2.3",)


def test_a_sibling_that_is_not_needed_supplies_nothing() -> None:
    module = library("some/_C.so", HELPER)
    helper = library("some/lib/libsome.so", exports=(HELPER,))
    assert judge(wheel(module, helper), Book()).torch == ()


def test_siblings_that_need_one_another_are_followed_once() -> None:
    one = library("some/one.so", HELPER, EVER, needed=("two.so",))
    two = library("some/two.so", needed=("one.so", "three.so"))
    three = library("some/three.so", needed=("two.so",), exports=(HELPER,))
    assert [each.supplied for each in compiled_files(wheel(one, two, three))] == [1, 0, 0]


@pytest.mark.parametrize(("file", "machine"), [
    ("a-1-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", "aarch64"),
    ("a-1-cp311-cp311-linux_x86_64.whl", "x86_64"), ("a-1-py3-none-any.whl", "any"),
])
def test_the_machine_is_that_of_the_name(file: str, machine: str) -> None:
    assert machine_of(file) == machine


FILE = "a-1-cp311-cp311-manylinux1_x86_64.whl"


@pytest.mark.parametrize(("requires", "declares"), [
    (("torch (==2.0.1)",), "==2.0.1"), (("torch ==2.1.2",), "==2.1.2"), (("torch>=2.2,<2.3",), "<2.3,>=2.2"),
    (("torch",), "*"), (("torchvision==0.1", "numpy"), None), (("torch==2 ; extra == 'x'",), None),
    (("torch<2 ; python_version < '3.9'", "torch>=2 ; python_version >= '3.9'"), ">=2"),
    (("torch==2.1 ; platform_machine == 'aarch64'",), None), (("Torch >= 2.1 ; sys_platform == 'linux'",), ">=2.1"),
    (("torch (>=1.13.1", "torch<3"), "<3,>=1.13.1"), (("torch[opt]>=2.9", "torch<3"), "<3,>=2.9"),
    (("torch>=two",), None), (("torch==2.1 ; sys_platform == 'darwin'", "torch>=2.2 ; extra == 'x'"), None),
    (("torch==2.1 ; platform_release >= '5'",), None), (("torch==2.1 ; platform_release > '5'",), None),
    (("torch==2.1 ; platform_release == 'a' and platform_version == 'b'",), None),
    (("torch==2.1 ; platform_machine != 'aarch64' or 'tegra' not in platform_release",
      "torch==2.0 ; platform_machine == 'aarch64' and 'tegra' in platform_release"), "==2.1"),
    (("torch==2.1 ; 'tegra' not in platform_release",), None), (("torch==2.1 ; platform_release < '5'",), None),
    (("torch==2.1 ; colour == 'red'", "torch<3"), None),
    (("torch ; sys_platform == 'linux'",), "*"), (("torch-npu==2.1", "torch.x==2"), None),
])
def test_what_is_declared(requires: tuple[str, ...], declares: str | None) -> None:
    assert declared_torch(requires, FILE) == declares


@pytest.mark.parametrize(("declares", "minors"), [
    (None, ()), ("*", ("2.1", "2.2", "2.3")), (">=2.2", ("2.2", "2.3")), ("==2.2.0", ("2.2",)), ("==2.2.5", ()),
    ("==2.1.1+cu118", ("2.1",)), (">2.2.1", ("2.3",)), ("<2.3,>=2.1.1", ("2.1", "2.2")),
    ("==2.*", ("2.1", "2.2", "2.3")),
])
def test_minors_that_a_declaration_admits(declares: str | None, minors: tuple[str, ...]) -> None:
    assert tuple(admitted(declares, Book.releases)) == minors


@pytest.fixture
def almanac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a manifest of two wheels, their tables in the store beside it, and the book above."""
    found = [wheel(library("some/a.so", OLD)), wheel(library("some/a.so", NEW), version="1.10", letter="b")]
    store = tmp_path / "store"
    store.mkdir()
    for each in (*found, wheel(library("x.so", EVER), name="other", letter="c")):
        write_kept(store, Extracted(tables=each, left=()))
    (tmp_path / "extensions.toml").write_text(render_manifest(("# Two.",), [each.wheel for each in found]))
    monkeypatch.setattr(extensions, "open_book", lambda directory: Book())
    return tmp_path


def call(almanac: Path, *words: str) -> None:
    parser = argparse.ArgumentParser()
    extensions.add_arguments(parser)
    extensions.run(parser.parse_args([*words, "--directory", str(almanac), "--store", str(almanac / "store")]))


def test_the_table_is_made_of_the_manifest_newest_release_first(almanac: Path) -> None:
    call(almanac, "--make")
    book = open_judged_wheels(almanac)
    assert [(each.version, each.torch) for each in book.wheels] == [("1.10", ("2.3",)), ("1.0", ("2.1", "2.2"))]
    call(almanac, "--check")


def test_a_second_run_gives_the_same_bytes(almanac: Path) -> None:
    call(almanac, "--make")
    first = (almanac / "extensions.tsv").read_bytes()
    call(almanac, "--make")
    assert (almanac / "extensions.tsv").read_bytes() == first


def test_a_table_that_says_otherwise_is_told(almanac: Path) -> None:
    call(almanac, "--make")
    table = almanac / "extensions.tsv"
    table.write_text(table.read_text().replace("2.1 2.2", "2.1"))
    with pytest.raises(extensions.TableDiffers, match=r"some-1\.0-cp311") as caught:
        call(almanac, "--check")
    assert caught.value.exit_status == 1


def test_check_downloads_nothing(almanac: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call(almanac, "--make")
    call(almanac, "--check")
    assert capfd.readouterr().err == ""
    for each in (almanac / "store").iterdir():
        each.unlink()
    call(almanac, "--check")
    assert "with 0 of 2 wheels" in capfd.readouterr().err
    assert list((almanac / "store").iterdir()) == []
    manifest = read_manifest(almanac / "extensions.toml")
    (almanac / "extensions.toml").write_text(render_manifest(("# One.",), manifest[:1]))
    with pytest.raises(extensions.TableDiffers, match=manifest[1].file):
        call(almanac, "--check")


def test_a_wheel_is_added_with_its_row(almanac: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call(almanac, "--make")
    other = wheel(name="other", letter="c").wheel
    asked: list[tuple[str, str]] = []

    def resolve(requirement: str, python: str) -> ManifestWheel:
        asked.append((requirement, python))
        return other

    monkeypatch.setattr(extensions, "resolve", resolve)
    call(almanac, "--add", "other==1.0", "--python", "3.12")
    assert asked == [("other==1.0", "3.12")]
    assert [each.package for each in read_manifest(almanac / "extensions.toml")] == ["other", "some", "some"]
    assert [each.package for each in open_judged_wheels(almanac).wheels] == ["other", "some", "some"]
    call(almanac, "--check")


@pytest.mark.parametrize("name", ["torch.toml", "nvidia.toml"])
def test_a_wheel_that_the_almanac_is_made_of_is_refused(name: str, almanac: Path) -> None:
    (almanac / name).write_text(render_manifest(("# One.",), [wheel().wheel]))
    with pytest.raises(BadInput, match=f"the almanac is made of it \\({name}\\)"):
        call(almanac, "--make")
    assert not (almanac / "extensions.tsv").exists()


def test_one_thing_is_asked_for() -> None:
    parser = argparse.ArgumentParser()
    extensions.add_arguments(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--make", "--check"])
