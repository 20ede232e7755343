"""The generator of what loading asks: small wheels, whose libraries gcc makes, read by the real pip."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stackfix.almanac import loading
from stackfix.almanac.__main__ import main
from stackfix.almanac.loading_check import no_torch
from stackfix.almanac.loading_facts import Within
from stackfix.almanac.manifest import read_manifest, render_manifest
from stackfix.inspect.elf import parse_elf
from stackfix.inspect.elf_symbols import MappedSymbols
from stackfix.inspect.records import ElfObject, SymbolNames
from stackfix.prove.records import LibraryAt, PlannedWheel
from stackfix.sources.cache import Cache
from stackfix.sources.transport import Transport
from stackfix.tables import source as source_module
from stackfix.tables.kept import KIND
from stackfix.tables.loading_book import FILE, INSIDE, open_loading_book
from stackfix.tables.loading_symbols import EVERY, NAMED, NOT_INTERNAL, BookSymbols
from stackfix.tables.source import open_tables
from tests.almanac_wheels import needs_gcc, only_from, shared_object, wheel

pytestmark = needs_gcc
JITLINK = "nvidia/nvjitlink/lib/libnvJitLink.so.12"
MANY = tuple(f"_ZN7nothing{place}Ev" for place in range(3100))
VERSION = "libnvJitLink.so.12 { global: __nvJit*; local: *; };"
MORE = """
extern int in_own(void); extern int printf(const char *, ...); extern int of_data; int *held = &of_data;
int called(void) { return in_own() + printf("x"); }
"""


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the almanac with `stack`, which requires nvJitLink, cuSPARSE and a pure project."""
    folder = tmp_path_factory.mktemp("loading")
    with pytest.MonkeyPatch.context() as patch:
        made = make_index(folder, patch)
        assert call(made, "--add", "stack==2.0") == 0
        yield made


