"""What the files of one compiled package tell of what they were built for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stackfix.abi.calls import calls_of
from stackfix.abi.facts_gpu import merge_archs
from stackfix.abi.facts_libraries import cuda_majors, cudnn_majors, glibc_floor, needed_of, newest_standard
from stackfix.abi.facts_python import python_abis, python_floor
from stackfix.abi.names import is_standard_symbol
from stackfix.abi.records import AbiFacts, Books, Bounds, Call, Compiled, CompiledFile, NvidiaBook
from stackfix.abi.torch_range import torch_range
from stackfix.inspect.fatbin_records import GpuArchs


def abi_facts(subject: Compiled, books: Books) -> AbiFacts:
    """All that can be told without loading anything. Raises BadInput for a damaged book."""
    files, elf = subject.files, [file.elf for file in subject.files]
    needed = needed_of(elf)
    called = calls_of(files)
    return AbiFacts(
        subject=subject, torch=torch_range(files, books.torch), cuda=cuda_majors(needed), cudnn=cudnn_majors(needed),
        python=python_abis(subject.tags, files), python_floor=python_floor(subject.tags),
        machine=tuple(dict.fromkeys(each.machine for each in elf)), glibc=glibc_floor(elf),
        libstdcxx=newest_standard(elf),
        gpu=merge_archs(subject.name, (file.archs for file in files if isinstance(file.archs, GpuArchs))),
        calls=dated(called, books.nvidia), library_bounds=bounds_of(called, books.nvidia), standard=standard_of(files),
    )


def dated(called: Iterable[tuple[str, str]], book: NvidiaBook) -> tuple[Call, ...]:
    """The calls with since when each function exists."""
    return tuple(Call(soname=soname, name=name, since=book.since(soname, name) if book.packages(soname) else None)
                 for soname, name in called)


def bounds_of(called: Iterable[tuple[str, str]], book: NvidiaBook) -> tuple[Bounds, ...]:
    """Which versions of the library wheels have all that is called."""
    names: dict[str, list[str]] = {}
    for soname, name in called:
        names.setdefault(soname, []).append(name)
    return tuple(each for soname, wanted in names.items() for each in book.bounds(soname, wanted))


def standard_of(files: Sequence[CompiledFile]) -> tuple[str, ...]:
    """Names of the C++ library that are asked for without a version.

    torch exports some of them, so a file that was linked against it carries no version for them; another torch does
    not, and then libstdc++.so.6 is to have them.
    """
    return tuple(dict.fromkeys(symbol.name for file in files for symbol in file.undefined
                               if not symbol.weak and symbol.version is None and is_standard_symbol(symbol.name)))


__all__ = ["abi_facts"]
