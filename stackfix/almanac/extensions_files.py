"""An extension wheel as the verdict wants it: each of its files with the names that it leaves to other packages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stackfix.abi.records import CompiledFile
from stackfix.almanac.records import LibraryTables, WheelTables
from stackfix.inspect.records import ElfObject, UndefinedSymbol

MACHINES = ("x86_64", "aarch64", "i686", "ppc64le", "s390x", "armv7l", "riscv64")


def compiled_files(tables: WheelTables) -> tuple[CompiledFile, ...]:
    """The shared objects of a wheel, without the names that another of them, which they need, supplies."""
    machine = machine_of(tables.wheel.file)
    return tuple(compiled_file(library, tables.libraries, machine) for library in tables.libraries)


def compiled_file(library: LibraryTables, among: Sequence[LibraryTables], machine: str) -> CompiledFile:
    """One of them. Of its ELF record only what tables tell is filled in: path, soname, needed and machine."""
    supplied = {name for other in needed_siblings(library, among) for name in other.exports}
    wanted = [UndefinedSymbol(each.name, each.version, each.file, each.weak) for each in library.wanted]
    left = tuple(each for each in wanted if each.name not in supplied)
    elf = ElfObject(
        path=library.path, size=0, bits=64, byte_order="little", machine=machine, kind="shared", dynamic=True,
        soname=library.soname, needed=library.needed, rpath=None, runpath=None, flags=(), interpreter=None,
        build_id=None, needed_versions=(), defined_versions=(), base_version=None, versioned_symbols=False)
    return CompiledFile(path=library.path, elf=elf, undefined=left, supplied=len(wanted) - len(left), archs=None)


def needed_siblings(library: LibraryTables, among: Sequence[LibraryTables]) -> Iterator[LibraryTables]:
    """The libraries of the same wheel that it needs, also through one another; itself left out."""
    named: dict[str, LibraryTables] = {}
    for each in among:
        named.setdefault(each.path.rpartition("/")[2], each)
        if each.soname:
            named.setdefault(each.soname, each)
    seen, ahead = {library.path}, list(library.needed)
    while ahead:
        found = named.get(ahead.pop(0))
        if found is not None and found.path not in seen:
            seen.add(found.path)
            ahead += found.needed
            yield found


def machine_of(file: str) -> str:
    """The machine that a wheel's name states; "any" where it states none."""
    platform = file.removesuffix(".whl").rpartition("-")[2]
    return next((machine for machine in MACHINES if platform.endswith(machine)), "any")


__all__ = ["compiled_files", "needed_siblings"]
