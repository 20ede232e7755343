"""What the almanac answers, and what is told of a compiled file.

Frozen and plain: `inspect.plain` writes each of them to JSON and reads it back. The verdict on a release is always
"can load", never "compatible": a layout can change under the same names.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from stackfix.inspect.fatbin_records import GpuArchs, UnreadableFatbin
from stackfix.inspect.records import ElfObject, UndefinedSymbol
from stackfix.quick import dataclass

# --- what is read of compiled files -------------------------------------------------------------------------------


def found_as(path: str, soname: str | None) -> frozenset[str]:
    """Names under which the loader finds a file: its own, and its soname where a link of that name leads to it.

    A renamed copy (libcudart.e8e8b82a.so.12) may keep the soname, and is still not found as libcudart.so.12.
    """
    name = path.rpartition("/")[2]
    return frozenset({name, soname}) if soname and name.startswith(soname) else frozenset({name})


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledFile:
    """One shared object of what is asked about, with the symbols that it leaves to others."""

    path: str                       # as it is shown: in the wheel, in the site folder, or as named
    elf: ElfObject
    undefined: tuple[UndefinedSymbol, ...]  # all, weak ones too, without what a file of the same package supplies
    supplied: int                   # how many are left out for that reason (DT_NEEDED, followed through the package)
    archs: GpuArchs | UnreadableFatbin | None   # None: no GPU code

    @property
    def names(self) -> frozenset[str]:
        """What DT_NEEDED may call it."""
        return found_as(self.path, self.elf.soname)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What `stackfix abi` is asked about: one file, a wheel, or an installed package."""

    name: str                       # normalised project name, or the file's name where no package is known
    version: str | None
    origin: str                     # "file", "wheel" or "installed"
    source: str                     # the path or package as the user named it
    tags: tuple[str, ...]           # wheel tags "cp311-cp311-linux_x86_64"; empty where there is no wheel metadata
    requires: tuple[str, ...]       # Requires-Dist lines
    file_name: str | None           # of the wheel, where it is known: flash_attn-2.5.8+cu122torch2.3cxx11abiFALSE-...
    files: tuple[CompiledFile, ...]     # by path; empty: nothing compiled in it
    unreadable: tuple[tuple[str, str], ...]     # (path, reason) of files that could not be read


# --- the book of torch --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BookRelease:
    """One torch minor in the almanac, read from one wheel."""

    minor: str                      # "2.3"
    version: str                    # "2.3.1", the newest patch
    file: str                       # wheel file name
    sha256: str
    string_abi: str                 # std::string of this wheel: "old" or "new"
    patches: tuple[str, ...]        # other patch releases that were compared by machine: ("2.3.0",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchException:
    """A name that one patch release has otherwise than the newest of its minor."""

    version: str                    # "2.4.0"
    key: str                        # ABI-neutral name
    exported: bool                  # by `version`; the newest patch has it the other way round


