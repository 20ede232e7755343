"""What the readers of a machine hand on about ELF files and about how its loader is set up.

Frozen and plain: `plain.to_json` writes each of them, `plain.from_json` reads it back. The protocols at the end are
what a simulation asks; a disk, a recorded tree or a test's dictionary can answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from stackfix.errors import BadInput
from stackfix.inspect.elf_names import SymbolNames, gnu_hash
from stackfix.quick import dataclass, field

__all__ = ["FALSE_HASH", "BadElf", "DefinedSymbol", "ElfObject", "FileAt", "Files", "LoaderEnvironment",
           "LoaderMachine", "NeededVersion", "Offer", "Refused", "SymbolNames", "SymbolUse", "Symbols",
           "UndefinedSymbol", "UnreadableElf", "gnu_hash"]


FALSE_HASH = " with hash "          # between a version and what its table states as its hash, where that is another's


class BadElf(BadInput):
    """A file that is no ELF file, or one whose tables contradict themselves. `thing` is its path.

    The rest is what an UnreadableElf says of it.
    """

    reference = "bad-elf"

    def __init__(
        self, thing: str, reason: str, *, crash: str | None = None, bits: int | None = None,
        byte_order: str | None = None, machine: str | None = None,
    ) -> None:
        super().__init__(thing, reason)
        self.crash, self.bits, self.byte_order, self.machine = crash, bits, byte_order, machine

    def as_record(self, path: str) -> UnreadableElf:
        """The error as a record about `path`."""
        return UnreadableElf(path=path, reason=self.reason, crash=self.crash, bits=self.bits,
                             byte_order=self.byte_order, machine=self.machine)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededVersion:
    """One version that an object needs of one library (DT_VERNEED)."""

    file: str                       # "libc.so.6"
    version: str                    # "GLIBC_2.34"; with FALSE_HASH behind it, one that no library can have
    weak: bool                      # its absence only warns


@dataclass(frozen=True, slots=True, kw_only=True)
class ElfObject:
    """An ELF file as its program headers and PT_DYNAMIC describe it; section headers are never asked."""

    path: str                       # where it was read
    size: int
    bits: int                       # 32 or 64
    byte_order: str                 # "little" or "big"
    machine: str                    # "x86_64", "aarch64", else "EM_40"
    kind: str                       # "shared", "executable" or "other" (ET_DYN, ET_EXEC)
    dynamic: bool                   # has a PT_DYNAMIC
    soname: str | None              # DT_SONAME
    needed: tuple[str, ...]         # DT_NEEDED in file order: order decides who loads first
    rpath: str | None               # DT_RPATH as written: "$ORIGIN/../lib:/opt"; an empty element means the cwd
    runpath: str | None             # DT_RUNPATH as written
    flags: tuple[str, ...]          # "DF_BIND_NOW", "DF_SYMBOLIC", "DF_1_NODEFLIB" ..., sorted
    interpreter: str | None         # PT_INTERP
    build_id: str | None            # NT_GNU_BUILD_ID in hexadecimal
    needed_versions: tuple[NeededVersion, ...]  # in file order
    defined_versions: tuple[str, ...]           # DT_VERDEF without the base
    base_version: str | None        # DT_VERDEF's base: the soname as a rule
    versioned_symbols: bool         # has DT_VERSYM
    cut_short: int | None = None    # bytes that its segments state, where the file has fewer
    versions_refused: str | None = None     # what the loader says of a DT_VERNEED that it does not understand


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableElf:
    """A file that is no usable ELF file, and what the loader would say of it.

    The loader passes over files of another class or machine before it looks further, so what it saw by then is kept.
    """

    path: str
    reason: str                     # in the loader's words: "file too short"; with `crash`, in ours
    crash: str | None = None        # the loader says nothing and dies: what is seen then, "Bus error"
    bits: int | None = None         # 32 or 64; 0 for neither; None where it is no ELF file at all
    byte_order: str | None = None   # "little" or "big", else "unknown"
    machine: str | None = None      # None where the loader stops before it compares it


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAt:
    """What opening one path gives. Hard and symbolic links to one file share `identity`."""

    path: str                       # as asked
    real_path: str                  # all links followed
    identity: str                   # "device:inode"
    elf: ElfObject | UnreadableElf


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A path that exists in some way but cannot be opened."""

    path: str
    reason: str                     # "permission denied", "too many levels of symbolic links"
    ends_list: bool                 # the loader gives up the list of folders it was searching (all but EACCES)


