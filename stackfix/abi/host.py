"""What a compiled package is compared with: an environment, or one release of torch alone. And what comes of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from stackfix.abi.records import AbiFacts, Deciding, Nearest

FITS, DOES_NOT_FIT, CANNOT_TELL = "fits", "does not fit", "cannot tell"
CPU = "cpu"
OF_NO_RELEASE = "symbols that no release of torch has"     # what a claim finds where that is so


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTorch:
    """torch as it is installed, or as it was asked about."""

    version: str                    # "2.3.1", "2.6.0+cu126"
    installed: bool                 # False: a release that was named, of which the almanac tells
    string_abi: str | None          # "old", "new"; None: cannot be told
    cuda: str | None                # "12.1", "12" where only the major is known, "cpu"; None: cannot be told
    folders: tuple[str, ...]        # of its libraries

    @property
    def cuda_major(self) -> int | None:
        """12 of "12.1"."""
        return int(self.cuda.partition(".")[0]) if self.cuda and self.cuda[:1].isdigit() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """As much of an environment and its machine as decides what can load in it. Absent: cannot be told."""

    prefix: str | None              # None: only a release of torch was named
    torch: HostTorch | None
    cudnn: str | None               # "8.9.2.26"
    nvidia: tuple[tuple[str, str], ...]     # (project, version) of NVIDIA's library wheels
    python: str | None              # "3.11"
    python_abi: str | None          # "cp311", "cp313t", "pp310"
    glibc: str | None               # "2.36"
    libstdcxx: str | None           # path of the one that a process would use
    standard: tuple[str, ...]       # the newest symbol versions that it defines: ("CXXABI_1.3.13", "GLIBCXX_3.4.30")
    machine: str | None             # "x86_64"
    capabilities: tuple[str, ...]   # of its GPUs: "9.0"; () where there is none, or where it cannot be told


class HostSymbols(Protocol):
    """What the libraries of an environment really export. None where there is nothing that could be read."""

    def torch_lacks(self, names: Collection[str]) -> Collection[str] | None:
        """Those of the names that none of torch's libraries exports."""
        ...

    def torch_has(self, soname: str) -> bool | None:
        """Whether there is a library of torch with this soname."""
        ...

    def library_lacks(self, soname: str, names: Collection[str]) -> Collection[str] | None:
        """Those of the names that the library of this soname does not export."""
        ...

    def finds(self, soname: str, folders: Collection[str]) -> bool:
        """Whether a library of this name lies in one of the folders, in the environment, or where ld.so looks.

        `$ORIGIN/…` is taken from each site folder.
        """
        ...

    def standard_lacks(self, names: Collection[str]) -> Collection[str] | None:
        """Those of the names that neither the C++ library nor torch exports."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A symbol that nothing there exports."""

    name: str                       # as the file has it
    demangled: str | None
    file: str                       # that wants it


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One respect in which a package fits, or does not."""

    name: str                       # "torch", "C++ ABI", "CUDA", "cuDNN", a soname, "Python", "glibc", "libstdc++" …
    verdict: str                    # FITS, DOES_NOT_FIT or CANNOT_TELL
    needs: str                      # what the package has or asks for
    has: str | None                 # what is there
    reason: str                     # one clause
    missing: tuple[Lacking, ...] = ()       # the loader's first of each file before the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a name or metadata say of a package, beside what its symbols say."""

    source: str                     # "file name", "version", "metadata", "wheel tag"
    text: str                       # the words: "cxx11abiFALSE", "torch>=2.11"
    says: str                       # in ours: "the old std::string"
    found: str                      # "the new std::string"
    holds: bool
    minors: tuple[str, ...] = ()    # torch minors of which it admits some release, and none that can load it
    lost: str = ""                  # releases that it admits and that cannot load it, in words: "2.2 to 2.3, 2.4.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A release that fits where this one does not, and the command that gets it."""

    nearest: Nearest
    command: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """All that `stackfix abi` tells."""

    facts: AbiFacts
    claims: tuple[Claim, ...]       # those that do not hold first
    host: Host | None               # None: nothing to compare with
    axes: tuple[Axis, ...]
    verdict: str | None             # over all axes; None: nothing was compared
    suggestions: tuple[Suggestion, ...]
    symbols: tuple[Deciding, ...] | None    # all that it asks of torch, where somebody wants the list
    notes: tuple[tuple[str, str], ...]      # (path, reason): what was odd, or could not be read


__all__ = ["CANNOT_TELL", "CPU", "DOES_NOT_FIT", "FITS", "OF_NO_RELEASE", "Answer", "Axis", "Claim", "Host",
           "HostSymbols", "HostTorch", "Lacking", "Suggestion"]
