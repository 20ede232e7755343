"""What a proof says. Paths are told from the site folder, or whole where they lie outside of it."""

from __future__ import annotations

from dataclasses import dataclass

CLEAN = "clean"                     # name of the environment that nothing is in the way in

# Verdicts, best first. "cannot-tell": nothing is known to fail, and not everything is known.
LOADS, CANNOT_TELL, FAILS, NOT_TRIED = "loads", "cannot-tell", "fails", "not-tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenWheel:
    """One wheel of the lock."""

    name: str
    version: str
    sha256: str
    file: str
    basis: str | None               # "almanac", "wheel"; None: nothing is known of it, and nothing proven


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideOfProof:
    """A part of the lock that no table exists of."""

    name: str
    version: str
    why: str                        # "is an sdist: what its build gives is not known before"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ProvenFile:
    """One file of a wheel that some import maps, as its wheel has it."""

    path: str
    size: int
    build_id: str | None            # NT_GNU_BUILD_ID, in hexadecimal


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Resolved:
    """One name that a file needs or opens, and the file that the loader takes for it."""

    requester: str                  # path; "" for Python itself
    name: str                       # DT_NEEDED, or what dlopen is called with
    winner: str
    how: str                        # step of the search: "RUNPATH", "loaded soname", "default folder", "path"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BoundTo:
    """Symbols that one file takes from another package's, or from the system."""

    requester: str
    provider: str
    count: int
    versions: tuple[str, ...]       # of the symbols, sorted: "GLIBC_2.14"; those without one are only counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenImport:
    """What one import, or one kind of later use, opens and maps."""

    project: str                    # "torch"
    imports: str                    # "torch"; of extension modules that are imported by themselves "torchvision.*"
    phase: str                      # "import", "first use", "module"; "library": opened by itself
    verdict: str
    maps: tuple[str, ...]           # files, in the order of mapping
    resolved: tuple[Resolved, ...]
    bound: tuple[BoundTo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A release that has what is missing, by the almanac, the matrix or a pin in the stack."""

    package: str
    specifier: str                  # ">=12.1.55"
    version: str | None             # one release, where one is named
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One root of what does not load."""

    kind: str                       # "symbol", "version", "library" or "file"
    summary: str                    # one sentence
    error: str                      # as the loader says it
    library: str                    # that is missing or lacks something: "libnvJitLink.so.12"
    provider: str | None            # the file that is taken for it
    provider_package: str | None    # "nvidia-nvjitlink-cu12 12.0.140"
    requester: str | None
    requester_package: str | None
    symbols: tuple[str, ...]        # all that are not found
    versions: tuple[str, ...]       # symbol versions that the provider lacks
    seen: tuple[str, ...]           # "import torch opens torch/_C….so"
    remedies: tuple[Remedy, ...]
    avoid: tuple[str, ...]          # what helps by hand: "unset LD_LIBRARY_PATH"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What is taken for granted of the machine."""

    part: str                       # "glibc", "NVIDIA driver", "Python"
    library: str                    # soname; of Python itself "python3.11"
    level: str | None               # "2.28", where its versions were compared with a level
    versions: tuple[str, ...]       # the newest of each kind that is needed: "GLIBC_2.27"
    needed_by: int                  # files


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The stack in one environment."""

    name: str                       # CLEAN, "older-toolkit"
    title: str
    holds: tuple[str, ...]          # what lies in the way: "nvidia-cublas-cu12 12.0.2.224"
    variables: tuple[tuple[str, str], ...]
    verdict: str
    why: str | None                 # of "not-tried" and "cannot-tell"
    taken: tuple[Resolved, ...]     # what is resolved otherwise than in the clean environment
    troubles: tuple[Trouble, ...]
    beware: tuple[str, ...]         # what loads and does not go together: two majors of one library in a process


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenTarget:
    """The proof of one target."""

    python: str
    platform: str
    glibc: str
    verdict: str                    # in the clean environment
    wheels: tuple[ProvenWheel, ...]
    outside: tuple[OutsideOfProof, ...]
    files: tuple[ProvenFile, ...]   # by path
    imports: tuple[ProvenImport, ...]
    assumed: tuple[Assumption, ...]
    unknown: tuple[str, ...]        # what could not be told, each a sentence
    environments: tuple[Tried, ...]     # the clean one first


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """`stack-proof.json`."""

    targets: tuple[ProvenTarget, ...]
    outside: tuple[str, ...] = ()   # parts of the lock that are in no target, each a sentence: packages of channels