class TorchBook(Protocol):
    """Which torch minors export a name. Names may be given as they are: they are made ABI-neutral inside."""

    @property
    def releases(self) -> tuple[BookRelease, ...]:
        """All minors, oldest first."""
        ...

    def minors(self, name: str) -> tuple[str, ...]:
        """Minors whose libraries export the name, oldest first; () where none does."""
        ...

    def libraries(self, name: str) -> tuple[str, ...]:
        """Which of torch's libraries export it, in any minor: ("libc10_cuda.so",)."""
        ...

    def exceptions(self, version: str) -> tuple[PatchException, ...]:
        """What the patch release `version` has otherwise than its minor's newest patch."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """One undefined symbol that bounds the answer."""

    name: str                       # mangled, as the file has it
    demangled: str | None
    file: str                       # the compiled file that wants it
    minors: tuple[str, ...]         # that export it; (): no release does


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRange:
    """Which torch releases a compiled package can load with, by its symbols alone."""

    asked: int                      # torch-owned strong undefined symbols that count, each once
    minors: tuple[str, ...]         # that export all of them, oldest first; with asked == 0: every minor
    string_abi: str | None          # its std::string: "old", "new", "both"; None where no name speaks of it
    index_minors: tuple[str, ...]   # of `minors`, those whose wheel in the almanac has this std::string too
    floor: tuple[Deciding, ...]     # why nothing older: names first exported by minors[0]
    ceiling: tuple[Deciding, ...]   # why nothing newer
    unknown: tuple[Deciding, ...]   # no release exports these: a nightly, a fork, a release newer than the almanac
    exceptions: tuple[PatchException, ...]  # patches of `minors` that lack a name that is asked for
    cuda_torch: bool                # asks for names that only a CUDA build of torch has
    known: tuple[str, ...] = ()     # minors that export all but the unknown names: `minors`, where there are none
    patches: tuple[str, ...] = ()   # single patch releases that export all, while their minor's newest does not
    stable: bool = False            # all that it asks for are C names: torch's stable ABI
    index_patches: tuple[str, ...] = ()     # of `patches`, those whose wheel on the index has this std::string too

    def loads(self, version: str) -> bool:
        """Whether a release that was read ("2.4.0") has all names, whatever its std::string."""
        if version in self.patches:
            return True
        minor = ".".join(version.split(".")[:2])
        return minor in self.minors and all(each.version != version for each in self.exceptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadVerdict:
    """Whether a compiled package can load with one torch release, by its symbols alone."""

    release: str                    # as asked: "2.3.1+cu121"
    verdict: str                    # "can load", "cannot load" or "cannot tell"
    read: str | None                # the release in the almanac whose names were compared: "2.3.1"; None: none
    why: str | None                 # of "cannot tell": "newer", "older" (than all that were read), "unread" (a minor or
    #                                 a patch), "string-abi" (that build's is not known), "machine" (not x86_64)
    missing: tuple[Deciding, ...]   # names that `read` lacks, in the order in which the files have them
    other_string: tuple[str, ...]   # those of `missing` that it has with the other std::string
    only_cuda: tuple[str, ...]      # those of `missing` that only a CUDA build has, where that is none


class TorchNames(Protocol):
    """The names that torch's libraries export, by their beginning."""

    def starting(self, beginning: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """(ABI-neutral name, minors that export it) of each name with this beginning."""
        ...

    def having(self, library: str) -> tuple[str, ...]:
        """Minors that have a library, oldest first: those in which it exports any name."""
        ...


# --- the book of NVIDIA's libraries -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """In which releases of one library wheel a function exists, as far as wheels were read."""

    package: str                    # "nvidia-cublas-cu12"
    soname: str                     # "libcublas.so.12"
    name: str
    first: str | None               # oldest read version that has it; None: the oldest read one has it already
    last: str | None                # newest read version that has it; None: the newest read one still has it
    absent_before: str | None       # the read version next below `first`
    absent_after: str | None        # the read version next above `last`


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Which versions of one library wheel export all of some names."""

    package: str
    soname: str
    versions: tuple[str, ...]       # read versions that export all, oldest first; () none does
    floor: str | None               # oldest of them; None where the oldest read version suffices
    not_enough: str | None          # the read version next below the floor
    ceiling: str | None             # newest of them; None where the newest read version suffices
    gone_in: str | None             # the read version next above the ceiling
    low: tuple[str, ...]            # names that set the floor
    high: tuple[str, ...]           # names that set the ceiling
    unknown: tuple[str, ...]        # names that no read version exports


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryUse:
    """What one consumer release wants of one NVIDIA library, and which versions have it."""

    consumer: str                   # "nvidia-cusparse-cu12", "torch"
    version: str                    # of the consumer
    file: str                       # its library: "libcusparse.so.12"
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which releases of one consumer's library want one function."""

    consumer: str                   # "nvidia-cusparse-cu12", "torch"
    file: str                       # its library: "libcusparse.so.12"
    versions: tuple[str, ...]       # read versions that want it, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """Whether one version of a library wheel exports some names: all of them where both lists are empty."""

    package: str
    version: str
    soname: str
    missing: tuple[str, ...]        # it does not export these
    unsure: tuple[str, ...]         # cannot tell: it was not read, and the read versions around it differ
    older: str | None               # the read versions around one that was not read; None: there is none
    newer: str | None


class NvidiaBook(Protocol):
    """Which releases of NVIDIA's library wheels export which functions."""

    @property
    def sonames(self) -> tuple[str, ...]:
        """Libraries that are known."""
        ...

    def asking(self, soname: str, name: str) -> tuple[Asking, ...]:
        """Who wants a function of a library: for each consumer's file, the releases that do."""
        ...

    def packages(self, soname: str) -> tuple[str, ...]:
        """Wheels that carry a library of this soname: ("nvidia-cusparse-cu12", "nvidia-cusparse")."""
        ...

    def versions(self, package: str) -> tuple[str, ...]:
        """Read versions, oldest first."""
        ...

    def since(self, soname: str, name: str) -> tuple[Since, ...]:
        """For each wheel that has the library: since when the function exists. () where no read version has it."""
        ...

    def bounds(self, soname: str, names: Collection[str]) -> tuple[Bounds, ...]:
        """For each wheel that has the library: which versions export all of the names."""
        ...

    def provides(self, package: str, version: str, soname: str, names: Collection[str]) -> Provision:
        """Which of the names a version exports. One that was not read is judged only where its neighbours agree."""
        ...

    def exported(self, package: str, version: str, soname: str) -> Collection[str] | None:
        """Names of one release's library; None where that release was not read."""
        ...

    def consumer_versions(self, consumer: str) -> tuple[str, ...]:
        """Versions of a consumer of which it is known what they want, oldest first."""
        ...

    def uses(self, consumer: str, version: str) -> tuple[LibraryUse, ...]:
        """What a release (an NVIDIA wheel, or torch) wants of NVIDIA's libraries; () where it was not read."""
        ...


# --- everything about one compiled package ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of an NVIDIA library that a file calls."""

    soname: str                     # "libcudnn.so.9"
    name: str
    since: tuple[Since, ...] | None     # (): in no version that was read; None: the library is not in the almanac


@dataclass(frozen=True, slots=True, kw_only=True)
class AbiFacts:
    """What the files of one compiled package tell of what they were built for."""

    subject: Compiled
    torch: TorchRange | None        # None: asks nothing of torch and is linked against none of its libraries
    cuda: tuple[int, ...]           # CUDA majors of the libraries that it is linked against; more than one is a fault
    cudnn: tuple[int, ...]
    python: tuple[str, ...]         # "cp311", "abi3", "cp311t"; () where nothing tells
    python_floor: str | None        # of abi3: "3.9"
    machine: tuple[str, ...]        # "x86_64"
    glibc: str | None               # floor: "2.27"
    libstdcxx: tuple[str, ...]      # newest of each of its symbol versions: ("GLIBCXX_3.4.29", "CXXABI_1.3.11")
    gpu: GpuArchs | None            # over all files; None: no GPU code
    calls: tuple[Call, ...]
    library_bounds: tuple[Bounds, ...]  # of NVIDIA's library wheels, over all its calls
    standard: tuple[str, ...]       # C++ library names without a version that it leaves to others: libstdc++'s to have


# --- extensions that were read and judged before ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedWheel:
    """One published extension wheel, as its symbols judge it (`matrices/abi/extensions.tsv`)."""

    package: str                    # "torchaudio"
    version: str                    # "2.11.1", with its local version
    file: str                       # wheel file name
    sha256: str
    torch: tuple[str, ...]          # minors of which it can load with every patch; single releases ("2.4.0") of others
    string_abi: str | None
    cuda: tuple[int, ...]
    declares: str | None            # what its metadata requires of torch: ">=2.11"
    disproved: tuple[str, ...]      # minors that it declares and cannot load with
    because: tuple[str, ...] = ()   # names that disprove, as the file has them: ("torch_new_stable_ivalue",)

    def loads(self, version: str) -> bool:
        """Whether a release that was read ("2.4.0") has all its names, whatever its std::string."""
        return version in self.torch or ".".join(version.split(".")[:2]) in self.torch


class JudgedWheels(Protocol):
    """Extension wheels that were read."""

    @property
    def packages(self) -> tuple[str, ...]:
        """All packages of which a wheel was read, by name."""
        ...

    def wheel(self, sha256: str) -> JudgedWheel | None:
        """By the hash of the file."""
        ...

    def releases(self, package: str, version: str) -> tuple[JudgedWheel, ...]:
        """All wheels of one release that were read (they may differ)."""
        ...

    def of(self, package: str) -> tuple[JudgedWheel, ...]:
        """All wheels of a package, newest release first."""
        ...


@dataclass(frozen=True, kw_only=True)
class Books:
    """The three books together, and the list of the names that the first was made of."""

    torch: TorchBook
    nvidia: NvidiaBook
    judged: JudgedWheels
    names: TorchNames | None = None     # None: names can be asked for as a whole only


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """Another release that fits, by the smallest change."""

    package: str                    # "xformers", "torch"
    version: str                    # "0.0.27"; of torch "2.6.0", with `build` beside it
    build: str | None               # wheel file name, where one of several is meant; of torch its index: "cu126"
    basis: str                      # "symbols": its wheel was read; "declared": its metadata or the matrix say so;
    #                                 "file name": the wheel's name says so
