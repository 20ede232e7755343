"""Small books of torch and small compiled files, as records and as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from stackfix.abi.book_format import pack
from stackfix.abi.book_patches import render_patches
from stackfix.abi.mangled import neutral
from stackfix.abi.records import CompiledFile
from stackfix.inspect.fatbin_records import GpuArchs, UnreadableFatbin
from stackfix.inspect.records import ElfObject, NeededVersion, UndefinedSymbol

LIBRARIES = ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so")
# As on the index: the old std::string up to 2.6
RELEASES = (("2.3", "2.3.1", "old", ("2.3.0",)), ("2.4", "2.4.1", "old", ("2.4.0",)),
            ("2.5", "2.5.1", "old", ("2.5.0",)), ("2.6", "2.6.0", "old", ()), ("2.7", "2.7.1", "new", ("2.7.0",)))
Row = tuple[str, str, tuple[str, ...]]      # name, first and last minor ("2.3-2.4", "2.5-"), libraries


def write_book(folder: Path, rows: Iterable[Row], *, patches: Iterable[tuple[str, str, str, str]] = (),
               releases: Iterable[tuple[str, str, str, tuple[str, ...]]] = RELEASES) -> Path:
    """A folder with full.bin and patches.tsv."""
    listed = list(releases)
    minors = [minor for minor, *_ in listed]
    masks: dict[str, tuple[int, int]] = {}
    for name, span, libraries in rows:
        first, dash, last = span.partition("-")
        begin, end = minors.index(first), minors.index(last or (minors[-1] if dash else first))
        mask = sum(1 << place for place in range(begin, end + 1))
        before = masks.get(neutral(name), (0, 0))
        masks[neutral(name)] = (before[0] | mask, before[1] | sum(1 << LIBRARIES.index(each) for each in libraries))
    header = {"libraries": list(LIBRARIES), "releases": [
        {"minor": minor, "version": version, "file": f"torch-{version}-cp311-cp311-manylinux1_x86_64.whl",
         "sha256": f"{place:064x}", "string_abi": abi, "patches": list(others)}
        for place, (minor, version, abi, others) in enumerate(listed, 1)]}
    (folder / "full.bin").write_bytes(pack(header, [(key, *mask) for key, mask in masks.items()]))
    (folder / "patches.tsv").write_text(render_patches(patches), encoding="utf-8")
    return folder


def compiled(*names: str, path: str = "ext/_C.so", needed: tuple[str, ...] = ("libc10.so", "libc.so.6"),
             machine: str = "x86_64", weak: Iterable[str] = (), versioned: Mapping[str, tuple[str, str]] | None = None,
             archs: GpuArchs | UnreadableFatbin | None = None, versions: Iterable[tuple[str, str]] = (),
             soname: str | None = None) -> CompiledFile:
    """A compiled file that wants the names; `versioned` gives version and library of further ones."""
    undefined = (
        *(UndefinedSymbol(name, None, None, False) for name in names),      # noqa: FBT003 - a named tuple
        *(UndefinedSymbol(name, None, None, True) for name in weak),        # noqa: FBT003
        *(UndefinedSymbol(name, version, file, False) for name, (version, file) in (versioned or {}).items()),  # noqa: FBT003
    )
    return CompiledFile(
        path=path, undefined=undefined, supplied=0, archs=archs,
        elf=ElfObject(
            path=path, size=1000, bits=64, byte_order="little", machine=machine, kind="shared", dynamic=True,
            soname=soname, needed=needed, rpath=None, runpath=None, flags=(), interpreter=None, build_id=None,
            needed_versions=tuple(NeededVersion(file=file, version=version, weak=False) for file, version in versions),
            defined_versions=(), base_version=None, versioned_symbols=True))
