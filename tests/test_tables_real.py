"""Real wheels of the package index: their tables are what their files say, and so is what ships of them."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stackfix.almanac.fetch import download
from stackfix.almanac.loading_check import no_torch, unlike
from stackfix.almanac.loading_facts import facts_of
from stackfix.almanac.manifest import read_manifest
from stackfix.almanac.records import ManifestWheel
from stackfix.inspect.elf import map_file
from stackfix.inspect.elf_layout import Buffer
from stackfix.inspect.records import UnreadableElf
from stackfix.matrix.toml_files import matrix_directory
from stackfix.prove.records import PlannedWheel
from stackfix.sources.cache import Cache
from stackfix.sources.transport import Transport
from stackfix.tables.kept import read_kept
from stackfix.tables.loading_book import open_loading_book
from stackfix.tables.opened import open_symbols
from stackfix.tables.source import open_tables
from tests.tables_answers import answers

pytestmark = pytest.mark.real
WHEELS = {("nvidia-nvjitlink-cu12", "12.0.140"), ("nvidia-cuda-runtime-cu12", "12.1.105"),
          ("nvidia-cusparse-cu12", "12.1.0.106"), ("markupsafe", "3.0.4")}
ABI = matrix_directory() / "abi"
ROWS = [each for each in read_manifest(ABI / "loading.toml") if (each.package, each.version) in WHEELS]


def nowhere() -> Transport:
    raise AssertionError("the wheel lies on this machine")


def mapped(path: Path) -> Buffer:
    with path.open("rb") as stream:
        return map_file(stream.fileno(), str(path))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels are for x86_64")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.package}-{row.version}")
def test_a_published_wheel_is_told_as_it_is(row: ManifestWheel, tmp_path: Path) -> None:
    path = download(row, tmp_path)
    wheel = PlannedWheel(name=row.package, version=row.version, file=row.file, sha256=row.sha256, url=path.as_uri(),
                         size=None)
    source = open_tables(tmp_path / "cache", nowhere, offline=True)
    tables = source.fetch([wheel], print, exactly=True).tables[row.sha256]
    assert tables.basis == "wheel"
    installed = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(path), str(installed)], check=True, timeout=300)
    assert {each.path.removeprefix("site/") for each in tables.libraries} == {
        str(file.relative_to(installed)) for file in installed.rglob("*.so*")}
    reduced = read_kept(Cache(tmp_path / "cache"), row.sha256)
    assert reduced is not None
    for library in tables.libraries:
        data = mapped(installed / library.path.removeprefix("site/"))
        if not isinstance(library.elf, UnreadableElf):
            assert answers(open_symbols(reduced, library.path).layout.data) == answers(data)
    facts = facts_of(row, tables, lambda each: open_symbols(reduced, each), None)
    assert list(unlike(open_loading_book(None, no_torch), facts)) == []
    shutil.rmtree(installed)
