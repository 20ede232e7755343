"""What every Linux machine is assumed to have: glibc, the C++ library, the interpreter, NVIDIA's driver.

Nobody knows the machine that a lock will be installed on. Its libraries are taken to have each symbol that is asked of
them by their name; the versions of these symbols are compared with what the target's glibc surely has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache

from stackfix.inspect.records import ElfObject, Offer, SymbolNames, Symbols, SymbolUse, UndefinedSymbol
from stackfix.matrix.proof_records import AssumedLibrary, ProofTable
from stackfix.platforms import LINUX_MACHINES
from stackfix.prove.tree import Layout, Placed

FOLDER = "/lib64"
PYTHON_OFFERS = ("Py*", "_Py*")
C_VERSION = "GLIBC"
LINKED = ("libpthread.so.0", "libdl.so.2", "libutil.so.1", "libm.so.6", "libc.so.6")     # by Python itself
PLAIN = re.compile(r"\w+").fullmatch    # a pattern that is one name
OFFERED = (Offer(version=None, version_index=1, hidden=False, binding="global", kind="func"),)


@dataclass(slots=True)
class Demands:
    """What the planned files want of the system by the name of its file; grows while they are read."""

    names: dict[str, set[str]] = field(default_factory=dict)

    def note(self, undefined: Iterable[UndefinedSymbol]) -> None:
        """What one file wants."""
        for name, version, file, _, _ in undefined:
            if version is not None and file is not None:
                self.names.setdefault(file, set()).add(name)


class Noting:
    """Symbols of a planned file; what it wants of the system is noted as soon as somebody asks what it wants."""

    def __init__(self, symbols: Symbols, demands: Demands) -> None:
        self._symbols, self._demands = symbols, demands
        self._undefined: Sequence[UndefinedSymbol] | None = None
        self.offered, self.unique, self.uses = symbols.offered, symbols.unique, symbols.uses

    def undefined(self) -> Sequence[UndefinedSymbol]:
        if self._undefined is None:
            self._undefined = self._symbols.undefined()
            self._demands.note(self._undefined)
        return self._undefined


class Admitted(dict[str, bool]):
    """Whether a name fits one of some patterns; asked of every name of a stack in every environment, so remembered."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        super().__init__()
        self._match = re.compile("|".join(map(translate, patterns))).match

    def __missing__(self, name: str) -> bool:
        answer = self[name] = self._match(name) is not None
        return answer


admitted = cache(Admitted)          # libraries of one part have the same patterns


class Assumed:
    """Fills inspect.records.Symbols for a library that nobody has read."""

    def __init__(self, soname: str, patterns: tuple[str, ...], demands: Demands) -> None:
        self._soname, self._demands = soname, demands
        self._exact = frozenset(each for each in patterns if PLAIN(each))
        wider = tuple(each for each in patterns if each not in self._exact)
        self._admits = admitted(wider) if wider else None

    def undefined(self) -> Sequence[UndefinedSymbol]:
        return ()

    def unique(self) -> Sequence[UndefinedSymbol]:
        return ()

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        """What was asked of it by its name, and what its patterns admit. A base definition serves every version."""
        asked, admits = self._demands.names.get(self._soname, self._exact), self._admits
        if len(names) < len(asked):         # a name of `names` is at hand, one of `asked` has to be hashed
            found = {name: OFFERED for name in names if name in asked or name in self._exact}
        else:
            found = {name: OFFERED for each in (asked, self._exact) for name in each if name in names}
        if admits is not None:
            found.update((name, OFFERED) for name in names if admits[name])
        return found

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The system of one target."""

    machine: str                    # "x86_64"
    glibc: str
    newest: Mapping[str, tuple[int, ...]]   # of each compared prefix: {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 25)}
    libraries: Mapping[str, AssumedLibrary]     # by soname

    def has(self, soname: str, version: str) -> bool:
        """Whether a library of the system surely has a symbol version. One that no number is in is older than all."""
        prefix, _, number = version.rpartition("_")
        least = self.newest.get(prefix)
        if least is None or prefix not in self.libraries[soname].versions:
            return True
        parts = number.split(".")
        return not all(part.isdecimal() for part in parts) or tuple(map(int, parts)) <= least


def base_of(table: ProofTable, *, platform: str, glibc: str) -> Base:
    """What the table says of a target's system."""
    level = numbers(glibc)
    known = [each for each in table.levels if numbers(each.glibc) <= level]
    newest = {C_VERSION: level}
    for version in known[-1].versions if known else ():
        prefix, _, number = version.rpartition("_")
        newest[prefix] = numbers(number)
    return Base(machine=LINUX_MACHINES[platform], glibc=glibc, newest=newest,
                libraries={soname: each for each in table.libraries for soname in each.sonames
                           if not is_loader_of_another(soname, LINUX_MACHINES[platform])})


def is_loader_of_another(soname: str, machine: str) -> bool:
    """Whether it is glibc's loader for another processor."""
    return soname.startswith("ld-linux-") and not soname.startswith(f"ld-linux-{machine.replace('_', '-')}.")


def interpreter_of(base: Base) -> str:
    """glibc's loader, as PT_INTERP names it."""
    return f"{FOLDER}/{next(each for each in base.libraries if each.startswith('ld-linux-'))}"


def place_base(base: Base, layout: Layout, demands: Demands, planned: Iterable[ElfObject],
               without: Iterable[str] = ()) -> Iterator[tuple[str, Placed]]:
    """The system's libraries and the interpreter. Their versions are those of `planned` that they surely have."""
    wanted: dict[str, dict[str, None]] = {}
    for elf in planned:
        for need in elf.needed_versions:
            if need.file in base.libraries and base.has(need.file, need.version):
                wanted.setdefault(need.file, {}).setdefault(need.version)
    lacking = frozenset(without)
    for soname, library in base.libraries.items():
        if soname not in lacking:
            elf = assumed_object(f"{FOLDER}/{soname}", base, soname=soname, versions=tuple(wanted.get(soname, ())))
            yield elf.path, Placed(elf, answering(Assumed(soname, library.offers, demands)))
    program = assumed_object(layout.executable, base, soname=None, needed=LINKED,
                             interpreter=interpreter_of(base))
    yield program.path, Placed(program, answering(Assumed("", PYTHON_OFFERS, demands)))


def answering(symbols: Symbols) -> Callable[[], Symbols]:
    """What gives these symbols whenever it is asked."""
    return lambda: symbols


def assumed_object(path: str, base: Base, *, soname: str | None, needed: tuple[str, ...] = (),
                   versions: tuple[str, ...] = (), interpreter: str | None = None) -> ElfObject:
    """A file that nobody has read."""
    return ElfObject(
        path=path, size=0, bits=64, byte_order="little", machine=base.machine, kind="shared", dynamic=True,
        soname=soname, needed=needed, rpath=None, runpath=None, flags=(), interpreter=interpreter, build_id=None,
        needed_versions=(), defined_versions=versions, base_version=soname, versioned_symbols=True)


def numbers(version: str) -> tuple[int, ...]:
    """(2, 28) of "2.28"; () of what is no version."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(part.isdecimal() for part in parts) else ()