# Symbols come by the tens of thousands: named tuples cost a third of what frozen dataclasses do.


class UndefinedSymbol(NamedTuple):
    """A symbol that an object wants from others."""

    name: str
    version: str | None             # "GLIBC_2.34"
    file: str | None                # the library that the version was linked from (DT_VERNEED)
    weak: bool                      # may stay null
    hidden: bool = False            # only exactly this version will do


class DefinedSymbol(NamedTuple):
    """A symbol that an object offers to others: default or protected visibility, not local."""

    name: str
    version: str | None
    version_index: int              # in DT_VERSYM, without the hidden bit; 1 where there is none
    hidden: bool                    # an old version: "foo@V1", not "foo@@V2"
    binding: str                    # "global", "weak" or "unique" (STB_GNU_UNIQUE counts as defined)
    kind: str                       # "notype", "object", "func", "common", "tls" or "ifunc"


class Offer(NamedTuple):
    """What one definition is like, whatever its name. Many symbols of an object share one."""

    version: str | None
    version_index: int              # in DT_VERSYM, without the hidden bit; 1 where there is none
    hidden: bool                    # an old version: "foo@V1", not "foo@@V2"
    binding: str                    # "global", "weak" or "unique" (STB_GNU_UNIQUE counts as defined)
    kind: str                       # "notype", "object", "func", "common", "tls" or "ifunc"


class SymbolUse(NamedTuple):
    """A relocation's symbol, in the order in which the loader comes to it."""

    name: str
    version: str | None
    file: str | None                # the library that the version was linked from: two may define the same one
    lazy: bool                      # only through the PLT: under RTLD_LAZY nobody asks until it is called


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderMachine:
    """How the dynamic loader of a machine is set up, whatever the process."""

    machine: str                    # "x86_64"
    bits: int
    byte_order: str = "little"
    system_folders: tuple[str, ...]     # the loader's built-in folders, in order, without a slash at the end
    hwcap_subfolders: tuple[str, ...] = ()  # tried in each folder before it, in order: "glibc-hwcaps/x86-64-v3"
    lib: str                        # what $LIB stands for: "lib/x86_64-linux-gnu", "lib64"
    platform: str                   # what $PLATFORM stands for
    cache: Mapping[str, str] = field(default_factory=dict)  # ld.so.cache: soname to the path that wins
    preload_file: tuple[str, ...] = ()  # /etc/ld.so.preload
    sort_by_depth: bool = True      # glibc 2.35 and later relocate in depth-first order


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderEnvironment:
    """A machine's loader, with what one process tells it."""

    machine: LoaderMachine
    cwd: str
    library_path: str | None = None     # LD_LIBRARY_PATH as set
    preload: str | None = None          # LD_PRELOAD as set
    bind_now: bool = False              # LD_BIND_NOW is set and not empty
    secure: bool = False                # setuid and the like: the variables do not count


class Symbols(Protocol):
    """The dynamic symbols of one object. Any question may raise BadElf."""

    def undefined(self) -> Sequence[UndefinedSymbol]:
        """Symbols that it wants from others, each once."""
        ...

    def unique(self) -> Sequence[UndefinedSymbol]:
        """Its own STB_GNU_UNIQUE symbols, as it would ask for them: the process may hold another copy."""
        ...

    def offered(self, names: SymbolNames) -> Mapping[str, Sequence[Offer]]:
        """What it offers under those of the names that it has, in the order in which the loader meets it."""
        ...

    def uses(self, names: Iterable[str]) -> Sequence[SymbolUse]:
        """Relocations of its symbols of these names, in the loader's order, each symbol once."""
        ...


class Files(Protocol):
    """The world as a loader sees it. Paths are absolute."""

    def at(self, path: str) -> FileAt | Refused | None:
        """What opening `path` gives; None where there is nothing."""
        ...

    def symbols(self, file: FileAt) -> Symbols:
        """Symbols of a file that `at` gave."""
        ...