@pytest.fixture
def almanac(first: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(first, tmp_path / "abi")
    shutil.copytree(first.parent / "store", tmp_path / "store")
    return tmp_path / "abi"


def make_index(tmp_path: Path, patch: pytest.MonkeyPatch) -> Path:
    """The wheels, where pip looks for them, and a folder for the almanac."""
    index, made = tmp_path / "index", tmp_path / "made"
    only_from(index, patch)
    one = shared_object(made, "libnvJitLink.so.12", ("__nvJitLinkAddData_12_1", "__nvJitLinkCreate_12_1"),
                        script=VERSION)
    own = shared_object(made, "libown.so", ("in_own", "_ZN3own4nameEv"))
    other = shared_object(made, "libcusparse.so.12", ("cusparseCreate", *MANY), more=MORE,
                          needs=("libnvJitLink.so.12", "libown.so"), wants=("__nvJitLinkAddData_12_1",))
    module = shared_object(made, "_c.so", ("PyInit__c", *MANY), wants=("cusparseCreate",), needs=("libcusparse.so.12",))
    wheel(index, "nvidia-nvjitlink-cu12", "12.1.105", {JITLINK: one, "nvidia/__init__.py": b""})
    wheel(index, "nvidia-cusparse-cu12", "12.1.0.106", {
        "nvidia/cusparse/lib/libcusparse.so.12": other, "nvidia/cusparse/lib/libown.so": own,
        "nvidia/cusparse/lib/libscript.so": b"INPUT(libown.so)"})
    wheel(index, "pure", "1.0", {"pure.py": b""}, tags="py3-none-any")
    wheel(index, "stack", "2.0", {"stack/_c.so": module},
          requires=("nvidia-nvjitlink-cu12==12.1.105", "nvidia-cusparse-cu12", "pure"))
    folder = tmp_path / "abi"
    folder.mkdir()
    (folder / "torch.toml").write_text(render_manifest((), []))
    return folder


def call(almanac: Path, *words: str) -> int:
    return main(["loading", *words, "--directory", str(almanac), "--store", str(almanac.parent / "store")])


def planned(almanac: Path) -> dict[str, PlannedWheel]:
    return {each.package: PlannedWheel(name=each.package, version=each.version, file=each.file, sha256=each.sha256,
                                       url=None, size=None) for each in read_manifest(almanac / loading.MANIFEST)}


def nowhere() -> Transport:
    raise AssertionError("nothing may be downloaded")


def test_what_ships_is_what_the_wheels_have(almanac: Path) -> None:
    wheels = planned(almanac)
    assert set(wheels) == {"stack", "nvidia-nvjitlink-cu12", "nvidia-cusparse-cu12"}    # not what is for any platform
    shipped = open_tables(almanac.parent / "nothing", nowhere, offline=True, directory=almanac)
    exact = open_tables(almanac.parent / "store", nowhere, offline=True, directory=almanac)
    told, real = shipped.known(tuple(wheels.values())), exact.known(tuple(wheels.values()), exactly=True)
    assert {each.basis for each in told.values()} == {"almanac"}
    assert {each.basis for each in real.values()} == {"wheel"}
    for sha256, tables in told.items():
        assert (tables.project, tables.libraries) == (real[sha256].project, real[sha256].libraries)
        for library in tables.libraries:
            if isinstance(library.elf, ElfObject):
                compare(shipped.symbols(sha256, library.path), exact.symbols(sha256, library.path))
    assert told[wheels["nvidia-cusparse-cu12"].sha256].unknown == (INSIDE,)
    assert told[wheels["nvidia-nvjitlink-cu12"].sha256].unknown == ()
    assert shipped.shipped("nvidia-nvjitlink-cu12") == (wheels["nvidia-nvjitlink-cu12"],)
    assert shipped.shipped("numpy") == ()
    assert not (almanac.parent / "nothing").exists()


def compare(told: object, real: object) -> None:
    """What the almanac says of a library is what it has; where it says nothing, it says so."""
    assert isinstance(told, BookSymbols)
    assert isinstance(real, MappedSymbols)
    outward = [each for each in real.undefined() if each.name != "in_own"]
    assert list(told.undefined()) == outward
    assert list(told.uses({each.name for each in outward})) == list(real.uses({each.name for each in outward}))
    names = SymbolNames([*MANY, "__nvJitLinkAddData_12_1", "__nvJitLinkAddData_12_9", "cusparseCreate", "in_own",
                         "printf", "_ZN3own4nameEv", "PyInit__c"])
    found, have = told.offered(names), real.offered(names)
    assert found.items() <= {name: tuple(offers) for name, offers in have.items()}.items()
    assert all(name in found or not told.tells(name) for name in have)
    assert told.tells("cusparseCreate")             # somebody wants it
    assert told.unique() == ()


def test_what_is_told_of_names_depends_on_the_library(almanac: Path) -> None:
    book, wheels = open_loading_book(almanac, no_torch), planned(almanac)
    cusparse, stack = wheels["nvidia-cusparse-cu12"].sha256, wheels["stack"].sha256
    own = book.symbols(cusparse, "site/nvidia/cusparse/lib/libown.so")
    large = book.symbols(cusparse, "site/nvidia/cusparse/lib/libcusparse.so.12")
    module = book.symbols(stack, "site/stack/_c.so")
    assert (own.told, large.told, module.told) == (EVERY, NOT_INTERNAL, NAMED)
    assert [each.tells("_ZN3any3oneEv") for each in (own, large, module)] == [True, False, False]
    assert [each.tells("anything") for each in (own, large, module)] == [True, True, False]
    assert {each.name: each.lazy for each in large.uses(["printf", "of_data"])} == {"printf": True, "of_data": False}


def test_an_exact_answer_is_of_the_wheel_alone(almanac: Path) -> None:
    one = planned(almanac)["nvidia-nvjitlink-cu12"]
    path = f"site/{JITLINK}"
    nothing = open_tables(almanac.parent / "nothing", nowhere, offline=True, directory=almanac)
    assert nothing.known([one], exactly=True) == {}
    assert [each.code for each in nothing.fetch([one], print, exactly=True).failed] == ["not-in-cache"]
    assert nothing.fetch([one], print).failed == ()
    both = open_tables(almanac.parent / "store", nowhere, offline=True, directory=almanac)
    assert isinstance(both.known([one]) and both.symbols(one.sha256, path), BookSymbols)
    assert isinstance(both.known([one], exactly=True) and both.symbols(one.sha256, path), MappedSymbols)
    assert both.known([one])[one.sha256].basis == "almanac"         # whatever the cache of this machine has


def test_a_wheel_for_any_platform_is_known_by_its_name(almanac: Path) -> None:
    pure = PlannedWheel(name="sympy", version="1.13", file="sympy-1.13-py3-none-any.whl", sha256="ab" * 32, url=None,
                        size=None, requires=("mpmath",))
    source = open_tables(almanac.parent / "nothing", nowhere, offline=True, directory=almanac)
    tables = source.known([pure])[pure.sha256]
    assert (tables.basis, tables.libraries, tables.listing) == ("tag", (), None)
    assert tables.project.requires == ("mpmath",)
    assert tables.unknown == (source_module.BY_NAME,)
    assert source.announce([pure]).wheels == ()
    assert source.announce([pure], exactly=True).wheels == (pure,)
    for file in ("sympy-1.13-py3-none-manylinux1_x86_64.whl", "sympy-1.13-cp311-cp311-linux_x86_64.whl"):
        assert source.known([replace(pure, file=file)]) == {}


HIDDEN = 'void f(void) {} __asm__(".symver f,first@V1"); void second(void) {}'


def test_what_a_wheel_binds_itself_is_bound_by_the_rules_of_versions(tmp_path: Path) -> None:
    """An old version alone is nothing to a reference without one; a library that is not needed binds nothing."""
    content = {
        "liba.so": shared_object(tmp_path, "liba.so", more=HIDDEN, script="V1 { global: first; second; local: *; };"),
        "libb.so": shared_object(tmp_path, "libb.so", ("third",)),
        "libc.so": shared_object(tmp_path, "libc.so", wants=("first", "second", "third"), needs=("liba.so",)),
        "libd.so": shared_object(tmp_path, "libd.so", wants=("second",), needs=("libc.so",)),
    }
    read = {path: MappedSymbols(each, path) for path, each in content.items()}
    libraries = [LibraryAt(path=path, elf=parse_elf(each, path)) for path, each in content.items()]
    within = Within(libraries, read.__getitem__)
    assert {each.name: each.version for each in read["libc.so"].undefined()} == {
        "first": None, "second": "V1", "third": None}
    assert {each.name for each in within.outward("libc.so", read["libc.so"])} == {"first", "third"}
    assert list(within.outward("libd.so", read["libd.so"])) == []
    assert set(within.closure("libd.so")) == {"libd.so", "libc.so", "liba.so"}


def test_the_same_wheels_give_the_same_bytes_and_the_check_sees_a_change(
        almanac: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content = (almanac / FILE).read_bytes()
    assert call(almanac, "--check") == 0
    assert call(almanac, "--make") == 0
    assert capfd.readouterr() == ("", "")       # all of it was in the store
    assert (almanac / FILE).read_bytes() == content
    assert call(almanac, "--add", "stack==2.0", "nvidia-cusparse-cu12") == 0
    assert (almanac / FILE).read_bytes() == content
    kept = sorted((almanac.parent / "store" / KIND).iterdir())
    wheels = read_manifest(almanac / loading.MANIFEST)
    assert {each.name for each in kept} == {each.sha256 for each in wheels}

    facts = [loading.facts_from(each, loading.reduced(each, Cache(almanac.parent / "store")),
                                loading.ReadByBook(almanac)) for each in wheels]
    changed = [replace(each, libraries={path: replace(library, wanted=library.wanted[1:], uses=())
                                        for path, library in each.libraries.items()}) for each in facts]
    (almanac / FILE).write_bytes(loading.packed(changed))
    kept[0].unlink()
    assert call(almanac, "--check") == 1
    assert "symbols of site/" in capfd.readouterr().err
    (almanac / FILE).write_bytes(loading.packed(facts[1:]))
    assert call(almanac, "--check") == 1
    assert "not in both" in capfd.readouterr().err
    (almanac / FILE).write_bytes(content)
    assert call(almanac, "--check") == 0
    assert "with 2 of 3 wheels" in capfd.readouterr().err
    (almanac / FILE).write_bytes(content[:-1])
    assert call(almanac, "--check") == 2
    assert "is damaged" in capfd.readouterr().err
